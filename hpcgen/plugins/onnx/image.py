"""The image that converts an ensemble: with its frameworks in the versions that they are from, built where none is."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.backends.engines import engine_for
from hpcgen.backends.engines.building import Target
from hpcgen.builders.choosing import choose_builder
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.in_memory import InMemory
from hpcgen.core.config.user_config import cache_folder
from hpcgen.core.errors import HpcgenError, InputError, Position
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.refusals import explained
from hpcgen.images.recorded import recorded_kit
from hpcgen.images.reference import ImageReference
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.onnx.ensemble import LoadedEnsemble
from hpcgen.plugins.onnx.records import Ensemble, Origin

STACK = "onnx-convert"
_TOOLS: dict[Origin, str] = {
    "pytorch": "pytorch",
    "torch-export": "pytorch",
    "tensorflow": "keras",
    "keras": "keras",
    "sklearn": "sklearn",
}
"""What the block onnx_tools calls the framework that a model is from; ONNX files need none."""
_BLOCKS: dict[Origin, str] = {
    "pytorch": "pytorch",
    "torch-export": "pytorch",
    "tensorflow": "tensorflow",
    "keras": "keras",
}
"""The block whose version is that of the framework."""


def frameworks_of(ensemble: Ensemble, names: Iterable[str]) -> list[str]:
    """What the block onnx_tools is to convert from, in a fixed order."""
    found = {_TOOLS[ensemble.models[name].from_] for name in names if ensemble.models[name].from_ in _TOOLS}
    return [name for name in ("sklearn", "keras", "pytorch") if name in found] or ["sklearn"]


def plan_of_image(loaded: LoadedEnsemble, names: list[str], catalog: Catalog, site: str) -> Plan:
    """The plan of the image that converts these models, for the machine that is described by a profile.

    ConflictError: no image has all versions that the models are from; convert them one by one then. InputError: models
    of one framework are from different versions.
    """
    frameworks, versions = frameworks_of(loaded.ensemble, names), _versions(loaded, names)
    settings = [f"onnx_tools.frameworks={','.join(frameworks)}"]
    settings += [f"{block}.version={version}" for block, version in versions.items()]
    if "pytorch" in frameworks:
        # What is compared is the model, on any machine.
        settings.append("pytorch.accelerator=cpu")
    wanted = {each.partition("-")[0] for each in loaded.ensemble.optimise}
    stack = catalog.stack(STACK)
    return make_plan(
        catalog,
        catalog.site(site),
        stack,
        settings=settings,
        added=sorted(wanted & {"openvino", "tvm"}),
        site_document=catalog.site_document(site),
        stack_document=InMemory(stack, f"stack {STACK}"),
        command=str,
    )


def _versions(loaded: LoadedEnsemble, names: list[str]) -> dict[str, str]:
    """The version of each block, as the models say."""
    found: dict[str, tuple[str, Position]] = {}
    for name in names:
        model = loaded.ensemble.models[name]
        block = _BLOCKS.get(model.from_)
        if block is None or not model.version:
            continue
        place = loaded.place("models", name, "version")
        if block in found and found[block][0] != model.version:
            raise InputError(
                f"two models are from {block} {found[block][0]} and {model.version}, and an image has one",
                place,
                "the same version",
                "convert them by themselves: --only MODEL",
            )
        found[block] = (model.version, place)
    return {block: _range(version) for block, (version, _) in found.items()}


def _range(version: str) -> str:
    """A range as settings have it: a number alone is the beginning of a version, as the programs take it."""
    parts = [each.strip() for each in version.split(",") if each.strip()]
    return ",".join(each if each[0] in "<>=!~" else f"{each.removesuffix('.*')}.*" for each in parts)


def place_of_image(plan: Plan, content: str) -> Target:
    """Where an image is that was built on demand, or is to be built: by the hash of its plan.

    MissingToolError: nothing is installed that builds it.
    """
    engine, builder = engine_for(plan.engine), choose_builder(plan)
    name = engine.image_names(f"{STACK}-{content[:12]}", plan.site.name)[0]
    if engine.image_is_file:
        folder = cache_folder("images")
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
        name = str(folder / name)
    return builder.target(plan, name, "0")


def built_already(target: Target, content: str) -> ImageReference | None:
    """The image, if it is there and was built from the same plan."""
    found = ImageReference(target.kind, target.name)
    try:
        return found if recorded_kit(found).content == content else None
    except (HpcgenError, OSError):
        return None
