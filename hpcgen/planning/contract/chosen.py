"""Python packages that ``hpcgen lock`` chose for ranges, checked against the node like a user's own lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import PolicyError, Problems
from hpcgen.core.model.conda import PIP_LIST
from hpcgen.core.model.plan import Finding, Plan
from hpcgen.core.model.project import BLOCK
from hpcgen.planning.contract import packages
from hpcgen.planning.contract.verdict import case_of, findings_of, problems_of

OWN = (BLOCK, PIP_LIST)
"""Lists of the user's own packages; what blocks bring is for their tables to say."""


def hold_chosen(
    plan: Plan, catalog: Catalog, wheels: Mapping[str, Sequence[str]], *, allow_unsupported: bool = False
) -> list[Finding]:
    """Findings against the chosen packages, as warnings.

    Parameters
    ----------
    wheels: hashed lines by the name of their list, as a lock pins them.
    allow_unsupported: what is broken is a warning too.

    Raises
    ------
    PolicyError: all that is broken, where it is not allowed.
    """
    lines = [line for name in OWN for line in wheels.get(name, ())]
    if not lines:
        return []
    checks = packages.chosen(case_of(plan, catalog), lines)
    if not allow_unsupported:
        Problems(problems_of(checks, lambda path: f"{path} of the profile of {plan.site.name}")).raise_as(PolicyError)
    return findings_of(checks)


def was_overruled(plan: Plan) -> bool:
    """Whether the plan was requested although it breaks the contract."""
    return "--allow-unsupported" in plan.command.split()
