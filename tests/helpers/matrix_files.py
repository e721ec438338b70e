"""The distinct files of all kits that ``hpcgen matrix`` says can be rendered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, PolicyError
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.fleet.matrix import ANY_ACCOUNT, Combination, combinations

EMBEDDED = re.compile(r"<< 'HPCGEN_DOCKERFILE'\n(.*?\n)HPCGEN_DOCKERFILE\n", re.DOTALL)


@dataclass
class Files:
    """Text by the combination that it was first made for, of each kind; and what failed.

    ``dockerfiles`` of Docker's builders, ``charliecloud`` the Dockerfiles inside of scripts for ch-image.
    """

    dockerfiles: dict[str, str] = field(default_factory=dict)
    charliecloud: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    kits: int = 0


def meaning(text: str) -> str:
    """A file without what readers pass over and every kit has of its own: comments, labels."""
    lines = [
        line for line in text.splitlines() if line.startswith("# shellcheck") or not re.match(r"\s*(#|LABEL )", line)
    ]
    return "\n".join(line for line in lines if "io.hpcgen." not in line)


def name_of(which: Combination) -> str:
    """A combination as the name of a file."""
    return "-".join(part for part in (which.stack, which.way, which.site, which.partition) if part)


@cache
def files() -> Files:
    """Render all that plans, once in a process."""
    catalog = Catalog()
    found = Files()
    seen: set[tuple[str, str]] = set()
    for which in combinations(catalog):
        try:
            for kind, name, text in _of(catalog, which):
                key = (kind, meaning(text))
                if key not in seen:
                    seen.add(key)
                    getattr(found, kind)[f"{name_of(which)}.{name}"] = text
            found.kits += 1
        except (ConflictError, PolicyError):
            continue
        except Exception as error:
            found.failed.append(f"{name_of(which)}: {type(error).__name__}: {error}")
    return found


def _of(catalog: Catalog, which: Combination) -> Iterator[tuple[str, str, str]]:
    """Kind, name and text of the files of one kit."""
    site, stack = catalog.site(which.site), catalog.stack(which.stack)
    asked = {"partition": which.partition, "settings": which.settings, "job": ANY_ACCOUNT}
    documents = {
        "site_document": catalog.site_document(which.site),
        "stack_document": catalog.stack_document(which.stack),
    }
    plan = make_plan(catalog, site, stack, **asked, **documents)  # type: ignore[arg-type]
    for name, file in make_kit(plan, catalog).files.items():
        text = file.text
        if name == "Dockerfile":
            yield "dockerfiles", name, text
        elif name.endswith(".def"):
            yield "definitions", name, text
        elif "/" not in name and text.startswith("#!"):
            yield "scripts", name, text
            for part in EMBEDDED.findall(text):
                yield "charliecloud", "Dockerfile", part
