"""Laws of scaling: the time of fixed work on a number of nodes as a sum of terms, none of them negative.

The work is fixed, such as an epoch, and the share of a rank in one step is not (weak scaling), so an epoch on twice as
many nodes has half as many steps. Communication between nodes then costs, of each step, its logarithm (a tree) or
what a ring moves. What ranks of one node say to each other is in the first term, since it does not depend on nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log2
from types import MappingProxyType

from hpcgen.core.errors import InputError
from hpcgen.core.model.fields import Record

WORK, FLOOR, TREE, RING, STEP = "work", "floor", "tree", "ring", "fixed steps"
TERMS: Mapping[str, Callable[[float, float], float]] = MappingProxyType(
    {
        # What is divided among the nodes.
        WORK: lambda nodes, megabytes: 1 / nodes,
        # What is not (Amdahl).
        FLOOR: lambda nodes, megabytes: 1.0,
        # A tree's depth, once a step, and there are 1 / nodes as many steps.
        TREE: lambda nodes, megabytes: megabytes * log2(nodes) / nodes,
        # A ring moves (nodes - 1) / nodes of the message twice over each link.
        RING: lambda nodes, megabytes: megabytes * (nodes - 1) / nodes**2,
        # A tree's depth where there are as many steps on any number of nodes (strong scaling).
        STEP: lambda nodes, megabytes: megabytes * log2(nodes),
    }
)
"""What a term is worth on a number of nodes, which exchange so many megabytes in a step."""
FORMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ideal": (WORK,),
        "amdahl": (WORK, FLOOR),
        "tree": (WORK, TREE),
        "ring": (WORK, RING),
        "fixed steps": (WORK, STEP),
        "tree and floor": (WORK, TREE, FLOOR),
        "ring and floor": (WORK, RING, FLOOR),
    }
)
"""The laws that are tried, those of fewer terms first."""
_NEAR = 1e-9


class Law(Record, frozen=True, kw_only=True):
    """``seconds``: each term's factor; ``megabytes``: what a rank sends in a step, 1 where that is not known.

    ``first``: the number of nodes whose efficiency is 1.
    """

    seconds: dict[str, float]
    megabytes: float = 1.0
    first: int = 1

    @classmethod
    def amdahl(cls, parallel: float) -> Law:
        """Amdahl's law in units of the time on one node.

        Parameters
        ----------
        parallel: the share of the work that is divided among nodes, from 0 to 1.

        Raises
        ------
        InputError: it is no share.
        """
        if not 0 <= parallel <= 1:
            raise InputError(f"the parallel share is {parallel:g}", expected="a number from 0 to 1")
        return cls(seconds={WORK: parallel, FLOOR: 1 - parallel})

    def time(self, nodes: float, megabytes: float | None = None) -> float:
        """Seconds on so many nodes."""
        size = self.megabytes if megabytes is None else megabytes
        return sum(factor * TERMS[term](nodes, size) for term, factor in self.seconds.items())

    def efficiency(self, nodes: int) -> float:
        """The share of the nodes' time that does what ``first`` nodes would do in the same time of all nodes."""
        return self.time(self.first) * self.first / (self.time(nodes) * nodes)

    def most_nodes(self, efficiency: float, limit: int) -> int:
        """The largest number of nodes, at most ``limit``, whose efficiency is not below the one that is wanted.

        Raises
        ------
        InputError: the efficiency is not above 0 and at most 1, or even ``first`` nodes are more than the limit.
        """
        if not 0 < efficiency <= 1:
            raise InputError(f"an efficiency of {efficiency:g} is wanted", expected="more than 0, at most 1")
        if limit < self.first:
            raise InputError(f"nothing is known of fewer than {self.first} nodes", expected=f"a limit >= {self.first}")
        # No term is negative, so that efficiency never rises with nodes: one that is enough has only such below it.
        low, high = self.first, limit
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._enough(middle, efficiency) else (low, middle - 1)
        return low

    def _enough(self, nodes: int, efficiency: float) -> bool:
        # The last digits of floats must not cost a node.
        return self.efficiency(nodes) >= efficiency * (1 - _NEAR)
