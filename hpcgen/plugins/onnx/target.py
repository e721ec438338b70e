"""Where converted models are to run → what computes there, in which release, and which opsets that release takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from packaging.version import Version as Ordered

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.in_memory import InMemory
from hpcgen.core.errors import ConflictError, HpcgenError, InputError, PolicyError
from hpcgen.core.model.fields import Count, Name, Record, Text, Version
from hpcgen.core.model.nodes import Gpu
from hpcgen.core.model.plan import Plan, PlannedBlock
from hpcgen.core.model.reasons import Reason, requirement_text
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import RunSpec, Stack, StackBlock
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.onnx.records import EnsembleTarget, Provider

_OF_VENDOR: dict[str, Provider] = {"nvidia": "cuda", "amd": "migraphx"}
_VENDOR_OF: dict[Provider, str] = {"cuda": "nvidia", "tensorrt": "nvidia", "migraphx": "amd"}
_FROM_SOURCE: frozenset[Provider] = frozenset({"cuda", "migraphx"})
"""Providers that the block can also compile where no package fits; that of TensorRT it cannot."""

_BELOW = ("cuda", "cudnn", "tensorrt", "rocm", "migraphx")
"""The blocks whose releases decide which release of ONNX Runtime fits a GPU."""


class OnnxTarget(Record, frozen=True):
    """What computes on a kind of node.

    ``runtime``: release of the block ``engine``, ``onnxruntime`` or ``openvino``. ``opset``, ``ml_opset``: the newest
    of the domains ``ai.onnx`` and ``ai.onnx.ml`` that it takes, ``ir`` the newest version of the file format; None
    where that is not known, which ``reasons`` say too. ``settings``: what ``--set`` says for it. ``blocks``: what is
    below it on a GPU. ``site`` and ``partition`` are empty where none was named.
    """

    provider: Provider
    engine: Name
    runtime: Version
    opset: Count | None = None
    ml_opset: Count | None = None
    ir: Count | None = None
    site: Text = ""
    partition: Text = ""
    settings: list[Text] = []
    blocks: dict[Name, Version] = {}
    reasons: list[Text] = []


class _Way(msgspec.Struct, frozen=True):
    """One way to compute on a node: by which provider, and whether ONNX Runtime is compiled for it."""

    provider: Provider
    source: bool = False

    @property
    def engine(self) -> str:
        return "openvino" if self.provider == "openvino" else "onnxruntime"

    @property
    def settings(self) -> list[str]:
        if self.provider == "openvino":
            return []
        return [f"onnxruntime.provider={self.provider}", *(["onnxruntime.install=source"] if self.source else [])]

    def __str__(self) -> str:
        return self.provider + (", compiled from source" if self.source else "")


def target_of(
    asked: EnsembleTarget, catalog: Catalog, site: str | None = None, partition: str | None = None
) -> OnnxTarget:
    """What computes where an ensemble is to run.

    asked: what the ensemble says; a site in it is a name, or a file's path as the catalog takes it.
    site, partition: named in the place of those.
    UnknownNameError: there is no such site or partition. InputError: its nodes have no GPU for the provider.
    ConflictError, PolicyError: nothing that was asked for can be had there.
    """
    named = site or asked.site
    if named is None:
        return _anywhere(asked.provider or "cpu", catalog)
    where = partition or (asked.partition if named == asked.site else None)
    return planned_target(catalog.site(named), where, asked.provider, catalog)[0]


def planned_target(
    site: Site, partition: str | None, provider: Provider | None, catalog: Catalog
) -> tuple[OnnxTarget, Plan]:
    """The target on a kind of node, and the plan that says so; parameters and errors are those of :func:`target_of`."""
    name = site.known_partition(partition or site.default_partition)
    ways = _ways(site, name, provider)
    refused: list[str] = []
    first: HpcgenError | None = None
    for way in ways:
        try:
            plan = _plan(site, name, way, catalog)
        except (ConflictError, PolicyError) as error:
            first = first or error
            refused.append(f"not {way}: {_core(error)}")
        else:
            return _described(plan, way, [_chosen(site, name, provider, way), *refused], catalog), plan
    assert first is not None
    raise first


def _core(error: HpcgenError) -> str:
    """What clashes in the end: the last lines of an explanation that begins with what was asked."""
    lines = error.problems[0].message.splitlines()[-2:]
    return "; ".join(line.strip(" -") for line in lines)


def known_opsets(catalog: Catalog, engine: str, version: str) -> dict[str, int]:
    """The newest ``opset``, ``ml`` and ``ir`` that a release takes, as its table says; {} where that says nothing."""
    row = catalog.releases(engine).get(version)
    said = row.values.get("onnx", {}) if row is not None else {}
    return {name: int(text) for name, text in said.items()} if isinstance(said, Mapping) else {}


def _ways(site: Site, partition: str, provider: Provider | None) -> list[_Way]:
    """What to try, the best first."""
    gpu = site.partitions[partition].gpu
    if provider is None:
        own = _OF_VENDOR.get(gpu.vendor) if gpu is not None else None
        return [*(_with_source(own) if own else []), _Way("cpu")]
    wanted = _VENDOR_OF.get(provider)
    if wanted is not None and (gpu is None or gpu.vendor != wanted):
        found = f"its GPU is {gpu.model} of {gpu.vendor}" if gpu is not None else "its nodes have no GPU"
        raise InputError(
            f"{provider} does not compute on the partition {partition} of {site.name}: {found}",
            "provider",
            f"a partition with a GPU of {wanted}",
            f"{_partitions(_with_gpu(site, wanted))}, or --provider cpu",
        )
    return _with_source(provider)


def _with_gpu(site: Site, vendor: str) -> list[str]:
    return [name for name, each in site.partitions.items() if each.gpu is not None and each.gpu.vendor == vendor]


def _partitions(names: Sequence[str]) -> str:
    return f"--partition {' or '.join(names)}" if names else "another site"


def _with_source(provider: Provider) -> list[_Way]:
    return [_Way(provider), *([_Way(provider, source=True)] if provider in _FROM_SOURCE else [])]


def _plan(site: Site, partition: str, way: _Way, catalog: Catalog) -> Plan:
    stack = bare_stack(way.provider)
    return make_plan(
        catalog,
        site,
        stack,
        partition=partition,
        settings=way.settings,
        site_document=catalog.document_of(site),
        stack_document=InMemory(stack, f"stack {stack.name}"),
        command=str,
    )


def bare_stack(provider: Provider) -> Stack:
    """What computes by a provider, and nothing else: one process, with one of the node's GPUs where it takes one."""
    engine = "openvino" if provider == "openvino" else "onnxruntime"
    return Stack(
        name="onnx-target",
        title="Models in ONNX",
        blocks={engine: StackBlock()},
        run=RunSpec(command=["true"], mpi=False, gpus_per_node=1 if provider in _VENDOR_OF else 0),
    )


