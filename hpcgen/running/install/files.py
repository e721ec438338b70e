"""Which programs of an image become commands of the host, and the files that make them so, by their paths."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError, PolicyError, Problem, Problems
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.stack import OfferedCommand, Program, Stack
from hpcgen.core.support.hashing import open_plain
from hpcgen.core.support.quoting import VERSION_PATTERN, Shell, lua, plain, sh, tcl
from hpcgen.core.support.quoting import command as words_of
from hpcgen.core.support.templates import Template
from hpcgen.core.support.writing import KitFile
from hpcgen.launch.command import command_script, command_start
from hpcgen.running.image_job import ImageJob
from hpcgen.running.install.manifest import SHARE

KERNEL = ("python3", "-m", "ipykernel_launcher", "-f")
"""What a kernel spec of IPython starts. Source: ipykernel's kernelspec.py, make_ipkernel_cmd."""
_HEAD = 1024
_TEMPLATES = Path(__file__).with_name("templates")
_wrapper = Template(_TEMPLATES / "wrapper.sh").fill
_tcl = Template(_TEMPLATES / "module.tcl").fill
_lua = Template(_TEMPLATES / "module.lua").fill


def files_of(
    job: ImageJob, prefix: Path, name: str, commands: list[InstalledCommand], *, kernel: bool = False
) -> dict[str, KitFile]:
    """All files below the prefix but the record of them.

    job: the image as the site starts it.
    prefix: an absolute path.
    name: what is installed is called so.
    kernel: a Jupyter kernel too.
    PolicyError: the site's engine starts no commands; a kernel of an image without Python.
    InputError: a path or a value that cannot be written in a script.
    """
    if ":" in str(prefix):
        raise InputError(
            f"{prefix} contains a colon, which separates folders in PATH",
            "--prefix",
            remedy="name a folder without a colon",
        )
    plan = job.plan
    own = prefix / SHARE / name
    found = {f"{SHARE}/{name}/start": KitFile(_script(job), executable=True)}
    for each in commands:
        text = _wrapper(
            command=each.name, name=name, start=sh(str(own / "start"), "the prefix"), program=sh(each.program)
        )
        found[f"bin/{each.name}"] = KitFile(text, executable=True)
    found |= completion_files(commands, name)
    found |= _modules(plan, prefix, name, commands, kernel)
    if kernel:
        if plan.block("python") is None:
            raise PolicyError(
                f"there is no Python in the image of {plan.stack.name}, and a Jupyter kernel needs one",
                remedy="build it with python_packages and the package ipykernel, or leave out --kernel",
            )
        found[f"{SHARE}/{name}/kernel"] = KitFile(_script(job, KERNEL), executable=True)
        found[f"share/jupyter/kernels/{name}/kernel.json"] = KitFile(_kernel_text(plan, own / "kernel"))
    return found


def written_for(prefix: Path, name: str) -> list[str]:
    """The files below a prefix that :func:`files_of` wrote for a name, by what is in them, without their record."""
    folders = ["bin", f"modulefiles/{name}", *(str(Path(each).parent) for each in PLACES.values())]
    found = [path for folder in folders for path in (prefix / folder).glob("*")]
    said = f"Written by hpcgen install; hpcgen uninstall {name} removes it.\n".encode()
    ours = [path for path in found if said in _start(path)]
    unmarked = (f"{SHARE}/{name}/start", f"{SHARE}/{name}/kernel", f"share/jupyter/kernels/{name}/kernel.json")
    ours += [path for each in unmarked if (path := prefix / each).is_file()]
    return sorted(str(path.relative_to(prefix)) for path in ours)


def _start(path: Path) -> bytes:
    try:
        with open_plain(path) as stream:
            return stream.read(_HEAD)
    except OSError:
        return b""


def version_of(plan: Plan) -> str:
    """The module's version: that of the stack's first block, which is what the stack is about."""
    first = plan.block(next(iter(plan.stack.blocks), ""))
    version = first.version if first is not None else ""
    return version if re.search(VERSION_PATTERN, version) else "1"


def devcontainer_text(job: ImageJob) -> str:
    """``devcontainer.json`` for editors that work inside of containers.

    Source: containers.dev, "Dev Container metadata reference".

    PolicyError: the image is in no store from which such editors start containers.
    """
    plan = job.plan
    how = command_start(plan, job.environment, job.inside)
    if not how.engine.dev_containers:
        raise PolicyError(
            f"editors start dev containers by Docker or Podman, and {job.image} is started by {how.engine.name}",
            remedy=f"convert it (hpcgen convert {job.image} podman:localhost/{plan.stack.name}:1) and install that",
        )
    groups = how.engine.start_words(how.call)[1:]
    # What only a script knows (the folder, the terminal), and what the editor has fields for, or does by itself.
    words = [word for group in groups if not any(isinstance(each, Shell) for each in group) for word in group]
    variables = {**how.variables.exported, **how.variables.inside}
    options, rest = [], iter(words)
    for word in rest:
        if word == "-e":
            next(rest)
        elif word not in how.engine.signal_words:
            options.append(word)
    data = {
        "name": f"{plan.stack.name} for {plan.site.name}",
        "image": job.image,
        "containerEnv": variables,
        "runArgs": options,
    }
    return json.dumps({key: value for key, value in data.items() if value}, indent=2, ensure_ascii=False) + "\n"


def _script(job: ImageJob, kernel: tuple[str, ...] = ()) -> str:
    return command_script(job.plan, job.environment, job.image, job.inside, named=job.named, kernel=kernel)


