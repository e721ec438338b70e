"""What shell lines of container files install: apt-get, dnf, zypper, pip, conda and R. Nothing of them is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from hpcgen.core.errors import Position
from hpcgen.core.model.own_containers import Installed, Manager
from hpcgen.core.model.own_project import FileWord
from hpcgen.core.secret_rules import without_secrets

_UNKNOWN = re.compile(r"\$\(|`|\$\{?(\d|[@*#?]|PATH|HOME|USER|HOSTNAME|SHELL)\b|[*?]")
_NAMED = re.compile(r"\$(\w+|\{\w+[^}]*\})")
_BUILDER = {"TARGETPLATFORM": "linux/amd64", "TARGETARCH": "amd64", "TARGETOS": "linux"}
"""Variables that builders of images set.

Source: https://docs.docker.com/reference/dockerfile/#automatic-platform-args-in-the-global-scope.
"""


def _known(word: str) -> str:
    """A word with variables of the builder, and without those that nobody sets."""
    return _NAMED.sub(lambda match: _BUILDER.get(match[1].strip("{}"), ""), word)


def _holds(words: Sequence[str]) -> bool | None:
    """What ``[ … ]`` says; None where that is not known."""
    if words[:1] == ["!"]:
        found = _holds(words[1:])
        return None if found is None else not found
    if words[:1] not in (["["], ["[["]) or any(map(_UNKNOWN.search, words[1:])):
        return None
    inner = [_known(word) for word in words[1:-1]]
    if inner[:1] == ["!"]:
        found = _holds(["[", *words[2:]])
        return None if found is None else not found
    if len(inner) == 2 and inner[0] in ("-n", "-z"):
        return bool(inner[1]) == (inner[0] == "-n")
    if len(inner) == 3 and inner[1] in ("=", "==", "!="):
        return (inner[0] == inner[2]) == (inner[1] != "!=")
    return None


class Branches:
    """Follows ``if``, ``elif``, ``else`` and ``fi``; if a condition cannot be told, its first branch counts."""

    def __init__(self) -> None:
        self._open: list[tuple[bool | None, bool, bool]] = []

    def takes(self, leading: Sequence[str], words: Sequence[str]) -> bool:
        """Whether a command is one that is run.

        ``leading``: words of the shell that stand before it. ``words``: its own.
        """
        negated = ["!"] if "!" in leading else []
        for word in leading:
            if word == "if":
                self._open.append((_holds([*negated, *words]), False, False))
            elif word in ("then", "elif", "else") and self._open:
                holds, _, done = self._open.pop()
                now = word != "elif" and not done and (word == "else" or holds is not False)
                holds = _holds([*negated, *words]) if word == "elif" else holds
                self._open.append((holds, now, done or now))
        if words[:1] == ["fi"] and self._open:
            self._open.pop()
        return "if" in leading or all(now for _, now, _ in self._open)


_TOKEN = re.compile(
    r"(?P<space>[ \t\r]+|\\\n|(?<![^\s;&|])\#[^\n]*)"
    r"|(?P<redirect>[0-9]?(?:>>?|<)(?:&[0-9-])?[ \t]*)"
    r"|(?P<end>&&|\|\|?|[;&\n()])"
    r"|(?P<word>(?:\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|\$\([^()]*\)|\$\{[^}]*\}|`[^`]*`|[^\s\\'\"&|;()<>`])+)",
    re.DOTALL,
)
_QUOTED = re.compile(r"\\(.)|'([^']*)'|\"((?:\\.|[^\"\\])*)\"", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?:(:?[-+])([^}]*))?\})")
_MOST_COMMANDS, _LONGEST = 2000, 400


class ShellLine(NamedTuple):
    """A command and the line where it starts; ``leading``: what a shell has before it, such as ``then``."""

    words: list[str]
    line: int
    leading: list[str] = []


def shell_lines(text: str, first: int = 1) -> Iterator[ShellLine]:
    """The commands of a text, redirections and comments left out; at most so many as people write.

    ``first``: the number of the text's first line.
    """
    words: list[str] = []
    line, counted, start, dropped, found = first, 0, first, False, 0
    for match in _TOKEN.finditer(text + "\n"):
        if match["word"] is not None:
            line, counted = line + text.count("\n", counted, match.start()), match.start()
            if not dropped:
                start = start if words else line
                words.append(_QUOTED.sub(_unquoted, match["word"]))
            dropped = False
        elif match["redirect"] is not None:
            dropped = "&" not in match["redirect"]
        elif match["end"] == "|" and words:
            words.append("|")
        elif match["end"] is not None:
            dropped = False
            if plain := _plain(words):
                yield ShellLine(plain, start, words[: len(words) - len(plain)])
                found += 1
            # Words such as ``then`` stand before the next command, also on its own line.
            words = [] if plain else words
            if found >= _MOST_COMMANDS:
                return


def _unquoted(match: re.Match[str]) -> str:
    if match[1] is not None:
        return "" if match[1] == "\n" else match[1]
    return match[2] if match[2] is not None else re.sub(r"\\([\"\\$`])", r"\1", match[3].replace("\\\n", ""))


_LEADING = {"then", "else", "elif", "do", "if", "while", "!", "{", "sudo", "time", "exec", "command", "env"}


def _plain(words: list[str]) -> list[str]:
    """The command without what a shell has before it."""
    while words and (words[0] in _LEADING or re.match(r"[A-Za-z_]\w*=", words[0])):
        words = words[1:]
        while words and words[0].startswith("-") and len(words) > 1:
            words = words[1:]
    return words


def with_values(text: str, values: dict[str, str]) -> str:
    """A text with the variables that are known; the others stay as they are."""

    def value(match: re.Match[str]) -> str:
        known = values.get(match[1] or match[2])
        if match[3] and "+" in match[3]:
            return match[4] if known else ""
        if known is None:
            return match[4] if match[3] else match[0]
        return match[4] if match[3] == ":-" and not known else known

    return _VARIABLE.sub(value, text)[: max(len(text), 100_000)]


_NOTHING = re.compile(
    r"(rm|mkdir|cd|echo|set|true|fi|done|for|export|ldconfig|locale-gen|\[|\[\[|test|esac|case|\}|:|exit|ls|cat|printf|"
    r"chmod|chown|(add|del)(user|group)|(user|group)(add|mod|del)|debconf-set-selections|update-alternatives|break|sleep|"
    r"touch|return|unset|which|wait|shopt|ulimit|git-lfs|passwd|chpasswd|stdbuf|find|sync|strip|nvidia-smi)"
)
"""Commands that install nothing, of which nothing is to be said."""
_SYSTEM: dict[str, Manager] = {
    **dict.fromkeys(("apt", "apt-get", "aptitude"), "apt"),
    **dict.fromkeys(("dnf", "yum", "microdnf"), "dnf"),
    "zypper": "zypper",
}
_SYSTEM_VALUED = ("-o", "-t", "--target-release", "-c", "--option", "--enablerepo", "--repo", "--from", "-r")
_PIP_VALUED = re.compile(
    r"-[icft]|--((extra-)?index-url|find-links|constraint|trusted-host|target|timeout|retries|no-binary|only-binary|"
    r"default-timeout|progress-bar|root|prefix|python|src|cache-dir|platform|(global|install)-option|config-settings|"
    r"upgrade-strategy|python-version|implementation)"
)
_CONDA_VALUED = ("-n", "--name", "-p", "--prefix", "--solver", "-r", "--root-prefix")
_OWN_TOOLS = ("pip", "setuptools", "wheel", "uv", "pip-tools", "poetry", "pipenv", "virtualenv", "conda", "mamba")
"""What installs packages is the block's own affair."""
_SYSTEM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,127}")
_R_NAME = re.compile(r"[\"']([A-Za-z][A-Za-z0-9.]{0,60})[\"']")
_R_CALL = re.compile(
    r"(?:install\.packages|pak(?:::pkg_install|::pak)?|renv::install|BiocManager::install)\s*\(\s*"
    r"(?:pkgs\s*=\s*)?(c\s*\([^()]*\)|[\"'][^\"']*[\"'])"
)


