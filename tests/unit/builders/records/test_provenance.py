"""Statements of where images come from: what is in them, whom they name, and what a check makes of a wrong one."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from hpcgen.builders.records.provenance import MAX_BYTES, provenance_text
from hpcgen.builders.records.store import save
from hpcgen.core.errors import InputError
from hpcgen.core.model.record import ArtifactOrigin, BuildRecord, BuiltImage
from hpcgen.core.support.hashing import file_sha256, sha256_of
from tests.conftest import GOLDEN, Command
from tests.helpers.ssh_keys import allowed, ssh_key

STORED = GOLDEN / "workstation" / "mpi-hello"
"""A kit."""


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties, "additionalProperties": False}


_URI = {"type": "string", "pattern": "^[a-z][a-z0-9+.-]*:[^\\s]+$"}
_TIME = {"type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$"}
_DIGEST = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string", "pattern": "^[0-9a-f]+$"}}
_RESOURCE = {
    **_object(
        "",
        name={"type": "string"},
        uri=_URI,
        digest=_DIGEST,
        content={"type": "string"},
        downloadLocation=_URI,
        mediaType={"type": "string"},
        annotations={"type": "object"},
    ),
    "anyOf": [{"required": ["uri"]}, {"required": ["digest"]}, {"required": ["content"]}],
}
_RESOURCES = {"type": "array", "items": _RESOURCE}
_DEFINITION = _object(
    "buildType externalParameters",
    buildType=_URI,
    externalParameters={"type": "object"},
    internalParameters={"type": "object"},
    resolvedDependencies=_RESOURCES,
)
_RUN = _object(
    "builder",
    builder=_object(
        "id",
        id=_URI,
        version={"type": "object", "additionalProperties": {"type": "string"}},
        builderDependencies=_RESOURCES,
    ),
    metadata=_object("", invocationId={"type": "string"}, startedOn=_TIME, finishedOn=_TIME),
    byproducts=_RESOURCES,
)
SCHEMA = _object(
    "_type subject predicateType predicate",
    _type={"const": "https://in-toto.io/Statement/v1"},
    subject={"type": "array", "minItems": 1, "items": {**_RESOURCE, "required": ["digest"]}},
    predicateType={"const": "https://slsa.dev/provenance/v1"},
    predicate=_object("buildDefinition runDetails", buildDefinition=_DEFINITION, runDetails=_RUN),
)
"""The fields of in-toto/attestation, spec/v1, and of slsa-framework/slsa, docs/spec/v1.1/schema/provenance.cue."""


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCGEN_RECORDS", str(tmp_path / "records"))


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A file that is an image with a kit."""
    with tarfile.open(tmp_path / "hello.tar", "w") as archive:
        archive.add(STORED, "opt/hpcgen/kit")
    return tmp_path / "hello.tar"


def record(image: BuiltImage | None, **more: Any) -> BuildRecord:
    lock = (STORED / "hpcgen.lock").read_text()
    content = next(line.split()[-1].strip("'\"") for line in lock.splitlines() if line.startswith("content:"))
    given = {
        "content": content,
        "lock": sha256_of(lock),
        "command": "hpcgen render --site cluster7 --account p12345 --set gnu.version=12 --image-directory /home/alice",
        "artifacts": {"gnu": ArtifactOrigin(key="ab" * 32)},
        "inputs": [
            f"image debian:12 sha256:{'1' * 64}",
            f"https://example.org/a b.tar.gz sha256:{'2' * 64}",
            f"https://example.org/clip.git commit:{'3' * 40}",
            "wheels intel-mpi-2021.17.2 (hashed)",
            "image debian:13 not pinned",
        ],
        **more,
    }
    return BuildRecord(
        id="0a1b2c3d-hello-here-20261120",
        hpcgen="0.2.0",
        started="2026-11-20T10:00:00Z",
        site="here",
        stack="hello",
        partition="cpu",
        format="singularity",
        engine="apptainer",
        engine_version="1.4.5",
        machine="node17.secret.example",
        folder="/home/alice/work",
        seconds=90.4,
        image=image,
        **given,
    )


def of_file(image: Path, **more: Any) -> BuildRecord:
    return record(BuiltImage(kind="tar", name=str(image), digest=f"sha256:{file_sha256(image)}"), **more)


def test_a_statement_has_the_fields_of_the_specifications(image: Path) -> None:
    statement = json.loads(provenance_text(of_file(image)))
    jsonschema.validate(statement, SCHEMA)
    assert statement["subject"] == [{"name": "hello.tar", "digest": {"sha256": file_sha256(image)}}]
    run = statement["predicate"]["runDetails"]
    assert run["builder"]["version"] == {"hpcgen": "0.2.0", "apptainer": "1.4.5"}
    assert run["metadata"] == {
        "invocationId": "0a1b2c3d-hello-here-20261120",
        "startedOn": "2026-11-20T10:00:00Z",
        "finishedOn": "2026-11-20T10:01:30Z",
    }
    found = {each["name"]: each for each in statement["predicate"]["buildDefinition"]["resolvedDependencies"]}
    assert found["image debian:12"]["digest"] == {"sha256": "1" * 64}
    assert found["https://example.org/clip.git"]["digest"] == {"gitCommit": "3" * 40}
    assert found["https://example.org/a b.tar.gz"]["uri"] == "https://example.org/a%20b.tar.gz"
    # What has no hash has none here, and an artifact's key is no hash of its archive.
    assert all("digest" not in found[name] for name in ("gnu", "image debian:13 not pinned"))
    assert "ab" * 32 in found["gnu"]["uri"]


