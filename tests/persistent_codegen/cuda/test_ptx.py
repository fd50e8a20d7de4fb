"""What nvcc makes of memory orders, scopes and barriers, and of loads from memory that other blocks write."""

import re
from dataclasses import replace

import pytest

from tests.marks import needs_nvcc
from tests.persistent_codegen.cuda.programs import GRAPHS, planned, tiny
from tests.persistent_codegen.cuda.ptx import compile_ptx
from tests.persistent_codegen.cuda.read_rows import form_of

pytestmark = needs_nvcc

QUICK = [("tiny", "sm_80"), ("tiny", "sm_90"), ("two_matmuls", "sm_90")]
SLOW = [
    ("two_matmuls", "sm_80"),
    *((name, arch) for name in GRAPHS if name != "two_matmuls" for arch in ("sm_80", "sm_90")),
]
CASES = [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]


def programs_of(name):
    return [tiny()] if name == "tiny" else planned(name, 3)


def compiled(built, arch, source=None):
    return compile_ptx(source or built.source, f"{built.program.name}_kernel", arch)


def written_by(built):
    """The parameters that the kernel writes."""
    inputs = len(built.cuda.inputs)
    return {"state", "workspace", *(f"segment{i}" for i in range(inputs, inputs + len(built.cuda.outputs)))}


def stale_loads(kernel, written):
    """Loads of what the kernel writes that need not be coherent; or of what nobody knows."""
    return [i for i, origins in kernel.accesses(r"ld\.global\.nc") if not origins or origins & written]


@pytest.mark.parametrize(("name", "arch"), CASES)
def test_orders_scopes_barriers_and_loads(name, arch):
    for built in programs_of(name):
        kernel = compiled(built, arch)
        check_synchronisation(kernel, built)
        check_barriers(kernel, built)
        check_rows(kernel, built)
        check_loads(kernel, built)


def check_synchronisation(kernel, built):
    """A wait in each branch, whose loop nvcc turns round; one signal; the number of the run, and the end of it."""
    acquires, relaxed = kernel.matching(r"ld\.acquire"), kernel.matching(r"ld\.relaxed")
    waits = text_of(built).count("rammer_wait(")
    assert waits <= len(acquires) <= 2 * waits and all(i.startswith("ld.acquire.gpu.") for i in acquires)
    assert [i.split()[0] for i in relaxed] == ["ld.relaxed.gpu.b64"]
    atomics = sorted(re.sub(r"^(atom|red)\.", "", i.split()[0]) for i in kernel.matching(r"(?:atom|red)\."))
    assert atomics == ["add.relaxed.gpu.u64", "add.release.gpu.s32"]
    for _, origins in kernel.accesses(r"(?:ld\.acquire|ld\.relaxed|atom\.|red\.)"):
        assert origins == {"state"}
    assert not kernel.matching(r"(?:fence|membar|ld\.volatile|st\.volatile|st\.release|cp\.async|ld\.global\.nc\.L)")
    assert not re.search(r"\b(?:atom|red|ld\.acquire|ld\.relaxed|bar|barrier)\b.*;", kernel.functions)


def text_of(built):
    """Of the kernel alone."""
    return built.source[built.source.index('extern "C"') :]


def check_barriers(kernel, built):
    """A block barrier before a signal, and one behind each wait but that of rows without a run; those of rTasks name
    their threads."""
    of_block = kernel.matching(r"(?:bar|barrier)\.sync(?:\.aligned)? 0;")
    of_rtasks = kernel.matching(r"(?:bar|barrier)\.sync(?:\.aligned)? (?!0;)")
    body, functions = text_of(built), {f.name for f in built.functions}
    assert len(of_block) == body.count("rammer_block_barrier();") == body.count("rammer_wait(")
    assert body.count("rammer_wait(") > len(functions)
    counts = {int(i.rstrip(";").split(", ")[1]) for i in of_rtasks if re.match(r".*\b1, \d+;", i)}
    registers = [i for i in of_rtasks if not re.match(r".*\b1, \d+;", i)]
    assert not registers, registers
    assert counts == {k.threads for k in built.program.kernels if k.shared_bytes}
    assert len(of_rtasks) >= body.count("rammer_rtask_barrier(")


