"""The C interface of an exported project: what it takes, what it refuses, and what of its page runs."""

import re
import shutil
import subprocess

import pytest

from tests.emulation.projects import build_project, run_project
from tests.test_docs import EXPORT

MISUSE = """
#include <thread>
int main(int, char** arguments) {
  std::string weights = std::string(arguments[1]) + "/lstm.weights";
  lstm_instance *one = nullptr, *two = nullptr;
  if (lstm_create(nullptr, &one) != LSTM_BAD_ARGUMENT) return 10;
  if (lstm_create("nowhere", &one) != LSTM_BAD_WEIGHTS || one) return 11;
  if (lstm_create(weights.c_str(), &one) || lstm_create(weights.c_str(), &two)) return 12;
  char *x[2], *y;
  for (char*& p : x) cudaMalloc(reinterpret_cast<void**>(&p), 256), cudaMemset(p, 0, 256);
  cudaMalloc(reinterpret_cast<void**>(&y), 256);
  void *inputs[] = {x[0], x[1]}, *outputs[] = {y}, *shifted[] = {y + 4}, *null[] = {nullptr};
  if (lstm_run(one, inputs, shifted, nullptr) != LSTM_BAD_ARGUMENT) return 13;
  if (lstm_run(one, inputs, null, nullptr) != LSTM_BAD_ARGUMENT) return 14;
  char text[100];
  if (lstm_report_waits(one, text, 0) != LSTM_BAD_ARGUMENT || lstm_report_waits(one, text, 1) || text[0]) return 19;
  if (lstm_run(nullptr, inputs, outputs, nullptr) != LSTM_BAD_ARGUMENT) return 15;
  if (std::string(lstm_last_error()) != "lstm_run: a null pointer") return 16;
  for (int i = 0; i < 2; ++i)
    if (lstm_run(one, inputs, outputs, nullptr) || lstm_run(two, inputs, outputs, nullptr)) return 17;
  if (lstm_report_waits(one, text, sizeof text) || text[0]) return 20;
  lstm_destroy(nullptr), lstm_destroy(one), lstm_destroy(two);
  return lstm_inputs[1].name[0] == 'x' && LSTM_NUM_OUTPUTS == 1 ? 0 : 18;
}
"""


def test_the_c_interface_refuses_what_is_no_run_and_instances_do_not_share_counters(lstm, tmp_path):
    copy = shutil.copytree(lstm[0], tmp_path / "lstm")
    done = run_project(build_project(copy, MISUSE))
    assert done.returncode == 0, done.stderr


FAILED_RUN = """
int main(int, char** arguments) {
  std::string weights = std::string(arguments[1]) + "/lstm.weights";
  lstm_instance* one = nullptr;
  if (lstm_create(weights.c_str(), &one)) return 10;
  void *x[2], *y;
  for (void** p : {&x[0], &x[1], &y}) cudaMalloc(p, 256), cudaMemset(*p, 0, 256);
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (lstm_run(one, x, &y, streams[0]) != LSTM_CUDA_ERROR) return 11;
  return lstm_run(one, x, &y, streams[1]);
}
"""


def test_a_run_waits_for_one_that_failed_on_another_stream(lstm, tmp_path):
    copy = shutil.copytree(lstm[0], tmp_path / "lstm")
    log = tmp_path / "log"
    done = run_project(build_project(copy, FAILED_RUN), env={"EMU_LOG": str(log), "EMU_FAILS": "1"})
    assert done.returncode == 0, done.stderr
    waits = [line for line in log.read_text().splitlines() if "waits" in line]
    assert waits == ["stream 1 waits for stream 0", "stream 2 waits for stream 1"]


AS_ON_THE_PAGE = """
#include <unistd.h>
int main(int, char** arguments) {
  if (chdir(arguments[1])) return 2;
  void *x0, *x1, *h, *stream = nullptr;
  for (void** p : {&x0, &x1, &h}) cudaMalloc(p, 256), cudaMemset(*p, 0, 256);
  %s
  return cudaDeviceSynchronize() || lstm_last_error()[0];
}
"""


@pytest.mark.slow
def test_the_c_of_the_page_runs(lstm, tmp_path):
    (text,) = re.findall(r"^```c\n(.*?)^```$", EXPORT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    copy = shutil.copytree(lstm[0], tmp_path / "lstm")
    done = run_project(build_project(copy, AS_ON_THE_PAGE % text))
    assert (done.returncode, done.stderr) == (0, "")


def test_the_header_is_c(lstm):
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-x", "c"]
    subprocess.run([*command, str(lstm[0] / "lstm.h")], check=True, timeout=300)
