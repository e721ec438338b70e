"""READMEs: what they have people install and start; and the command lines of these, of a Makefile or a justfile."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord, JobFile, Readme
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.job_script import script_of
from hpcgen.readers.shell_script import MOST_LINES

NAMES = ("README.md", "README.rst", "README.txt", "README", "readme.md")
_STARTS = re.compile(r"(?:^|[\s`$>&;|])(?:python[\d.]*|torchrun|deepspeed|accelerate[ \t]+launch|ipython)[ \t]+(.*)")
_PROGRAM = re.compile(r"(?:^|\s)(?:\$\{?\w+\}?/|\./)?(\w[\w./-]*\.py|(?<=-m )\w[\w.]*)(?=[\s`\\]|$)")
_INSTALLS = re.compile(r"\bpip3?[ \t]+install[ \t]+(.*)")
_PIN = re.compile(r"(?:^|[\s\"'`])([A-Za-z0-9][A-Za-z0-9._-]*==\d[\w.]*)(?:\+\w+)?(?=[\s\"'`\\,]|$)")
_GROUPS = re.compile(r"(?:^|[\s\"'])(?:[A-Za-z][\w.-]*|\.)\[([\w,. -]+)\]")
_BY_APT = re.compile(r"\bapt(?:-get)?[ \t]+(?:-\S+[ \t]+)*install[ \t]+([^&|;#`]*)")
_PACKAGE = re.compile(r"(?<!\S)([a-z0-9][a-z0-9.+-]+)(?=\s|\Z)")
_MAKES = re.compile(r"\b(?:conda|mamba|micromamba)[ \t]+(?:env[ \t]+)?create[ \t]+(.*)")
_ENVIRONMENT = re.compile(r"(?:-f|--file)(?:[ \t]+|=)(\S+\.ya?ml)")
_NOT_FOR_RUNS = re.compile(r"(unit)?tests?(ing)?|dev\w*|docs?|lint\w*|tpu|mac\w*|windows")
_SHOWN = (
    (_STARTS, _PROGRAM),
    (_INSTALLS, _PIN),
    (_INSTALLS, _GROUPS),
    (_BY_APT, _PACKAGE),
    (_MAKES, _ENVIRONMENT),
)
"""Commands, and what of their words is taken."""
_PAGE = re.compile(r"\]\((?:\./)?([\w][\w./-]*\.(?:md|rst))(?:#[^()]*)?\)")


def read_readme(folder: ProjectFolder, path: str) -> Readme:
    """The programs that its lines start, as they are named there, and the packages that they install.

    InputError: it cannot be read.
    """
    found: dict[re.Pattern[str], list[FileWord]] = {word: [] for _, word in _SHOWN}
    for number, line in enumerate(folder.text(path).split("\n"), 1):
        for command, word in _SHOWN:
            if len(line) < _LONGEST and (match := command.search(line)):
                for each in word.finditer(match[1]):
                    where = Position(path, number, match.start(1) + each.start(1) + 1)
                    found[word].append(FileWord(each[1], where))
    groups = [(name.strip(), each.where) for each in found[_GROUPS][:1] for name in each.text.split(",")]
    wanted = [FileWord(name, where) for name, where in groups if name and not _NOT_FOR_RUNS.fullmatch(name)]
    made = [FileWord(folder.beside(path, each.text), each.where) for each in found[_ENVIRONMENT]]
    return Readme(found[_PROGRAM], found[_PIN], wanted, found[_PACKAGE], made)


def linked_pages(folder: ProjectFolder, path: str) -> list[str]:
    """The pages of the project that a README leads to, by their paths from the project's folder.

    InputError: it cannot be read.
    """
    lines = [line for line in folder.text(path).split("\n") if len(line) < _LONGEST]
    return list(dict.fromkeys(folder.beside(path, match[1]) for line in lines for match in _PAGE.finditer(line)))


_SHELLS = {"", "bash", "sh", "shell", "console", "zsh", "shell-session", "bash-session", "terminal", "cmd", "text"}
_FENCE = re.compile(r"\s*(```+|~~~+)\s*(?:\{\.?)?([\w-]*)")
_ALONE = re.compile(r"\s*(?:[-*] )?`([^`]+)`\s*(?:\([^()]*\))?[.:]?\s*")
"""Code that is a line of its own."""
_RST = re.compile(r"\s*\.\. (?:code-block|code|sourcecode|prompt):: *(\w*)|.*[^:]?::\s*$")
_IN_TEXT = re.compile(
    r"(?:`| {4}|\t)((?:\$ +)?(?:\w+=\S+ +)*(?:python[\d.]*|torchrun|accelerate|deepspeed|bash|sh) [^`]+)"
    r"|(?:`|^\s*)((?:\$ +)?(?:mpirun|mpiexec|srun|aprun) [^`]+)"
)
"""A command line in a sentence, or in a block that is only indented."""
_OPTIONAL = re.compile(r"(?<=\s)\[-{1,2}\w[^\[\]\n]*\](?=\s|\Z)")
"""What may be left out: ``[--cache]``."""
_STANDS = re.compile(r"([\s=:])(<[A-Za-z][\w ./-]*>)(?=[\s\\:/]|\Z)")
"""What stands for a value: ``--port=<your_port>``, which a shell would read as two redirections."""
_OPTION, _COMMENT = re.compile(r"--?[A-Za-z]"), re.compile(r"\s#.*")
_LONGEST = 2000
_PROMPT = re.compile(r"\s*(?:\([\w.-]+\)\s*)?(?:[$%]|[\w.-]+@[\w.-]+[:~\w/.-]*[$#])\s+(?=\S)")


def read_shown(folder: ProjectFolder, path: str, own: frozenset[str] = frozenset()) -> JobFile | None:
    """The command lines in blocks of code of a README, then those in its sentences; None where there are none.

    ``own``: names of programs of the project. InputError: it is no text.
    """
    lines = folder.text(path).split("\n")[:MOST_LINES]
    blocks = [*(_indented(lines) if path.lower().endswith(".rst") else _fenced(lines))]
    inside = {number + n for number, block in blocks for n in range(len(block))}
    blocks += [
        (number, [match[1] or match[2]])
        for number, line in enumerate(lines, 1)
        if number not in inside
        for match in _IN_TEXT.finditer(line[:_LONGEST])
    ]
    return _all(path, blocks, own)


def read_recipes(folder: ProjectFolder, path: str, own: frozenset[str] = frozenset()) -> JobFile | None:
    """The command lines of the recipes of a Makefile or a justfile, those with variables of make's own left out."""
    blocks: list[tuple[int, list[str]]] = []
    goes_on = False
    for number, line in enumerate(folder.text(path).split("\n")[:MOST_LINES], 1):
        text = line.strip()
        if goes_on:
            blocks[-1][1].append(text)
        elif line[:1] in ("\t", " ") and text.lstrip("@-+"):
            blocks.append((number, [text.lstrip("@-+")]))
        else:
            continue
        goes_on = text.endswith("\\")
    # What a target writes into an archive, over many lines, is one command of tar.
    plain = [each for each in blocks if not re.search(r"\$[(@<^?*%{]|\{\{", "\n".join(each[1]))]
    blocks = [(number, [text.replace("$$", "$") for text in texts]) for number, texts in plain]
    return _all(path, blocks, own)


