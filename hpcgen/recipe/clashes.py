"""Requirements on Python packages that clash, as a problem: who requires what, in which line, and the way out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from hpcgen.blocks.base import Chosen
from hpcgen.blocks.steps import Wheels
from hpcgen.core.errors import Problem
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.project import BLOCK
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.units import some
from hpcgen.recipe.requirement_lines import requirements
from hpcgen.recipe.version_choice import VersionRule, can_hold

Installed = Sequence[tuple[PlannedBlock, Wheels]]


def clash_problem(
    rules: Sequence[VersionRule],
    others: Sequence[VersionRule],
    installed: Installed,
    known: Mapping[str, Sequence[str]],
    python: Chosen | None,
    architecture: str,
) -> Problem:
    """The problem of rules that cannot hold together.

    others: all rules, of which the demands on the package in question are told too if needed.
    installed: the lists of the environment, each with its block.
    known: the versions that could be chosen, by package.
    python, architecture: of the image, for the commands in remedies.
    """
    told = [rule for rule in rules if not _is_understood(rule, rules)] or list(rules)
    subject = _subject(told)
    missing = ""
    if _have_common(subject, told):
        # It is not these alone: what the user asks for is a candidate and no rule, or no list has what all allow.
        demands = [rule for rule in others if rule.package == subject and rule.of is None]
        told = list(dict.fromkeys([*told, *(rule for rule in demands if not rule.of_python)]))
        if _have_common(subject, told) and (versions := known.get(subject)):
            missing = f"; known versions: {some(list(versions), 8)}"
    texts = list(dict.fromkeys(map(rule_text, sorted(told, key=lambda rule: (rule.of is not None, not rule.place)))))
    return Problem(
        f"no version of {subject} suits all packages: {', '.join(texts)}{missing}",
        expected="one version of each package in a Python environment",
        remedy=_remedy([*rules, *told], installed, python, architecture),
    )


def _is_understood(rule: VersionRule, rules: Sequence[VersionRule]) -> bool:
    """That a block asks for its own release, where what that requires is told."""
    return rule.of is None and not rule.place and any(each.of and each.of[0] == rule.package for each in rules)


def _subject(rules: Sequence[VersionRule]) -> str:
    """The package that most rules are about; of these the one that the user names."""
    counts = [rule.package for rule in rules]
    return max(rules, key=lambda rule: (counts.count(rule.package), bool(rule.place), rule.package)).package


def _have_common(package: str, rules: Sequence[VersionRule]) -> bool:
    from packaging.specifiers import SpecifierSet

    joint = SpecifierSet()
    for rule in rules:
        if rule.package == package:
            joint &= rule.specifier
    return can_hold(joint)


def rule_text(rule: VersionRule) -> str:
    """Who says it, what, and where."""
    asked = f"{rule.package}{rule.specifier}"
    if rule.of is not None:
        own = rule.place or (f"of {rule.block}" if rule.block and rule.block.partition(" ")[0] != rule.of[0] else "")
        return f"{rule.by}{f' ({own})' if own else ''} requires {asked}"
    if rule.of_python:
        return f"{rule.by} has wheels for {asked} alone"
    return f"{rule.place or rule.by} asks for {asked}"


def _remedy(rules: Sequence[VersionRule], installed: Installed, python: Chosen | None, architecture: str) -> str:
    labels = dict.fromkeys(rule.by if rule.of is None else rule.block for rule in rules)
    lists = [(block, wheels) for block, wheels in installed if block.label in labels]
    blocks = list(dict.fromkeys(block.name for block, _ in lists if block.name != BLOCK))
    releases = " or ".join(f"--set {name}.version=RANGE" for name in blocks)
    other = (
        f"choose another release of {'one of them' if len(blocks) > 1 else blocks[0]} ({releases})" if blocks else ""
    )
    if any(rule.place for rule in rules):
        own = "change the version in your file (regenerate a lock with its tool)"
        return f"{own}, or {other}" if other else own
    anew = next(_commands(rules, lists, python, architecture), "")
    return f"{other or 'change the versions that you ask for'}, or leave one out{anew}"


def _commands(
    rules: Sequence[VersionRule], lists: Installed, python: Chosen | None, architecture: str
) -> Iterator[str]:
    """Commands that write a list again beside the demands of all others."""
    for block, wheels in reversed(lists):
        if python is None or not wheels.hashed or not wheels.asked or block.name == BLOCK:
            continue
        name = wheels.name.removesuffix("-needs").removesuffix(f"-{architecture}")
        held = {rule.package: rule.specifier for rule in rules if rule.of is None and rule.by != block.label}
        own = [str(each) for each in requirements(wheels.asked) if normal_name(each.name) not in held]
        where = [] if architecture == "x86_64" else ["--architecture", architecture]
        words = shlex.join(
            [
                "--python",
                python.version,
                *where,
                name,
                *own,
                *(f"{package}{specifier}" for package, specifier in held.items()),
            ]
        )
        yield f"; a list for both, if there is one, is written by: hpcgen --collection DIR wheels lock {words}"
