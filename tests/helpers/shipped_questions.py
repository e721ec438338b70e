"""Random questions on the shipped tables, put to hpcgen's resolver: ``python -m tests.helpers.shipped_questions FIRST
COUNT`` says how it answered, and prints the first answers that are not what the tables say."""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter

from tests.helpers.shipped.judge import judge
from tests.helpers.shipped.questions import question

SHOWN = 40


def differences(first: int, count: int, remedies: int = 5) -> tuple[Counter[str], dict[int, list[str]]]:
    """How questions were answered, and what is wrong with the answers, by their numbers.

    ``remedies``: of so many questions one is asked for remedies too.
    """
    outcomes: Counter[str] = Counter()
    wrong: dict[int, list[str]] = {}
    for number in range(first, first + count):
        try:
            outcome, found = judge(question(number), number % remedies == 0)
        except Exception:  # a mistake of the checker is one too
            outcome, found = "failed", [traceback.format_exc()]
        outcomes[outcome] += 1
        if found:
            wrong[number] = found
    return outcomes, wrong


if __name__ == "__main__":
    began = time.monotonic()
    outcomes, wrong = differences(int(sys.argv[1]), int(sys.argv[2]))
    for number, found in list(wrong.items())[:SHOWN]:
        print(f"{number}: {question(number)}", *found, sep="\n  ")
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    print(f"{outcomes.total()} questions: {told}; {len(wrong)} differ; {time.monotonic() - began:.0f} s")
    sys.exit(bool(wrong))