def test_what_a_record_does_not_have_is_left_out(image: Path) -> None:
    """As of an image that a Dockerfile of the user's own describes, or of a record that was written by hand."""
    more = {"content": "", "lock": "", "inputs": [], "artifacts": {}, "command": "a 'half"}
    statement = json.loads(provenance_text(replace(of_file(image, **more), started="yesterday", engine_version="")))
    jsonschema.validate(statement, SCHEMA)
    assert statement["predicate"]["buildDefinition"]["resolvedDependencies"] == []
    run = statement["predicate"]["runDetails"]
    assert run["metadata"].keys() == {"invocationId"} and run["builder"]["version"] == {"hpcgen": "0.2.0"}


def test_nobody_is_named_in_a_statement(image: Path) -> None:
    text = provenance_text(of_file(image, command="hpcgen render --account p12345 --set a.token=hunter2secret"))
    assert "hpcgen render --set a.token" in text
    for private in ("alice", "node17", "p12345", "hunter2secret", str(image.parent)):
        assert private not in text, private


def test_what_has_no_digest_has_no_statement(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder has no digest: its files change one by one"):
        provenance_text(record(BuiltImage(kind="directory", name=str(tmp_path))))
    with pytest.raises(InputError, match="made no image"):
        provenance_text(record(None, result="failed"))


@pytest.fixture
def signed(tmp_path: Path, image: Path, hpcgen: Command) -> Path:
    """A statement that alice signed; the file of signers allows her."""
    for name in ("alice", "eve"):
        ssh_key(tmp_path / name)
    allowed(tmp_path / "signers", {"alice@example.org": tmp_path / "alice"})
    save(of_file(image))
    done = written(hpcgen, "-o", "s.json", "--sign", str(tmp_path / "alice"))
    assert done.returncode == 0, done.stderr
    return tmp_path / "s.json"


def outcomes(hpcgen: Command, *words: str) -> tuple[int, dict[str, str]]:
    done = hpcgen("verify", "hello.tar", "--provenance", "s.json", *words, "--json")
    assert done.stdout.startswith("["), done.stderr
    return done.returncode, {each["name"]: each["outcome"] for each in json.loads(done.stdout)}


def written(hpcgen: Command, *words: str) -> CompletedProcess[str]:
    """The statement of the record that was saved last."""
    return hpcgen("records", "provenance", "0a1b", *words, env={"HPCGEN_RECORDS": os.environ["HPCGEN_RECORDS"]})


ALL = {"signature": "holds", "digest": "holds", "plan": "holds", "hpcgen.lock": "holds"}


def test_a_signed_statement_of_the_image_holds(signed: Path, hpcgen: Command) -> None:
    assert outcomes(hpcgen, "--signer", "signers") == (0, ALL)
    # Whose key it is nobody says.
    assert outcomes(hpcgen) == (0, {**ALL, "signature": "unknown"})
    done = hpcgen("verify", "hello.tar", "--provenance", "s.json", "--signer", "signers")
    assert "by alice@example.org (ED25519 key SHA256:" in done.stdout


def test_signers_of_the_config_file_are_required(signed: Path, hpcgen: Command) -> None:
    (signed.parent / "config.yaml").write_text(f"signers: {signed.parent}/signers\n")
    signed.with_name("s.json.sig").unlink()
    done = hpcgen(
        "verify", "hello.tar", "--provenance", "s.json", env={"HPCGEN_CONFIG": f"{signed.parent}/config.yaml"}
    )
    assert done.returncode == 6 and "is not signed" in done.stdout
    assert outcomes(hpcgen) == (0, {**ALL, "signature": "unknown"})


def test_a_changed_statement_or_another_signer_does_not_hold(signed: Path, hpcgen: Command) -> None:
    text = signed.read_text()
    signed.write_text(text.replace('"site": "here"', '"site": "there"'))
    for words in ([], ["--signer", "signers"]):
        assert outcomes(hpcgen, *words) == (6, {**ALL, "signature": "does not hold"})
    # A signature of the same bytes for something else is none of a statement.
    signed.write_text(text)
    from hpcgen.core.support.signatures import LOCK, sign

    signed.with_name("s.json.sig").write_text(sign(text.encode(), signed.parent / "alice", LOCK))
    assert outcomes(hpcgen, "--signer", "signers")[1]["signature"] == "does not hold"
    done = written(hpcgen, "-o", "s.json", "--sign", str(signed.parent / "eve"))
    assert done.returncode == 0, done.stderr
    assert outcomes(hpcgen, "--signer", "signers") == (6, {**ALL, "signature": "does not hold"})


def test_a_statement_without_a_key_takes_the_old_signature_away(signed: Path, hpcgen: Command) -> None:
    done = written(hpcgen, "-o", "s.json")
    assert done.returncode == 0 and "was signed; the new one is not" in done.stderr
    assert not signed.with_name("s.json.sig").exists()


def test_another_image_does_not_hold(signed: Path, image: Path, hpcgen: Command) -> None:
    with image.open("ab") as file:
        file.write(b"\0" * 512)
    assert outcomes(hpcgen, "--signer", "signers") == (6, {**ALL, "digest": "does not hold"})


def test_another_plan_or_lock_in_the_image_does_not_hold(signed: Path, image: Path, hpcgen: Command) -> None:
    save(of_file(image, content="0" * 64, lock="0" * 64))
    written(hpcgen, "-o", "s.json", "--sign", str(signed.parent / "alice"))
    wrong = {"plan": "does not hold", "hpcgen.lock": "does not hold"}
    assert outcomes(hpcgen, "--signer", "signers") == (6, {**ALL, **wrong})
    # Records of older releases do not have the lock's hash.
    save(of_file(image, lock=""))
    written(hpcgen, "-o", "s.json", "--sign", str(signed.parent / "alice"))
    assert outcomes(hpcgen, "--signer", "signers") == (0, {**ALL, "hpcgen.lock": "unknown"})


def test_an_image_without_a_kit_or_a_digest_is_unknown(signed: Path, image: Path, hpcgen: Command) -> None:
    shutil.copytree(STORED, signed.parent / "folder/opt/hpcgen/kit")
    done = hpcgen("verify", "./folder", "--provenance", "s.json", "--signer", "signers", "--json")
    told = {each["name"]: each for each in json.loads(done.stdout)}
    # An image that cannot be told from another one is not taken for the one that was signed.
    assert done.returncode == 6 and told["digest"]["outcome"] == "unknown" and "a folder" in told["digest"]["reason"]
    with tarfile.open(image, "w") as archive:
        archive.add(__file__, "etc/os-release")
    save(of_file(image))
    written(hpcgen, "-o", "s.json", "--sign", str(signed.parent / "alice"))
    assert outcomes(hpcgen, "--signer", "signers") == (0, {"signature": "holds", "digest": "holds", "plan": "unknown"})


def _with(text: str, *path: str | int, value: Any) -> str:
    whole = json.loads(text)
    at = whole
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    return json.dumps(whole)


WRONG = {
    "cut": (lambda text: text[: len(text) // 2], "is damaged"),
    "empty": (lambda text: "", "is damaged"),
    "a list": (lambda text: "[1]", "it has no _type"),
    "deep": (lambda text: "[" * 200_000, "is damaged"),
    "another type": (lambda text: _with(text, "_type", value="https://in-toto.io/Statement/v0.1"), "its _type is"),
    "another predicate": (lambda text: _with(text, "predicateType", value="https://slsa.dev/vsa/v1"), "predicateType"),
    "a type that is none": (lambda text: _with(text, "_type", value={"\x1b[31m": 1}), "its _type is"),
    "no predicate": (lambda text: _with(text, "predicate", value=None), "is not understood"),
    "another's build": (
        lambda text: _with(text, "predicate", "buildDefinition", "buildType", value="https://example.org/\x1b[31m"),
        "is of a build by something else",
    ),
    "no subject": (lambda text: _with(text, "subject", value=[]), "is about no image"),
    "a digest that is none": (lambda text: _with(text, "subject", 0, "digest", "sha256", value="zz"), "about no image"),
    "a digest of another type": (lambda text: _with(text, "subject", 0, "digest", value="ab"), "is not understood"),
    "too large": (lambda text: text + " " * MAX_BYTES, "is larger than any statement"),
    "no text": (lambda text: b"\xff\xfe\x00{", "is damaged"),
}


@pytest.mark.parametrize("how", WRONG)
def test_a_wrong_statement_is_refused_in_words(how: str, signed: Path, hpcgen: Command) -> None:
    change, said = WRONG[how]
    changed = change(signed.read_text())
    signed.write_bytes(changed if isinstance(changed, bytes) else changed.encode())
    done = hpcgen("verify", "hello.tar", "--provenance", "s.json", "--signer", "signers")
    assert done.returncode == 3 and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and "\x1b" not in done.stderr and not done.stdout


def test_what_is_no_file_is_refused(signed: Path, hpcgen: Command) -> None:
    os.mkfifo(signed.parent / "pipe")
    for name, said in (("pipe", "not a regular file"), ("nowhere", "No such file"), (".", "folder")):
        done = hpcgen("verify", "hello.tar", "--provenance", name)
        assert done.returncode == 3 and said in done.stderr, done.stderr


def test_a_key_without_a_file_is_wrong_usage(signed: Path, hpcgen: Command) -> None:
    done = written(hpcgen, "--sign", str(signed.parent / "alice"))
    assert done.returncode == 2 and "--sign requires -o FILE" in done.stderr
