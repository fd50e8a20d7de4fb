"""Arrays of the host between pages that nobody may touch: who reads outside of one is told, whatever becomes of it."""

import ctypes
import mmap

import numpy as np

VECTOR = 16
"""Bytes of the longest vector of a kernel: an array begins at a multiple of it."""

_PROT_NONE = 0
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def bytes_of(array: np.ndarray) -> np.ndarray:
    """An array's elements in their order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


class Fenced:
    """A copy of an array in pages of its own.

    Parameters
    ----------
    array : numpy.ndarray
    at_end : bool
        Whether the page behind it begins where it ends, or else the page ahead ends where it begins.
    """

    def __init__(self, array: np.ndarray, *, at_end: bool) -> None:
        page = mmap.PAGESIZE
        size = -(-array.nbytes // page) * page
        self._pages = np.frombuffer(mmap.mmap(-1, size + 2 * page), np.uint8)
        first = self._pages.ctypes.data
        for fence in (first, first + page + size):
            if _LIBC.mprotect(fence, page, _PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")
        begin = page + ((size - array.nbytes) // VECTOR * VECTOR if at_end else 0)
        self.address = first + begin
        self._whole = self._pages[page : page + size]
        self._whole[begin - page :][: array.nbytes] = bytes_of(array)
        self._before = self._whole.copy()

    def is_as_it_was(self) -> bool:
        """Whether nobody wrote to it."""
        return np.array_equal(self._whole, self._before)
