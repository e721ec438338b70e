"""The tests of an image as checks for ReFrame: one Python file, which needs neither hpcgen nor the kit.

Source: ReFrame's documentation, "Test API Reference" and "Tutorial" (fixtures, parameters, sanity functions), of
release 4; tried with 4.10.4.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from hpcgen._version import __version__
from hpcgen.blocks.rank_test import rank_words
from hpcgen.core.errors import InputError
from hpcgen.core.model.image_paths import SELFTEST
from hpcgen.core.model.performance import PRINTED_IN, TIMES, tolerance
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.recipe_facts import RankTest
from hpcgen.core.support.templates import Template
from hpcgen.recipe.selftest import MARK, PASSED, SKIPPED
from hpcgen.running.image_job import ImageJob, direct_script
from hpcgen.running.verify.contract import no_ranks
from hpcgen.running.verify.several import RANK_MARK, LaunchShape, command_of, pattern_of, shape_of
from hpcgen.running.verify.starts import with_layout

_fill = Template(Path(__file__).with_name("templates") / "reframe.txt").fill
_CHECK = re.compile(r"(?m)^(?:check|begin|check_with (?:'[^'\n]*'|[^\s']+)) ('.*)")


class Mapping(msgspec.Struct, frozen=True):
    """ReFrame's names: of the system's partition (``daint:gpu``), and of the environments."""

    systems: list[str]
    environments: list[str]


def reframe_checks(
    job: ImageJob,
    selftest: str,
    rank_tests: Sequence[RankTest],
    names: Mapping,
    command: str,
    file: str,
    timeout_s: float,
) -> str:
    """The Python file.

    job: as :func:`hpcgen.running.verify.job_of_tests` lays it out.
    selftest: the text of the image's self-test.
    rank_tests: those of the image's recipe.json, for a job of several nodes.
    command: which writes the file, and ``file``, its name: for its head.
    timeout_s: seconds for each start.
    InputError: the self-test has no test. PolicyError: as :func:`hpcgen.running.image_job.direct_script`.
    """
    plan = job.plan
    starts: list[str] = []
    if not no_ranks(plan):
        size = plan.job.nodes, plan.job.ranks_per_node, plan.job.threads_per_rank
        start = with_layout(job, rank_words(job.plan), size[1], nodes=size[0])
        starts += _start("ranks find each other", start, size, rf"rank \d+ of {size[0] * size[1]} on ", "", None)
    if plan.job.nodes > 1:
        for test in rank_tests:
            shape = shape_of(test, plan.job)
            if shape is not None:
                start = with_layout(job, command_of(test), shape.ranks, nodes=shape.nodes, threads=shape.threads)
                size = shape.nodes, shape.ranks, shape.threads
                figure = _figure(plan, test, shape)
                starts += _start(f"{test.block}: {test.name}", start, size, rf"(?m)^{RANK_MARK} ", test.expect, figure)
    tests = names_of_tests(selftest)
    if not tests:
        raise InputError("the image's self-test has no test that could be told apart", remedy="build the image again")
    return _fill(
        title=_plain(plan.stack.name),
        site=_plain(f"{plan.site.name}, partition {plan.partition}"),
        version=__version__,
        command=_plain(command),
        file=_plain(file),
        systems=repr(names.systems),
        environments=repr(names.environments),
        selftest=_lines(direct_script(with_layout(job, [SELFTEST, "--lines"], 1))),
        tests=[f"{name!r}," for name in tests],
        ranks=_fill("ranks", starts=starts) if starts else "",
        time_limit=f"{timeout_s:.0f}",
        mark=MARK,
        passed=PASSED,
        skipped=SKIPPED,
    )


def names_of_tests(selftest: str) -> list[str]:
    """The names of a self-test's tests, in order, each once."""
    found: dict[str, None] = {}
    for match in _CHECK.finditer(selftest):
        words = shlex.shlex(match[1], posix=True)
        words.whitespace_split, words.commenters = True, ""
        # The command behind it may go on in the next line.
        with contextlib.suppress(ValueError):
            found[next(words)] = None
    return list(found)


def _figure(plan: Plan, test: RankTest, shape: LaunchShape) -> dict[str, object] | None:
    """What ReFrame holds against a reference: the figure of the profile, where the layout is that of the test."""
    fact = plan.site.partitions[plan.partition].performance.get(test.measure) if test.measure is not None else None
    if test.measure is None or fact is None or (fact.nodes, fact.ranks_per_node) != (shape.nodes, shape.ranks):
        return None
    unit, share = PRINTED_IN[test.measure], tolerance(test.measure, fact)
    bounds = (None, share) if test.measure in TIMES else (-share, None)
    return {
        "name": test.measure,
        "pattern": pattern_of(test.figures, test.measure, fact.at),
        "reference": (fact.in_unit(unit), *bounds, unit),
    }


def _start(
    name: str,
    job: ImageJob,
    size: tuple[int, int, int],
    pattern: str,
    expect: str,
    figure: dict[str, object] | None,
) -> list[str]:
    nodes, ranks, threads = size
    return [
        f"{name!r}: {{",
        f'    "nodes": {nodes},',
        f'    "ranks": {ranks},',
        f'    "threads": {threads},',
        f'    "pattern": {pattern!r},',
        f'    "expect": {expect!r},',
        f'    "figure": {figure!r},',
        '    "script": "\\n".join(',
        "        [",
        *(f"            {line}" for line in _lines(direct_script(job))),
        "        ]",
        "    ),",
        "},",
    ]


def _lines(script: str) -> list[str]:
    """A text as lines of a Python list."""
    return [f"{line!r}," for line in [*script.splitlines(), ""]]


def _plain(text: str) -> str:
    """Text for the head of the file, which cannot end it."""
    return text.replace("\\", "/").replace('"', "'")


def systems_of(words: Iterable[str]) -> list[str]:
    """ReFrame's names of systems that were given, every one without.

    InputError: one is no name of a system or of a partition of it.
    """
    given = list(words)
    for word in given:
        if not re.fullmatch(r"[A-Za-z0-9_*.+-]{1,100}(:[A-Za-z0-9_*.+-]{1,100})?", word):
            raise InputError(
                f"{word!r} is not a ReFrame system", "--system", "SYSTEM or SYSTEM:PARTITION, such as daint:gpu"
            )
    return given or ["*"]
