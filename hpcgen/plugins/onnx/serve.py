"""A kit that runs converted models over many files on a partition, by the provider that computes there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from hpcgen.backends.schedulers import scheduler_for
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError, Problems, UnknownNameError, did_you_mean
from hpcgen.core.model.fields import FormatName
from hpcgen.core.model.job import JobRequest, Queueing
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site
from hpcgen.core.support.quoting import command as quoted
from hpcgen.core.support.writing import KitFile
from hpcgen.kit.kit import Kit, make_kit
from hpcgen.launch.script import job_script
from hpcgen.planning.planner import make_plan
from hpcgen.planning.reproduce import reproduce
from hpcgen.plugins.onnx.records import ConversionReport, OnnxFile, Provider
from hpcgen.plugins.onnx.results import check_variant, read_report
from hpcgen.plugins.onnx.stack import DATA, RESULTS, STACK_FILE, command_words, provider_for
from hpcgen.plugins.onnx.target import OnnxTarget, planned_target
from hpcgen.recipe.assemble import assemble

_GPU: frozenset[Provider] = frozenset({"cuda", "tensorrt", "migraphx"})


class ServeRequest(msgspec.Struct, frozen=True):
    """Command and launch settings.

    ``folder``: of a conversion. ``models``: those that run, all if empty. ``data`` and ``results``: folders from the
    one that jobs start in. ``settings``: more of ``--set``. ``format``: another than that of the site's engine.
    ``job``: its time, queue, account and threads.
    """

    folder: Path
    site: Site
    partition: str | None = None
    provider: Provider | None = None
    models: Sequence[str] = ()
    variant: str = ""
    batch: int | None = None
    data: str = DATA
    results: str = RESULTS
    settings: Sequence[str] = ()
    format: FormatName | None = None
    job: JobRequest = JobRequest()
    queueing: Queueing = Queueing()


class ServeKit(msgspec.Struct, frozen=True):
    """The kit, its plan, and what computes with the reasons; ``submit``: how its job is submitted."""

    kit: Kit
    plan: Plan
    target: OnnxTarget
    models: list[str]
    job_file: str
    submit: str


def serving_kit(asked: ServeRequest, catalog: Catalog, before: Sequence[str] = ()) -> ServeKit:
    """Plan the inference, and write its kit.

    before: words that stand before the subcommand in the command that makes the recipe again.
    InputError: the folder is none of a conversion; a model is newer than what the runtime there takes.
    UnknownNameError: it has no such model or variant, the site no such partition.
    ConflictError, PolicyError: nothing that was asked for can be had there.
    """
    report = read_report(asked.folder)
    models = _models(asked, report)
    provider = provider_for(asked.variant, asked.provider)
    target, _ = planned_target(asked.site, asked.partition, provider, catalog)
    _check_opsets(asked.folder, report, models, asked.variant, target)
    plan = _plan(asked, target, catalog, before)
    kit = make_kit(plan, catalog)
    scheduler = scheduler_for(asked.site.scheduler)
    name, text = job_script(plan, assemble(plan, catalog).final.environment, queueing=asked.queueing)
    kit = replace(kit, files={**kit.files, name: KitFile(str(text), True)})
    submit = quoted(*scheduler.submit(Path(name))) if scheduler.takes_jobs else f"./{name}"
    return ServeKit(kit, plan, target, models, name, submit)


def _models(asked: ServeRequest, report: ConversionReport) -> list[str]:
    known = sorted(report.models)
    if not (asked.folder / STACK_FILE).is_file():
        raise InputError(
            f"{asked.folder} has no {STACK_FILE}",
            "DIR",
            "the folder that hpcgen onnx convert -o wrote",
            "convert the ensemble again",
        )
    problems = Problems()
    for name in asked.models:
        if name not in known:
            problems.add(f"{asked.folder} has no model {name!r}", "--model", remedy=did_you_mean(name, known))
    problems.raise_as(UnknownNameError)
    chosen = list(asked.models) or known
    check_variant(asked.folder, chosen, asked.variant)
    return chosen


def _check_opsets(
    folder: Path, report: ConversionReport, models: Sequence[str], variant: str, target: OnnxTarget
) -> None:
    """Refuse models that are newer than the runtime."""
    problems = Problems()
    label = f"{target.engine} {target.runtime}"
    for name in models:
        for domain, opset, newest in _newer(_file_of(report, name, variant), target):
            problems.add(
                f"{name} has the opset {opset} of {domain}, and {label} on {target.partition} takes {newest} at most",
                str(folder / name),
                remedy=f"convert it for there: hpcgen onnx convert … --site {target.site} "
                f"--partition {target.partition}" + (f", with provider: {target.provider} in the ensemble's target"),
            )
    problems.raise_as(InputError)


def _file_of(report: ConversionReport, name: str, variant: str) -> OnnxFile | None:
    model = report.models.get(name)
    if model is None:
        return None
    if not variant:
        return model.converted.file
    return next((each.file for each in model.variants if each.variant == variant), None)


def _newer(file: OnnxFile | None, target: OnnxTarget) -> list[tuple[str, int, int]]:
    """What of a model is newer than the runtime takes: domain, its opset, the newest that is taken."""
    if file is None:
        return []
    pairs: Mapping[str, tuple[int, int | None]] = {
        "ai.onnx": (file.opset, target.opset),
        "ai.onnx.ml": (file.domains.get("ai.onnx.ml", 0), target.ml_opset),
    }
    return [(domain, own, most) for domain, (own, most) in pairs.items() if most is not None and own > most]


def _plan(asked: ServeRequest, target: OnnxTarget, catalog: Catalog, before: Sequence[str]) -> Plan:
    stack = str(asked.folder / STACK_FILE)
    settings = [f"onnx_serve.runtime={target.engine}", *target.settings, *asked.settings]
    command = command_words(
        models=asked.models,
        variant=asked.variant,
        batch=asked.batch,
        tasks=asked.queueing.tasks,
        data=asked.data,
        results=asked.results,
    )
    job = replace(asked.job, command=command, gpus_per_node=1 if target.provider in _GPU else 0)

    def again() -> str:
        return reproduce(asked.site.name, stack, target.partition, settings, asked.format, False, job, before)

    return make_plan(
        catalog,
        asked.site,
        catalog.stack(stack),
        partition=target.partition,
        settings=settings,
        format=asked.format,
        job=job,
        site_document=catalog.document_of(asked.site),
        stack_document=catalog.stack_document(stack),
        command=again,
    )
