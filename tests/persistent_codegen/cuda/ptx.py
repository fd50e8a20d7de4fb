"""Reading PTX: its atomic operations, its barriers, and where its addresses come from."""

import pathlib
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from tests.emulation.emulate import kernel_parameters
from tvm_rammer.nvcc.compile import FLAGS

_REGISTER = re.compile(r"%[a-z]+\d+")


@dataclass(frozen=True)
class Kernel:
    """The PTX of the one kernel of a text.

    Parameters
    ----------
    instructions : tuple of str
        Without labels and directives.
    parameters : tuple of str
        Of the `__global__` function, `_ptr` left off.
    functions : str
        PTX of functions that were not inlined.
    """

    instructions: tuple[str, ...]
    parameters: tuple[str, ...]
    functions: str

    def matching(self, pattern: str) -> list[str]:
        """Instructions that begin with a pattern, after a predicate."""
        return [i for i in self.instructions if re.match(rf"(?:@!?%p\d+ )?{pattern}", i)]

    def origins(self) -> dict[str, set[str]]:
        """For each register the parameters that its value may be an address in.

        A register has what any instruction that writes to it computes from. What is loaded is no address: it is an
        index, or a number.
        """
        flows: dict[str, set[str]] = {}
        for instruction in self.instructions:
            if found := re.match(r"ld\.param\.u64\s+(%rd\d+), \[\w+_param_(\d+)\]", instruction):
                flows.setdefault(found[1], set()).add(self.parameters[int(found[2])])
            elif not re.match(r"(?:@!?%p\d+ )?(?:ld|st|atom|red|bra|bar|setp)\b", instruction):
                target, *sources = _REGISTER.findall(instruction) or [""]
                flows.setdefault(target, set()).update(sources)
        return {register: _reached(flows, register) for register in flows}

    def accesses(self, pattern: str) -> Iterator[tuple[str, set[str]]]:
        """Each instruction of a kind that takes an address, with the parameters that it may lie in."""
        origins = self.origins()
        for instruction in self.matching(pattern):
            address = re.search(r"\[(%rd\d+)", instruction)
            yield instruction, origins[address[1]] if address else set()


def _reached(flows: dict[str, set[str]], register: str) -> set[str]:
    seen, todo = {register}, [register]
    while todo:
        new = flows.get(todo.pop(), set()) - seen
        seen |= new
        todo += new
    return {name for name in seen if not name.startswith("%")}


def compile_ptx(source: str, kernel: str, arch: str) -> Kernel:
    """Compile CUDA text with the flags that TVM's own compilation has, up to PTX."""
    flags = [f for f in FLAGS if f != "-cubin" and not f.startswith("--ptxas-options")]
    with tempfile.TemporaryDirectory() as folder:
        text, ptx = pathlib.Path(folder, "kernel.cu"), pathlib.Path(folder, "kernel.ptx")
        text.write_text(source, encoding="utf-8")
        command = ["nvcc", "-ptx", *flags, f"-arch={arch}", str(text), "-o", str(ptx)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[:2000]
        found = ptx.read_text(encoding="utf-8")
    entry = found.index(f".entry {kernel}(")
    end = found.index("\n}\n", entry)
    lines = (line.strip() for line in found[entry:end].splitlines())
    instructions = [re.sub(r"\s+", " ", line) for line in lines if line.endswith(";") and not line.startswith(".")]
    parameters = tuple(name.removesuffix("_ptr") for name, _ in kernel_parameters(source, kernel))
    return Kernel(tuple(instructions), parameters, found[:entry] + found[end:])
