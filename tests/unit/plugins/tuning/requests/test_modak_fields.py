"""MODAK's fields one by one, and what was wrong with them in the released tool."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.requests.modak_fields import Row, expanded, rows
from hpcgen.plugins.tuning.requests.reading import ReadRequest, request_from

LISTING = {
    "optimisation": {
        "enable_opt_build": True,
        "app_type": "ai_training",
        "opt_build": {"cpu_type": "x86", "acc_type": "Nvidia"},
        "ai_training": {"tensorflow": {"version": "1.1", "xla": True}},
    }
}


def read(data: Any) -> ReadRequest:
    return request_from(loads(json.dumps(data, indent=1), "request.json"))


def refused(data: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(data)
    return str(caught.value)


def job(**options: Any) -> ReadRequest:
    return read({"job": {"job_options": options, "application": {"app_type": "hpc", "executable": "./a"}}})


def application(**fields: Any) -> ReadRequest:
    return read({"job": {"application": {"app_type": "hpc", "executable": "./a", **fields}}})


def training(framework: str, **section: Any) -> dict[str, Any]:
    inside = {"config": {"ai_framework": framework}, f"ai_framework-{framework}": section}
    return {"optimisation": {"enable_opt_build": True, "app_type": "ai_training", "app_type-ai_training": inside}}


def told(got: ReadRequest) -> str:
    return "\n".join(f"{each.message} ({each.remedy})" for each in got.findings)


def test_the_listing_of_the_paper_is_read() -> None:
    got = read(LISTING)
    request = got.request
    assert (got.dialect, request.kind, request.framework, request.version) == (
        "listing",
        "ai_training",
        "tensorflow",
        "==1.1.*",
    )
    assert (request.compilers.use, request.install) == ("xla", [])
    assert (request.hardware.architecture, request.hardware.accelerator) == ("x86_64", "nvidia")
    assert got.where(("version",)).line == got.where(("compilers", "use")).line - 1 == 11


@pytest.mark.parametrize("framework", ["pytorch", "keras", "cntk", "mxnet", "tensorflow"])
def test_the_section_of_every_framework_is_valid(framework: str) -> None:
    request = read(training(framework, version="1.5")).request
    assert (request.framework, request.version) == (framework, "==1.5.*")


def test_a_framework_needs_no_section() -> None:
    data = training("pytorch", version="1.5")
    del data["optimisation"]["app_type-ai_training"]["ai_framework-pytorch"]
    assert read(data).request.framework == "pytorch"


def test_compilers_are_used_or_ruled_out_as_the_section_says() -> None:
    assert read(training("pytorch", version="1.5", glow=True)).request.compilers.use == "glow"
    assert read(training("tensorflow", version="2.1", xla=False)).request.compilers.without == ["xla"]
    assert "`xla` must be true or false" in refused(training("tensorflow", version="2.1", xla="on"))
    assert "`xla` is not known in `ai_framework-pytorch`" in refused(training("pytorch", version="1.5", xla=True))


def test_a_number_may_be_a_version_and_keras_has_a_backend() -> None:
    request = read(training("keras", version=2.3, backend="TensorFlow")).request
    assert (request.version, request.backend) == ("==2.3.*", "tensorflow")


def test_sections_that_are_not_chosen_are_named() -> None:
    data = training("pytorch", version="1.5")
    data["optimisation"]["app_type-ai_training"]["ai_framework-tensorflow"] = {"version": "2.1", "xla": True}
    data["optimisation"]["app_type-hpc"] = {"config": {"parallelisation": "mpi"}}
    got = read(data)
    assert (got.request.version, got.request.compilers.use) == ("==1.5.*", None)
    assert "ai_framework-tensorflow: `ai_framework` is pytorch" in told(got)
    assert "app_type-hpc: `app_type` is ai_training" in told(got)


def test_two_frameworks_of_the_listing_contradict_each_other() -> None:
    data = json.loads(json.dumps(LISTING))
    data["optimisation"]["ai_training"]["pytorch"] = {"version": "1.1"}
    assert "`pytorch` contradicts `tensorflow` in line 10" in refused(data)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("36:00:00", "36:00:00"),
        ("12:00:00 ", "12:00:00"),
        ("1 day, 12:00:00", "36:00:00"),
        ("2 days, 0:00:01", "48:00:01"),
        ("1 12:00:00", "36:00:00"),
        ("P1DT12H", "36:00:00"),
        ("PT90M", "01:30:00"),
        ("PT1H30M15.000S", "01:30:15"),
        (129600, "36:00:00"),
    ],
)
def test_thirty_six_hours_stay_thirty_six_hours(written: str | int, kept: str) -> None:
    got = job(wall_time_limit=written)
    assert got.request.limits.walltime == kept
    assert "wall_time_limit" not in told(got)


def test_what_is_no_time_is_refused_and_a_short_one_explained() -> None:
    for wrong in ("12h30", "0:00:00", "P", "-1 day, 1:00:00", "1:99:00", "1:00:00\\n#PBS -q x"):
        with pytest.raises(InputError, match="is not a time limit"):
            job(wall_time_limit=wrong)
    assert "01:30 is read as 00:01:30 (hours:minutes:seconds)" in told(job(wall_time_limit="01:30"))


@pytest.mark.parametrize("name", ["a/b", "../x", "a\nb", "a b", "-x", "$(id)", "{{ 7 }}", ""])
def test_a_job_that_could_be_no_file_name_is_refused(name: str) -> None:
    if not name:
        assert job(job_name=name).request.job.name is None
        return
    with pytest.raises(InputError, match="`job_name` must be at most 64 letters"):
        job(job_name=name)


def test_an_error_file_is_an_error_file() -> None:
    files = {"standard_output_file": "a.out", "standard_error_file": "a.err"}
    assert job(**files).request.job.error == "a.err"
    assert job(**files, combine_stdout_stderr=False).request.job.error == "a.err"
    joined = job(**files, combine_stdout_stderr=True)
    assert joined.request.job.error is None
    assert "`combine_stdout_stderr` sends errors to the output file" in told(joined)


def test_nothing_of_a_text_is_rendered_or_run() -> None:
    hostile = "{{ 7 * 7 }} {% raw %} $(id) `id` ${HOME}"
    got = application(arguments=hostile, build={"src": "https://example.org/a.git", "build_command": f"make {hostile}"})
    assert got.request.run.arguments == ["{{", "7", "*", "7", "}}", "{%", "raw", "%}", "$(id)", "`id`", "${HOME}"]
    assert got.request.build is not None and got.request.build.text == f"make {hostile}"
    assert "job.application.arguments: hpcgen starts programs without a shell, so $( and ` and ${HOME} stay" in told(
        got
    )


def test_the_number_of_build_jobs_is_put_in() -> None:
    build = {"src": "https://example.org/a.tar.gz", "build_command": "make -j {{BUILD_PARALLELISM}} {{X}}\n"}
    got = application(build={**build, "build_parallelism": 8})
    assert got.request.build is not None and got.request.build.text == "make -j 8 {{X}}"
    assert "`build_command` is missing in `build`" in refused(
        {"job": {"application": {"executable": "a", "build": {"src": "https://example.org/a"}}}}
    )


def test_quotes_keep_words_together() -> None:
    assert application(arguments="-n 'a b' \\\n --x=\"c d\"").request.run.arguments == ["-n", "a b", "--x=c d"]
    with pytest.raises(InputError, match="`arguments` is not a command line: no closing quotation"):
        application(arguments="'a")


@pytest.mark.parametrize("share", [0, -0.5, 1.01, "all"])
def test_an_efficiency_is_more_than_0_and_at_most_1(share: object) -> None:
    with pytest.raises(InputError, match="`minimal_efficiency` must be a number more than 0 and at most 1"):
        application(minimal_efficiency=share)


def test_the_whole_efficiency_is_one() -> None:
    assert application(minimal_efficiency=1.0).request.limits.efficiency == 1.0


def test_memory_is_counted_as_profiles_count_it() -> None:
    got = job(memory_limit="64GiB", minimum_memory_per_processor="512 MB")
    assert (got.request.limits.memory_gb, got.request.limits.memory_per_rank_gb) == (64.0, 0.476837)
    assert "memory_limit: it is read as 64 GB on each node" in told(got)
    for wrong in ("much", "0 GB", "1 TT"):
        with pytest.raises(InputError, match="is not a size of memory"):
            job(memory_limit=wrong)


def test_data_is_read_as_far_as_it_has_a_meaning() -> None:
    data = training("tensorflow", version="2.1")
    etl = {"prefetch": True, "cache": 0}
    own = {"location": "/d", "count": 5, "etl": etl, "colour": {"of": "blue"}}
    data["optimisation"]["app_type-ai_training"]["data"] = own
    got = read(data)
    found = got.request.workload.data
    assert (found.location, found.samples, found.prefetch, found.cache) == ("/d", 5, None, False)
    for said in (
        "etl.prefetch: the amount of prefetching",
        "etl.cache: 0 has no unit",
        "data.colour: it has no effect",
    ):
        assert said in told(got)


def test_mistakes_are_told_at_their_place_with_the_word_that_is_meant() -> None:
    said = refused(
        {
            "job": {
                "job_options": {"node_cuont": 2, "request_gpus": "two", "process_count_per_node": 0},
                "application": "a.out",
                "optimisation": {"app_type": "hcp", "app_type-hpc": {"parallelisation-mpi": {"library": "mpch"}}},
            },
            "optimization": [],
        }
    )
    assert "request.json:4:4: `node_cuont` is not known in `job_options`\n  remedy: did you mean node_count" in said
    assert "request.json:5:20: `request_gpus` must be a whole number of at least 0, not 'two'" in said
    assert "request.json:6:30: `process_count_per_node` must be a whole number of at least 1" in said
    assert "request.json:8:18: `application` must be a mapping, not 'a.out'" in said
    assert "`app_type` cannot be 'hcp'" in said and "did you mean hpc?" in said


def test_what_two_fields_say_must_agree() -> None:
    assert job(partition="gpu", architecture_constraint="gpu").request.partition == "gpu"
    with pytest.raises(InputError, match="`architecture_constraint` contradicts `partition` in line 4"):
        job(partition="gpu", architecture_constraint="mc")


def test_a_program_without_a_kind_is_started_once() -> None:
    got = read({"job": {"application": {"executable": "./a"}}})
    assert got.request.kind == "python"
    assert "job.application.app_type: not given" in told(got)
    assert "`app_type` is missing in `optimisation`" in refused({"optimisation": {"enable_opt_build": True}})


def test_a_training_names_its_framework() -> None:
    data = training("pytorch", version="1.5")
    del data["optimisation"]["app_type-ai_training"]
    assert "request.json:4:15: `ai_framework` is missing\n  expected: one of tensorflow, pytorch" in refused(data)


def test_openmp_starts_no_ranks() -> None:
    hpc = {"config": {"parallelisation": ["OpenMP"]}, "parallelisation-openmp": {"number_of_threads": 8}}
    wish = {"app_type": "hpc", "app_type-hpc": hpc}
    request = read({"job": {"application": {"app_type": "hpc", "executable": "a"}, "optimisation": wish}}).request
    assert (request.run.mpi, request.limits.threads) == (False, 8)


SAMPLES: dict[str, Any] = {
    "wall_time_limit": "1:00:00",
    "email_address": "user@example.org",
    "request_event_notification": "abe",
    "memory_limit": "1GiB",
    "minimum_memory_per_processor": "1GiB",
    "src": "https://example.org/a",
    "cpu_type": "arm",
    "acc_type": "amd",
    "library": "mpich",
    "ai_framework": "pytorch",
    "backend": "mxnet",
    "app_name": "mpich",
    "parallelisation": "mpi",
    "minimal_efficiency": 0.5,
    "scaling_efficiency": 0.5,
    "job_scheduler_type": "torque",
}
NUMBERS = ("count", "gpus", "ranks", "threads", "parallelism", "layers", "parameters", "_acc", "prefetch", "cache")
SWITCHES = ("enable", "combine", "xla", "glow", "distributed_training", "copy_environment", "node_exclusive")


def sample(row: Row) -> Any:
    name = row.path.rpartition(".")[2].strip("{}").partition("|")[0]
    if name == "app_type":
        return "hpc"
    if name.startswith(SWITCHES) and not name.endswith("variable"):
        return True
    return SAMPLES.get(name, 2 if any(part in name for part in NUMBERS) else "1.5")


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.path.rpartition(".")[2])
def test_no_field_is_passed_over_in_silence(row: Row) -> None:
    """Each says a field of the request, or is a finding; the two that may be left as they are say so in their row."""
    said = row.read(sample(row), {})
    assert said.fields or said.but or row.path.endswith(("enable_opt_build", "combine_stdout_stderr"))
    assert ("not honoured: " in row.means) == (not said.fields and bool(said.but))


def test_no_field_has_two_rows() -> None:
    paths = [steps for row in rows() for steps in expanded(row.path)]
    assert len(paths) == len(set(paths)) > 150
