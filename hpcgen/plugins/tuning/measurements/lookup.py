"""All measurements that are known, found by what was computed and where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from hpcgen.plugins.tuning.measurements.records import Measurement


class Measurements:
    """Rows in their order, with an index by workload and by framework."""

    def __init__(self, rows: Iterable[Measurement]) -> None:
        self.rows = list(rows)
        self._by_workload: dict[str, list[Measurement]] = defaultdict(list)
        self._by_framework: dict[str, list[Measurement]] = defaultdict(list)
        for row in self.rows:
            self._by_workload[row.workload.name].append(row)
            self._by_framework[row.software.framework].append(row)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.rows)

    @property
    def workloads(self) -> list[str]:
        """The names of all workloads, sorted."""
        return sorted(self._by_workload)

    def find(
        self,
        workload: str | None = None,
        framework: str | None = None,
        machine: str | None = None,
        metric: str | None = None,
        doubtful: bool = True,
    ) -> list[Measurement]:
        """The rows that agree with all that is given, in their order.

        ``machine``: the name of the hardware, its site, or ``SITE/PARTITION``. ``doubtful``: with those that nobody
        should trust.
        """
        if workload is not None:
            rows = self._by_workload.get(workload, [])
        elif framework is not None:
            rows = self._by_framework.get(framework, [])
        else:
            rows = self.rows
        return [
            row
            for row in rows
            if framework in (None, row.software.framework)
            and metric in (None, row.metric)
            and (machine is None or machine in machines(row))
            and (doubtful or not row.doubtful)
        ]


def machines(row: Measurement) -> list[str]:
    """Every name by which a row's machine is found."""
    hardware = row.hardware
    names = [hardware.name]
    if hardware.site:
        names.append(hardware.site)
        if hardware.partition:
            names.append(f"{hardware.site}/{hardware.partition}")
    return names
