"""A Dockerfile or definition file of the user's: who builds it, where the image goes, and what is neither."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hpcgen.backends.engines.steps import dockerfile_instructions, dockerfile_steps
from tests.conftest import Command

OWN = """\
# what is built
from debian:12 AS first
RUN echo one \\
  # and
two \\
  && echo three
FROM --platform=linux/amd64 debian:12
COPY --from=first \\
  /one /two
RUN cat << END
FROM nowhere
END
CMD ["true"]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a Dockerfile, in whose folder the test is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Dockerfile").write_text("FROM debian:12\nRUN true\n")
    return tmp_path


def programs(monkeypatch: pytest.MonkeyPatch, folder: Path, *names: str) -> None:
    """Programs of these names that do nothing, and no others."""
    place = folder / "-".join(["programs", *names])
    place.mkdir()
    for name in names:
        (place / name).write_text("#!/bin/true\n")
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(place))


def test_every_instruction_is_found_as_dockerfiles_have_it() -> None:
    found = [(line, keyword) for line, keyword, _ in dockerfile_instructions(OWN)]
    assert found == [(2, "FROM"), (3, "RUN"), (7, "FROM"), (8, "COPY"), (10, "RUN"), (13, "CMD")]
    recipe = dockerfile_steps(OWN, [])
    assert recipe.instructions == [2, 4]
    assert [step.image for step in recipe.steps if step.keyword == "FROM"] == ["debian:12", "debian:12"]


