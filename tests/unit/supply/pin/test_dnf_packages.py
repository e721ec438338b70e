"""RPM packages as dnf in the base image names them. dnf itself is a stand-in; tests/containers has the real one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.errors import FetchError, HpcgenError, InputError, PolicyError
from hpcgen.core.model.lock import KeyPin, PackagePin
from hpcgen.supply.pin.dnf_packages import Dnf
from tests.unit.supply.pin.test_os_packages import Base

KEY = "file:///etc/pki/rpm-gpg/RPM-GPG-KEY-Rocky-9"
HELLO: dict[str, Any] = {
    "name": "hello",
    "epoch": "1",
    "version": "2.0^git5-1.el9",
    "architecture": "x86_64",
    "kind": "sha256",
    "hash": "D" * 64,
    "size": 1356,
    "url": "https://mirror.example.org/Packages/h/hello-2.0%5Egit5-1.el9.x86_64.rpm",
}
OWN: dict[str, Any] = {
    "id": "baseos",
    "address": "https://mirror.example.org/",
    "date": 1794647700,
    "checked": True,
    "keys": [["A" * 40, KEY]],
}


def dnf(tmp_path: Path, packages: list[dict[str, Any]], problems: tuple[str, ...] = (), **repository: Any) -> Dnf:
    """A base whose dnf gives this answer, after a line of something else."""
    base = Base(tmp_path)
    said = {"problems": problems, "repositories": [{**OWN, **repository}], "packages": packages}
    base.answers = {"dnf_question": (0, f"Warning: from a plug-in\n{json.dumps(said)}")}
    return Dnf(base)  # type: ignore[arg-type]


def test_packages_and_keys_are_those_that_dnf_names(tmp_path: Path) -> None:
    manager = dnf(tmp_path, [HELLO])
    pin = PackagePin(version="1:2.0^git5-1.el9", architecture="x86_64", sha256="d" * 64, size=1356, url=HELLO["url"])
    assert manager.added(["hello"]) == {"hello": pin}
    assert pin.file("hello") == "hello-2.0^git5-1.el9.x86_64.rpm"
    index = "https://mirror.example.org/ baseos"
    key = KeyPin(fingerprint="A" * 40, keyring=KEY, index=index, date="2026-11-14T09:15:00Z")
    assert manager.keys() == ([key], 1794647700)


def test_what_rpm_lists_is_present_but_the_keys(tmp_path: Path) -> None:
    manager = dnf(tmp_path, [])
    lines = "bash|0|5.1.8-9.el9\ngpg-pubkey|0|350d275d-6279464b\nshadow-utils|2|4.9-8.el9"
    manager.shell.answers["rpm -qa"] = (0, lines)  # type: ignore[attr-defined]
    assert manager.present() == {"bash": "5.1.8-9.el9", "shadow-utils": "2:4.9-8.el9"}


@pytest.mark.parametrize(
    "change", [{"checked": False}, {"keys": []}, {"keys": [["A" * 40, "https://example.org/key"]]}]
)
def test_a_repository_whose_packages_the_build_could_not_check_is_refused(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    with pytest.raises(PolicyError, match="baseos is not signed by any key") as caught:
        dnf(tmp_path, [], **change).keys()
    assert "gpgcheck=1 and gpgkey=file://" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"kind": "sha1"}, InputError, "no sha256, only SHA1"),
        ({"kind": ""}, InputError, "no sha256, only nothing"),
        ({"url": ""}, FetchError, "is at "),
        ({"url": "ftp://example.org/hello-2.0^git5-1.el9.x86_64.rpm"}, FetchError, "is at ftp://"),
        ({"url": "https://example.org/other.rpm"}, FetchError, "is in the file other.rpm"),
    ],
)
def test_files_that_a_build_could_not_fetch_again_are_refused(
    tmp_path: Path, change: dict[str, Any], error: type[HpcgenError], said: str
) -> None:
    with pytest.raises(error, match=said):
        dnf(tmp_path, [{**HELLO, **change}]).added(["hello"])


def test_a_package_of_two_architectures_is_refused(tmp_path: Path) -> None:
    other = {**HELLO, "architecture": "i686", "url": "https://example.org/hello-2.0%5Egit5-1.el9.i686.rpm"}
    with pytest.raises(InputError, match=r"hello twice: 1:2.0\^git5-1.el9.x86_64 and 1:2.0\^git5-1.el9.i686"):
        dnf(tmp_path, [HELLO, other]).added(["hello"])


def test_what_dnf_does_not_find_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing packages: hullo") as caught:
        dnf(tmp_path, [], ("Problems in request:", "missing packages: hullo")).added(["hullo"])
    assert "Problems in request" not in str(caught.value)


@pytest.mark.parametrize("answer", ["", "{}", "[]", "Traceback", '{"problems": [], "packages": [{"name": 1}]}'])
def test_answers_that_are_none_are_refused(tmp_path: Path, answer: str) -> None:
    manager = dnf(tmp_path, [])
    manager.shell.answers = {"dnf_question": (0, answer)}  # type: ignore[attr-defined]
    with pytest.raises(FetchError, match="dnf's output cannot be parsed"):
        manager.added(["hello"])
