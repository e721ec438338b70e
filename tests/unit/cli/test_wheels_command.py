"""``hpcgen wheels lock``: lists for several Pythons and architectures, from an index in a folder."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpcgen.catalog.beside_blocks import read_wheel_list
from hpcgen.core.errors import ConflictError
from hpcgen.supply.net.pip_settings import pip_settings
from hpcgen.supply.pin.wheels import ListRequest, lock_lists, pythons_of
from tests.conftest import Command
from tests.helpers.stub_packages import index, sha256, wheel

Lock = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def lock(hpcgen: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lock]:
    """The command as a person starts it, with the index in ``tmp_path`` and nothing of this machine's settings."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": (tmp_path / "simple").as_uri()}
    pip_settings.cache_clear()
    yield lambda *words: hpcgen("wheels", "lock", *words, env=settings)
    pip_settings.cache_clear()


def line(path: Path, name: str, version: str) -> str:
    return f"{name}=={version} --hash=sha256:{sha256(path)}"


def test_a_list_has_names_versions_and_hashes_alone(lock: Lock, tmp_path: Path) -> None:
    """No address, and no wheel that is newer than the C library of the distributions with that Python."""
    zope = wheel(tmp_path, "Zope_x", "1.0", "cp36-cp36m-manylinux2014_x86_64", needs=["absl-py"])
    newer = wheel(tmp_path, "Zope_x", "1.0", "cp36-cp36m-manylinux_2_28_x86_64")
    absl = wheel(tmp_path, "absl-py", "2.1")
    index(tmp_path, zope, newer, absl)
    done = lock("--python", "3.6.9", "--into", "lists", "mine-1.0", "zope.x==1.0")
    assert (done.returncode, done.stdout) == (0, "lists/mine-1.0-cp36.txt\n"), done.stderr
    assert (tmp_path / "lists/mine-1.0-cp36.txt").read_text().splitlines() == [
        "# CPython 3.6, Linux x86_64: every package that pip installs, with its sha256.",
        "# hpcgen wheels lock --python 3.6.9 mine-1.0 zope.x==1.0",
        "# glibc 2.17",
        line(absl, "absl-py", "2.1"),
        line(zope, "zope-x", "1.0"),
    ]


def test_each_python_and_architecture_gets_a_list_by_the_name_that_blocks_look_up(lock: Lock, tmp_path: Path) -> None:
    wheels = {
        f"{architecture}-{number}": wheel(
            tmp_path, "pack", "1.0", f"cp{number}-cp{number}-manylinux_2_28_{architecture}"
        )
        for architecture in ("x86_64", "aarch64")
        for number in ("311", "312")
    }
    index(tmp_path, *wheels.values())
    words = ["--python", "3.11.2", "--python", "3.12.3", "--architecture", "x86_64", "--architecture", "aarch64"]
    done = lock(*words, "--into", ".", "pack-1.0", "pack==1.0", "--json")
    assert done.returncode == 0, done.stderr
    found = {each["file"]: each for each in json.loads(done.stdout)["lists"]}
    for name, key in (
        ("pack-1.0-cp311.txt", "x86_64-311"),
        ("pack-1.0-cp312.txt", "x86_64-312"),
        ("pack-1.0-aarch64-cp311.txt", "aarch64-311"),
        ("pack-1.0-aarch64-cp312.txt", "aarch64-312"),
    ):
        text = (tmp_path / name).read_text()
        assert text == found[name]["text"] and text.endswith(f"\n{line(wheels[key], 'pack', '1.0')}\n")
    assert "\n# hpcgen wheels lock --python 3.12.3 --architecture aarch64 pack-1.0 pack==1.0\n" in text
    assert "CPython 3.12.3, aarch64: 1 package (4 of 4)\n" in done.stderr


