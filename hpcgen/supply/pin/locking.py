"""``hpcgen lock``: a plan → everything pinned that its build takes from outside. Uses the network, writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from hpcgen.blocks.inputs.image import Image
from hpcgen.blocks.steps import GitTree
from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.own_files import named_files
from hpcgen.core.errors import FetchError, HpcgenError, InputError, PolicyError, Problems, did_you_mean
from hpcgen.core.model.bazel import BazelPin
from hpcgen.core.model.conda import PIP_LIST, CondaPackage
from hpcgen.core.model.lock import ImagePin, KeyPin, Lock, Pins, StageName, StagePackages
from hpcgen.core.model.mpi_packages import MpiPackageTable
from hpcgen.core.model.plan import Plan, PlannedConda
from hpcgen.core.model.project import GitPackage, Project
from hpcgen.core.model.spack import SpackPin
from hpcgen.core.support.hashing import file_sha256
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.places import recorded
from hpcgen.kit.lockfile.lock import parse_lock, sealed_text
from hpcgen.planning.contract.verdict import hold_brought, hold_chosen
from hpcgen.planning.findings import UNSOLVED
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.formats import format_for
from hpcgen.recipe.stages import Assembly, Stage
from hpcgen.supply.pin.image_wheels import lock_image_wheels
from hpcgen.supply.pin.spack_environment import pinned_spack

if TYPE_CHECKING:
    from hpcgen.supply.pin.bazel_steps import BazelStep

Say = Callable[[str], None]
BazelFetcher = Callable[[Plan, Assembly, "BazelStep", Path, Say], BazelPin]


class _Packages(NamedTuple):
    """The OS packages of the stages, who vouches for them, their indexes' date, and what brings an MPI."""

    packages: dict[StageName, StagePackages] = {}
    keys: list[KeyPin] = []
    epoch: int = 0
    chains: list[tuple[str, ...]] = []


def make_lock(
    plan: Plan,
    catalog: Catalog,
    *,
    images: Mapping[str, str] | None = None,
    old: Lock | None = None,
    keep: Iterable[str] = (),
    fetch_bazel: BazelFetcher | None = None,
    say: Say = lambda text: None,
) -> Lock:
    """Pin everything that the plan leaves open.

    images: skopeo references to take base images from, by their name; the site's mirror or the registry otherwise.
    old, keep: what stays as it is in an older lock: ``images``, ``packages``, ``wheels``.
    fetch_bazel: learns what Bazel fetches by running it; otherwise it is what the older lock or a collection says.
    say: told what is being done.
    FetchError, InputError, MissingToolError, PolicyError: all that stands in the way, at once where that can be.
    """
    kept = set(keep) if old is not None else set()
    plan = _with_commits(plan, old if "wheels" in kept else None, say)
    loose = assemble(plan, catalog)
    before = old.pins if old is not None else Pins()
    with scratch_folder("hpcgen-lock-") as folder:
        layout = folder / "images"
        pinned = _images(plan, catalog, loose, images or {}, old, "images" in kept, say)
        # Wheels and base images do not depend on one another: they are asked for at the same time, and what is wrong
        # with either is said in one go.
        problems, of_packages = Problems(), Problems()
        wheels: dict[str, list[str]] = {}
        found = _Packages()
        with ThreadPoolExecutor(1) as beside:
            waiting = beside.submit(lock_image_wheels, plan, catalog, loose, old if "wheels" in kept else None, say)
            with of_packages.caught():
                found = _packages(plan, catalog, loose, pinned, layout, old if "packages" in kept else None, say)
        with problems.caught():
            wheels = waiting.result()
        problems += of_packages
        trees: dict[str, str] = {}
        with problems.caught():
            trees = _trees(loose, before, folder, say)
        conda: list[CondaPackage] = []
        with problems.caught():
            conda = _conda(plan, catalog, old if "wheels" in kept else None, say)
            wheels |= _conda_wheels(plan, catalog, conda, loose, old if "wheels" in kept else None, say)
        spack: SpackPin | None = None
        with problems.caught():
            spack = pinned_spack(plan, loose, pinned, layout, old if "packages" in kept else None, say)
        problems.raise_as(FetchError)
        warnings = hold_chosen(plan, catalog, wheels, allow_unsupported=plan.overruled)
        for each in [*warnings, *hold_brought(plan, catalog, found.chains, conda)]:
            say(f"warning: {each}")
        pins = Pins(
            images={name: _portable(pin) for name, pin in pinned.items()},
            packages=found.packages,
            keys=found.keys,
            wheels=wheels,
            trees=trees,
            conda=conda,
            spack=spack,
            epoch=found.epoch,
        )
        bazel = _bazel(plan, catalog, pins, pinned, before, layout, fetch_bazel, say)
        pins = msgspec.structs.replace(pins, bazel=bazel)
    left = [each for each in plan.findings if each.name != UNSOLVED]
    return lock_of(msgspec.structs.replace(plan, findings=left), catalog, pins)


