"""Models and data sets of a stack, fetched before the job: once for all its ranks, and for all jobs that need the same.

Each has a folder that is named by its content, below the folder of downloads. It gets that name when every file is
whole; what is there is taken as it is, and files that a site has removed in the meantime are fetched again.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hpcgen.core.errors import FetchError, InputError, OutputError, Problem
from hpcgen.core.model.image_paths import file_path
from hpcgen.core.model.models import MODEL_STORE, Model
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site
from hpcgen.core.support.progress import Watch
from hpcgen.core.support.quoting import variables_in, with_values
from hpcgen.core.support.units import files, size
from hpcgen.launch.caches import SHARED, downloads_folder
from hpcgen.supply.bundle.reading import BundleReader, open_bundle
from hpcgen.supply.bundle.workspace import InUseError, Workspace, check_room, explained_disk, workspace
from hpcgen.supply.net.download import Download, Downloader, RetryPolicy
from hpcgen.supply.net.part import PartialFile
from hpcgen.supply.pin.model_files import hub_tokens, wanted_files

_WAIT_S = 0.5
_READ = 0o444


class FetchedModel(msgspec.Struct, frozen=True):
    """One that is there now: its folder, what is in it, and how many bytes were fetched for that."""

    name: str
    folder: Path
    to: str
    files: int
    fetched: int


def store_folder(site: Site, account: str, environment: Mapping[str, str], start: Path) -> Path:
    """The folder of all models, as the job script names it.

    Parameters
    ----------
    account: of the job.
    start: the folder that the job starts in.

    Raises
    ------
    InputError: a variable that names it has no value here.
    """
    named = environment.get(SHARED) or environment.get("XDG_CACHE_HOME")
    if named:
        return start.absolute() / named / MODEL_STORE
    text = downloads_folder(site)
    if not text:
        return start.absolute() / ".cache" / MODEL_STORE
    known = {"USER": getpass.getuser(), "SLURM_JOB_ACCOUNT": account, **environment}
    values = {name: known.get(name, "") for name in variables_in(text)}
    if missing := [name for name, value in values.items() if not value]:
        option = "--account NAME, or " if "SLURM_JOB_ACCOUNT" in missing else ""
        raise InputError(
            f"${missing[0]} has no value here, and {site.name} keeps downloads in {text}",
            remedy=f"{option}set {SHARED} to a folder that this machine and the nodes see, here and in the job",
        )
    return Path(with_values(text, values)) / MODEL_STORE


def fetch_models(
    plan: Plan, store: Path, watch: Watch, *, bundle: Path | None = None, policy: RetryPolicy | None = None
) -> list[FetchedModel]:
    """Have every model of a plan's stack in the folder of all.

    Parameters
    ----------
    store: as :func:`store_folder` gives it.
    bundle: what has them where no network is.

    Raises
    ------
    FetchError: what is missing was not fetched. InputError: the bundle does not have it. OutputError: no room for it.
    """
    found = []
    for model in plan.stack.run.models:
        target, fetched, waited = store / model.folder, 0, False
        while _missing(model, target):
            try:
                _make(store)
                with workspace(target) as place:
                    fetched = _fill(model, place, _missing(model, target), plan, watch, bundle, policy)
            except InUseError:
                if not waited:
                    watch.say(f"another process fetches {model.name}: waiting for it")
                waited = True
                time.sleep(_WAIT_S)
        what = f"{files(len(model.parts))} in {target}"
        with contextlib.suppress(OSError):
            # When it was used last, for `hpcgen clean models`.
            os.utime(target)
        watch.say(f"{model.name}: {f'fetched {size(fetched)}, ' if fetched else 'there: '}{what}")
        found.append(FetchedModel(model.name, target, model.to, len(model.parts), fetched))
    return found


def _make(store: Path) -> None:
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        remedy = f"set {SHARED} to a folder that this machine and the nodes see, here and in the job"
        raise OutputError(f"{store} cannot be made: {failure.strerror}", remedy=remedy) from failure


def _missing(model: Model, target: Path) -> list[str]:
    """Which of its files are not there, or not of their size; what has its final name was whole."""
    found = []
    for path, (_, file) in model.parts.items():
        try:
            known = (target / path).stat().st_size
        except OSError:
            found.append(path)
            continue
        found += [path] if file.size not in (None, known) else []
    return found


class _Fill:
    """One model that this process alone fetches: into a folder beside the final one, unless only some files lack."""

    def __init__(self, model: Model, place: Workspace, missing: Sequence[str]) -> None:
        self.place = place
        self.whole = not place.target.exists()
        self.into = place.bundle if self.whole else place.target
        # What an interrupted run had whole lies there already.
        left = [path for path in missing if not (self.whole and (self.into / path).is_file())]
        self.wants = {path: want for path, want in wanted_files(model).items() if path in left}
        self.needed = sum(want.size or 0 for want in self.wants.values())

    def check_room(self) -> None:
        """OutputError where what is missing does not fit."""
        begun = sum(each.stat().st_size for each in self.place.parts.rglob("*"))
        check_room(self.place, self.needed - begun)

    def from_bundle(self, reader: BundleReader) -> None:
        """Take what the bundle has, each file by its hash."""
        for path, want in self.wants.items():
            held = reader.files.get(file_path(want.sha256, want.file))
            if held is None:
                raise InputError(
                    f"{reader.path} does not have {path} of {want.name}",
                    remedy="make the bundle from a lock of this stack, as it is now",
                )
            part = PartialFile(self.place.parts / f"{want.sha256}-{want.file[:150]}")
            part.begin(0)
            with held.open() as stream:
                while data := stream.read(1 << 20):
                    part.write(data)
            if part.hasher.hexdigest() != want.sha256:
                part.forget()
                raise InputError(f"{path} of {want.name} is damaged in {reader.path}", remedy="copy the bundle again")
            part.finish(self.into / path)

    def downloads(self) -> list[Download]:
        """What the network has to give."""
        return [Download(want, self.place.parts, self.into / path) for path, want in self.wants.items()]

    def publish(self, model: Model) -> None:
        """Close the files to changes, and have them under their name."""
        for path in model.parts if self.whole else self.wants:
            file = self.into / path
            file.chmod(file.stat().st_mode & _READ)
        if self.whole:
            self.place.publish_folder()


def _fill(
    model: Model,
    place: Workspace,
    missing: Sequence[str],
    plan: Plan,
    watch: Watch,
    bundle: Path | None,
    policy: RetryPolicy | None,
) -> int:
    """Have what is missing; how many bytes that were, as far as it is known."""
    fill = _Fill(model, place, missing)
    with explained_disk(place, fill.needed, model.bytes or 0):
        fill.check_room()
        if bundle is not None:
            fill.from_bundle(open_bundle(bundle))
        elif fill.wants:
            authorities = [Path(path) for path in plan.site.network.ca_certificates]
            downloader = Downloader(policy=policy, ca_files=authorities, watch=watch, tokens=hub_tokens(os.environ))
            try:
                downloader.fetch(fill.downloads())
            except FetchError as failure:
                raise FetchError([_without_network(each) for each in failure.problems]) from failure
        fetched = sum((fill.into / path).stat().st_size for path in fill.wants)
        fill.publish(model)
    return fetched


def _without_network(problem: Problem) -> Problem:
    remedy = "run the same command again, which resumes; without a network: hpcgen data fetch --bundle BUNDLE"
    return Problem(problem.message, problem.where, problem.expected, remedy if problem.remedy else "")
