"""hpcgen's own wheel from what pip installed, and the files that it needs on every Python."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hpcgen.core.errors import FetchError, InputError
from hpcgen.supply.net.pip_settings import pip_settings
from hpcgen.supply.pin import wanted
from tests.helpers.stub_packages import index, sha256, wheel


def install(target: Path, path: Path) -> importlib.metadata.Distribution:
    """Install a wheel as pip does, with its programs and compiled files."""
    words = ["--no-index", "--no-deps", "--target", str(target), str(path)]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *words], check=True)
    (found,) = importlib.metadata.distributions(path=[str(target)])
    return found


@pytest.fixture(scope="module")
def like(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an installed package, which tests damage in a copy of their own."""
    folder = tmp_path_factory.mktemp("like")
    install(folder / "installed", wheel(folder, "hpcgen-like", "1.2"))
    return folder / "installed"


def copied(like: Path, folder: Path) -> importlib.metadata.Distribution:
    (found,) = importlib.metadata.distributions(path=[str(shutil.copytree(like, folder / "one"))])
    return found


def test_an_installed_package_gives_its_wheel_back(tmp_path: Path) -> None:
    """The same bytes wherever it was installed, without what pip and Python added."""
    original = wheel(tmp_path / "wheels", "hpcgen-like", "1.2", needs=["click>=8"])
    first = wanted.rebuild(install(tmp_path / "one", original), tmp_path)
    assert first.name == original.name
    with zipfile.ZipFile(original) as before, zipfile.ZipFile(first) as after:
        assert sorted(after.namelist()) == sorted(before.namelist())
        for name in after.namelist():
            assert name.endswith("/RECORD") or after.read(name) == before.read(name)
        assert after.namelist()[-1].endswith("/RECORD")
    again = wanted.rebuild(install(tmp_path / "two", first), tmp_path / "wheels")
    assert again.read_bytes() == first.read_bytes()


def test_a_damaged_installation_is_told(like: Path, tmp_path: Path) -> None:
    installed = copied(like, tmp_path)
    (tmp_path / "one" / "hpcgen_like.py").unlink()
    with pytest.raises(InputError) as error:
        wanted.rebuild(installed, tmp_path)
    assert "lacks 1 files: hpcgen_like.py" in str(error.value)
    assert "--force-reinstall" in str(error.value)
    (tmp_path / "one" / "hpcgen_like-1.2.dist-info" / "RECORD").unlink()
    with pytest.raises(InputError, match="no list of its files"):
        wanted.rebuild(installed, tmp_path)


def test_a_record_that_leaves_its_folder_is_not_followed(like: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    installed = copied(like, tmp_path)
    record = tmp_path / "one" / "hpcgen_like-1.2.dist-info" / "RECORD"
    record.write_text(record.read_text() + f"../secret,,\n{tmp_path}/secret,,\n")
    with zipfile.ZipFile(wanted.rebuild(installed, tmp_path)) as made:
        assert not [name for name in made.namelist() if "secret" in name]


def test_neither_installed_nor_a_checkout_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wanted, "_package", lambda: tmp_path / "hpcgen")
    with pytest.raises(InputError, match="install hpcgen with pip"):
        wanted.own_wheel(tmp_path / "into")


def test_a_checkout_that_cannot_be_built_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the build system and without an index."""
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["no-such-build-system"]\nbuild-backend = "no_such"\n'
        '[project]\nname = "hpcgen"\nversion = "1"\n'
    )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(wanted, "_package", lambda: tmp_path / "hpcgen")
    pip_settings.cache_clear()
    try:
        with pytest.raises(FetchError) as error:
            wanted.own_wheel(tmp_path / "into")
    finally:
        pip_settings.cache_clear()
    assert "could not be built" in str(error.value) and "no-such-build-system" in str(error.value)
    assert "pip install hatchling" in str(error.value)


def test_everything_that_it_needs_for_every_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file once, whatever number of Pythons uses it; extras are not needed."""
    compiled = [
        wheel(tmp_path, "msgspec", "0.22", f"cp31{minor}-cp31{minor}-manylinux_2_17_{machine}")
        for minor in (0, 3)
        for machine in ("x86_64", "aarch64")
    ]
    too_new = wheel(tmp_path, "msgspec", "0.22", "cp310-cp310-manylinux_2_28_x86_64")
    rich = wheel(tmp_path, "rich", "15.0", needs=['old ; python_version < "3.11"'])
    old = wheel(tmp_path, "old", "1.0")
    own = wheel(tmp_path, "own", "1.0", needs=["msgspec>=0.18", "rich", 'pytest>=8 ; extra == "test"'])
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", index(tmp_path, *compiled, too_new, rich, old))
    pip_settings.cache_clear()
    try:
        found = wanted.dependencies(wanted.requirements_of(own), ("3.10", "3.13"))
    finally:
        pip_settings.cache_clear()
    assert {(each.file, each.sha256) for each in found} == {
        (path.name, sha256(path)) for path in (*compiled, rich, old)
    }
    assert {each.kind for each in found} == {"hpcgen"}
