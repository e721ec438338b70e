"""The program that a request brings itself: the stack that compiles it, and how its own file names it."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from hpcgen.catalog.secret_texts import secret_texts
from hpcgen.core.config.in_memory import FieldPlace, InMemory
from hpcgen.core.errors import InputError, Position, Problem, Problems
from hpcgen.core.model.plan import Finding
from hpcgen.core.model.stack import OptionValue, Stack, StackBlock
from hpcgen.core.support.quoting import command
from hpcgen.plugins.tuning.requests.records import Build, OptimiseRequest

Where = Callable[[tuple[str, ...]], Position]
BLOCK = "application"
_COMMIT, _SHA256 = re.compile("[0-9a-f]{40}"), re.compile("[0-9a-f]{64}")
_HERE = re.compile(r"\./([^/]+)")


def checked_build(
    request: OptimiseRequest, where: Where | None = None, again: str = ""
) -> tuple[OptimiseRequest, list[Finding]]:
    """The request whose own program is pinned and found, and what the user should know of that.

    where: the place of a field in the request's file.
    again: the command that reads the request.
    InputError: nothing pins the source, or the request has a secret.
    """
    problems = Problems(secret_texts(InMemory(request, "request")))
    if where is not None:
        problems = Problems(each.at(where(_field(each))) for each in problems)
    problems.raise_as(InputError)
    if request.build is None:
        return request, []
    build, run = request.build, request.run
    with problems.caught(None if where is None else (lambda: where(("build", "src")))):
        build = pinned(build, again)
    problems.raise_as(InputError)
    if request.container is not None:
        message = "build.sh builds the program in the image, in the folder of the job"
        return replace(request, build=build), [Finding(name="build", severity="note", message=message)]
    message = "the stack has the request's program too; with -o the kit has it as stack.yaml"
    found = [Finding(name="build", severity="note", message=message)]
    if request.hardware.accelerator not in (None, "none") and request.framework is None and request.stack is None:
        message = "no stack for own programs supports GPUs, so the job requests none"
        remedy = "name a `stack` that has it, such as your own with the block cuda"
        found.append(Finding(name="build", severity="warning", message=message, remedy=remedy))
    if not run.command:
        message = "the request builds a program and does not say which command starts it, so the stack's own is started"
        remedy = "add `run: {command: [PROGRAM]}`"
        found.append(Finding(name="build", severity="warning", message=message, remedy=remedy))
    elif local := _HERE.fullmatch(run.command[0]):
        message = f"{run.command[0]} is started as {local[1]}, from /opt/application/bin or /opt/application/src"
        found.append(Finding(name="build", severity="note", message=message))
        run = replace(run, command=[local[1], *run.command[1:]])
    return replace(request, build=build, run=run), found


def _field(problem: Problem) -> tuple[str, ...]:
    """The path of a problem's field."""
    place = problem.where
    return tuple(place.field.split(".")) if isinstance(place, FieldPlace) else ()


def pinned(build: Build, again: str = "") -> Build:
    """The build with address and pin apart; InputError where nothing pins it.

    ``again``: the command that reads the request; with ``--pin`` it pins it.
    """
    once = f"`{again} --pin` fetches it once and writes that into the request; " if again else ""
    address, hashed, pin = build.src.partition("#sha256=")
    if hashed and _SHA256.fullmatch(pin) and build.sha256 in (None, pin):
        build = replace(build, src=address, sha256=pin)
    address, at, pin = build.src.rpartition("@")
    if "/" in pin:
        at = ""
    if at and _COMMIT.fullmatch(pin) and build.commit in (None, pin):
        build = replace(build, src=address, commit=pin)
    elif at:
        address = address.rstrip("/")
        how = once + f"`{command('git', 'ls-remote', address, pin)}` says its commit"
        raise InputError(f"{pin!r} does not pin {address}: it can move", expected="URL@COMMIT", remedy=how)
    if (build.commit is None) != (build.sha256 is None):
        return build
    if build.commit is not None:
        raise InputError(f"both `commit` and `sha256` pin {build.src}", expected="one of the two")
    head = command("git", "ls-remote", build.src, "HEAD")
    raise InputError(
        f"nothing pins {build.src}",
        expected="URL@COMMIT for a git repository, URL#sha256=HASH for an archive or another file",
        remedy=once + f"`{head}` says the newest commit, `sha256sum {build.src.rpartition('/')[2]}` the hash of a file",
    )


def command_lines(build: Build) -> list[str]:
    """The commands that build a program, each on one line."""
    return [line.strip() for line in build.text.replace("\\\n", " ").split("\n") if line.strip()]


def with_application(stack: Stack, request: OptimiseRequest, ranks: bool) -> Stack:
    """The stack with the request's own program, which is compiled after all that the stack has.

    ``ranks``: whether the program is one of MPI, where no framework says how it is started.
    """
    build = request.build
    if build is None:
        return stack
    mpi = stack.run.mpi and (ranks or request.framework is not None)
    options: dict[str, OptionValue] = {"source": build.src, "commands": command_lines(build), "mpi": mpi}
    options |= {"commit": build.commit} if build.commit is not None else {"sha256": build.sha256}
    program = [*request.run.command, *request.run.arguments]
    run = replace(stack.run, mpi=mpi, **({"command": program, "steps": []} if program else {}))
    name = f"{stack.name[:48]}-{BLOCK}"
    blocks = {**stack.blocks, BLOCK: StackBlock(options=options)}
    title = f"Your own program, compiled in the image of {stack.name}"
    return replace(stack, name=name, title=title, blocks=blocks, run=run, notes=[], extends=None, suits=[])


def stack_text(stack: Stack) -> str:
    """A stack as a file."""
    from hpcgen.machine.detect.yaml_text import dump

    return dump(msgspec.to_builtins(stack))
