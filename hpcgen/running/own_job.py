"""A job of the batch system that calls this very hpcgen again, with what it needs of the shell that submits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hpcgen.backends.engines import builders
from hpcgen.backends.schedulers import Scheduler, scheduler_for
from hpcgen.core.model.image_paths import NOTEST
from hpcgen.core.model.site import Site
from hpcgen.core.support.own_python import own_module
from hpcgen.core.support.quoting import sh, sh_assign
from hpcgen.core.support.shell_words import line, loading

PASSED_ON = (
    "HPCGEN_COLLECTIONS",
    "HPCGEN_TRUST_COLLECTIONS",
    "HPCGEN_ENTRY_POINTS",
    "HPCGEN_RECORDS",
    "HPCGEN_CONFIG",
    "HPCGEN_ACCEPT_LICENCES",
    NOTEST,
)
"""hpcgen's own variables that such a job is given, written into the script, since many sites pass nothing on.

No variable that may hold a secret is among them.
"""


def own_call(words: Sequence[str]) -> str:
    """Shell that calls the same installation of hpcgen, with these words after ``hpcgen``."""
    return f"exec {line(own_module('hpcgen', *words))}"


def own_script(
    site: Site,
    directives: Sequence[str],
    about: str,
    call: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
) -> str:
    """The job's script.

    Parameters
    ----------
    directives: options of the header, without the batch system's mark.
    about: what the job does, in a sentence.
    call: lines of shell that end with :func:`own_call`.
    folder: where they are run.
    environment: what :func:`passed_on` gives.

    Raises
    ------
    InputError: a value that cannot be written in a script.
    """
    scheduler = scheduler_for(site.scheduler)
    modules = _modules(site)
    # VALET is there in a login shell alone.
    shell = "#!/bin/bash -l" if modules and site.system.modules == "valet" else "#!/bin/bash"
    lines = [shell, *(f"{scheduler.mark} {each}" for each in directives)]
    lines += ["", f"# {about}", *modules, "", "set -euo pipefail"]
    lines += [text for text in [scheduler.start] if text]
    lines += [f"cd {sh(str(folder))}"]
    lines += [f"export {sh_assign(name, value)}" for name, value in environment.items()]
    return "\n".join([*lines, "", *call]) + "\n"


def _modules(site: Site) -> list[str]:
    """Modules of the site and of its engines, before ``set -u``: their function may read what is not set."""
    modules = [*site.scheduler.modules]
    for engine in site.containers.engines.values():
        if engine.allowed:
            modules += engine.modules
    return loading(site.system.modules, dict.fromkeys(modules))


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables of an environment that such a job is given: hpcgen's own, and where engines keep images."""
    storage = (name for engine in builders().values() for name in engine.storage_variables)
    return {name: environment[name] for name in (*PASSED_ON, *storage) if environment.get(name)}


def task_number(scheduler: Scheduler, environment: Mapping[str, str]) -> int | None:
    """The number, from 0 on, of the array's task that a process runs in; None outside of an array."""
    task = environment.get(scheduler.task_variable or "-", "")
    return int(task) - scheduler.first_task if task.isdecimal() else None


def without_options(words: Sequence[str], options: Mapping[str, int]) -> list[str]:
    """Command-line words without some options; each is mapped to how many words its value takes."""
    kept: list[str] = []
    skip = 0
    for position, word in enumerate(words):
        if skip:
            skip -= 1
            continue
        if word == "--":
            return [*kept, *words[position:]]
        name, equals, _ = word.partition("=")
        if name in options:
            skip = 0 if equals else options[name]
            continue
        kept.append(word)
    return kept
