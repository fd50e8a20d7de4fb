"""The models of the zoo, compiled and run: results are ONNX Runtime's."""

import numpy as np
import pytest

import tvm_rammer
from tests.functions import UNOPTIMISED
from tvm_rammer.zoo.nasbench import nasbench, random_module

from .onnx_models import inputs_of, run
from .tiny import FORMS, TINY

CASES = [(name, {}) for name in TINY] + [(name, {form: True}) for name, form in FORMS.items()]
MARKS = {name: [pytest.mark.slow] for name in ("nasnet", "inception_v3", "resnext, ImageNet", "deepspeech2")}
PARAMS = [pytest.param(n, form, id=" ".join((n, *form)), marks=MARKS.get(n, ())) for n, form in CASES]


def compare(model, **how):
    module = tvm_rammer.compile(model, **how)
    want = run(model)
    np.testing.assert_allclose(module(**inputs_of(model)), want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize(("name", "form"), PARAMS)
def test_a_tiny_model_is_right(name, form):
    compare(TINY[name](**form))


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_a_batch_is_right(name):
    compare(TINY[name](batch=2), target=UNOPTIMISED)


@pytest.mark.slow
@pytest.mark.parametrize("sync", ["auto", "global"])
def test_random_modules_are_right(sync):
    for seed in range(10):
        compare(nasbench(random_module(seed), channels=6, size=10, seed=seed), sync=sync, target=UNOPTIMISED)
