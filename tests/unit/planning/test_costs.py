"""What a plan or recipe costs once its catalog is warm, in calls: time would tell of the machine."""

from __future__ import annotations

import shlex
from unittest import mock

import msgspec

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.planning.resolver.node import KEPT, BlockHere, node_of


def test_the_second_plan_of_a_node_works_out_no_block_again() -> None:
    catalog = Catalog()
    with mock.patch.object(BlockHere, "_find_needs", autospec=True, side_effect=BlockHere._find_needs) as found:
        first = hpcgen.plan("supermuc", "tf-horovod", catalog=catalog)
        asked = found.call_count
        assert hpcgen.plan("supermuc", "tf-horovod", catalog=catalog) == first
    assert asked > 0
    assert found.call_count == asked


def test_an_option_of_one_block_leaves_what_is_known_of_the_others() -> None:
    catalog = Catalog()
    usual = hpcgen.plan("supermuc", "tf-horovod", catalog=catalog)
    with mock.patch.object(BlockHere, "_find_needs", autospec=True, side_effect=BlockHere._find_needs) as found:
        other = hpcgen.plan("supermuc", "tf-horovod", settings=["tensorflow.install=intel"], catalog=catalog)
    assert {call.args[0].name for call in found.call_args_list} <= {"tensorflow"}
    again = hpcgen.plan("supermuc", "tf-horovod", settings=["tensorflow.install=intel"], catalog=Catalog())
    assert other == again
    assert hpcgen.plan("supermuc", "tf-horovod", catalog=catalog) == usual


def test_what_is_kept_of_nodes_is_bounded() -> None:
    catalog = Catalog()
    site = catalog.site("workstation")
    sites = [msgspec.structs.replace(site) for _ in range(KEPT + 3)]
    for each in sites:
        node_of(catalog, each, site.default_partition)
    assert len(catalog.nodes) == KEPT
    last = node_of(catalog, sites[-1], site.default_partition)
    assert last.site is sites[-1]
    assert node_of(catalog, sites[-1], site.default_partition) is last


def test_a_recipe_splits_only_command_lines_that_name_a_shell() -> None:
    catalog = Catalog()
    plan = hpcgen.plan("supermuc", "tf-horovod", catalog=catalog)
    with mock.patch.object(shlex, "split", side_effect=shlex.split) as split:
        hpcgen.render(plan, catalog=catalog)
    assert split.call_count <= 3
