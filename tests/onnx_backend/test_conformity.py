"""A sample of ONNX's own backend tests, and the runner of all of them."""

import os
import pathlib
import signal
import subprocess
import time

import pytest

from tests.forking import python
from tests.marks import newest_onnx
from tvm_rammer.onnx_backend.conformity import workers
from tvm_rammer.onnx_backend.conformity.cases import CRASH, FOREIGN, HANG, REFUSED, RIGHT, Verdict, judge, load_cases
from tvm_rammer.onnx_backend.conformity.report import committed, markdown

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "programs" / "conformity.py"
SAMPLE = """
    add abs argmax_default_axis_example attention_4d_fp16 attention_23_boolmask_fullymasked_row_nan_robustness
    batchnorm_example_training_mode bitcast_float32_to_int32 bitshift_left_int32_shift_ge_width cast_FLOAT_to_BFLOAT16
    center_crop_pad_crop_and_pad compress_0 convtranspose_output_shape cumprod_1d_reverse det_2d
    dynamicquantizelinear expand_dim_changed gather_elements_1 if isinf_positive
    layer_normalization_2d_axis1 loop11 mod_float_edge_cases_fmod_0_float32 nonmaxsuppression_iou_threshold_boundary
    nonzero_example onehot_with_axis pow_types_int32_float32 reduce_max_bool_inputs
    reduce_sum_empty_axes_input_noop resize_downsample_scales_cubic_antialias resize_tf_crop_and_resize
    spacetodepth_crd_mode_example tile top_k_uint64 unique_length_1
""".split()  # noqa: SIM905


@newest_onnx
def test_all_cases_of_the_package_are_there():
    assert len(load_cases()) >= 2000


@newest_onnx
@pytest.mark.parametrize("name", SAMPLE)
def test_cases_that_are_right(name):
    name = f"node/test_{name}"
    verdict = judge(name, load_cases()[name])
    assert (verdict.outcome, verdict.message) == (RIGHT, "")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("node/test_training_dropout", "Dropout 'y' drops elements at random; export the model for inference"),
        ("node/test_cast_FLOAT_to_INT4", "Cast 'output' has INT4 values in 'output'"),
        ("node/test_string_concat", "StringConcat"),
        ("node/test_optional_has_element_tensor_input", "OptionalHasElement"),
        ("node/test_roialign_mode_max", "RoiAlign 'Y' has the mode 'max'; use 'avg'"),
    ],
)
def test_refused_with_the_operator(name, message):
    verdict = judge(name, load_cases()[name])
    assert verdict.outcome == REFUSED and message in verdict.message


HOSTILE = """
    roialign_aligned_true roialign_aligned_false gridsample_border_padding gridsample_reflection_padding gather_0
    gather_elements_1 gathernd_example_float32 scatternd onehot_with_axis maxunpool_export_with_output_shape
    reversesequence_batch compress_0 nllloss_NC scatter_elements_with_axis slice_neg_steps
""".split()  # noqa: SIM905


@newest_onnx
def test_values_that_nobody_expects_end_in_results_or_in_errors_of_ours():
    verdicts = workers.run_cases([f"node/test_{name}" for name in HOSTILE], 1, hostile=True)
    assert {verdict.name: verdict.message for verdict in verdicts if verdict.outcome != RIGHT} == {}


def test_a_crash_and_a_hang_are_one_case_each(monkeypatch):
    names = list(load_cases())[:4]

    def judged(name, _case):
        if name == names[1]:
            os.kill(os.getpid(), signal.SIGSEGV)
        if name == names[2]:
            time.sleep(60)
        return Verdict(name, "Abs", RIGHT)

    monkeypatch.setattr(workers, "judge", judged)
    monkeypatch.setattr(workers, "LIMIT_S", 2.0)
    assert [v.outcome for v in workers.run_cases(names, 2)] == [RIGHT, CRASH, HANG, RIGHT]


def test_with_hostile_values_a_hang_is_of_one_of_them(monkeypatch):
    names = list(load_cases())[:2]

    def judged(name, _case, tells):
        for value in range(8):
            tells(f"input 0 of {value}")
            time.sleep(60 if name == names[1] and value == 6 else 0.5)
        return Verdict(name, "Abs", RIGHT)

    monkeypatch.setattr(workers, "judge_hostile", judged)
    monkeypatch.setattr(workers, "LIMIT_S", 2.0)
    right, hang = workers.run_cases(names, 2, hostile=True)
    assert right.outcome == RIGHT and right.seconds > 2.0
    assert (hang.outcome, hang.message) == (HANG, "input 0 of 6: no result after 2 s")


def test_the_page_says_how_many_are_right_and_why_others_are_not():
    verdicts = [
        Verdict("node/test_a", "Abs", RIGHT),
        Verdict("node/test_b", "Cast", REFUSED, "Cast 'x' is refused"),
        Verdict("node/test_c", "Cast", REFUSED, "Cast 'z' is refused"),
        Verdict("node/test_d", "Cast", FOREIGN, "TypeError"),
    ]
    text = markdown(verdicts)
    assert committed(text) == 1
    assert "- refused, 2: Cast ... is refused (`b`, `c`)" in text and "- foreign, 1: TypeError (`d`)" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "["], "'[' is no regular expression"),
        (["--only", "test_nothing"], "no case's name matches 'test_nothing'"),
        (["--only", "test_abs", "--processes", "0"], "0 processes; at least one is needed"),
    ],
)
def test_what_names_no_cases_is_one_line(options, message):
    done = subprocess.run([python(), SCRIPT, *options], capture_output=True, text=True)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
