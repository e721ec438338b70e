"""What a shell script starts, with the variables, loops, functions and conditions around it. Nothing of it is run.

What may be a secret goes no further than here: only its name does.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord, Launched
from hpcgen.core.secret_rules import without_secret_words
from hpcgen.readers.launch_lines import ScriptLine, launched
from hpcgen.readers.shell_scope import ASSIGNED, Frame, Scope, verdict
from hpcgen.readers.shell_values import UnclosedError, plain, unknown
from hpcgen.readers.shell_words import ShellCommand, commands_in, on_one_line

MOST_LINES = 5000
_MOST_ROUNDS, _MOST_COMMANDS, _MOST_STARTED, _MOST_WORDS, _DEEPEST = 12, 10_000, 500, 2000, 6
_DECLARES = ("export", "declare", "typeset", "readonly", "local")
_LOOPS = ("for", "while", "until", "select")
_HERE = re.compile(
    r"\$(PWD|\{PWD\}|\{?SLURM_SUBMIT_DIR\}?|\{?PBS_O_WORKDIR\}?|\{?LS_SUBCWD\}?|\{?PJM_O_WORKDIR\}?|\(pwd\))/?|`pwd`/?"
)
"""The folder where a job is submitted."""
_SETS_UP = re.compile(
    r"echo|printf|set|ulimit|sleep|date|hostname|env|which|pwd|mkdir|nvidia-smi|rocm-smi|conda|mamba|module|ml|trap|"
    r"pip\d?|true|ls|cat|wait|umask|\[|test|unset|nproc|chmod"
)
"""Commands that a line for a shell may have beside the program, and that are left out."""


_ENVIRONMENT = re.compile(r"(^|/)(activate|conda\.sh|\.?bashrc|\.?bash_profile)$|^/etc/|^(~|\$HOME)/|/init/bash$")
"""Scripts of an environment or of the machine, which an image has no use for."""


class Script(Scope):
    """The commands of a script, one after the other.

    ``path``: of the script. ``known``: variables of the batch system, as its directives say them. ``line``: where the
    text begins. ``skip``: leave out what a condition excludes if nothing is set from outside. ``other``: the text of
    another script of the project; None where there is none of this path. ``own``: names of programs of the project.
    """

    def __init__(
        self,
        path: str,
        known: Mapping[str, str] | None = None,
        line: int = 1,
        skip: bool = True,
        other: Callable[[str], str | None] = lambda path: None,
        own: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(skip)
        self.path, self.known, self._first, self.other, self.own = path, known or {}, line, other, own
        self.scripts: list[FileWord] = []
        self.modules: list[FileWord] = []
        self.sourced: list[FileWord] = []
        self.launched: list[Launched] = []
        self.others: list[str] = []
        self.folder = ""
        self.unclosed: Position | None = None
        self.called: set[str] = set()
        self.written: dict[str, str] = {}
        self.functions: dict[str, list[ShellCommand]] = {}
        self._left = _MOST_COMMANDS
        self._depth = 0
        self._ended = False

    def read(self, text: str) -> Script:
        """The whole text."""
        try:
            self._run(commands_in(text))
            for name in [each for each in self.functions if each not in self.called and not self.launched]:
                self._frames.append(Frame("function", False, True, {}))
                self._run(iter(self.functions[name]))
                self._frames.clear()
        except UnclosedError as error:
            if not self._depth:
                self.unclosed = Position(self.path, self._first + text.count("\n", 0, error.at), 1)
        return self

    # from commands to what they are part of

    def _run(self, commands: Iterator[ShellCommand]) -> None:
        pipeline: list[ShellCommand] = []
        for each in commands:
            self._left -= 1
            if self._left < 0 or self._ended or len(self.launched) > _MOST_STARTED:
                return
            if each.words[:1] and each.words[0] in _LOOPS:
                body = _until(commands, each, _LOOPS, "done")
                self._left -= len(body)
                self._loop(each, body)
                continue
            if each.end == "(" and len(each.words) in (1, 2) and re.fullmatch(r"[\w:.-]+", each.words[-1]):
                self._function(each.words[-1], commands)
                continue
            if each.words[:1] == ["function"] and len(each.words) > 1:
                body = [each._replace(words=each.words[2:], spans=each.spans[2:])] if each.words[2:] else []
                self._function(each.words[1], _chained(body, commands))
                continue
            pipeline.append(each._replace(words=each.words[:_MOST_WORDS], spans=each.spans[:_MOST_WORDS]))
            if each.end not in ("|", "|&"):
                self._pipeline(pipeline)
                pipeline = []
        if pipeline:
            self._pipeline(pipeline)

    def _function(self, name: str, commands: Iterator[ShellCommand]) -> None:
        """Keep the body, ``{ … }``."""
        for each in commands:
            if each.words[:1] == ["{"]:
                first = each._replace(words=each.words[1:], spans=each.spans[1:])
                self.functions[name] = [first, *_until(commands, each, ("{",), "}")]
                return
            if each.words:
                self._pipeline([each])
                return

    def _loop(self, head: ShellCommand, body: list[ShellCommand]) -> None:
        """A loop over plain words is gone through for each; of all others the body is read once."""
        if self._depth > _DEEPEST * 4:
            return
        name = head.words[1] if len(head.words) > 1 else ""
        values = self._values_of(head) if head.words[0] == "for" and head.words[2:3] == ["in"] else []
        self.values.forget(name)
        before = len(self.launched)
        rounds = [[each] for each in values] if 0 < len(values) <= _MOST_ROUNDS and self._depth < _DEEPEST else [[]]
        for value in rounds:
            if value:
                self.values.plain[name] = value[0]
            else:
                self._enter("loop", False)
                self._condition(head)
            self._depth += 1
            self._run(iter(body))
            self._depth -= 1
            if not value:
                self._leave()
            elif (len(self.launched) - before) * len(rounds) > _MOST_ROUNDS and value == rounds[0]:
                del self.launched[before:]
                self.values.forget(name)
                rounds[:] = []
                self._loop(head._replace(words=["while", ":"]), body)
                return

    def _values_of(self, head: ShellCommand) -> list[str]:
        values = [each for raw in head.words[3:] for each in self.values.words(raw)]
        if len(values) == 1 and (match := re.fullmatch(r"\{(\d{1,4})\.\.(\d{1,4})\}", values[0])):
            values = [str(each) for each in range(int(match[1]), int(match[2]) + 1)]
        return values if all(re.fullmatch(r"[\w.:=/+@%-]+", each) for each in values) else []

    def _condition(self, head: ShellCommand) -> None:
        if head.words[0] != "for" and head.words[1:]:
            self._command(head._replace(words=head.words[1:], spans=head.spans[1:]), "")

    def _pipeline(self, parts: list[ShellCommand]) -> None:
        before = len(self.launched)
        for number, each in enumerate(parts):
            behind = [
                *each.behind,
                *(text for other in parts[number + 1 :] for text in ("|", *other.words, *other.behind)),
            ]
            ahead = [*parts[number - 1].words, "|", "…"] if number else []
            if each.end == "&":
                behind.append("&")
            if len(self.launched) == before:
                self._structured(each, " ".join([*ahead, *behind]))
        end = parts[-1].end
        if end not in ("&&", "||"):
            self._chain = True

    def _structured(self, command: ShellCommand, dropped: str) -> None:
        """What begins or ends a condition or a group is taken off; the rest is a command."""
        words = list(command.words)
        while words:
            word = words[0]
            if word == "if":
                self._enter("if", False, verdict(words[1:], self.values, self.assigned))
            elif word in ("then", "else", "elif"):
                self._branch(word, words)
            elif word in ("{", "case"):
                self._enter(word, word == "{")
                words = words if word == "{" else [""]
            elif word in ("fi", "esac", "}"):
                self._leave()
            elif word not in ("do", "!"):
                break
            words = words[1:]
        if command.end == "(" and not words:
            self._enter("(", True)
        elif command.end == ")":
            if words:
                self._command(command._replace(words=words, spans=command.spans[-len(words) :]), dropped)
            self._leave("(")
            return
        if words:
            self._command(command._replace(words=words, spans=command.spans[-len(words) :]), dropped)
        if command.end == ";;" and self._frames:
            self._frames[-1] = self._restored(self._frames[-1])

    # commands

    def _command(self, command: ShellCommand, dropped: str) -> None:
        if not all(each.active for each in self._frames):
            return
        where = Position(self.path, self._first + command.line - 1, command.column)
        chained, words = self._chain, command.words
        if words[0] in ("[", "[[", "test"):
            decided = verdict(words, self.values, self.assigned)
            self._chain = {"&&": decided, "||": None if decided is None else not decided}.get(command.end, True)
            return
        if chained is not False or not self.skip:
            self._simple(words, where, dropped, command.document)
            if command.document and words[0] == "cat":
                self._written(command)
        if command.end == "||":
            self._chain = None

    def _written(self, command: ShellCommand) -> None:
        """A here-document that becomes a file, as which it may be started."""
        for each in command.behind:
            if match := re.fullmatch(r">\|?\s*(\S+)", each):
                literal = any(re.match(r"<<-?\s*['\"\\]", other) for other in command.behind)
                self.written[self.values.text(match[1]).removeprefix("./")] = (
                    command.document if literal else self._document(command.document)
                )

    def _document(self, text: str) -> str:
        """The text of a here-document with the variables that are known."""
        return plain(self.values.text('"' + re.sub(r'(?<!\\)"', '\\"', text.strip("\n")) + '"'))

    def _simple(self, raw: list[str], where: Position, dropped: str, document: str) -> None:
        first = next((n for n, each in enumerate(raw) if not ASSIGNED.fullmatch(each)), len(raw))
        name = raw[first] if first < len(raw) else ""
        if name in _DECLARES or not name:
            exported = name == "export" or (name in ("declare", "typeset") and "-x" in raw)
            for each in raw if not name else raw[first + 1 :]:
                self._declared(each, exported, where)
        elif name == "unset":
            for each in raw[first + 1 :]:
                self.values.forget(each)
        elif name == "read" and document and re.fullmatch(r"[A-Za-z_]\w*", raw[-1]):
            self._assign(
                raw[-1], self.values.text('"' + re.sub(r'(?<!\\)"', '\\"', document.strip()) + '"'), False, where
            )
        elif name in ("exit", "return"):
            self._ended = name == "exit" and self._sure and not self._depth
        else:
            words = [each for word in raw[first:] for each in self.values.words(word)]
            # No stack has words that cannot be printed, but for a text that a shell gets.
            if words and all(each.isprintable() for each in words if each != words[-1]):
                self._started(words, raw, first, where, dropped)

    def _started(self, words: list[str], raw: list[str], first: int, where: Position, dropped: str) -> None:
        name = words[0]
        if name in self.functions and self._depth < _DEEPEST:
            self.called.add(name)
            outer, self.values.arguments = self.values.arguments, words[1:]
            self._depth += 1
            self._run(iter(self.functions[name]))
            self._depth -= 1
            self.values.arguments = outer
        elif name == "eval" and self._depth < _DEEPEST:
            self._depth += 1
            self._run(commands_in(plain(" ".join(words[1:]))))
            self._depth -= 1
        elif name in ("cd", "pushd"):
            self._go(words[1] if len(words) > 1 else "")
        elif name in ("source", "."):
            self.sourced += [FileWord(plain(word), where) for word in words[1:2] if not _ENVIRONMENT.search(word)]
        elif name in ("module", "ml"):
            self._modules(words, where)
        else:
            self._program(words, raw, first, where, dropped)

    def _go(self, folder: str) -> None:
        folder = _HERE.sub("", folder)
        if re.fullmatch(r"\$\(dirname .*\)/?|\$\{?(BASH_SOURCE|0)\b.*", folder):
            folder = posixpath.dirname(self.path) or "."
            self.folder = folder
        elif folder.startswith(("/", "~", "-")) or unknown(folder):
            self.folder = ""
        else:
            self.folder = posixpath.normpath(posixpath.join(self.folder, plain(folder)))
        self.folder = "" if self.folder in (".", "/") or self.folder.startswith("..") else self.folder

    def _modules(self, words: list[str], where: Position) -> None:
        names = [each for each in words[1:] if each not in ("load", "add") and not each.startswith("-")]
        if not {"purge", "unload", "list", "use", "avail", "swap"} & {*words[1:2]}:
            self.modules += [FileWord(each, where) for each in names]

    def _program(self, words: list[str], raw: list[str], first: int, where: Position, dropped: str) -> None:
        behind = " ".join(without_secret_words(["", *dropped.split()]).words[1:])
        before = {name for name in self.doubts if any(re.search(rf"\$\{{?{name}\b", each) for each in raw)}
        words = [_HERE.sub("", each) if _HERE.match(each) else each for each in words]
        found = launched(ScriptLine(words, where, behind, not self._sure, self.known, self.own))
        if found is None:
            self.others.append(words[0].rpartition("/")[2])
            self.scripts += [FileWord(path, where) for each in words[:3] if (path := self._script(each))][:1]
            return
        for each in raw[:first]:
            self._declared(each, True, where)
        stars = [each for each in found.words if each in self.values.patterns]
        bare = [each for each in found.words if each in self.values.unquoted]
        found = replace(found, folder=self.folder, doubts=sorted(before), unquoted=bare, patterns=stars)
        self.launched.append(_public(self._of_a_shell(found)))

    def _script(self, word: str) -> str:
        """A script by its path from where the commands begin; empty where a word is none."""
        path = posixpath.normpath(posixpath.join(self.folder, word))
        return path if re.fullmatch(r"(?!/|\.\.)[\w./+-]+\.(sh|bash|slurm|sbatch|sub|job|pbs)", path) else ""

    def _of_a_shell(self, found: Launched) -> Launched:
        """``bash -c TEXT`` as the program that the text starts, if it starts one and prepares nothing that counts."""
        words = found.words
        shell = re.fullmatch(r"(/bin/|/usr/bin/)?(ba|z|k|da)?sh", words[0])
        flag = next((n for n, each in enumerate(words[1:4], 1) if re.fullmatch(r"-[a-z]*c", each)), 0)
        at = 1 if shell is not None and words[1:] else 0
        script, theirs = self.written.get(words[at].removeprefix("./")), False
        if script is None and words[at].endswith((".sh", ".bash")) and not unknown(words[at]) and found.launcher:
            script, theirs = self._other(words[at]), True
        if script is None and (shell is None or not flag or flag + 1 >= len(words)):
            return replace(found, words=[each for each in words if each.isprintable()])
        text = script if script is not None else plain(words[flag + 1])
        inner = Script(self.path, self.known, found.where.line, self.skip, self.other, self.own)
        inner._depth = self._depth + 1
        inner.values.arguments = words[(at if script is not None else flag + 2) + 1 :] or None
        if inner._depth < _DEEPEST:
            inner.read(text)
        left = sorted({each for each in inner.others if not _SETS_UP.fullmatch(each)})
        if len(inner.launched) != 1 or left or inner.sourced or inner.launched[0].launcher:
            return replace(found, words=words if theirs else ["bash", "-c", on_one_line(text) or text])
        (each,) = inner.launched
        for name, word in inner.exported.items():
            self.exported.setdefault(name, word)
        self.secrets |= inner.secrets
        self.modules += inner.modules
        said = [each for each in dict.fromkeys(inner.others) if each in ("pip", "pip3", "conda", "mamba")]
        return replace(
            found,
            words=each.words,
            unquoted=each.unquoted,
            patterns=each.patterns,
            container=found.container or each.container,
            image=found.image or each.image,
            before=" ".join([found.before, each.before, *said]).strip(),
            dropped=f"{each.dropped} {found.dropped}".strip(),
            repeated=found.repeated or each.repeated,
            secrets=[*found.secrets, *each.secrets],
            strange=[*found.strange, *each.strange],
            folder=each.folder or found.folder,
        )

    def _other(self, path: str) -> str | None:
        """The text of another script of the project, by its path from where this one is, or is started."""
        places = (self.folder, "", posixpath.dirname(self.path))
        paths = [posixpath.normpath(posixpath.join(place, plain(path))) for place in places]
        texts = (self.other(each) for each in dict.fromkeys(paths) if not each.startswith(("/", "..")))
        return next((text for text in texts if text is not None), None)


def _public(each: Launched) -> Launched:
    words, left = without_secret_words(each.words)
    return replace(each, words=words, secrets=[*each.secrets, *left])


def _chained(first: list[ShellCommand], rest: Iterator[ShellCommand]) -> Iterator[ShellCommand]:
    yield from first
    yield from rest


def _until(
    commands: Iterator[ShellCommand], first: ShellCommand, opening: tuple[str, ...], closing: str
) -> list[ShellCommand]:
    """The commands up to the one that closes what the first opened."""
    depth, body = 1, []
    for each in commands:
        words = each.words
        while words and words[0] in ("do", "then", "else", "{", "!", "if", *opening):
            depth += words[0] in opening
            words = words[1:]
        if words[:1] == [closing]:
            depth -= 1
            if not depth:
                break
        body.append(each)
    return body
