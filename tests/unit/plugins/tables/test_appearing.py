"""``hpcgen tables refresh`` where releases appear: tags of a repository, lists of others, reasons that lapse."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import FetchError, InputError
from hpcgen.core.model.release import UpstreamGit, UpstreamList
from hpcgen.plugins.tables.git_tags import Repository, archive_hash, tag_releases
from hpcgen.plugins.tables.listed import listed_releases
from hpcgen.plugins.tables.refresh import RefreshRequest, compared
from hpcgen.plugins.tables.rows import add_rows
from hpcgen.plugins.tables.upstream import pattern_of
from hpcgen.supply.net.package_index import PackageIndex
from hpcgen.supply.net.web import Web
from tests.conftest import Command
from tests.helpers.file_server import FileServer, make_certificate, serving

A, B = "a" * 64, "b" * 64
URL = "https://example.org/makers/tool"
BLOCK = 'from hpcgen.blocks.base import Block\n\n\nclass Tool(Block):\n    """A tool."""\n\n    name = "tool"\n'


def git(folder: Path, *words: str) -> str:
    who = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "tag.gpgsign=false",
    )
    fixed = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True, env={**os.environ, **fixed}
    )
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with the tags v1.9.0, v1.10.0 (annotated), v1.11.0rc1, v1.11.0 and one that is not a release."""
    folder = tmp_path / "makers-tool"
    folder.mkdir()
    git(folder, "init", "-q")
    for version in ("1.9.0", "1.10.0", "1.11.0"):
        (folder / "VERSION").write_text(version)
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", version)
        git(folder, "tag", *(("-am", "it") if version == "1.10.0" else ()), f"v{version}")
    git(folder, "tag", "v1.11.0rc1")
    git(folder, "tag", "nightly-2.0")
    return folder


def repository(clone: Path, **told: str) -> Repository:
    return Repository(UpstreamGit(url=URL, **told), clone)  # type: ignore[arg-type]


def as_github_does(clone: Path, version: str) -> str:
    """The sha256 of ``git archive | gzip -n``, by the programs themselves."""
    made = f"git archive --prefix=tool-{version}/ v{version} | gzip -n | sha256sum"
    return subprocess.run(made, cwd=clone, shell=True, check=True, capture_output=True, text=True).stdout[:64]


def catalog_with(collection: Path, upstream: str, rows: str) -> Catalog:
    (collection / "building_blocks" / "tool.py").write_text(BLOCK)
    source = 'source: {from: "somewhere", checked: "2026-11-01", verified: "yes"}'
    text = f"block: tool\nupstream: {upstream}\n{source}\nreleases:\n{rows}"
    (collection / "building_blocks" / "tool.yaml").write_text(text)
    return Catalog([collection])


def row(version: str, sha256: str) -> str:
    url = f"{URL}/archive/v{version}.tar.gz"
    return f'  "{version}":\n    archives:\n      source: {{url: "{url}", sha256: {sha256}}}\n'


def told(catalog: Catalog, **asked: object) -> list[tuple[str, str, str]]:
    (table,) = compared(catalog, RefreshRequest(("tool",), **asked))  # type: ignore[arg-type]
    return [(each.kind, each.version, each.message) for each in table.findings]


# tags


def test_tags_that_are_releases_are_read_with_their_commits(clone: Path) -> None:
    found = tag_releases(repository(clone))
    assert {version: next(iter(known.commits)) for version, known in found.items()} == {
        version: git(clone, "rev-parse", f"v{version}^{{commit}}") for version in ("1.9.0", "1.10.0", "1.11.0")
    }
    assert set(tag_releases(repository(clone, tags="nightly-{version}"))) == {"2.0"}


def test_an_archive_is_the_one_that_github_makes(clone: Path) -> None:
    assert archive_hash(repository(clone), "v1.11.0") == as_github_does(clone, "1.11.0")


def test_nothing_of_a_hostile_clone_runs(clone: Path, tmp_path: Path) -> None:
    """Neither its hooks, nor programs that its settings and attributes name."""
    ran = tmp_path / "ran"
    harm = f"touch {ran}; cat"
    (clone / ".gitattributes").write_text("* filter=evil diff=evil\n")
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", "attributes")
    git(clone, "tag", "v1.12.0")
    for name in ("filter.evil.smudge", "filter.evil.clean", "core.fsmonitor", "core.sshCommand", "core.pager"):
        git(clone, "config", name, harm)
    git(clone, "config", "uploadpack.packObjectsHook", harm)
    git(clone, "config", "tar.tar.gz.command", harm)
    hook = clone / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    assert "1.12.0" in tag_releases(repository(clone))
    assert len(archive_hash(repository(clone), "v1.12.0")) == 64
    assert not ran.exists()


def test_no_other_protocol_than_https_is_used(tmp_path: Path, clone: Path) -> None:
    for url in (clone.as_uri(), f"ext::sh -c touch% {tmp_path}/ran"):
        with pytest.raises(FetchError, match="not allowed"):
            tag_releases(Repository(UpstreamGit(url=url)))
    assert not (tmp_path / "ran").exists()


