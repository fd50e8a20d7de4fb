"""The workers of the CPU: their C source under a thread sanitizer, and the pool of a process."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.functions import TARGET
from tests.marks import slow_but
from tests.persistent_codegen.cpu.test_program import planned, scheduled
from tvm_rammer.device.processors import processor_text
from tvm_rammer.persistent_codegen.cpu.workers.sources import FOLDER, HEADERS, MADE, digest_of_source

HERE = pathlib.Path(__file__).parent
GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="needs gcc")


@pytest.mark.parametrize("name", MADE)
def test_the_ir_is_made_of_the_source(name):
    """make_ir.py makes it, after a change of the source."""
    first = (FOLDER / f"{name}.ll").read_text(encoding="utf-8").splitlines()[0]
    assert first.endswith(f"Source: {digest_of_source(name)}")


def build(folder, source, *flags, test="workers_stress.c"):
    """A test in C, with some text of the workers' source."""
    for name in (*HEADERS, "client.c"):
        shutil.copy(FOLDER / name, folder)
    (folder / "workers.c").write_text(source, encoding="utf-8")
    program = folder / "stress"
    command = [GCC, "-std=gnu11", "-O1", "-g", *flags, f"-I{folder}", HERE / test, "-o", program]
    subprocess.run([*command, "-lpthread", "-ldl"], check=True, capture_output=True, timeout=300)
    return program


def stress(program, workers, callers, runs, timeout=300, seed=1):
    command = [program, *map(str, (workers, callers, runs, seed))]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


SOURCE = (FOLDER / "workers.c").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    return build(tmp_path_factory.mktemp("workers"), SOURCE, "-fsanitize=thread")


@needs_gcc
@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("callers", [1, 3])
def test_random_plans_are_right_and_free_of_races(sanitized, workers, callers):
    done = stress(sanitized, workers, callers, 20)
    assert done.returncode == 0, done.stdout + done.stderr
    helpers = int(done.stdout.split()[-2])
    assert helpers <= workers - 1
    assert helpers or workers == 1


MUTANTS = {
    "two on one lane": (
        "return atomic_compare_exchange_strong(&job->lane[lane].state, &state, held)",
        "return (sched_yield(), atomic_store(&job->lane[lane].state, held), true)",
    ),
    "a lane that is handed over too early": (
        "      job->walk(job->environment, lane, &reached, &job->bell);\n",
        "      set_lane(job, lane, FREE + row);\n      job->walk(job->environment, lane, &reached, &job->bell);\n",
    ),
    "a call that ends too early": (": !atomic_load(&job->unfinished))", ": true)"),
    "a lane that is left in disorder": (
        "  atomic_store(&job->lane[lane].state, (uint64_t)job->number << 32 | (uint32_t)state);",
        "  uint64_t all = (uint64_t)job->number << 32 | (uint32_t)state;\n"
        "  atomic_store_explicit(&job->lane[lane].state, all, memory_order_relaxed);",
    ),
    "an end that nobody hears": ("fetch_sub(&job->unfinished, 1) == 1", "fetch_sub(&job->unfinished, 1) < 0"),
}  # fmt: skip


@needs_gcc
@pytest.mark.parametrize(
    "name", slow_but(["two on one lane", "a lane that is left in disorder"], MUTANTS)
)  # the others hang
def test_mutants_of_the_source_fail(name, tmp_path):
    before, after = MUTANTS[name]
    assert SOURCE.count(before) == 1
    program = build(tmp_path, SOURCE.replace(before, after), "-fsanitize=thread")
    try:
        failed = any(stress(program, 2 + 2 * (seed % 2), 1, 60, timeout=10, seed=seed).returncode for seed in range(60))
    except subprocess.TimeoutExpired:
        failed = True
    assert failed


