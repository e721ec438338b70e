"""Compiler flags for a CPU, from archspec's table."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hpcgen.errors import InputError, Problem, did_you_mean


def _target(name: str) -> Any:
    import archspec.cpu

    if name not in archspec.cpu.TARGETS:
        raise InputError(
            Problem(
                f"{name!r} is no CPU that archspec knows",
                remedy=did_you_mean(name, list(archspec.cpu.TARGETS)),
            )
        )
    return archspec.cpu.TARGETS[name]


@lru_cache(maxsize=256)
def compiler_flags(target: str, compiler: str, version: str) -> tuple[str, ...]:
    """Flags such as ``-march=skylake-avx512 -mtune=skylake-avx512``.

    Parameters
    ----------
    target: archspec's name of the CPU.
    compiler, version: the compiler in the builder, such as ``gcc`` and ``12.2.0``.

    A CPU that the compiler does not know yet gets the flags of its nearest ancestor that it does know.
    """
    import archspec.cpu

    node = _target(target)
    for candidate in (node, *node.ancestors):
        try:
            flags = candidate.optimization_flags(compiler, version)
        except archspec.cpu.UnsupportedMicroarchitecture:
            continue
        if flags:
            return tuple(flags.split())
    return ()


@lru_cache(maxsize=256)
def has_feature(target: str, feature: str) -> bool:
    """Whether a CPU has an instruction set extension such as ``avx512f``."""
    return feature in _target(target)


def features_of(target: str) -> frozenset[str]:
    """The features that a CPU's programs may use, by the names that Linux has for them in /proc/cpuinfo."""
    # archspec itself adds sse3 to what it reads there, where Linux says pni (Prescott new instructions).
    return frozenset("pni" if name == "sse3" else name for name in _target(target).features)