def _all(path: str, blocks: list[tuple[int, list[str]]], own: frozenset[str]) -> JobFile | None:
    found = JobFile(path, "", Position(path, 1, 1))
    for number, block in blocks:
        text = _STANDS.sub(r"\1'\2'", _OPTIONAL.sub("", "\n".join(_joined(_without_prompts(block)))))
        shown = script_of(text, JobFile(path, "", found.where), number, own=own)
        found = replace(found, launched=found.launched + shown.launched, scripts=found.scripts + shown.scripts)
    return found if found.launched or found.scripts else None


def _without_prompts(block: list[str]) -> list[str]:
    """The lines behind prompts where there are prompts, since the others are what the commands print; else all."""
    prompted = [_PROMPT.match(line) for line in block]
    if not any(prompted):
        return block
    result, goes_on = [], False
    for line, match in zip(block, prompted, strict=True):
        text = line[match.end() :] if match else line if goes_on else ""
        goes_on = text.endswith("\\")
        result.append(text)
    return result


def _joined(block: list[str]) -> list[str]:
    """The lines with those of options as part of the command before, also behind comments, as people read them."""
    result: list[str] = []
    last = -1
    for line in block:
        said = line.strip()
        if last >= 0 and _OPTION.match(said):
            result[last:] = [f"{_COMMENT.sub('', result[last]).rstrip(chr(92))} \\", *["\\"] * (len(result) - last - 1)]
            line = _COMMENT.sub("", line)
        elif last >= 0 and said.startswith("#") and result[last].endswith("\\"):
            line = "\\"
        result.append(line)
        last = len(result) - 1 if said and not line.lstrip().startswith("#") else last
    if last >= 0:
        result[last] = result[last].rstrip("\\")
    return result


def _fenced(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    fence, start, shell = "", 0, False
    block: list[str] = []
    for number, line in enumerate(lines, 1):
        match = _FENCE.match(line)
        if not fence and match:
            fence, block, start, shell = match[1], [], number + 1, match[2].lower() in _SHELLS
        elif fence and match and match[1].startswith(fence) and not match[2]:
            if shell:
                yield start, block
            fence = ""
        elif fence:
            block.append(line)
        elif match := _ALONE.fullmatch(line):
            yield number, [match[1]]


def _indented(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    block: list[str] = []
    start, inside = 0, False
    for number, line in enumerate([*lines, "end"], 1):
        if inside and (not line.strip() or line[:1] in (" ", "\t")):
            block.append("" if re.fullmatch(r"\s+:\w+:.*", line) else line)
            continue
        if inside and block:
            yield start, block
        match = _RST.match(line)
        inside, block, start = match is not None and (match[1] or "").lower() in _SHELLS, [], number + 1
