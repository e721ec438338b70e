"""OS packages as apt in the base image names them. apt itself is a stand-in here; tests/containers has the real one."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgen.blocks.steps import HostFile, Image, run
from hpcgen.core.errors import FetchError, HpcgenError, InputError, PolicyError
from hpcgen.core.model.lock import KeyPin, PackagePin, StagePackages
from hpcgen.recipe.stages import Stage
from hpcgen.supply.pin import os_packages
from hpcgen.supply.pin.apt_keys import split_signed
from hpcgen.supply.pin.base_shell import BaseShell
from hpcgen.supply.pin.index_signatures import dearmoured
from hpcgen.supply.pin.os_packages import resolve_packages

LISTS = "/var/lib/apt/lists/example.org_debian_dists_bookworm_"
MAIN, SUB, OLD = (digit * 40 for digit in "ABC")
SIGNED = """\
-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA256

Origin: Example
Date: Sat, 14 Nov 2026 09:15:00 UTC
- -----dashes
-----BEGIN PGP SIGNATURE-----

c2lnbmF0dXJl
-----END PGP SIGNATURE-----
Date: Mon, 01 Jan 2035 00:00:00 UTC
"""
GPGV = f"""\
= 0 0
[GNUPG:] NEWSIG
[GNUPG:] GOODSIG 1111 Example
[GNUPG:] VALIDSIG {SUB} 2026-11-14 1 0 4 0 1 8 01 {MAIN}
[GNUPG:] NEWSIG
[GNUPG:] EXPKEYSIG 2222 Example, of long ago
[GNUPG:] VALIDSIG {OLD} 2026-11-14 1 0 4 0 1 8 01 {OLD}
[GNUPG:] NEWSIG
[GNUPG:] ERRSIG 3333 1 8 01 1 9
[GNUPG:] NO_PUBKEY 3333"""
URI = (
    "'http://example.org/debian/pool/main/g/gcc/g%2b%2b_12.2.0-3_amd64.deb' g++_4%3a12.2.0-3_amd64.deb 1356 SHA256:"
    + "d" * 64
)
MAKE = "'http://example.org/debian/pool/make_4.3-4.1_all.deb' make_4.3-4.1_all.deb 395632 SHA256:" + "e" * 64
ONE_LINE = "deb [arch=amd64 signed-by=/usr/share/keyrings/example.gpg] http://example.org/debian bookworm main\n"


class Base:
    """What a base image answers: by the first word that a script contains."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.image = "debian:12"
        self.unpacked = 0
        self.scripts: list[str] = []
        self.environment: Mapping[str, str] = {}
        self.files: dict[str, bytes] = {
            "/etc/apt/sources.list": ONE_LINE.encode(),
            "/usr/share/keyrings/example.gpg": b"\x99ring",
            f"{LISTS}InRelease": SIGNED.encode(),
        }
        self.answers: dict[str, tuple[int, str]] = {
            "indextargets": (
                0,
                f"Packages|{LISTS}main_binary-amd64_Packages.lz4|http://example.org/debian/|bookworm|main/binary-amd64/Packages\n"
                f"Translations|{LISTS}main_i18n|http://example.org/debian/|bookworm|main/i18n/Translation-en",
            ),
            "apt-config": (0, "/etc/apt/sources.list"),
            "trusted.gpg.d": (0, "other.asc\nREADME"),
            "gpgv": (0, GPGV),
            "--print-uris": (0, f"{URI}\n{MAKE}"),
            "dpkg-query": (0, "ii |base-files|12.4\nhi |held|1.0\nrc |gone|2.0"),
            " update": (0, "Get:1 http://example.org/debian bookworm InRelease [151 kB]\nReading package lists..."),
        }

    def use(self, environment: Mapping[str, str]) -> None:
        self.environment = environment

    def run(self, script: str) -> tuple[int, list[str]]:
        self.scripts.append(script)
        if script.endswith("echo mirror > /etc/apt/sources.list"):
            place = self.root / "etc/apt/sources.list"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("mirror\n")
        for word, (status, text) in self.answers.items():
            if word in script:
                return status, text.splitlines()
        return 0, []

    def read(self, paths: Sequence[str], most: int | None = None) -> dict[str, bytes]:
        return {path: self.files[path] for path in paths if path in self.files}

    def put(self, path: str, data: bytes) -> None:
        self.files[path] = data

    check = BaseShell.check


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Base:
    found = Base(tmp_path / "root")

    @contextlib.contextmanager
    def stand_in(layout: Path, image: str, environment: Mapping[str, str]) -> Iterator[Base]:
        found.unpacked += 1
        found.use(environment)
        yield found

    monkeypatch.setattr(os_packages, "base_shell", stand_in)
    return found


