"""What differs between two locks and why, for ``hpcgen lock --check`` and ``--update``. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from hpcgen.blocks.inputs import KINDS
from hpcgen.blocks.inputs.wheels import parse_pin, role_of
from hpcgen.core.model.lock import ImagePin, KeyPin, Lock, PackagePin
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.rpm_versions import rpm_version_key
from hpcgen.core.support.units import shortened
from hpcgen.kit.lockfile.plan_changes import Change, What, plan_changes

# Differences between the pins of two locks: images, OS packages, keys, and the inputs that their texts list.

Download = tuple[str, ...]
"""Address and sha256 of an archive; empty where there is none."""

Inputs = list[dict[str, Any]]
"""What the overview of a lock lists of a block."""


class _Taker(NamedTuple):
    """A block in the two plans, None where it is not there, and what it takes by the two locks."""

    name: str
    was: PlannedBlock | None
    now: PlannedBlock | None
    before: Inputs
    after: Inputs

    @property
    def moved(self) -> bool:
        """Whether the block is new, gone, or there in another version."""
        return (self.was and self.was.version) != (self.now and self.now.version)


class _Wheel(NamedTuple):
    version: str
    hashes: str


_NO_WHEEL = _Wheel("", "")
_AS_SOURCE = " as source"


def pin_changes(old: Lock, new: Lock) -> Iterator[Change]:
    """Images, packages, keys and indexes, then what blocks take, then files of collections and the outcome."""
    yield from _images(old.pins.images, new.pins.images)
    yield from _packages(old, new)
    yield from _keys(old.pins.keys, new.pins.keys)
    takers = _takers(old, new)
    yield from _wheels(takers, set(new.pins.wheels))
    yield from _downloads(takers)
    yield from _collections(old, new)
    yield from _results(old, new)


def _images(old: Mapping[str, ImagePin], new: Mapping[str, ImagePin]) -> Iterator[Change]:
    for name in sorted(old.keys() | new.keys()):
        one, other = old.get(name), new.get(name)
        digests = (one.digest if one else "", other.digest if other else "")
        if digests[0] != digests[1]:
            yield Change(what="image", name=name, old=digests[0], new=digests[1], why=_why_image(one, other))
        elif one is not None and other is not None and one.origin != other.origin:
            yield Change(what="image", name=f"{name}: origin", old=one.origin, new=other.origin, why="the same image")
        elif one is not None and other is not None and one.bundled != other.bundled:
            why = "the same image, converted for bundles in another way"
            yield Change(what="image", name=f"{name}: in a bundle", old=one.bundled, new=other.bundled, why=why)


def _why_image(old: ImagePin | None, new: ImagePin | None) -> str:
    if old is None or new is None:
        return "a stage starts from it" if new is not None else "no stage starts from it any more"
    return "a different image has this name now" if old.origin == new.origin else f"it is taken from {new.origin}"


# OS packages


def _packages(old: Lock, new: Lock) -> Iterator[Change]:
    """A difference that both stages have is one line."""
    same_base = old.plan.blocks[0].name == new.plan.blocks[0].name
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for stage in ("builder", "final"):
        for name, one, other, why in _stage_packages(old, new, stage, same_base):
            found.setdefault((name, one, other, why), []).append(stage)
    for (name, one, other, why), stages in sorted(found.items()):
        yield Change(what="package", name=f"{name} ({', '.join(stages)})", old=one, new=other, why=why)
    yield from _package_files(old, new)


def _stage_packages(old: Lock, new: Lock, stage: Any, same_base: bool) -> Iterator[tuple[str, str, str, str]]:
    pins = [lock.pins.packages.get(stage) for lock in (old, new)]
    before, after = (
        {**pin.present, **{name: added.version for name, added in pin.added.items()}} if pin is not None else {}
        for pin in pins
    )
    named = set(new.packages.get(stage, []))
    present = [set(pin.present) - set(pin.added) if pin is not None else set() for pin in pins]
    for name in before.keys() | after.keys():
        one, other = before.get(name, ""), after.get(name, "")
        if one == other:
            continue
        if not same_base:
            why = f"the base is {new.plan.blocks[0].name} now"
        elif name in (present[0] | present[1]) and name not in present[0] ^ present[1]:
            why = "it comes with the base image"
        elif not one:
            why = "a block requires it" if name in named else "another package needs it"
        elif not other:
            why = "nothing needs it any more"
        else:
            from debian.debian_support import NativeVersion

            of_rpm = any(each.is_rpm for pin in pins if pin is not None for each in pin.added.values())
            key: Callable[[str], Any] = rpm_version_key if of_rpm else NativeVersion
            newer = key(other) > key(one)
            why = f"the distribution's archive has {'a newer' if newer else 'only an older'} version"
        yield name, one, other, why


def _package_files(old: Lock, new: Lock) -> Iterator[Change]:
    """Files that changed although their version did not, which a well-kept archive never does; then addresses."""
    before, after = _added(old), _added(new)
    moved = 0
    for key in sorted(before.keys() & after.keys()):
        one, other = before[key], after[key]
        if one.sha256 != other.sha256:
            why = "a different file under the same version"
            name = f"{key[0]} {key[1]}"
            yield Change(what="package", name=name, old=f"sha256:{one.sha256}", new=f"sha256:{other.sha256}", why=why)
        moved += one.sha256 == other.sha256 and one.url != other.url
    if moved:
        hosts = [", ".join(sorted({_host(pin.url) for pin in pins.values()})) for pins in (before, after)]
        name = f"addresses of {moved}"
        yield Change(what="package", name=name, old=hosts[0], new=hosts[1], why="the same files elsewhere")


def _added(lock: Lock) -> dict[tuple[str, str], PackagePin]:
    return {(name, pin.version): pin for stage in lock.pins.packages.values() for name, pin in stage.added.items()}


def _host(url: str) -> str:
    return "/".join(url.split("/")[:3])


def _keys(old: list[KeyPin], new: list[KeyPin]) -> Iterator[Change]:
    signers = [{(key.index, key.fingerprint) for key in keys} for keys in (old, new)]
    for index, fingerprint in sorted(signers[0] ^ signers[1]):
        gone = (index, fingerprint) in signers[0]
        why = "no longer signs it" if gone else "signs it now"
        yield Change(what="key", name=index, old=fingerprint if gone else "", new="" if gone else fingerprint, why=why)
    dates = [{key.index: key.date for key in keys} for keys in (old, new)]
    for index in sorted(dates[0].keys() & dates[1].keys()):
        if dates[0][index] != dates[1][index]:
            yield Change(
                what="index", name=index, old=dates[0][index], new=dates[1][index], why="the index was published again"
            )


# what blocks take


def _takers(old: Lock, new: Lock) -> list[_Taker]:
    """Every block of which one of the locks lists something, those of the new lock first."""
    before, after = _inputs(old), _inputs(new)
    was, now = ({block.name: block for block in lock.plan.blocks} for lock in (old, new))
    return [
        _Taker(name, was.get(name), now.get(name), before.get(name, []), after.get(name, []))
        for name in [*after, *(name for name in before if name not in after)]
    ]


def _inputs(lock: Lock) -> dict[str, Inputs]:
    names = {block.label: block.name for block in lock.plan.blocks}
    found: dict[str, Inputs] = {}
    for item in lock.inputs:
        found.setdefault(names.get(item["block"], item["block"]), []).append(item)
    return found


def _wheels(takers: list[_Taker], pinned: set[str]) -> Iterator[Change]:
    """Per Python package; a difference that several blocks' lists share is one line.

    ``pinned``: lists that the lock has from the package index, the others are a collection's.
    """
    found: dict[tuple[str, _Wheel, _Wheel, str], list[str]] = {}
    for taker in takers:
        one, other = _pins(taker.before), _pins(taker.after)
        resolved = any(item.get("wheels") in pinned for item in taker.after)
        for name in sorted(one.keys() | other.keys()):
            was, now = one.get(name, _NO_WHEEL), other.get(name, _NO_WHEEL)
            if was == now:
                continue
            why = _why_wheel(was.version, now.version, taker, resolved)
            if was.version != now.version:
                was, now = was._replace(hashes=""), now._replace(hashes="")
            found.setdefault((name, was, now, why), []).append(taker.name)
    for (name, was, now, why), blocks in found.items():
        shown = [", ".join(filter(None, each)) for each in (was, now)]
        yield Change(what="wheel", name=f"{name} ({', '.join(blocks)})", old=shown[0], new=shown[1], why=why)


def _pins(inputs: Inputs) -> dict[str, _Wheel]:
    """By package, of all lists of a block; what only builds others is a package of its own."""
    pins: dict[str, _Wheel] = {}
    for item in inputs:
        role = role_of(item.get("wheels", ""))
        for line in item.get("requirements", []):
            name, version, hashes = parse_pin(line)
            told = " ".join(f"sha256:{each}" for each in sorted(hashes))
            shown = (version or line.removeprefix(name)) + (_AS_SOURCE if role == "source" else "")
            pins[normal_name(name) + (", for builds" if role == "tools" else "")] = _Wheel(shown, told)
    return pins


def _why_wheel(old: str, new: str, taker: _Taker, resolved: bool) -> str:
    if taker.moved:
        return f"the list of {taker.now.label}" if taker.now else f"{taker.was.label if taker.was else ''} is gone"
    if not resolved:
        return "its list in the collection has changed"
    if old == new:
        return "the package index has different files for this version"
    if not old or not new:
        return "another package needs it" if new else "nothing needs it any more"
    if old.endswith(_AS_SOURCE) != new.endswith(_AS_SOURCE):
        return "a wheel fits now" if old.endswith(_AS_SOURCE) else "no wheel fits, so its source package is built"
    return "the package index has a different version that fits"


def _downloads(takers: list[_Taker]) -> Iterator[Change]:
    """Archives, git trees and files of Bazel, per block; what is of another kind by what a record says of it."""
    for taker in takers:
        block, one, other = taker.name, taker.before, taker.after
        labels = [each.label if each else "not there" for each in (taker.was, taker.now)]
        why = " → ".join(labels) if taker.moved else ""
        archives = [{i["archive"]: i["sha256"] for i in inputs if "archive" in i} for inputs in (one, other)]
        for was, now in _paired(*archives):
            texts = [" sha256:".join(each) for each in (was, now)]
            yield Change(what="archive", name=block, old=texts[0], new=texts[1], why=why or _why_archive(was, now))
        trees = [{i["tree"]: i["commit"] for i in inputs if "tree" in i} for inputs in (one, other)]
        for url in sorted(trees[0].keys() | trees[1].keys()):
            was, now = trees[0].get(url, ""), trees[1].get(url, "")
            if was != now:
                yield Change(what="tree", name=f"{block}: {url}", old=was, new=now, why=why or "another commit")
        files = [{n: h for i in inputs if "bazel" in i for n, h in i["files"].items()} for inputs in (one, other)]
        if files[0] != files[1]:
            yield _bazel(block, files[0], files[1], why)
        for was, now in _paired(_recorded(one), _recorded(other)):
            yield Change(what="input", name=block, old="".join(was[:1]), new="".join(now[:1]), why=why)


def _recorded(inputs: Inputs) -> dict[str, str]:
    """Lines that say all of inputs whose kind has no changes of its own."""
    others = KINDS.keys() - {"wheels", "archive", "tree", "bazel"}
    return {line: "" for each in inputs for key in each.keys() & others for line in KINDS[key].recorded(each)}


def _why_archive(old: Download, new: Download) -> str:
    if not old or not new:
        return "the block's options require it" if new else "the block's options do not require it"
    return f"the release table has a different {'hash for the same address' if old[0] == new[0] else 'address'}"


def _paired(old: dict[str, str], new: dict[str, str]) -> list[tuple[Download, Download]]:
    """Old and new archives, in their order; what both have is left out."""
    gone, come = (
        [each for each in one.items() if each not in other.items()] for one, other in ((old, new), (new, old))
    )
    return list(zip_longest(gone, come, fillvalue=()))


def _bazel(block: str, old: dict[str, str], new: dict[str, str], why: str) -> Change:
    come = len(new.keys() - old.keys())
    gone = len(old.keys() - new.keys())
    other = sum(1 for name in old.keys() & new.keys() if old[name] != new[name])
    said = f"{come} more, {gone} less, {other} with another hash"
    name = f"files that Bazel fetches for {block}"
    return Change(what="bazel", name=name, old=str(len(old)), new=str(len(new)), why=f"{why}: {said}" if why else said)


# the rest


def _collections(old: Lock, new: Lock) -> Iterator[Change]:
    """Files that both plans rest on; a file that only one of them uses is an effect, not a cause.

    What profiles and stacks say is in the plans themselves, whose differences are told one by one.
    """
    for name in sorted(old.collections.keys() & new.collections.keys()):
        one, other = old.collections[name], new.collections[name]
        in_plan = name.partition(":")[2].startswith(("site_profiles/", "recipes/"))
        if one != other and not in_plan:
            yield Change(what="collection", name=name, old=f"sha256:{one}", new=f"sha256:{other}", why="it was edited")


def _results(old: Lock, new: Lock) -> Iterator[Change]:
    if old.pins.epoch != new.pins.epoch:
        why = "the newest date of the package indexes and images"
        yield Change(
            what="result",
            name="SOURCE_DATE_EPOCH",
            old=_date(old.pins.epoch),
            new=_date(new.pins.epoch),
            why=why,
        )
    if old.content != new.content:
        yield Change(what="result", name="plan hash", old=old.content, new=new.content, why="the image will differ")


def _date(epoch: int) -> str:
    return datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


__all__ = ["Change", "changes", "changes_text"]

_TITLES = {
    "hpcgen": "hpcgen",
    "command": "asked for",
    "site": "site",
    "stack": "stack",
    "copied": "files of the stack",
    "block": "blocks",
    "option": "options",
    "job": "job",
    "image": "base images",
    "package": "OS packages",
    "index": "package indexes",
    "key": "keys",
    "wheel": "Python packages",
    "archive": "archives",
    "tree": "git trees",
    "bazel": "files for Bazel",
    "input": "other inputs",
    "collection": "files of collections",
    "result": "outcome",
}
_WIDEST_NAME, _WIDEST_VALUE = 44, 56
_LONGEST = 60
"""Characters of one value; the whole is in the JSON."""


def changes(old: Lock, new: Lock) -> list[Change]:
    """Every difference, causes before effects; empty if the locks say the same.

    Where the locks' texts differ in nothing that has a line of its own (a reason, a note), one line says so.
    """

    moved = {path for path, _ in old.collections.items() ^ new.collections.items()}
    tables = [name[1] for path in moved if (name := re.fullmatch(r"building_blocks/([^/]+)\.yaml", path))]
    found = in_order([*plan_changes(old.plan, new.plan, tables), *pin_changes(old, new)])
    if not found and old.text != new.text:
        why = "only reasons, notes or sources changed, nothing that the build uses"
        found.append(Change(what="result", name="text", old="", new="", why=why))
    return found


def in_order(found: Iterable[Change]) -> list[Change]:
    """Causes before effects."""
    order = list(_TITLES)
    return sorted(found, key=lambda change: order.index(change.what))


def changes_text(found: Sequence[Change], most: int | None = None) -> str:
    """One line each, in groups, aligned; a reason that a whole group shares stands in its title.

    ``most``: of each group, where some may be left out.
    """
    groups: dict[str, list[Change]] = {}
    for change in found:
        groups.setdefault(change.what, []).append(change)
    return "\n".join(line for what, group in groups.items() for line in _group(_TITLES[what], group, most))


def _group(title: str, group: Sequence[Change], most: int | None) -> list[str]:
    shared = group[0].why if len(group) > 2 and len({change.why for change in group}) == 1 else ""
    rows = [(change.name, _values(change), "" if shared else change.why) for change in group[:most]]
    widths = [
        max((len(row[column]) for row in rows if len(row[column]) <= widest), default=0)
        for column, widest in ((0, _WIDEST_NAME), (1, _WIDEST_VALUE))
    ]
    lines = [f"{title} ({len(group)})" + (f": {shared}" if shared else "")]
    for name, values, why in rows:
        lines.append(f"  {name.ljust(widths[0])}  {values.ljust(widths[1])}  {why}".rstrip())
    if len(rows) < len(group):
        lines.append(f"  … {len(group) - len(rows)} more (--all)")
    return lines


def _values(change: Change) -> str:
    old, new = (_short(text, change.what) for text in (change.old, change.new))
    if not old or not new:
        return f"+ {new}" if new else f"- {old}" if old else ""
    return f"{old} → {new}"


def _short(text: str, what: What) -> str:
    """Hashes by their first digits, archives' addresses by the file that they end in."""
    text = re.sub(r"\b([0-9a-f]{12})[0-9a-f]{28,52}\b", r"\1", text)
    if what == "archive":
        text = re.sub(r"https?://\S*/(\S+)", r"\1", text)
    return shortened(text, _LONGEST)