@pytest.mark.parametrize(
    ("site", "here", "output", "shown"),
    [
        ("workstation", ["podman"], None, r"^podman build .* -f BUILD/own.Dockerfile .*\npodman tag \S+ \S+:workst"),
        ("supermuc", ["podman"], "localhost/x:1", r"^podman build .*\npodman tag \S+ localhost/x:1$"),
        ("workstation", ["ch-image", "ch-convert"], "x", r"ch-image build --force .*own.Dockerfile /.*\n.*-o dir "),
        ("supermuc", ["podman", "skopeo", "tar", "mksquashfs"], "x.sqfs", r"^hpcgen convert .* podman:\S+ \S+/x.sqfs"),
        ("lumi-g", ["podman", "apptainer", "skopeo"], None, r"^podman build .*\nhpcgen convert .* podman:\S+ \S+.sif"),
    ],
)  # fmt: skip
def test_the_engine_that_is_there_builds_and_the_image_is_as_the_site_starts_it(
    site: str,
    here: list[str],
    output: str | None,
    shown: str,
    own: Path,
    hpcgen: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    programs(monkeypatch, own, *here)
    words = ["build", "--dockerfile", "Dockerfile", "--site", site, "--dry-run"]
    done = hpcgen(*words, *(["-o", output] if output else []))
    assert done.returncode == 0, done.stderr
    assert re.search(shown, done.stdout, re.MULTILINE), done.stdout


DEFINITION = "Bootstrap: docker\nFrom: debian:12\n\n%post\n    true\n"


@pytest.mark.parametrize(
    ("site", "here", "output", "shown"),
    [
        ("lumi-g", ["apptainer", "podman"], None, r"apptainer build .*\.sif BUILD/own.def\)\nmv \S+ \S+\.sif$"),
        (
            "supermuc",
            ["apptainer", "mksquashfs", "unsquashfs"],
            "x.sqfs",
            r"\nmv \S+ (\S+)\nhpcgen convert --force \1 \S+/x.sqfs\nrm -f \1$",
        ),
    ],
)
def test_a_definition_file_is_built_by_apptainer_and_becomes_what_the_site_starts(
    site: str,
    here: list[str],
    output: str | None,
    shown: str,
    own: Path,
    hpcgen: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (own / "own.def").write_text(DEFINITION)
    programs(monkeypatch, own, *here)
    words = ["build", "--dockerfile", "own.def", "--site", site, "--dry-run"]
    done = hpcgen(*words, *(["-o", output] if output else []))
    assert done.returncode == 0, done.stderr
    assert re.search(shown, done.stdout, re.MULTILINE), done.stdout


def test_what_a_definition_file_would_do_on_this_machine_is_refused(
    own: Path, hpcgen: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own / "own.def").write_text(f"{DEFINITION}\n%setup\n    touch /etc/owned\n")
    programs(monkeypatch, own, "apptainer", "podman")
    done = hpcgen("build", "--dockerfile", "own.def", "--site", "lumi-g")
    assert done.returncode == 3 and "own.def:7: apptainer does not build this: the section runs on this" in done.stderr
    assert "remedy: do it in %post" in done.stderr


def test_a_definition_file_needs_apptainer_and_a_site_that_starts_files(
    own: Path, hpcgen: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own / "own.def").write_text(DEFINITION)
    programs(monkeypatch, own, "podman")
    done = hpcgen("build", "--dockerfile", "own.def", "--site", "lumi-g")
    assert done.returncode == 69 and "is needed to build a definition file" in done.stderr
    assert re.search(r"`apptainer build \S+\.sif own\.def`; bring \S+\.sif here as \S+\.sif", done.stderr)
    programs(monkeypatch, own, "apptainer")
    done = hpcgen("build", "--dockerfile", "own.def", "--site", "workstation")
    assert done.returncode == 3 and "a definition file becomes a file, and " in done.stderr


def test_without_a_builder_it_is_said_what_to_run_where(
    own: Path, hpcgen: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs(monkeypatch, own)
    done = hpcgen("build", "--dockerfile", "Dockerfile", "--site", "lumi-g")
    assert done.returncode == 69
    assert "podman build -f Dockerfile -t" in done.stderr and "podman save --format oci-archive" in done.stderr
    assert re.search(r"hpcgen convert oci-archive:\S+\.oci \S+\.sif", done.stderr)


def test_what_ch_image_cannot_build_is_left_to_another_or_refused(
    own: Path, hpcgen: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own / "Dockerfile").write_text("FROM debian:12\nADD x /x\nRUN --mount=type=cache,target=/c true\n")
    words = ["build", "--dockerfile", "Dockerfile", "--site", "supermuc", "--dry-run", "-o", "x"]
    programs(monkeypatch, own, "ch-image", "ch-convert")
    done = hpcgen(*words)
    assert done.returncode == 3 and "Dockerfile:2: ch-image does not build this: ADD is ignored" in done.stderr
    assert "Dockerfile:3: ch-image does not build this: RUN --mount fails" in done.stderr
    programs(monkeypatch, own, "ch-image", "ch-convert", "podman")
    assert "podman build" in hpcgen(*words[:-2], "-o", "podman:x").stdout


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "cannot be read: No such file"),
        (lambda path: path.mkdir(), "it is a folder"),
        (lambda path: os.mkfifo(path), "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (lambda path: path.write_bytes(b"FROM x\n" + b"#" * (1 << 21)), "more than 1048576 bytes"),
        (lambda path: path.write_bytes(b"FROM \xff"), "not text in UTF-8"),
        (lambda path: path.write_text("RUN true\n"), "has no FROM"),
    ],
)
def test_what_is_no_dockerfile_is_refused(make: object, said: str, own: Path, hpcgen: Command) -> None:
    make(own / "wrong")  # type: ignore[operator]
    done = hpcgen("build", "--dockerfile", "wrong", "--context", ".", "--site", "workstation", "--dry-run")
    assert done.returncode == 3 and said in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--context", "."], "--context requires --dockerfile"),
        (["--dockerfile", "Dockerfile", "--context", "none", "--site", "workstation"], "none is not a folder"),
        (["--dockerfile", "Dockerfile", "--site", "workstation", "--set", "x.y=z"], "--set: --dockerfile takes"),
        (["--dockerfile", "Dockerfile", "--site", "workstation", "--stack", "pi"], "--stack: --dockerfile takes"),
        (["--dockerfile", "Dockerfile", "--site", "workstation", "--engine", "apptainer"], "reads no Dockerfiles"),
        (["--dockerfile", "Dockerfile", "--site", "workstation", "-o", "a\nb"], "a line break"),
        (["--dockerfile", "Dockerfile"], "--site is missing"),
    ],
)  # fmt: skip
def test_options_that_do_not_suit_are_told(words: list[str], said: str, own: Path, hpcgen: Command) -> None:
    done = hpcgen("build", *words)
    assert done.returncode in (2, 3) and said in done.stderr, done.stderr