def resolve(
    names: Sequence[str] = ("g++", "make"), stage: Stage | None = None, say: Callable[[str], None] = print
) -> tuple[StagePackages, list[KeyPin], int]:
    stage = stage or Stage(name="builder", image=Image("debian:12"))
    (found,) = resolve_packages(Path("images"), [(stage, names)], "apt", say)
    return found.packages, found.keys, found.epoch


def test_packages_keys_and_date_are_those_that_apt_names(base: Base) -> None:
    packages, keys, epoch = resolve()
    assert packages.present == {"base-files": "12.4", "held": "1.0"}
    assert packages.added == {
        "g++": PackagePin(
            version="4:12.2.0-3",
            architecture="amd64",
            sha256="d" * 64,
            size=1356,
            url="http://example.org/debian/pool/main/g/gcc/g%2b%2b_12.2.0-3_amd64.deb",
        ),
        "make": PackagePin(
            version="4.3-4.1",
            architecture="all",
            sha256="e" * 64,
            size=395632,
            url="http://example.org/debian/pool/make_4.3-4.1_all.deb",
        ),
    }
    # The primary key of the good signature; not the expired one, nor the date that nobody signed.
    assert keys == [
        KeyPin(
            fingerprint=MAIN,
            keyring="/usr/share/keyrings/example.gpg",
            index="http://example.org/debian/ bookworm",
            date="2026-11-14T09:15:00Z",
        )
    ]
    assert epoch == 1794647700


def test_nothing_is_installed_and_the_stages_first_steps_come_first(base: Base, tmp_path: Path) -> None:
    certificate = tmp_path / "site.crt"
    certificate.write_text("-----BEGIN CERTIFICATE-----\n")
    stage = Stage(
        name="builder",
        image=Image("debian:12"),
        arguments={"https_proxy": "http://proxy.example.org"},
        host_files=[HostFile(str(certificate), "/usr/local/share/ca-certificates/site.crt")],
        steps=[
            ("site_trust 1", run("use the site's mirror", "echo mirror")),
            ("distribution", run("packages", "apt-get update", "apt-get install -y g++")),
            ("gnu", run("later", "echo later")),
        ],
        prepared=1,
    )
    said: list[str] = []
    resolve(stage=stage, say=said.append)
    assert base.files["/usr/local/share/ca-certificates/site.crt"] == certificate.read_bytes()
    assert base.environment == {"https_proxy": "http://proxy.example.org"}
    order = [
        next(i for i, script in enumerate(base.scripts) if word in script) for word in ("mirror", " update", "uris")
    ]
    assert order == sorted(order)
    assert not any("later" in script for script in base.scripts)
    assert all("--print-uris" in script for script in base.scripts if "install" in script)
    assert said[:2] == ["packages of the builder stage: 2 requested", "site_trust 1: use the site's mirror"]


def test_apt_reads_its_indexes_once_in_images_that_are_set_to_keep_no_cache(base: Base) -> None:
    """As those of Debian and Ubuntu are: every call read and parsed all of them."""
    resolve()
    calls = [line for script in base.scripts for line in script.splitlines() if line.startswith("apt-get ")]
    reading = [call for call in calls if call != "apt-get clean"]
    done = [word for call in reading for word in call.split() if word in ("update", "indextargets", "install")]
    assert done == ["update", "indextargets", "install"]
    assert all("-o Dir::Cache::pkgcache=pkgcache.bin " in call for call in reading)
    assert all("-o Acquire::GzipIndexes=false " in call for call in reading)


