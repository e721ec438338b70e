"""What Bazel fetches by itself: read from workspace files, listed, wanted for a bundle, laid out for a build."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from hpcgen.blocks.inputs.base import Fetcher
from hpcgen.blocks.inputs.bazel import CACHE, DISTDIR, read_bazel_files
from hpcgen.blocks.steps import BazelFile, BazelFiles, Wheels
from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.collections import built_in
from hpcgen.core.errors import InputError
from hpcgen.core.model.bazel import BazelPin
from hpcgen.core.model.bundle import WantedFile
from hpcgen.core.model.image_paths import MOUNT, SCRATCH
from hpcgen.core.model.lock import Pins
from hpcgen.core.model.network import Mirrors
from hpcgen.core.model.plan import Plan
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble
from hpcgen.supply.net.package_index import find_files
from hpcgen.supply.pin.git_trees import fetch_tree

TOOL = Path(__file__).resolve().parents[3] / "tools" / "list_bazel_inputs.py"
LISTS = sorted((built_in() / "building_blocks" / "bazel").glob("*.yaml"))

A, B, C, D = (letter * 64 for letter in "abcd")

WORKSPACE = f"""
workspace(name = "probe")
load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive", fetch = "http_file")
load("//third:own.bzl", "MIRROR", "own_archive", parts = "repositories")
load("@rules_far//:deps.bzl", "far_deps")
load("@generated//:version.bzl", "VERSION")
http_archive(name = "plain", sha256 = "{A}", url = "https://example.org/plain-1.0.tar.gz")
fetch(name = "licence", sha256 = "{B}", urls = [MIRROR + "x/LICENSE", "https://example.org/x/LICENSE"])
http_archive(name = "loose", url = "https://example.org/loose.tar.gz")
parts("b")
far_deps(version = VERSION)
"""
OWN = f"""
MIRROR = "https://mirror.example.org/"
_ROWS = [("row" + str(n), "%d.zip" % n) for n in range(2)]

def own_archive(name, sha256, urls, **kwargs):
    fail("never gone into: the rule below is its own")

def _mirrored(url):
    if not url.startswith("https://"):
        return [url]
    return [MIRROR + "%s" % url[8:], url]

_generated = repository_rule(implementation = lambda ctx: ctx.execute(["curl"]), attrs = {{}})

def repositories(suffix, commit = "123"):
    for name, file in _ROWS:
        native.http_archive(name = name, sha256 = "{C}", urls = _mirrored("https://example.org/" + file))
    if native.existing_rule("x"):
        return
    native.http_archive(
        name = "fmt_" + suffix,
        integrity = "sha256-3d3d3d3d3d3d3d3d3d3d3d3d3d3d3d3d3d3d3d3d3d0=",
        urls = ["https://example.org/{{c}}/fmt-{{c}}.tar.gz".format(c = commit)],
    )
    native.http_archive(
        name = "six",
        sha256 = "{D}",
        urls = _mirrored("https://index.example.org/packages/source/s/six/six-1.16.0.tar.gz"),
    )
    native.git_repository(name = "tree", remote = "https://example.org/t.git", commit = "{"1" * 40}")
    _generated(name = "made")
"""
FAR = f"""
load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive")
load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
_HASHES = {{"3.9": "{A}", "3.10": "{B}"}}

def far_deps(version):
    maybe(http_archive, "py", sha256 = _HASHES[version], url = "https://example.org/py-" + version + ".tar.gz")