def test_without_a_python_those_of_the_bases_are_tried(lock: Lock, tmp_path: Path) -> None:
    """Those for which there are no wheels are told, and left out."""
    index(tmp_path, wheel(tmp_path, "pack", "1.0", "cp312-cp312-manylinux_2_28_x86_64"))
    (tmp_path / "building_blocks").mkdir()
    done = lock("pack-1.0", "pack==1.0")
    assert (done.returncode, done.stdout) == (0, "building_blocks/wheels/pack-1.0-cp312.txt\n")
    assert "CPython 3.10.12, x86_64: no solution" in done.stderr
    for python in ([], ["--python", "3.12.3", "--python", "3.11.2"]):
        refused = lock(*python, "pack-2.0", "pack==2.0", "--json")
        assert refused.returncode == 5 and "pack==2.0" in json.loads(refused.stdout)["message"]
    asked = lock("--python", "3.12.3", "--python", "3.11.2", "other", "pack==1.0")
    assert asked.returncode == 5 and "CPython 3.11.2" in asked.stderr
    assert len(list(tmp_path.glob("**/*.txt"))) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--python", "3.10.12", "--into", ".", "--every-python", "mine", "pack"), "not for every Python: pack-1.0-cp"),
        (("--into", ".", "--every-python", "mine", "pack"), "expected: --python once with --every-python"),
        (("--python", "3", "--into", ".", "mine", "pack"), "wheels cannot be chosen for '3'"),
        (("--into", ".", "../mine", "pack"), "'../mine' cannot be the name of a list"),
        (("mine", "pack"), "no building_blocks/ here"),
    ],
)
def test_what_cannot_be_asked_for_writes_nothing(words: tuple[str, ...], said: str, lock: Lock, tmp_path: Path) -> None:
    index(tmp_path, wheel(tmp_path, "pack", "1.0", "cp310-cp310-manylinux2014_x86_64"))
    done = lock(*words)
    assert done.returncode == 3 and said in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.glob("**/*.txt"))


def test_a_list_for_every_python_goes_into_the_first_collection(hpcgen: Command, lock: Lock, tmp_path: Path) -> None:
    """Into a folder that nobody has made yet."""
    pack = wheel(tmp_path, "pack", "1.0")
    settings = {"PIP_INDEX_URL": index(tmp_path, pack), "PIP_CONFIG_FILE": os.devnull}
    (tmp_path / "ours").mkdir()
    words = ["wheels", "lock", "--python", "3.10.12", "--every-python", "pack-1.0", "pack==1.0"]
    done = hpcgen("--collection", "ours", *words, env=settings)
    assert (done.returncode, done.stdout) == (0, "ours/building_blocks/wheels/pack-1.0.txt\n"), done.stderr
    text = (tmp_path / "ours/building_blocks/wheels/pack-1.0.txt").read_text()
    assert text.startswith("# CPython any, Linux x86_64") and text.endswith(f"\n{line(pack, 'pack', '1.0')}\n")


def test_one_file_for_several_pythons_says_what_they_share_once(lock: Lock, tmp_path: Path) -> None:
    pure = wheel(tmp_path, "pure", "1.0")
    packs = {
        number: wheel(tmp_path, "pack", "1.0", f"cp{number}-cp{number}-manylinux_2_28_x86_64", needs=["pure"])
        for number in ("311", "312")
    }
    index(tmp_path, pure, *packs.values())
    done = lock("--python", "3.11.2", "--python", "3.12.3", "--one-file", "--into", ".", "pack-1.0", "pack==1.0")
    assert (done.returncode, done.stdout) == (0, "pack-1.0.txt\n"), done.stderr
    text = (tmp_path / "pack-1.0.txt").read_text()
    named = {number: line(path, "pack", "1.0").replace(" --", " ; {} --") for number, path in packs.items()}
    assert text.splitlines() == [
        "# CPython 3.11 3.12, Linux x86_64: every package that pip installs, with its sha256.",
        "# hpcgen wheels lock --python 3.11.2 --python 3.12.3 --one-file pack-1.0 pack==1.0",
        "# glibc 2.28: 3.11 3.12",
        named["311"].format('python_version in "3.11"'),
        named["312"].format('python_version in "3.12"'),
        line(pure, "pure", "1.0"),
    ]
    read = read_wheel_list(tmp_path / "pack-1.0.txt", "it").for_python("3.12")
    assert read is not None and read.lines == (line(packs["312"], "pack", "1.0"), line(pure, "pure", "1.0"))


def test_there_is_one_python_for_each_minor_version() -> None:
    """The oldest exact one: what it can install, later patch levels can."""
    rows = ["3.12", "3.12.3", "3.9", "3.11.5", "3.11.2", "3.6.9"]
    assert pythons_of(rows) == ("3.6.9", "3.9", "3.11.2", "3.12.3")


def test_without_any_solution_the_reason_is_that_of_the_newest_python(tmp_path: Path) -> None:
    address = index(tmp_path, wheel(tmp_path, "pack", "1.0"))
    asked = ListRequest(
        name="x", requirements=("pack==2",), pythons=("3.11.2", "3.12.3"), optional=True, indexes=(address,)
    )
    with pytest.raises(ConflictError, match=r"CPython 3\.12\.3") as error:
        lock_lists(asked)
    assert len(error.value.problems) == 1
