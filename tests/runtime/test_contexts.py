"""One module, many threads, and processes that fork."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tests.growth.memory import resident
from tests.two_inputs import two_inputs
from tvm_rammer.errors import ModelError, ToolError
from tvm_rammer.runtime.contexts import ContextPool
from tvm_rammer.zoo.inception_module import inception_module
from tvm_rammer.zoo.lstm_stack import lstm_stack
from tvm_rammer.zoo.onnx_lstm import onnx_lstm
from tvm_rammer.zoo.transformer import transformer_encoder

CALLS = 300


@pytest.fixture(scope="module")
def module():
    return tvm_rammer.compile(lstm_stack(2, 3, 32))


def inputs_of(module, seed):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(spec.shape).astype(spec.dtype) for spec in module.inputs]


def call_from_threads(module, threads, calls):
    """Call a module from threads that each have inputs of their own; return what was not as the serial result."""
    given = [inputs_of(module, seed) for seed in range(threads)]
    expected = [module(*inputs) for inputs in given]
    wrong = []

    def work(n):
        try:
            wrong.extend((n, k) for k in range(calls) if not np.array_equal(module(*given[n]), expected[n]))
        except Exception as error:
            wrong.append((n, repr(error)))

    workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return wrong


def test_each_thread_gets_its_own_results_bit_by_bit(module):
    assert call_from_threads(module, 8, CALLS) == []


def test_what_is_wrong_with_one_call_is_no_other_thread_s():
    """Indices outside, NaN and right ones come from eight threads at once; each has its own answer."""
    x, rows = np.random.default_rng(0).standard_normal((10, 4)).astype("float32"), np.array([0, 9, -1])
    values = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [10, 4]),
        helper.make_tensor_value_info("rows", TensorProto.INT64, [3]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4]),
    ]
    nodes = [helper.make_node("Gather", ["x", "rows"], ["g"]), helper.make_node("Tanh", ["g"], ["y"])]
    graph = helper.make_graph(nodes, "g", values[:2], values[2:])
    module = tvm_rammer.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    nan = np.full_like(x, np.nan)
    wanted: list = [module(x, rows), module(nan, rows), None, None]
    given = [(x, rows), (nan, rows), (x, np.array([0, 10, 1])), (x, np.array([2**62, 0, 1]))]
    wrong = []

    def work(n):
        for k in range(CALLS):
            try:
                if not np.array_equal(module(*given[n % 4]), wanted[n % 4], equal_nan=True):
                    wrong.append((n, k))
            except ModelError as error:
                if wanted[n % 4] is not None or "Gather got an index outside" not in str(error):
                    wrong.append((n, str(error)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("concurrency", [1, 2])
def test_there_are_no_more_contexts_than_asked_for(concurrency):
    module = tvm_rammer.compile(lstm_stack(1, 2, 16), concurrency=concurrency)
    assert call_from_threads(module, 4, 50) == []
    assert 1 <= module._contexts._made <= concurrency


@pytest.mark.slow
def test_several_models_at_once():
    modules = [tvm_rammer.compile(m) for m in (lstm_stack(2, 2, 32), inception_module(), lstm_stack(1, 4, 64))]
    found = []
    threads = [threading.Thread(target=lambda m=m: found.extend(call_from_threads(m, 3, 100))) for m in modules]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == []


MODELS = {
    "recurrent": lambda: onnx_lstm(1, 10, 16),
    "convolutions": lambda: inception_module(1, channels=8, size=6, widths=(3, 4, 5, 2, 3, 2)),
    "attention": lambda: transformer_encoder(1, 8, 32, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_eighty_thousand_calls(name):
    module = tvm_rammer.compile(MODELS[name]())
    assert call_from_threads(module, 8, 500) == []
    before = resident()
    assert call_from_threads(module, 8, 10_000) == []
    assert resident() - before < 8  # megabytes


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"concurrency": 0}, "concurrency is 0; give an integer, at least 1"),
        ({"concurrency": "all"}, "concurrency is 'all'"),
        ({"explore": -1}, "explore is -1"),
        ({"explore": 1.5}, "explore is 1.5"),
        ({"options": {"beam": 3}}, "options is {'beam': 3}; give a"),
        ({"shapes": [1, 8]}, r"shapes is \[1, 8\]; give a mapping"),
    ],
)
def test_impossible_numbers_are_refused(asked, message):
    with pytest.raises(ModelError, match=message):
        tvm_rammer.compile(lstm_stack(1, 1, 8), **asked)


def in_child(work, seconds=60):
    """The exit status of a forked child that does some work; None where it had to be killed."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(work())
        finally:
            os._exit(99)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("threads", [1, 10])
def test_the_process_ends_while_threads_that_nobody_joins_are_in_calls(tmp_path, threads):
    """And what its main thread calls last is answered."""
    path = tvm_rammer.compile(two_inputs()).save(tmp_path / "model.rammer")
    program = f"""
import atexit, itertools, threading, time
import numpy as np
atexit.register(lambda: print(module(*arrays)[0].shape))
import tvm_rammer
module = tvm_rammer.load({str(path)!r})
arrays = [np.ones(spec.shape, spec.dtype) for spec in module.inputs]
for _ in range({threads}):
    threading.Thread(target=lambda: [module(*arrays) for _ in itertools.count()], daemon=True).start()
time.sleep(0.1)
"""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300,
            env=os.environ | {"PYTHONPATH": str(pathlib.Path(tvm_rammer.__file__).parents[1])},
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "(2, 32)\n", "")


def test_a_forked_child_computes_the_same(module):
    inputs = inputs_of(module, 0)
    expected = module(*inputs)

    def work():
        results = [module(*inputs) for _ in range(20)]
        grandchild = in_child(lambda: 7 * (not np.array_equal(module(*inputs), expected)), 30)
        return 0 if all(np.array_equal(r, expected) for r in results) and grandchild == 0 else 1

    assert in_child(work) == 0
    np.testing.assert_array_equal(module(*inputs), expected)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_that_was_forked_in_the_middle_of_a_call_is_refused():
    pool = ContextPool((), 2)

    def work():
        try:
            return pool.call(lambda context: 1)
        except ToolError as error:
            return 0 if "forked while 1 calls" in str(error) else 2

    assert pool.call(lambda context: in_child(work)) == 0
    assert pool.call(lambda context: True)
