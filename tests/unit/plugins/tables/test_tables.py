"""``hpcgen tables refresh``: what is told of a table, and which rows it adds to it."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.support.units import months_before
from hpcgen.plugins.tables.refresh import RefreshRequest, compared, wheel_findings
from hpcgen.plugins.tables.rows import add_rows, with_row
from hpcgen.plugins.tables.upstream import easybuild_releases, index_releases, plain_version, spack_releases
from hpcgen.supply.net.index_pages import IndexFile
from hpcgen.supply.net.package_index import PackageIndex
from tests.conftest import Command

A, B, C, D = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)
TABLE = f"""# tool's own remark
block: tool
upstream: {{spack: py-tool, easybuild: Tool, pypi: tool}}
source: {{from: "somewhere", checked: "2025-01-31", verified: "yes"}}
releases:
  "1.9.0":
    archives:
      source: {{url: "https://example.org/v1.9/tool-1.9.0.tar.gz", sha256: {A}}}
  "1.10.0":   # not 1.9
    archives:
      source:
        url: https://example.org/v1.10/tool-1.10.0.tar.gz
        sha256: {B}
    accepts: {{cmake: ">=3.13"}}   # tried
    source: {{from: "elsewhere", checked: "2026-11-01", verified: "yes"}}
notes:
  - "A note."
"""
SPACK = f"""
import os
os.abort()
class PyTool(Package):
    version("develop", branch="main")
    version("1.11.0", sha256="{C}")
    with default_args(deprecated=True):
        version("1.12.0", sha256="{D}", deprecated=True)
    version("1.10.0-1", sha256="{B}")
    version("1.9.0", sha256="{D}")