def lock_of(plan: Plan, catalog: Catalog, pins: Pins) -> Lock:
    """The lock of a plan and its pins, as it is read back from its text."""
    assembly = assemble(plan, catalog, pins)
    text = sealed_text(plan, assembly, pins, collection_files(plan, catalog))
    return parse_lock(text, "the new lock")


def collection_files(plan: Plan, catalog: Catalog) -> dict[str, str]:
    """sha256 of the files of collections that the plan's recipe is made from; ``assemble`` must have been called.

    In order of precedence, the built-in collection last. Of that they are the files of blocks alone, because hpcgen's
    version says the rest.
    """
    paths = [path for block in plan.blocks for path in _block_files(block.name, catalog)]
    paths += named_files(plan, catalog)
    named = {catalog.recorded(path): path for path in paths} | catalog.beside.read
    order = [*catalog.names_of_folders, ""]

    def place(name: str) -> tuple[int, str]:
        before, colon, _ = name.partition(":")
        return (order.index(before) if colon and before in order else len(order), name)

    names = sorted(named, key=place)
    return {name: file_sha256(named[name]) for name in names}


def _block_files(name: str, catalog: Catalog) -> list[Path]:
    if catalog.is_given(name):
        raise InputError(
            f"block {name} is {catalog.block_origin(name)}, but a lock pins files",
            remedy=f"put it in a collection: building_blocks/{name}.py and {name}.yaml",
        )
    return [catalog.find("block", name), *catalog.release_files(name)]


def _with_commits(plan: Plan, old: Lock | None, say: Say) -> Plan:
    """The plan with the commits that branches and tags of the project's files have now, or had in an older lock."""
    from hpcgen.supply.pin.git_trees import commit_of

    before = [old.plan.project, old.plan.conda] if old is not None else []
    known = {(each.url, each.reference): each.commit for one in before if one is not None for each in one.from_git}
    problems = Problems()
    for field in ("project", "conda"):
        asked: Project | PlannedConda | None = getattr(plan, field)
        found: list[GitPackage] = []
        for each in asked.from_git if asked is not None else []:
            commit = each.commit or known.get((each.url, each.reference))
            with problems.caught(partial(str, each.origin)):
                if commit is None:
                    commit = commit_of(each.url, each.at)
                    say(f"{each.at} of {each.url}: commit {commit}")
                found.append(msgspec.structs.replace(each, commit=commit))
        if asked is not None and found != asked.from_git:
            plan = msgspec.structs.replace(plan, **{field: msgspec.structs.replace(asked, from_git=found)})
    problems.raise_as(FetchError)
    return plan


def _images(
    plan: Plan, catalog: Catalog, loose: Assembly, given: Mapping[str, str], old: Lock | None, keep: bool, say: Say
) -> dict[str, ImagePin]:
    """The pins of both stages' images: of the digest that the plan has, else of what the tag stands for today."""
    from hpcgen.backends.hardware.mirrors import image_mirror
    from hpcgen.supply.pin.base_images import image_sources, pin_image
    from hpcgen.supply.pin.foreign_base import own_source

    wanted = {stage.image.name: stage.image for stage in (loose.builder, loose.final)}
    names = sorted(wanted)
    problems = Problems()
    for name in [name for name in given if name not in names]:
        problems.add(f"no stage starts from the image {name!r}", "--image", remedy=did_you_mean(name, names))
    problems.raise_as(InputError)
    before = old.pins.images if old is not None else {}
    of_machine = own_source(plan, catalog) if not {stage.image.name for stage in (loose.final,)} & set(given) else {}
    known = (told_images(old) if old is not None else {}) | of_machine | dict(given)
    pinned = {}
    for name in names:
        if keep and name in before and name not in given:
            pinned[name] = before[name]
            continue
        # What somebody or the profile says to take is meant then, and not the digest of the release table.
        mirrors = plan.site.network.mirrors
        image = Image(name) if name in known or name in mirrors.images else wanted[name]
        say(f"base image {image.pulled}")
        mirror = image_mirror(mirrors, name, image.pulled)
        sources = image_sources(name, mirror, known, image.pulled)
        pin = pin_image(name, sources, plan.site.system.architecture, image.digest)
        pinned[name] = msgspec.structs.replace(pin, dated=image.dated or None)
    return pinned


