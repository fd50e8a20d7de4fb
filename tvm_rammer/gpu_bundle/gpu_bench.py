#!/usr/bin/env python3
"""Check and time a bundle on the GPU of this machine: `gpu_bench` of every bundle. Needs Python 3.11, no packages."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("gpu_bench: needs Python 3.11 or newer; call it as `python3.12 gpu_bench`")
sys.path.insert(0, str(HERE / "lib"))

from tvm_rammer.gpu_bundle.onsite.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(HERE, __file__, sys.argv[1:]))