@needs_gcc
@pytest.mark.parametrize(
    ("meanwhile", "outcome"),
    [
        ("sleep", "finished, goes on"),
        ("loss", "left, rests"),
        ("little", "finished, goes on"),
        ("change", "finished, goes on"),
        ("alone", "finished, called"),
        ("brief", "alone, called, called, alone, called"),
    ],
)
def test_when_helpers_leave_and_are_called(meanwhile, outcome, tmp_path):
    program = build(tmp_path, SOURCE, "-Wno-unused-function", test="workers_clock.c")
    done = subprocess.run([program, meanwhile], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == outcome


@pytest.mark.parametrize(("machine", "words"), [
    ("x86_64", ('"pause"', "i64 202")), ("aarch64", ('"isb"', "i64 98")), ("riscv64", ("i64 124", "i64 98")),
])  # fmt: skip
def test_what_depends_on_the_processor(machine, words):
    assert all(word in processor_text(machine) for word in words)


@pytest.fixture(scope="module")
def mains():
    """Two modules for four vEUs."""
    return [relax.VirtualMachine(scheduled(4)[0], tvm.cpu())["main"] for _ in range(2)]


@pytest.fixture(scope="module")
def right(mains):
    """Whether a module gives the same as at its first run."""
    x = tvm.runtime.tensor(np.random.default_rng(1).standard_normal((1, 16, 20, 20)).astype("float32"))
    want = [t.numpy() for t in mains[0](x)]
    return lambda main=mains[0]: all(np.array_equal(got.numpy(), w) for got, w in zip(main(x), want, strict=True))


def num_threads():
    return len(os.listdir("/proc/self/task"))


def test_all_modules_share_one_pool(mains, right):
    right()
    before = num_threads()
    assert all(right(main) for main in mains)
    assert num_threads() == before


def test_an_idle_module_uses_no_processor(right):
    assert all(right() for _ in range(20))
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(1)
    assert time.process_time() - before < 0.05


@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_child_has_a_pool_of_its_own(right):
    right()
    child = os.fork()
    if not child:
        os._exit(0 if all(right() for _ in range(50)) else 1)
    assert all(right() for _ in range(50))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_neighbours_that_come_and_go_change_nothing(mains, right):
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    for sent in (signal.SIGSTOP, signal.SIGCONT, signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL):
        assert all(right(main) for _ in range(60) for main in mains)
        for process in busy:
            process.send_signal(sent)
    assert all(right() for _ in range(60))
    assert [process.wait() for process in busy] == [-signal.SIGKILL] * 3


def test_a_program_has_the_client_and_not_the_workers():
    executable, _ = scheduled(2)
    programs, workers = (module.inspect_source("ll") for module in executable.mod.imports)
    assert "pthread_create" in workers and "pthread_create" not in programs
    assert "TVMFFIFunctionGetGlobal" in programs


LOAD = """
import os, sys, threading
import numpy as np, tvm
from tvm import relax
assert "tvm_rammer" not in sys.modules
x = tvm.runtime.tensor(np.load(sys.argv[1]))
mains = [relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())["main"] for path in sys.argv[2:]]
want = [t.numpy() for t in mains[0](x)]
before = len(os.listdir("/proc/self/task"))
for _ in range(50):
    for main in mains:
        assert all(np.array_equal(t.numpy(), w) for t, w in zip(main(x), want))
assert len(os.listdir("/proc/self/task")) == before
del main, mains[0]
assert all(np.array_equal(t.numpy(), w) for t, w in zip(mains[0](x), want))
print(sum(w.sum() for w in want) != 0)
"""


def test_libraries_that_plain_tvm_loads_share_one_pool(tmp_path):
    paths = [str(tmp_path / f"{name}.so") for name in "ab"]
    np.save(tmp_path / "x.npy", np.random.default_rng(1).standard_normal((1, 16, 20, 20)).astype("float32"))
    executable, _ = scheduled(2)
    for path in paths:
        executable.export_library(path)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [sys.executable, "-c", LOAD, str(tmp_path / "x.npy"), *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=env, cwd=tmp_path, check=False)
    assert done.stdout.split() == ["True"], done.stderr


ALONE = """
import sys, tvm
from tvm import relax
main = relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())["main"]
try:
    main(tvm.runtime.empty((1, 16, 20, 20), "float32"))
except RuntimeError as error:
    print(error)
"""


def test_code_without_workers_says_so(tmp_path):
    module = planned(2)[0].without_attr("external_mods")
    library = tmp_path / "alone.so"
    tvm.compile(module, TARGET, relax_pipeline=tvm.transform.Sequential([])).export_library(str(library))
    done = subprocess.run(
        [sys.executable, "-c", ALONE, library], capture_output=True, text=True, timeout=300, check=True
    )
    assert "no workers with it" in done.stdout and "export the executable" in done.stdout