def _portable(pin: ImagePin) -> ImagePin:
    return msgspec.structs.replace(pin, origin=portable_origin(pin.origin))


def portable_origin(origin: str) -> str:
    """A reference to an image without the folder that its file lies in here, which ``--image`` says elsewhere."""
    transport, _, place = origin.partition(":")
    if transport == "containers-storage":
        # [DRIVER@FOLDER] before the name says where the store is on this machine.
        return f"{transport}:{place[place.rfind(']') + 1 :]}"
    local = transport in ("oci-archive", "docker-archive", "oci", "dir")
    return f"{transport}:{recorded(place)}" if local else origin


def told_images(old: Lock) -> dict[str, str]:
    """Where an older lock found images by ``--image``: neither the registry nor a mirror of the site then."""
    from hpcgen.backends.hardware.mirrors import image_mirror
    from hpcgen.supply.pin.base_images import image_sources

    mirrors = old.plan.site.network.mirrors
    return {
        name: pin.origin
        for name, pin in old.pins.images.items()
        if pin.dated is None and pin.origin not in image_sources(name, image_mirror(mirrors, name), {})
    }


def _packages(
    plan: Plan,
    catalog: Catalog,
    loose: Assembly,
    images: Mapping[str, ImagePin],
    layout: Path,
    old: Lock | None,
    say: Say,
) -> _Packages:
    """What is added to each stage; as an older lock has it, if the same is asked of the same images."""
    from hpcgen.backends.hardware.emulation import here, runs
    from hpcgen.supply.pin.base_images import fetch_image
    from hpcgen.supply.pin.base_system import check_base
    from hpcgen.supply.pin.os_packages import resolve_packages

    stages: list[tuple[StageName, Stage]] = [("builder", loose.builder), ("final", loose.final)]
    same = {name: _portable(pin) for name, pin in images.items()}
    if old is not None and old.pins.images == same and _asked_then(old, catalog) == _asked(plan, loose):
        return _Packages({**old.pins.packages}, old.pins.keys, old.pins.epoch)
    architecture = plan.site.system.architecture
    if not runs(architecture):
        raise PolicyError(
            f"this machine is {here()}, and the package manager must run in an image for {architecture}",
            expected=f"a machine of {architecture}, or an emulator that is registered (Debian: qemu-user-static)",
            remedy="make the lock there",
        )
    for name, pin in images.items():
        say(f"fetching {name} ({pin.digest[:19]}…)")
        fetch_image(pin, name, architecture, layout)
        check_base(plan, catalog, name, pin.origin, layout)
    names = _asked(plan, loose)
    asked = [(stage, names[part]) for part, stage in stages]
    early = sorted({*loose.early, *_of_format(plan, loose)})
    if split := early != names["builder"]:
        asked.append((loose.builder, early))
    table = catalog.beside.mpi_packages() if plan.block("mpi") is not None else MpiPackageTable()
    answers = resolve_packages(layout, asked, loose.manager, say, partial(table.is_mpi, loose.manager))
    if any(answer.packages.added for answer in answers):
        say("packages can be fetched only while the repositories have these versions: hpcgen bundle create keeps them")
    packages = {part: answer.packages for (part, _), answer in zip(stages, answers, strict=False)}
    if split:
        packages["builder"] = _with_late(packages["builder"], answers[-1].packages)
    keys = {(key.index, key.fingerprint): key for answer in answers for key in answer.keys}
    chains = sorted({chain for answer in answers for chain in answer.chains})
    return _Packages(packages, [keys[each] for each in sorted(keys)], max(answer.epoch for answer in answers), chains)


def _with_late(every: StagePackages, early: StagePackages) -> StagePackages:
    """All packages of a stage, where those that come before the project's own are known; else in one step."""
    if not early.added.keys() <= every.added.keys():
        return every  # it decides otherwise where the project's packages are there too
    return msgspec.structs.replace(every, late=sorted(every.added.keys() - early.added.keys()))


