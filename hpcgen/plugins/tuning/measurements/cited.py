"""A row as part of an answer: the number, with all by which it can be judged."""

from __future__ import annotations

from hpcgen.core.model.fields import Record, Text
from hpcgen.plugins.tuning.measurements.records import (
    UNITS,
    Hardware,
    Measurement,
    Metric,
    Positive,
    layout_words,
    software_words,
)


class RowUsed(Record, frozen=True):
    """A row that an answer rests on: what was measured, in words, and the number.

    ``release`` of the framework, of both for a speedup; ``date``: the day of the run, or the source's own date;
    ``lacks``: what the row does not say, without which its number is a prediction for anything else.
    """

    label: Text
    metric: Metric
    value: Positive
    low: Positive | None = None
    high: Positive | None = None
    release: Text = ""
    date: Text = ""
    hardware: Text = ""
    source: Text = ""
    lacks: list[Text] = []

    @property
    def number(self) -> str:
        """The value with its interval and unit."""
        interval = f" ({self.low:.4g} to {self.high:.4g})" if self.low is not None and self.high is not None else ""
        return f"{self.value:.4g}{interval} {UNITS[self.metric]}"

    @property
    def about(self) -> str:
        """What else there is to know of it; the release is in the label where it is known."""
        unsaid = [f"{each} unknown" for each in self.lacks]
        return f"{self.hardware}; {', '.join([*unsaid, *filter(None, [self.date]), self.source or 'no source'])}"

    def __str__(self) -> str:
        return f"{self.number}: {self.label} ({self.about})"


def cited(row: Measurement) -> RowUsed:
    """A row as part of an answer."""
    against = f", against {software_words(row.baseline)}" if row.baseline is not None else ""
    label = f"{row.workload.name}, {software_words(row.software)}, {row.hardware.name}, {layout_words(row)}{against}"
    releases = [each.version or "unknown" for each in (row.software, row.baseline) if each is not None]
    return RowUsed(
        label=label,
        metric=row.metric,
        value=row.value,
        low=row.low,
        high=row.high,
        release="" if set(releases) == {"unknown"} else " against ".join(dict.fromkeys(releases)),
        date=date_of(row),
        hardware=hardware_words(row.hardware),
        source=source_of(row),
        lacks=lacks(row),
    )


def lacks(row: Measurement) -> list[str]:
    """What a row does not say of ``release``, ``batch`` and ``date``: it is a measurement of nothing exact then.

    A batch is asked of networks alone.
    """
    network = row.workload.kind in ("training", "inference")
    known = {
        "release": all(each.version for each in (row.software, row.baseline) if each is not None),
        "batch": row.workload.batch is not None or not network,
        "date": bool(date_of(row)),
    }
    return [name for name, said in known.items() if not said]


def date_of(row: Measurement) -> str:
    """The day on which it was measured, else the date of its source; "" where neither is known."""
    return row.measured or (row.source.as_of if row.source is not None else None) or ""


def source_of(row: Measurement) -> str:
    """Who says so: a paper, or the command that measured it; "" where the row does not say it."""
    return row.source.from_ if row.source is not None else row.command


def hardware_words(hardware: Hardware) -> str:
    """What computed: the GPU where one did, else the CPU; the machine's name where neither is known.

    Virtual machines have models without a number, such as ``Intel(R) Xeon(R) Processor``.
    """
    model = hardware.model
    if model and hardware.cpu and not any(map(str.isdigit, model)):
        model += f" ({hardware.cpu})"
    return hardware.gpu or model or hardware.cpu or hardware.name
