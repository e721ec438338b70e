"""The resolver on a small collection of its own: newest that fits, virtuals, the site's facts, conflicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, InputError, UnknownNameError
from hpcgen.core.model.plan import Plan
from hpcgen.planning.planner import make_plan

SITE = """\
name: tiny
title: a small test site
system: {os: debian}
partitions:
  gpu:
    cpu: {target: x86_64_v3, cores: 8}
    memory: {total_gb: 32}
    gpu: {vendor: nvidia, model: GTX 1080 Ti, capability: 6.1, driver: 418.39}
default_partition: gpu
containers: {preferred: docker, engines: {docker: {}}}
scheduler: {kind: none}
network: {internet: {login: true, compute: true}}
"""

BLOCKS = {
    "framework": (
        "needs = (need('toolkit'), need('language', '>=3'))",
        """\
  "1.0": {accepts: {toolkit: "==10.*", language: "<3.9"}}
  "2.0": {accepts: {toolkit: "==11.*", language: ">=3.8"}}
""",
    ),
    "trainer": (
        "needs = (need('framework', '>=1.0'), need('language'))",
        """\
  "0.9": {accepts: {framework: "<2"}}
""",
    ),
    "toolkit": (
        "",
        """\
  "10.1": {host: {driver: ">=418", capability: ">=3,<8"}}
  "10.2": {host: {driver: ">=440", capability: ">=3,<8"}}
  "11.0": {host: {driver: ">=450", capability: ">=3.5,<9"}}
""",
    ),
    "language": (
        "",
        """\
  "3.8.10": {on: {ubuntu: "==20.04"}}
  "3.10.12": {on: {ubuntu: "==22.04"}}