"""


def _tool(tmp_path: Path, *words: str) -> BazelFiles:
    tree = tmp_path / "tree"
    (tree / "third").mkdir(parents=True, exist_ok=True)
    (tree / "WORKSPACE").write_text(WORKSPACE)
    (tree / "third" / "own.bzl").write_text(OWN)
    subprocess.run(
        [sys.executable, str(TOOL), "probe-1", str(tree), "--from", 'a "tree"', "--into", str(tmp_path), *words],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return read_bazel_files(tmp_path / "probe-1.yaml", "probe-1.yaml")


def test_the_tool_finds_what_the_workspace_and_its_macros_declare(tmp_path: Path) -> None:
    files = {file.name: file for file in _tool(tmp_path).files}
    assert files["plain"] == BazelFile("plain", A, ("https://example.org/plain-1.0.tar.gz",))
    assert files["licence"].urls == ("https://mirror.example.org/x/LICENSE", "https://example.org/x/LICENSE")
    assert files["row1"].urls == ("https://mirror.example.org/example.org/1.zip", "https://example.org/1.zip")
    assert files["fmt_b"].urls == ("https://example.org/123/fmt-123.tar.gz",)
    assert (files["six"].file, files["six"].package, files["six"].urls) == ("six-1.16.0.tar.gz", "six==1.16.0", ())
    assert set(files) == {"plain", "licence", "row0", "row1", "fmt_b", "six"}


def test_the_tool_says_what_its_list_does_not_hold(tmp_path: Path) -> None:
    _tool(tmp_path)
    left_out = (tmp_path / "probe-1.yaml").read_text().partition("left_out:")[2]
    for words in (
        "http_archive loose",
        "no sha256; fetched from https://example.org/loose.tar.gz",
        "git_repository tree",
        f"https://example.org/t.git at {'1' * 40}",
        "_generated: made",
        "far_deps of @rules_far",
        "WORKSPACE:11",
    ):
        assert words in left_out


def test_the_tool_follows_macros_of_repositories_that_are_given(tmp_path: Path) -> None:
    far = tmp_path / "far"
    far.mkdir()
    (far / "deps.bzl").write_text(FAR)
    words = ("--repository", f"rules_far={far}", "--define", "VERSION=3.9,3.10", "--skip", "row.*")
    files = {(file.name, file.sha256) for file in _tool(tmp_path, *words).files}
    # VERSION is of a file that only a build makes: its values are given.
    assert {("py", A), ("py", B)} <= files
    assert not any(name.startswith("row") for name, _ in files)
    assert "skipped by hand: row.*" in (tmp_path / "probe-1.yaml").read_text()


def test_the_tool_reads_what_bazel_wrote_of_a_connected_build(tmp_path: Path) -> None:
    resolved = tmp_path / "resolved.bzl"
    attributes = {"name": "nested", "sha256": D, "urls": ["https://example.org/nested.zip"]}
    entry = {
        "original_rule_class": "//:deps.bzl%http_archive",
        "repositories": [{"rule_class": "http_archive", "attributes": attributes}],
    }
    resolved.write_text(f"resolved = {[entry]!r}\n")
    files = {file.name: file for file in _tool(tmp_path, "--resolved", str(resolved)).files}
    assert files["nested"] == BazelFile("nested", D, ("https://example.org/nested.zip",))


def test_a_tree_without_a_workspace_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(TOOL), "x", str(tmp_path), "--from", "x", "--into", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "has no WORKSPACE" in done.stderr
    assert not (tmp_path / "out").exists()


# lists


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_list_can_be_read_and_laid_out(path: Path) -> None:
    files = read_bazel_files(path, path.name)
    assert files.name == path.stem
    for version in ("3.1.0", "6.1.0", "7.4.1"):
        assert files.bazel_words(version)
        commands = files.distdir_commands(version)
        for sha256, name in files.held_names().items():
            assert any(f"{MOUNT}/files/{sha256}/{name}" in line for line in commands)


def test_a_list_is_for_a_version_that_is_built_from_source() -> None:
    rows = Catalog([]).releases("tensorflow")
    named = [path.stem.removeprefix("tensorflow-") for path in LISTS]
    assert named
    assert all("source" in rows[version].archives for version in named)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{name: x, sha256: zz, urls: ['https://example.org/x']}", "sha256"),
        (f"{{name: x, sha256: {A}, urls: ['ftp://example.org/x']}}", "urls"),
        (f"{{name: x, sha256: {A}, urls: ['https://example.org/$(x)']}}", "urls"),
        (f"{{name: ../x, sha256: {A}, urls: ['https://example.org/x']}}", "name"),
        (f"{{name: x, sha256: {A}}}", "urls, or file and package"),
        (f"{{name: x, sha256: {A}, file: ../x, package: x==1}}", "file"),
        (
            f"{{name: x, sha256: {A}, urls: ['https://example.org/x']}}\n"
            f"  - {{name: y, sha256: {B}, urls: ['https://example.org/x']}}",
            "two hashes",
        ),
    ],
)
def test_a_list_with_a_mistake_is_refused_at_its_place(entry: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x-1.yaml"
    path.write_text(f"source: {{from: x, checked: 2026-11-21, verified: no}}\nfiles:\n  - {entry}\n")
    with pytest.raises(InputError) as failed:
        read_bazel_files(path, "x-1.yaml")
    assert said in str(failed.value)
    assert "x-1.yaml:" in str(failed.value)


# a bundle


ONE = BazelFile("one", A, ("https://m.example.org/a/v1.0.tar.gz", "https://example.org/a/v1.0.tar.gz"))
OTHER = BazelFile("other", B, ("http://m.example.org/b/v1.0.tar.gz", "https://example.org/b/v1.0.tar.gz"))
AGAIN = BazelFile("again", A, ("https://example.org/a/one.tar.gz",))
PLAIN = BazelFile("plain", C, ("http://example.org/p.zip",))


def bazel_wanted(files: BazelFiles) -> list[WantedFile]:
    """What a bundle holds of it, as the index of pip's settings has it."""
    fetcher = Fetcher(Mirrors(), Pins(), Path(), Catalog().release, find_files, fetch_tree)
    return BazelFiles.wanted([(_source_plan("2.14.1").blocks[0], files)], fetcher)