def test_without_names_the_network_is_not_asked(base: Base) -> None:
    packages, keys, epoch = resolve(())
    assert (packages.added, keys, epoch) == ({}, [], 0)
    assert packages.present and not any("apt-get" in script for script in base.scripts)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (100, "E: Failed to fetch http://example.org/x  404  Not Found"),
        # apt before 2.1.15 ends well
        (0, "Err:1 http://example.org/x\nW: Failed to fetch http://example.org/x  Could not resolve 'example.org'"),
        (0, "W: Some index files failed to download. They have been ignored, or old ones used instead."),
        (0, "W: GPG error: http://example.org bookworm InRelease: NO_PUBKEY 1111"),
    ],
)
def test_an_index_that_was_not_read_is_an_error(base: Base, status: int, text: str) -> None:
    base.answers[" update"] = (status, text)
    with pytest.raises(FetchError, match="apt-get update failed in debian:12") as caught:
        resolve()
    assert text.splitlines()[-1] in str(caught.value)


def test_warnings_that_do_no_harm_are_none(base: Base) -> None:
    base.answers[" update"] = (0, "W: Target Packages is configured multiple times\nIgn:1 file: x InRelease")
    resolve()


def test_unknown_packages_are_all_named(base: Base) -> None:
    base.answers["--print-uris"] = (100, "E: Unable to locate package gxx\nE: Unable to locate package makee")
    with pytest.raises(InputError) as caught:
        resolve()
    assert len(caught.value.problems) == 2
    assert "Unable to locate package gxx" in str(caught.value)


@pytest.mark.parametrize("hashed", ["MD5Sum:" + "0" * 32, "SHA1:" + "0" * 40, ""])
def test_weak_hashes_are_refused(base: Base, hashed: str) -> None:
    base.answers["--print-uris"] = (0, f"'http://example.org/x_1_all.deb' x_1_all.deb 10 {hashed}")
    with pytest.raises(InputError, match="no sha256"):
        resolve()


@pytest.mark.parametrize(
    "line",
    [
        "'ftp://example.org/x_1_all.deb' x_1_all.deb 10 SHA256:" + "0" * 64,
        "'http://example.org/x_1_all.deb' x_1_all.deb 10 SHA256:" + "0" * 63,
        "'http://example.org/x 1_all.deb' x_1_all.deb 10 SHA256:" + "0" * 64,
        "'http://example.org/x_1_all.deb' ../x_1_all.deb 10 SHA256:" + "0" * 64,
        "'http://example.org/x_1_all.deb' x_1%0a_all.deb 10 SHA256:" + "0" * 64,
    ],
)
def test_answers_that_are_none_are_refused(base: Base, line: str) -> None:
    base.answers["--print-uris"] = (0, line)
    with pytest.raises(HpcgenError):
        resolve()


MIRROR = ("site_trust", run("use the mirror", ["echo mirror > /etc/apt/sources.list"]))
PIP = ("site_trust", run("pip's index", ["echo index > /etc/pip.conf"]))


@pytest.mark.parametrize(
    ("builder", "final", "bases", "updates"),
    [
        ([MIRROR, PIP], [MIRROR], 1, 1),
        ([MIRROR], [MIRROR], 1, 1),
        ([PIP, MIRROR], [PIP], 1, 2),  # apt looks elsewhere after the second step
        ([MIRROR], [PIP], 2, 2),
    ],
)
def test_stages_that_begin_alike_share_a_base_and_its_indexes(
    builder: list[Any], final: list[Any], bases: int, updates: int, base: Base
) -> None:
    stages = [
        Stage(name=name, image=Image("debian:12"), steps=steps, prepared=len(steps), environment={"A": name})
        for name, steps in (("builder", builder), ("final", final))
    ]
    answers = resolve_packages(Path("images"), [(stages[0], ["make", "g++"]), (stages[1], ["make"])], "apt", print)
    assert [sorted(answer.packages.added) for answer in answers] == [["g++", "make"]] * 2
    assert all(answer.keys and answer.epoch for answer in answers)
    assert base.unpacked == bases
    assert sum(" update" in script for script in base.scripts) == updates
    assert sum("echo mirror" in script for script in base.scripts) == 1
    asked = [script.partition(" -- ")[2] for script in base.scripts if "--print-uris" in script]
    assert sorted(asked) == ["make", "make g++"]


# keys


