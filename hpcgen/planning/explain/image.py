"""The contents of an image: base, variables, packages, steps, folders, labels, tests and downloads."""

from __future__ import annotations

from collections.abc import Iterator

from hpcgen.core.model.lock import StagePackages
from hpcgen.planning.explain.case import ExplainCase, Explanation, Ground, parts_in
from hpcgen.recipe.bind_targets import bind_targets, bound_file_systems
from hpcgen.recipe.stages import Stage


def _stage(case: ExplainCase, name: str) -> Stage:
    return case.assembly.builder if name == "builder" else case.assembly.final


def base(case: ExplainCase, stage: str) -> Explanation:
    """The image that a stage starts from."""
    image, first = _stage(case, stage).image, case.parts[0]
    claimed = [part for part in case.parts if part.block.base_image(part.ctx, stage) is not None]
    part = claimed[0] if claimed else first
    row = case.release(part.planned.name, part.planned.version, "images")
    grounds = [Ground(kind="release", text=f"the image of {part.label} for this stage", place=row)]
    if image.digest:
        if case.lock is not None:
            grounds.append(Ground(kind="lock", text=f"{image.digest}, pinned by the lock"))
        else:
            grounds.append(Ground(kind="rule", text=f"{image.digest}: the dated build that the release table names"))
    else:
        grounds.append(Ground(kind="rule", text="its tag may move: no digest is known"))
    return Explanation(
        kind="base image", name=image.pulled, stage=stage or "final", grounds=grounds, see=[part.planned.name]
    )


def variable(case: ExplainCase, name: str, stage: str) -> Explanation:
    """A variable of a stage: every block that sets it, or puts a folder into it."""
    grounds = []
    for part in parts_in(case, stage):
        said = part.block.environment(part.ctx)
        plain, paths = [said.both], [said.paths]
        if stage == "builder":
            plain, paths = [*plain, said.build], [*paths, said.build_paths]
        texts = [f"{part.label} sets it to {values[name]}" for values in plain if name in values]
        texts += [f"{part.label} puts {':'.join(folders[name])} in front" for folders in paths if name in folders]
        grounds += [case.method(part.planned.name, "environment", text) for text in texts]
    if name == "PATH":
        grounds.append(Ground(kind="rule", text="the folders of every Linux come last"))
    value = _stage(case, stage).environment.get(name, "")
    return Explanation(kind="variable of the image", name=name, value=value, stage=stage, grounds=grounds)


def flags(case: ExplainCase, name: str) -> Explanation:
    """A variable with compiler flags, which only code of the user's own is compiled with."""
    said = {part.label: (part, value) for part in case.parts if (value := part.block.flags(part.ctx).get(name))}
    compiler = case.plan.block("gnu")
    fact = case.fact("partitions.*.cpu.target", f"as {compiler.label} is told of it" if compiler is not None else "")
    grounds = [case.method(part.planned.name, "flags", f"{label} sets it") for label, (part, _) in said.items()]
    rule = "commands and files of the build that say -O or a CPU themselves have that instead"
    value = " ".join(dict.fromkeys(value for _, value in said.values()))
    options = [(part.planned, name) for part, _ in said.values() for name in ("fast_math", "flags")]
    see = [f"{planned.name}.{name}" for planned, name in options if name in planned.options]
    return Explanation(
        kind="compiler flags",
        name=name,
        value=value,
        stage="builder",
        grounds=[*grounds, fact, Ground(kind="rule", text=rule)],
        see=see,
    )


def argument(case: ExplainCase, name: str, stage: str) -> Explanation:
    """A build argument, which does not stay in the image."""
    value = _stage(case, stage).arguments.get(name, "")
    if name == "SOURCE_DATE_EPOCH":
        grounds = [Ground(kind="lock", text="the newest date of the package indexes and images that it pins")]
    elif "proxy" in name.lower():
        grounds = [case.fact("network.proxy", "known while building, not in the image")]
    else:
        given = [part for part in case.parts if name in part.block.environment(part.ctx).arguments]
        grounds = [case.method(part.planned.name, "environment", f"{part.label} needs it") for part in given]
    return Explanation(kind="build argument", name=name, value=value, stage=stage, grounds=grounds)


