"""The benchmark as it runs on site, on a fake driver: what is right, wrong, racy, hangs or dies is told apart."""

import json

import pytest

from tvm_rammer.gpu_bundle.onsite.plan import EDGES_FOLDER, Plan, PlanBuffer, PlanLaunch, View, plan_to_json

from . import mini


@pytest.fixture
def bundle(tmp_path):
    def make(**variants):
        folder = tmp_path / "bundle"
        folder.mkdir()
        return mini.make(folder, {"twice": variants})

    return make


def bench(folder, *arguments, env=None):
    quick = ("--minutes", "0.2", "--rounds", "2", "--patience", "3")
    return mini.run(folder, *quick, *arguments, libcuda=mini.fake_cuda(), env=env)


def test_without_a_gpu(bundle):
    done = mini.run(bundle(rammer=mini.plan("double_kernel")), libcuda="libno_such_cuda.so")
    assert done.returncode == 2
    assert "there is no CUDA driver here" in done.stderr
    assert "run this on a machine with an NVIDIA GPU" in done.stderr


def test_all_is_well(bundle):
    folder = bundle(rammer=mini.plan("double_kernel", cooperative=True), stock=mini.plan("double_other", launches=3))
    done = bench(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    found = mini.results(folder)
    assert found["device"]["name"] == "Fake GPU 0"
    assert found["device"]["architecture"] == "sm_90"
    twice = found["models"]["twice"]
    assert list(twice["contenders"]) == ["rammer", "rammer+graph", "stock", "stock+graph"]
    for figures in twice["contenders"].values():
        assert figures["status"] == figures["after"]["status"] == "ok"
        assert figures["max_rel_err"] < 1e-6
        assert figures["back_to_back_us"] > 0
        assert figures["batches"] == 2
        assert figures["waited_us"] > 0
    assert twice["variants"]["stock"]["launches"] == 3
    (alone,) = twice["alone"].pop("stock")
    assert alone.pop("us") > 0
    assert alone == {"kernel": "double_other", "uses": 3, "blocks": 2, "threads": 32}
    assert not twice["alone"]  # blocks that wait for one another have no kernels to time one by one
    assert twice["variants"]["rammer"]["largest"]["resident_blocks"] == 2
    table = (folder / "results" / "results.md").read_text()
    assert "stock TVM's kernels, one launch each, in a CUDA graph" in table
    assert "| double_other | 3 | 2 x 32 |" in table
    assert "`python" in table


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        ("wrong_kernel", {"status": "wrong", "different_runs": 0}),
        ("idle_kernel", {"status": "wrong", "max_rel_err": None}),
        ("racy_kernel", {"status": "wrong", "different_runs": 20}),
    ],
)
def test_wrong_results_are_not_timed(bundle, kernel, says):
    folder = bundle(rammer=mini.plan(kernel), stock=mini.plan("double_kernel"))
    done = bench(folder)
    assert done.returncode == 1
    contenders = mini.results(folder)["models"]["twice"]["contenders"]
    assert says.items() <= contenders["rammer"].items()
    assert "back_to_back_us" not in contenders["rammer"]
    assert contenders["stock"]["back_to_back_us"] > 0
    assert "WRONG" in (folder / "results" / "results.md").read_text()


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        ("hang_kernel", "without a word"),
        ("crash_kernel", "ended with status"),
        ("fault_kernel", "CUDA_ERROR_LAUNCH_FAILED"),
        ("big_kernel", "2 blocks that must all run at once"),
    ],
)
def test_one_variant_that_dies_does_not_take_the_others_along(bundle, kernel, reason):
    folder = bundle(rammer=mini.plan(kernel, cooperative=True), stock=mini.plan("double_kernel"))
    done = bench(folder)
    assert done.returncode == 1
    twice = mini.results(folder)["models"]["twice"]
    assert any(reason in failure for failure in twice["failures"])
    assert set(twice["contenders"]) == {"stock", "stock+graph"}
    assert twice["contenders"]["stock+graph"]["back_to_back_us"] > 0


