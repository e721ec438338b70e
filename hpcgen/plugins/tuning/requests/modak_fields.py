"""Every field of MODAK's requests, and what it means here. The table in docs/modak-requests.md is made from these rows.

Fields: the pydantic model (MODAK/MODAK/model), examples/input and test/input of SODALITE-EU/application-optimisation
at 54df6709 (Apache-2.0). Listing 1 of the paper "MODAK" (HPE, 2020), and the fragments of that form in examples/input,
call the sections by their bare names: ``ai_training``, ``tensorflow``, ``mpi``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from hpcgen.plugins.tuning.requests.values import (
    FRAMEWORKS,
    LIBRARIES,
    Reader,
    RequestValue,
    app_name,
    app_version,
    arguments,
    as_it_is,
    cache,
    command,
    copied_variables,
    dependency,
    error_file,
    executable,
    lines,
    lower,
    memory,
    notifications,
    parallelisation,
    prefetch,
    started,
    switch,
    unread,
    wall_time,
    word,
)

Form = Literal["released", "example"]


class Row(msgspec.Struct, frozen=True):
    """One field.

    path: with ``{a|b}`` for several that mean the same; ``*`` at its end takes any name.
    means: for people: hpcgen's field, or that it is not honoured, and why.
    read: its reader.
    form: whether the released tool has it, or only its longer examples.
    """

    path: str
    means: str
    read: Reader
    form: Form = "released"


OPTIONS, PROGRAM, WISH = "job.job_options", "job.application", "optimisation"
AI = f"{WISH}.{{app_type-ai_training|app_type-ai_inference|ai_training|ai_inference}}"
HPC = f"{WISH}.{{app_type-hpc|hpc}}"
FRAMEWORK = f"{{ai_framework-{'|ai_framework-'.join(FRAMEWORKS)}|{'|'.join(FRAMEWORKS)}}}"
MPI, OPENMP = f"{HPC}.{{parallelisation-mpi|mpi}}", f"{HPC}.{{parallelisation-openmp|openmp}}"
DIRECTIVES = f"{HPC}.{{parallelisation-opencc|parallelisation-opencl|opencc|opencl}}"

KINDS = ("ai_training", "ai_inference", "hpc")
PARALLEL = ("mpi", "openmp", "opencc", "opencl")
CHOSEN_BY = {
    **dict.fromkeys(KINDS, "app_type"),
    **dict.fromkeys(FRAMEWORKS, "config.ai_framework"),
    **dict.fromkeys(PARALLEL, "config.parallelisation"),
}
"""Of several sections beside each other one is read: the word at this path, from their parent on, says which."""


def same(path: str, field: str, form: Form = "released") -> Row:
    """A field that means what one of hpcgen's means."""
    return Row(path, f"`{field}`", as_it_is(field), form)


def lost(path: str, why: str, remedy: str = "", form: Form = "released") -> Row:
    """A field that is not honoured."""
    return Row(path, f"not honoured: {why}{f'; {remedy}' if remedy else ''}", unread(why, remedy), form)


_ANSWER = "it is MODAK's answer, not part of a request"
_CPU = {
    "x86": RequestValue({"hardware.architecture": "x86_64"}),
    "arm": RequestValue({"hardware.architecture": "aarch64"}),
    "amd": RequestValue({"hardware.architecture": "x86_64", "hardware.cpu_vendor": "amd"}),
    "power": RequestValue({}, "hpcgen has no images for POWER", "name a machine with x86_64 or aarch64"),
}
_ACCELERATOR = {
    "nvidia": RequestValue({"hardware.accelerator": "nvidia"}),
    "amd": RequestValue({"hardware.accelerator": "amd"}),
    "none": RequestValue({"hardware.accelerator": "none"}),
    "fpga": RequestValue({}, "no building block uses FPGAs", "remove it, or name nvidia or amd"),
}
_KINDS = {kind: RequestValue({"kind": kind}) for kind in KINDS}


def _compiler(name: str, framework: str, form: Form) -> Row:
    use, without = RequestValue({"compilers.use": name}), RequestValue({"compilers.without": [name]})
    section = f"{{ai_framework-{framework}|{framework}}}"
    meaning = f"`compilers.use: {name}` if true, `compilers.without: [{name}]` if false"
    return Row(f"{AI}.{section}.{name}", meaning, switch(use, without), form)


