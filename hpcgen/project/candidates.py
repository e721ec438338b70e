"""The command lines by which people start a project, and which of them is taken.

Those of job scripts come first, then those of other scripts, of README files, of Makefiles and justfiles, and last the
scripts in R or Julia themselves.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec.structs import replace

from hpcgen.core.errors import InputError, Position
from hpcgen.core.model.fields import Record, Text
from hpcgen.core.model.own_project import JobFile, Launched
from hpcgen.core.support.package_names import normal_name
from hpcgen.project.command_words import (
    folders_of,
    framework_in,
    is_synopsis,
    linked_module,
    module_root,
    place_of,
    subject_of,
    without_framework,
)
from hpcgen.project.draft import APP, Draft
from hpcgen.project.found import Found, is_readme, scripts_of_readmes
from hpcgen.project.languages import script_jobs
from hpcgen.project.python_program import lists_python

Evidence = Literal["job script", "script", "README", "Makefile", "program"]
_KNOWN = ("lmp", "gmx", "gmx_mpi", "vllm")
_ASIDE = re.compile(
    r"(^|[/_.~-])((?:run)?_?(?:long)?tests?|docs?|ci|docker\w*|third_?party|benchmarks?|helpers?|dev|deprecated"
    r"|archive|contrib)([/_.-]|$)|(^|/)test[A-Z]"
)
_TOOLS = re.compile(r"(^|[/_.-])(tools?|utils?)([/_.-]|$)")
"""Folders of what helps, and in some projects of the programs themselves, which then are called so."""
_HELP = frozenset(("--help", "-h", "--version"))
_OF_ONE_NODE = re.compile(r"--?(machine|node)[_-]rank|\d{1,3}(\.\d{1,3}){3}|\btpu\b")
"""What a command line has that is meant for one of several nodes, or for TPUs."""
_PAGES = re.compile(r"^(docs?|documentation)/(?=.*\.(md|rst)$)", re.I)
"""Pages for users, in the folder where they usually are."""
_PREPARED = re.compile(r"\bpip3? install\b|\bray start\b")
"""What an image has, or a batch system starts."""
_BESIDE = re.compile(
    r"(^|[/_.-])(demos?|checks?|downloads?|get|fetch|pre_?process\w*|prepare\w*|prep|process|convert\w*|exports?|install|"
    r"setup|build|plots?|visuali\w+|view|eval\w*|tests?|valid\w*|bench\w*|stats?|metrics?|compute|compare|profile\w*|"
    r"merge|debug|gradio|serve\w*|web|app|unit|lint|format\w*|clean|data|dataset|examples?|tutorials?|notebooks?|hpo|"
    r"(git)?changelog)"
    r"(?=[/_.-]|$)"
)
_PREPARES = re.compile(r"get|fetch|download|pre_?process|prepare|convert|install|setup|build|make|create")
_MAIN = re.compile(r"(^|[/_.-])(main|train\w*|run|fine_?tune\w*|pre_?train\w*|solve\w*|simulat\w*|job)(?=[/_.-]|$)")
_MOST = 6


class CommandLine(Record, frozen=True):
    """A command line of the project.

    ``text``: as the file has it, variables of the script put in. ``evidence``: the kind of file.
    """

    text: Text
    where: Position
    evidence: Evidence


class _Ranked(NamedTuple):
    """``aside``: it is only offered, since it checks, shows or prepares something, or starts what is not here.

    ``certain``: a job script's is taken nevertheless where there is no other.
    """

    shown: CommandLine
    job: JobFile
    aside: bool
    certain: bool = False


def candidates_of(found: Found, draft: Draft) -> list[_Ranked]:
    """What starts the project, the likeliest first: of a job script all that it starts, of other files each line."""
    ranked: list[tuple[tuple[object, ...], _Ranked]] = []
    named = scripts_of_readmes(found.readmes, found.tree)
    pages = [each.file for each in found.readmes]
    for job in found.jobs:
        for lines in _together(job.launched):
            one = replace(job, launched=lines)
            order = _order(0, lines, job.file, named, pages, draft, found)
            compiled = _of_compiled(found, draft)
            # Of a compiled program a job starts that, a file of the project or a known program, or it is of a tool.
            aside = bool(order[0]) or (compiled and not any(_of_project(each, job, found, draft) for each in lines))
            of_file = _of_file(one, "job script", aside=aside)
            ranked.append(((aside, *order[1:]), of_file._replace(certain=not (aside and compiled))))
    for number, (kind, files) in enumerate(
        (("script", found.scripts), ("README", found.readmes), ("Makefile", found.recipes)), 1
    ):
        for file in files:
            lines_of = [_below(each, found) for each in file.launched] if kind == "README" else file.launched
            own = [each for each in lines_of if _of_project(each, file, found, draft)]
            for lines in _together(own) if kind == "script" else [[each] for each in own]:
                one = replace(file, launched=lines)
                order = _order(number, lines, file.file, named, pages, draft, found)
                if kind == "script" and _beside_the_program(lines, draft):
                    order = (True, *order[1:])
                of_file = _of_file(one, kind, aside=bool(order[0]))  # type: ignore[arg-type]
                ranked.append((order, of_file))
    for job in script_jobs(found, draft):
        shown = CommandLine(" ".join(job.launched[0].words), job.where, "program")
        ranked.append(((True, 9, job.file), _Ranked(shown, job, True)))
    ranked.sort(key=lambda each: each[0])
    if ranked and _is_far(ranked[0], named):
        depth = _depth(ranked[0][1], found)
        readme = [each for each in ranked if each[1].shown.evidence == "README" and not each[1].aside]
        nearer = [
            each for each in readme if _depth(each[1], found) < depth and not is_synopsis(each[1].job.launched[0])
        ]
        ranked = [*nearer[:1], *(each for each in ranked if each not in nearer[:1])]
    texts: dict[str, _Ranked] = {}
    for _, each in ranked:
        texts.setdefault(each.shown.text, each)
    return list(texts.values())


def _is_far(ranked: tuple[tuple[object, ...], _Ranked], named: list[str]) -> bool:
    """Whether it is a script of some part of the project, which no README starts."""
    shown = ranked[1].shown
    return shown.evidence == "script" and shown.where.file.count("/") > 1 and shown.where.file not in named


def _depth(ranked: _Ranked, found: Found) -> int:
    """How far below the project's folder the program is that a line starts."""
    each = ranked.job.launched[0]
    place = place_of(subject_of(each), found, folders_of(each, ranked.job.file.rpartition("/")[0]))
    return (place.removeprefix(f"{APP}/") or subject_of(each)).count("/")


