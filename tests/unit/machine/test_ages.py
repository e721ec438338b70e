"""How old facts may be: by what they say, up to a day that is given."""

from __future__ import annotations

from datetime import date

import pytest

from hpcgen.core.config.provenance import Sourced
from hpcgen.core.model.fields import Source
from hpcgen.machine.ages import OldFact, doubtful, kind_of, old_facts

TODAY = date(2026, 11, 27)
QUEUES = "partitions.gpu.queues"


def fact(path: str, as_of: str | None, source_path: str = "", **source: str) -> Sourced:
    said = {"from_": "a page", "checked": "2026-11-27", "verified": "yes", **source}
    return Sourced(path, "x", Source(as_of=as_of, **said), source_path or path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "as_of", "old"),
    [
        (QUEUES, "2025-11-26", True),
        (QUEUES, "2025-11-27", False),
        (QUEUES, "2025-10", True),
        (QUEUES, "2025-11", False),
        (QUEUES, "2025", False),
        (QUEUES, "2024", True),
        ("partitions.gpu.gpu.driver", "2026-05-26", True),
        ("partitions.gpu.gpu.driver", "2026-05-27", False),
        ("scheduler.kind", "2025-01-01", False),
        ("partitions.gpu.gpu.model", "1999", False),
        ("partitions.gpu.memory.total_gb", "1999", False),
        ("mpi.abi", "1999", False),
    ],
)
def test_a_fact_is_old_when_its_source_is_older_than_its_kind_allows(path: str, as_of: str, old: bool) -> None:
    assert bool(old_facts([fact(path, as_of)], TODAY)) == old


def test_the_day_of_looking_makes_no_fact_young() -> None:
    assert old_facts([fact(QUEUES, "2023", checked="2026-11-27")], TODAY)
    undated = fact(QUEUES, "2026-11-27", dated_by="reading")
    assert old_facts([undated], TODAY) == [OldFact(QUEUES, "queues", None, 12)]


def test_the_leap_day_has_a_day_to_count_from() -> None:
    assert not old_facts([fact(QUEUES, "2027-03-01")], date(2028, 2, 29))
    assert old_facts([fact(QUEUES, "2027-02-28")], date(2028, 2, 29))


def test_facts_of_one_source_and_kind_are_told_as_one_and_what_ages_fastest_first() -> None:
    facts = [
        fact("mpi.version", "2019", "mpi"),
        fact("mpi.root", "2019", "mpi"),
        fact("mpi.abi", "2019", "mpi"),
        fact("partitions.gpu.gpu.driver", "2019"),
    ]
    assert old_facts(facts, TODAY) == [
        OldFact("partitions.gpu.gpu.driver", "drivers", "2019", 6),
        OldFact("mpi", "MPIs", "2019", 12),
    ]


def test_what_is_known_from_memory_is_told_apart_from_what_only_nobody_verified() -> None:
    facts = [
        fact("network.internet.login", None, "network.internet", from_="known from memory", verified="no"),
        fact("network.internet.compute", None, "network.internet", from_="known from memory", verified="no"),
        fact("partitions.gpu.cpu.cores", None, from_="hearsay", verified="no"),
        Sourced("system.os", "linux"),
        fact("mpi.abi", "2026"),
    ]
    found = doubtful(facts, TODAY)
    assert (found.from_memory, found.not_verified) == (["network.internet"], ["partitions.gpu.cpu.cores", "system.os"])
    assert found.old == []
    assert doubtful(facts, TODAY, lambda path: path == "mpi.abi").not_verified == []


def test_hardware_has_no_kind_that_ages() -> None:
    assert kind_of("partitions.gpu.cpu.cores") is None
    assert kind_of("partitions.gpu.gpu.drivers") is None
