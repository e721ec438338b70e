"""The SAT solver Glucose 4.1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Solver:
    """Clauses of non-zero integers; a negative one is the variable's opposite.

    Of python-sat its compiled module alone is used: its package takes ten times as long to import.
    """

    def __init__(self) -> None:
        import pysolvers

        self._library: Any = pysolvers
        self._solver = pysolvers.glucose41_new()

    def __del__(self) -> None:
        self._library.glucose41_del(self._solver)

    def add_clause(self, clause: Iterable[int]) -> None:
        """At least one of these holds."""
        self._library.glucose41_add_cl(self._solver, list(clause))

    def solve(self, assumptions: Iterable[int]) -> bool:
        """Whether all clauses can hold together with the assumptions."""
        # The last argument: not in the main thread, so that it leaves Ctrl-C alone.
        return bool(self._library.glucose41_solve(self._solver, list(assumptions), 0))

    def model(self) -> list[int]:
        """The true variables, after ``solve`` succeeded."""
        return list(self._library.glucose41_model(self._solver) or ())

    def core(self) -> list[int]:
        """Assumptions that cannot hold together, after ``solve`` found that they cannot."""
        return list(self._library.glucose41_core(self._solver) or ())
