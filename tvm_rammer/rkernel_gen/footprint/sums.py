"""The normal form of an index expression: integer multiples of atoms, and a constant."""

from typing import NamedTuple


class Atom(NamedTuple):
    """A term of an index that is no sum: a variable, or an operation on sums."""

    kind: str
    args: tuple[object, ...]


Terms = frozenset[tuple[Atom, int]]


class Sum(NamedTuple):
    """Integer multiples of atoms, and a constant."""

    terms: Terms
    constant: int

    def plus(self, other: "Sum", times: int = 1) -> "Sum":
        """`self + times * other`."""
        terms = dict(self.terms)
        for atom, factor in other.terms:
            terms[atom] = terms.get(atom, 0) + times * factor
        return Sum(frozenset((a, f) for a, f in terms.items() if f), self.constant + times * other.constant)

    def recombined(self) -> "Sum":
        """The same value, with each quotient and remainder of one division put together again."""
        for atom, factor in self.terms:
            if atom.kind == "remainder":
                dividend, by = atom.args
                quotient = Atom("quotient", atom.args)
                if isinstance(dividend, Sum) and isinstance(by, int) and (quotient, factor * by) in self.terms:
                    rest = Sum(self.terms - {(atom, factor), (quotient, factor * by)}, self.constant)
                    return rest.plus(dividend, factor).recombined()
        return self

    def is_divided(self) -> bool:
        """Whether there are quotients, remainders or products of variables in it."""
        return any(atom.kind in ("quotient", "remainder", "product") for atom, _ in self.terms)


ZERO = Sum(frozenset(), 0)


def atom_sum(kind: str, *args: object) -> Sum:
    """An atom as a sum."""
    return Sum(frozenset([(Atom(kind, args), 1)]), 0)


def product(a: Sum, b: Sum) -> Sum:
    """An atom, unless one of them is a constant."""
    if not a.terms:
        return ZERO.plus(b, a.constant)
    return ZERO.plus(a, b.constant) if not b.terms else atom_sum("product", a, b)
