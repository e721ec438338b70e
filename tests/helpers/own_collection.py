"""A collection as a user has one: a profile with a parent, a stack, a block with its table, a wheel list and a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

BLOCK = '''"""A block of a test's collection."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Input, Run, TextFile, Wheels, run


class Ours(Block):
    """What the test's group installs.  Source: https://example.org"""

    name = "ours_tool"
    needs = (need("python"),)

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheel."""
        return [self._wheels(ctx)]

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it, with its settings."""
        settings = TextFile("files/settings/ours.conf", "/etc/ours.conf", ctx.text_file("ours.conf"))
        yield run("ours", ctx.pip(self._wheels(ctx)), settings)

    def _wheels(self, ctx: Context) -> Wheels:
        return ctx.wheels(f"ours-{ctx.version}", [f"ours=={ctx.version}"])
'''
TABLE = """block: ours_tool
source: {from: a test, checked: 2026-11-22, verified: yes}
releases:
  "1.0": {}
"""
SITE = """name: lab
extends: lab-common
title: The lab's machine
"""
PARENT = """name: lab-common
abstract: true
extends: workstation
"""
STACK = """name: ours-stack
title: What the group runs
blocks: {ours_tool: {}}
run: {command: [ours], gpus_per_node: 0}
"""
FILES = {
    "site_profiles/lab.yaml": SITE,
    "site_profiles/lab-common.yaml": PARENT,
    "recipes/ours-stack.yaml": STACK,
    "building_blocks/ours_tool.py": BLOCK,
    "building_blocks/ours_tool.yaml": TABLE,
    "building_blocks/files/ours.conf": "colour = blue\n",
    "building_blocks/wheels/ours-1.0.txt": f"# by hand\nours==1.0 --hash=sha256:{'7' * 64}\n",
}
ASKED = ("--site", "lab", "--stack", "ours-stack", "--set", "base.provider=debian")


def own_collection(folder: Path, changed: Mapping[str, str] | None = None) -> Path:
    """The collection in a folder, which is made; ``changed``: other texts of files, or further ones."""
    for name, text in {**FILES, **(changed or {})}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
