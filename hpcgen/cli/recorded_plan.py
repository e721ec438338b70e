"""The plan of a kit, a lock or an image that the user names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

if TYPE_CHECKING:
    from hpcgen.cli.options import PlanOptions
    from hpcgen.core.model.lock import Lock
    from hpcgen.core.model.plan import Plan


class RecordedPlan(msgspec.Struct, frozen=True):
    """A plan that was made before. ``lock``: the text of its lock; ``files``: those of its kit, by name."""

    plan: Plan
    lock: str
    files: dict[str, str] = {}

    def sealed(self, origin: str) -> Lock | None:
        """What pins the plan; None of one that is not locked. ``origin``: what messages call it."""
        from hpcgen.kit.lockfile.lock import is_sealed, parse_lock

        return parse_lock(self.lock, f"the lock of {origin}") if is_sealed(self.lock) else None


def named_plan(origin: str, options: PlanOptions) -> RecordedPlan:
    """As :func:`recorded_plan`, of what ``--from`` names; UsageError where options of a plan are given beside it."""
    if more := options.given(free=("notes",)):
        raise click.UsageError(f"{', '.join(more)}: {origin} contains a finished plan")
    return recorded_plan(origin)


def recorded_plan(origin: str) -> RecordedPlan:
    """Read a kit's folder, a lock (``FILE.lock``), a plan (``plan.json``) or an image, which is not started.

    Raises
    ------
    UnknownNameError, InputError: there is no such thing, or it has no plan that can be read.
    """
    path = Path(origin)
    if path.name == "plan.json":
        path = path.parent
    if (path / "plan.json").is_file():
        from hpcgen.kit.folder import read_kit, read_texts

        kit = read_kit(path)
        texts = read_texts(kit)
        return RecordedPlan(kit.plan, texts["hpcgen.lock"], texts)
    if path.suffix == ".lock":
        from hpcgen.kit.lockfile.lock import read_lock

        lock = read_lock(path)
        return RecordedPlan(lock.plan, lock.text)
    from hpcgen.images.recorded import recorded_kit
    from hpcgen.images.reference import parse_image

    found = recorded_kit(parse_image(origin))
    texts = {name: file.text for name, file in found.files.items()}
    return RecordedPlan(found.plan, texts["hpcgen.lock"], texts)
