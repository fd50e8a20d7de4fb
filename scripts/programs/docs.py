"""Write the API reference, made of the docstrings: scripts/run docs [-o FOLDER], then open FOLDER/index.html."""

import argparse
import importlib
import pathlib

import pdoc
import pdoc.render

import tvm_rammer

ROOMS = (
    "benchmark", "compilation.pipeline", "device", "errors", "ir", "onnx_backend", "onnxruntime", "persistent_codegen",
    "relay_passes", "rkernel_gen", "runtime.module", "wavefront",
)  # fmt: skip
"""What users of the package, of its passes and of its stages call. Other modules are read in their source."""


def modules() -> list[str]:
    """The modules with a page, imported: pdoc forbids what TVM does when it is imported."""
    for name in tvm_rammer.__all__:
        setattr(tvm_rammer, name, getattr(tvm_rammer, name))  # pdoc looks for what is there, and asks for nothing
    names = [f"tvm_rammer.{room}" for room in ROOMS]
    for name in names:
        importlib.import_module(name)
    return ["tvm_rammer", *names]


def main() -> None:
    """Write one page a module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("out/api"), metavar="FOLDER")
    args = parser.parse_args()
    names = modules()
    pdoc.render.configure(docformat="numpy", show_source=False, footer_text=f"tvm_rammer {tvm_rammer.__version__}")
    pdoc.pdoc(*names, output_directory=args.output)
    print(f"{len(names)} modules: {args.output / 'index.html'}")


if __name__ == "__main__":
    main()
