"""``hpcgen plan --inputs``: everything that a build takes from outside, where from, and what pins it."""

from __future__ import annotations

import json
import subprocess
import sys

from hpcgen.blocks.steps import Archive, Wheels
from hpcgen.catalog.catalog import Catalog
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.stages import input_list

CATALOG = Catalog()


def test_every_input_of_every_block_is_in_the_list() -> None:
    plan = make_plan(CATALOG, CATALOG.site("supermuc"), CATALOG.stack("tf-horovod"))
    assembly = assemble(plan, CATALOG)
    rows = input_list(assembly)
    for _, item in assembly.inputs:
        if isinstance(item, Archive):
            assert [row for row in rows if row.origin == item.url and row.pinned_by == f"sha256:{item.sha256}"]
        elif isinstance(item, Wheels):
            names = {row.name for row in rows if row.kind == "python"}
            assert {line.split(" ")[0] for line in item.requirements} <= names
    assert {row.name for row in rows if row.kind == "package"} == {n for s in assembly.packages.values() for n in s}


def test_a_source_build_names_what_bazel_fetches() -> None:
    settings = ["--set", "tensorflow.version=2.14.1", "--set", "tensorflow.install=source"]
    words = ["--site", "supermuc", "--stack", "tf-horovod", *settings, "--inputs", "--json"]
    done = subprocess.run([sys.executable, "-m", "hpcgen", "plan", *words], capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)
    bazel = [row for row in rows if row[1] == "bazel"]
    assert len(bazel) > 100
    assert all(pinned.startswith("sha256:") and origin for *_, origin, pinned in bazel)


def test_what_only_a_lock_will_pin_is_said() -> None:
    site, stack = CATALOG.site("workstation"), CATALOG.stack("tf-horovod")
    plan = make_plan(CATALOG, site, stack, settings=["tensorflow.version=2.10.1", "tensorflow.install=pip"])
    loose = [row for row in input_list(assemble(plan, CATALOG)) if row.pinned_by == "version"]
    assert "tensorflow-cpu==2.10.1" in [row.name for row in loose]
