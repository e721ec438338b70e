"""What Apptainer's builds keep: the builder before the steps of the project, as an image of its own."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hpcgen.backends.engines import builders
from hpcgen.backends.engines.building import EngineCommand, Work, file_target
from hpcgen.backends.engines.steps import Step
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.stack import StackBlock
from hpcgen.kit.folder import read_kit
from hpcgen.kit.kit import make_kit, store_kit
from hpcgen.planning.planner import make_plan

CATALOG = Catalog()


class Builds:
    """Kits of one stack with packages of a project, and what Apptainer would be told of each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0

    def work(self, *packages: str, settings: tuple[str, ...] = ()) -> Work:
        self.number += 1
        stack = CATALOG.stack("pytorch-ddp")
        own = {"os_packages": StackBlock(options={"packages": list(packages)})} if packages else {}
        stack = msgspec.structs.replace(stack, blocks={**stack.blocks, **own})
        plan = make_plan(CATALOG, CATALOG.site("juwels-booster"), stack, settings=settings)
        place = self.folder / str(self.number)
        store_kit(place, make_kit(plan, CATALOG).files)
        kit = read_kit(place)
        scratch = self.folder / f"scratch{self.number}"
        scratch.mkdir()
        assert kit.facts is not None
        target = file_target(str(self.folder / "image.sif"), "token", {".sif": "sif"})
        return Work(
            plan=plan,
            kit=place,
            recipe=place / "Singularity.def",
            context=place,
            token="token",
            scratch=scratch,
            target=target,
            steps=[Step("block", "about")] * 30,
            kept=kit.facts.kept,
        )

    def commands(self, work: Work) -> list[EngineCommand]:
        return builders()["apptainer"]().build(work)


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builds:
    monkeypatch.setenv("APPTAINER_CACHEDIR", str(tmp_path / "cache"))
    return Builds(tmp_path)


def read_more(work: Work) -> dict[Path, str]:
    return builders()["apptainer"]().more_files(work)


def kept_name(calls: list[EngineCommand]) -> str:
    (moved,) = [call for call in calls if call.words[0] == "mv"]
    return str(moved.words[-1])


def test_a_project_that_changes_starts_from_what_is_kept(builds: Builds) -> None:
    work = builds.work("libnuma-dev")
    calls = builds.commands(work)
    texts = {path.relative_to(work.scratch).as_posix(): text for path, text in read_more(work).items()}
    first, rest = texts["kept/first.def"], texts["rest.def"]
    assert "torch" in first and "libnuma-dev" not in first
    assert first.count("BootStrap:") == 1 and "From: ubuntu@sha256:" in first
    assert rest.count("BootStrap:") == 2 and f"BootStrap: localimage\nFrom: {kept_name(calls)}\n" in rest
    assert "libnuma-dev" in rest.split("Stage: final")[0] and "pip install" not in rest.split("Stage: final")[0]
    assert {name.split("/")[1] for name in texts if name.startswith("kept/")} == {"files", "first.def"}
    # One more package, and so one more step of another number, is the project's alone.
    assert kept_name(builds.commands(builds.work("libnuma-dev", "libudunits2-dev"))) == kept_name(calls)
    other = builds.work("libnuma-dev", settings=("pytorch.version=2.9.1",))
    assert kept_name(builds.commands(other)) != kept_name(calls)
    kept = Path(kept_name(calls))
    kept.parent.mkdir(parents=True, mode=0o700)
    kept.write_bytes(b"")
    kept.chmod(0o644)
    (only,) = builds.commands(work)
    assert only.cached > 5 and only.words[-1] == str(work.scratch / "rest.def")
    # What others could have written is not a part of an image.
    kept.chmod(0o666)
    assert len(builds.commands(work)) > 1


def test_an_older_one_goes_when_its_successor_is_built(builds: Builds) -> None:
    work = builds.work("libnuma-dev")
    kept = Path(kept_name(builds.commands(work)))
    kept.parent.mkdir(parents=True, mode=0o700)
    older = kept.with_name(f"pytorch-ddp-juwels-booster-{'0' * 32}.sif")
    others = [kept.with_name(f"mpi-hello-juwels-booster-{'0' * 32}.sif"), kept.with_name("notes.txt")]
    for path in (older, *others):
        path.write_bytes(b"")
    removed = [call.words[-1] for call in builds.commands(work) if call.words[0] == "rm"]
    assert removed == [str(older)]
    assert {each.name for each in builders()["apptainer"]().left_images()} == {older.name, others[0].name}


def test_nothing_is_kept_without_a_project_or_a_cache_or_where_others_write(builds: Builds, tmp_path: Path) -> None:
    assert builds.work().kept is None
    work = builds.work("libnuma-dev")
    (call,) = builds.commands(msgspec.structs.replace(work, cache=False))
    assert call.words[-1] == str(work.recipe)
    folder = tmp_path / "cache" / "hpcgen-builders"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    (call,) = builds.commands(work)
    assert call.words[-1] == str(work.recipe)
