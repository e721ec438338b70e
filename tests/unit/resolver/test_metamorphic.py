"""Changes of a question that must not change its plan, over the shipped collection."""

from __future__ import annotations

import pytest

from tests.helpers import changed_questions, changed_tables
from tests.helpers.shipped_plans import Rule, all_questions, differences

RULES = [*changed_questions.RULES, *changed_tables.RULES]


def held(rule: Rule, every: int) -> None:
    differing, count = differences(rule, all_questions()[::every])
    print(f"{rule.__name__}: {count} questions, {len(differing)} differences")
    assert count and not differing


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_what_does_not_matter_does_not_change_a_plan(rule: Rule) -> None:
    held(rule, every=97)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_what_does_not_matter_does_not_change_any_plan(rule: Rule) -> None:
    held(rule, every=1)
