"""NonMaxSuppression as a function: of boxes that overlap, those of the highest scores."""

from dataclasses import dataclass, replace
from typing import Any

from tvm import tirx
from tvm.ir import Expr
from tvm.script import tirx as T

from ...regions.eligible import LEAVE
from ..bound_chains import OPAQUE


@dataclass(frozen=True, slots=True)
class Suppression:
    """What is kept.

    Parameters
    ----------
    batch, classes, boxes : int or tirx expression
        Sizes of the scores [batch, classes, boxes].
    most : int
        Boxes of a class and an image that are kept, at most; less may be asked for when it runs.
    """

    batch: Any
    classes: Any
    boxes: Any
    most: int

    @property
    def room(self) -> Any:
        """Rows of the result, of which the first ones are written."""
        each = min(self.most, self.boxes) if isinstance(self.boxes, int) else self.boxes
        return self.batch * self.classes * each

    def function(self) -> tirx.PrimFunc:
        """A function that finds which boxes are kept.

        Its parameters are boxes [batch, boxes, 4], scores, and three vectors of one number: how many are kept of a
        class and an image, at most; the intersection over union above which a box gives way to one of a higher score;
        what scores are above that count. Its results are rows [room, 3], and how many there are.

        The boxes of a class whose score counts are in a heap. The best one leaves it, and is kept if it overlaps none
        of those that are kept; so a class costs as much as there are boxes that count, and not as there are boxes.
        Ends of boxes are in arrays of their own: as parts of one expression they would be repeated until TVM's
        simplifier takes seconds.
        """
        names = [name for name in ("batch", "classes", "boxes") if not isinstance(getattr(self, name), int)]
        own = replace(self, **{name: tirx.Var(name, "int64") for name in names})
        batch, classes, number, room = own.batch, own.classes, own.boxes, own.room
        greatest = tirx.const(self.most, "int64")

        @T.prim_func(private=True)  # type: ignore[untyped-decorator]  # TVM's are
        def non_max_suppression(
            b: T.handle, s: T.handle, m: T.handle, o: T.handle, t: T.handle, r: T.handle, c: T.handle
        ) -> None:
            boxes = T.match_buffer(b, (batch, number, 4), "float32")
            scores = T.match_buffer(s, (batch, classes, number), "float32")
            most = T.match_buffer(m, (1,), "int64")
            overlap = T.match_buffer(o, (1,), "float32")
            least = T.match_buffer(t, (1,), "float32")
            rows = T.match_buffer(r, (room, 3), "int64")
            count = T.match_buffer(c, (1,), "int64")
            heap = T.alloc_buffer((number + 1,), "int64")
            ends = T.alloc_buffer((number + 1, 4), "float32")  # of the boxes that are kept, and of the best one
            size = T.alloc_buffer((1,), "int64")
            taken = T.alloc_buffer((1,), "int64")
            at = T.alloc_buffer((1,), "int64")
            child = T.alloc_buffer((1,), "int64")
            best = T.alloc_buffer((1,), "int64")
            goes_on = T.alloc_buffer((1,), "bool")
            shared = T.alloc_buffer((2,), "float32")
            count[0] = T.int64(0)
            for i in T.serial(batch):
                for k in T.serial(classes):
                    size[0] = T.int64(0)
                    for j in T.serial(number):
                        if scores[i, k, j] > least[0]:
                            at[0] = size[0]
                            heap[size[0]] = j
                            size[0] = size[0] + T.int64(1)
                            goes_on[0] = at[0] > T.int64(0)
                            while goes_on[0]:
                                goes_on[0] = False
                                if _is_before(scores, i, k, j, heap[(at[0] - T.int64(1)) // T.int64(2)]):
                                    heap[at[0]] = heap[(at[0] - T.int64(1)) // T.int64(2)]
                                    at[0] = (at[0] - T.int64(1)) // T.int64(2)
                                    heap[at[0]] = j
                                    goes_on[0] = at[0] > T.int64(0)
                    taken[0] = T.int64(0)
                    while size[0] > T.int64(0) and taken[0] < T.min(most[0], greatest):
                        best[0] = heap[0]
                        size[0] = size[0] - T.int64(1)
                        heap[0] = heap[size[0]]
                        at[0] = T.int64(0)
                        goes_on[0] = size[0] > T.int64(1)
                        while goes_on[0]:
                            goes_on[0] = False
                            child[0] = at[0] * T.int64(2) + T.int64(1)
                            if child[0] + T.int64(1) < size[0]:  # noqa: SIM102  # both sides of "and" are computed
                                if _is_before(scores, i, k, heap[child[0] + T.int64(1)], heap[child[0]]):
                                    child[0] = child[0] + T.int64(1)
                            if child[0] < size[0]:  # noqa: SIM102
                                if _is_before(scores, i, k, heap[child[0]], heap[at[0]]):
                                    heap[size[0]] = heap[at[0]]
                                    heap[at[0]] = heap[child[0]]
                                    heap[child[0]] = heap[size[0]]
                                    at[0] = child[0]
                                    goes_on[0] = True
                        for d in T.unroll(2):
                            ends[taken[0], d] = T.min(boxes[i, best[0], d], boxes[i, best[0], d + 2])
                            ends[taken[0], d + 2] = T.max(boxes[i, best[0], d], boxes[i, best[0], d + 2])
                        goes_on[0] = True
                        at[0] = T.int64(0)
                        while goes_on[0] and at[0] < taken[0]:
                            for d in T.unroll(2):
                                shared[d] = T.min(ends[taken[0], d + 2], ends[at[0], d + 2]) - T.max(
                                    ends[taken[0], d], ends[at[0], d]
                                )
                            goes_on[0] = _is_apart(ends, taken[0], at[0], shared, overlap[0])
                            at[0] = at[0] + T.int64(1)
                        if goes_on[0]:
                            taken[0] = taken[0] + T.int64(1)
                            rows[count[0], 0] = T.Cast("int64", i)
                            rows[count[0], 1] = T.Cast("int64", k)
                            rows[count[0], 2] = best[0]
                            count[0] = count[0] + T.int64(1)

        reason = "how many boxes there are, the data decide"
        return non_max_suppression.with_attr({"op_pattern": OPAQUE, "tirx.is_scheduled": True, LEAVE: reason})


def _is_before(scores: tirx.Var, image: Expr, kind: Expr, a: Expr, b: Expr) -> Expr:
    """Whether a box is kept before another: its score is higher, or it comes first."""
    of_a, of_b = scores[image, kind, a], scores[image, kind, b]
    return tirx.any(of_a > of_b, tirx.all(tirx.EQ(of_a, of_b), a < b))


def _is_apart(ends: tirx.Var, a: Expr, b: Expr, shared: tirx.Var, most: Expr) -> Expr:
    """Whether what two boxes share, by its sides, is no larger part of their union.

    A choice and no negation: of that TVM would make opposite comparisons, which are as false of NaN.
    """
    areas = [(ends[box, 2] - ends[box, 0]) * (ends[box, 3] - ends[box, 1]) for box in (a, b)]
    none, both = tirx.const(0, "float32"), shared[0] * shared[1]
    union = areas[0] + areas[1] - both
    sizes = (shared[0], shared[1], *areas, union)
    overlap = tirx.all(*(size > none for size in sizes), both / union > most)
    return tirx.Select(overlap, tirx.const(False, "bool"), tirx.const(True, "bool"))