def step(case: ExplainCase, name: str, stage: str) -> Explanation:
    """A step of a build: the block that makes it, its files, and what it fetches."""
    label, _, about = name.partition(": ")
    part = next((part for part in case.parts if part.label == label), None)
    if part is None:
        return Explanation(kind="step", name=name, stage=stage, grounds=_own_step(case, label, about, stage))
    method = "finish" if stage == "final" else "build"
    grounds = [case.method(part.planned.name, method, f"{part.label} does this")]
    runs = [run for of, run in _stage(case, stage).steps if of == label and run.about == about]
    for run in runs:
        grounds += [Ground(kind="block", text=f"{file.path} of the kit becomes {file.target}") for file in run.files]
        grounds += [
            Ground(kind="block", text=f"it installs the list {made.name}") for made in run.installs if made.name
        ]
    commands = "\n".join(command for run in runs for command in run.commands)
    for _block, item in (each for each in case.assembly.inputs if each[0].name == part.planned.name):
        for one in item.pinned():
            if one.name in commands or one.origin in commands:
                row = case.release(part.planned.name, part.planned.version)
                grounds.append(Ground(kind="release", text=f"{one.kind} {one.name}, pinned by {one.by}", place=row))
    return Explanation(kind="step", name=name, stage=stage, grounds=grounds, see=[part.planned.name])


def _own_step(case: ExplainCase, label: str, about: str, stage: str) -> list[Ground]:
    """Why hpcgen itself has a step."""
    if label == "distribution":
        names = case.assembly.packages[stage]
        return [Ground(kind="rule", text=f"the packages that blocks ask for, at once: {' '.join(names)}")]
    if label == "site":
        systems = bound_file_systems(case.plan.site)
        mpi = case.plan.site.mpi is not None and case.plan.site.mpi.binds
        facts = [case.fact(f"file_systems.{name}.path") for name in systems.values()]
        facts += [case.fact("mpi.binds")] if mpi else []
        why = "folders of the host are bound onto these, and images are read-only while they run"
        return [Ground(kind="rule", text=f"{why}: {' '.join(bind_targets(case.plan))}"), *facts]
    return [Ground(kind="rule", text=f"hpcgen does this in every image: {about}")]


def fetched(case: ExplainCase, name: str) -> Explanation:
    """An archive, a Python package or a git tree that a block takes from outside."""
    grounds, value = [], ""
    for block, item in case.assembly.inputs:
        for one in item.pinned():
            if one.name == name:
                value = one.kind
                text = f"{block.label} takes it from {one.origin}, pinned by {one.by}"
                grounds.append(Ground(kind="release", text=text, place=case.release(block.name, block.version)))
    see = sorted({block.name for block, item in case.assembly.inputs if any(one.name == name for one in item.pinned())})
    return Explanation(kind="input", name=name, value=value, grounds=grounds, see=see)


def kept(case: ExplainCase, path: str) -> Explanation:
    """A folder that the final stage takes from the builder, or has empty."""
    grounds = []
    for part in parts_in(case, "final"):
        runtime = part.block.runtime(part.ctx)
        said = "keeps these files of the build" if path in runtime.copies else "needs this folder"
        if path in (*runtime.copies, *runtime.folders):
            grounds.append(case.method(part.planned.name, "runtime", f"{part.label} {said}"))
    see = [part.planned.name for part in case.parts if path in part.block.runtime(part.ctx).copies]
    return Explanation(kind="folder of the image", name=path, stage="final", grounds=grounds, see=see)


def copied(case: ExplainCase, target: str) -> Explanation:
    """A file or folder of the stack's own."""
    number = next(index for index, each in enumerate(case.plan.stack.copy) if each.to == target)
    return Explanation(kind="files of the stack", name=target, grounds=[case.said_by_stack(f"copy.{number}.from")])


