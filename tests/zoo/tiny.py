"""Tiny forms of all models of the zoo, by name: each takes `seed` and `batch`, some the paper's or today's form."""

from tvm_rammer.zoo.alexnet import alexnet
from tvm_rammer.zoo.deepspeech2 import deepspeech2
from tvm_rammer.zoo.inception_v3 import inception_v3
from tvm_rammer.zoo.lstm_stack import lstm_stack
from tvm_rammer.zoo.nasnet import nasnet
from tvm_rammer.zoo.resnext import resnext
from tvm_rammer.zoo.seq2seq import seq2seq

SMALL = {"cardinality": 4, "width": 4, "channels": 16, "stem": 8}
TINY = {
    "resnext": lambda **how: resnext((2, 1), size=8, **SMALL, **how),
    "resnext, ImageNet": lambda **how: resnext((1, 2), size=32, imagenet=True, **SMALL, **how),
    "lstm": lambda **how: lstm_stack(2, 3, 8, **how),
    "seq2seq": lambda **how: seq2seq((2, 3), (2, 2), 8, **how),
    "deepspeech2": lambda **how: deepspeech2(frames=11, bins=9, layers=2, hidden=8, **how),
    "nasnet": lambda **how: nasnet(cells=3, filters=4, size=8, **how),
    "inception_v3": lambda **how: inception_v3(size=75, width=0.05, classes=7, **how),
    "alexnet": lambda **how: alexnet(size=67, filters=4, hidden=16, **how),
}
FORMS = {
    "resnext": "grouped",
    "resnext, ImageNet": "grouped",
    "lstm": "fused_gates",
    "seq2seq": "fused_gates",
    "deepspeech2": "fused_gates",
}
"""By name the parameter that is false for the paper's form and true for today's."""
