"""Mail about a job, in the words of every batch system."""

from __future__ import annotations

import pytest

from hpcgen.backends.schedulers import SCHEDULERS
from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.requests.mail import mail_directives, read_events
from hpcgen.plugins.tuning.requests.records import Event, JobWishes


@pytest.mark.parametrize(
    ("text", "events", "left_out"),
    [
        ("abe", ["fail", "begin", "end"], []),
        ("af", ["fail"], []),
        ("BEGIN,END", ["begin", "end"], []),
        ("ALL", ["begin", "end", "fail", "requeue"], []),
        ("FAIL,TIME_LIMIT_80,STAGE_OUT", ["fail"], ["TIME_LIMIT_80", "STAGE_OUT"]),
        ("n", [], []),
        ("NONE", [], []),
    ],
)
def test_letters_and_words_are_read(text: str, events: list[Event], left_out: list[str]) -> None:
    assert read_events(text) == (events, left_out)


@pytest.mark.parametrize("text", ["events", "abx", "BEGIN;rm", "", "begin,END"])
def test_other_text_is_no_notification(text: str) -> None:
    with pytest.raises(InputError, match="is not a notification"):
        read_events(text)


@pytest.mark.parametrize(
    ("scheduler", "lines", "unknown"),
    [
        ("slurm", ["--mail-type=BEGIN,END,FAIL,REQUEUE", "--mail-user=user@example.org"], []),
        ("torque", ["-m beaf", "-M user@example.org"], ["requeue"]),
        ("pbs", ["-m bea", "-M user@example.org"], ["requeue"]),
        ("gridengine", ["-m bea", "-M user@example.org"], ["requeue"]),
        ("flux", [], ["begin", "end", "fail", "requeue"]),
    ],
)
def test_each_batch_system_has_its_own_words(scheduler: str, lines: list[str], unknown: list[Event]) -> None:
    wishes = JobWishes(email="user@example.org", notify=["begin", "end", "fail", "requeue"])
    assert mail_directives(SCHEDULERS.find(scheduler)(), wishes) == (lines, unknown)
