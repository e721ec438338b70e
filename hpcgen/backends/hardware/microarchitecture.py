"""Compiler flags for a CPU, from archspec's table, and which of its features compiled code really uses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from hpcgen.core.errors import InputError, did_you_mean
from hpcgen.core.support.partial_packages import module_alone

# Features, by Linux's names, whose instructions compilers choose by themselves once -march allows them. Others serve
# the operating system and programs that ask the CPU first, by built-in functions (rdrand, rdseed, clflushopt, clwb,
# clzero, xsave*, fsgsbase, pku, rdpid, adx, waitpkg, movdir*, sha*, vaes, vpclmulqdq, amx_*, avx512pf,
# avx512_vp2intersect; on ARM dcpop, sb, ssbs, rng, jscvt, flagm, sme, paca, bti), and hypervisors like to hide these.
# Not verified in GCC's machine descriptions (gcc/config/*/*.md) nor in LLVM's: the division rests on what each
# instruction does. GCC's i386.opt does not decide it: its texts say "code generation" of rdrnd and pku as of avx2.
# Where it was in doubt a feature is asked for: gfni, pclmulqdq, pmull, crc32, sha3; and aes, which sources take where
# the compiler's macro says that it is there. POWER has no features in archspec.
_EMITTED = {
    "x86_64": "mmx sse sse2 pni ssse3 sse4_1 sse4_2 sse4a 3dnow 3dnowext avx avx2 fma fma4 xop f16c "
    "avx512f avx512cd avx512dq avx512bw avx512vl avx512er avx512ifma avx512vbmi avx512_vbmi2 avx512_vnni "
    "avx512_bitalg avx512_vpopcntdq avx512_bf16 avx512_fp16 avx_vnni avx_vnni_int8 avx_vnni_int16 avx_ifma "
    "avx_ne_convert abm bmi1 bmi2 tbm popcnt movbe cx16 lahf_lm gfni pclmulqdq aes",
    "aarch64": "fp asimd fphp asimdhp asimdrdm asimddp asimdfhm fcma bf16 i8mm sha3 faminmax sve sve2 svebf16 svei8mm "
    "atomics lrcpc ilrcpc uscat crc32 pmull aes",
}


def _archspec() -> Any:
    return module_alone("archspec.cpu.microarchitecture")


def _target(name: str) -> Any:
    known = _archspec().TARGETS
    if name not in known:
        raise InputError(f"{name!r} is not a CPU that archspec knows", remedy=did_you_mean(name, list(known)))
    return known[name]


@lru_cache(maxsize=256)
def compiler_flags(target: str, compiler: str, version: str) -> tuple[str, ...]:
    """Flags such as ``-march=skylake-avx512 -mtune=skylake-avx512``.

    ``target``: archspec's name of the CPU. ``compiler``, ``version``: the compiler in the builder, such as ``gcc`` and
    ``12.2.0``.

    A CPU that the compiler does not know yet gets the flags of its nearest ancestor that it does know.
    """
    return _known_to(target, compiler, version)[1]


def compiled_for(target: str, compiler: str, version: str) -> str:
    """The CPU that these flags are for: the target, its nearest ancestor, or else its family."""
    return _known_to(target, compiler, version)[0]


def _known_to(target: str, compiler: str, version: str) -> tuple[str, tuple[str, ...]]:
    node = _target(target)
    for candidate in (node, *node.ancestors):
        try:
            flags = candidate.optimization_flags(compiler, version)
        except _archspec().UnsupportedMicroarchitecture:
            continue
        if flags:
            return str(candidate.name), tuple(flags.split())
    return str(node.family.name), ()


@lru_cache(maxsize=256)
def has_feature(target: str, feature: str) -> bool:
    """Whether a CPU has an instruction set extension such as ``avx512f``."""
    return feature in _target(target)


@lru_cache(maxsize=256)
def code_features(target: str) -> frozenset[str]:
    """The features that code compiled for a CPU needs, by the names that Linux has for them in /proc/cpuinfo.

    Without one of them such code ends with SIGILL. What else the CPU has, compilers do not use on their own.
    """
    cpu = _target(target)
    # archspec itself adds sse3 to what it reads there, where Linux says pni (Prescott new instructions).
    features = {"pni" if name == "sse3" else name for name in cpu.features}
    return frozenset(features.intersection(_EMITTED.get(cpu.family.name, "").split()))


def nearest(target: str, table: Mapping[str, str]) -> str:
    """What a table has for a CPU, or for the nearest of its ancestors that is there; empty if none is."""
    cpu = _target(target)
    return next((table[node.name] for node in (cpu, *cpu.ancestors) if node.name in table), "")


def vendor(target: str) -> str:
    """Who makes a CPU, as /proc/cpuinfo has it (``GenuineIntel``); ``generic`` of those that several make."""
    return str(_target(target).vendor)


def family(target: str) -> str:
    """The architecture of a CPU: ``x86_64``, ``aarch64``, ``ppc64le`` …; InputError for one that archspec lacks."""
    return str(_target(target).family.name)