class Installing:
    """Collects what commands install. ``file``: that has them, by its path from the project's folder."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._manager: Manager = ""
        self._found: dict[str, dict[str, FileWord]] = {}
        self._left: list[FileWord] = []
        self.channels: list[str] = []
        self._tools: dict[str, Callable[[list[str], Position], bool]] = {
            **dict.fromkeys(_SYSTEM, self._system),
            **dict.fromkeys(("conda", "mamba", "micromamba"), self._conda),
            **dict.fromkeys(("R", "Rscript"), self._r),
            **dict.fromkeys(("install2.r", "install.r", "installGithub.r"), self._r_script),
        }

    def shell(self, text: str, first: int, values: dict[str, str]) -> None:
        """The commands of a text whose first line has the number ``first``."""
        branches = Branches()
        for each in shell_lines(text, first):
            words = [with_values(word, values) for word in each.words]
            if not branches.takes(each.leading, words):
                continue
            self.command(words, Position(self.file, each.line, 1))

    def command(self, words: list[str], where: Position) -> None:
        """One command; what it is given by another (``yes | …``) counts for nothing."""
        if words[0] in ("yes", "echo", "printf") and "|" in words[:-1]:
            words = words[len(words) - words[::-1].index("|") :]
        name = words[0].rpartition("/")[2]
        if _NOTHING.fullmatch(name):
            return
        if name in self._tools:
            taken = self._tools[name]([name, *words[1:]], where)
        elif (behind := _pip_words(name, words)) is not None:
            taken = self._pip(behind, where)
        else:
            taken = False
        if not taken:
            self.leave(" ".join(words), where)

    def leave(self, text: str, where: Position) -> None:
        """What is not taken; without what may be a secret in it."""
        shown = without_secrets(" ".join("".join(each if each.isprintable() else " " for each in text).split()))
        self._left.append(FileWord(shown if len(shown) <= 70 else f"{shown[:68]} …", where))

    def installed(self) -> Installed:
        """All of it."""
        found = {kind: list(each.values()) for kind, each in self._found.items()}
        return Installed(
            self._manager,
            found.get("system", []),
            found.get("python", []),
            found.get("conda", []),
            list(dict.fromkeys(self.channels)),
            found.get("r", []),
            found.get("files", []),
            found.get("groups", []),
            self._left,
        )

    def add(self, kind: str, text: str, where: Position) -> None:
        """A package, or a list of them."""
        if len(text) <= _LONGEST and text.isprintable():
            self._found.setdefault(kind, {}).setdefault(text, FileWord(text, where))

    def _system(self, words: list[str], where: Position) -> bool:
        manager = _SYSTEM[words[0]]
        named = _arguments(words[1:], _SYSTEM_VALUED)
        if not named or named[0] not in ("install", "in", "groupinstall"):
            return bool(named) and named[0] in (
                *("update", "upgrade", "clean", "autoremove", "autoclean", "makecache", "refresh", "remove", "purge"),
                *("dist-upgrade", "full-upgrade", "ref", "up"),
            )
        good = [each for each in named[1:] if _SYSTEM_NAME.fullmatch(each.partition("=")[0].partition("/")[0])]
        if self._manager and self._manager != manager:
            return False
        self._manager = manager
        for each in good:
            name = each.partition("=")[0].partition("/")[0]
            if name.endswith((".deb", ".rpm")):
                self.leave(f"{words[0]} install {each}", where)
            else:
                self.add("system", name, where)
        if rest := [each for each in named[1:] if each not in good]:
            self.leave(f"{words[0]} install {' '.join(rest)}", where)
        return True

    def _pip(self, words: list[str], where: Position) -> bool:
        if not words or words[0] not in ("install", "sync"):
            return bool(words) and words[0] in ("cache", "config", "list", "check", "freeze", "show")
        number, rest = 1, []
        while number < len(words):
            word = words[number]
            name, _, value = word.partition("=")
            number += 1
            if _PIP_VALUED.fullmatch(word) or word in ("-r", "--requirement", "-e", "--editable"):
                value = words[number] if number < len(words) else ""
                number += 1
            if name in ("-r", "--requirement"):
                self.add("files", value, where)
            elif name in ("-e", "--editable"):
                match = re.fullmatch(r"\.?[\w./]*(\[[\w,-]*\])?", value)
                rest += [] if match else [value]
                self._extras(match[1] if match else None, where)
            elif not word.startswith("-"):
                rest += self._python(word, words[0], where)
        if rest:
            self.leave(f"pip install {' '.join(rest)}", where)
        return True

    def _python(self, word: str, action: str, where: Position) -> list[str]:
        """One word of pip's; the word itself where it is not taken."""
        if match := re.fullmatch(r"\.{1,2}(/[\w./-]*)?(\[[\w,-]*\])?", word):
            self._extras(match[2], where)
            return []  # the project itself: its code is copied
        if re.fullmatch(r"[\w./-]+\.(txt|in)", word) and action == "sync":
            self.add("files", word, where)
        elif not re.match(r"[A-Za-z0-9]", word) or re.search(r"[$`:/\\@]|\.whl$|\.tar", word.partition(";")[0]):
            return [word]
        elif re.split(r"[^A-Za-z0-9._-]", word)[0].lower() not in _OWN_TOOLS:
            self.add("python", word, where)
        return []

    def _extras(self, said: str | None, where: Position) -> None:
        for name in re.findall(r"[\w-]+", said or ""):
            self.add("groups", name, where)

    def _conda(self, words: list[str], where: Position) -> bool:
        behind = words[1:]
        if environment := behind[:1] == ["env"]:
            behind = behind[1:]
        if not behind or behind[0] not in ("install", "create", "update"):
            return bool(behind) and behind[0] in ("clean", "init", "config", "activate", "info", "list")
        number = 1
        while number < len(behind):
            name, joined, value = behind[number].partition("=") if behind[number].startswith("-") else ("", "", "")
            word = behind[number]
            number += 1
            if name in ("-c", "--channel", "-f", "--file", *_CONDA_VALUED):
                if not joined:
                    value = behind[number] if number < len(behind) else ""
                    number += 1
                if name in ("-c", "--channel") and re.fullmatch(r"[A-Za-z0-9._/-]{1,100}", value):
                    self.channels.append(value)
                elif name in ("-f", "--file"):
                    self.add("files", value, where)
            elif not word.startswith("-") and not environment and "$" not in word:
                self.add("conda", word, where)
        return True

    def _r(self, words: list[str], where: Position) -> bool:
        return self.r_code(" ".join(words[1:]), where)

    def r_code(self, code: str, where: Position) -> bool:
        """Calls that install packages of R, in its own language."""
        calls = _R_CALL.findall(code)
        for call in calls:
            for name in _R_NAME.findall(call):
                self.add("r", name, where)
        return bool(calls)

    def _r_script(self, words: list[str], where: Position) -> bool:
        if words[0] == "installGithub.r":
            return False
        for each in _arguments(words[1:], ("-n", "--ncpus", "-r", "--repos", "-l", "--libloc")):
            if re.fullmatch(r"[A-Za-z][A-Za-z0-9.]{0,60}", each):
                self.add("r", each, where)
        return True


def _pip_words(name: str, words: list[str]) -> list[str] | None:
    """What stands behind pip, however it is called; None of another command."""
    if re.fullmatch(r"pip(\d(\.\d+)?)?", name):
        return words[1:]
    if re.fullmatch(r"python(\d(\.\d+)?)?", name) and words[1:3] == ["-m", "pip"]:
        return words[3:]
    return words[2:] if name == "uv" and words[1:2] == ["pip"] else None


def _arguments(words: list[str], valued: tuple[str, ...]) -> list[str]:
    """The words that are no options, nor values of those."""
    found, number = [], 0
    while number < len(words):
        word = words[number]
        number += 2 if word in valued else 1
        if not word.startswith("-"):
            found.append(word)
    return found
