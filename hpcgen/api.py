"""The public functions. Reading happens in ``load_*``, everything after it is pure; ``support.writing`` writes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpcgen.catalog.catalog import Catalog, collections_from_environment
from hpcgen.kit.kit import Kit, make_kit
from hpcgen.model.job import JobRequest
from hpcgen.model.plan import Plan
from hpcgen.model.site import Site
from hpcgen.model.stack import Stack
from hpcgen.plan.planning import make_plan

_default: Catalog | None = None
_lock = threading.Lock()


def default_catalog() -> Catalog:
    """The catalog of ``$HPCGEN_COLLECTIONS``, installed collections and the built-in one; made once."""
    global _default
    with _lock:
        if _default is None:
            _default = Catalog(collections_from_environment())
        return _default


def load_site(name: str | Path, *, catalog: Catalog | None = None) -> Site:
    """A site profile by name, or from a file if ``name`` is a path that ends in .yaml."""
    return (catalog or default_catalog()).site(str(name))


def load_stack(name: str | Path, *, catalog: Catalog | None = None) -> Stack:
    """A stack recipe by name, or from a file if ``name`` is a path that ends in .yaml."""
    return (catalog or default_catalog()).stack(str(name))


def plan(
    site: Site,
    stack: Stack,
    *,
    settings: Sequence[str] = (),
    job: JobRequest | None = None,
    catalog: Catalog | None = None,
    **choices: Any,
) -> Plan:
    """Resolve a stack for a site; the further keywords are those of :func:`hpcgen.plan.planning.make_plan`."""
    return make_plan(catalog or default_catalog(), site, stack, settings=settings, job=job, **choices)


def render(plan: Plan, *, catalog: Catalog | None = None) -> Kit:
    """The kit of a plan: ``.recipe``, ``.files``, ``.notices``. Writes nothing, uses no network."""
    return make_kit(plan, catalog or default_catalog())
