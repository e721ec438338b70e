"""Requirements and Pythons of wheels whose versions are known: ``wheels/requires.json`` of a collection."""

from __future__ import annotations

from typing import Annotated

from hpcgen.core.model.fields import Record, Text, matching

Minor = Annotated[str, matching(r"^3\.[0-9]{1,2}$(?!\n)", "a minor version of Python 3", "3.12")]
Bounds = Annotated[
    str,
    matching(
        r"^([<>]=[0-9]+([.][0-9]+)*([.]post[0-9]+)?(,(?!$)|$))*$(?!\n)", "the oldest and newest release", ">=1.0,<=2.5"
    ),
]


class WheelFacts(Record, frozen=True):
    """Facts of wheels' own metadata, and of their names in the package index.

    ``needs``: ``Requires-Dist`` by ``name==version``, names in their normal form, with markers, without those of
    extras. None: there is no wheel of that version, so that nobody can tell. ``pythons``: of packages with compiled
    parts, by architecture and Python (``3.12``), the range of releases that have a wheel; a Python for which no release
    has one is missing.
    """

    needs: dict[Text, list[Text] | None] = {}
    pythons: dict[Text, dict[Text, dict[Minor, Bounds]]] = {}

    def beside(self, other: WheelFacts) -> WheelFacts:
        """Both; of what both know, this one's."""
        return WheelFacts(needs={**other.needs, **self.needs}, pythons={**other.pythons, **self.pythons})

    def newest_python(self) -> tuple[int, ...]:
        """The newest Python that anything is known of."""
        minors = (
            minor for by_architecture in self.pythons.values() for each in by_architecture.values() for minor in each
        )
        return max((tuple(map(int, minor.split("."))) for minor in minors), default=())
