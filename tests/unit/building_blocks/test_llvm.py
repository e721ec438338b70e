"""clang, for those that ask for it: which one, and that GCC stays the compiler of everything else."""

from __future__ import annotations

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble
from tests.unit.building_blocks.test_system import chosen, context
from tests.unit.building_blocks.test_system import text as steps_text

CATALOG = Catalog()


def compiled(site: str, *settings: str) -> str:
    """The builder's steps of TensorFlow from source."""
    plan = make_plan(
        CATALOG, CATALOG.site(site), CATALOG.stack("tf-horovod"), settings=[*settings, "tensorflow.install=source"]
    )
    return steps_text(step for _, step in assemble(plan, CATALOG).builder.steps)


def test_the_packages_are_those_of_the_major_version() -> None:
    block, ctx = context("llvm", "16.0.6", others={"gnu": chosen("gnu", "12.2.0")})
    assert block.packages(ctx).build == {"apt": ["clang-16", "llvm-16-dev"]}
    # GCC stays the compiler of everything else.
    assert not {"CC", "CXX"} & set(block.environment(ctx).build)
    assert not steps_text(block.build(ctx))


def test_tensorflow_is_compiled_with_clang_only_where_that_is_asked_for() -> None:
    plain = compiled("supermuc")
    assert "TF_NEED_CLANG=0" in plain
    assert "clang-" not in plain
    asked = compiled("supermuc", "tensorflow.compiler=clang")
    assert "TF_NEED_CLANG=1" in asked
    assert " clang-16 " in asked


def test_clang_is_refused_for_a_tensorflow_that_knows_nothing_of_it() -> None:
    with pytest.raises(HpcgenError, match="compiler"):
        compiled("supermuc", "tensorflow.compiler=clang", "tensorflow.version=2.12")