def certificate(case: ExplainCase, target: str) -> Explanation:
    """A certificate of the site."""
    return Explanation(kind="certificate", name=target, grounds=[case.fact("network.ca_certificates")])


def label(case: ExplainCase, name: str) -> Explanation:
    """A label of the image."""
    rules = {
        "io.hpcgen.content": "the plan hash covers everything that determines the image: same hash, same image",
        "io.hpcgen.kit": "the folder of the kit in the image, which describes it",
    }
    rule = Ground(kind="rule", text=rules.get(name, "every image has this"))
    return Explanation(kind="label", name=name, value=case.assembly.labels.get(name, ""), grounds=[rule])


def test(case: ExplainCase, name: str) -> Explanation:
    """A test of the self-test."""
    part = next((part for part in case.parts if name.startswith(f"{part.label}: ")), None)
    if part is None:
        return Explanation(kind="test", name=name, grounds=[Ground(kind="rule", text="a test of every image")])
    said = case.method(part.planned.name, "test", f"{part.label} proves by it that it works in the image")
    return Explanation(kind="test", name=name, grounds=[said], see=[part.planned.name])


BLOCK = "os_packages"


def package(case: ExplainCase, name: str, stage: str) -> Explanation:
    """A package of a stage: the blocks that ask for it, or that others need it, or that the base has it."""
    manager = str(case.parts[0].ctx.base.release.values["package_manager"])
    grounds = []
    for part in parts_in(case, stage):
        wanted = part.block.packages(part.ctx)
        uses = [("to run", wanted.run), *([("to build", wanted.build)] if stage == "builder" else [])]
        for use, names in uses:
            if name in names.get(manager, []):
                grounds.append(case.method(part.planned.name, "packages", f"{part.label} asks for it {use}"))
    grounds += _asked(case, name)
    base = case.plan.blocks[0]
    version = ""
    pinned = _pinned(case, stage)
    if pinned is not None and name in pinned.added:
        pin = pinned.added[name]
        version = pin.version
        if not grounds:
            grounds.append(Ground(kind="rule", text="requested packages need it"))
        grounds.append(Ground(kind="lock", text=f"sha256:{pin.sha256}"))
        grounds.append(Ground(kind="lock", text=f"from {pin.url or 'the packages that the base comes with'}"))
    elif pinned is not None and name in pinned.present:
        version = pinned.present[name]
        grounds.append(Ground(kind="rule", text=f"the base image {base.label} has it already"))
    else:
        text = f"the version that {manager} finds for {base.label} on the day of the build; `hpcgen lock` pins it"
        grounds.append(Ground(kind="rule", text=text))
    mirrors = case.plan.site.network.mirrors
    for path, known in (("apt", mirrors.apt), ("dnf", mirrors.dnf)):
        if path == manager and base.name in known:
            grounds.append(case.fact(f"network.mirrors.{path}.{base.name}"))
    return Explanation(
        kind="package of the distribution", name=name, value=version, stage=stage, grounds=grounds, see=["base"]
    )


def locked(case: ExplainCase) -> Iterator[tuple[str, str]]:
    """Packages of a lock with their stages: those that are asked for, what they need, and what the base has."""
    if case.lock is not None:
        for stage, pinned in case.lock.pins.packages.items():
            yield from ((name, stage) for name in (*pinned.added, *pinned.present))


def _pinned(case: ExplainCase, stage: str) -> StagePackages | None:
    found = case.lock.pins.packages if case.lock is not None else {}
    return next((pinned for of, pinned in found.items() if of == stage), None)


def _asked(case: ExplainCase, name: str) -> Iterator[Ground]:
    """The line of the stack, and that of the file from which `hpcgen init` took it."""
    for number, word in enumerate(case.option_words(BLOCK, "packages")):
        if word == name:
            yield case.said_in_list(BLOCK, "packages", number, f"--add apt:{name}")
            where = case.asked_files.apt.get(name)
            if where is not None:
                shown = case.asked_files.shown(f"{where.file}:{where.line}", BLOCK)
                yield Ground(kind="file", text=f"{where.file} names it", place=shown)