""",
    ),
}


@pytest.fixture
def tiny(collection: Path) -> Path:
    (collection / "site_profiles" / "tiny.yaml").write_text(SITE)
    for name, (needs, rows) in BLOCKS.items():
        (collection / "building_blocks" / f"{name}.py").write_text(
            f"from hpcgen.blocks.base import Block, need\nclass It(Block):\n    '''A test block.'''\n"
            f"    name = {name!r}\n    {needs or 'pass'}\n"
        )
        (collection / "building_blocks" / f"{name}.yaml").write_text(f"block: {name}\nreleases:\n{rows}")
    stack(collection, "framework: {}")
    return collection


def stack(collection: Path, *blocks: str) -> None:
    lines = "".join(f"  {block}\n" for block in blocks)
    text = f"name: it\ntitle: a test stack\nblocks:\n{lines}run: {{command: [it], gpus_per_node: 0}}\n"
    (collection / "recipes" / "it.yaml").write_text(text)


def planned(collection: Path, *settings: str) -> Plan:
    catalog = Catalog([collection])
    return make_plan(
        catalog,
        catalog.site("tiny"),
        catalog.stack("it"),
        settings=settings,
        site_document=catalog.site_document("tiny"),
        stack_document=catalog.stack_document("it"),
    )


def versions(plan: Plan) -> dict[str, str]:
    return {b.name: b.version for b in plan.blocks}


def test_driver_of_the_node_bounds_everything_above_it(tiny: Path) -> None:
    chosen = versions(planned(tiny))
    assert chosen["toolkit"] == "10.1"
    assert chosen["framework"] == "1.0"
    assert (chosen["language"], chosen["ubuntu"]) == ("3.8.10", "20.04")


def test_newer_driver_gives_the_newest(tiny: Path) -> None:
    (tiny / "site_profiles" / "tiny.yaml").write_text(SITE.replace("418.39", "470.10"))
    chosen = versions(planned(tiny))
    assert (chosen["framework"], chosen["toolkit"]) == ("2.0", "11.0")
    assert chosen["language"] == "3.10.12"


def test_a_need_bounds_what_the_stack_leaves_open(tiny: Path) -> None:
    (tiny / "site_profiles" / "tiny.yaml").write_text(SITE.replace("418.39", "470.10"))
    stack(tiny, "trainer: {}")
    assert versions(planned(tiny))["framework"] == "1.0"


def test_reasons_name_who_asked_and_what_refused_the_newer_one(tiny: Path) -> None:
    toolkit = planned(tiny).block("toolkit")
    assert toolkit is not None
    assert any("framework 1.0 asks for toolkit ==10.*" in str(reason) for reason in toolkit.reasons)
    assert "not 10.2: it needs driver >=440, the node has 418.39" in map(str, toolkit.reasons)


def test_every_need_stands_before_what_needs_it(tiny: Path) -> None:
    stack(tiny, "trainer: {}")
    plan = planned(tiny)
    order = [b.name for b in plan.blocks]
    for block in plan.blocks:
        for need in block.needs.values():
            assert order.index(need) <= order.index(block.name)
    assert order[0] == "ubuntu"


def test_same_question_same_plan(tiny: Path) -> None:
    stack(tiny, "trainer: {}")
    assert planned(tiny) == planned(tiny)


def test_conflict_names_both_sides_their_places_and_the_nearest_change(tiny: Path) -> None:
    stack(tiny, 'framework: {version: ">=2"}')
    with pytest.raises(ConflictError) as failure:
        planned(tiny)
    text = str(failure.value)
    assert "framework 2.0" in text
    assert "toolkit ==11.*" in text
    assert "building_blocks/framework.yaml:4:" in text
    assert "the node's driver 418.39" in text
    assert "site_profiles/tiny.yaml:8:" in text
    assert "remedy: version 1.0 of framework instead of >=2 in " in text
    assert "recipes/it.yaml:4:3 of stack it (plans framework 1.0)" in text


def test_conflict_between_stack_and_block_names_the_two_ranges(tiny: Path) -> None:
    (tiny / "site_profiles" / "tiny.yaml").write_text(SITE.replace("418.39", "470.10"))
    stack(tiny, "trainer: {}", 'framework: {version: "==2.0"}')
    with pytest.raises(ConflictError) as failure:
        planned(tiny)
    text = str(failure.value)
    assert "framework ==2.0" in text
    assert "framework <2" in text
    assert "building_blocks/trainer.yaml:3:" in text


def test_a_version_that_does_not_exist_lists_the_known_ones(tiny: Path) -> None:
    with pytest.raises(ConflictError) as failure:
        planned(tiny, "framework.version=9.9")
    text = str(failure.value)
    assert "framework ==9.9" in text
    assert "framework 2.0, framework 1.0" in text


def test_a_conflict_with_the_node_names_the_last_release_that_each_fact_allows(tiny: Path) -> None:
    rows = """\
  "10.1": {host: {driver: ">=418", capability: ">=3,<8"}}
  "10.2": {host: {driver: ">=440", capability: ">=3,<8"}}
  "13.0": {host: {driver: ">=580", capability: ">=7.5"}}
"""
    (tiny / "building_blocks" / "toolkit.yaml").write_text(f"block: toolkit\nreleases:\n{rows}")
    stack(tiny, "toolkit: {}")
    for asked in ("13.0", "12.9"):  # one that the table has, and one that it has not
        with pytest.raises(ConflictError) as failure:
            planned(tiny, f"toolkit.version={asked}")
        assert "toolkit 10.2 is the last that supports capability 6.1" in str(failure.value)
        assert "toolkit 10.1 is the last that supports driver 418.39" in str(failure.value)


def test_an_amd_gpu_takes_only_releases_that_have_code_for_it(tiny: Path) -> None:
    amd = SITE.replace(
        "vendor: nvidia, model: GTX 1080 Ti, capability: 6.1, driver: 418.39", "vendor: amd, model: M, target: gfx906"
    )
    (tiny / "site_profiles" / "tiny.yaml").write_text(amd)
    rows = """\
  "5.7": {targets: [gfx906, gfx90a]}
  "6.4": {targets: [gfx90a, gfx942]}
