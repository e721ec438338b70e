"""Which MPICH a Cray MPICH is made from: what an image may be linked with so that Cray's takes its place."""

from __future__ import annotations

_BASES = (((9, 0), "4.1"), ((8, 1), "3.4"), ((8, 0), "3.3"), ((7, 7), "3.2"))
"""As ``MPI_Get_library_version`` says it ("ANL base")."""


def mpich_of(version: str) -> str:
    """The MPICH that a release of Cray MPICH is made from; "" where that is not known."""
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return next((base for since, base in _BASES if numbers >= since), "")
