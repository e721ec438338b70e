"""The remedies that a conflict tells: each makes a plan of what was asked."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

import hpcgen
from hpcgen.core.errors import ConflictError, HpcgenError, Remedy
from tests.helpers.shipped.problem import Problem, Question
from tests.helpers.shipped.search import Search


def of_remedies(question: Question, site: hpcgen.Site, stack: hpcgen.Stack) -> Iterator[str]:
    """What is wrong with the remedies of a question that has no plan."""
    try:
        whole_plan(question, site, stack)
        yield "planned as a whole, where there is no plan"
    except ConflictError as error:
        for remedy in error.remedies:
            if remedy.text not in str(error):
                yield f"{remedy} is not told"
            yield from _fails(_after(question, remedy), site, remedy)
    except Exception as error:  # whatever else is raised is a difference
        yield f"crash: {error!r}"


def _fails(question: Question, site: hpcgen.Site, remedy: Remedy) -> Iterator[str]:
    if Search(Problem(question, site)).best() is None:
        yield f"there is no plan after all: {remedy.text}"
    try:
        whole_plan(question, site, hpcgen.load_stack(question.stack))
    except HpcgenError as error:
        yield f"{remedy.text}: {error}"


def whole_plan(question: Question, site: hpcgen.Site, stack: hpcgen.Stack) -> hpcgen.Plan:
    """The whole plan of a question, but for the contract."""
    return hpcgen.plan(
        site,
        stack,
        partition=question.partition,
        settings=question.settings,
        add=question.added,
        allow_unsupported=True,
    )


def _after(question: Question, remedy: Remedy) -> Question:
    """What is asked with a remedy's changes."""
    settings = {key: value for key, value in question.settings.items() if key not in remedy.settings}
    settings |= {key: value for key, value in remedy.settings.items() if value is not None}
    data = copy.deepcopy(question.stack_data)
    for key, value in remedy.stack.items():
        name, _, what = key.rpartition(".")
        data["blocks"][name] = {k: v for k, v in (data["blocks"][name] or {}).items() if k != what}
        data["blocks"][name] |= {what: value} if value is not None else {}
    return replace(
        question,
        partition=remedy.partition or question.partition,
        stack=data if remedy.stack else question.stack,
        settings=settings,
        added=[name for name in question.added if name not in remedy.without],
    )
