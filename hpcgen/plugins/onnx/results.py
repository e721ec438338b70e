"""The folder of a converted ensemble: made beside its place, and put there when all of it is valid."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError, OutputError, UnknownNameError, did_you_mean
from hpcgen.core.support.file_formats import CONVERSION
from hpcgen.core.support.hashing import read_plain
from hpcgen.core.support.leftovers import alone_in
from hpcgen.core.support.placing import put_in_place, remove
from hpcgen.core.support.refusals import explained
from hpcgen.core.support.writing import write_file
from hpcgen.plugins.onnx.ensemble import RESERVED
from hpcgen.plugins.onnx.records import ConversionReport
from hpcgen.plugins.onnx.work import ModelWork, remove_any

REPORT, PAGE, LOGS = "report.json", "report.html", "log"
MARKER = ".hpcgen-onnx"
_NEW = ".result"
_MOST = 64 * 1024 * 1024


class Workshop:
    """Where an ensemble is converted: ``folder`` beside ``output``, which is the result's final place."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.folder = output.with_name(f"{output.name}.partial")
        self.failed = output.with_name(f"{output.name}.failed")

    def model(self, name: str) -> ModelWork:
        """The work folder of a model."""
        return ModelWork(self.folder / name, name)

    def finish(self, models: Mapping[str, ModelWork], files: Mapping[str, str], logs: Mapping[str, Path]) -> None:
        """Put the models and the files about them in their final place; what was there before goes then.

        ``logs``: of steps that failed without failing the conversion, by the names that they get in ``log/``.
        OutputError: that is not possible, as on a full disk; what was there before is untouched.
        """
        new = self.folder / _NEW
        with explained(self.output):
            new.mkdir()
            for name, work in models.items():
                (new / name).mkdir()
                for path in work.paths():
                    target = new / name / path.relative_to(work.result)
                    target.parent.mkdir(exist_ok=True)
                    path.rename(target)
            for name, path in logs.items():
                # Foreign code may have put something else in its place.
                if stat.S_ISREG(path.lstat().st_mode):
                    (new / LOGS).mkdir(exist_ok=True)
                    path.rename(new / LOGS / name)
        for name, text in files.items():
            write_file(new / name, text)
        put_in_place(new, self.output)
        if self.failed.exists():
            remove(self.failed)

    def keep(self, files: Mapping[str, str]) -> Path:
        """Keep what there is of a conversion that failed, with these files; the folder where it is now."""
        with contextlib.suppress(OutputError):
            for name, text in files.items():
                write_file(self.folder / name, text)
        with explained(self.failed):
            if self.failed.exists():
                remove(self.failed)
            self.folder.rename(self.failed)
        return self.failed


@contextlib.contextmanager
def workshop(output: Path) -> Iterator[Workshop]:
    """The place where an ensemble is converted; what is left of it at the end is removed.

    OutputError: the result's place is taken by something else, or another hpcgen is at work there.
    """
    shop = Workshop(output)
    check_place(output)
    with explained(shop.folder):
        for folder in (shop.folder, shop.failed):
            if os.path.lexists(folder) and not (folder / MARKER).is_file():
                raise OutputError(f"{folder} is in the way", "--output", remedy="move it, or write elsewhere with -o")
        shop.folder.mkdir(exist_ok=True)
        (shop.folder / MARKER).touch()
    taken = OutputError(f"another hpcgen converts into {output}", "--output", remedy="wait until it has finished")
    try:
        with alone_in(shop.folder, taken):
            for left in sorted(shop.folder.iterdir()):
                if left.name != MARKER:
                    remove_any(left)
            yield shop
    finally:
        if shop.folder.exists():
            remove(shop.folder)


def check_place(output: Path) -> None:
    """OutputError where something else than an older result is in the place of a new one."""
    if not os.path.lexists(output):
        if not output.parent.is_dir():
            raise OutputError(f"cannot write {output}: its folder does not exist", "--output", remedy="mkdir -p")
        return
    if output.is_symlink() or not output.is_dir():
        raise OutputError(f"{output} is not a folder", "--output", remedy="name a new folder with -o")
    found = sorted(each.name for each in output.iterdir())
    if not found:
        return
    try:
        own = {*read_report(output).models, *RESERVED}
    except InputError:
        own = set()
    if strange := [name for name in found if name not in own]:
        raise OutputError(
            f"{output} is not only an older result: {strange[0]!a} is in it", "--output", remedy="name a new folder"
        )


def read_report(folder: Path) -> ConversionReport:
    """The report of a converted ensemble.

    InputError: the folder has none, or one that this release does not understand.
    """
    path = folder / REPORT
    try:
        raw = read_plain(path, _MOST)
        data = msgspec.json.decode(raw)
    except OSError as failure:
        raise InputError(
            f"there is no converted ensemble in {folder}: {REPORT} cannot be read ({failure.strerror})",
            expected="the folder that hpcgen onnx convert -o wrote",
        ) from failure
    except (msgspec.MsgspecError, RecursionError) as failure:
        raise InputError(f"{path} is damaged: {failure}", remedy="convert again into an empty folder") from failure
    CONVERSION.check(data, str(path))
    try:
        return record_from(data, ConversionReport)
    except (msgspec.ValidationError, RecursionError) as failure:
        raise CONVERSION.not_understood(data, str(path), failure) from failure


def check_variant(folder: Path, models: Sequence[str], variant: str) -> None:
    """UnknownNameError where models of a converted ensemble lack a variant; all have "", the converted model itself."""
    lacking = [name for name in models if variant and not (folder / name / variant).is_dir()]
    if lacking:
        there = sorted({each.name for name in models for each in (folder / name).iterdir() if each.is_dir()})
        raise UnknownNameError(
            f"{', '.join(lacking)} has no variant {variant!r}",
            "--variant",
            remedy=did_you_mean(variant, there) if there else "name it under `optimise` of the ensemble",
        )
