"""Which modules are kept, and what many threads get."""

import threading

import pytest

from tvm_rammer.errors import CodegenError
from tvm_rammer.open_shapes.specialisations import Specialisations, stock_of

KEYS = [((n,),) for n in range(1, 6)]


class Fake:
    """Makes names in the place of modules, and notes what it was asked for."""

    def __init__(self, kept=(), refused=()):
        self.kept, self.refused = set(kept), refused
        self.made, self.gate = [], threading.Event()
        self.gate.set()

    def cached(self, shapes, length):
        return f"kept {shapes['x']}" if shapes["x"] in self.kept else None

    def compile(self, shapes, length):
        assert self.gate.wait(60)
        self.made.append(shapes["x"])
        if shapes["x"] in self.refused:
            raise CodegenError("cannot")
        return f"made {shapes['x']}"

    def stock(self):
        raise CodegenError("no stock")


def shapes_of(key):
    return {"x": key[0]}


def test_those_that_were_used_last_are_kept():
    fake = Fake()
    some = Specialisations(fake, 2)
    for key in (KEYS[0], KEYS[1], KEYS[0], KEYS[2], KEYS[0]):
        assert (some.find(key) or some.make(key, shapes_of(key))) == f"made {key[0]}"
    assert some.modules == ("made (3,)", "made (1,)")
    assert fake.made == [(1,), (2,), (3,)]
    assert some.find(KEYS[1]) is None


def test_what_the_cache_has_is_not_made():
    some = Specialisations(fake := Fake(kept=[(1,)]), 2)
    assert some.load(KEYS[0], shapes_of(KEYS[0])) == "kept (1,)"
    assert some.find(KEYS[0]) == "kept (1,)"
    assert some.load(KEYS[1], shapes_of(KEYS[1])) is None
    assert not fake.made


def test_each_is_made_once_for_all_threads_that_want_it():
    fake = Fake()
    fake.gate.clear()
    some = Specialisations(fake, 5)
    found = []
    workers = [
        threading.Thread(target=lambda k=key: found.append((k, some.make(k, shapes_of(k))))) for key in KEYS[:3] * 4
    ]
    for worker in workers:
        worker.start()
    fake.gate.set()
    for worker in workers:
        worker.join(60)
    assert len(found) == 12
    assert all(module == f"made {key[0]}" for key, module in found)
    assert sorted(fake.made) == [(1,), (2,), (3,)]


def test_an_error_reaches_all_that_wait_and_is_tried_again():
    fake = Fake(refused=[(1,)])
    some = Specialisations(fake, 2)
    for _ in range(2):
        with pytest.raises(CodegenError, match="cannot"):
            some.make(KEYS[0], shapes_of(KEYS[0]))
    assert fake.made == [(1,), (1,)]


def test_another_thread_makes_them_meanwhile():
    fake = Fake(refused=[(2,)])
    fake.gate.clear()
    some = Specialisations(fake, 5)
    for key in (KEYS[0], KEYS[0], KEYS[1]):
        some.make_meanwhile(key, shapes_of(key))
    assert some.modules == ()
    assert some.load(KEYS[0], shapes_of(KEYS[0])) is None
    fake.gate.set()
    some.wait()
    assert some.modules == ("made (1,)",)
    some.make_meanwhile(KEYS[1], shapes_of(KEYS[1]))  # failed before: not tried again
    some.wait()
    assert fake.made == [(1,), (2,)]


def test_a_forked_child_forgets_what_is_in_the_making():
    fake = Fake()
    fake.gate.clear()
    some = Specialisations(fake, 5)
    some.make_meanwhile(KEYS[0], shapes_of(KEYS[0]))
    some._start()  # what a fork does in the child
    fake.gate.set()
    assert some.make(KEYS[0], shapes_of(KEYS[0])) == "made (1,)"


def test_no_stock_build_is_no_error():
    assert stock_of(Fake()) is None