def test_a_bundle_holds_each_content_once_from_https_alone() -> None:
    wanted = {item.sha256: item for item in bazel_wanted(BazelFiles("x-1", (ONE, OTHER, AGAIN, PLAIN)))}
    assert sorted(wanted) == [A, B, C]
    assert wanted[A].file == "one.tar.gz"
    assert wanted[A].urls == [*ONE.urls, *AGAIN.urls]
    assert wanted[B].urls == ["https://example.org/b/v1.0.tar.gz"]
    assert wanted[C].urls == ["https://example.org/p.zip"]
    assert {item.kind for item in wanted.values()} == {"bazel"}


def test_a_file_of_the_python_index_is_found_in_the_index_of_pips_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "simple" / "probe"
    folder.mkdir(parents=True)
    wheel = folder / "probe-1.0-py3-none-any.whl"
    wheel.write_bytes(b"not a wheel, but it has a hash")
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "index.html").write_text(f'<a href="{wheel.name}#sha256={sha256}">{wheel.name}</a>')
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", f"file://{tmp_path}/simple")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    file = BazelFile("pypi__probe", sha256, file=wheel.name, package="probe==1.0")
    (item,) = bazel_wanted(BazelFiles("x-1", (file,)))
    assert (item.kind, item.file, item.sha256) == ("bazel", wheel.name, sha256)
    assert item.urls == [wheel.as_uri()]


def test_what_nobody_listed_is_refused_with_the_way_to_list_it() -> None:
    empty = BazelFiles("tensorflow-2.15.1", ())
    for attempt in (
        lambda: bazel_wanted(empty),
        lambda: empty.distdir_commands("6.1.0"),
        lambda: empty.bazel_words("6.1.0"),
    ):
        with pytest.raises(InputError) as failed:
            attempt()
        assert "building_blocks/bazel/tensorflow-2.15.1.yaml" in str(failed.value)
        assert "hpcgen lock --fetch-bazel" in str(failed.value)


def test_what_has_no_public_hash_is_named_and_the_rest_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "x-1.yaml"
    entry = f"{{name: one, sha256: {A}, urls: ['https://example.org/one.zip']}}"
    source = "source: {from: x, checked: 2026-11-27, verified: no}"
    path.write_text(f"{source}\nfiles:\n  - {entry}\nunknown:\n  - {{name: other, why: nobody says it}}\n")
    files = read_bazel_files(path, "x-1.yaml")
    assert "the sha256 of 1 file is known, and not that of other" in files.lacking
    assert [each.sha256 for each in bazel_wanted(files)] == [A]
    assert not BazelFiles("x-1", (ONE,)).lacking


# the build


def _laid_out(files: BazelFiles, version: str, tmp_path: Path) -> dict[str, bytes]:
    """path below the scratch folder → content, after the commands ran one by one."""
    for item in bazel_wanted(files):
        held = tmp_path / "bundle" / "files" / item.sha256 / item.file
        held.parent.mkdir(parents=True)
        held.write_bytes(item.sha256[:1].encode())
    for line in files.distdir_commands(version):
        assert not any(sign in line for sign in ("&&", "||", ";", "|"))
        here = line.replace(MOUNT, str(tmp_path / "bundle")).replace(SCRATCH, str(tmp_path / "scratch"))
        subprocess.run(["sh", "-c", here], check=True, timeout=60)
    scratch = tmp_path / "scratch"
    return {str(p.relative_to(scratch)): p.read_bytes() for p in scratch.rglob("*") if p.is_file()}


def test_up_to_bazel_6_files_lie_by_name_and_of_one_name_in_several_folders(tmp_path: Path) -> None:
    files = BazelFiles("x-1", (ONE, OTHER, AGAIN, PLAIN))
    assert _laid_out(files, "6.1.0", tmp_path) == {
        "bazel-distdir/one.tar.gz": b"a",
        "bazel-distdir/v1.0.tar.gz": b"a",
        "bazel-distdir/p.zip": b"c",
        "bazel-distdir-2/v1.0.tar.gz": b"b",
    }
    words = files.bazel_words("6.1.0")
    assert words[:2] == [f"--distdir={DISTDIR}", f"--distdir={DISTDIR}-2"]
    assert "--experimental_repository_disable_download" in words
    # Bazel 3 does not know all of them.
    assert files.bazel_words("3.1.0") == words[:2]