def _chosen(site: Site, partition: str, provider: Provider | None, way: _Way) -> str:
    """Why this provider."""
    gpu = site.partitions[partition].gpu
    node = f"the GPU of the partition {partition} is {_gpu_text(gpu)}" if gpu is not None else "its nodes have no GPU"
    if provider is not None:
        return f"{way}: requested; {node}"
    if way.provider == "cpu" and gpu is not None:
        return f"cpu: {node}, which no provider here is known to use"
    return f"{way}: {node}"


def _gpu_text(gpu: Gpu) -> str:
    facts = [f"capability {gpu.capability}"] if gpu.capability else []
    facts += [gpu.target] if gpu.target else []
    facts += [f"driver {gpu.driver}" if gpu.driver else "a driver that the profile does not name"]
    return f"{gpu.model} ({', '.join(facts)})"


def _described(plan: Plan, way: _Way, reasons: list[str], catalog: Catalog) -> OnnxTarget:
    planned = {each.name: each for each in plan.blocks}
    engine = planned[way.engine]
    below = {name: planned[name].version for name in _BELOW if name in planned}
    return _with_opsets(
        OnnxTarget(
            provider=way.provider,
            engine=way.engine,
            runtime=engine.version,
            site=plan.site.name,
            partition=plan.partition,
            settings=way.settings,
            blocks=below,
            reasons=[*reasons, _why_release(engine, planned, way, catalog), *_limits(planned)],
        ),
        catalog,
    )


def _why_release(engine: PlannedBlock, planned: Mapping[str, PlannedBlock], way: _Way, catalog: Catalog) -> str:
    """Why this release, and why not the next newer one that has the provider."""
    rows = catalog.releases(engine.name)
    newer = [
        version
        for version in sorted(rows, key=Ordered)
        if Ordered(version) > Ordered(engine.version) and _has(rows[version].only, way)
    ]
    if not newer:
        return f"{engine.label}: the newest known" + (f" with {way.provider}" if way.engine == "onnxruntime" else "")
    accepts = rows[newer[0]].accepts
    clash = [
        f"{requirement_text(name, {name: wanted})}, and {planned[name].label} is here"
        for name, wanted in accepts.items()
        if name in planned and not _accepted(planned[name].version, wanted)
    ]
    return f"{engine.label}: {newer[0]} wants {'; '.join(clash) or 'packages that do not fit together with the rest'}"


def _has(only: Mapping[str, Sequence[str]], way: _Way) -> bool:
    """Whether a release can be had in this way."""
    wanted = {"provider": way.provider, "install": "source" if way.source else "pip"}
    return all(wanted.get(option, values[0]) in values for option, values in only.items())


def _accepted(version: str, wanted: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(wanted).contains(version, prereleases=True)


def _limits(planned: Mapping[str, PlannedBlock]) -> list[str]:
    """What the node's own facts rule out below the runtime."""
    found = []
    for name in _BELOW:
        if name in planned:
            each = planned[name]
            facts = [reason for reason in each.reasons if isinstance(reason, Reason) and reason.rule == "fact"]
            found += [f"{each.label}: {reason}" for reason in [each for each in facts if each.newer] or facts]
    return found


def _with_opsets(target: OnnxTarget, catalog: Catalog) -> OnnxTarget:
    known = known_opsets(catalog, target.engine, target.runtime)
    label = f"{target.engine} {target.runtime}"
    if not known:
        reason = f"which opsets {label} takes is unknown: the conversion uses its own runtime's opsets"
    else:
        parts = f"opset {known['opset']} (ai.onnx.ml {known['ml']}) and IR version {known['ir']}"
        reason = f"{label} takes models up to {parts} (building_blocks/{target.engine}.yaml)"
    return msgspec.structs.replace(
        target,
        opset=known.get("opset"),
        ml_opset=known.get("ml"),
        ir=known.get("ir"),
        reasons=[*target.reasons, reason],
    )


def _anywhere(provider: Provider, catalog: Catalog) -> OnnxTarget:
    """The newest release with the provider, for a node of which nothing is known."""
    way = _Way(provider)
    rows = catalog.releases(way.engine)
    version = max((version for version, row in rows.items() if _has(row.only, way)), key=Ordered)
    reason = f"{way.engine} {version}: the newest known with {provider}; no site was named"
    target = OnnxTarget(provider=provider, engine=way.engine, runtime=version, settings=way.settings, reasons=[reason])
    return _with_opsets(target, catalog)
