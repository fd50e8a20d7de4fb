"""A checkout against another one: here against itself."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def bench(*arguments):
    return subprocess.run([ROOT / "scripts" / "bench", "checkouts", *arguments], capture_output=True, text=True)


def test_a_checkout_is_as_fast_as_itself():
    done = bench(str(ROOT), "--models", "ONNX LSTM 2 x 50 x 32", "--turns", "3", "--seconds", "0.05", "--threads", "1")
    assert done.returncode == 0, done.stderr
    figures = r"[\d.]+ \| [\d.]+ \| ([\d.]+)"
    (ratios,) = re.findall(rf"^\| ONNX LSTM 2 x 50 x 32 \| {figures} \| 0e\+00 \| {figures} \|$", done.stdout, re.M)
    assert all(0.2 < float(ratio) < 5 for ratio in ratios)


def test_a_folder_without_the_package_is_one_line(tmp_path):
    done = bench(str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == f"bench: there is no package in {tmp_path}; give the folder of a checkout\n"
