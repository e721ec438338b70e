"""What a person reads when a build failed: the right cause for what engines really print, and none for a good build.

failing_builds.yaml has the output of builds that failed on purpose, good_builds.txt every kind of line that good builds
of mpi-hello, tf-horovod and a block of one command printed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hpcgen.builders.remedies import explain, failing_step, failing_words, find, remedies
from hpcgen.core.model.site import Site

HERE = Path(__file__).parent
SEEN: list[dict[str, Any]] = yaml.safe_load((HERE / "failing_builds.yaml").read_text(encoding="utf-8"))
GOOD = (HERE / "good_builds.txt").read_text(encoding="utf-8").splitlines()
ENGINES = ("buildah", "podman", "docker", "apptainer", "singularity", "ch-image")


def title(seen: dict[str, Any]) -> str:
    return f"{seen['cause']}-{seen['engine']}"


@pytest.mark.parametrize("seen", SEEN, ids=title)
def test_what_engines_print_has_its_cause(seen: dict[str, Any]) -> None:
    lines = seen["lines"].splitlines()
    found = find(lines, seen["engine"])
    assert found is not None
    assert found[0].name == seen["cause"]
    cause, remedy = found[0].text(seen["engine"], found[1])
    for word in seen["says"]:
        assert word in cause + remedy


@pytest.mark.parametrize("seen", SEEN, ids=title)
def test_what_earlier_steps_printed_does_not_matter(seen: dict[str, Any]) -> None:
    """A good build's whole output, then the step that failed: the same cause."""
    lines = seen["lines"].splitlines()
    first = {"apptainer": "INFO:    Starting build...", "singularity": "INFO:    Starting build..."}
    whole = [*GOOD, first.get(seen["engine"], "STEP 1/2: FROM debian:12"), *lines]
    assert explain(whole, seen["engine"]) == explain(lines, seen["engine"])


def test_a_good_build_has_no_remedy() -> None:
    """Not one line of it, whatever the engine: so none can fire beside another failure."""
    for engine in ENGINES:
        for line in GOOD:
            assert explain([line], engine) is None, (engine, line)


def test_no_pattern_fits_a_command_of_a_recipe() -> None:
    """Engines repeat the commands; those of a recipe that speak of hashes, certificates and proxies are not errors."""
    repeated = [
        '[1/2] STEP 9/12: RUN echo "No space left on device" && sha256sum -c --quiet /opt/hpcgen/build/x.sha256',
        "+ echo 'curl: (6) Could not resolve host: example.org'",
        " 34. RUN.F echo '407 Proxy Authentication Required'",
        "#9 [builder 5/9] RUN echo 'x509: certificate signed by unknown authority'",
        'Error: building at STEP "RUN echo Cannot allocate memory": exit status 1',
    ]
    for line in repeated:
        assert explain([line], "buildah") is None, line


def test_an_earlier_steps_complaint_is_not_the_cause() -> None:
    """A download that went well at the second try, and then a program that is missing."""
    lines = [
        "STEP 3/5: RUN python3 -m pip install six",
        "WARNING: Retrying after connection broken by 'NewConnectionError: Failed to establish a new connection: "
        "[Errno 111] Connection refused'",
        "STEP 4/5: RUN frobnicate",
        "/bin/sh: 1: frobnicate: not found",
        'Error: building at STEP "RUN frobnicate": exit status 127',
    ]
    found = find(lines, "podman")
    assert found is not None
    assert found[0].name == "program not found"


@pytest.mark.parametrize(
    ("status", "name"), [(-9, "engine killed"), (137, "engine killed"), (-15, "engine ended"), (-11, "engine crashed")]
)
def test_an_engine_that_a_signal_ended(status: int, name: str) -> None:
    """No line says it; the status does. What the lines say goes before, if memory ran out in a step."""
    found = find(["STEP 2/3: RUN make"], "buildah", status)
    assert found is not None
    assert found[0].name == name
    assert "buildah" in found[0].text("buildah", found[1])[0]
    memory = find(["STEP 2/3: RUN make", "Killed"], "buildah", status)
    assert memory is not None
    assert memory[0].name == "out of memory"


@pytest.mark.parametrize("status", [1, 2, 100, 125, 255])
def test_an_ordinary_status_says_nothing(status: int) -> None:
    assert explain(["STEP 2/3: RUN make"], "buildah", status) is None


