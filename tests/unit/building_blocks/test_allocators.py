"""jemalloc and tcmalloc: that they serve malloc, and for whom."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.building_blocks.test_system import chosen, context, facts, newest, text

LIBRARIES = {
    "jemalloc": "/opt/jemalloc/lib/libjemalloc.so.2",
    "gperftools": "/opt/gperftools/lib/libtcmalloc_minimal.so.4",
}


def allocator(name: str, architecture: str = "x86_64", **options: Any) -> Any:
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
