"""Wheel lists: parsed and written again, so that a list decides what is installed and never where it comes from."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest

from hpcgen.catalog.beside_blocks import read_wheel_list
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.kit.lockfile.lock import parse_lock, sealed_text
from hpcgen.recipe.assemble import assemble
from tests.conftest import Command
from tests.helpers import locks
from tests.helpers.own_collection import own_collection

ONE, TWO = "1" * 64, "2" * 64
EVIL = [
    ("--index-url https://evil.example.org/simple", "'--index-url' is an option of pip, and a wheel list has none"),
    ("--extra-index-url=https://evil.example.org", "'--extra-index-url' is an option of pip"),
    ("-r /etc/passwd", "'-r' is an option of pip"),
    ("--find-links /tmp", "'--find-links' is an option of pip"),
    ("-e .", "'-e' is an option of pip"),
    (f"evil @ https://evil.example.org/e.whl --hash=sha256:{ONE}", "by an address instead of its version"),
    (f"https://evil.example.org/e.whl --hash=sha256:{ONE}", "by an address instead of its version"),
    (f"evil==1 --index-url https://evil.example.org --hash=sha256:{ONE}", "by an address"),
    (f"evil==1 --global-option=x --hash=sha256:{ONE}", "is not a pinned package"),
    (f"evil==1 ; python_version > '3' --global-option=x --hash=sha256:{ONE}", "is not a pinned package"),
    (f"evil==1 ; anything --hash=sha256:{ONE}", "is not a pinned package"),
    ("evil==1", "'evil==1' has no hash"),
    (f"evil>=1 --hash=sha256:{ONE}", "is not a pinned package"),
    (f"evil==1 --hash=md5:{ONE}", "is not a pinned package"),
    (f"evil==1 --hash=sha256:{ONE}\x0b--index-url=x", "is not a pinned package"),
]


@pytest.mark.parametrize(("line", "said"), EVIL)
def test_anything_but_a_package_with_hashes_is_refused_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "list.txt"
    path.write_text(f"# made by hand\ngood==1 --hash=sha256:{ONE}\n\n{line}\n-f more\n")
    with pytest.raises(InputError) as raised:
        read_wheel_list(path, "ours/list.txt")
    first, second = raised.value.problems
    assert said in first.message
    assert (str(first.where), str(second.where)) == ("ours/list.txt:4:1", "ours/list.txt:5:1")


def test_a_list_is_written_again_as_hpcgen_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text(
        f"numpy == 1.26.4 \\\n    --hash=sha256:{ONE} \\\n    --hash=sha256:{TWO}\n    # via h5py\r\n"
        f"h5py[a, b]==3.11.0;python_version>'3.8'   --hash=sha256:{ONE}  # a note\n"
    )
    assert read_wheel_list(path, "list").lines == (
        f"numpy==1.26.4 --hash=sha256:{ONE} --hash=sha256:{TWO}",
        f"h5py[a,b]==3.11.0 ; python_version>'3.8' --hash=sha256:{ONE}",
    )


def test_hpcgens_own_lists_stay_as_they_are() -> None:
    folder = Catalog().folders[-1] / "building_blocks" / "wheels"
    for path in folder.glob("*.txt"):
        lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        shared = [re.sub(r' ; python_version in "[0-9. ]+"', "", each) for each in lines]
        assert list(read_wheel_list(path, path.name).lines) == shared


def test_a_list_for_several_pythons_has_for_each_its_own_lines_and_c_library(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text(
        "# CPython 3.9 3.10 3.12, Linux x86_64: every package\n"
        "# glibc 2.17: 3.9 3.10\n"
        "# glibc 2.28: 3.12\n"
        f"pure==1.0 --hash=sha256:{ONE}\n"
        f'made==1.0 ; python_version in "3.9 3.10" --hash=sha256:{ONE}\n'
        f'made==2.0 ; python_version in "3.12" --hash=sha256:{TWO}\n'
        f"other==1.0 ; platform_machine == 'x86_64' --hash=sha256:{ONE}\n"
    )
    read = read_wheel_list(path, "list")
    pure, other = f"pure==1.0 --hash=sha256:{ONE}", f"other==1.0 ; platform_machine == 'x86_64' --hash=sha256:{ONE}"
    old, new = f"made==1.0 --hash=sha256:{ONE}", f"made==2.0 --hash=sha256:{TWO}"
    assert read.for_python("3.10") == ((pure, old, other), "2.17", {})
    assert read.for_python("3.12") == ((pure, new, other), "2.28", {})
    assert read.for_python("3.11") is None
    assert read.lines == (pure, old, new, other)


def test_what_is_no_text_is_no_list(tmp_path: Path, hpcgen: Command) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(b"caf\xe9==1\n")
    with pytest.raises(InputError, match="not valid UTF-8"):
        read_wheel_list(path, "list.txt")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="the wheel list cannot be read"):
        read_wheel_list(path, "list.txt")


def test_render_and_check_name_the_line(tmp_path: Path, hpcgen: Command) -> None:
    listed = f"--index-url https://evil.example.org/simple\nours==1.0 --hash=sha256:{ONE}\n"
    folder = own_collection(tmp_path / "ours", {"building_blocks/wheels/ours-1.0.txt": listed})
    for words in (["render", "--site", "lab", "--stack", "ours-stack"], ["check", str(folder)]):
        done = hpcgen("--collection", str(folder), *words)
        assert done.returncode == 3, done.stderr
        assert "building_blocks/wheels/ours-1.0.txt:1:1: '--index-url' is an option of pip" in done.stderr


@pytest.mark.parametrize("line", [line for line, _ in EVIL if "\x0b" not in line])
def test_a_lock_cannot_bring_such_lines_either(line: str) -> None:
    made = locks.lock("mpi-hello")
    pins = msgspec.structs.replace(made.pins, wheels={"python_packages": [line]})
    text = sealed_text(made.plan, assemble(made.plan, locks.CATALOG, made.pins), pins, made.collections)
    if "; anything" in line:
        return  # pip refuses what is no marker
    with pytest.raises(InputError, match="python_packages"):
        parse_lock(text, "a lock")


def test_what_other_lists_have_is_told_of_lists_for_several_pythons_too(tmp_path: Path) -> None:
    folder = tmp_path / "building_blocks" / "wheels"
    folder.mkdir(parents=True)
    head = "# CPython 3.11 3.12, Linux x86_64: every package that pip installs, with its sha256.\n"
    only = f'new==2 ; python_version in "3.12" --hash=sha256:{ONE}\n'
    (folder / "ours-1.txt").write_text(f"{head}plain==1 --hash=sha256:{ONE}\n{only}", "utf-8")
    (folder / "ours-1-aarch64.txt").write_text(f"{head}arm==1 --hash=sha256:{ONE}\n", "utf-8")
    (folder / "ours-1-cp311.txt").write_text(f"of311==1 --hash=sha256:{ONE}\n", "utf-8")
    beside = Catalog([tmp_path]).beside

    def of(python: str, architecture: str = "x86_64") -> dict[str, list[str]]:
        found = {name: listed.lines for name, listed in beside.lists_for(python, architecture)}
        return {name: [line.split()[0] for line in lines] for name, lines in found.items() if name.startswith("ours")}

    assert of("3.12") == {"ours-1": ["plain==1", "new==2"]}
    assert of("3.11") == {"ours-1": ["plain==1"], "ours-1-cp311": ["of311==1"]}
    assert of("3.13") == {} and of("3.12", "aarch64") == {"ours-1-aarch64": ["arm==1"]}
