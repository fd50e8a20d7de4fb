"""`tvm-rammer tune` with kernels that nobody runs: prints the label of each trial once its record is written.

python fake_tuner.py SECONDS_A_TRIAL tune MODEL ...
"""

import sys
import time

import tvm_rammer  # before TVM: it lets TVM's thread pool have all cores
from tvm_rammer import cli
from tvm_rammer.tuning.measure import bench
from tvm_rammer.tuning.search import search
from tvm_rammer.tuning.trial import Outcome

assert tvm_rammer.__version__
SECONDS = float(sys.argv[1])


class FakeBench:
    def __init__(self, device, remote=None):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def measure(self, trials):
        for trial in trials:
            time.sleep(SECONDS)
            us = trial.tiling.operator_us(trial.task.function.device.units)
            yield trial, Outcome((us,), us / 2)
            print(trial.task.function.key, trial.tiling.label, flush=True)


class FakeModel:
    def has_times_of(self, task):
        return False

    def update(self, task, trials, outcomes):
        pass


bench.KernelBench = FakeBench
search.LearnedCostModel = FakeModel
sys.exit(cli.main(sys.argv[2:]))
