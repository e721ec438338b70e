"""jemalloc and tcmalloc: that they serve malloc, and for whom."""

from __future__ import annotations

from typing import Any

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.plan import Plan
from hpcgen.planning.planner import make_plan
from tests.unit.building_blocks.test_system import chosen, context, facts, newest, text

LIBRARIES = {
    "jemalloc": "/opt/jemalloc/lib/libjemalloc.so.2",
    "gperftools": "/opt/gperftools/lib/libtcmalloc_minimal.so.4",
}


def allocator(name: str, architecture: str = "x86_64", **options: Any) -> Any:
    """From source, unless the options say otherwise."""
    options = {"obtain": "source", **options}
    here = facts(architecture=architecture)
    return context(name, newest(name), here, others={"gnu": chosen("gnu", "12.2.0")}, **options)


@pytest.mark.parametrize("name", list(LIBRARIES))
def test_by_default_it_serves_only_who_asks_for_it(name: str) -> None:
    block, ctx = allocator(name)
    assert not list(block.finish(ctx, "final"))
    (test,) = [test for test in block.test(ctx) if test.name == "serves malloc"]
    assert f"LD_PRELOAD={LIBRARIES[name]}" in test.command


@pytest.mark.parametrize("name", list(LIBRARIES))
def test_preload_serves_every_program_of_the_image_and_none_of_the_builder(name: str) -> None:
    block, ctx = allocator(name, preload=True)
    assert f"/etc/ld.so.preload: {LIBRARIES[name]}" in text(block.finish(ctx, "final"))
    assert not list(block.finish(ctx, "builder"))
    (test,) = [test for test in block.test(ctx) if test.name == "serves malloc"]
    assert "LD_PRELOAD" not in test.command
    assert "LD_PRELOAD" not in block.environment(ctx).both


def test_jemalloc_on_arm_works_with_pages_of_each_size() -> None:
    for architecture, asked in (("aarch64", True), ("x86_64", False)):
        block, ctx = allocator("jemalloc", architecture)
        assert ("--with-lg-page=16" in text(block.build(ctx))) == asked


CATALOG = Catalog()


def planned(stack: str, name: str, *settings: str) -> Plan:
    settings = (f"{name}.preload=true", *settings)
    return make_plan(CATALOG, CATALOG.site("workstation"), CATALOG.stack(stack), settings=settings, added=[name])


@pytest.mark.parametrize("name", list(LIBRARIES))
@pytest.mark.parametrize("base", ["debian", "ubuntu"])
def test_the_package_of_the_distribution_is_taken_where_it_has_one(name: str, base: str) -> None:
    plan = planned("pytorch", name, f"base.provider={base}")
    block = plan.block(name)
    assert block is not None
    assert block.options["obtain"] == "distribution"
    assert plan.block("gnu") is None


def test_elsewhere_it_is_compiled() -> None:
    block = planned("pytorch", "jemalloc", "base.provider=rockylinux").block("jemalloc")
    assert block is not None
    assert block.options["obtain"] == "source"


def test_the_package_is_loaded_before_every_program_and_nothing_is_fetched() -> None:
    block, ctx = allocator("jemalloc", "aarch64", obtain="distribution", preload=True)
    assert "/etc/ld.so.preload: /usr/lib/aarch64-linux-gnu/libjemalloc.so.2" in text(block.finish(ctx, "final"))
    assert not block.inputs(ctx)
    assert not list(block.build(ctx))
    (test,) = block.test(ctx)
    assert test.expect == "libjemalloc.so.2"


def test_openvino_does_not_meet_tcmalloc() -> None:
    with pytest.raises(PolicyError, match="openvino crashes with tcmalloc"):
        planned("openvino", "gperftools")
    assert planned("openvino", "jemalloc").block("jemalloc") is not None
