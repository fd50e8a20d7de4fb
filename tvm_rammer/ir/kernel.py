"""RKernels, and what their rTasks touch."""

from dataclasses import dataclass, field

SLICE_ALIGNMENT = 16
"""Slices that a vEU keeps begin at multiples of so many bytes, and are as long: the widest load of a thread."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """Which box of a buffer each rTask of a kernel touches: affine in the digits of the rTask's index.

    The index is written in mixed radix, most significant digit first. In dimension `d` of the buffer the box of an
    rTask with the digits `x` covers, as far as the buffer goes,

        start = offsets[d] + sum(coefficients[d][i] * x[i])    to    start + extents[d]   (exclusive).

    Some rTasks touch what is a box only where neighbouring dimensions are seen as one, as a number of pixels of
    an image is: then `view` says how the buffer is seen.

    Parameters
    ----------
    radices : tuple of int
        Their product is the number of rTasks.
    offsets : tuple of int
    coefficients : tuple of tuple of int
        For each dimension one for each digit.
    extents : tuple of int
    view : tuple of int
        A shape of the buffer's size whose dimensions the boxes have; empty for the buffer's own.
    """

    radices: tuple[int, ...]
    offsets: tuple[int, ...]
    coefficients: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]
    view: tuple[int, ...] = ()

    def box(self, rtask: int) -> tuple[tuple[int, int], ...]:
        """For each dimension the first index that an rTask touches and the one past the last, not clipped."""
        digits = []
        for radix in reversed(self.radices):
            rtask, digit = divmod(rtask, radix)
            digits.append(digit)
        digits.reverse()
        starts = (
            offset + sum(c * x for c, x in zip(row, digits, strict=True))
            for offset, row in zip(self.offsets, self.coefficients, strict=True)
        )
        return tuple((start, start + extent) for start, extent in zip(starts, self.extents, strict=True))


@dataclass(frozen=True, slots=True)
class Slices:
    """A constant of which each rTask reads a slice of its own: as many bytes, one after another in the rTasks' order.

    A vEU with memory of its own may keep the slices of its rTasks there over all steps of a loop.

    Parameters
    ----------
    parameter : int
        Which of the function's parameters it is.
    nbytes : int
        Of a slice, as it is packed.
    factor : float
        By what the time of an rTask is multiplied that finds its slice in its vEU's own memory.
    """

    parameter: int
    nbytes: int
    factor: float


@dataclass(frozen=True, slots=True)
class RKernel:
    """One implementation of an operator's function: a tiling (Rammer, 3.3).

    Parameters
    ----------
    name : str
        Unique; also the name of the rTask's device function.
    function : str
        The function that it implements (`ROperator.function`).
    num_rtasks : int
        How many independent rTasks the tiling has.
    rtask_us : float
        Time of one rTask alone on a vEU, in microseconds.
    threads : int
        Threads of one rTask (1 on a CPU).
    shared_bytes : int
        Scratch of one rTask: shared memory on a GPU, private memory of a worker on a CPU.
    registers : int or None
        Registers of one thread; None before it is compiled.
    measured : bool
        Whether `rtask_us` was measured; otherwise the cost model predicts it.
    footprints : tuple of (Footprint or None)
        What an rTask touches of each buffer, in the order of the function's parameters; None for all of it.
        Empty where nothing is known.
    bytes_per_rtask : float
        Bytes that one rTask moves from or to beyond its unit; 0 where they are not known.
    slices : Slices or None
        Of a constant whose slices a vEU may keep; None where there is none.
    busy_us : float or None
        How much longer an rTask beside this one on a unit takes, in microseconds; None for all of its time.
    """

    name: str
    function: str
    num_rtasks: int
    rtask_us: float
    threads: int = 1
    shared_bytes: int = 0
    registers: int | None = None
    measured: bool = False
    footprints: tuple[Footprint | None, ...] = field(default=(), compare=False, repr=False)
    bytes_per_rtask: float = 0.0
    slices: Slices | None = None
    busy_us: float | None = None

    @property
    def work_us(self) -> float:
        """Time x number of rTasks: what the resource-efficient choice keeps small (Rammer, 4)."""
        return self.rtask_us * self.num_rtasks
