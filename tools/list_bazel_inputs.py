#!/usr/bin/env python3
"""Write the list of what Bazel fetches by itself while it builds a software, read from that software's source.

    tools/list_bazel_inputs.py tensorflow-2.14.1 SOURCE_TREE --from 'where the tree is from' \\
        --repository rules_python=FOLDER --define HERMETIC_PYTHON_VERSION=3.10,3.11 --skip 'python_.*darwin'

reads WORKSPACE and every .bzl file that it loads, as text: nothing is run and nothing is fetched. It writes
building_blocks/bazel/tensorflow-2.14.1.yaml, to be read by a person before it is committed: every file with a sha256,
and under left_out everything that Bazel or a repository rule may fetch beside, with the place where it is written.
What the macros of a fetched repository declare is seen where --repository gives its unpacked source.

    tools/list_bazel_inputs.py NAME SOURCE_TREE --from '…' --resolved FILE

adds what a connected build has really fetched: FILE is what Bazel wrote for --experimental_repository_resolved_file.
"""

from __future__ import annotations

import argparse
import ast
import base64
import binascii
import datetime
import itertools
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from starlark import Reader  # type: ignore[import-not-found, unused-ignore]
from starlark_values import External, Rule  # type: ignore[import-not-found, unused-ignore]

LISTS = Path(__file__).resolve().parent.parent / "building_blocks" / "bazel"
FILES = frozenset(
    [
        "http_archive",
        "new_http_archive",
        "http_file",
        "http_jar",
        "tf_http_archive",
        "tf_http_file",
        "third_party_http_archive",
        "java_import_external",
        "jvm_maven_import_external",
        "filegroup_external",
        "patched_http_archive",
    ]
)
TREES = frozenset(["git_repository", "new_git_repository"])
# Words of Bazel that declare nothing that is fetched.
HARMLESS = frozenset(
    [
        "load",
        "workspace",
        "register_toolchains",
        "register_execution_platforms",
        "bind",
        "existing_rule",
        "existing_rules",
        "print",
        "fail",
        "local_repository",
        "new_local_repository",
        "package_name",
        "repository_name",
    ]
)
SHA256 = re.compile(r"[0-9a-f]{64}")
# A file of the Python package index, wherever it is mirrored: it is looked up there again by its hash.
PACKAGE = re.compile(r"/packages/(?:source/[^/]/[^/]+|[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{60})/([^/]+)")
PACKAGE_FILE = re.compile(
    r"(?P<name>[A-Za-z0-9._]+(?:-[A-Za-z][A-Za-z0-9._]*)*)-(?P<version>[0-9][^-]*(?:-[0-9]+)?)"
    r"(?:-[^-]+-[^-]+-[^-]+\.whl|\.tar\.gz|\.zip)"
)
URL = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9._~/+@%:,=&?!-]*[A-Za-z0-9_~+%=-]")