def test_launches_are_those_of_the_plan(bundle, tmp_path):
    log = tmp_path / "log"
    folder = bundle(rammer=mini.plan("double_one", cooperative=True), stock=mini.plan("double_two", launches=2))
    assert bench(folder, env={"FAKE_CUDA_LOG": str(log)}).returncode == 0
    lines = set(log.read_text().splitlines())
    assert lines == {
        "double_one 2,1,1 32,1,1 1024 1",
        "double_one 2,1,1 32,1,1 1024 1 captured",
        "double_two 2,1,1 32,1,1 1024 0",
        "double_two 2,1,1 32,1,1 1024 0 captured",
    }


def chain(*, writes):
    """Two kernels one after the other; the second one reads what the first one wrote."""
    nbytes = 4 * mini.VALUES
    buffers = (
        PlanBuffer("x", nbytes, "input", "in.bin"), PlanBuffer("h", nbytes, "memory"), PlanBuffer("y", nbytes, "memory")
    )  # fmt: skip
    launches = tuple(
        PlanLaunch(name, (2, 1, 1), (32, 1, 1), 0, False, (View(n, 0, nbytes), View(n + 1, 0, nbytes)), writes)
        for n, name in enumerate(("double_first", "double_second"))
    )
    return Plan("chain", buffers, launches, (View(2, 0, nbytes),), {"sm_90": "kernels.cubin"})


@pytest.mark.parametrize(("writes", "right"), [((), True), ((False, True), True), ((False, False), False)])
def test_edges_of_a_graph_are_needed(tmp_path, writes, right):
    # The fake driver lets the last node go first that may. Four times what comes in is wrong anyway.
    plan = chain(writes=writes)
    edges = {f"models/twice/stock/{EDGES_FOLDER}/plan.json": json.dumps(plan_to_json(plan))}
    mini.make(tmp_path, {"twice": {"stock": plan}}, given=edges)
    assert bench(tmp_path).returncode == 1
    contenders = mini.results(tmp_path)["models"]["twice"]["contenders"]
    assert (contenders["stock+graph"]["max_rel_err"], contenders["stock"]["different_runs"]) == (1.0, 0)
    assert (contenders["stock+edges"]["max_rel_err"] == 1.0) == right
    table = (tmp_path / "results" / "results.md").read_text()
    assert "stock TVM's kernels, one launch each, in a CUDA graph with the model's edges" in table


def test_another_gpu(bundle):
    plan = mini.plan("double_kernel")
    object.__setattr__(plan, "cubins", {"sm_80": "kernels.cubin"})
    folder = bundle(rammer=plan)
    assert bench(folder).returncode == 1
    (failure,) = mini.results(folder)["models"]["twice"]["failures"]
    assert "this GPU is sm_90, and the bundle has kernels for sm_80 only" in failure


def test_a_file_that_did_not_arrive_whole(bundle):
    folder = bundle(rammer=mini.plan("double_kernel"))
    (folder / "in.bin").write_bytes(b"0")
    done = bench(folder)
    assert done.returncode == 2
    assert "in.bin is missing or not as it was packed" in done.stderr


def test_without_pytorch_all_others_are_timed(bundle):
    folder = bundle(stock=mini.plan("double_kernel"))
    assert bench(folder, "--torch").returncode == 1
    twice = mini.results(folder)["models"]["twice"]
    (failure,) = twice["failures"]
    assert failure.startswith("torch: PyTorch cannot be loaded")
    assert "leave out --torch" in failure
    assert twice["contenders"]["stock"]["back_to_back_us"] > 0


def test_unknown_model(bundle):
    done = bench(bundle(rammer=mini.plan("double_kernel")), "--models", "thrice")
    assert done.returncode == 2
    assert "no model thrice; it has twice" in done.stderr