_JOB_OPTIONS = (
    same(f"{OPTIONS}.job_name", "job.name"),
    same(f"{OPTIONS}.queue", "job.queue"),
    same(f"{OPTIONS}.account", "job.account", "example"),
    Row(f"{OPTIONS}.{{partition|architecture_constraint}}", "`partition`: the kind of node", as_it_is("partition")),
    Row(f"{OPTIONS}.wall_time_limit", "`limits.walltime`; hours stay hours: `36:00:00`", wall_time),
    same(f"{OPTIONS}.node_count", "limits.nodes"),
    same(f"{OPTIONS}.process_count_per_node", "limits.ranks_per_node"),
    same(f"{OPTIONS}.core_count_per_process", "limits.threads", "example"),
    same(f"{OPTIONS}.request_gpus", "limits.gpus_per_node"),
    lost(f"{OPTIONS}.core_count", "jobs get whole nodes", "their cores follow from ranks and threads"),
    Row(f"{OPTIONS}.memory_limit", "`limits.memory_gb`", memory("limits.memory_gb", "on each node"), "example"),
    Row(
        f"{OPTIONS}.minimum_memory_per_processor",
        "`limits.memory_per_rank_gb`",
        memory("limits.memory_per_rank_gb", "for each rank"),
        "example",
    ),
    same(f"{OPTIONS}.standard_output_file", "job.output"),
    Row(f"{OPTIONS}.standard_error_file", "`job.error`, unless `combine_stdout_stderr` is true", error_file),
    Row(
        f"{OPTIONS}.combine_stdout_stderr",
        "true: no `job.error`; false: `standard_error_file` is used",
        switch(RequestValue(), RequestValue()),
    ),
    Row(f"{OPTIONS}.request_event_notification", "`job.notify`, from Torque's letters or Slurm's words", notifications),
    same(f"{OPTIONS}.email_address", "job.email"),
    Row(
        f"{OPTIONS}.copy_environment",
        "`job.environment`: all of it",
        switch(RequestValue({"job.environment": True}), RequestValue()),
    ),
    Row(f"{OPTIONS}.copy_environment_variable", "`job.environment`: these variables", copied_variables),
    same(f"{OPTIONS}.request_specific_nodes", "job.nodes"),
    same(f"{OPTIONS}.node_exclusive", "job.exclusive", "example"),
    same(f"{OPTIONS}.qos", "job.qos", "example"),
    same(f"{OPTIONS}.job_array", "job.array", "example"),
    Row(f"{OPTIONS}.job_dependency", "`job.after`", dependency, "example"),
    same(f"{OPTIONS}.defer_job", "job.begin", "example"),
)
_TARGET = (
    same("job.target.name", "site"),
    Row("job.target.job_scheduler_type", "`scheduler`, whatever the profile of the site says", lower("scheduler")),
)
_APPLICATION = (
    same(f"{PROGRAM}.app_tag", "workload.name"),
    Row(f"{PROGRAM}.app_type", "`run.mpi`, and `kind` without `optimisation`", started),
    Row(f"{PROGRAM}.executable", "`run.command`, as words; `${NAME}` is expanded in the image", executable),
    Row(f"{PROGRAM}.arguments", "`run.arguments`, as words; `${NAME}` is expanded in the image", arguments),
    same(f"{PROGRAM}.container_runtime", "container"),
    same(f"{PROGRAM}.mpi_ranks", "limits.ranks"),
    same(f"{PROGRAM}.threads", "limits.threads"),
    same(f"{PROGRAM}.minimal_efficiency", "limits.efficiency"),
    same(f"{PROGRAM}.storage_class_pref", "job.storage"),
    same(f"{PROGRAM}.build.src", "build.src"),
    Row(
        f"{PROGRAM}.build.build_command",
        "`build.build_command`; only `{{BUILD_PARALLELISM}}` is replaced",
        lines("build.build_command"),
    ),
    same(f"{PROGRAM}.build.build_parallelism", "build.parallelism"),
    Row(f"{PROGRAM}.pre-execution", "`job.before`", command("job.before"), "example"),
    Row(f"{PROGRAM}.post-execution", "`job.afterwards`", command("job.afterwards"), "example"),
    lost("job.{job_script|build_script|job_content|build_content}", _ANSWER),
)
_OPTIMISATION = (
    Row(
        f"{WISH}.enable_opt_build",
        "true: every way in `install`, source too; false: `install: [hub, pip]` and `compile: false`",
        switch(RequestValue(), RequestValue({"install": ["hub", "pip"], "compile": False})),
        "released",
    ),
    Row(f"{WISH}.app_type", "`kind`", word(_KINDS), "released"),
    Row(
        f"{WISH}.{{opt_build|arch_build}}.cpu_type",
        "`hardware.architecture`; amd: `hardware.cpu_vendor` too; power is not honoured",
        word(_CPU),
        "released",
    ),
    Row(
        f"{WISH}.{{opt_build|arch_build}}.acc_type",
        "`hardware.accelerator`; fpga is not honoured",
        word(_ACCELERATOR),
        "released",
    ),
    same(f"{WISH}.enable_autotuning", "tune"),
    lost(f"{WISH}.autotuning.tuner", "no tuner is started by its name", "`tune` lets runs try settings out"),
    lost(f"{WISH}.autotuning.input", "no tuner is started by its name", "`tune` lets runs try settings out"),
    Row(f"{WISH}.app_name", "`framework` or `mpi.library`", app_name, "example"),
    Row(f"{WISH}.app_build.version", "`version` or `mpi.version`", app_version, "example"),
)
_TRAINING = (
    Row(f"{AI}.config.ai_framework", "`framework`", lower("framework")),
    same(f"{AI}.config.type", "workload.task", "example"),
    same(f"{AI}.config.distributed_training", "workload.distributed", "example"),
    same(f"{AI}.config.layers", "workload.layers", "example"),
    same(f"{AI}.config.parameters", "workload.parameters", "example"),
    Row(f"{AI}.{FRAMEWORK}.version", "`version`: `2.1` is `==2.1.*`", as_it_is("version"), "released"),
    _compiler("xla", "tensorflow", "released"),
    _compiler("glow", "pytorch", "example"),
    Row(f"{AI}.{{ai_framework-keras|keras}}.backend", "`backend`", lower("backend"), "example"),
)
_HPC = (
    Row(f"{HPC}.config.parallelisation", "`run.mpi`", parallelisation),
    Row(
        f"{MPI}.library",
        "`mpi.library`",
        word({key: RequestValue({"mpi.library": name}) for key, name in LIBRARIES.items()}),
    ),
    same(f"{MPI}.version", "mpi.version"),
    same(
        f"{HPC}.{{parallelisation-mpi|mpi|parallelisation-openmp|openmp}}.scaling_efficiency",
        "limits.efficiency",
        "example",
    ),
    lost(
        f"{MPI}.core_subscription",
        "ranks and threads fill the cores once",
        "see `threads_per_core` in the profile",
        "example",
    ),
    lost(f"{MPI}.message_size", "no setting of an MPI depends on it here", form="example"),
    same(f"{OPENMP}.number_of_threads", "limits.threads", "example"),
    lost(f"{OPENMP}.affinity", "threads are bound as the site's layout says", form="example"),
    lost(f"{DIRECTIVES}.{{compiler|version}}", "images have GNU's compilers and LLVM's", form="example"),
    same(f"{DIRECTIVES}.number_of_acc", "limits.gpus_per_node", "example"),
)
DATA = f"{WISH}.{{app_type-ai_training|app_type-ai_inference|app_type-hpc|ai_training|ai_inference|hpc}}.data"
_DATA_ROWS = (
    same(f"{DATA}.location", "workload.data.location"),
    same(f"{DATA}.basedata", "workload.data.name"),
    lost(f"{DATA}.size", "it has no unit", "write `workload.data.size_gb`"),
    same(f"{DATA}.count", "workload.data.samples"),
    Row(f"{DATA}.etl.prefetch", "`workload.data.prefetch`, if it is a number", prefetch),
    Row(f"{DATA}.etl.cache", "`workload.data.cache`", cache),
    lost(f"{DATA}.*", "it has no effect here"),
)

ROWS = (*_JOB_OPTIONS, *_TARGET, *_APPLICATION, *_OPTIMISATION, *_TRAINING, *_HPC, *_DATA_ROWS)


def expanded(path: str) -> Iterator[tuple[str, ...]]:
    """All paths that one with ``{a|b}`` stands for, as steps."""
    parts = re.split(r"\{([^}]*)\}", path)
    choices = [part.split("|") if number % 2 else [part] for number, part in enumerate(parts)]
    for each in itertools.product(*choices):
        yield tuple("".join(each).split("."))