class Listing:
    """What has been found. ``files``: (name, sha256) → urls, or → the file and the Python package that it is of;
    ``left_out``: (what, where) → why."""

    def __init__(self, skip: Sequence[str]) -> None:
        self.files: dict[tuple[str, str], list[str]] = {}
        self.packages: dict[tuple[str, str], tuple[str, str]] = {}
        self.left_out: dict[tuple[str, str], str] = {}
        self.rules: dict[tuple[str, str], list[str]] = {}
        self.skip = [re.compile(each) for each in skip]

    def declared(self, place: str, name: str, function: Any, arguments: list[Any], named: dict[str, Any]) -> bool:
        """Look at one call; True if there is nothing more to see in it. See starlark.Reader."""
        short = name.rsplit(".", 1)[-1]
        if short in FILES:
            self.file(place, short, arguments, named)
            return True
        if isinstance(function, Rule):
            self.rule(place, function, arguments, named)
            return True
        if short in TREES:
            what = f"{short} {_text(named.get('name', arguments[0] if arguments else ''))}"
            self.leave(what, place, f"a git repository, {_text(named.get('remote'))} at {_text(named.get('commit'))}")
            return True
        if isinstance(function, External) and function.repository and not _is_value(arguments, named, short):
            self.leave(
                f"{short} of @{function.repository}", place, "a macro of a repository whose source was not given"
            )
            return True
        return isinstance(function, External) and short in HARMLESS

    def file(self, place: str, rule: str, arguments: list[Any], named: dict[str, Any]) -> None:
        """A rule that fetches a file by its hash."""
        name = named.get("name", arguments[0] if arguments else None)
        urls = named.get("urls") or named.get("url") or named.get("jar_urls") or named.get("artifact")
        sha256 = named.get("sha256") or named.get("jar_sha256") or named.get("sha256_urls")
        if isinstance(sha256, dict):
            # A rule for several files: each hash has its urls.
            for each, addresses in sha256.items():
                self.add(place, rule, name, each, addresses)
            return
        if not sha256 and isinstance(named.get("integrity"), str):
            sha256 = _from_integrity(named["integrity"])
        self.add(place, rule, name, sha256, [urls] if isinstance(urls, str) else urls)
        if named.get("srcjar_urls"):
            sources = named.get("srcjar_sha256")
            self.add(place, rule, f"{_text(name)}-sources", sources, named["srcjar_urls"])

    def add(self, place: str, rule: str, name: Any, sha256: Any, urls: Any) -> None:
        """A file with all that must be known of it, or something that is left out."""
        addresses = [url for url in urls if isinstance(url, str)] if isinstance(urls, list | tuple) else []
        what = f"{rule} {_text(name)}"
        if not isinstance(name, str) or not addresses or len(addresses) != len(urls):
            self.leave(what, place, "its name or address is not written out in the source")
        elif not isinstance(sha256, str) or not SHA256.fullmatch(sha256):
            self.leave(what, place, f"no sha256; fetched from {addresses[-1]}")
        elif any(not URL.fullmatch(url) for url in addresses):
            self.leave(what, place, "an address that cannot be written safely")
        elif any(pattern.fullmatch(name) for pattern in self.skip):
            self.leave(what, place, f"skipped by hand: {next(p.pattern for p in self.skip if p.fullmatch(name))}")
        elif any(PACKAGE.search(url) for url in addresses):
            self.package(what, place, (name, sha256), addresses)
        else:
            known = self.files.setdefault((name, sha256), [])
            known += [url for url in dict.fromkeys(addresses) if url not in known]

    def package(self, what: str, place: str, key: tuple[str, str], urls: list[str]) -> None:
        """A file of the Python package index."""
        file = urls[0].rsplit("/", 1)[1]
        found = PACKAGE_FILE.fullmatch(file)
        if found is None:
            self.leave(what, place, f"a file of the Python package index of no known form: {file}")
        else:
            self.packages[key] = (file, f"{found['name']}=={found['version']}")

    def rule(self, place: str, function: Rule, arguments: list[Any], named: dict[str, Any]) -> None:
        """A repository rule of the source's own."""
        name = named.get("name", arguments[0] if arguments else None)
        urls = named.get("urls") or named.get("url")
        if urls and isinstance(named.get("sha256"), str):
            self.add(place, function.name, name, named["sha256"], [urls] if isinstance(urls, str) else urls)
        else:
            self.rules.setdefault((function.name, place.rpartition(":")[0]), []).append(_text(name))

    def leave(self, what: str, place: str, why: str) -> None:
        """Something that the list does not hold."""
        self.left_out[(_plain(what), place)] = _plain(why)

    def resolved(self, text: str, shown: str) -> None:
        """What Bazel itself wrote of the repositories that it has fetched."""
        _, _, value = text.partition("resolved =")
        for entry in ast.literal_eval(value.strip()):
            for made in [entry, *entry.get("repositories", [])]:
                named = made.get("attributes", made.get("original_attributes", {}))
                rule = made.get("rule_class", made.get("original_rule_class", "rule"))
                short = str(rule).rpartition("%")[2]
                if named.get("urls") or named.get("url"):
                    self.file(shown, short, [], dict(named))


def _is_value(arguments: list[Any], named: dict[str, Any], name: str) -> bool:
    """Whether a call of something unknown is for its value alone: repositories are declared by names or macros."""
    return name in ("check", "package_annotation", "parse", "get") or name.startswith("if_")


def _from_integrity(text: str) -> str:
    kind, _, rest = text.partition("-")
    try:
        return base64.b64decode(rest, validate=True).hex() if kind == "sha256" else ""
    except binascii.Error:
        return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "(not written out)"


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:300]


def code_rules(listing: Listing) -> None:
    """Repositories that a rule's code makes, one line for each rule and file."""
    for (rule, place), names in listing.rules.items():
        few = ", ".join(sorted(set(names))[:3]) + (", …" if len(set(names)) > 3 else "")
        listing.leave(f"{rule}: {few}", place, "made by a rule's code, which may fetch or start programs")


