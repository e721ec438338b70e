"""What every image of every case has in common, whatever its blocks are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import msgspec
import pytest

from hpcgen.blocks.steps import Archive, Wheels
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble, notices
from hpcgen.recipe.bind_targets import bind_targets
from hpcgen.recipe.stages import Assembly

CATALOG = Catalog()
CASES = [
    ("supermuc", "tf-horovod", ()),
    ("supermuc", "tf-horovod", ("tensorflow.install=pip",)),
    ("supermuc", "mpi-hello", ("mpi.provider=mpich", "gnu.fortran=true", "mpich.fortran=true")),
    ("hlrs-testbed", "tf-horovod", ()),
    ("hlrs-testbed", "mpi-hello", ()),
    ("workstation", "tf-horovod", ()),
    ("workstation", "tf-horovod", ("tensorflow.install=source",)),
    ("workstation", "tf-horovod", ("tensorflow.install=hub",)),
    ("workstation", "mpi-hello", ("base.provider=rockylinux",)),
    ("workstation", "mpi-hello", ("mpi.provider=intel_mpi",)),
]


@pytest.fixture(params=CASES, ids=lambda case: " ".join([*case[:2], *case[2]]))
def case(request: pytest.FixtureRequest) -> tuple[Plan, Assembly]:
    site, stack, settings = request.param
    plan = make_plan(CATALOG, CATALOG.site(site), CATALOG.stack(stack), settings=settings)
    return plan, assemble(plan, CATALOG)


def commands(assembly: Assembly) -> list[str]:
    steps = [*assembly.builder.steps, *assembly.final.steps]
    return [command for _, step in steps if not step.checks for command in step.commands]


def test_every_command_is_one_simple_command(case: tuple[Plan, Assembly]) -> None:
    """`a && b` on one line would hide a's failure from `sh -e`, a pipe that of all but its last part."""
    for command in commands(case[1]):
        lexer = shlex.shlex(command, posix=True, punctuation_chars="&|;()")
        lexer.whitespace_split = True
        lexer.commenters = ""
        operators = [word for word in lexer if word and set(word) <= set("&|;()")]
        assert operators == [], command
        assert "`" not in re.sub(r"'[^']*'", "", command), command


def test_every_download_is_https_and_checked_before_use(case: tuple[Plan, Assembly]) -> None:
    _plan, assembly = case
    for _, item in assembly.inputs:
        if isinstance(item, Archive):
            assert item.url.startswith("https://")
            lines = [c for c in commands(assembly) if item.name in c]
            fetch = next(i for i, c in enumerate(lines) if c.startswith("curl "))
            assert "--proto =https" in lines[fetch]
            assert item.sha256 in lines[fetch + 1]
            assert lines[fetch + 2].startswith("sha256sum -c ")
    for command in commands(assembly):
        assert not command.startswith("wget")
        if command.startswith("curl "):
            assert "--proto =https" in command
        if " pip install " in command:
            local = "--no-index" in command
            hashed = "--require-hashes" in command
            assert local or hashed or any(isinstance(i, Wheels) and not i.hashed for _, i in assembly.inputs), command


def test_golden_cases_install_nothing_without_a_hash() -> None:
    for site, stack, settings in CASES[:7]:
        plan = make_plan(CATALOG, CATALOG.site(site), CATALOG.stack(stack), settings=settings)
        loose = [i.name for _, i in assemble(plan, CATALOG).inputs if isinstance(i, Wheels) and not i.hashed]
        assert loose == [], (site, stack, settings)


def test_final_stage_keeps_no_compiler_and_no_download(case: tuple[Plan, Assembly]) -> None:
    _, assembly = case
    names = set(assembly.packages["final"])
    assert not {n for n in names if re.match(r"(gcc|g\+\+|make|cmake|gfortran)(-\d+)?$", n)}
    assert all(path.startswith("/opt/") for path in assembly.final.copies)
    assert not any(path.startswith("/opt/hpcgen") for path in assembly.final.copies)


def test_proxy_is_never_left_in_the_environment(case: tuple[Plan, Assembly]) -> None:
    for stage in (case[1].builder, case[1].final):
        assert not any("proxy" in name.lower() for name in stage.environment)


def test_image_has_the_folders_that_are_bound_onto(case: tuple[Plan, Assembly]) -> None:
    plan, assembly = case
    made = " ".join(c for _, step in assembly.final.steps for c in step.commands if c.startswith("mkdir -p"))
    for target in bind_targets(plan):
        assert target in made.split()


