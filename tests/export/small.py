"""Models for a GPU of four units."""

import dataclasses

from tvm_rammer.compilation.request import Request
from tvm_rammer.device import preset

SMALL_GPU = dataclasses.replace(preset("cuda:h200"), name="small", units=4)


def request(proto, device=SMALL_GPU):
    return Request((proto,), (None,), device)
