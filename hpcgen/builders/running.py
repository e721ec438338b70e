"""One build from beginning to end: commands, log, steps, result, and nothing left behind."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Literal

from hpcgen._version import __version__
from hpcgen.backends.engines.building import EngineCommand, query
from hpcgen.backends.engines.steps import Event
from hpcgen.builders.bundles import lock_signer
from hpcgen.builders.display import BuildProgress, Watcher, WriteProgress
from hpcgen.builders.log import build_folder, log_file, note
from hpcgen.builders.mksquashfs_shim import MksquashfsShim
from hpcgen.builders.preparing import BuildOptions, Prepared, prepare
from hpcgen.builders.remedies import Disks
from hpcgen.core.errors import BuildFailedError, HpcgenError, OutputError
from hpcgen.core.model.image_paths import LOCK
from hpcgen.core.model.record import BuildFailure, BuildRecord, BuiltImage
from hpcgen.core.secret_rules import MASK, secrets_of, without_secrets
from hpcgen.core.support.hashing import file_sha256
from hpcgen.core.support.placing import put_in_place, remove
from hpcgen.core.support.processes import interruptible, printable, stream
from hpcgen.core.support.striping import stripe
from hpcgen.images.reference import ImageReference
from hpcgen.kit.copied import check_copied
from hpcgen.kit.folder import KitFolder, make_context

TAIL = 15
"""How many of the last lines a failure shows."""
TRIES = 3
"""How often the engine is started at most, where it fails by chance."""


def build_kit(kit: KitFolder, options: BuildOptions, watcher: Watcher | None = None) -> BuildRecord:
    """Build the image of a kit and keep the record.

    BuildFailedError: the engine did not build it; the image's final name is as it was before.
    InputError: a certificate of the site is not here; the engine reads another format.
    MissingToolError: the engine, or what it needs, is not installed here.
    OutputError: the image, its log or its record cannot be written.
    PolicyError: the image is for another architecture than this machine's.
    KeyboardInterrupt: Ctrl-C or SIGTERM, after everything was undone; the record says ``interrupted``.
    """
    from hpcgen.builders.records.store import new_id

    started = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
    identity = new_id(started, kit.plan.site.name, kit.plan.stack.name)
    with build_folder() as (folder, lock):
        prepared = prepare(kit, options, identity.split("-")[0], folder)
        note(folder, prepared.builder.builder_name(), prepared.work.target)
        with log_file(options.log, options.record, identity) as log:
            run = BuildRun(prepared, options, identity, started, log, watcher or Watcher())
            run.keeps = (lock,)
            with interruptible():
                return run.go()


class BuildRun:
    """The state of one build while it runs."""

    def __init__(
        self, prepared: Prepared, options: BuildOptions, identity: str, started: str, log: IO[str], watcher: Watcher
    ) -> None:
        self.keeps: tuple[int, ...] = ()
        self.kit, self.builder, self.work = prepared.kit, prepared.builder, prepared.work
        self.options, self.identity, self.started, self.log, self.watcher = options, identity, started, log, watcher
        self.clock = time.monotonic()
        self.progress = BuildProgress(prepared.recipe.steps, self.builder.alone, self._step_ended)
        self.reader = self.builder.reader(prepared.recipe)
        self.output: list[str] = []
        self.secrets = secrets_of(os.environ)
        self.disks = Disks()
        self.mksquashfs = MksquashfsShim(self.work, self.builder.converter)
        self.written = WriteProgress(self.progress, self.builder.growing(self.work))

    def go(self) -> BuildRecord:
        """Build, and keep the record."""
        built = False
        try:
            self._scratch()
            self.builder.begin()
            if self.work.epoch is not None and (why := self.builder.differs(self.work.target)):
                self.watcher.note(f"another build of this lock will have another digest: {why}")
            self.disks.watch(self.builder.places(self.work), self.work)
            self.watcher.began(self.kit, self.builder.builder_name(), self.work.target, self.progress)
            self._run_all([*self.builder.load(self.work), *self.builder.build(self.work)])
            self.progress.close(failed=False)
            if self.work.target.is_file:
                stripe(Path(self.work.target.temporary))
                self._tell_left(put_in_place(Path(self.work.target.temporary), Path(self.work.target.name)))
            self.publish()
            built = True
        except KeyboardInterrupt:
            self.progress.stopped = True
            self._stopped(built)
            self._keep("interrupted", failure=self._failure("stopped by a signal"))
            raise
        except _Failed as failed:
            self._stopped(built)
            raise self._build_error(failed) from None
        except HpcgenError as error:
            self._stopped(built)
            self._keep("failed", failure=self._failure(str(error)))
            raise
        except OSError as failure:
            self._stopped(built)
            said = f"{failure.filename or self.work.scratch}: {failure.strerror or failure}"
            self._keep("failed", failure=self._failure(said))
            remedy = "free some space there, or set TMPDIR to another folder" if failure.errno == errno.ENOSPC else ""
            _cause, remedy = self.disks.told() or ("", remedy)
            raise OutputError(f"the build could not continue: {said}", remedy=remedy) from failure
        except BaseException:
            self._stopped(built)
            raise
        self._stopped(built)
        try:
            self._sign()
        finally:
            # An image that could not be signed is built all the same.
            record = self._keep("built", image=self.built())
        return record

    def publish(self) -> None:
        """Give the whole image its final name."""
        self._run_all(self.builder.publish(self.work))

    def image(self) -> ImageReference:
        """The image that has its final name."""
        return ImageReference(self.work.target.kind, self.work.target.name)

    def built(self) -> BuiltImage:
        """Size and digest of the result."""
        return self.builder.built_image(self.work.target)

    def _sign(self) -> None:
        """Sign the image itself, after the display has ended: a passphrase may be asked for."""
        if key := self.options.pgp_key:
            image = self.image()
            image.image_kind.sign(image.name, key)
            self.watcher.note(f"signed {image} with the OpenPGP key {key}")

    def _scratch(self) -> None:
        """Everything that the commands want to find."""
        self.work.scratch.mkdir()
        if self.work.context != self.kit.folder:
            bundle, quick = self.work.bundle, self.options.quick
            more = quick.archives if quick is not None else {}
            make_context(self.kit, self.work.context, bundle.folder if bundle else None, more)
        elif self.kit.copied:
            check_copied(self.kit.folder, self.kit.copied)
        if self.work.recipe.parent != self.kit.folder:
            self.work.recipe.write_text(self.kit.recipe, encoding="utf-8")
        for path, text in self.builder.more_files(self.work).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.mksquashfs.prepare()

    def _run_all(self, calls: Sequence[EngineCommand]) -> None:
        for call in calls:
            for left in reversed(range(TRIES)):
                status = self._run(call)
                if status == 0:
                    break
                if not left or not self._by_chance(status):
                    raise _Failed(call, status)
                self.progress.again()
            for line in self.output if call.told else ():
                self.watcher.note(line)

    def _run(self, call: EngineCommand) -> int:
        """The engine's exit status; what it prints goes to the log and is kept as ``output``."""
        self.write(self._public(f"+ {call.shown()}"))
        if call.step is not None:
            self.progress.take(Event("begin", call.step))
        for index in range(call.cached):
            self.progress.take(Event("cached", index))
        self.output.clear()
        return stream(
            call.argv(),
            self._line,
            env=self.mksquashfs.environment(call.env),
            cwd=call.cwd,
            on_tick=self._tick,
            on_update=self.written.update,
            keeps=self.keeps,
        )

    def _by_chance(self, status: int) -> bool:
        """Whether the engine failed for a reason that the next try is likely not to have; it is told."""
        from hpcgen.builders.remedies import find

        name = self.builder.builder_name()
        found = find(self.output, name, status)
        if found is None or not found[0].chance:
            return False
        cause, _remedy = found[0].text(name, found[1])
        note = f"{cause}; {name} is started again"
        self.write(f"hpcgen: {note}")
        self.watcher.note(note)
        return True

    def _tick(self) -> None:
        self.disks.look()
        self.written.look()
        self.watcher.tick()

    def _line(self, line: str) -> None:
        # Apptainer repeats each command of a step, with what its variables stand for.
        line = self._public(line)
        self.disks.said(line)
        self.write(line)
        # What would steer a terminal stays in the log alone.
        line = printable(line)
        self.output.append(line)
        for event in self.reader(line):
            self.progress.take(event)
        self.watcher.line(line)

    def _public(self, line: str) -> str:
        for secret in self.secrets:
            line = line.replace(secret, MASK)
        return without_secrets(line)

    def write(self, line: str) -> None:
        """A line of the log."""
        # A full disk below the log is no reason to stop the build.
        with contextlib.suppress(OSError):
            self.log.write(line + "\n")
            self.log.flush()

    def _step_ended(self, index: int) -> None:
        self.write(f"hpcgen: {self.progress.line(index)}")
        self.watcher.ended(index)

    def _stopped(self, built: bool) -> None:
        """What is left by the engine and by us goes."""
        self.progress.close(failed=not built)
        self.watcher.finished()
        if self.work.target.is_file:
            temporary = Path(self.work.target.temporary)
            self._tell_left(None if remove(temporary) else temporary)
        for call in self.builder.clean(self.work, built):
            status, text = query(call.argv(), {**os.environ, **call.env}, timeout_s=600)
            said = f"+ {call.shown()}\n{text.rstrip()}" + (f"\nstatus {status}" if status else "")
            self.write(self._public(said))

    def _tell_left(self, path: Path | None) -> None:
        """What of an image could not be removed."""
        if path is not None:
            note = f"{path} could not be removed: files in it belong to another user"
            self.write(f"hpcgen: {note}")
            self.watcher.note(note)

    def _build_error(self, failed: _Failed) -> BuildFailedError:
        """The failure as a record and as what the user reads."""
        failure = self._failure(failed.message(), failed.status)
        record = self._keep("failed", failure=failure)
        lines = [f"the image was not built: {failure.message}", f"  step: {failure.step}" if failure.step else ""]
        lines += [f"  cause: {failure.cause}" if failure.cause else ""]
        lines += [f"  | {line}" for line in failure.tail]
        lines += [f"  log: {record.log}"]
        return BuildFailedError("\n".join(line for line in lines if line), remedy=failure.remedy)

    def _failure(self, message: str, status: int | None = None) -> BuildFailure:
        # Read only where there is a failure.
        from hpcgen.builders.remedies import FULL_DISK, PLACES, failing_step, find

        index = self.progress.failing()
        step = "" if index is None else f"{index + 1} of {len(self.work.steps)}, {self.work.steps[index].title}"
        block = "" if index is None else self.work.steps[index].block.partition(" ")[0]
        about = {**PLACES, "built": self.work.target.name, "site": self.kit.plan.site.name}
        about |= {"block": block} if block not in ("", "hpcgen") else {}
        name = self.builder.builder_name()
        found = find(self.output, name, status) if status is not None else None
        cause, remedy = found[0].text(name, {**about, **found[1]}) if found is not None else ("", "")
        if found is None or found[0].name == FULL_DISK:
            cause, remedy = self.disks.told() or (cause, remedy)
        return BuildFailure(
            step=step,
            message=message,
            tail=[line for line in failing_step(self.output) if line.strip()][-TAIL:],
            cause=cause,
            remedy=remedy,
        )

    def _keep(
        self,
        result: Literal["built", "failed", "interrupted"],
        image: BuiltImage | None = None,
        failure: BuildFailure | None = None,
    ) -> BuildRecord:
        """The record, saved if it was wanted."""
        plan = self.kit.plan
        passing = self.options.log is None and not self.options.record
        record = BuildRecord(
            id=self.identity,
            hpcgen=__version__,
            started=self.started,
            site=plan.site.name,
            stack=plan.stack.name,
            partition=plan.partition,
            format=plan.format,
            content=self.kit.content,
            engine=self.builder.builder_name(),
            engine_version=self.builder.installed_version(),
            machine=platform.node(),
            result=result,
            seconds=round(time.monotonic() - self.clock, 1),
            command=plan.command,
            folder=str(Path.cwd()),
            notest=self.options.notest,
            lock=file_sha256(self.kit.folder / LOCK) if self.kit.lock else "",
            lock_signer=lock_signer(self.kit, self.options.signers),
            blocks={block.name: block.version for block in plan.blocks},
            artifacts=self.options.quick.origins if self.options.quick is not None else {},
            inputs=self.kit.inputs(),
            steps=self.progress.built_steps(),
            image=image,
            failure=failure,
            log="" if result == "built" and passing else str(Path(self.log.name).absolute()),
        )
        if self.options.record:
            self._save(record)
        return record

    def _save(self, record: BuildRecord) -> None:
        """What became of the image does not depend on whether its record can be written."""
        from hpcgen.builders.records.store import save, unwritten

        try:
            save(record)
        except OutputError as error:
            image = f"the image is built: {record.image.name}; its" if record.image is not None else "the build's"
            self.watcher.note(f"warning: {image} record could not be written: {unwritten(error)}")


class _Failed(Exception):
    """A command of the engine that ended with another status than 0."""

    def __init__(self, call: EngineCommand, status: int) -> None:
        self.call, self.status = call, status
        super().__init__(status)

    def message(self) -> str:
        words = [word for word in self.call.argv()[:2] if not word.startswith("-")]
        how = f"was ended by signal {-self.status}" if self.status < 0 else f"ended with status {self.status}"
        return f"{' '.join(words)} {how}"