def test_tags_are_read_over_https(server: FileServer, clone: Path) -> None:
    git(clone, "update-server-info")
    for name in ("info/refs", "HEAD"):
        server.files[f"makers/tool/{name}"] = (clone / ".git" / name).read_bytes()
    server.files["makers/tool/info/refs?service=git-upload-pack"] = server.files["makers/tool/info/refs"]
    assert "1.11.0" in tag_releases(Repository(UpstreamGit(url=server.url("makers/tool"))))


def test_a_tag_that_was_moved_is_told(collection: Path, clone: Path) -> None:
    commit = git(clone, "rev-parse", "v1.9.0")
    rows = f'  "1.11.0":\n    trees: {{source: {{url: "{URL}", commit: {commit}}}}}\n'
    catalog = catalog_with(collection, f'{{git: {{url: "{URL}"}}}}', rows)
    ((kind, version, message),) = told(catalog, clones={"makers/tool": clone})
    assert (kind, version) == ("differs", "1.11.0") and "the tag was moved" in message


def test_a_row_is_added_with_the_hash_of_gits_archive(collection: Path, clone: Path) -> None:
    upstream = f'{{git: {{url: "{URL}", archive: git}}}}'
    catalog = catalog_with(collection, upstream, row("1.10.0", as_github_does(clone, "1.10.0")))
    asked = RefreshRequest(("tool",), clones={"Makers/Tool": clone})
    (added,) = add_rows(catalog, compared(catalog, asked), {}, "2026-11-28", False)
    assert (added.version, added.why) == ("1.11.0", "")
    fresh = Catalog(catalog.folders[:-1])
    made = fresh.releases("tool")["1.11.0"]
    assert made.archives["source"].sha256 == as_github_does(clone, "1.11.0")
    assert made.source is not None and "as it makes that of 1.10.0" in made.source.from_
    assert compared(fresh, asked)[0].findings == []


def test_no_row_is_added_where_git_makes_another_archive_of_the_last_one(collection: Path, clone: Path) -> None:
    upstream = f'{{git: {{url: "{URL}", archive: git}}}}'
    catalog = catalog_with(collection, upstream, row("1.10.0", A))
    tables = compared(catalog, RefreshRequest(("tool",), clones={"makers/tool": clone}))
    (added,) = add_rows(catalog, tables, {}, "2026-11-28", False)
    assert "has another sha256 than the row" in added.why


def test_each_series_of_a_table_has_its_newest(collection: Path, clone: Path) -> None:
    rows = row("1.9.0", A) + row("2.0.0", B)
    catalog = catalog_with(collection, f'{{git: {{url: "{URL}"}}, series: 1}}', rows)
    asked = {"clones": {"makers/tool": clone}}
    assert told(catalog, **asked) == [("newer", "1.11.0", "of 1 the table has 1.9.0: git 1.11.0")]
    assert told(catalog_with(collection, f'{{git: {{url: "{URL}"}}}}', rows), **asked) == []


# lists


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    key = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(key[1]))
    monkeypatch.setenv("GIT_SSL_CAINFO", str(key[1]))
    monkeypatch.setenv("no_proxy", "localhost")
    with serving(key) as running:
        yield running


def test_sums_of_a_release_are_read_with_their_hashes(server: FileServer) -> None:
    server.files["SHA256SUMS"] = f"{A}  tool-1.2.3-x86_64.tar.gz\n{B}  tool-1.2.3-aarch64.tar.gz\n".encode()
    listed = UpstreamList(name="sums", url=server.url("SHA256SUMS"), pattern=r"^{sha256}  tool-{version}-x86_64")
    found = listed_releases(listed, {}, Web())
    assert {version: set(known.hashes) for version, known in found.items()} == {"1.2.3": {A}}


def test_a_distributions_packages_are_held_against_the_rows_for_it(collection: Path, server: FileServer) -> None:
    index = "Package: other\nVersion: 9.9-1\n\nPackage: tool\nArchitecture: amd64\nVersion: 2:3.13.7-1+deb13u1\n\n"
    server.files["Packages.xz"] = lzma.compress(index.encode())
    listed = (
        f'{{name: Debian 13, on: {{debian: "13"}}, url: "{server.url("Packages.xz")}", '
        r'pattern: "^Package: tool\\n(?:.+\\n)*?Version: (?:\\d+:)?{version}-"}'
    )
    on = "  {version}:\n    on: {{debian: {on}}}\n"
    rows = on.format(version='"3.13.5"', on='"==13"') + on.format(version='"3.14.1"', on='"==12"')
    catalog = catalog_with(collection, f"{{lists: [{listed}]}}", rows)
    ((kind, version, message),) = told(catalog, web=Web())
    assert (kind, version) == ("newer", "3.13.7") and "Debian 13 3.13.7" in message
    rows = on.format(version='"3.13"', on='"==13"')
    assert told(catalog_with(collection, f"{{lists: [{listed}]}}", rows), web=Web()) == []