"""
    (tiny / "building_blocks" / "toolkit.yaml").write_text(f"block: toolkit\nreleases:\n{rows}")
    stack(tiny, "toolkit: {}")
    toolkit = planned(tiny).block("toolkit")
    assert toolkit is not None
    assert toolkit.version == "5.7"
    assert "not 6.4: it needs target gfx90a or gfx942, the node has gfx906" in map(str, toolkit.reasons)
    with pytest.raises(ConflictError, match=r"toolkit 5\.7 is the last that supports target gfx906"):
        planned(tiny, "toolkit.version=6.4")
    (tiny / "site_profiles" / "tiny.yaml").write_text(amd.replace("gfx906", "gfx803"))
    with pytest.raises(ConflictError, match="no known toolkit supports target gfx803"):
        planned(tiny)
    # Where the profile does not say, nothing is ruled out.
    (tiny / "site_profiles" / "tiny.yaml").write_text(amd.replace(", target: gfx906", ""))
    assert versions(planned(tiny))["toolkit"] == "6.4"


def test_a_collection_may_add_a_row_to_a_built_in_block(tiny: Path) -> None:
    (tiny / "building_blocks" / "ubuntu.yaml").write_text(
        'block: ubuntu\nreleases:\n  "30.04": {images: {default: "ubuntu:30.04"}, values: {package_manager: apt}}\n'
    )
    stack(tiny, "toolkit: {}")
    assert versions(planned(tiny))["ubuntu"] == "30.04"


def test_settings_choose_version_and_provider(tiny: Path) -> None:
    stack(tiny, "toolkit: {}")
    chosen = versions(planned(tiny, "base.provider=debian", "toolkit.version=<10.2"))
    assert "debian" in chosen
    assert chosen["toolkit"] == "10.1"


def test_a_conflict_over_the_mpi_names_the_line_that_says_which_one_the_host_has() -> None:
    import hpcgen
    from tests.conftest import ROOT

    lines = (ROOT / "site_profiles" / "supermuc.yaml").read_text("utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if text.strip() == "abi: mpich")
    with pytest.raises(ConflictError, match=rf"openmpi cannot work at this site, .*supermuc\.yaml:{line}:\d+"):
        hpcgen.plan("supermuc", "mpi-hello", settings={"mpi.provider": "openmpi"})


def test_what_is_set_of_a_block_puts_it_in_no_image_and_add_does(tiny: Path) -> None:
    stack(tiny, "language: {}")
    with pytest.raises(UnknownNameError) as failure:
        planned(tiny, "toolkit.version=10.1")
    assert "this plan has no block 'toolkit', so it cannot be set" in str(failure.value)
    assert "put it into the image: --add toolkit" in str(failure.value)
    catalog = Catalog([tiny])
    plan = make_plan(
        catalog, catalog.site("tiny"), catalog.stack("it"), settings=["toolkit.version=10.1"], added=["toolkit"]
    )
    assert versions(plan)["toolkit"] == "10.1"
    assert "--set toolkit.version=10.1 --add toolkit" in plan.command
    with pytest.raises(UnknownNameError, match=r"no block is called 'tolkit'[\s\S]*did you mean toolkit\?"):
        make_plan(catalog, catalog.site("tiny"), catalog.stack("it"), added=["tolkit"])


def test_wrong_options_of_all_blocks_are_told_at_once_each_where_it_was_said(tiny: Path) -> None:
    stack(tiny, "framework: {options: {fast: true}}", "toolkit: {}", "language: {options: {slow: true}}")
    with pytest.raises(UnknownNameError) as failure:
        planned(tiny, "toolkit.nice=true")
    said = str(failure.value)
    assert "it.yaml:4:31: block framework has no option 'fast'" in said
    assert "it.yaml:6:30: block language has no option 'slow'" in said
    assert "--set: block toolkit has no option 'nice'" in said


def test_wrong_settings_of_a_virtual_say_what_it_takes(tiny: Path) -> None:
    with pytest.raises(UnknownNameError) as failure:
        planned(tiny, "base.fancy=yes", "base.provider=toolkit")
    said = str(failure.value)
    assert "--set: base is a virtual and has no option 'fancy'\n  expected: base.provider or base.version" in said
    assert "--set: 'toolkit' does not provide base" in said


def test_facts_that_rule_versions_out_are_named_in_one_order(tiny: Path) -> None:
    rows = BLOCKS["toolkit"][1] + '  "9.0": {host: {capability: "<5"}}\n'
    (tiny / "building_blocks" / "toolkit.yaml").write_text(f"block: toolkit\nreleases:\n{rows}")
    toolkit = planned(tiny).block("toolkit")
    assert toolkit is not None
    said = [str(reason) for reason in toolkit.reasons if "of the node" in str(reason)]
    assert said == ["because of the node's capability 6.1", "because of the node's driver 418.39"]


def test_a_version_that_is_short_of_its_last_numbers_is_understood(tiny: Path) -> None:
    with pytest.raises(ConflictError, match=r"remedy: --set 'toolkit\.version=10\.\*' instead of 10"):
        planned(tiny, "toolkit.version=10")


def test_a_reason_names_what_stood_against_the_newer_version_and_nothing_else(tiny: Path) -> None:
    framework = planned(tiny).block("framework")
    assert framework is not None
    assert str(framework.reasons[-1]) == (
        "not 2.0: it does not fit together with the rest: because of the node's driver 418.39; "
        "framework 2.0 asks for toolkit ==11.*"
    )


BESIDE = """\
beside:
  - versions: "<2"
    accepts: {language: "<3.10"}
    message: it hangs
    remedy: take 2.0
    source: {from: seen, checked: 2026-11-23, verified: yes}
