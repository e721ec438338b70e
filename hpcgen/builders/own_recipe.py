"""A Dockerfile or definition file of the user's: built by an engine that reads it, stored as the site's starts it."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from hpcgen.backends.engines import Engine, builder_for, builder_of, builders, engine_for, job_image
from hpcgen.backends.engines.building import EngineCommand, Target, Work, measured
from hpcgen.backends.engines.steps import definition_steps, dockerfile_instructions, dockerfile_steps
from hpcgen.backends.hardware.emulation import check_architecture, here
from hpcgen.builders import BuildOptions
from hpcgen.builders.display import Watcher
from hpcgen.builders.log import build_folder, log_file, note
from hpcgen.builders.preparing import Prepared
from hpcgen.builders.running import BuildRun
from hpcgen.core.errors import InputError, MissingToolError, Problem
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.record import BuildRecord, BuiltImage
from hpcgen.core.support.hashing import read_plain
from hpcgen.core.support.placing import PARTIAL
from hpcgen.core.support.processes import interruptible, require_program
from hpcgen.core.support.quoting import plain, sh
from hpcgen.images.convert import check_output, convert, parse_output, rows_for
from hpcgen.images.kinds import KINDS, every_kind
from hpcgen.images.reference import ImageReference
from hpcgen.kit.folder import KitFolder

MOST_BYTES = 1 << 20
_DEFINITION = re.compile(r"(?im)^[ \t]*bootstrap[ \t]*:")


class OwnRecipe(msgspec.Struct, frozen=True):
    """The file and the folder that its build sees, the plan of the site without blocks, and the file's text.

    ``defines``: it is a definition file of Apptainer's or Singularity's, not a Dockerfile.
    """

    file: Path
    context: Path
    plan: Plan
    text: str
    defines: bool = False

    def read_by(self, engine: type[Engine]) -> bool:
        """Whether an engine builds such files."""
        return engine.format == "singularity" if self.defines else engine.reads_dockerfiles

    @property
    def what(self) -> str:
        """For messages."""
        return "definition file" if self.defines else "Dockerfile"


class _Whole(msgspec.Struct, frozen=True):
    """A build that could begin, and the image that is made of the built one; None where the builder makes it itself."""

    prepared: Prepared
    output: ImageReference | None


def read_own(file: Path, context: Path | None, plan: Plan) -> OwnRecipe:
    """What is built; InputError for a file that is neither kind, and a context that is no folder."""
    folder = (context if context is not None else file.absolute().parent).absolute()
    if not folder.is_dir():
        raise InputError(f"the build context {folder} is not a folder", "--context", remedy="name the project's folder")
    try:
        data = read_plain(file, MOST_BYTES)
        text = data.decode("utf-8")
    except OSError as failure:
        said = failure.strerror or str(failure)
        raise InputError(f"{file} cannot be read: {said}", "--dockerfile", remedy="name a file") from failure
    except UnicodeDecodeError as failure:
        raise InputError(f"{file} is not text in UTF-8", "--dockerfile", remedy="name a Dockerfile") from failure
    if len(data) > MOST_BYTES:
        raise InputError(f"{file} has more than {MOST_BYTES} bytes", "--dockerfile", remedy="name a Dockerfile")
    defines = _DEFINITION.search(text) is not None
    if not defines and all(keyword != "FROM" for _, keyword, _ in dockerfile_instructions(text)):
        message = f"{file} has no FROM: it is not a Dockerfile"
        raise InputError(message, "--dockerfile", remedy="name a Dockerfile, or a definition file")
    return OwnRecipe(file.absolute(), folder, plan, text, defines)


def _unread(own: OwnRecipe, engine: Engine) -> Iterator[Problem]:
    """What an engine does not build of it."""
    for pattern, why in engine.not_read.items():
        for found in re.finditer(pattern, own.text, re.MULTILINE | re.IGNORECASE):
            line = own.text.count("\n", 0, found.end()) + 1
            other = "build with podman, buildah or docker (--engine), or rewrite it"
            remedy = "do it in %post" if own.defines else other
            yield Problem(f"{own.file}:{line}: {engine.builder_name()} does not build this: {why}", remedy=remedy)


def chosen_builder(own: OwnRecipe, asked: str | None) -> Engine:
    """The builder that was asked for, the site's own, or the first that is here and reads the file.

    InputError: the one that was asked for reads no Dockerfiles, or not this one. MissingToolError: none is here; the
    remedy says what to run elsewhere.
    """
    able = {name: found for name, found in builders().items() if own.read_by(found)}
    if asked is not None:
        engine = builder_for(asked)
        if engine.builder_name() not in able:
            raise InputError(
                f"{engine.name} reads no {own.what}s",
                "--engine",
                expected=" or ".join(able),
                remedy="build it with another engine; the result is converted for the site",
            )
        candidates = [type(engine)]
    else:
        own_builder = builder_of(own.plan.engine)
        candidates = sorted(able.values(), key=lambda each: (each is not own_builder, len(each.not_read)))
    problems = []
    for found in candidates:
        if shutil.which(found.builder_name()) is None:
            continue
        engine = found()
        why = engine.problem()
        unread = list(_unread(own, engine))
        if why is None and not unread:
            return engine
        problems += [why] if why is not None else unread
    if problems and all(each.message.startswith(str(own.file)) for each in problems):
        raise InputError(problems)
    names = [found.builder_name() for found in candidates]
    lacking = f"{' or '.join(names)} is needed to build a {own.what}, and is not on PATH"
    raise MissingToolError(problems or Problem(lacking, remedy=elsewhere(own)))


def elsewhere(own: OwnRecipe) -> str:
    """What to run on a machine with podman or Apptainer, and then here, as one line for each machine."""
    name = own.plan.stack.name
    made = job_image(own.plan)
    if own.defines:
        there = f"apptainer build {name}.sif {sh(own.file.name)}"
        after = f" as {sh(made)}" if made.endswith(".sif") else f", then `hpcgen convert {name}.sif {sh(made)}`"
        return f"on a machine that has apptainer, in a copy of {own.context}: `{there}`; bring {name}.sif here{after}"
    file = f"{name}.oci"
    there = f"podman build -f {sh(own.file.name)} -t {sh(name)} . && podman save --format oci-archive -o {file} {name}"
    return (
        f"on a machine that has podman, in a copy of {own.context}: `{there}`; bring {file} here, then "
        f"`hpcgen convert oci-archive:{file} {sh(made)}`"
    )


def _output(own: OwnRecipe, engine: Engine, asked: str | None) -> ImageReference:
    """The image that is to be there in the end: as it was asked for, or where jobs of the site look for it."""
    if asked is None and not engine_for(own.plan.engine).image_is_file:
        if own.defines:
            site = own.plan.site.name
            message = f"a definition file becomes a file, and {own.plan.engine} of {site} starts images of its store"
            raise InputError(message, str(own.file), remedy="-o NAME.sif, or write it as a Dockerfile")
        return ImageReference(engine.makes[0], job_image(own.plan))
    text = asked or job_image(own.plan)
    found = parse_output(text)
    if (
        asked is not None
        and not text.startswith(("/", ".", "~"))
        and found.kind == "directory"
        and "directory" not in engine.makes
    ):
        return ImageReference(engine.makes[0], text)  # as `hpcgen build -o NAME` has it with these builders
    return found


def prepare_own(own: OwnRecipe, options: BuildOptions, token: str, scratch: Path) -> _Whole:
    """Choose who builds it and where it goes, and check what can be checked before anything is started.

    InputError, MissingToolError, OutputError, PolicyError: see :func:`build_own`.
    """
    site = own.plan.site
    check_architecture(site, options.emulate)
    engine = chosen_builder(own, options.engine)
    output = _output(own, engine, options.output)
    direct = output.kind in engine.makes
    if direct:
        stored = output.image_kind.stored
        name = f"{output.kind}:{output.name}" if stored else output.name
        target = engine.target(own.plan, name, token)
    else:
        check_output(output, force=True)
        beside = Path() if output.image_kind.stored else Path(output.name).absolute().parent
        first = f"{beside}/{PARTIAL}own-{token}.sif" if own.defines else f"{engine.makes[0]}:hpcgen-own:{token}"
        target = engine.target(own.plan, first, token)
        # What lacks for it is said before an hour of building.
        rows_for(_first_image(target), output)
    for program, purpose in engine.requires_programs(target).items():
        require_program(program, purpose)
    if options.pgp_key:
        output.image_kind.check_signing_key(options.pgp_key)
    # Nobody has named the steps of its stages.
    stages = own.text.lower().count("from:")
    recipe = definition_steps(own.text, [()] * stages) if own.defines else dockerfile_steps(own.text, [])
    steps = [*recipe.steps, *engine.later_steps(target)]
    recipe = msgspec.structs.replace(recipe, steps=steps)
    emulated = engine.platform_words(site.system.architecture) if site.system.architecture != here() else ()
    work = Work(
        plan=own.plan,
        kit=scratch,
        recipe=scratch / ("own.def" if own.defines else "own.Dockerfile"),
        context=own.context,
        token=token,
        scratch=scratch / "tmp",
        target=target,
        steps=steps,
        cache=options.cache,
        options=(*emulated, *os.environ.get("HPCGEN_BUILD_OPTIONS", "").split(), *options.words),
        root=os.geteuid() == 0,
    )
    kit = KitFolder(own.context, own.plan, own.text, {})
    return _Whole(Prepared(kit, engine, work, recipe), None if direct else output)


def commands_of_own(whole: _Whole) -> list[str]:
    """The commands of the build as lines of shell, with those of the conversion."""
    builder, work = whole.prepared.builder, whole.prepared.work
    lines = [call.shown() for call in builder.build(work)]
    if work.target.is_file:
        lines.append(EngineCommand(("mv", work.target.temporary, work.target.name)).shown())
    if whole.output is not None:
        lines.append(f"hpcgen convert --force {sh(str(_first_image(work.target)))} {sh(str(whole.output))}")
        lines += [EngineCommand(("rm", "-f", work.target.name)).shown()] if work.target.is_file else []
    else:
        lines += [call.shown() for call in builder.publish(work)]
    return [*lines, *(call.shown() for call in builder.clean(work, True))]


def _first_image(target: Target) -> ImageReference:
    """What the builder has made when the conversion begins: a file has its name by then."""
    return ImageReference(target.kind, target.name if target.is_file else target.temporary)


class _OwnRun(BuildRun):
    """A build whose image may have to become one of another kind before it has its name."""

    final: ImageReference | None = None

    def publish(self) -> None:
        if self.final is None:
            super().publish()
            return
        self.watcher.note(f"convert it to {self.final}")
        try:
            image = _first_image(self.work.target)
            convert(image, self.final, force=True, on_step=lambda line: self.write(f"+ {line}"))
        finally:
            if self.work.target.is_file:
                Path(self.work.target.name).unlink(missing_ok=True)

    def image(self) -> ImageReference:
        return self.final or super().image()

    def built(self) -> BuiltImage:
        if self.final is None:
            return super().built()
        kind, name = self.final.kind, self.final.name
        if self.final.image_kind.stored:
            digest = self.final.image_kind.digest(name)
            return BuiltImage(kind=kind, name=name, bytes=self.final.bytes_on_disk(), digest=digest)
        return measured(kind, Path(name))


def build_own(own: OwnRecipe, options: BuildOptions, watcher: Watcher) -> BuildRecord:
    """Build it, store it as the site wants it, and keep the record. Errors as :func:`~hpcgen.builders.build`."""
    from hpcgen.builders.records.store import new_id

    started = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
    identity = new_id(started, own.plan.site.name, own.plan.stack.name)
    with build_folder() as (folder, lock):
        whole = prepare_own(own, options, identity.split("-")[0], folder)
        note(folder, whole.prepared.builder.builder_name(), whole.prepared.work.target)
        with log_file(options.log, options.record, identity) as log:
            run = _OwnRun(whole.prepared, options, identity, started, log, watcher)
            run.final, run.keeps = whole.output, (lock,)
            with interruptible():
                return run.go()


def own_name(text: str) -> str:
    """The name of an image and its job, from that of a file or folder."""
    plain(text, "the image's name")
    kind, _, rest = text.rstrip("/").partition(":")
    last = posixpath.basename(rest if kind in KINDS else text.rstrip("/")).partition(":")[0]
    last = next((last.removesuffix(end) for each in every_kind() for end in each.endings if last.endswith(end)), last)
    return re.sub(r"[^a-z0-9._-]+", "-", last.lower()).strip("._-")[:64] or "image"
