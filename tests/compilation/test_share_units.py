"""Several vEUs on each unit of a GPU, where that is predicted to be faster and the kernel has room for them."""

from dataclasses import replace

import pytest
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tests.marks import needs_nvcc
from tvm_rammer import wavefront
from tvm_rammer.compilation import regions
from tvm_rammer.compilation.compiler import load_request, lower_loaded
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.compilation.request import Request
from tvm_rammer.device import preset
from tvm_rammer.runtime.report import explain
from tvm_rammer.zoo.lstm_stack import lstm_stack

SMALL = replace(preset("cuda:h200"), units=2)


def compiled() -> Compilation:
    request = Request((lstm_stack(2, 2, 64),), (None,), SMALL)
    return lower_loaded(request, load_request(request))[1]


@needs_nvcc
def test_as_many_are_resident_as_planned():
    record = compiled()
    assert record.veus == 4 and record.cost.neighbours == 1
    for found in record.resources.values():
        assert found["resident_blocks_per_unit"] >= 2 and found["spill_bytes"] == 0
    assert "4 vEUs" in explain(record)


@needs_nvcc
@pytest.mark.parametrize("said", [{"spill_bytes": 4}, {"unknown": "nvcc is not found"}])
def test_each_unit_keeps_one_veu_where_ptxas_does_not_agree(said, monkeypatch):
    monkeypatch.setattr(regions, "resources_of", lambda *_: said)
    record = compiled()
    assert record.veus == 2 and record.cost.neighbours == 0


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
