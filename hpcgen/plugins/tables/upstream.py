"""What others know of the releases of one software. Recipes of Spack and EasyBuild are read as text, never executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from packaging.version import InvalidVersion, Version

from hpcgen.core.errors import InputError
from hpcgen.supply.net.index_pages import IndexFile

_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_BUILD = re.compile(r"-\d+$")
_POST = re.compile(r"\.post\d+$")
_LARGEST = 4 * 1024 * 1024
"""Characters of a recipe; the largest have some 100 KB."""


class Known(msgspec.Struct, frozen=True):
    """One release as somebody knows it: hashes and commits that are named for it, and where that stands."""

    hashes: frozenset[str] = frozenset()
    commits: frozenset[str] = frozenset()
    places: tuple[str, ...] = ()

    def joined(self, other: Known) -> Known:
        """Both together, as several recipes have one release."""
        places = tuple(dict.fromkeys([*self.places, *other.places]))
        return Known(self.hashes | other.hashes, self.commits | other.commits, places)


Releases = dict[str, Known]


def plain_version(text: str) -> str:
    """A final release as release tables call it; empty for others, such as a branch or a pre-release."""
    # NVIDIA's and others' number of the build, as in 2.29.7-1.
    text = _BUILD.sub("", text)
    try:
        version = Version(text)
    except InvalidVersion:
        return ""
    return "" if version.is_prerelease or version.local or version.is_postrelease or version.epoch else text


def pattern_of(text: str) -> re.Pattern[str]:
    """What a table says that a release looks like; its groups are ``version`` and, where it has one, ``sha256``.

    InputError: it is no regular expression, or does not name the version once.
    """
    whole = text.replace("{version}", r"(?P<version>\d+(?:\.\d+)*)").replace("{sha256}", r"(?P<sha256>[0-9a-f]{64})")
    try:
        found = re.compile(whole, re.MULTILINE)
        if "version" in found.groupindex:
            return found
        why = "{version} is not in it"
    except re.error as error:
        why = str(error)
    told = "a regular expression with `{version}` once, and `{sha256}` at most once"
    raise InputError(f"{text} is not a pattern: {why}", expected=told)


def newest(versions: Iterable[str]) -> str:
    """The newest of some releases; empty for none."""
    return max(versions, key=Version, default="")


# Spack


def spack_releases(folder: Path, name: str) -> Releases:
    """The releases in a Spack package; none where the clone does not have it.

    folder: a clone of spack/spack-packages, or of a Spack that still has the packages.
    name: as Spack calls it, ``py-torch``.
    InputError: the folder holds no Spack packages, or the package cannot be read.
    """
    roots = [folder / part for part in ("repos/spack_repo/builtin/packages", "var/spack/repos/builtin/packages", ".")]
    root = next((each for each in roots if any(each.glob("*/package.py"))), None)
    if root is None:
        raise InputError(f"{folder} has no packages of Spack", expected="a clone of github.com/spack/spack-packages")
    path = next((p for p in (root / n / "package.py" for n in (name.replace("-", "_"), name)) if p.is_file()), None)
    if path is None:
        return {}
    found: Releases = {}
    for version, known in _spack_versions(_parsed(path), f"{path.parent.name}/package.py"):
        found[version] = found.get(version, Known()).joined(known)
    return found


def _spack_versions(tree: ast.Module, place: str) -> Iterator[tuple[str, Known]]:
    """``version("1.2", sha256=…)``, and tables with a version as key that loops make such calls of."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "version" and node.args:
            version = plain_version(_text(node.args[0]))
            words = {each.arg: each.value for each in node.keywords if each.arg}
            told = [text for name in ("sha256", "commit") if (text := _text(words.get(name)))]
            deprecated = words.get("deprecated")
            if version and not (isinstance(deprecated, ast.Constant) and deprecated.value):
                yield version, _known(told, place)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                version = plain_version(_text(key))
                told = [text for each in ast.walk(value) if (text := _text(each))]
                if version and any(_SHA256.fullmatch(text) for text in told):
                    yield version, _known(told, place)


# EasyBuild


def easybuild_releases(folder: Path, name: str) -> Releases:
    """The releases that EasyBuild has recipes of, each with every hash in them; none where the clone has none.

    folder: a clone of easybuilders/easybuild-easyconfigs.
    name: as EasyBuild calls it, ``PyTorch``.
    InputError: the folder holds no easyconfigs, or one cannot be read.
    """
    root = folder / "easybuild" / "easyconfigs"
    if not root.is_dir():
        expected = "a clone of github.com/easybuilders/easybuild-easyconfigs"
        raise InputError(f"{folder} has no easyconfigs", expected=expected)
    found: Releases = {}
    for path in sorted((root / name[:1].lower() / name).glob("*.eb")):
        tree = _parsed(path)
        said = {
            target.id: _text(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        version = plain_version(said.get("version", ""))
        if version and said.get("name") == name:
            known = _known((_text(node) for node in ast.walk(tree)), path.name)
            found[version] = found.get(version, Known()).joined(known)
    return found


# the package index


def index_releases(files: Iterable[IndexFile]) -> Releases:
    """The releases of a project in a package index, those left out that are yanked as a whole."""
    found: Releases = {}
    for each in files:
        said = version_of(each.file)
        version = plain_version(said) or plain_version(_POST.sub("", said))
        if version and not each.yanked:
            place = each.file if each.file.endswith((".tar.gz", ".zip")) else ""
            # A post-release is called as the release that it corrects, and is another archive.
            told = [each.sha256] if place and plain_version(said) else []
            found[version] = found.get(version, Known()).joined(_known(told, place))
    return found


def version_of(file: str) -> str:
    """The version in a file's name, in its normal spelling; empty for what is neither a wheel nor a source package."""
    from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename

    try:
        return str(parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1])
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return ""


def _known(texts: Iterable[str], place: str) -> Known:
    told = list(texts)
    hashes = frozenset(text for text in told if _SHA256.fullmatch(text))
    commits = frozenset(text for text in told if _COMMIT.fullmatch(text))
    return Known(hashes, commits, (place,) if place else ())


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _parsed(path: Path) -> ast.Module:
    """A recipe's syntax; it is never run."""
    try:
        text = path.read_text("utf-8")
        if len(text) > _LARGEST:
            raise InputError(f"{path} is too large for a recipe", remedy="leave that clone out")
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(
            f"{path} cannot be read: {error}", remedy="bring the clone up to date, or leave it out"
        ) from error