def _below(each: Launched, found: Found) -> Launched:
    """A line whose program only one folder of the project has, as one of that folder."""
    program = next((word for word in without_framework(each.words)[0] if word.endswith(".py")), "")
    if each.folder or not program or place_of(program, found, ("",)):
        return each
    places = [path.path for path in found.tree.files if path.path.endswith(f"/{program.removeprefix('./')}")]
    return replace(each, folder=places[0][: -len(program.removeprefix("./")) - 1]) if len(places) == 1 else each


def _together(lines: list[Launched]) -> list[list[Launched]]:
    """What one job starts: all lines of a script, but each alone where one program is started in different sizes."""
    started = [each for each in lines if each.launcher]
    sizes = {tuple((fact.field, fact.value) for fact in each.facts) for each in started}
    if len(sizes) > 1 and len({subject_of(each) for each in started}) == 1:
        return [[each] for each in started]
    return [lines] if lines else []


def _beside_the_program(lines: list[Launched], draft: Draft) -> bool:
    """Whether a script of a compiled project starts other things than the program that it is about."""
    main = next(iter(draft.programs), "")
    return bool(main) and not lists_python(draft) and not any(main in word for each in lines for word in each.words)


def _of_compiled(found: Found, draft: Draft) -> bool:
    """Whether the project is a program that is compiled, beside which scripts in Python are tools."""
    return found.build is not None and not lists_python(draft)


def _order(
    kind: int, lines: list[Launched], file: str, named: list[str], pages: list[str], draft: Draft, found: Found
) -> tuple[object, ...]:
    launched = any(each.launcher or framework_in(each.words).name for each in lines)
    aside = _aside(lines, file, kind, named, draft, found) or all(_of_pages(each, file, found) for each in lines)
    # What the README starts comes before others of its kind, in that order.
    place = named.index(file) if file in named else len(named)
    order = {each: number for number, each in enumerate(pages)}
    if kind == 0:
        return (aside, 0 if launched else 1, place, file.count("/"), len(file), file)
    # Of a README the order counts, not the length of its name.
    main = any(_MAIN.search(subject_of(each)) for each in lines)
    vague = any(each.strange for each in lines)
    of_one_node = any(_OF_ONE_NODE.search(word) for each in lines if not each.launcher for word in each.words[1:])
    synopsis = any(map(is_synopsis, lines))
    ready = (vague, not main, of_one_node, synopsis, not launched, _lacks_file(lines, found))
    # What a README leads to comes behind all that README files show.
    behind = kind == 2 and not is_readme(file)
    where = (order.get(file, 0), file.count("/"), 0 if kind > 1 else len(file), file)
    return (aside, kind + 1, behind, place, *ready, *where)


_FILE = re.compile(r"(?:[\w.+-]+/)*[\w+-]+\.(?!\d+$)\w{1,6}")


def _lacks_file(lines: list[Launched], found: Found) -> bool:
    """Whether an argument is a file that the project does not have, by its name in whatever folder."""
    names = {each.path.rpartition("/")[2] for each in found.tree.files}
    words = [word for each in lines for word in each.words[1:] if _FILE.fullmatch(word)]
    return any(word.rpartition("/")[2] not in names for word in words)


