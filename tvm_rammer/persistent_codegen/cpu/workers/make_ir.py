"""Make the LLVM IR of the CPU's workers and their client of the C source: TVM takes IR, users need no C compiler.

python -m tvm_rammer.persistent_codegen.cpu.workers.make_ir --clang clang-19
"""

import argparse
import re
import subprocess
import sys

from .sources import FOLDER, MADE, digest_of_source

FLAGS = (
    "-std=c11", "-Oz", "-Wall", "-Wextra", "-Werror", "-S", "-emit-llvm", "-Qn", "-fno-strict-aliasing",
    "-fno-asynchronous-unwind-tables", "-fno-vectorize", "-fno-slp-vectorize",
)  # fmt: skip

HEAD = "; Made of {name}.c by make_ir.py; do not edit. Source: {digest}\n"


def main() -> None:
    """Write workers.ll and client.ll."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clang", default="clang", help="the compiler (default: clang)")
    args = parser.parse_args()
    for name in MADE:
        try:
            command = [args.clang, *FLAGS, str(FOLDER / f"{name}.c"), "-o", "-"]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        except FileNotFoundError:
            sys.exit(f"there is no {args.clang}; install clang 19, or name it: --clang clang-19")
        except subprocess.CalledProcessError as error:
            sys.exit(error.stderr)
        head = HEAD.format(name=name, digest=digest_of_source(name))
        (FOLDER / f"{name}.ll").write_text(head + portable(text), encoding="utf-8")


def portable(text: str) -> str:
    """Take away what belongs to one processor or one compiler, and let a module have the functions once.

    All types have the same size on every 64-bit Linux, so the rest fits each of them. What processors.py defines is not
    declared.
    """
    dropped = (";", "source_", "target ", "attr", "!", "declare void @rammer_pause", "declare i64 @rammer_futex")
    text = "\n".join(line for line in text.splitlines() if line.strip() and not line.startswith(dropped)) + "\n"
    text = re.sub(r" #\d+|, !\S+ !\d+| dso_local| local_unnamed_addr| +;.*$", "", text, flags=re.MULTILINE)
    return text.replace("\ndefine ", "\ndefine linkonce_odr hidden ").replace(
        "define linkonce_odr hidden internal", "define internal"
    )


if __name__ == "__main__":
    main()
