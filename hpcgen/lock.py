"""hpcgen.lock: the plan and its inputs as text that reviews well. A kit is known by it."""

from __future__ import annotations

from typing import Any

from hpcgen.assemble import Assembly
from hpcgen.model.plan import Plan
from hpcgen.steps import Archive, Image, Input, Wheels


def lock_text(plan: Plan, assembly: Assembly) -> str:
    """YAML: what was asked, what was chosen, every input with its hash or pinned version."""
    import yaml

    data: dict[str, Any] = {
        "lock": 1,
        "hpcgen": plan.hpcgen,
        "command": plan.command,
        "site": plan.site.name,
        "partition": plan.partition,
        "stack": plan.stack.name,
        "format": plan.format,
        "engine": plan.engine,
        "content": assembly.labels["io.hpcgen.content"],
        "images": {"builder": _image(assembly.builder.image), "final": _image(assembly.final.image)},
        "blocks": {b.name: _without_empty({"version": b.version, "options": b.options}) for b in plan.blocks},
        "environment": assembly.final.environment,
        "packages": assembly.packages,
        "inputs": [{"block": label, **_input(item)} for label, item in assembly.inputs if not isinstance(item, Image)],
    }
    # The C dumper writes the same bytes several times faster.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    body: str = yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True, width=110)
    return "# Written by hpcgen: the plan and everything its build takes from outside.\n" + body


def _image(image: Image) -> dict[str, str]:
    return {"name": image.name, "digest": image.digest or "not pinned"}


def _input(item: Input) -> dict[str, Any]:
    if isinstance(item, Archive):
        return {"archive": item.url, "sha256": item.sha256}
    if isinstance(item, Wheels):
        return {"wheels": item.name, "hashed": item.hashed, "requirements": list(item.requirements)}
    return {"image": item.name}


def _without_empty(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value not in ({}, [], "", None)}