def test_from_bazel_7_on_files_lie_by_content(tmp_path: Path) -> None:
    files = BazelFiles("x-1", (ONE, OTHER, AGAIN, PLAIN))
    assert _laid_out(files, "7.4.1", tmp_path) == {
        f"bazel-repository-cache/content_addressable/sha256/{sha256}/file": sha256[:1].encode() for sha256 in (A, B, C)
    }
    words = files.bazel_words("7.4.1")
    assert words[:2] == [f"--repository_cache={CACHE}", "--repo_env=BAZEL_HTTP_RULES_URLS_AS_DEFAULT_CANONICAL_ID=0"]
    assert "--experimental_repository_disable_download" in words


SIX = BazelFile("six", D, (), "six-1.16.0-py2.py3-none-any.whl", "six==1.16.0", pip=True)
MODULE = BazelFile("m", B, ("https://r.example.org/modules/m/1/MODULE.bazel",), registry="0/modules/m/1/MODULE.bazel")


def test_modules_lie_in_a_registry_of_files_and_what_pip_asks_for_is_not_bazels() -> None:
    files = BazelFiles("x-1", (ONE, MODULE, SIX))
    for version, place in (("6.5.0", "bazel-distdir"), ("7.7.1", "bazel-repository-cache")):
        lines = files.distdir_commands(version)
        assert not any(D in line for line in lines)
        assert any(line.endswith(f"{SCRATCH}/bazel-registries/0/modules/m/1/MODULE.bazel") for line in lines)
        assert any(place in line and A in line for line in lines)
        assert f"--registry=file://{SCRATCH}/bazel-registries/0" in files.bazel_words(version)
    # Up to Bazel 6 there would be a folder for every file of the name MODULE.bazel.
    assert "bazel-distdir-2" not in str(files.distdir_commands("6.5.0"))


def test_a_wheel_for_pip_is_on_the_page_of_wheels() -> None:
    asked: list[str] = []

    def find(lines: Sequence[str], indexes: Sequence[str] | None) -> list[WantedFile]:
        asked.extend(lines)
        return [
            WantedFile(kind="wheel", name="six", file=SIX.file, sha256=D, urls=["https://index.example.org/six.whl"])
        ]

    fetcher = Fetcher(Mirrors(), Pins(), Path(), Catalog().release, find, fetch_tree)
    found = BazelFiles.wanted([(_source_plan("2.14.1").blocks[0], BazelFiles("x-1", (ONE, SIX)))], fetcher)
    assert asked == [f"six==1.16.0 --hash=sha256:{D}"]
    assert [(each.kind, each.file) for each in found] == [("bazel", "v1.0.tar.gz"), ("wheel", SIX.file)]


# TensorFlow


def _source_plan(version: str) -> Plan:
    catalog = Catalog([])
    settings = [f"tensorflow.version={version}", "tensorflow.install=source"]
    plan = make_plan(catalog, catalog.site("supermuc"), catalog.stack("tf-horovod"), settings=settings)
    return msgspec.structs.replace(plan, supply="bundle")


def test_tensorflow_from_source_is_built_from_what_its_list_names() -> None:
    assembly = assemble(_source_plan("2.14.1"), Catalog([]), Pins())
    (files,) = [item for _, item in assembly.inputs if isinstance(item, BazelFiles)]
    lines = [line for _, step in assembly.builder.steps for line in step.commands]
    assert files.name == "tensorflow-2.14.1"
    assert set(files.distdir_commands("6.1.0")) <= set(lines)
    build = next(line for line in lines if " bazel " in line)
    assert set(files.bazel_words("6.1.0")) <= set(shlex.split(build))
    names = [item.name for _, item in assembly.inputs if isinstance(item, Wheels) and item.hashed]
    assert "bazel-tensorflow-2.14.1" in names
    # Without a server, Bazel needs no network interface at all, not even loopback.
    assert "--batch" in shlex.split(build)


def test_tensorflow_from_source_without_a_list_has_no_bundle_but_an_online_recipe() -> None:
    plan = _source_plan("2.13.1")
    with pytest.raises(InputError, match=r"tensorflow-2\.13\.1"):
        assemble(plan, Catalog([]), Pins())
    online = assemble(msgspec.structs.replace(plan, supply="network"), Catalog([]))
    build = next(line for _, step in online.builder.steps for line in step.commands if " bazel " in line)
    assert "distdir" not in build


def test_tensorflow_from_source_is_built_from_what_a_lock_has_of_a_bazel_that_was_run() -> None:
    pin = BazelPin(bazel="6.1.0", call=A, files=[ONE, SIX])
    assembly = assemble(_source_plan("2.15.1"), Catalog([]), Pins(bazel={"tensorflow-2.15.1": pin}))
    lines = [line for _, step in assembly.builder.steps for line in step.commands]
    build = next(line for line in lines if " bazel " in line)
    assert f"--distdir={DISTDIR}" in build and "--repo_env=PIP_NO_INDEX=1" in build
    assert not any("--fetch-bazel" in detail for detail in assembly.details)
