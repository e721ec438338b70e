"""The way in which a release is had: which one the options of a block choose, and what holds for it.

One release may be several things: the index's wheel for one kind of GPU, the project's own wheel for the CPU alone, a
package of one distribution. Each way has its own options, machines, Pythons and bounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

import msgspec

from hpcgen.blocks.requirements import Candidate, Refusal, in_range
from hpcgen.core.model.reasons import Reason
from hpcgen.core.model.release import Release, ReleaseArchive, ReleaseWay

_NAME = r"[^-]+-[^-]+(-\d[^-]*)?-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl$"
"""The name of a wheel: PEP 427."""


class WheelTags(msgspec.Struct, frozen=True):
    """What the name of a wheel says.

    ``python``: the range of Pythons that install it; empty for all. ``architecture``: ``x86_64``, ``aarch64``; empty
    for all.
    """

    python: str
    architecture: str


def wheel_tags(url: str) -> WheelTags | None:
    """What the name of the wheel at an address says; None if it is not the name of a wheel for CPython on Linux."""
    found = re.fullmatch(_NAME, unquote(url.rsplit("/", 1)[-1]))
    if found is None:
        return None
    platform = found["platform"]
    linux = re.fullmatch(r"(?:many)?linux[0-9_]*?_((?:x86|ppc|aarch)[0-9a-z_]+)", platform.split(".")[0])
    if linux is None and platform != "any":
        return None
    numbers = re.match(r"cp(\d)(\d+)", found["python"])
    if numbers is None:
        return WheelTags("", linux[1] if linux else "")
    minor = f"{numbers[1]}.{numbers[2]}"
    python = f">={minor}" if found["abi"] == "abi3" else f"=={minor}.*"
    return WheelTags(python, linux[1] if linux else "")


def wheel_for(release: Release, python: str, architecture: str) -> ReleaseArchive | None:
    """The first of a release's wheels that this Python on this architecture installs."""
    for each in release.wheels:
        tags = wheel_tags(each.url)
        if tags is not None and _fits(each, architecture) and in_range(python, tags.python):
            return each
    return None


def in_use(release: Release, options: Mapping[str, object], architecture: str) -> Release:
    """A row as it is for these options on this architecture; the row itself where it has no such way.

    What its ways say is added to what the row says: both ranges hold; what a way says of the GPU comes instead.
    """
    if not release.ways:
        return release
    way = next(iter(_matching(release.ways, options, architecture)), None)
    if way is None:
        return release
    accepts = _joined(release.accepts, way.accepts)
    wheels = [each for each in way.wheels if _fits(each, architecture)]
    pythons = [tags.python for each in wheels if (tags := wheel_tags(each.url)) is not None and tags.python]
    if pythons:
        # Their names say it more closely than the row does.
        accepts["python"] = _one_of(pythons)
    return msgspec.structs.replace(
        release,
        accepts=accepts,
        on=_joined(release.on, way.on),
        host={**release.host, **way.host},
        targets=way.targets or release.targets,
        wheels=wheels,
        images={**release.images, **way.images},
        values={**release.values, **way.values},
        not_default=release.not_default or way.not_default,
        source=way.source or release.source,
        ways=[],
    )


def way_refusals(
    candidate: Candidate,
    release: Release,
    options: Mapping[str, object],
    architecture: str,
    gpu: tuple[str, str] = ("", ""),
) -> Iterator[Refusal]:
    """The architecture, the lack of a GPU, or the first option, that leaves none of a release's ways.

    ``gpu``: whose GPU the node has, if it has one, and the path of that in the profile.
    """
    left = [way for way in release.ways if _for_architecture(way, architecture)]
    if release.ways and not left:
        known = sorted({name for way in release.ways for name in _architectures(way)})
        yield _refusal(candidate, "fact", "architecture", known, architecture, "system.architecture")
        return
    if left and not any(for_gpu(way, gpu[0]) for way in left):
        # Whatever the options are.
        yield _refusal(candidate, "fact", "GPU", sorted({str(way.gpu) for way in left}), gpu[0], gpu[1])
        return
    for option in sorted({name for way in left for name in way.only}):
        known = list(dict.fromkeys(value for way in left for value in way.only.get(option, ())))
        left = [way for way in left if _allows(way, option, options)]
        if not left:
            setting = f"{candidate.block}.{option}"
            yield _refusal(candidate, "option", setting, known, str(options.get(option)), "")
            return
    if left and not for_gpu(left[0], gpu[0]):
        yield _refusal(candidate, "fact", "GPU", [str(left[0].gpu)], gpu[0], gpu[1])


def for_gpu(way: ReleaseWay, vendor: str) -> bool:
    """Whether a way is for GPUs of this vendor, or asks for none; ``vendor`` is empty where there is no GPU."""
    return way.gpu is None or way.gpu == vendor


def _refusal(candidate: Candidate, rule: str, by: str, known: Sequence[str], found: str, place: str) -> Refusal:
    reason = Reason(
        rule="fact" if rule == "fact" else "option",
        by=by,
        requires={by: " or ".join(known)},
        found=found,
        newer=candidate.version,
        place=place,
    )
    return Refusal(candidate, reason)


def _matching(ways: Sequence[ReleaseWay], options: Mapping[str, object], architecture: str) -> Iterator[ReleaseWay]:
    for way in ways:
        if _for_architecture(way, architecture) and all(_allows(way, option, options) for option in way.only):
            yield way


def _allows(way: ReleaseWay, option: str, options: Mapping[str, object]) -> bool:
    return option not in way.only or str(options.get(option)) in way.only[option]


def _for_architecture(way: ReleaseWay, architecture: str) -> bool:
    known = _architectures(way)
    return not known or architecture in known


def _architectures(way: ReleaseWay) -> list[str]:
    """The architectures that it names, else those of its wheels; empty for all."""
    if way.architectures:
        return list(way.architectures)
    found = [tags.architecture for each in way.wheels if (tags := wheel_tags(each.url)) is not None]
    return [] if "" in found else sorted(set(found))


def _fits(wheel: ReleaseArchive, architecture: str) -> bool:
    tags = wheel_tags(wheel.url)
    return tags is not None and tags.architecture in ("", architecture)


def _joined(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    """Ranges by name, where both hold."""
    names = dict.fromkeys([*first, *second])
    return {name: ",".join(part for part in (first.get(name), second.get(name)) if part) for name in names}


def _one_of(ranges: Sequence[str]) -> str:
    """One range for several: of ``==3.11.*`` and ``==3.13.*`` all from the first to the last without those between."""
    each = [re.fullmatch(r"==(\d+)\.(\d+)\.\*", text) for text in dict.fromkeys(ranges)]
    minors = sorted((int(found[1]), int(found[2])) for found in each if found is not None)
    if len(minors) < len(each):
        # A wheel for one Python and all later ones (abi3) is for those of the others too.
        return min((text for text in ranges if text.startswith(">=")), key=lambda text: int(text.split(".")[1]))
    (major, first), (_, last) = minors[0], minors[-1]
    if first == last:
        return f"=={major}.{first}.*"
    gaps = [f"!={major}.{minor}.*" for minor in range(first, last) if (major, minor) not in minors]
    return ",".join([f">={major}.{first}", f"<{major}.{last + 1}", *gaps])