"""


def beside(folder: Path) -> None:
    """A plugin of two releases, the older of which works with an old language alone, and needs none."""
    (folder / "site_profiles" / "tiny.yaml").write_text(SITE.replace("418.39", "470.10"))
    path = folder / "building_blocks" / "plugin"
    path.with_suffix(".py").write_text(
        "from hpcgen.blocks.base import Block\nclass It(Block):\n    '''A test block.'''\n    name = 'plugin'\n"
    )
    path.with_suffix(".yaml").write_text(f'block: plugin\nreleases:\n  "1.0": {{}}\n  "2.0": {{}}\n{BESIDE}')


def test_what_a_block_works_beside_binds_others_and_brings_none(tiny: Path) -> None:
    beside(tiny)
    stack(tiny, "plugin: {}")
    alone = planned(tiny, "plugin.version=1.0")
    assert versions(alone)["plugin"] == "1.0" and "language" not in versions(alone)
    # Whichever of the two is chosen first.
    for blocks in (["plugin: {}", "language: {}"], ["language: {}", "plugin: {}"]):
        stack(tiny, *blocks)
        plan = planned(tiny, "plugin.version=1.0")
        assert versions(plan)["language"] == "3.8.10"
        block = plan.block("plugin")
        assert block is not None and "language" not in block.needs
        assert versions(planned(tiny))["language"] == "3.10.12"


def test_what_does_not_work_together_is_refused_with_why_and_the_way_out(tiny: Path) -> None:
    beside(tiny)
    stack(tiny, "plugin: {}", "language: {}")
    with pytest.raises(ConflictError) as failure:
        planned(tiny, "plugin.version=1.0", "language.version=3.10.12")
    assert "plugin 1.0" in str(failure.value) and "only works with language <3.10: it hangs; take 2.0" in str(
        failure.value
    )


def test_beside_names_blocks_that_there_are(tiny: Path) -> None:
    from hpcgen.cli.checking import check_release_table

    beside(tiny)
    table = tiny / "building_blocks" / "plugin.yaml"
    table.write_text(table.read_text().replace("language:", "langage:"))
    catalog = Catalog([tiny])
    with pytest.raises(InputError, match=r"no block is called 'langage'[\s\S]*did you mean language\?"):
        check_release_table(catalog, catalog.release_documents("plugin")[0])
