"""Drift: a profile held against the machine that it speaks of.

:func:`examine` is pure: what was seen, and what is there, comes in as data. The parts: ``look`` sees a machine with the
profile's own MPI, ``present`` looks for the paths and modules that the profile names, ``node`` finds out which
partition a node belongs to, ``values`` compares two values by what they mean, ``rules`` says which facts are compared
how and how grave a difference is, ``dependents`` what rests on a fact.
"""

from __future__ import annotations

import re

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.provenance import Fact, facts_of
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.doctor.examine import examine
from hpcgen.machine.doctor.look import seen_for, which_partition
from hpcgen.machine.doctor.present import look
from hpcgen.machine.doctor.report import Drift, Report, Unseen

__all__ = ["Drift", "Report", "Unseen", "examine", "report_on"]


def report_on(
    catalog: Catalog,
    name: str,
    machine: Machine,
    *,
    partition: str | None = None,
    queue: str = "",
    login: bool = False,
) -> Report:
    """Compare the profile of a name, or in a file, with a machine.

    Parameters
    ----------
    partition: which kind of node it is; found out if None. queue: the partition of the job that this runs in.
    login: it is a login node: what the profile says of compute nodes is left out.

    Raises
    ------
    InputError: the profile is wrong. UnknownNameError: there is no such profile or partition.
    """
    site = catalog.site(name)
    document = catalog.site_document(name)
    seen = seen_for(machine, site)
    chosen = ("", "") if login else which_partition(site, seen, partition, queue)
    facts = _of_nodes(facts_of(document), chosen[0])
    return examine(site.name, document.name, facts, seen, look(machine, facts, login), *chosen)


def _of_nodes(facts: list[Fact], partition: str) -> list[Fact]:
    """Without the fabrics that these nodes do not have: those of other partitions, and the site's beside their own."""
    own = f"partitions.{partition}.fabric."
    has_own = any(fact.path.startswith(own) for fact in facts)
    other = re.compile(r"partitions\..+\.fabric\.")
    return [
        fact
        for fact in facts
        if fact.path.startswith(own) or not (other.match(fact.path) or (has_own and fact.path.startswith("fabric.")))
    ]