def test_the_remedy_is_the_engines_own() -> None:
    full = ["write /home/user/x: no space left on device"]
    said = {engine: (explain(full, engine) or ("", ""))[1] for engine in ENGINES}
    assert "APPTAINER_TMPDIR" in said["apptainer"]
    assert "SINGULARITY_TMPDIR" in said["singularity"]
    assert "CH_IMAGE_STORAGE" in said["ch-image"]
    assert "storage.conf" in said["podman"]
    assert "docker builder prune" in said["docker"]


def test_the_block_the_image_and_the_site_are_named_where_they_are_known() -> None:
    changed = ["a.tar.gz: FAILED", "sha256sum: WARNING: 1 computed checksum did NOT match"]
    about = {"block": "openmpi", "built": "hello.sif", "site": "lumi-g"}
    assert "`hpcgen show block openmpi`" in (explain(changed, "buildah", 1, about) or ("", ""))[1]
    assert "`hpcgen show block NAME`" in (explain(changed, "buildah", 1) or ("", ""))[1]
    failed = ["FATAL: failed to execute %test script"]
    assert "`hpcgen test hello.sif --site lumi-g`" in (explain(failed, "apptainer", 1, about) or ("", ""))[1]


def test_a_second_mpi_is_named_with_the_program_that_loads_it() -> None:
    lines = [
        "FAILED   mpich 5.0.2: one MPI: /usr/bin/abinit loads /usr/lib/libmpi.so.40.30.4, a second MPI",
        "6 passed, 1 failed, 0 skipped",
    ]
    cause, remedy = explain(lines, "podman", 1) or ("", "")
    assert "/usr/bin/abinit" in cause and "/usr/lib/libmpi.so.40.30.4" in cause and "hpcgen lock" in remedy


def test_a_pattern_of_one_engine_alone_is_not_used_for_others() -> None:
    line = ["/bin/sh: 0: Illegal option --"]
    assert explain(line, "ch-image") is not None
    assert explain(line, "buildah") is None


@given(st.lists(st.text(max_size=80), max_size=30), st.sampled_from(ENGINES), st.integers(-64, 255) | st.none())
def test_any_output_is_answered(lines: list[str], engine: str, status: int | None) -> None:
    """Whatever an engine prints, there is an answer or none, and never an error."""
    found = explain(lines, engine, status)
    assert found is None or all(found)


def test_each_cause_can_be_told() -> None:
    """Every placeholder has something to fill it, every name stands once, every remedy has words for all engines."""
    names = [remedy.name for remedy in remedies()]
    assert len(set(names)) == len(names)
    for remedy in remedies():
        assert remedy.patterns or remedy.statuses
        for engine in remedy.engines or ENGINES:
            cause, words = remedy.text(engine, {})
            assert cause
            assert words
            assert "{" not in (cause + words).replace("{{.", "")
        for pattern in [*remedy.patterns, *remedy.details]:
            re.compile(pattern)


def test_the_profiles_fields_that_remedies_name_exist() -> None:
    """``network.mirrors.apt`` in a remedy is a field of a profile, by its path."""
    import msgspec

    schema = msgspec.json.schema(Site)
    kinds = schema["$defs"]

    def fields(reference: Any) -> dict[str, Any]:
        text = str(reference)
        found = re.search(r"#/\$defs/(\w+)", text)
        return dict(kinds[found[1]].get("properties", {})) if found else {}

    known = set()
    for top in ("network", "containers"):
        for name, kind in fields(kinds["Site"]["properties"][top]).items():
            known.add(f"{top}.{name}")
            known |= {f"{top}.{name}.{below}" for below in fields(kind)}
    said = set(
        re.findall(
            r"\b((?:network|containers)\.[a-z_]+(?:\.[a-z_]+)?)",
            " ".join(words for remedy in remedies() for words in (remedy.cause, *remedy.remedy.values())),
        )
    )
    assert said
    # What follows containers.engines is an engine's name.
    assert {path for path in said if not path.startswith("containers.engines")} <= known


def test_only_the_failing_steps_own_words_are_left() -> None:
    lines = ["STEP 1/2: FROM x", "old", "STEP 2/2: RUN make", "+ make", "\x1b[31mnew\x1b[0m"]
    assert failing_words(lines) == ["new"]


def test_the_last_lines_that_are_shown_are_those_of_the_failing_step() -> None:
    """With its commands, which say where it was; an earlier step's lines would only mislead."""
    lines = ["hpcgen: step 1 of 2: a 1: fetch", "old", "hpcgen: step 2 of 2: b 1: make", "+ make", "new"]
    assert failing_step(lines) == lines[2:]
    assert failing_step(["#5 1.2 x", "ERROR"]) == ["#5 1.2 x", "ERROR"]
    assert failing_step([]) == []