def _aside(lines: list[Launched], file: str, kind: int, named: list[str], draft: Draft, found: Found) -> bool:
    if all(not _HELP.isdisjoint(each.words) for each in lines):
        return True
    subjects = [*map(subject_of, lines)]
    # Of a template only whoever starts it knows the program.
    if all("$" in each or _PREPARED.search(line.words[-1]) for each, line in zip(subjects, lines, strict=True)):
        return True
    if kind < 2 and file in named:
        # Of a script that the README starts, the last word of its name says what it is for, and the first what it does.
        words = re.split(r"[._-]", file.rpartition("/")[2])
        helps = all(_TOOLS.search(each) and not _MAIN.search(each.rpartition("/")[2]) for each in subjects)
        return bool(_BESIDE.search(words[-2]) or _PREPARES.fullmatch(words[0]) or helps)
    if kind == 0 and _PREPARES.match(re.split(r"[._-]", file.rpartition("/")[2])[0]):
        return True
    # Of the program that the project makes, or is called after, the name says nothing.
    own = {next(iter(draft.programs), "")}
    if found.table.name is not None:
        own.add(normal_name(found.table.name.text))
    names = [each.rpartition("/")[2] for each in subjects]
    subjects = ["" if own & {name, normal_name(name)} else each for name, each in zip(names, subjects, strict=True)]
    return bool(
        all(_BESIDE.search(subject) or _set_aside(subject) for subject in subjects)
        or (kind == 1 and _BESIDE.search(re.sub(r"(^|/)examples?/", "/", file)))
        or (_ASIDE.search(_PAGES.sub("", file)) if kind == 2 else _set_aside(file))
    )


def _of_pages(each: Launched, file: str, found: Found) -> bool:
    """Whether it is a program that makes the project's pages."""
    place = place_of(subject_of(each), found, folders_of(each, file.rpartition("/")[0]))
    return re.match(r"(docs?|documentation)/", place.removeprefix(f"{APP}/")) is not None


def _set_aside(path: str) -> bool:
    return bool(_ASIDE.search(path) or (_TOOLS.search(path) and not _MAIN.search(path.rpartition("/")[2])))


def _of_file(job: JobFile, evidence: Evidence, *, aside: bool) -> _Ranked:
    main = [each for each in job.launched if each.launcher] or job.launched[-1:]
    shown = CommandLine(" ".join(main[0].words)[:300], main[0].where, evidence)
    return _Ranked(shown, job, aside)


def _of_project(each: Launched, file: JobFile, found: Found, draft: Draft) -> bool:
    """Whether a line that no directive stands above starts a program of the project, not one that installs it."""
    words = without_framework(each.words)[0]
    folders = folders_of(each, file.file.rpartition("/")[0])
    name = words[0].rpartition("/")[2]
    if words[:2] == ["bash", "-c"]:
        return True
    subject = [word for word in words[1:] if word == "-m" or not word.startswith("-")]
    if re.fullmatch(r"python[\d.]*|julia|Rscript", name):
        if subject[:1] == ["-m"]:
            module = subject[1] if len(subject) > 1 else ""
            return bool(module) and (module_root(module, found) is not None or bool(linked_module(module, found)))
        return bool(subject) and bool(place_of(subject[0], found, folders))
    return (
        bool(draft.program(name))
        or name in _KNOWN
        or name in found.table.scripts
        or bool(place_of(words[0], found, folders))
    )


def chosen(candidates: list[_Ranked], asked: str, top: Path) -> _Ranked | None:
    """The one that is asked for, else the likeliest; None where all there are check, show or prepare something.

    InputError: there is none of this number or with this text.
    """
    if not asked:
        return next((each for each in candidates if not each.aside or each.certain), None)
    if asked.isdecimal():
        found = candidates[int(asked) - 1 : int(asked)] if int(asked) else []
    else:
        found = [each for each in candidates if asked in each.shown.text or asked == each.shown.where.file]
    if not found:
        lines = "".join(f"\n  {number}: {_line(each)}" for number, each in enumerate(candidates[:_MOST], 1))
        there = f"; there are{lines}" if candidates else ""
        raise InputError(
            f"no command line of this project is {asked!r}{there}",
            str(top),
            "the number of one, or a part of its text",
            "`hpcgen init --json --dry-run` lists them as `commands`",
        )
    return found[0]


def likeliest(candidates: list[_Ranked], asked: str) -> JobFile | None:
    """The same before anything is known of what is compiled, which may have more of them."""
    try:
        taken = chosen(candidates, asked, Path())
    except InputError:
        return None
    return taken.job if taken is not None else None


def _line(each: _Ranked) -> str:
    text = each.shown.text if len(each.shown.text) < 80 else f"{each.shown.text[:80]}…"
    return f"{each.shown.where.file}:{each.shown.where.line}: {text}"


def say_others(draft: Draft, taken: _Ranked | None) -> None:
    """A remark for each that is not taken, with the number that ``--command`` takes."""
    others = [(number, each) for number, each in enumerate(draft.candidates, 1) if each is not taken]
    for number, each in others[:_MOST]:
        text = each.shown.text if len(each.shown.text) < 80 else f"{each.shown.text[:80]}…"
        draft.remark(f"`hpcgen init --command {number}` takes {text} instead", each.shown.where)
    if others[_MOST:]:
        draft.remark(
            f"{len(others) - _MOST} more command lines: `hpcgen init --json --dry-run` lists them as `commands`"
        )