"""
EASYCONFIG = """
name = 'Tool'
version = '{version}'
sources = [SOURCE_TAR_GZ]
checksums = [{{'tool-{version}.tar.gz': '{sha256}'}}]
"""


@pytest.fixture
def spack(tmp_path: Path) -> Path:
    folder = tmp_path / "spack"
    package = folder / "repos" / "spack_repo" / "builtin" / "packages" / "py_tool" / "package.py"
    package.parent.mkdir(parents=True)
    package.write_text(SPACK)
    return folder


@pytest.fixture
def easybuild(tmp_path: Path) -> Path:
    folder = tmp_path / "easybuild-easyconfigs"
    own = folder / "easybuild" / "easyconfigs" / "t" / "Tool"
    own.mkdir(parents=True)
    for version, sha256 in {"1.11.0": C, "1.10.0": B}.items():
        text = EASYCONFIG.format(version=version, sha256=sha256)
        (own / f"Tool-{version}-GCC-14.eb").write_text(text)
    return folder


@pytest.fixture
def catalog(collection: Path) -> Catalog:
    (collection / "building_blocks" / "tool.yaml").write_text(TABLE)
    (collection / "building_blocks" / "tool.py").write_text(
        'from hpcgen.blocks.base import Block\n\n\nclass Tool(Block):\n    """A tool."""\n\n    name = "tool"\n'
    )
    return Catalog([collection])


def findings(catalog: Catalog, asked: RefreshRequest) -> list[tuple[str, str]]:
    return [(each.kind, each.version) for table in compared(catalog, asked) for each in table.findings]


def test_recipes_are_read_and_not_run(spack: Path, easybuild: Path) -> None:
    found = spack_releases(spack, "py-tool")
    assert {version: next(iter(known.hashes)) for version, known in found.items()} == {
        "1.11.0": C,
        "1.10.0": B,
        "1.9.0": D,
    }
    assert easybuild_releases(easybuild, "Tool")["1.11.0"].places == ("Tool-1.11.0-GCC-14.eb",)
    assert spack_releases(spack, "other") == easybuild_releases(easybuild, "Other") == {}


def test_tables_in_spack_packages_are_read(spack: Path) -> None:
    path = spack / "repos" / "spack_repo" / "builtin" / "packages" / "py_tool" / "package.py"
    path.write_text(f'_versions = {{"13.3.0": {{"Linux-x86_64": ("{A}", "https://x/y.run")}}, "x": 1}}\n')
    assert spack_releases(spack, "py-tool")["13.3.0"].hashes == {A}
    path.write_text("version(")
    with pytest.raises(InputError, match="cannot be read"):
        spack_releases(spack, "py-tool")


def test_a_folder_without_recipes_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no packages of Spack"):
        spack_releases(tmp_path, "py-tool")
    with pytest.raises(InputError, match="no easyconfigs"):
        easybuild_releases(tmp_path, "Tool")


@pytest.mark.parametrize(
    ("said", "meant"), [("2.29.7-1", "2.29.7"), ("develop", ""), ("2.0rc1", ""), ("1.2+cpu", ""), ("5.0", "5.0")]
)
def test_versions_are_called_as_in_tables(said: str, meant: str) -> None:
    assert plain_version(said) == meant


def test_newer_differing_and_aged_rows_are_found(catalog: Catalog, spack: Path, easybuild: Path) -> None:
    asked = RefreshRequest(("tool",), spack, easybuild, aged_before="2025-11-23")
    assert findings(catalog, asked) == [("newer", "1.11.0"), ("differs", "1.9.0"), ("aged", "1.9.0")]
    (table,) = compared(catalog, asked)
    assert "Spack 1.11.0, EasyBuild 1.11.0" in table.findings[0].message


def test_releases_that_are_not_wanted_are_left_out(catalog: Catalog, spack: Path, easybuild: Path) -> None:
    path = catalog.release_files("tool")[0]
    path.write_text(TABLE.replace("pypi: tool}", 'pypi: tool, left_out: {"==1.11.*": "it deadlocks"}}'))
    assert findings(Catalog(catalog.folders[:-1]), RefreshRequest(("tool",), spack, easybuild)) == [
        ("differs", "1.9.0"),
        ("untried", "==1.11.*"),
    ]


def test_a_source_with_other_archives_is_not_compared(catalog: Catalog, spack: Path) -> None:
    path = spack / "repos" / "spack_repo" / "builtin" / "packages" / "py_tool" / "package.py"
    path.write_text(f'version("1.10.0", sha256="{D}")\n')
    assert findings(catalog, RefreshRequest(("tool",), spack)) == [("unread", "")]


def test_other_archives_that_the_table_names_are_told_no_more(catalog: Catalog, spack: Path, easybuild: Path) -> None:
    path = catalog.release_files("tool")[0]
    path.write_text(TABLE.replace("pypi: tool}", 'pypi: tool, other_archives: {spack: {"==1.9.0": "a mirror"}}}'))
    asked = RefreshRequest(("tool",), spack, easybuild)
    assert findings(Catalog(catalog.folders[:-1]), asked) == [("newer", "1.11.0")]
    path.write_text(TABLE.replace("pypi: tool}", 'pypi: tool, other_archives: {spack: {">0": "a mirror"}}}'))
    fresh = Catalog(catalog.folders[:-1])
    (added,) = add_rows(fresh, compared(fresh, asked), {}, "2026-11-23", False)
    assert "no two sources have a hash for it" in added.why


def test_a_table_that_is_compared_with_nothing_is_told(catalog: Catalog) -> None:
    path = catalog.release_files("tool")[0]
    named = "upstream: {spack: py-tool, easybuild: Tool, pypi: tool}"
    path.write_text(TABLE.replace(named, "upstream: {}"))
    assert findings(Catalog(catalog.folders[:-1]), RefreshRequest(("tool",))) == [("unread", "")]
    path.write_text(TABLE.replace(named, "upstream: {none: our own program}"))
    assert findings(Catalog(catalog.folders[:-1]), RefreshRequest(("tool",))) == []


def test_every_built_in_table_is_compared_or_says_why_not() -> None:
    told = compared(Catalog([]), RefreshRequest())
    assert [each.block for each in told if any(finding.kind == "unread" for finding in each.findings)] == []


def test_a_row_is_added_where_two_agree(catalog: Catalog, spack: Path, easybuild: Path) -> None:
    tables = compared(catalog, RefreshRequest(("tool",), spack, easybuild))
    (added,) = add_rows(catalog, tables, {"Spack": spack, "EasyBuild": easybuild}, "2026-11-23", False)
    assert (added.version, added.why) == ("1.11.0", "")
    text = catalog.release_files("tool")[0].read_text()
    row = f"""  "1.11.0":
    archives:
      source:
        url: https://example.org/v1.11/tool-1.11.0.tar.gz
        sha256: {C}
    accepts: {{cmake: ">=3.13"}}
    source: {{from: "github.com/spack/spack-packages: py_tool/package.py; \
github.com/easybuilders/easybuild-easyconfigs: Tool-1.11.0-GCC-14.eb", checked: "2026-11-23", verified: "no", \
note: "accepts as in 1.10.0, not looked up for this release"}}
"""
    before, found, after = text.partition(row)
    assert found and before + after == TABLE


def test_no_hash_of_one_source_alone_is_written(catalog: Catalog, spack: Path) -> None:
    tables = compared(catalog, RefreshRequest(("tool",), spack))
    (added,) = add_rows(catalog, tables, {"Spack": spack}, "2026-11-23", False)
    assert added.file == "" and "no two sources have a hash for it" in added.why
    assert catalog.release_files("tool")[0].read_text() == TABLE


def test_a_hash_of_other_archives_is_not_written(catalog: Catalog, spack: Path, easybuild: Path) -> None:
    for path in [*spack.rglob("package.py"), *easybuild.rglob("*1.10.0*.eb")]:
        path.write_text(path.read_text().replace(B, D))
    tables = compared(catalog, RefreshRequest(("tool",), spack, easybuild))
    (added,) = add_rows(catalog, tables, {}, "2026-11-23", False)
    assert "their archives may be other ones" in added.why


def test_rows_that_need_more_than_an_archive_are_left_to_people(catalog: Catalog, spack: Path, easybuild: Path) -> None:
    path = catalog.release_files("tool")[0]
    path.write_text(TABLE.replace("    accepts:", "    values: {sdist: x}\n    accepts:"))
    fresh = Catalog(catalog.folders[:-1])
    (added,) = add_rows(fresh, compared(fresh, RefreshRequest(("tool",), spack, easybuild)), {}, "2026-11-23", False)
    assert "the newest row has values, which must be looked up" in added.why


def test_the_newest_first_stays_first() -> None:
    text = 'releases:\n  "2.0":\n    archives: {source: {url: "u2.0", sha256: x}}\n  "1.0": {}\n'
    assert with_row(text, "2.0", "2.1", "u2.1", A, "{}").index('"2.1"') < text.index('"2.0"') + 20


# the package index


@pytest.fixture
def index(tmp_path: Path) -> PackageIndex:
    """A folder as a package index: tool 1.10.0 as wheel, withdrawn, and 1.12.0 as source."""
    page = tmp_path / "simple" / "tool" / "index.html"
    page.parent.mkdir(parents=True)
    links = [f'<a data-yanked="bad" href="tool-1.10.0-py3-none-any.whl#sha256={A}">w</a>']
    links.append(f'<a href="tool-1.12.0.tar.gz#sha256={C}">s</a>')
    page.write_text(f"<html><body>{''.join(links)}</body></html>")
    return PackageIndex([(tmp_path / "simple").as_uri()])


def test_the_index_knows_newer_releases(catalog: Catalog, index: PackageIndex) -> None:
    (table,) = compared(catalog, RefreshRequest(("tool",), index=index))
    assert [(each.kind, each.version) for each in table.findings] == [("newer", "1.12.0")]
    assert table.known["index"]["1.12.0"].hashes == {C}


def test_a_post_release_is_called_as_the_release_that_it_corrects() -> None:
    files = [IndexFile("tool-1.13.0.post1.tar.gz", "", C), IndexFile("tool-1.12.0.tar.gz", "", D)]
    known = index_releases(files)
    assert known["1.13.0"].hashes == frozenset() and known["1.12.0"].hashes == {D}


def test_wheel_lists_are_held_against_the_index(
    collection: Path, index: PackageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = collection / "building_blocks" / "wheels"
    wheels.mkdir()
    (wheels / "one-cp312.txt").write_text(f"tool==1.10.0 --hash=sha256:{A}\nother==1.0 --hash=sha256:{A}\n")
    (wheels / "two-cp312.txt").write_text(f"tool==1.12.0 --hash=sha256:{D}\ntool==1.11.0 --hash=sha256:{D}\n")
    catalog = Catalog([collection])
    monkeypatch.setattr(catalog, "folders", [collection])
    found = {(each.kind, each.table, each.version): each for each in wheel_findings(catalog, index)}
    assert sorted(found) == [
        ("gone", "wheels of tool", "1.11.0"),
        ("gone", "wheels of tool", "1.12.0"),
        ("unread", "wheels of other", "1.0"),
        ("yanked", "wheels of tool", "1.10.0"),
    ]
    assert found["yanked", "wheels of tool", "1.10.0"].sources == ["one-cp312"]


# the command


def test_the_command_reports_and_writes(catalog: Catalog, spack: Path, easybuild: Path, hpcgen: Command) -> None:
    before = ("--collection", str(catalog.folders[0]), "tables", "refresh", "--block", "tool", "--no-index")
    clones = ("--spack", str(spack), "--easybuild", str(easybuild))
    shown = hpcgen(*before, *clones)
    assert shown.returncode == 14 and "tool   newer    1.11.0   the table ends with 1.10.0" in shown.stdout
    told = json.loads(hpcgen(*before, *clones, "--write", "--json").stdout)
    assert [each["kind"] for each in told["findings"]] == ["newer", "differs", "aged"]
    assert told["added"][0]["version"] == "1.11.0"
    assert "newer" not in hpcgen(*before, *clones).stdout
    clean = hpcgen(*before, "--months", "1200")
    assert clean.returncode == 0 and clean.stdout == "" and "1 table compared: 0 newer" in clean.stderr
    assert hpcgen(*before, "--download").returncode == 2


def test_months_are_counted_across_years() -> None:
    assert months_before(datetime.date(2026, 2, 28), 3) == "2025-11-28"
