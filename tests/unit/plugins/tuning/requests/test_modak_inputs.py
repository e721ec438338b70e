"""The published requests of MODAK: each becomes a request, or is refused with the reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.requests.reading import ReadRequest, read_request, request_from

FOLDER = Path(__file__).parent / "modak"

MNIST = (
    "example",
    "ai_training tensorflow ==2.1.* use xla",
    "autotuning.tuner autotuning.input data.size etl.cache",
)
SNOW = "core_count standard_error_file"
TUNER = "autotuning.tuner autotuning.input"
TARGET = "job.target"
FRAGMENT = (
    "listing",
    "hpc mpich ==3.2.*",
    f"braces {TUNER} data.size etl.prefetch core_subscription message_size",
)
READ = {
    "examples/tf_optimisation_dsl": MNIST,
    "examples/aitraining/tf_optimisation_dsl": MNIST,
    "examples/aitraining/tf_resnet": ("released", "ai_training tensorflow ==2.1.* use xla", TARGET),
    "examples/aitraining/tf_snow": (
        "released",
        "ai_training tensorflow ==2.1.* use xla",
        f"{SNOW} {TUNER} {TARGET}",
    ),
    "examples/mpi/mpi_solver": (
        "released",
        "hpc mpich ==3.1.4.*",
        f"core_count standard_error_file {TUNER} {TARGET}",
    ),
    "examples/mpi/mpi_test": (
        "released",
        "hpc mpich ==3.1.4.*",
        f"core_count standard_error_file {TARGET}",
    ),
    "examples/mpi/mpi_test_cirrus": ("example", "hpc openmpi ==3.1.3.*", "standard_error_file"),
    "examples/mpi/mpi_test_daint": ("example", "hpc openmpi ==3.1.3.*", "standard_error_file"),
    "examples/mpi/mpi_test_egi": ("released", "hpc openmpi ==1.10.*", "standard_error_file"),
    "test/get_optimisation_non_existent": (
        "released",
        "python",
        "core_count standard_error_file",
    ),
    "test/mpi_solver": (
        "released",
        "hpc mpich ==3.1.4.*",
        f"core_count standard_error_file {TUNER} {TARGET} acc_type",
    ),
    "test/mpi_test": ("released", "hpc mpich ==3.1.4.*", "core_count standard_error_file acc_type"),
    "test/mpi_test_egi": (
        "released",
        "hpc openmpi ==3.1.3.*",
        "standard_error_file process_count_per_node acc_type",
    ),
    "test/tf_resnet": ("released", "ai_training tensorflow ==2.1.* use xla", ""),
    "test/tf_snow": (
        "released",
        "ai_training tensorflow ==2.1.* use xla",
        f"{SNOW} {TUNER} {TARGET}",
    ),
    "examples/solver_optimisation_dsl": FRAGMENT,
    "examples/mpi/solver_optimisation_dsl": FRAGMENT,
}
REFUSED = {
    "examples/optimisation_dsl": ("5:16: `app_type` cannot be", "7:19: `cpu_type` cannot be", "8:19: `acc_type`"),
    "examples/job_data": (
        "17:31: `standard_output_file` must be a file's path",
        "24:37: `request_event_notification`: 'events' is not a notification",
        "25:24: `email_address` must be an e-mail address",
        "39:16: `src` must be an https:// address",
        "50:21: `cpu_type` cannot be 'x86/arm/amd/power'",
        "51:21: `acc_type` cannot be",
        "58:18: `app_type` cannot be",
    ),
    "examples/map_container": ("3:3: this is the entry of an image in MODAK's database",),
}


def in_short(got: ReadRequest) -> str:
    request = got.request
    use = f"use {request.compilers.use}" if request.compilers.use else ""
    words = (request.kind, request.framework, request.version, request.mpi.library, request.mpi.version, use)
    return " ".join(each for each in words if each)


def test_all_of_them_are_here() -> None:
    names = {str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.json")}
    assert names == {*READ, *REFUSED}
    assert len(names) == 20


@pytest.mark.parametrize("name", READ)
def test_a_request_is_read_and_says_what_is_not_honoured(name: str) -> None:
    got = read_request(FOLDER / f"{name}.json")
    form, short, lost = READ[name]
    assert (got.dialect, in_short(got)) == (form, short)
    told = [each.message.partition(":")[0] for each in got.findings]
    assert [each.endswith(end) for each, end in zip(told, lost.split(), strict=True)] == [True] * len(told), told


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_request_is_refused_with_the_reasons(name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_request(FOLDER / f"{name}.json")
    for said in REFUSED[name]:
        assert said in str(caught.value)


@pytest.mark.parametrize("name", [name for name, expected in READ.items() if expected is not FRAGMENT])
def test_nothing_is_passed_over(name: str) -> None:
    """Another word in any place is noticed, but for words that are free text or not honoured."""
    text = (FOLDER / f"{name}.json").read_text("utf-8")
    lost = " ".join(each.message.partition(":")[0] for each in read_request(FOLDER / f"{name}.json").findings)
    before = request_from(loads(text, name)).request
    for path in leaves(json.loads(text)):
        changed = json.loads(text)
        node: Any = changed
        for step in path[:-1]:
            node = node[step]
        if node[path[-1]] in ("", {}) or path[-1] in lost:
            continue
        node[path[-1]] = "other"
        try:
            after = request_from(loads(json.dumps(changed), name)).request
        except InputError:
            continue
        assert after != before, path


def leaves(data: Any, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(data, dict):
        return [above]
    return [each for key, value in data.items() for each in leaves(value, (*above, key))]


def test_a_job_of_the_tool_becomes_limits_a_program_and_a_job() -> None:
    request = read_request(FOLDER / "examples/mpi/mpi_test_daint.json").request
    limits, job = request.limits, request.job
    assert (limits.nodes, limits.ranks, limits.ranks_per_node, limits.threads) == (2, 24, 12, 2)
    assert (limits.walltime, request.site, request.partition) == ("01:00:00", "daint", "mc")
    assert (job.name, job.queue, job.output, job.error) == ("mpi_test_daint", "normal", "mpi_test.out", None)
    assert (job.email, job.notify) == ("user@example.org", ["begin", "end", "fail", "requeue"])
    assert request.run.command == ["./xthi"] and request.run.mpi is True
    assert request.build is not None and request.build.text == "mpicc -o xthi -fopenmp Xthi.c"


def test_a_part_of_a_file_is_read_as_if_it_had_its_braces() -> None:
    got = read_request(FOLDER / "examples/solver_optimisation_dsl.json")
    assert (got.request.limits.efficiency, got.request.run.mpi) == (0.75, True)
    assert got.request.hardware.architecture == "aarch64"
    lost = " ".join(each.message for each in got.findings)
    for name in ("core_subscription", "message_size", "etl.prefetch", "data.size", "autotuning.input"):
        assert f"{name}: " in lost
    assert "only a part of a JSON file" in lost