def _asked(plan: Plan, assembly: Assembly) -> dict[str, list[str]]:
    """Names of the OS packages that the stages need."""
    more = _of_format(plan, assembly)
    return {stage: sorted({*names, *more}) for stage, names in assembly.packages.items()}


def _of_format(plan: Plan, assembly: Assembly) -> tuple[str, ...]:
    return format_for(plan.format).packages if assembly.manager == "apt" else ()


def _asked_then(old: Lock, catalog: Catalog) -> dict[str, list[str]] | None:
    """The same for the plan of an older lock; None where the collections no longer have what it names."""
    try:
        return _asked(old.plan, assemble(old.plan, catalog))
    except HpcgenError:
        return None


def _conda(plan: Plan, catalog: Catalog, old: Lock | None, say: Say) -> list[CondaPackage]:
    """What is chosen of conda, or an older lock has for the same; nothing where the plan's files are a lock."""
    from hpcgen.backends.hardware.mirrors import conda_mirror
    from hpcgen.supply.pin.conda_solver import solve_conda

    asked = plan.conda
    if asked is None or not asked.needs:
        return []
    if old is not None and old.plan.conda == asked:
        return list(old.pins.conda)
    say(f"conda packages: {len(asked.needs)} requested")
    channels = {each: conda_mirror(plan.site.network.mirrors, each) for each in asked.channels}
    return solve_conda(asked, catalog.beside.text_file("conda_program.py"), channels)


def _conda_wheels(
    plan: Plan, catalog: Catalog, packages: list[CondaPackage], loose: Assembly, old: Lock | None, say: Say
) -> dict[str, list[str]]:
    """What a conda environment has of a Python package index, for its own Python and beside its packages."""
    from hpcgen.supply.pin.conda_solver import lock_beside

    asked = loose.loose.get(PIP_LIST)
    if not asked:
        return {}
    if old is not None and old.plan.conda == plan.conda and PIP_LIST in old.pins.wheels:
        return {PIP_LIST: old.pins.wheels[PIP_LIST]}
    say(f"Python packages of {PIP_LIST}")
    glibc = str(catalog.release(plan.blocks[0]).values["glibc"])
    return {PIP_LIST: lock_beside(packages, asked, plan.site.system.architecture, glibc)}


def _bazel(
    plan: Plan,
    catalog: Catalog,
    pins: Pins,
    images: Mapping[str, ImagePin],
    before: Pins,
    layout: Path,
    fetch_bazel: BazelFetcher | None,
    say: Say,
) -> dict[str, BazelPin]:
    """What Bazel fetches, by the name of the list: learned now, or as the older lock has it for the same call."""
    from hpcgen.supply.pin.base_images import fetch_image
    from hpcgen.supply.pin.bazel_steps import bazel_steps

    assembly = assemble(plan, catalog, pins)
    steps = bazel_steps(plan, assembly)
    if fetch_bazel is not None and not steps:
        raise InputError("no block of the plan is built by Bazel", "--fetch-bazel", remedy="omit the option")
    if fetch_bazel is None:
        return _known_to_bazel(catalog, before, steps, say)
    name = assembly.builder.image.name
    fetch_image(images[name], name, plan.site.system.architecture, layout)
    return {step.call.name: fetch_bazel(plan, assembly, step, layout, say) for step in steps}


def _known_to_bazel(catalog: Catalog, before: Pins, steps: Iterable[BazelStep], say: Say) -> dict[str, BazelPin]:
    """What an older lock has for the same calls; what neither it nor a collection knows is told."""
    known = {}
    for step in steps:
        name = step.call.name
        pin = before.bazel.get(name)
        if pin is not None and pin.call == step.hash:
            known[name] = pin
        elif (listed := catalog.beside.bazel_files(name)) is None:
            say(f"no bundle can be made from this lock: Bazel's downloads for {name} are unknown (--fetch-bazel)")
        elif listed.lacking:
            say(f"warning: {listed.lacking}")
    return known


def _trees(loose: Assembly, before: Pins, folder: Path, say: Say) -> dict[str, str]:
    from hpcgen.supply.pin.git_trees import fetch_tree

    result = {}
    for _, item in loose.inputs:
        if isinstance(item, GitTree):
            key = f"{item.url}@{item.commit}"
            if key not in before.trees:
                say(f"git tree {key}")
            result[key] = before.trees.get(key) or fetch_tree(item, folder)
    return result