def pip_lists(tree: Path, listing: Listing) -> None:
    """Python packages that Bazel's rules install with pip, if the source has lists of them."""
    for path in sorted(tree.glob("requirements_lock*.txt")):
        count = sum(1 for line in path.read_text("utf-8").splitlines() if re.match(r"[A-Za-z0-9._-]+==", line))
        listing.leave(path.name, path.name, f"{count} Python packages, fetched by pip, not by Bazel")


def text_of(arguments: argparse.Namespace, listing: Listing, read: Sequence[str]) -> str:
    """The list's file."""
    lines = [
        f"# Written by tools/list_bazel_inputs.py: what Bazel fetches for {arguments.name} that its source names by",
        "# sha256. left_out is what the source only hints at; hpcgen reads files alone. See docs/bazel-inputs.md.",
        "source:",
        f"  from: {_quoted(arguments.origin)}",
        f'  checked: "{arguments.date}"',
        f'  as_of: "{arguments.date}"',
        "  dated_by: reading",
        f'  verified: "{"no" if arguments.unverified else "yes"}"',
        f"  note: {_quoted(f'{len(read)} files read: ' + ', '.join(read[:4]) + ' and what they load')}",
        "files:",
    ]
    for name, sha256 in sorted({*listing.files, *listing.packages}):
        lines += [f"  - name: {_quoted(name)}", f"    sha256: {sha256}"]
        if (name, sha256) in listing.packages:
            file, package = listing.packages[name, sha256]
            lines += [f"    file: {_quoted(file)}", f"    package: {_quoted(package)}"]
        else:
            lines += ["    urls:", *(f"      - {_quoted(url)}" for url in listing.files[name, sha256])]
    if listing.left_out:
        lines.append("left_out:")
    for (what, place), why in sorted(listing.left_out.items()):
        lines.append(f"  - {{name: {_quoted(what)}, at: {_quoted(place)}, why: {_quoted(why)}}}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def options(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="name of the list, such as tensorflow-2.14.1")
    parser.add_argument("tree", type=Path, metavar="SOURCE_TREE", help="the unpacked source, with its WORKSPACE")
    parser.add_argument("--from", dest="origin", required=True, metavar="TEXT", help="where the tree is from")
    parser.add_argument("--unverified", action="store_true", help="the tree is not surely that of the release")
    parser.add_argument(
        "--repository", action="append", default=[], metavar="NAME=FOLDER", help="source of another one"
    )
    parser.add_argument("--define", action="append", default=[], metavar="NAME=VALUES", help="a symbol's values")
    parser.add_argument("--skip", action="append", default=[], metavar="REGEX", help="repositories not to be listed")
    parser.add_argument("--resolved", action="append", default=[], type=Path, metavar="FILE", help="see above")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="of the look-up; today if not given")
    parser.add_argument("--into", type=Path, default=LISTS, metavar="DIR", help="where the list is written")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Read, write, and say what was found."""
    arguments = options(argv)
    if not (arguments.tree / "WORKSPACE").is_file():
        print(f"{arguments.tree} has no WORKSPACE: not the source of something that Bazel builds", file=sys.stderr)
        return 1
    listing = Listing(arguments.skip)
    folders = {"": arguments.tree} | {n: Path(p) for n, _, p in (each.partition("=") for each in arguments.repository)}
    named = re.search(r'^workspace\(name = "(\w+)"', (arguments.tree / "WORKSPACE").read_text("utf-8"), re.MULTILINE)
    if named:
        folders[named[1]] = arguments.tree
    defined = {name: values.split(",") for name, _, values in (each.partition("=") for each in arguments.define)}
    read: dict[str, None] = {}
    for values in itertools.product(*defined.values()):
        reader = Reader(folders, listing.declared, dict(zip(defined, values, strict=True)))
        reader.workspace()
        read |= dict.fromkeys(reader.read)
    for path in arguments.resolved:
        listing.resolved(path.read_text("utf-8"), path.name)
    code_rules(listing)
    pip_lists(arguments.tree, listing)
    arguments.into.mkdir(parents=True, exist_ok=True)
    target = arguments.into / f"{arguments.name}.yaml"
    target.write_text(text_of(arguments, listing, list(read)), "utf-8")
    count = len({*listing.files, *listing.packages})
    print(f"{target}: {count} files; {len(listing.left_out)} things left out, see its end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
