"""A stack's own code: fetched, compiled in the builder where it lies, kept as its commands leave it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.cli.checking import check_file
from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.core.model.fields import FormatName
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import Kit, make_kit
from hpcgen.planning.planner import make_plan

HEAD = "name: own\ntitle: our solver\nrun: {command: [solver], mpi: false, gpus_per_node: 0}\n"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
GIT = f"git: [{{from: https://example.org/group/solver.git, commit: {COMMIT}, to: /opt/code/solver}}]\n"
COPY = "copy: [{from: src, to: /app}]\n"
BUILD = "build: {commands: [make -j 2]}\n"


def planned(folder: Path, text: str, format: FormatName | None = None, head: str = f"{HEAD}blocks: {{}}\n") -> Plan:
    """The plan of a stack file with a folder of code beside it."""
    for name in ("src/solver.c", "src/Makefile", "src/data/big.log", "more/x"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    path = folder / "own.yaml"
    path.write_text(head + text)
    catalog = Catalog()
    document = catalog.stack_document(str(path))
    site, stack = catalog.site("workstation"), catalog.stack(str(path))
    return make_plan(catalog, site, stack, stack_document=document, format=format, allow_unsupported=True)


def kit_of(folder: Path, text: str, format: FormatName | None = None) -> Kit:
    catalog = Catalog()
    plan = planned(folder, text, format)
    catalog.copied.look_below(folder, plan)
    return make_kit(plan, catalog)


def test_copied_code_is_compiled_in_its_folder_which_the_image_has_from_the_builder(tmp_path: Path) -> None:
    kit = kit_of(tmp_path, COPY + BUILD)
    builder, _, final = kit.recipe.partition("\nFROM ")[2].partition("\nFROM ")
    assert builder.index("COPY copy/app/ /app/") < builder.index("bash -eo pipefail")
    assert "COPY copy/app/" not in final and "COPY --from=builder /app /app" in final
    script = kit.files["files/application/commands"].text.splitlines()
    assert script[-2:] == ["cd /app", "eval 'make -j 2'"]
    assert "PATH=/opt/application/bin:/app:" in kit.recipe


def test_a_changed_line_of_it_ends_the_cache_of_little_else(tmp_path: Path) -> None:
    """Whatever the stack names after it is built before it, and what does not change with it is copied before it."""
    blocks = "blocks: {application: {options: {folder: /app, commands: [make]}}, numactl: {}}\n"
    plan = planned(tmp_path, COPY + blocks, head=HEAD)
    catalog = Catalog()
    catalog.copied.look_below(tmp_path, plan)
    recipe = make_kit(plan, catalog).recipe
    builder, _, final = recipe.partition("\nFROM ")[2].partition("\nFROM ")
    order = [
        "make -C /opt/hpcgen/build/numactl",
        "COPY files/application/commands",
        "COPY copy/app/ /app/",
        "bash -eo pipefail",
    ]
    assert sorted(order, key=builder.rindex) == order
    assert builder.rindex("RUN ") < builder.index("bash -eo pipefail")
    order = ["apt-get install", "COPY --from=builder /opt/numactl", "COPY selftest.sh ", "COPY files/ "]
    order += ["COPY --from=builder /app /app", "selftest.sh --build", "COPY Dockerfile "]
    assert sorted(order, key=final.index) == order


def test_a_definition_file_brings_it_into_the_builder(tmp_path: Path) -> None:
    builder, final = kit_of(tmp_path, COPY + BUILD, "singularity").recipe.split("Stage: final")
    assert "    copy /opt/hpcgen-kit-copy\n" in builder and "    copy /opt/hpcgen-kit-copy\n" not in final
    assert builder.index("mv -T /opt/hpcgen-kit-copy/app /app") < builder.index("bash -eo pipefail")
    assert "tar -C / -cf /opt/hpcgen-kept.tar app opt/application" in builder


def test_what_the_build_does_not_touch_is_copied_into_the_image_alone(tmp_path: Path) -> None:
    text = "copy: [{from: src, to: /app}, {from: more, to: /data/more}]\nbuild: {in: /app/data, commands: [make]}\n"
    builder, _, final = kit_of(tmp_path, text).recipe.partition("\nFROM ")[2].partition("\nFROM ")
    assert "/data/more" not in builder and "COPY copy/data/more/ /data/more/" in final
    assert "COPY --from=builder /app /app" in final and "/app/data /app/data" not in final


def test_git_is_pinned_by_its_commit_and_can_be_compiled(tmp_path: Path) -> None:
    plan = planned(tmp_path, GIT + BUILD)
    names = [each.name for each in plan.blocks]
    assert names.index("git_code") < names.index("application")
    recipe = kit_of(tmp_path, GIT + BUILD).recipe
    assert COMMIT in recipe and "rm -rf /opt/code/solver/.git" in recipe
    assert "COPY --from=builder /opt/code/solver /opt/code/solver" in recipe


def test_changed_code_is_another_image(tmp_path: Path) -> None:
    def content(folder: str) -> str:
        return kit_of(tmp_path / folder, COPY + BUILD).recipe.partition("io.hpcgen.content=")[2].split()[0]

    plans = [planned(tmp_path / each, COPY + BUILD) for each in ("one", "two")]
    assert plans[0].copied == plans[1].copied
    assert content("one") == content("two")
    (tmp_path / "two/src/.hpcgenignore").write_text("# what comes of runs\n*.log\n")
    changed = planned(tmp_path / "two", COPY + BUILD)
    assert (plans[0].copied[0].files, changed.copied[0].files) == (3, 2)
    assert content("one") != content("two")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BUILD, "own.yaml:5:1: the folder in which `build` runs its commands is not set expected: build.in: a folder"),
        (COPY + GIT + BUILD, "expected: build.in: /app or /opt/code/solver"),
        (COPY + "build: {in: /data, commands: [make]}\n", "neither `copy` nor `git` puts anything into /data"),
        (COPY + "build: {in: /app}\n", "own.yaml:6:8: `commands` is missing in `build`"),
        (GIT.replace(COMMIT, "main") + BUILD, "own.yaml:5:60: `commit` must be 40 lower-case hexadecimal digits"),
        (GIT.replace("https", "ssh") + BUILD, "`from` must be the https:// address"),
        (
            GIT.replace("example", "me:secret@example") + BUILD,
            "`from` must be the https:// address of a git repository",
        ),
        (COPY + GIT.replace("/opt/code/solver", "/app/solver"), "/app/solver and /app are the same place"),
        (COPY + 'build: {commands: ["make\\nRUN x"]}\n', "must be text on one line"),
    ],
)
def test_what_cannot_be_built_is_said_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(HpcgenError) as caught:
        planned(tmp_path, text)
    assert said in " ".join(str(caught.value).split()), str(caught.value)


def test_the_block_beside_build_is_refused(tmp_path: Path) -> None:
    head = f"{HEAD}blocks: {{application: {{options: {{mpi: true}}}}}}\n"
    with pytest.raises(InputError, match="`build` stands for the block application"):
        planned(tmp_path, COPY + BUILD, head=head)


def test_a_list_of_what_stays_behind_cannot_bring_back(tmp_path: Path) -> None:
    planned(tmp_path, COPY)
    (tmp_path / "src/.hpcgenignore").write_text("*.log\n!big.log\n")
    with pytest.raises(InputError, match=r"\.hpcgenignore:2: '!big.log' would bring back"):
        planned(tmp_path, COPY)


def test_check_finds_it_without_a_site(tmp_path: Path) -> None:
    planned(tmp_path, COPY + BUILD)
    check_file(Catalog(), tmp_path / "own.yaml")
    (tmp_path / "own.yaml").write_text(HEAD + "blocks: {}\n" + BUILD)
    with pytest.raises(InputError, match="folder in which `build` runs its commands is not set"):
        check_file(Catalog(), tmp_path / "own.yaml")
