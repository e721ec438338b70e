"""Changes of a question that must not change its plan, over the shipped collection and random ones."""

from __future__ import annotations

import pytest

from tests.helpers import changed_questions, changed_tables, changed_worlds
from tests.helpers.shipped_plans import Rule, all_questions, differences

RULES = [*changed_questions.RULES, *changed_tables.RULES]


def held(rule: Rule, every: int) -> None:
    differing, count = differences(rule, all_questions()[::every])
    print(f"{rule.__name__}: {count} questions, {len(differing)} differences")
    assert count and not differing


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_what_does_not_matter_does_not_change_a_plan(rule: Rule) -> None:
    held(rule, every=1009)  # all of them in the slow tier


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_what_does_not_matter_does_not_change_any_plan(rule: Rule) -> None:
    held(rule, every=1)


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_what_does_not_matter_does_not_change_what_is_said_of_a_random_collection(first: int) -> None:
    assert not changed_worlds.differences(first, 10)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 250))
def test_what_does_not_matter_changes_nothing_for_thousands_of_collections(first: int) -> None:
    assert not changed_worlds.differences(first, 250)