def test_an_index_that_nobody_signed_is_refused(base: Base) -> None:
    base.answers["gpgv"] = (0, "= 0 0\n[GNUPG:] NEWSIG\n[GNUPG:] ERRSIG 3333 1 8 01 1 9\n[GNUPG:] NO_PUBKEY 3333")
    with pytest.raises(PolicyError, match="bookworm is not signed by any key"):
        resolve()


def test_sqv_names_fingerprints_alone(base: Base) -> None:
    base.answers["gpgv"] = (0, f"= 0 0\n{MAIN}\n{OLD}")
    assert [key.fingerprint for key in resolve()[1]] == [MAIN, OLD]


def test_a_base_without_a_verifier_is_refused(base: Base) -> None:
    base.answers["gpgv"] = (3, "neither gpgv nor sqv is in the image")
    with pytest.raises(FetchError, match="neither gpgv nor sqv"):
        resolve()


def test_a_release_with_a_signature_of_its_own_is_read_too(base: Base) -> None:
    del base.files[f"{LISTS}InRelease"]
    base.files[f"{LISTS}Release"] = b"Date: Sat, 14 Nov 2026 09:15:00 UTC\n"
    base.files[f"{LISTS}Release.gpg"] = b"signature"
    assert resolve()[2] == 1794647700
    assert base.files["/.hpcgen/0.text"] == b"Date: Sat, 14 Nov 2026 09:15:00 UTC\n"


@pytest.mark.parametrize(
    ("path", "text", "ring"),
    [
        ("sources.list", ONE_LINE, "/usr/share/keyrings/example.gpg"),
        ("sources.list", "deb http://example.org/debian/ bookworm main # comment", "/etc/apt/trusted.gpg.d/other.asc"),
        ("sources.list", ONE_LINE.replace("bookworm", "trixie"), "/etc/apt/trusted.gpg.d/other.asc"),
        (
            "debian.sources",
            "# comment\nTypes: deb\nURIs: http://other.example.org http://example.org/debian\nSuites: x bookworm\n"
            "Components: main\nSigned-By: /usr/share/keyrings/example.gpg\n",
            "/usr/share/keyrings/example.gpg",
        ),
        (
            "debian.sources",
            "Types: deb\nURIs: http://none.example.org\nSuites: x\nSigned-By: /none.gpg\n\nTypes: deb\n"
            "URIs: http://example.org/debian\nSuites: bookworm\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n"
            " .\n mWtleQ==\n -----END PGP PUBLIC KEY BLOCK-----\n",
            "the key in /etc/apt/debian.sources",
        ),
    ],
)
def test_only_the_ring_that_the_source_names_vouches(base: Base, path: str, text: str, ring: str) -> None:
    base.files[f"/etc/apt/{path}"] = text.encode()
    base.files["/etc/apt/trusted.gpg.d/other.asc"] = b"\x99other"
    base.answers["apt-config"] = (0, f"/etc/apt/{path}")
    assert [key.keyring for key in resolve()[1]] == [ring]
    expected = {"/usr": b"\x99ring", "/etc": b"\x99other", "the ": b"\x99key"}[ring[:4]]
    assert base.files["/.hpcgen/0-0.ring"] == expected


def test_what_is_signed_is_taken_apart_as_it_was_put_together() -> None:
    text, signature = split_signed(SIGNED)
    assert text == "Origin: Example\nDate: Sat, 14 Nov 2026 09:15:00 UTC\n-----dashes"
    assert signature.startswith("-----BEGIN PGP SIGNATURE-----\n\nc2ln")
    assert split_signed("Date: Sat, 14 Nov 2026 09:15:00 UTC\n") == ("", "")
    assert split_signed(f"Date: before\n\n{SIGNED}") == ("", "")


@given(st.binary(max_size=300))
def test_armour_comes_off_and_nothing_else(data: bytes) -> None:
    text = base64.encodebytes(data).decode()
    armour = f"-----BEGIN PGP PUBLIC KEY BLOCK-----\nComment: x\n\n{text}=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n"
    assert dearmoured(armour.encode()) == data
    assert dearmoured((armour * 2).replace("\n", "\r\n").encode()) == data * 2
    assert dearmoured(b"\x99" + data) == b"\x99" + data
