"""How much code a cubin holds."""

import struct

from ..errors import ToolError

_HEADER, _SECTION = struct.Struct("<40xQ10xHHH"), struct.Struct("<II16xQQ24x")
"""Of a 64-bit ELF file: where its sections are described, how long each description is, how many there are, and which
one is of their names; of a section its name, its kind, where it is and how long it is."""


def code_bytes(cubin: bytes) -> dict[str, int]:
    """Size of the code of each function of a cubin: of kernels, and of what is not inlined into them.

    Raises
    ------
    ToolError
        It is no ELF file of 64 bits.
    """
    if cubin[:5] != b"\x7fELF\x02":
        raise ToolError(
            f"a cubin begins with {cubin[:5]!r}, and not as an ELF file of 64 bits does; build it with nvcc"
        )
    start, each, count, of_names = _HEADER.unpack_from(cubin)
    sections = [_SECTION.unpack_from(cubin, start + i * each) for i in range(count)]
    names = sections[of_names][2]

    def name(offset: int) -> str:
        return cubin[names + offset : cubin.index(b"\0", names + offset)].decode()

    found = ((name(offset), size) for offset, _, _, size in sections)
    return {label.removeprefix(".text."): size for label, size in found if label.startswith(".text.")}
