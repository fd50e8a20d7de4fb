"""The code of a product with few rows: every thread loads a batch of weights in vectors, then multiplies them.

load what the results are computed of beside the sums, such as a bias
for each batch of a team's terms:
    load the weights, and what the elements of the rows are computed of
    multiply and add: a thread has four columns
add up the sums of the teams, by shuffles within a warp, then in shared memory
store
"""

from dataclasses import dataclass
from functools import cached_property, partial

from tvm import tirx
from tvm.ir import Expr, TensorLoad
from tvm.tirx.op import tvm_warp_shuffle_xor

from .....kernel import Pack
from ....analysis.variables import substituted
from ...cost import WARP
from ...threads import barrier, block_loop, number, sequence, serial, thread_loop, unrolled, vector
from ..elements import has_choices, loads_of, replaced
from ..parts import Product, read_product
from .tile import VECTOR, GemvTile
from .weights import pack_of


def gemv_code(func: tirx.PrimFunc, weights: int, tile: GemvTile) -> tuple[tirx.PrimFunc, dict[int, Pack]]:
    """Generate the kernel of a tiling, and say how it wants its weights.

    Parameters
    ----------
    func : tirx.PrimFunc
        A function that has a product, not scheduled.
    weights : int
        The parameter that is the weights.
    tile : GemvTile

    Raises
    ------
    ScheduleError, AssertionError, ValueError
        What surrounds the product cannot be inlined.
    """
    product = read_product(func)
    pack = pack_of(product, tile)
    params = list(func.params)
    packed = params[weights] = tirx.decl_buffer(pack.shape, "float32", params[weights].name)
    body = Writer(product, tile, packed).kernel()
    return tirx.PrimFunc(params, body).with_attr("tirx.noalias", True).with_attr("s_tir", True), {weights: pack}


