"""Packages that an index has as source alone: chosen where no wheel will do, read but not run, built in the image."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.lock import Pins
from hpcgen.core.support.wheel_tags import WheelTarget
from hpcgen.recipe.assemble import assemble
from hpcgen.supply.net.pip_settings import pip_settings
from hpcgen.supply.pin.image_wheels import lock_image_wheels
from hpcgen.supply.pin.source_metadata import SourcePackage, UnknownSource, read_source
from hpcgen.supply.pin.uv_resolver import Request, Resolved
from hpcgen.supply.pin.wheels import resolve
from tests.helpers.stub_packages import index, sha256, source, wheel

STATIC = "Metadata-Version: 2.2\nName: pack\nVersion: 1.0\nRequires-Dist: needed\n"
TARGET = WheelTarget("3.11.2", "x86_64", "2.36")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing of this machine's pip and uv takes part."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    pip_settings.cache_clear()
    yield
    pip_settings.cache_clear()


def egg(name: str, *lines: str) -> dict[str, str]:
    """The egg-info that setuptools puts into a source package."""
    return {f"{name}.egg-info/PKG-INFO": "", f"{name}.egg-info/requires.txt": "\n".join(lines)}


def chosen(folder: Path, asked: Sequence[str], *files: Path) -> dict[str, str]:
    found = resolve(Request(TARGET, tuple(asked), indexes=(index(folder, *files),), sources="any"))
    return {each.name: each.file for each in found}


def described(folder: Path, files: Mapping[str, str], *fields: str) -> SourcePackage:
    return read_source(source(folder, "pack", "1.0", fields, files), "pack")


def test_a_package_without_wheels_brings_what_its_own_files_say_and_is_never_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    setup = f"open({str(trace)!r}, 'w')\nfrom setuptools import setup\nsetup(name='old-parser')\n"
    hook = f"open({str(trace)!r}, 'w')\n"
    project = '[build-system]\nrequires = []\nbuild-backend = "hook"\nbackend-path = ["."]\n'
    files = {"setup.py": setup, "hook.py": hook, "pyproject.toml": project, **egg("old_parser", "needed>=2")}
    old = source(tmp_path, "old-parser", "4.9", files=files)
    needed = [wheel(tmp_path, "needed", version) for version in ("1.0", "2.0")]
    top = wheel(tmp_path, "top", "1.0", needs=["old-parser==4.9.*"])
    found = chosen(tmp_path, ["top==1.0"], old, *needed, top)
    assert found == {"needed": needed[1].name, "old-parser": old.name, "top": top.name}
    assert not trace.exists()


def test_wheels_come_first_and_the_oldest_source_that_does_after_them(tmp_path: Path) -> None:
    """A newer version without a wheel is no reason to build; one for another machine alone is."""
    files = [source(tmp_path, "pack", version) for version in ("0.8", "0.9", "2.0")]
    files += [wheel(tmp_path, "pack", "1.0"), wheel(tmp_path, "pack", "0.9", "cp27-cp27m-manylinux1_x86_64")]
    assert chosen(tmp_path, ["pack"], *files) == {"pack": "pack-1.0-py3-none-any.whl"}
    assert chosen(tmp_path, ["pack<1"], *files) == {"pack": "pack-0.9.tar.gz"}
    assert chosen(tmp_path, ["pack>1"], *files) == {"pack": "pack-2.0.tar.gz"}
    with pytest.raises(ConflictError, match="packages that exist only as source are not taken here"):
        resolve(Request(TARGET, ("pack>1",), indexes=(index(tmp_path, *files),)))


def test_a_missing_wheel_is_no_reason_for_versions_of_old_but_a_compiler_is(tmp_path: Path) -> None:
    """uv goes back to a release of long ago that does without the package; nothing is compiled for that."""
    tops = [wheel(tmp_path, "top", "0.1"), wheel(tmp_path, "top", "3.0", needs=["parser==4.9.*", "deep"])]
    deep = wheel(tmp_path, "deep", "1.0", needs=["parser>=4.9.1"])
    parsers = [source(tmp_path, "parser", version) for version in ("4.8", "4.9", "4.9.1")]
    parsers.append(wheel(tmp_path, "parser", "5.0"))
    found = chosen(tmp_path, ["top"], *tops, deep, *parsers)
    assert found == {"deep": deep.name, "parser": "parser-4.9.1.tar.gz", "top": tops[1].name}
    files = {"setup.py": "ext_modules", "a.c": "", "PKG-INFO": STATIC}
    source(tmp_path, "parser", "4.9.1", files=files)
    assert chosen(tmp_path, ["top"], *tops, deep, *parsers) == {"top": tops[0].name}
    needed = wheel(tmp_path, "needed", "1.0")
    assert chosen(tmp_path, ["top>1"], *tops, deep, *parsers, needed)["parser"] == "parser-4.9.1.tar.gz"


def test_what_a_source_package_requires_may_exist_as_source_alone_too(tmp_path: Path) -> None:
    """No older version is taken of the first only because nobody has read yet what that requires."""
    firsts = [source(tmp_path, "first", v, files=egg("first", f"second=={v}")) for v in ("1.0", "2.0")]
    seconds = [source(tmp_path, "second", version) for version in ("1.0", "2.0")]
    found = chosen(tmp_path, ["first"], *firsts, *seconds)
    assert found == {"first": "first-2.0.tar.gz", "second": "second-2.0.tar.gz"}


def test_a_contradiction_stays_one(tmp_path: Path) -> None:
    files = [source(tmp_path, "old", "1.0", files=egg("old", "new<2")), wheel(tmp_path, "new", "2.0")]
    with pytest.raises(ConflictError, match="new>=2") as failure:
        chosen(tmp_path, ["old", "new>=2"], *files)
    assert "source" not in failure.value.problems[0].remedy


@pytest.mark.parametrize(
    "files, needs",
    [
        ({}, []),
        ({"PKG-INFO": STATIC, **egg("pack", "other")}, ["needed"]),
        ({"PKG-INFO": f"{STATIC}Dynamic: Requires-Dist\n", **egg("pack", "other")}, ["other"]),
        ({"pyproject.toml": '[project]\ndependencies = ["needed"]', **egg("pack", "other")}, ["needed"]),
        ({"pyproject.toml": '[project]\ndynamic = ["dependencies"]', **egg("pack", "other")}, ["other"]),
        (
            egg("pack", "one", "[:python_version<'3.9']", "two>1", "[more:os_name=='nt']", "three; python_version>'3'"),
            [
                "one",
                'two>1; python_version < "3.9"',
                'three; python_version > "3" and os_name == "nt" and extra == "more"',
            ],
        ),
        ({"setup.cfg": "[options]\ninstall_requires =\n    needed>=1\n    other; python_version > '3'\n"}, None),
        ({"setup.py": "setup(install_requires=[\n  'needed>=1',  # why\n  \"other; python_version > '3'\"])"}, None),
        ({"pyproject.toml": '[build-system]\nrequires = ["poetry-core"]\nbuild-backend = "poetry.core.masonry.api"',
          "PKG-INFO": STATIC.replace("2.2", "2.1")}, ["needed"]),
    ],
)  # fmt: skip
def test_what_a_source_package_requires_is_read(tmp_path: Path, files: dict[str, str], needs: list[str] | None) -> None:
    expected = ["needed>=1", 'other; python_version > "3"'] if needs is None else needs
    assert sorted(described(tmp_path, files).needs) == sorted(expected)


def test_what_its_build_requires_and_compiles_is_read(tmp_path: Path) -> None:
    assert described(tmp_path, {}).tools == ("setuptools",)
    setup = {"setup.py": "import numpy\nfrom Cython.Build import cythonize\nsetup(ext_modules=cythonize('a.pyx'))"}
    found = described(tmp_path, {**setup, "src/a.pyx": "", "tests/b.c": ""})
    assert found.tools == ("setuptools", "cython", "numpy")
    old = {"setup.py": "setup(setup_requires=['pytest-runner', 'cffi>=1'], ext_modules=[])"}
    assert described(tmp_path, old).tools == ("setuptools", "cffi>=1")
    assert found.compiled == "pack-1.0/src/a.pyx"
    assert described(tmp_path, {**setup, "tests/b.c": ""}).compiled == ""
    assert described(tmp_path, {"shim.c": ""}).compiled == "", "nothing says that it is compiled"
    project = {"pyproject.toml": '[build-system]\nrequires = ["meson-python>=0.8"]\nbuild-backend = "mesonpy"'}
    found = described(tmp_path, {**project, "a.f90": "", "PKG-INFO": STATIC})
    assert (found.tools, found.compiled) == (("meson-python>=0.8",), "pack-1.0/a.f90")


@pytest.mark.parametrize(
    "files, why",
    [
        ({"setup.py": "setup(install_requires=read('requirements.txt'))"}, "its setup.py computes its requirements"),
        ({"setup.cfg": "[options]\ninstall_requires = file: needs.txt\n"}, "from elsewhere"),
        ({"setup.cfg": "options"}, "setup.cfg cannot be read"),
        ({"pyproject.toml": "= " + "[" * 100_000}, "pyproject.toml cannot be read"),
        ({"pyproject.toml": "a = " + "[" * 100_000}, "pyproject.toml cannot be read"),
        (egg("pack", "needed @ https://example.org/needed.whl"), "requires needed by an address"),
        (egg("pack", "a b"), "'a b', which is not a requirement"),
    ],
)
def test_what_does_not_say_what_it_requires_is_refused(tmp_path: Path, files: dict[str, str], why: str) -> None:
    with pytest.raises(UnknownSource, match=why):
        described(tmp_path, files)


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes | None]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member, data in members:
            archive.addfile(member, io.BytesIO(data) if data is not None else None)
    return path


def member(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.type, entry.linkname = size, kind, link
    return entry


def test_an_archive_of_a_stranger_is_read_within_limits_and_no_link_of_it_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_text(STATIC)
    links = [
        (member("pack-1.0/PKG-INFO", kind=kind, link=str(outside)), None) for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE)
    ]
    assert read_source(tar(tmp_path / "links.tar.gz", *links), "pack").needs == ()
    above = STATIC.encode()
    climbing = tar(tmp_path / "above.tar.gz", (member("../../PKG-INFO", len(above)), above))
    assert read_source(climbing, "pack").needs == () and outside.read_text() == STATIC

    huge = tmp_path / "huge.tar.gz"
    with gzip.open(huge, "wb", compresslevel=1) as stream:
        stream.write(member("pack-1.0/PKG-INFO", 1 << 30).tobuf() + bytes(5 << 20))
    with pytest.raises(UnknownSource, match="its PKG-INFO is larger than 4 MiB"):
        read_source(huge, "pack")
    packed = tmp_path / "pack.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("pack-1.0/PKG-INFO", bytes(5 << 20))
    with pytest.raises(UnknownSource, match="its PKG-INFO is larger than 4 MiB"):
        read_source(packed, "pack")
    (tmp_path / "none.tar.gz").write_bytes(b"no archive")
    with pytest.raises(UnknownSource, match="cannot be read"):
        read_source(tmp_path / "none.tar.gz", "pack")


def test_a_source_package_that_does_not_say_what_it_requires_is_named_with_what_to_do(tmp_path: Path) -> None:
    old = source(tmp_path, "pack", "1.0", files={"setup.py": "setup(install_requires=needs())"})
    with pytest.raises(ConflictError) as failure:
        chosen(tmp_path, ["pack"], old)
    text = str(failure.value)
    assert "pack 1.0 has no wheel for this Python" in text and "its setup.py computes its requirements" in text
    assert "pack @ git+https://…@COMMIT" in text


# In the lock and the image


def locked(
    folder: Path, packages: list[str], *files: Path, option: str = "packages"
) -> tuple[dict[str, list[str]], str, list[str]]:
    """The lists of a lock, its recipe and what was said, of a stack that asks for the packages."""
    catalog = Catalog()
    blocks = {"python_packages": {"options": {option: packages}}, "debian": {"version": "12"}}
    stack = {"name": "ours", "title": "ours", "blocks": blocks, "run": {"command": ["true"]}}
    (folder / "hpcgen.yaml").write_text(json.dumps(stack))
    plan = hpcgen.plan("workstation", str(folder / "hpcgen.yaml"), catalog=catalog)
    loose = assemble(plan, catalog)
    tools = [line.partition(" ")[0].split("==") for each in loose.installed for line in each.wheels.requirements]
    every = [*files, *(wheel(folder, name, version) for name, version in tools[:3])]
    os.environ["PIP_INDEX_URL"] = index(folder, *every)
    said: list[str] = []
    lists = lock_image_wheels(plan, catalog, loose, None, said.append)
    made = assemble(plan, catalog, Pins(wheels=lists))
    steps = "\n".join(str(part) for label, step in made.builder.steps for part in (*step.commands, *step.files))
    old = type("Old", (), {"plan": plan, "pins": Pins(wheels=lists)})()
    assert lock_image_wheels(plan, catalog, loose, old, said.append) == lists, "it stays while it fits"
    return lists, steps, [*said, *made.notices]


def test_a_lock_has_source_packages_in_lists_that_the_image_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "")
    project = '[build-system]\nrequires = ["old-tool<2", "setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    plain = source(tmp_path, "plain", "1.0", files=egg("plain", "needed"))
    compiled = {"pyproject.toml": project, "setup.py": "ext_modules", "a.c": "", **egg("special")}
    special = source(tmp_path, "special", "2.0", files=compiled)
    needed, tool = wheel(tmp_path, "needed", "1.0"), wheel(tmp_path, "old-tool", "1.5")
    lists, steps, said = locked(tmp_path, ["plain==1.0", "special==2.0"], plain, special, needed, tool)
    assert lists == {
        "python_packages": [f"needed==1.0 --hash=sha256:{sha256(needed)}"],
        "python_packages-source-1": [f"plain==1.0 --hash=sha256:{sha256(plain)}"],
        "python_packages-tools-2": [f"old-tool==1.5 --hash=sha256:{sha256(tool)}"],
        "python_packages-source-2": [f"special==2.0 --hash=sha256:{sha256(special)}"],
    }
    for name in lists:
        assert f"{name}.txt" in steps
    build = "--no-deps --require-hashes --no-binary :all: --no-build-isolation --use-pep517 -r"
    assert f"{build} /opt/hpcgen/build/python_packages-source-1.txt" in steps
    assert "env PYTHONPATH=/opt/hpcgen/build/python_packages-tools-2 /opt/python/bin/python -m pip install" in steps
    told = "built from their source packages, since no wheel fits: plain 1.0, special 2.0"
    assert sum(told in line for line in said) == 2
    assert any("special 2.0 has special-2.0/a.c" in line and "--add gnu" in line for line in said)


def test_what_builds_the_source_packages_of_a_projects_own_lock_is_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "")
    plain, tool = wheel(tmp_path, "plain", "1.0"), wheel(tmp_path, "old-tool", "1.5")
    asking = {"setup.py": "setup(install_requires=needs())"}
    tools = ("old-tool<2", "nowhere")
    odd, lost = (
        source(tmp_path, name, "2.0", files={**asking, "pyproject.toml": f'[build-system]\nrequires = ["{each}"]\n'})
        for name, each in zip(("odd", "lost"), tools, strict=True)
    )
    text = 'lock-version = "1.0"\ncreated-by = "test"\n'
    for name, path in {"plain": plain, "odd": odd, "lost": lost}.items():
        file = f'{{name = "{path.name}", hashes = {{sha256 = "{sha256(path)}"}}}}'
        kind = f"wheels = [{file}]" if path.suffix == ".whl" else f"sdist = {file}"
        text += f'[[packages]]\nname = "{name}"\nversion = "{"1.0" if name == "plain" else "2.0"}"\n{kind}\n'
    (tmp_path / "pylock.toml").write_text(text)
    lists, steps, said = locked(tmp_path, ["pylock.toml"], plain, odd, lost, tool, option="files")
    assert lists == {
        "project-tools-1": [f"old-tool==1.5 --hash=sha256:{sha256(tool)}"],
        "project-source-1": [f"odd==2.0 --hash=sha256:{sha256(odd)}"],
    }
    build = "--no-deps --require-hashes --no-binary :all: --no-build-isolation --use-pep517 -r"
    assert f"{build} /opt/hpcgen/build/project-source-1.txt" in steps and "lost==2.0" in steps
    assert steps.count("odd==2.0 ") == 1, "not in the list of the wheels as well"
    assert any("the build requirements of lost 2.0 are not pinned" in line for line in said)


def test_tools_that_are_not_to_be_had_are_named_with_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "")
    project = '[build-system]\nrequires = ["nowhere"]\n'
    pack = source(tmp_path, "pack", "1.0", files={"pyproject.toml": project})
    with pytest.raises(ConflictError, match=r"pack 1\.0: no wheel fits, and build requirements of the source package"):
        locked(tmp_path, ["pack==1.0"], pack)


def test_a_version_that_cannot_be_built_gives_way_to_one_that_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "")
    project = '[build-system]\nrequires = ["nowhere"]\n'
    packs = [source(tmp_path, "pack", version, files={"pyproject.toml": project}) for version in ("2.0", "1.2")]
    packs += [source(tmp_path, "pack", version) for version in ("1.1", "1.0")]
    top = wheel(tmp_path, "top", "1.0", needs=["pack"])
    lists, _, _ = locked(tmp_path, ["top==1.0"], *packs, top)
    assert lists["python_packages-source-1"] == [f"pack==1.1 --hash=sha256:{sha256(packs[2])}"]


def test_records_name_the_file(tmp_path: Path) -> None:
    pack = source(tmp_path, "pack", "1.0")
    (found,) = resolve(Request(TARGET, ("pack",), indexes=(index(tmp_path, pack),), sources="any"))
    assert found == Resolved("pack", "1.0", "pack-1.0.tar.gz", sha256(pack), SourcePackage(()))
