"""The shipped tables: what is planned is what they say, and so is every reason; a conflict is one."""

from __future__ import annotations

import pytest

from tests.helpers.shipped_questions import differences

EACH = 1000


@pytest.mark.parametrize("first", [0, 122, 244])
def test_answers_are_what_the_tables_say(first: int) -> None:
    """From where the next stack is asked about; half of them about the shipped profiles."""
    outcomes, wrong = differences(first, 50, remedies=16)
    assert not wrong
    assert set(outcomes) == {"planned", "conflict", "refused"}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1000 + 20 * EACH, EACH))
def test_all_answers_are_what_the_tables_say(first: int) -> None:
    _, wrong = differences(first, EACH)
    assert not wrong
