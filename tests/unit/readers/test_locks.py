"""Locks of uv, Poetry, PDM and PEP 751: parts of files that these tools wrote, shortened."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.core.model.project import PackageFile
from hpcgen.readers.locked import selected
from hpcgen.readers.python_files import read_packages

FILES = Path(__file__).parent / "files"


def names(found: PackageFile, python: str, *groups: str) -> list[str]:
    return [f"{each.name}=={each.version}" for each in selected(found, python, "x86_64", groups)]


@pytest.mark.parametrize("file", ["uv.lock", "pylock.toml", "poetry.lock", "pdm.lock"])
def test_a_lock_gives_each_python_its_own_packages(file: str) -> None:
    found = read_packages(FILES, file)
    assert found.locked and found.hashed
    assert names(found, "3.11.2") == ["async-timeout==5.0.1", "numpy==2.4.6", "redis==8.1.0"]
    # 3.11.3 is the first Python with a timeout of its own.
    assert names(found, "3.11.4") == ["numpy==2.4.6", "redis==8.1.0"]
    # Poetry and PDM took one release for all Pythons, uv one for each.
    newer = "numpy==2.4.6" if file in ("poetry.lock", "pdm.lock") else "numpy==2.5.5"
    assert names(found, "3.12.3") == [newer, "redis==8.1.0"]
    assert found.requires_python == ">=3.10"


@pytest.mark.parametrize("file", ["uv.lock", "pylock.toml", "poetry.lock", "pdm.lock"])
def test_groups_come_where_they_are_named(file: str) -> None:
    found = read_packages(FILES, file)
    assert found.group_names == ["dev", "plot"]
    assert names(found, "3.12.3", "plot")[-1] == "tqdm==4.70.1"
    assert "iniconfig==2.3.1" in names(found, "3.12.3", "dev")


def test_an_extra_of_a_package_brings_what_it_needs() -> None:
    text = (FILES / "uv.lock").read_text()
    assert "hiredis" in text
    assert "hiredis==3.5.0" not in names(read_packages(FILES, "uv.lock"), "3.12.3")


def test_an_extra_that_the_project_asks_for_is_followed(tmp_path: Path) -> None:
    text = (FILES / "uv.lock").read_text().replace('{ name = "redis" }', '{ name = "redis", extra = ["hiredis"] }')
    (tmp_path / "uv.lock").write_text(text)
    assert "hiredis==3.5.0" in names(read_packages(tmp_path, "uv.lock"), "3.12.3")


def test_an_extra_in_a_lock_of_pdm_is_an_entry_of_its_own_that_names_nothing_twice(tmp_path: Path) -> None:
    text = (FILES / "pdm.lock").read_text()
    redis = text[text.index('[[package]]\nname = "redis"') :].partition("\n\n")[0]
    extra = redis.replace('version = "8.1.0"', 'version = "8.1.0"\nextras = ["hiredis"]')
    (tmp_path / "pdm.lock").write_text(text.replace(redis, f"{redis}\n\n{extra}"))
    assert names(read_packages(tmp_path, "pdm.lock"), "3.12.3") == ["numpy==2.4.6", "redis==8.1.0"]


@pytest.mark.parametrize("file", ["uv.lock", "pylock.toml", "poetry.lock", "pdm.lock"])
def test_a_package_has_its_place_its_wheels_and_their_hashes(file: str) -> None:
    found = read_packages(FILES, file)
    redis = next(each for each in found.requirements if each.name == "redis")
    line = (FILES / file).read_text().splitlines()[redis.where.line - 1]
    following = (FILES / file).read_text().splitlines()[redis.where.line]
    assert line.startswith("[[package") and following == 'name = "redis"'
    assert redis.wheels[0].file == "redis-8.1.0-py3-none-any.whl"
    assert redis.sdist is not None and redis.sdist.file == "redis-8.1.0.tar.gz"
    assert redis.hashes == sorted([redis.wheels[0].sha256 or "", redis.sdist.sha256 or ""])


def test_markers_of_uv_are_as_long_as_its_extras_make_them(tmp_path: Path) -> None:
    """As uv writes them where extras exclude each other."""
    part = "(platform_machine != 'ARM64' and sys_platform == 'win32' and extra != 'extra-18-nvidia-physicsnemo-cu12')"
    old, marker = "python_full_version < '3.11.3'", " or ".join([part] * 40)
    text = (FILES / "uv.lock").read_text()
    assert old in text and len(marker) > 4000
    (tmp_path / "uv.lock").write_text(text.replace(old, marker))
    assert read_packages(tmp_path, "uv.lock").locked


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("uv.lock", "version = 1\n", "version = 2\n", "uv lock"),
        ("poetry.lock", '"2.1"', '"2.0"', "Poetry 2"),
        ("pylock.toml", '"1.0"', '"2.0"', "1.0"),
        ("pdm.lock", '"4.5.0"', '"5.0.0"', "pdm lock"),
        ("pdm.lock", '["inherit_metadata"]', "[]", "pdm lock --strategy inherit_metadata"),
        ("pdm.lock", 'requires_python = ">=3.10"', 'platform = "macos_arm64"', "for macos_arm64 alone"),
        ("pdm.lock", 'name = "redis"\n', 'name = "redis"\ngit = "https://example.org/redis.git"\n', "from an address"),
        ("pdm.lock", "redis-8.1.0-py3-none-any.whl", "../../etc", "not the name of a file"),
        ("uv.lock", '"8.1.0"', '"latest"', "not a version of redis"),
        ("pylock.toml", "python_full_version < '3.11.3'", "python < 3", "marker of async-timeout"),
        ("poetry.lock", 'name = "redis"', 'name = "--index-url=x"', "not a package name"),
        ("pylock.toml", "redis-8.1.0-py3-none-any.whl", "..%2f..%2fetc", "not the name of a file"),
        ("uv.lock", '[[package]]\nname = "redis"', "[[package]]\nname = 3", "not text on one line"),
        (
            "uv.lock",
            'name = "redis"\nversion = "8.1.0"\nsource = { registry',
            'name = "redis"\nversion = "8.1.0"\nsource = { git',
            "git ls-remote",
        ),
    ],
)
def test_what_is_wrong_in_a_lock_is_said_with_its_place(
    tmp_path: Path, file: str, old: str, new: str, said: str
) -> None:
    text = (FILES / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new))
    with pytest.raises(InputError) as caught:
        read_packages(tmp_path, file)
    problem = caught.value.problems[0]
    assert said in str(problem)
    assert str(problem.where).startswith(f"{tmp_path / file}:")
