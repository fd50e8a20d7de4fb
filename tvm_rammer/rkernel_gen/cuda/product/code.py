"""The code of a product on CUDA cores: while a step of K is multiplied in shared memory, the next one is loaded.

load step 0 to registers
for each step of K:
    (barrier, if there is room for the tiles of one step only;) registers -> shared memory; barrier
    load the next step to registers
    multiply: each thread its tile of sums, each team its part of the step
sums to shared memory; add up those of the teams there
store
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tvm import tirx
from tvm.ir import Expr

from ....kernel import Pack
from ..threads import barrier, block_loop, number, sequence, serial, thread_loop, unrolled, vector
from .fetch import VECTOR, Part, cast, fetch_of
from .parts import Product, read_product
from .steps import Steps, pack_of
from .tile import MOST_UNROLLED, GemmTile


def product_code(
    writer: type["Writer"], func: tirx.PrimFunc, tile: GemmTile, weights: Collection[int]
) -> tuple[tirx.PrimFunc, dict[int, Pack]]:
    """Generate the kernel of a tiling, and say how it wants its weights.

    Parameters
    ----------
    writer : type
        Which loops.
    func : tirx.PrimFunc
        A function that has a product, not scheduled.
    tile : GemmTile
    weights : collection of int
        Parameters that are constants.

    Raises
    ------
    ScheduleError, AssertionError, ValueError
        What surrounds the product cannot be inlined, or the threads do not divide the tile.
    """
    product = read_product(func)
    packs = {i: pack for i in weights if (pack := pack_of(product, tile, func.params[i])) is not None}
    params = list(func.params)
    packed = None
    for i, pack in packs.items():
        packed = params[i] = tirx.decl_buffer(pack.shape, str(params[i].dtype), params[i].name)
    body = writer(product, tile, packed).kernel()
    return tirx.PrimFunc(params, body).with_attr("tirx.noalias", True).with_attr("s_tir", True), packs


@dataclass(frozen=True)
class Writer:
    """Generates the loops of one tiling.

    Parameters
    ----------
    product : Product
    tile : GemmTile
    packed : Buffer or None
        The packed B, of shape [taps and channels..., J]; None where it is as in the function.
    """

    product: Product
    tile: GemmTile
    packed: tirx.Var | None = None

    @cached_property
    def steps(self) -> Steps:
        """The steps of K."""
        return Steps(self.product, self.tile.k)

    @cached_property
    def grid(self) -> tuple[int, int, int]:
        """Tiles along S, I and J."""
        product, tile = self.product, self.tile
        return product.s.extent, -(-product.i.extent // tile.i), -(-product.j.extent // tile.j)

    def kernel(self) -> tirx.Stmt:
        """The loop over rTasks."""
        tile = self.tile
        batch, tiles_i, tiles_j = self.grid

        def rtask(index: Expr) -> tirx.Stmt:
            s = tirx.floordiv(index, number(tiles_i * tiles_j))
            i = tirx.floormod(tirx.floordiv(index, number(tiles_j)), number(tiles_i)) * tile.i
            j = tirx.floormod(index, number(tiles_j)) * tile.j
            return thread_loop(tile.threads, lambda thread: self.thread(s, i, j, thread))

        return block_loop(batch * tiles_i * tiles_j, rtask)

    @property
    def shared_dtype(self) -> str:
        """Of the elements in shared memory, where the sums of teams lie, too."""
        return _widest([*(operand.dtype for operand in self.product.operands), self.product.dtype])

    @property
    def sum_dtype(self) -> str:
        """Of the sums in registers."""
        return self.product.dtype

    def parts(self, shared: tirx.Var) -> tuple[Part, Part]:
        """The tiles of both operands in shared memory; where they begin along I and J is not said."""
        product, tile = self.product, self.tile
        a, b = product.operands
        first = Part(a, product.i, None, tile.i, tile.k, shared, 0, tile.padding, tile.fragments)
        second = Part(b, product.j, self.packed, tile.j, tile.k, shared, first.elements, tile.padding, tile.fragments)
        return first, second

    def thread(self, s: Expr, i: Expr, j: Expr, thread: Expr) -> tirx.Stmt:
        """What a thread does for the tile that begins at (i, j)."""
        tile = self.tile
        shared = tirx.decl_buffer((tile.shared_elements,), self.shared_dtype, "tiles", scope="shared")
        sums = tirx.decl_buffer((tile.sums,), self.sum_dtype, "sums", scope="local")
        batch = self.product.s.at(s)
        fetches = [
            fetch_of(replace(part, first=first, batch=batch), self.steps, tile.threads, thread)
            for part, first in zip(self.parts(shared), (i, j), strict=True)
        ]
        several = self.steps.count > 1

        def step(at: Expr) -> tirx.Stmt:
            following = sequence([fetch.load(at + 1) for fetch in fetches])
            has_next = at < number(self.steps.count - 1)
            buffer = tirx.floormod(at, number(tile.buffers)) * tile.step_elements
            return sequence([
                *([barrier()] if several and tile.buffers == 1 else []),
                *(fetch.stage(at, buffer) for fetch in fetches),
                barrier(),
                *([tirx.IfThenElse(has_next, following, None)] if several else []),
                self.multiply(shared, buffer, sums, thread),
            ])  # fmt: skip

        zero = unrolled(tile.sums, lambda n: tirx.BufferStore(sums, tirx.const(0, self.sum_dtype), [n]))
        return sequence([
            *(tirx.AllocBuffer(b) for b in (shared, sums, *(r for fetch in fetches for r in fetch.registers))),
            zero,
            *(fetch.load(number(0)) for fetch in fetches),
            serial(self.steps.count, step),
            self.finish(shared, sums, s, i, j, thread),
        ])  # fmt: skip

    def multiply(self, shared: tirx.Var, buffer: Expr, sums: tirx.Var, thread: Expr) -> tirx.Stmt:
        """One team's part of a step: of as many neighbours along K as there are teams, each team has one."""
        tile, product = self.tile, self.product
        slice_, ti, tj = self.split_thread(thread)
        depth = tile.k // tile.slices
        most = min(depth, MOST_UNROLLED)
        a_row, b_row = tile.rows
        parts = [
            tirx.decl_buffer((m,), operand.dtype, name, scope="local")
            for m, operand, name in zip((tile.mi, tile.mj), product.operands, "ab", strict=True)
        ]

        def read(part: tirx.Var, count: int, base: Expr, t: Expr, threads: int) -> tirx.Stmt:
            width = min(count, VECTOR)

            def element(v: Expr, e: Expr) -> tirx.Stmt:
                value = shared[base + _place(t, v * width + e, count, threads)]
                return tirx.BufferStore(part, cast(value, part), [v * width + e])

            return unrolled(count // width, lambda v: vector(width, lambda e: element(v, e)))

        def one(k: Expr) -> tirx.Stmt:
            a, b = parts
            first = buffer + tile.k * a_row
            ends = [
                (parts[0], tile.mi, buffer + k * a_row, ti, tile.i // tile.mi),
                (parts[1], tile.mj, first + k * b_row, tj, tile.j // tile.mj),
            ]

            def update(x: Expr, y: Expr) -> tirx.Stmt:
                at = x * tile.mj + y
                return tirx.BufferStore(sums, product.add(sums[at], a[x], b[y]), [at])

            return sequence(
                [
                    *(read(*end) for end in ends),
                    unrolled(tile.mi, lambda x: unrolled(tile.mj, lambda y: update(x, y))),
                ]
            )

        loops = serial(
            depth // most,
            lambda outer: unrolled(most, lambda inner: one((outer * most + inner) * tile.slices + slice_)),
        )
        return sequence([*(tirx.AllocBuffer(p) for p in parts), loops])

    def split_thread(self, thread: Expr) -> tuple[Expr, Expr, Expr]:
        """A thread's team, and its tile within the team's: neighbours in the output belong to neighbouring threads."""
        tile = self.tile
        team, rest = tirx.floordiv(thread, number(tile.team)), tirx.floormod(thread, number(tile.team))
        fast = tile.i // tile.mi if self.product.fast_i else tile.j // tile.mj
        parts = tirx.floormod(rest, number(fast)), tirx.floordiv(rest, number(fast))
        return (team, *parts) if self.product.fast_i else (team, *reversed(parts))

    def finish(self, shared: tirx.Var, sums: tirx.Var, s: Expr, i: Expr, j: Expr, thread: Expr) -> tirx.Stmt:
        """Store the sums; those of several teams are added up before."""
        tile, fast_i = self.tile, self.product.fast_i
        team, ti, tj = self.split_thread(thread)
        store = self.storer(s, i, j)

        def mine(body: Callable[[Expr, Expr], tirx.Stmt], width: int = 1) -> tirx.Stmt:
            """A thread's sums, in the order of the output, perhaps in vectors."""
            slow, fast = (tile.mj, tile.mi) if fast_i else (tile.mi, tile.mj)

            def some(n: Expr, v: Expr) -> tirx.Stmt:
                return vector(width, lambda e: body(v * width + e, n) if fast_i else body(n, v * width + e))

            return unrolled(slow, lambda n: unrolled(fast // width, lambda v: some(n, v)))

        def sum_at(x: Expr, y: Expr) -> Expr:
            return sums[x * tile.mj + y]

        def place(x: Expr, y: Expr) -> tuple[Expr, Expr]:
            return _place(ti, x, tile.mi, tile.i // tile.mi), _place(tj, y, tile.mj, tile.j // tile.mj)

        if not tile.staged:
            return mine(lambda x, y: store(*place(x, y), sum_at(x, y)))

        def keep(x: Expr, y: Expr) -> tirx.Stmt:
            at = self.place_of_sum(team, *place(x, y))
            return tirx.BufferStore(shared, cast(sum_at(x, y), shared), [at])

        neighbours = tile.mi if fast_i else tile.mj
        kept = mine(keep, min(neighbours, VECTOR))
        # Where the last step is in the second buffer the first barrier is not needed; other kernels share the code.
        return sequence([barrier(), kept, barrier(), self.add_up(shared, sums, thread, store)])

    def place_of_sum(self, team: Expr, x: Expr, y: Expr) -> Expr:
        """Where in shared memory a team's sum for a place of the tile is."""
        slow, fast = (y, x) if self.product.fast_i else (x, y)
        return team * self.tile.team_sums + slow * self.tile.sums_row(self.product.fast_i) + fast

    def add_up(
        self, shared: tirx.Var, sums: tirx.Var, thread: Expr, store: Callable[[Expr, Expr, Expr], tirx.Stmt]
    ) -> tirx.Stmt:
        """Add up the sums of all teams, each thread those of some places, and store them in the output's order."""
        tile, fast_i = self.tile, self.product.fast_i
        size = tile.i * tile.j

        def total(n: Expr) -> tirx.Stmt:
            at = n * tile.threads + thread
            fast = number(tile.i if fast_i else tile.j)
            ends = tirx.floormod(at, fast), tirx.floordiv(at, fast)
            x, y = ends if fast_i else reversed(ends)
            value = shared[self.place_of_sum(number(0), x, y)]
            for team in range(1, tile.slices):
                value = value + shared[self.place_of_sum(number(team), x, y)]
            return sequence([tirx.BufferStore(sums, cast(value, sums), [0]), store(x, y, sums[0])])

        if size < tile.threads:
            return tirx.IfThenElse(thread < number(size), total(number(0)), None)
        return unrolled(size // tile.threads, total)

    def storer(self, s: Expr, i: Expr, j: Expr) -> Callable[[Expr, Expr, Expr], tirx.Stmt]:
        """`store(x, y, sum)` stores the result at a place of the tile, if the output has it."""
        product, tile = self.product, self.tile

        def store(x: Expr, y: Expr, value: Expr) -> tirx.Stmt:
            at_i, at_j = i + x, j + y
            stmt = product.store(product.s.at(s) | product.i.at(at_i) | product.j.at(at_j), value)
            ends = [(at_i, product.i.extent, tile.i), (at_j, product.j.extent, tile.j)]
            guards = [at < extent for at, extent, size in ends if extent % size]
            for guard in guards[1:]:
                guards[0] = tirx.And(guards[0], guard)
            return tirx.IfThenElse(guards[0], stmt, None) if guards else stmt

        return store


def _place(t: Expr, x: Expr, count: int, threads: int) -> Expr:
    """Where in a tile's side element `x` of thread `t` is: vectors of neighbouring threads are side by side.

    So threads read other banks of shared memory than their neighbours.
    """
    width = min(count, VECTOR)
    return tirx.floordiv(x, width) * (width * threads) + t * width + tirx.floormod(x, width)


def _widest(dtypes: Sequence[str]) -> str:
    """The type of shared memory that holds all of these."""
    return max(dtypes, key=lambda dtype: int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz")))
