"""How many vEUs a unit of a GPU gets: one more as long as that is predicted to be faster, and there are registers."""

import pytest
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tvm_rammer import wavefront
from tvm_rammer.compilation import regions


@pytest.mark.parametrize(
    ("saves", "fits", "tried"),
    [
        ({2, 3, 4}, {2, 3, 4}, [2, 3, 4]),  # and no more than four
        ({2}, {2, 3, 4}, [2, 3]),
        (set(), {2, 3, 4}, [2]),
        ({2, 3, 4}, {2}, [2, 3]),
    ],
)
def test_units_share_as_long_as_it_saves_time_and_registers_suffice(monkeypatch, saves, fits, tried):
    asked = []

    def schedule_sharing(graph, kernels, device, programs, *, blocks, **options):
        asked.append(blocks)
        return programs if blocks in saves else None

    monkeypatch.setattr(wavefront, "schedule_sharing", schedule_sharing)
    monkeypatch.setattr(regions, "_has_registers", lambda *_: asked[-1] in fits)
    module = relax_module([(1, 64), (1, 64)], lambda x, y: relax.op.tanh(relax.op.add(x, y)))
    tvm_rammer.compile(module, target="cuda:h200", cache=False)
    assert asked == tried