def check_rows(kernel, built):
    """A row is loaded once, ahead; to wait, to choose the function and to signal takes few instructions."""
    words = form_of(built).words // 32
    loads = [i for i, origins in kernel.accesses(r"ld\.global\.(?!nc)") if origins == {"rows"}]
    assert len(loads) == 2 * words  # the first row; within the loop the next one
    assert len([i for i, origins in kernel.accesses(r"ld\.global") if origins == {"begin"}]) == 3
    code = list(kernel.instructions)
    row = code.index(loads[words])
    barriers = [n for n in range(row, len(code)) if code[n] == "bar.sync 0;"]
    assert barriers[0] - row <= MOST_BEFORE_A_RUN
    signals = next(n for n in reversed(barriers) if any(".release." in i for i in code[n:]))
    ready = {n: next(b for b in barriers if b > n) for n in range(row, len(code)) if "ld.acquire" in code[n]}
    soon = {barrier: code[n:barrier] for n, barrier in ready.items() if barrier - n <= MOST_AFTER_A_LOOK}
    assert soon.keys() == set(barriers) - {signals}  # rows without a run wait, too, and need no barrier then
    assert not [i for piece in soon.values() for i in piece if re.search(r"\b(?:ld|st)\.(?!acquire|param)", i)]
    released = next(n for n in range(signals, len(code)) if ".release." in code[n])
    assert released - signals <= MOST_OF_A_SIGNAL
    shuffles = len(kernel.matching(r"shfl\.sync\.idx"))
    arguments = sum(len(words) for words in {f.name: (*f.dtypes, *f.numbers) for f in built.functions}.values())
    in_rtasks = built.source.count("__shfl")
    waits = text_of(built).count("rammer_wait(")
    assert shuffles <= MOST_SHUFFLES + 2 * (arguments + waits) + in_rtasks


MOST_BEFORE_A_RUN, MOST_AFTER_A_LOOK, MOST_OF_A_SIGNAL, MOST_SHUFFLES = 75, 20, 16, 6
"""Instructions of PTX: of a row up to its first run, from a look at counters to the barrier, of a signal; shuffles of a
row beside the arguments and those of its waits."""


def check_loads(kernel, built):
    written = written_by(built)
    assert not stale_loads(kernel, written)
    assert ".nc" not in kernel.functions
    for instruction, origins in kernel.accesses(r"st\.global"):
        assert origins and origins <= written - {"state"}, (instruction, origins)


def test_a_load_that_need_not_be_coherent_is_noticed():
    built = tiny()
    wrong = built.source.replace("*(float4*)(p0_x0_ptr", "__ldg((const float4*)(p0_x0_ptr").replace(
        "(tid * 4)));\n  __1.x", "(tid * 4))));\n  __1.x"
    )
    assert wrong != built.source
    assert stale_loads(compiled(built, "sm_90", wrong), written_by(built))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("__NV_ATOMIC_RELEASE", "__NV_ATOMIC_RELAXED"),
        ("__NV_ATOMIC_ACQUIRE", "__NV_ATOMIC_RELAXED"),
        ("__NV_THREAD_SCOPE_DEVICE", "__NV_THREAD_SCOPE_BLOCK"),
    ],
)
def test_a_weaker_operation_is_noticed(right, wrong):
    kernel = compiled(tiny(), "sm_90", tiny().source.replace(right, wrong))
    with pytest.raises(AssertionError):
        check_synchronisation(kernel, tiny())


def test_a_missing_barrier_is_noticed():
    built = tiny()
    wrong = replace(built, source=built.source.replace("rammer_block_barrier();\n", "\n", 1))
    with pytest.raises(AssertionError):
        check_barriers(compiled(wrong, "sm_90"), built)
