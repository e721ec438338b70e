"""Explanations of a word or a line of a kit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from hpcgen.core.errors import InputError, UnknownNameError, did_you_mean
from hpcgen.core.model.reasons import JOB_WORDS
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.traced import Subject, subjects_of
from hpcgen.planning.explain import blocks, conda_package, image, jobs, python_package
from hpcgen.planning.explain.case import ExplainCase, Explanation, Ground, value_at

_LINE = re.compile(r"(?P<file>.+):(?P<line>[1-9]\d{0,6})")


def explain(case: ExplainCase, word: str) -> list[Explanation]:
    """Explain a word, or a line (``FILE:LINE``) of the kit's recipe, job script or self-test.

    UnknownNameError: the kit has nothing of that name, with the nearest that it has. InputError: a line that the file
    does not have.
    """
    found = _LINE.fullmatch(word)
    if found is not None and (name := found["file"].rpartition("/")[2]) in case.files:
        return of_line(case, name, int(found["line"]))
    index = _index(case)
    subjects = index.get(word.strip(), []) or _packages(index, word)
    if not subjects and value_at(msgspec.to_builtins(case.plan.site), word) is not None:
        return [_fact(case, word)]
    if not subjects and value_at(msgspec.to_builtins(case.plan.stack), word) is not None:
        return [Explanation(kind="stack", name=word, grounds=[case.said_by_stack(word)])]
    if not subjects:
        message = f"nothing in the kit of {case.plan.stack.name} for {case.plan.site.name} is called {word!r}"
        known = sorted(name for name in [*index, *case.facts] if len(name) < 80)
        raise UnknownNameError(
            message, remedy=did_you_mean(word, known, "the same command without it") + _before_a_lock(case)
        )
    return [each for subject in subjects for each in of_subject(case, subject)]


def _before_a_lock(case: ExplainCase) -> str:
    """The remark that dependencies are not known before a lock."""
    plan = case.plan
    loose = plan.project is not None and plan.project.packages and not plan.project.hashed
    if case.lock is None and (loose or (plan.conda is not None and not plan.conda.packages)):
        return "; a lock lists the packages' own dependencies: `hpcgen lock`, then --from hpcgen.lock"
    return ""


def of_line(case: ExplainCase, name: str, line: int) -> list[Explanation]:
    """The subject of a line of a file."""
    text = case.files[name]
    lines = text.splitlines()
    if line > len(lines):
        raise InputError(f"{name} has {len(lines)} lines, not {line}", expected=f"{name}:1 to {name}:{len(lines)}")
    subject = subjects_of(text).get(line - 1)
    if subject is None:
        said = "a line of every such file, independent of facts, blocks and options"
        return [Explanation(kind="line", name=lines[line - 1].strip(), grounds=[Ground(kind="rule", text=said)])]
    return of_subject(case, subject)


def of_subject(case: ExplainCase, subject: Subject) -> list[Explanation]:
    """The explanation of one subject."""
    kind, name, stage = subject
    staged = {"variable": image.variable, "argument": image.argument, "step": image.step, "package": image.package}
    named = {
        "block": blocks.block,
        "option": blocks.option,
        "input": image.fetched,
        "flags": image.flags,
        "kept": image.kept,
        "copied": image.copied,
        "certificate": image.certificate,
        "label": image.label,
        "test": image.test,
        "bind": jobs.bind,
        "file systems": jobs.file_systems,
        "module": jobs.module,
        "engine": jobs.engine,
        "fact": _fact,
        "Python package": python_package.package,
        "Python package left out": python_package.not_installed,
        "conda package": conda_package.package,
    }
    alone = {"launch": jobs.launch, "command": jobs.command, "unset": jobs.unset}
    if kind in staged:
        return [staged[kind](case, name, stage)]
    if kind in named:
        return [named[kind](case, name)]
    if kind in alone:
        return [alone[kind](case)]
    if kind == "base":
        return [image.base(case, stage)]
    if kind == "job variable":
        return jobs.variable(case, name)
    if kind == "job":
        return [jobs.job(case, field) for field in name.split()]
    return [jobs.own(kind)]


def _fact(case: ExplainCase, path: str) -> Explanation:
    """A fact of the profile, and the blocks whose versions rest on it."""
    path = path.replace("*", case.plan.partition)
    bound = [
        block.name
        for block in case.plan.blocks
        if any(str(getattr(reason, "place", "")).startswith(path) for reason in block.reasons)
    ]
    return Explanation(kind="fact of the site", name=path, grounds=[case.fact(path)], see=bound)


def words(case: ExplainCase) -> dict[str, list[str]]:
    """All words that can be explained, by their kind."""
    found: dict[str, list[str]] = {}
    for kind, name, _stage in _subjects(case):
        known = found.setdefault(kind, [])
        if name and name not in known:
            known.append(name)
    return {kind: names for kind, names in found.items() if names}


def _index(case: ExplainCase) -> dict[str, list[Subject]]:
    """The subjects of each word; a whole line of the kit is a word too."""
    found: dict[str, list[Subject]] = {}
    own = {"engine": "engine", "launch": "launch", "command": "command", "preflight": "preflight", "image": "image"}
    for subject in _subjects(case):
        names = [subject.name or own.get(subject.kind, "")]
        if subject.kind == "job":
            names.append(JOB_WORDS.get(subject.name, subject.name))
        for name in filter(None, dict.fromkeys(names)):
            found.setdefault(name, []).append(subject)
    for name in python_package.left_out(case):
        found.setdefault(name, [Subject("Python package left out", name)])
    for name, stage in image.locked(case):
        known = found.setdefault(name, [])
        if Subject("package", name, stage) not in known:
            known.append(Subject("package", name, stage))
    found["base"] = found[case.assembly.final.image.pulled] = [Subject("base", "", "final")]
    found["engine"] = found[case.plan.engine] = [Subject("engine", case.plan.engine)]
    found["partition"] = [Subject("fact", "default_partition")]
    for text in case.files.values():
        lines = text.splitlines()
        for number, subject in subjects_of(text).items():
            # The user may paste a line of the job script, or the name of its option.
            line = lines[number].strip()
            for word in (line, *re.findall(r"^#[A-Z]+ (--?[A-Za-z-]+)", line)):
                found.setdefault(word, [subject])
    return found


def _packages(index: Mapping[str, list[Subject]], word: str) -> list[Subject]:
    """Packages that a word means as pip and conda read it: ``Scikit_Learn``, ``dask[array]>=2024``."""
    name = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", word.strip())
    found = index.get(normal_name(name[0]), []) if name is not None else []
    return [each for each in found if each.kind.startswith(("Python", "conda"))]


def _subjects(case: ExplainCase) -> Iterator[Subject]:
    """Everything that a kit has, each once."""
    seen: set[Subject] = set()
    for subject in _all_subjects(case):
        fields = subject.name.split() if subject.kind == "job" else []
        for each in [Subject("job", field) for field in fields] if len(fields) > 1 else [subject]:
            if each not in seen:
                seen.add(each)
                yield each


def _all_subjects(case: ExplainCase) -> Iterator[Subject]:
    for block in case.plan.blocks:
        yield Subject("block", block.name)
        yield from (Subject("block", virtual) for virtual in block.provides)
        yield from (Subject("option", f"{block.name}.{option}") for option in block.options)
    yield from case.subjects
    for part in case.parts:
        yield from (Subject("flags", name) for name in part.block.flags(part.ctx))
    for stage in ("builder", "final"):
        yield from (Subject("package", name, stage) for name in case.assembly.packages.get(stage, []))
    for _block, item in case.assembly.inputs:
        yield from (Subject("input", one.name) for one in item.pinned() if one.kind != "conda")
    yield from (Subject("Python package", name) for name in python_package.names(case))
    yield from (Subject("conda package", name) for name in conda_package.names(case))
    yield from (Subject("job variable", name) for name in case.start.variables.inside)
