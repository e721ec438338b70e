"""What says which blocks of an image were compiled before, and by whom: the image, its bill, its record, explain."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hpcgen.builders.records.store import save
from hpcgen.core.model.record import ArtifactOrigin
from hpcgen.images.recorded import taken_artifacts
from tests.conftest import GOLDEN, Command
from tests.unit.builders.artifacts.test_store import KEY
from tests.unit.builders.records.test_records import record
from tests.unit.images.test_reading import assert_valid

ORIGIN = ArtifactOrigin(key=KEY, version="4.3.2", made="2026-01-02T03:04:05Z", engine="podman 4.3.1", hpcgen="0.2.0")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A folder that is an image with a kit, one block of which was compiled before."""
    shutil.copytree(GOLDEN / "workstation" / "mpi-hello", tmp_path / "image/opt/hpcgen/kit")
    (tmp_path / "image/etc").mkdir()
    (tmp_path / "image/etc/os-release").write_text("ID=debian\nVERSION_ID=12\n")
    labels = {"io.hpcgen.artifacts": json.dumps({"mpich": {"key": KEY, **_facts()}})}
    (tmp_path / "image/.singularity.d").mkdir()
    (tmp_path / "image/.singularity.d/labels.json").write_text(json.dumps(labels))
    return tmp_path / "image"


def _facts() -> dict[str, str]:
    return {"version": "4.3.2", "made": ORIGIN.made, "engine": ORIGIN.engine, "hpcgen": "0.2.0"}


def test_explain_says_of_an_image_what_was_compiled_before(image: Path, hpcgen: Command) -> None:
    told = hpcgen("explain", "mpich", "libfabric", "--from", str(image))
    assert told.returncode == 0, told.stderr
    first, second = told.stdout.split("\n\n")
    said = f"not built for this image, but compiled {ORIGIN.made} by podman 4.3.1 and hpcgen 0.2.0: artifact {KEY}"
    assert said in first and "artifact" not in second


def test_the_bill_of_an_image_names_its_artifacts(image: Path, hpcgen: Command) -> None:
    bill = hpcgen("inspect", str(image), "--sbom")
    assert bill.returncode == 0, bill.stderr
    (found,) = (each for each in json.loads(bill.stdout)["components"] if each["bom-ref"] == f"artifact:{KEY}")
    assert {"name": "hpcgen:artifact", "value": KEY} in found["properties"] and ORIGIN.made in found["description"]
    assert_valid(bill.stdout)


def test_a_record_shows_where_an_artifact_was_taken_from(
    tmp_path: Path, hpcgen: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCGEN_RECORDS", str(tmp_path / "records"))
    origin = ArtifactOrigin(**{**_facts(), "key": KEY}, place="docker://registry.example.org/hpc/artifacts")
    save(record("0123-probe", artifacts={"mpich": origin}))
    shown = hpcgen("records", "show", "0123", env={"HPCGEN_RECORDS": str(tmp_path / "records")}).stdout
    assert KEY[:12] in shown and str(ORIGIN) in shown and "docker://registry.example.org/hpc/artifacts" in shown


@pytest.mark.parametrize("label", ["mpich@abcd", "[]", '{"mpich": 1}', '{"mpich": {"key": "no"}}', '{"a\\u001b": {}}'])
def test_a_label_that_is_not_understood_says_nothing(label: str) -> None:
    assert taken_artifacts({"io.hpcgen.artifacts": label}) == {}