def _modules(plan: Plan, prefix: Path, name: str, commands: list[InstalledCommand], kernel: bool) -> dict[str, KitFile]:
    """The modulefile in Tcl, and the same in Lua."""
    title = plain(plan.stack.title, "the stack's title")
    names = " ".join(each.name for each in commands)
    words = {
        "help": f"{title}. Commands in its image, started as on {plan.site.name}: {names}",
        "title": f"{name}: {title}",
        "programs": str(prefix / "bin"),
    }
    kernels, place = str(prefix / "share/jupyter"), f"modulefiles/{name}/{version_of(plan)}"
    completed = str(prefix / "share") if any(each.words for each in commands) else ""
    in_tcl = _tcl("top", name=name, **{key: tcl(word, key) for key, word in words.items()})
    in_lua = _lua("top", name=name, quoted_name=lua(name), **{key: lua(word, key) for key, word in words.items()})
    return {
        place: KitFile(in_tcl + _more(_tcl, tcl, completed, kernels if kernel else "")),
        f"{place}.lua": KitFile(in_lua + _more(_lua, lua, completed, kernels if kernel else "")),
    }


def _more(fill: Callable[..., str], quoted: Callable[[str], str], completed: str, kernels: str) -> str:
    """What a modulefile also sets: where shells find words to complete, where Jupyter finds kernels."""
    text = fill("completions", share=quoted(completed)) if completed else ""
    return text + (fill("kernels", kernels=quoted(kernels)) if kernels else "")


def _kernel_text(plan: Plan, start: Path) -> str:
    """A kernel spec. Source: jupyter_client's documentation, "Making kernels for Jupyter", "Kernel specs"."""
    data = {
        "argv": [str(start), "{connection_file}"],
        "display_name": f"{plan.stack.name} ({plan.site.name})",
        "language": "python",
        # Signals reach the engine; the kernel itself knows better whom to interrupt inside.
        "interrupt_mode": "message",
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


# What the host's shells complete of a command: words that the stack names, beside files.
#
# The image's own completion scripts stay inside: they are a stranger's code. Each file is one declaration, in which
# nothing is run at a TAB.
#
# Sources: Bash Reference Manual, "Programmable Completion Builtins"; bash-completion's README, "Where should I put it
# to be sure that interactive bash shells will find it"; zshcompsys(1), "Autoloaded files"; fish's documentation, "Where
# to put completions".

PLACES = {
    "bash": "share/bash-completion/completions/{}",
    "zsh": "share/zsh/site-functions/_{}",
    "fish": "share/fish/vendor_completions.d/{}.fish",
}
"""Shell → where it looks for what completes a command, below the prefix."""
_fill = Template(Path(__file__).with_name("templates") / "completions.txt").fill


def completion_files(commands: Sequence[InstalledCommand], name: str) -> dict[str, KitFile]:
    """The files of all commands that have words, by their paths below the prefix.

    ``name``: what is installed is called so.
    """
    return {
        place.format(each.name): KitFile(_fill(shell, name=name, command=each.name, words=words_of(*each.words)))
        for each in commands
        if each.words
        for shell, place in PLACES.items()
    }


class InstalledCommand(msgspec.Struct, frozen=True):
    """A command of the host, and the program in the image that it starts: a name or an absolute path.

    ``words``: what shells complete after it, beside files.
    """

    name: str
    program: str
    words: tuple[str, ...] = ()


def commands_of(stack: Stack) -> list[InstalledCommand]:
    """The commands that a stack names; by default the programs that its jobs start."""
    if stack.commands:
        return [
            _command(each.program, each.words) if isinstance(each, OfferedCommand) else _command(each)
            for each in stack.commands
        ]
    started = [words[0] for words in (stack.run.command, *(step.command for step in stack.run.steps)) if words]
    return [_command(f"{PurePosixPath(each).name}={each}" if "/" in each else each) for each in dict.fromkeys(started)]


def wanted_commands(asked: Sequence[str], recorded: Stack, own: Stack | None, *, trust: bool) -> list[InstalledCommand]:
    """What is installed of an image.

    asked: the person's own words, ``NAME`` or ``NAME=PATH``, which decide alone where there are any.
    recorded: the stack in the image, which may be a stranger's.
    own: the person's stack of that name, if there is one.
    trust: the image's record may name programs of this host.
    InputError: a word is none, two commands have one name, or nobody who may names any.
    """
    if asked:
        found = [_command(each) for each in asked]
    elif own is not None or trust:
        found = commands_of(own if own is not None else recorded)
    else:
        programs = [each.program if isinstance(each, OfferedCommand) else each for each in recorded.commands]
        names = " ".join(f"--command {word}" for word in programs) or "--command NAME=/PATH/IN/THE/IMAGE"
        raise InputError(
            f"you have no stack {recorded.name}, and the image's own record must not decide which commands "
            "exist on this host",
            expected="your own stack with `commands`",
            remedy=f"{names}; or --stack FILE, or --trust-image if you trust the image's source",
        )
    problems = Problems()
    for name in sorted({each.name for each in found if [other.name for other in found].count(each.name) > 1}):
        problems.add(f"two commands would be called {name}", "commands", remedy="name one of them otherwise: NAME=PATH")
    if not found:
        problems.add(f"the stack {recorded.name} starts no program, and names no commands", remedy="--command NAME")
    problems.raise_as(InputError)
    return found


def _command(word: str, words: Sequence[str] = ()) -> InstalledCommand:
    try:
        record_from(word, Program)
    except msgspec.ValidationError as failure:
        raise InputError(
            Problem(
                f"{word!r} cannot be a command",
                expected="NAME, or NAME=/PATH/IN/THE/IMAGE, of letters, digits and . _ + -",
                remedy="name the commands: `commands` in the stack, or --command",
            )
        ) from failure
    name, _, path = word.partition("=")
    return InstalledCommand(name, path or name, tuple(words))
