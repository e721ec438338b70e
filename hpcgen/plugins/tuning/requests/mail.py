"""When a batch system is to write to the user: read from the words of one, written by the class of another.

Sources: sbatch(1), ``--mail-type``; qsub(1B) of Torque, ``-m`` (a, b, e, f, n, p).
"""

from __future__ import annotations

from collections.abc import Sequence

from hpcgen.backends.schedulers.base import Scheduler
from hpcgen.core.errors import InputError, nearest
from hpcgen.plugins.tuning.requests.records import Event, JobWishes

_LETTERS: dict[str, Event] = {"a": "fail", "b": "begin", "e": "end", "f": "fail"}
_NEVER = ("n", "p", "none")
_WORDS: dict[str, tuple[Event, ...]] = {
    "BEGIN": ("begin",),
    "END": ("end",),
    "FAIL": ("fail",),
    "REQUEUE": ("requeue",),
    "TIME_LIMIT": ("time_limit",),
    "ALL": ("begin", "end", "fail", "requeue"),
    "INVALID_DEPEND": (),
    "STAGE_OUT": (),
    "TIME_LIMIT_90": (),
    "TIME_LIMIT_80": (),
    "TIME_LIMIT_50": (),
    "ARRAY_TASKS": (),
}


def read_events(text: str) -> tuple[list[Event], list[str]]:
    """The events of Torque's letters (``abe``) or Slurm's words (``BEGIN,END``), and words that mean none of them.

    InputError: it is neither.
    """
    text = text.strip()
    if text.lower() in _NEVER:
        return [], []
    if text and all(letter in _LETTERS for letter in text):
        return list(dict.fromkeys(_LETTERS[letter] for letter in text)), []
    events: list[Event] = []
    left_out = []
    for word in (each.strip() for each in text.split(",")):
        if word not in _WORDS:
            expected = "Torque's letters a, b, e and f, such as abe, or Slurm's words, such as BEGIN,END,FAIL"
            raise InputError(
                f"{word!r} is not a notification", expected=expected, remedy=nearest(word.upper(), list(_WORDS))
            )
        events += _WORDS[word]
        left_out += [] if _WORDS[word] else [word]
    return list(dict.fromkeys(events)), left_out


def mail_directives(batch: Scheduler, job: JobWishes) -> tuple[list[str], Sequence[Event]]:
    """Options of a job's header, without the mark, and the events that the batch system has no word for."""
    unknown = [event for event in job.notify if event not in batch.mail_words]
    told = [event for event in job.notify if event in batch.mail_words]
    return batch.mail(told, job.email) if told and job.email is not None else [], unknown
