"""What a shell reads of the files that hpcgen writes, each as a script of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

SECTIONS = ("post", "environment", "test", "runscript")
JOBS = ("job.slurm", "job.pbs", "job.sge", "job.flux", "run.sh", "build.sh", "selftest.sh", "preflight.sh")
EMBEDDED = re.compile(r"<< '(HPCGEN_DOCKERFILE\w*)'\n(.*?)\n\1\n", re.DOTALL)
EXPRESSION = re.compile(r"\$\{\{.*?\}\}")


def shell_texts(files: Mapping[str, str]) -> Iterator[str]:
    """The scripts in files by their names."""
    for name, text in files.items():
        if name.startswith("job.") or name in JOBS or name.endswith(".sh"):
            yield text
            for _, dockerfile in EMBEDDED.findall(text):
                yield from _runs(dockerfile)
        elif name == "Dockerfile":
            yield from _runs(text)
        elif name == "Singularity.def":
            yield from _sections(text)
        elif name.endswith(".yml"):
            yield from (EXPRESSION.sub("x", each) for each in _steps(yaml.safe_load(text)))


def _runs(text: str) -> Iterator[str]:
    """What RUN gives to ``sh -c``: one script of all, with a line for each command that ``&&`` joins.

    So that what follows a command that fails here is reached too.
    """
    lines = []
    for instruction in re.sub(r"\\\n(?:#.*\n)*", "\\\n", text).replace("\\\n", "\0").split("\n"):
        if instruction.startswith("RUN "):
            words = re.sub(r"--mount=\S+\s*\0?\s*", "", instruction.removeprefix("RUN "))
            lines.append(re.sub(r" && \0\s*", "\n", words).replace("\0", "\\\n"))
    if lines:
        yield "\n".join(lines)


def _sections(text: str) -> Iterator[str]:
    for part in re.split(r"^%", text, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        if head.split()[:1] and head.split()[0] in SECTIONS:
            yield body


def _steps(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        for key, value in data.items():
            if key in ("run", "script", "before_script", "after_script"):
                yield (
                    "\n".join(value)
                    if isinstance(value, list) and all(isinstance(v, str) for v in value)
                    else str(value)
                )
            else:
                yield from _steps(value)
    elif isinstance(data, list):
        for each in data:
            yield from _steps(each)
