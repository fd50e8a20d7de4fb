"""The models that benchmarks measure, by name."""

import argparse
from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import MappingProxyType

import onnx

from .alexnet import alexnet
from .deepspeech2 import deepspeech2
from .inception_module import inception_module
from .inception_v3 import inception_v3
from .light import light
from .lstm_stack import lstm_stack
from .nasnet import nasnet
from .onnx_lstm import onnx_lstm
from .resnext import resnext29
from .seq2seq import seq2seq
from .transformer import transformer_encoder

MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = MappingProxyType(
    {
        "SqueezeNet": partial(light, "squeezenet"),
        "Inception v1": partial(light, "inception_v1"),
        "Inception v3": inception_v3,
        "ResNet-50": partial(light, "resnet50"),
        "DenseNet-121": partial(light, "densenet121"),
        "ShuffleNet": partial(light, "shufflenet"),
        "Inception module": inception_module,
        "LSTM 8 x 8 x 256": partial(lstm_stack, 8, 8, 256),
        "LSTM 10 x 20 x 256": partial(lstm_stack, 10, 20, 256),
        "LSTM 10 x 20 x 256 (8 products a cell)": partial(lstm_stack, 10, 20, 256, fused_gates=False),
        "LSTM 10 x 100 x 256": partial(lstm_stack, 10, 100, 256),
        "LSTM 10 x 100 x 256 (8 products a cell)": partial(lstm_stack, 10, 100, 256, fused_gates=False),
        "ONNX LSTM 2 x 50 x 32": onnx_lstm,
        "Transformer 2 x 32 x 128": transformer_encoder,
        "ResNeXt-29 (branches)": resnext29,
        "ResNeXt-29 (grouped)": partial(resnext29, grouped=True),
        "NASNet-A": nasnet,
        "AlexNet": alexnet,
        "DeepSpeech2": deepspeech2,
        "DeepSpeech2 (8 products a cell)": partial(deepspeech2, fused_gates=False),
        "Seq2Seq": seq2seq,
        "Seq2Seq (8 products a cell)": partial(seq2seq, fused_gates=False),
    }
)


def names_of(what: str, known: Collection[str]) -> Callable[[str], list[str]]:
    """Make the `type` of a command's argument that is names with commas between them.

    Parameters
    ----------
    what : str
        For the message where one is unknown.
    known : collection of str
    """

    def names(text: str) -> list[str]:
        wanted = text.split(",")
        if unknown := [name for name in wanted if name not in known]:
            raise argparse.ArgumentTypeError(f"unknown {what} {', '.join(unknown)}; choose from {', '.join(known)}")
        return wanted

    return names


model_names = names_of("models", MODELS)
