"""What a pipeline does every week: holds the images against new advisories, and the release tables against releases.

What there is to be done is one issue, which is written over as long as it is open.
"""

from __future__ import annotations

from pathlib import Path

from hpcgen.core.support.extras import requirements_of
from hpcgen.core.support.quoting import command
from hpcgen.core.support.templates import Template
from hpcgen.plugins.fleet.pipelines.options import WORK, PipelineOptions

TITLE = "Images of the fleet that have to be built again"
ADVISORIES = ("Debian", "Ubuntu", "PyPI")
"""Ecosystems whose advisories ``hpcgen affected`` can judge, as OSV calls them."""
_fill = Template(Path(__file__).with_name("templates") / "watch.sh").fill


def watch() -> str:
    """The script that leaves the report where there is something to do."""
    return _fill(
        "watch",
        work=WORK,
        resolver=command(*(requirements_of("lock") or ["uv"])),
        ecosystems=" ".join(ADVISORIES),
        advisories=" ".join(f"--advisory {WORK}/osv/{name}" for name in ADVISORIES),
    )


def issue(service: str) -> str:
    """The script that makes an issue of the report, for ``github`` or ``gitlab``."""
    return _fill(service, work=WORK)


def watched(options: PipelineOptions) -> dict[str, str]:
    """Variables of these scripts: the issue's title, and the fleet's own tables."""
    return {"HPCGEN_TITLE": TITLE, **({"HPCGEN_COLLECTIONS": options.collections} if options.collections else {})}
