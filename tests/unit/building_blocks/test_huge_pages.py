"""Huge pages: variables of the image alone, where its C library knows them."""

from __future__ import annotations

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble

CATALOG = Catalog()
TUNABLE = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"


@pytest.mark.parametrize(("base", "known"), [("debian", True), ("ubuntu", True), ("rockylinux", False)])
def test_the_image_sets_them_and_not_the_job(base: str, known: bool) -> None:
    site, stack = CATALOG.site("workstation"), CATALOG.stack("pytorch")
    plan = make_plan(CATALOG, site, stack, settings=[f"base.provider={base}"], added=["huge_pages"])
    assert any("cannot use huge pages" in text for text in assemble(plan, CATALOG).details) != known
    files = {name: file.text for name, file in make_kit(plan, CATALOG).files.items()}
    assert (TUNABLE in files["Dockerfile"].replace('"', "")) == known
    assert "THP_MEM_ALLOC_ENABLE" in files["Dockerfile"]
    assert "GLIBC_TUNABLES" not in files["run.sh"]