def test_a_list_in_a_repository_is_read_in_its_clone(clone: Path) -> None:
    url = "https://raw.githubusercontent.com/makers/tool/HEAD/VERSION"
    listed = UpstreamList(name="it", url=url, pattern="^{version}$")
    assert set(listed_releases(listed, {"makers/tool": clone}, None)) == {"1.11.0"}


@pytest.mark.parametrize("fault", ["status:503", "drop:3"])
def test_a_list_that_does_not_arrive_is_told(collection: Path, server: FileServer, fault: str) -> None:
    server.files["list"], server.faults["list"] = b"tool-1.2\n" * 40, [fault]
    listed = f'{{name: maker, url: "{server.url("list")}", pattern: "tool-{{version}}"}}'
    catalog = catalog_with(collection, f"{{lists: [{listed}]}}", row("1.2", A))
    assert [(kind, version) for kind, version, _ in told(catalog, web=Web())] == [("unread", "")]


@pytest.mark.parametrize("text", ["v{version}(", "{version}-{version}", "v1"])
def test_a_pattern_that_is_none_is_told(text: str) -> None:
    with pytest.raises(InputError, match="is not a pattern"):
        pattern_of(text)


def test_the_built_in_tables_have_patterns_that_can_be_read() -> None:
    catalog = Catalog([])
    for table in compared(catalog, RefreshRequest()):
        told = [table.upstream.git.tags] if table.upstream.git else []
        for text in [*told, *(each.pattern for each in table.upstream.lists)]:
            assert pattern_of(text).groupindex["version"]


# reasons


@pytest.fixture
def index(tmp_path: Path) -> PackageIndex:
    page = tmp_path / "simple" / "needed" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<html><body><a href="needed-2.0-py3-none-any.whl#sha256={A}">w</a></body></html>')
    return PackageIndex([(tmp_path / "simple").as_uri()])


@pytest.mark.parametrize(
    ("until", "kind"), [("index: needed>=2", "lapsed"), ("index: needed>=3", ""), ("index: '>='", "unread")]
)
def test_a_reason_that_waits_for_the_index_is_tried(
    collection: Path, index: PackageIndex, until: str, kind: str
) -> None:
    left_out = f'{{">=2": {{why: needed is not there, until: {{{until}}}}}}}'
    catalog = catalog_with(collection, f"{{none: it, left_out: {left_out}}}", row("1.0", A))
    assert [each[0] for each in told(catalog, index=index)] == ([kind] if kind else [])
    assert [each[0] for each in told(catalog)] == ["untried"]


def test_a_reason_that_waits_for_a_hash_is_tried(collection: Path, clone: Path) -> None:
    left_out = '{"==1.11.*": {why: nobody has a sha256, until: {hash: known}}}'
    rows = row("1.10.0", A)
    asked = {"clones": {"makers/tool": clone}}
    plain = catalog_with(collection, f'{{git: {{url: "{URL}"}}, left_out: {left_out}}}', rows)
    assert told(plain, **asked) == []
    made = catalog_with(collection, f'{{git: {{url: "{URL}", archive: git}}, left_out: {left_out}}}', rows)
    ((kind, version, message),) = told(made, **asked)
    assert (kind, version) == ("lapsed", "==1.11.*") and "git makes the archive of 1.11.0" in message


def test_a_reason_in_words_is_said_and_does_not_count(collection: Path, clone: Path, hpcgen: Command) -> None:
    catalog = catalog_with(collection, '{none: it, left_out: {">=2": it deadlocks}}', row("1.0", A))
    shown = hpcgen("--collection", str(catalog.folders[0]), "tables", "refresh", "--block", "tool", "--no-index")
    assert shown.returncode == 0 and "no machine can try why: it deadlocks" in shown.stdout


# the command


def test_a_repository_that_does_not_answer_ends_with_13(collection: Path, tmp_path: Path, hpcgen: Command) -> None:
    catalog = catalog_with(collection, f'{{git: {{url: "{URL}"}}}}', row("1.0", A))
    before = ("--collection", str(catalog.folders[0]), "tables", "refresh", "--block", "tool", "--no-index")
    empty = hpcgen(*before, "--clone", f"makers/tool={tmp_path}")
    assert empty.returncode == 13 and "1 unread" in empty.stderr
    assert hpcgen(*before, "--clone", str(tmp_path)).returncode == 2
    assert hpcgen(*before, "--clone", f"makers/tool={tmp_path}/gone").returncode == 3


def test_what_was_found_and_written_is_not_found_again(collection: Path, clone: Path, hpcgen: Command) -> None:
    upstream = f'{{git: {{url: "{URL}", archive: git}}}}'
    catalog = catalog_with(collection, upstream, row("1.10.0", as_github_does(clone, "1.10.0")))
    before = ("--collection", str(catalog.folders[0]), "tables", "refresh", "--block", "tool", "--no-index", "--json")
    named = ("--clone", f"makers/tool={clone}")
    first = hpcgen(*before, *named, "--write")
    assert first.returncode == 14 and json.loads(first.stdout)["added"][0]["version"] == "1.11.0"
    again = hpcgen(*before, *named)
    assert again.returncode == 0 and json.loads(again.stdout)["findings"] == []
