"""Legalizations of our own where TVM's would do, but for a warning: they make the very same functions."""

import numpy as np
import pytest
import tvm_ffi
from tvm import relax

from tests.functions import TARGET, relax_module
from tvm_rammer.relay_passes.passes.exact_legalization import exact_legalization


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [3, [1, 2], [[1, 2], [0, 1]], np.array([1], "int32")])
def test_take_is_tvms_without_the_warning(axis, indices, capfd):
    mod = relax_module([(8, 16)], lambda x: relax.op.take(x, relax.const(np.array(indices)), axis=axis, mode="fast"))
    stock = relax.transform.LegalizeOps()(mod)
    assert "Fast mode" in capfd.readouterr().err
    ours = relax.transform.LegalizeOps(exact_legalization(TARGET))(mod)
    assert "Fast mode" not in capfd.readouterr().err
    assert tvm_ffi.structural_equal(ours, stock)
