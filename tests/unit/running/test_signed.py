"""Only signed images are started where the user's config file or the site's profile says so."""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from hpcgen.builders.records.provenance import provenance_text, statement_beside
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.record import BuildRecord, BuiltImage
from hpcgen.core.support.hashing import file_sha256
from hpcgen.core.support.signatures import PROVENANCE
from hpcgen.images.reference import ImageReference, parse_image
from hpcgen.kit.lockfile.lock import write_signed
from hpcgen.running.image_job import ImageJob, checks, plan_for_image, plan_for_stack
from tests.conftest import GOLDEN, ROOT, Command
from tests.helpers.ssh_keys import allowed, ssh_key

DEMAND = {"images": {"require_signature": True}}
Start = Callable[..., ImageJob]


@pytest.fixture
def image(tmp_path: Path) -> Path:
    with tarfile.open(tmp_path / "hello.tar", "w") as archive:
        archive.add(GOLDEN / "workstation" / "mpi-hello", "opt/hpcgen/kit")
    for name in ("alice", "eve"):
        ssh_key(tmp_path / name)
    allowed(tmp_path / "signers", {"alice@example.org": tmp_path / "alice"})
    return tmp_path / "hello.tar"


@pytest.fixture
def start(image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """The job of the image, with a config file and what the user's own profile has besides."""

    def started(config: dict[str, object], profile: dict[str, object] | None = None, **how: object) -> ImageJob:
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
        monkeypatch.setenv("HPCGEN_CONFIG", str(tmp_path / "config.yaml"))
        folder = tmp_path / f"own{len(list(tmp_path.glob('own*')))}"
        (folder / "site_profiles").mkdir(parents=True)
        if profile is not None:
            shipped = (ROOT / "site_profiles/workstation.yaml").read_text()
            (folder / "site_profiles/workstation.yaml").write_text(f"{shipped}\n{yaml.safe_dump(profile)}")
        return plan_for_image(parse_image(str(image)), Catalog([folder]), elsewhere=True, converted=True, **how)

    return started


def sign(image: Path, key: str = "alice") -> Path:
    record = BuildRecord(
        id="0a1b", hpcgen="0.2.0", started="2026-11-20T10:00:00Z", site="workstation", stack="mpi-hello",
        partition="main", format="docker", engine="podman", seconds=1.0, content="", machine="", folder="",
        command="hpcgen render", image=BuiltImage(kind="tar", name=str(image), digest=f"sha256:{file_sha256(image)}"),
    )  # fmt: skip
    file = statement_beside(ImageReference("tar", str(image)))
    write_signed(file, provenance_text(record), image.parent / key, PROVENANCE)
    return file


def refused(start: Start, *given: dict[str, object]) -> str:
    with pytest.raises(PolicyError) as caught:
        start(*given)
    return str(caught.value)


def test_a_signed_image_is_started_and_its_job_compares_it(start: Start, image: Path) -> None:
    sign(image)
    config = {**DEMAND, "signers": f"{image.parent}/signers"}
    job = start(config)
    assert job.sha256 == file_sha256(image) and job.sha256 in checks(job)
    # Tests decide whether it is worth a signature.
    assert start(config, signed=False).sha256 == ""


@pytest.mark.parametrize("who", ["config", "profile"])
def test_what_is_missing_is_said(start: Start, image: Path, who: str) -> None:
    config = DEMAND if who == "config" else {}
    profile = DEMAND if who == "profile" else None
    named = "your config file" if who == "config" else "the profile of workstation"
    said = refused(start, config, profile)
    assert f"{named} (images.require_signature) requires" in said and "add `signers: FILE`" in said
    config = {**config, "signers": f"{image.parent}/signers"}
    said = refused(start, config, profile)
    assert f"{image} has no provenance statement" in said and f"{image}.provenance.json.sig" in said
    sign(image, "eve")
    assert "signature: " in (said := refused(start, config, profile)) and "none of the allowed signers" in said
    file = sign(image)
    assert start(config, profile).sha256
    file.with_name(file.name + ".sig").unlink()
    assert "is not signed" in refused(start, config, profile)
    sign(image)
    with image.open("ab") as stream:
        stream.write(b"\0" * 512)
    assert "digest: the image is sha256:" in refused(start, config, profile)


def test_a_record_cannot_take_the_own_profiles_demand_away(start: Start, image: Path) -> None:
    """The plan in the image has a profile of that name which asks for nothing."""
    with pytest.raises(PolicyError, match="the profile of workstation"):
        start({}, DEMAND, trust=True)


def test_an_image_that_is_not_named_cannot_be_checked(start: Start, image: Path) -> None:
    sign(image)
    job = start({**DEMAND, "signers": f"{image.parent}/signers"})
    with pytest.raises(PolicyError, match="no image is named"):
        plan_for_stack(job.plan, Catalog())


def test_nothing_is_read_where_nobody_asks(start: Start, image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the statement nor the image, once more than a start does."""
    sign(image).write_text("damaged")
    monkeypatch.delitem(sys.modules, "hpcgen.builders.records.provenance")
    job = start({"signers": f"{image.parent}/signers"})
    assert job.sha256 == "" and "sha256sum" not in checks(job)
    assert "hpcgen.builders.records.provenance" not in sys.modules


def test_run_and_submit_refuse_and_verify_finds_the_statement(image: Path, hpcgen: Command) -> None:
    folder = image.parent
    (folder / "config.yaml").write_text(yaml.safe_dump({**DEMAND, "signers": f"{folder}/signers"}))
    env = {"HPCGEN_CONFIG": f"{folder}/config.yaml"}
    for command in ("run", "submit", "job"):
        done = hpcgen(command, "hello.tar", env=env)
        assert done.returncode == 6 and "has no provenance statement" in done.stderr, done.stderr
    sign(image)
    done = hpcgen("verify", "hello.tar", env=env)
    assert done.returncode == 0 and "by alice@example.org" in done.stdout, done.stderr
