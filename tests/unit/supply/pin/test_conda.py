"""Conda packages are chosen for base, node and MPI, from a channel of small packages, and installed by the program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from hpcgen.api import default_catalog
from hpcgen.core.errors import ConflictError, FetchError, MissingToolError
from hpcgen.core.model.conda import CondaPackage
from hpcgen.core.model.plan import PlannedConda
from hpcgen.supply.pin.conda_solver import lock_beside, solve_conda
from tests.helpers.conda_channel import Channel, small_channel

URL = "https://conda.example.org/small"
PROGRAM = "conda_program.py"


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Channel:
    return small_channel(tmp_path_factory.mktemp("channel"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "cache"))


def asked(*needs: str, held: tuple[str, ...] = (), glibc: str = "2.36") -> PlannedConda:
    virtual = {"__glibc": glibc, "__linux": "4.18", "__unix": "0", "__archspec": "1=zen3"}
    return PlannedConda(subdir="linux-64", channels=[URL], needs=list(needs), held=list(held), virtual=virtual)


def solve(channel: Channel, what: PlannedConda) -> list[CondaPackage]:
    program = default_catalog().beside.text_file(PROGRAM)
    return solve_conda(what, program, {URL: channel.folder.as_uri()})


def test_the_newest_that_fits_is_chosen_and_has_address_and_hash(channel: Channel) -> None:
    found = solve(channel, asked("speak"))
    assert [each.exact for each in found] == ["speak=1.4=h1234_0", "words=2.0=0"]
    assert solve(channel, asked(f"{URL}::speak")) == found
    assert [each.url for each in found] == [
        f"{URL}/linux-64/speak-1.4-h1234_0.conda",
        f"{URL}/noarch/words-2.0-0.tar.bz2",
    ]
    assert found[0].sha256 == channel.sha256("speak") and found[0].size and found[0].licence == "MIT"


def test_what_no_base_can_run_is_a_conflict_with_its_reason(channel: Channel) -> None:
    with pytest.raises(ConflictError, match=r"__glibc >=9\.9") as error:
        solve(channel, asked("future"))
    assert "widen the ranges" in error.value.problems[0].remedy
    with pytest.raises(ConflictError, match="__glibc"):
        solve(channel, asked("speak", glibc="2.12"))


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_with_an_mpi_of_the_image_there_is_no_second_one(channel: Channel, family: str) -> None:
    found = solve(channel, asked("solver", held=(f"mpi=*={family}", f"{family}=*=external_*")))
    builds = {each.name: each.build for each in found}
    assert builds == {"mpi": family, family: "external_0", "solver": f"mpi_{family}_0"}


def test_a_channel_that_is_not_there_is_an_error_to_fetch(channel: Channel, tmp_path: Path) -> None:
    program = default_catalog().beside.text_file(PROGRAM)
    with pytest.raises(FetchError, match="could not be chosen"):
        solve_conda(asked("speak"), program, {URL: (tmp_path / "none").as_uri()})


def test_without_the_library_it_is_said_how_to_get_it(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingToolError) as error:
        solve(channel, asked("speak"))
    assert error.value.problems[0].remedy == "pip install 'py-rattler>=0.28'"


def test_pip_gets_what_conda_has_not_for_its_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def lock_wheels(asked: list[str], *target: str, constraints: list[str]) -> list[str]:
        assert (asked, target) == (["pandas"], ("3.12.4", "x86_64", "2.36"))
        assert constraints == ["numpy==2.1.0"]
        return [f"{name} --hash=sha256:{'a' * 64}" for name in ("numpy==2.1.0", "pandas==2.2.3", "tzdata==2025.2")]

    monkeypatch.setattr("hpcgen.supply.pin.wheels.lock_wheels", lock_wheels)
    # tzdata of conda-forge is not a Python package.
    rows = [("python", "3.12.4", "zlib"), ("numpy", "2.1.0", "python_abi 3.12.*"), ("tzdata", "2025b", "x")]
    there = [
        CondaPackage(
            name=name,
            version=version,
            build="0",
            subdir="linux-64",
            url=f"{URL}/linux-64/{name}-{version}-0.conda",
            sha256="a" * 64,
            depends=[need],
        )
        for name, version, need in rows
    ]
    found = lock_beside(there, ["pandas"], "x86_64", "2.36")
    assert [line.partition(" ")[0] for line in found] == ["pandas==2.2.3", "tzdata==2025.2"]
    with pytest.raises(ConflictError, match="no Python among"):
        lock_beside(there[1:], ["pandas"], "x86_64", "2.36")


def install(tmp_path: Path, channel: Channel, packages: list[CondaPackage]) -> subprocess.CompletedProcess[str]:
    request = {
        "prefix": str(tmp_path / "env"),
        "subdir": "linux-64",
        "packages": [
            {"path": f"{channel.folder}/{each.subdir}/{each.file}", "sha256": each.sha256, "url": each.url}
            for each in packages
        ],
    }
    (tmp_path / "request.json").write_text(json.dumps(request))
    script = tmp_path / "program.py"
    script.write_text(default_catalog().beside.text_file(PROGRAM))
    words = [sys.executable, str(script), "install", str(tmp_path / "request.json")]
    return subprocess.run(words, capture_output=True, text=True)


def test_files_are_installed_with_their_prefix_and_say_where_they_are_from(channel: Channel, tmp_path: Path) -> None:
    done = install(tmp_path, channel, solve(channel, asked("speak")))
    assert done.returncode == 0, done.stderr
    assert subprocess.check_output([tmp_path / "env/bin/speak"], text=True) == "one\ntwo\n"
    meta = (tmp_path / "env/conda-meta/speak-1.4-h1234_0.json").read_text()
    assert json.loads(meta)["url"] == f"{URL}/linux-64/speak-1.4-h1234_0.conda" and str(channel.folder) not in meta
    assert sorted(each.name for each in tmp_path.iterdir() if each.name not in ("cache", "env")) == [
        "program.py",
        "request.json",
    ]


def test_a_file_that_is_not_the_one_that_was_chosen_is_refused(channel: Channel, tmp_path: Path) -> None:
    packages = [msgspec.structs.replace(each, sha256="0" * 64) for each in solve(channel, asked("words"))]
    done = install(tmp_path, channel, packages)
    assert done.returncode == 1 and "has the sha256" in done.stderr and not (tmp_path / "env").exists()
