"""Device code whose loads are under way side by side: the last passes on the way to CUDA text.

    sums      a loop's sum is in a register, not in memory
    jam       iterations of an outer loop share its inner loops
    stages    what threads of a warp hand to each other, where TVM takes them to be in step
    barriers  none that TVM adds beside those of code that has all it needs
    batches   the loads of several iterations of a loop come before their stores
    choices   no load is behind a branch
    vectors   vectors of conditions, of which TVM would print another type
    bodies    what a plain loop stores
    passes    all of them as a TVM pass, after all that simplify: TVM would undo them

In: device functions as TVM has lowered them. Out: functions that compute the same.
"""

from .barriers import own_barrier, without_added_barriers
from .batches import MAX_BATCH
from .passes import overlapping
from .stages import with_barriers_between_stages

__all__ = ["MAX_BATCH", "overlapping", "own_barrier", "with_barriers_between_stages", "without_added_barriers"]