def test_supermuc_image_can_take_the_hosts_mpi_over_omni_path() -> None:
    source = ["tensorflow.install=source"]
    plan = make_plan(CATALOG, CATALOG.site("supermuc"), CATALOG.stack("tf-horovod"), settings=source)
    assembly = assemble(plan, CATALOG)
    assert {"/lrz/sys", "/dss/dsshome1/lrz/sys"} <= set(bind_targets(plan))
    assert "/opt/psm2" in assembly.final.copies
    assert "/opt/psm2/lib" in assembly.final.environment["LD_LIBRARY_PATH"].split(":")
    mpi = plan.block("mpi")
    assert mpi is not None
    assert (mpi.name, mpi.version) == ("intel_mpi", "2019.6.166")
    build = next(c for c in commands(assembly) if " bazel " in c and " build " in c)
    assert "--copt=-march=skylake-avx512" in build.split()


def test_one_more_package_of_the_project_leaves_what_is_built_before_it_as_it_is() -> None:
    from hpcgen.core.model.stack import StackBlock

    def steps(*packages: str) -> list[str]:
        stack = CATALOG.stack("pytorch-ddp")
        more = {
            "python_packages": StackBlock(options={"packages": ["six==1.17.0"]}),
            "os_packages": StackBlock(options={"packages": list(packages)}),
        }
        stack = msgspec.structs.replace(stack, blocks={**stack.blocks, **more})
        found = assemble(make_plan(CATALOG, CATALOG.site("workstation"), stack), CATALOG).builder.steps
        return [f"{label}: {' '.join(step.commands)}" for label, step in found]

    one, two = steps("libnuma-dev"), steps("libnuma-dev", "libudunits2-dev")
    first = next(number for number, step in enumerate(two) if "libudunits2-dev" in step)
    assert one[:first] == two[:first]
    assert any(step.startswith("pytorch ") and "install" in step for step in two[:first])
    assert any(step.startswith("python_packages ") for step in two[first:])


def test_two_values_for_one_variable_are_an_error_that_names_both_blocks() -> None:
    from hpcgen.recipe.assemble import _merged

    with pytest.raises(InputError) as failure:
        _merged("variable", [("a 1", {"X": "1"}), ("b 2", {"X": "2"})])
    assert "variable X is '1' for a 1 and '2' for b 2" in str(failure.value)


def test_a_download_that_no_hash_protects_is_told() -> None:
    settings = ("tensorflow.version=2.10.1", "tensorflow.install=pip")
    plan = make_plan(CATALOG, CATALOG.site("workstation"), CATALOG.stack("tf-horovod"), settings=settings)
    said = notices(assemble(plan, CATALOG))
    assert any("no hashed wheel list for tensorflow 2.10.1" in notice for notice in said)


def test_content_hash_follows_the_image_and_not_the_job() -> None:
    site, stack = CATALOG.site("supermuc"), CATALOG.stack("mpi-hello")

    def content(*settings: str, nodes: int | None = None) -> str:
        plan = make_plan(CATALOG, site, stack, settings=settings, job=JobRequest(nodes=nodes))
        return assemble(plan, CATALOG).labels["io.hpcgen.content"]

    assert content() == content(nodes=512)
    assert content() != content("gnu.fortran=true")


def test_a_known_digest_is_pinned_where_the_reader_takes_one(collection: Path) -> None:
    digest = "sha256:" + "0123456789abcdef" * 4
    (collection / "building_blocks" / "ubuntu.yaml").write_text(
        f'block: ubuntu\nreleases:\n  "24.04":\n    images: {{default: "ubuntu:24.04@{digest}"}}\n'
        "    values: {package_manager: apt, codename: noble}\n"
    )
    catalog = Catalog([collection])

    def recipe(format: str) -> str:
        site, stack = catalog.site("workstation"), catalog.stack("mpi-hello")
        plan = make_plan(catalog, site, stack, format=format, allow_unsupported=True)  # type: ignore[arg-type]
        return make_kit(plan, catalog).recipe

    assert f"FROM docker.io/library/ubuntu:24.04@{digest} AS builder" in recipe("docker")
    assert f"From: ubuntu@{digest}" in recipe("singularity")
    assert "FROM docker.io/library/ubuntu:24.04 AS builder" in recipe("charliecloud")