@dataclass(frozen=True)
class Writer:
    """Generates the loops of one tiling.

    Parameters
    ----------
    product : Product
    tile : GemvTile
    packed : Var
        The packed weights, of shape [..., rTasks, terms, columns].
    """

    product: Product
    tile: GemvTile
    packed: tirx.Var

    @property
    def rows(self) -> int:
        """Rows of the product."""
        return self.product.i.extent

    @cached_property
    def batch(self) -> int:
        """Terms of a thread whose loads are under way together."""
        return self.tile.batch(self.product.channels.extent, self.rows)

    @cached_property
    def batches(self) -> int:
        """How often it loads so many."""
        return -(-self.product.channels.extent // (self.batch * self.tile.teams))

    @cached_property
    def loads(self) -> tuple[TensorLoad, ...]:
        """What an element of a row is computed from."""
        return tuple(loads_of(self.product.operands[0].value))

    def kernel(self) -> tirx.Stmt:
        """The loop over rTasks."""
        rtasks = -(-self.product.j.extent // self.tile.columns)
        return block_loop(rtasks, lambda r: thread_loop(self.tile.threads, lambda t: self.thread(r, t)))

    def thread(self, rtask: Expr, thread: Expr) -> tirx.Stmt:
        """What a thread does."""
        tile, rows = self.tile, self.rows
        team, lane = tirx.floordiv(thread, number(tile.lanes)), tirx.floormod(thread, number(tile.lanes))
        sums = tirx.decl_buffer((rows * VECTOR,), "float32", "sums", scope="local")
        ahead = tirx.decl_buffer((self.batch * VECTOR,), "float32", "weights", scope="local")
        parts = [
            tirx.decl_buffer((self.batch * rows,), str(load.ty.dtype), "elements", scope="local") for load in self.loads
        ]
        early = self._early(rtask, thread)
        kept = tirx.decl_buffer((max(1, len(early)),), "float32", "kept", scope="local")
        size = tile.parts * rows * tile.columns + len(early) * tile.threads
        shared = tirx.decl_buffer((size,), "float32", "parts", scope="shared")

        def step(batch: Expr) -> tirx.Stmt:
            def term(n: Expr) -> Expr:
                return (batch * self.batch + n) * tile.teams + team

            def weights(n: Expr) -> tirx.Stmt:
                zeros = [number(0)] * (len(self.packed.shape) - 3)
                column = lane * VECTOR
                return vector(
                    VECTOR,
                    lambda e: tirx.BufferStore(
                        ahead, self.packed[(*zeros, rtask, term(n), column + e)], [n * VECTOR + e]
                    ),
                )

            def element(which: int, n: Expr, row: Expr) -> tirx.Stmt:
                load, places = self.loads[which], self._at(tirx.min(term(n), number(self._terms - 1)), row)
                indices = tuple(substituted(index, places) for index in load.indices)
                return tirx.BufferStore(parts[which], load.source[indices], [n * rows + row])

            def elements(which: int, n: Expr) -> tirx.Stmt:
                return unrolled(rows, partial(element, which, n))

            def multiply(n: Expr, row: Expr, e: Expr) -> tirx.Stmt:
                at = row * VECTOR + e
                value = self._element(parts, term(n), n * rows + row, row)
                return tirx.BufferStore(sums, self.product.add(sums[at], value, ahead[n * VECTOR + e]), [at])

            return sequence([
                unrolled(self.batch, weights),
                *(unrolled(self.batch, partial(elements, which)) for which in range(len(self.loads))),
                unrolled(
                    self.batch,
                    lambda n: unrolled(rows, lambda row: unrolled(VECTOR, lambda e: multiply(n, row, e))),
                ),
            ])  # fmt: skip

        return sequence([
            *(tirx.AllocBuffer(b) for b in (sums, ahead, *parts, shared, *([kept] if early else []))),
            *(tirx.BufferStore(kept, load, [n]) for n, load in enumerate(early)),
            unrolled(rows * VECTOR, lambda n: tirx.BufferStore(sums, tirx.const(0, "float32"), [n])),
            serial(self.batches, step),
            *self._shuffled(sums),
            *(tirx.BufferStore(shared, kept[n], [self._early_place(n, thread)]) for n in range(len(early))),
            self._finish(sums, shared, rtask, thread),
        ])  # fmt: skip

    @property
    def _terms(self) -> int:
        return self.product.channels.extent

    def _at(self, term: Expr, row: Expr) -> dict[tirx.Var, Expr]:
        product = self.product
        zero = number(0)
        return product.s.at(zero) | product.taps.at(zero) | product.channels.at(term) | product.i.at(row)

    def _element(self, parts: list[tirx.Var], term: Expr, at: Expr, row: Expr) -> Expr:
        """An element of a row; past the last term the weights are zeros, and so is it: its own might be infinite."""
        known = {load: registers[at] for load, registers in zip(self.loads, parts, strict=True)}
        value = substituted(replaced(self.product.operands[0].value, known), self._at(term, row))
        if self._terms % (self.batch * self.tile.teams) == 0:
            return value
        return tirx.if_then_else(term < number(self._terms), value, tirx.const(0, "float32"))

    def _shuffled(self, sums: tirx.Var) -> list[tirx.Stmt]:
        """Add up the sums of the teams of a warp: each thread has the whole."""
        made = []
        mask = tirx.const(0xFFFFFFFF, "uint32")
        distance = self.tile.lanes
        while distance < WARP:

            def add(n: Expr, distance: int = distance) -> tirx.Stmt:
                other = tvm_warp_shuffle_xor(mask, sums[n], distance, WARP, WARP)
                return tirx.BufferStore(sums, sums[n] + other, [n])

            made.append(unrolled(self.rows * VECTOR, add))
            distance *= 2
        return made

    def _places(self, rtask: Expr, at: Expr) -> tuple[dict[tirx.Var, Expr], Expr]:
        """The product's axes at a result of an rTask, and its column, which may be past the last."""
        product, columns = self.product, number(self.tile.columns)
        column = rtask * columns + tirx.floormod(at, columns)
        return product.s.at(number(0)) | product.i.at(tirx.floordiv(at, columns)) | product.j.at(column), column

    def _early(self, rtask: Expr, thread: Expr) -> list[Expr]:
        """What a result is computed of beside its sum, for the result that the thread will store.

        It is loaded with the weights: after the sums it would be one more trip to memory.
        """
        results = self.rows * self.tile.columns
        if results > self.tile.threads:
            return []
        at = tirx.floormod(thread, number(results))
        row, column = tirx.floordiv(at, number(self.tile.columns)), self._places(rtask, at)[1]
        last = tirx.min(column, number(self.product.j.extent - 1))
        places = self.product.s.at(number(0)) | self.product.i.at(row) | self.product.j.at(last)
        return [load for load in self._loads_of_store(places) if str(load.ty.dtype) == "float32"]

    def _loads_of_store(self, places: dict[tirx.Var, Expr]) -> list[TensorLoad]:
        value = self.product.store(places, tirx.const(0, "float32")).value
        return [] if has_choices(value) else loads_of(value)

    def _early_place(self, n: int, thread: Expr) -> Expr:
        """Where in shared memory it waits: a load that is used in a branch only would be moved there."""
        return self.tile.parts * self.rows * self.tile.columns + n * self.tile.threads + thread

    def _finish(self, sums: tirx.Var, shared: tirx.Var, rtask: Expr, thread: Expr) -> tirx.Stmt:
        """Add up what is left in shared memory, and store."""
        tile, rows = self.tile, self.rows
        results = rows * tile.columns
        lane = tirx.floormod(thread, number(tile.lanes))
        part = tirx.floordiv(thread, number(max(WARP, tile.lanes)))

        def keep(row: Expr) -> tirx.Stmt:
            first = part * results + row * tile.columns + lane * VECTOR
            return vector(VECTOR, lambda e: tirx.BufferStore(shared, sums[row * VECTOR + e], [first + e]))

        def total(n: Expr) -> tirx.Stmt:
            at = n * tile.threads + thread
            value = shared[at]
            for other in range(1, tile.parts):
                value = value + shared[at + other * results]
            places, column = self._places(rtask, at)
            store = self.product.store(places, sums[0])
            if results <= tile.threads:
                loads = [load for load in self._loads_of_store(places) if str(load.ty.dtype) == "float32"]
                known = {load: shared[self._early_place(i, thread)] for i, load in enumerate(loads)}
                store = tirx.BufferStore(store.buffer, replaced(store.value, known), store.indices)
            stored = tirx.BufferStore(sums, value, [0]), store
            guards = []
            if results % tile.threads:
                guards.append(at < number(results))
            if self.product.j.extent % tile.columns:
                guards.append(column < number(self.product.j.extent))
            whole = sequence(stored)
            for guard in guards:
                whole = tirx.IfThenElse(guard, whole, None)
            return whole

        kept = unrolled(rows, keep)
        if tile.lanes < WARP:
            kept = tirx.IfThenElse(tirx.floormod(thread, number(WARP)) < number(tile.lanes), kept, None)
        return sequence([kept, barrier(), unrolled(-(-results // tile.threads), total)])
