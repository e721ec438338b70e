"""``hpcgen onnx``, and what its commands share: where their programs run, and what computes models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hpcgen.cli import LazyCommands
from hpcgen.cli.common import TRUST, option_group, say, shows_progress
from hpcgen.cli.licences import require_licences
from hpcgen.cli.options import Options, in_record
from hpcgen.cli.words import COUNT, GIGABYTES, IMAGE, SECONDS, SITE, EngineChoice

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.cli.options import Place
    from hpcgen.images.reference import ImageReference
    from hpcgen.plugins.onnx.ensemble import LoadedEnsemble
    from hpcgen.plugins.onnx.start import Runner

EXAMPLES = {
    "onnx": ("hpcgen onnx convert ensemble.yaml -o converted --image convert.sif",),
    "onnx bench": (
        "hpcgen onnx bench converted --image convert.sif --batch 1 --batch 16",
        "hpcgen onnx bench converted --origin ensemble.yaml --image convert.sif --rounds 15 --json",
    ),
    "onnx convert": (
        "hpcgen onnx convert ensemble.yaml -o converted --image convert.sif",
        "hpcgen onnx convert ensemble.yaml -o converted --site darwin --partition gpu-t4 --on workstation",
    ),
    "onnx run": (
        "hpcgen onnx run converted alexnet data -o results --image serve.sif",
        "hpcgen onnx run converted alexnet data/x.npz -o results --here --provider openvino",
    ),
    "onnx serve-kit": (
        "hpcgen onnx serve-kit converted --site darwin --partition gpu-t4 --array 16%4 --time 2h -o kit",
        "hpcgen onnx serve-kit converted --site supermuc --provider openvino -o kit",
    ),
}


class _OnnxCommands(LazyCommands):
    rows = {
        "convert": (
            "hpcgen.plugins.onnx.cli.converting:convert",
            "Convert an ensemble of models, and prove that it computes the same.",
        ),
        "bench": (
            "hpcgen.plugins.onnx.cli.converting:bench",
            "Measure converted models: every runtime, variant and batch, in rounds.",
        ),
        "run": ("hpcgen.plugins.onnx.cli.serving:run", "Run a converted model over data files."),
        "serve-kit": (
            "hpcgen.plugins.onnx.cli.serving:serve_kit",
            "Write a kit that runs converted models on a partition.",
        ),
    }


@click.group("onnx", cls=_OnnxCommands)
def command() -> None:
    """Convert trained models to ONNX, prove that they compute the same, and start them."""


class RunningOptions(Options, frozen=True, kw_only=True):
    """Where programs run: in an ``image`` on ``host``, or ``here``.

    Each step may take ``timeout`` seconds, and each of its processes ``memory`` GB.
    """

    image: str | None = None
    here: bool = False
    host: str | None = None
    engine: str | None = None
    trust_image: bool = False
    threads: int | None = None
    timeout: float = 3600.0
    memory: float | None = None

    def place(self, catalog: Catalog) -> Place:
        """Where the image is started, in the words of :func:`~hpcgen.running.image_job.plan_for_image`."""
        site = catalog.site(self.host) if self.host is not None else None
        return {"trust": self.trust_image, "site": site, "partition": None, "engine": self.engine}


RUNNING = option_group(
    click.option("--image", type=IMAGE, help="The image that it runs in; without it one is built."),
    click.option(
        "--here",
        is_flag=True,
        help="Run with hpcgen's own Python and its packages: the models' code then runs as you, with a network.",
    ),
    click.option("--on", "host", type=SITE, help="Profile of this machine; by default the image's, or workstation."),
    click.option("--engine", type=EngineChoice("runners"), help="An engine other than the site's preferred one."),
    TRUST,
    click.option("--threads", type=COUNT, help="Threads of each program; by default all of the machine's."),
    click.option(
        "--timeout", type=SECONDS, default=3600.0, show_default=True, metavar="SECONDS", help="Limit for each step."
    ),
    click.option(
        "--memory", type=GIGABYTES, metavar="GB", help="Limit for each step; by default nine tenths of what is free."
    ),
    in_record(RunningOptions, "running"),
)
"""A command gets them as ``running: RunningOptions``."""


def runner_of(
    catalog: Catalog, running: RunningOptions, loaded: LoadedEnsemble | None = None, names: list[str] | None = None
) -> Runner:
    """Where it runs: in an image that is named or built for these models, or with ``--here`` in this Python.

    ``loaded``, ``names``: the models for which an image is built where none is named.
    """
    from hpcgen.images.reference import parse_image
    from hpcgen.plugins.onnx.start import ALWAYS, HereRunner, ImageRunner, modules_for

    if running.here:
        if running.image or running.host or running.engine:
            raise click.UsageError("--here uses no image: leave out --image, --on and --engine")
        return HereRunner(running.threads, running.memory)
    if running.image is None and loaded is None:
        raise click.UsageError("say --image IMAGE, or --here")
    image = parse_image(running.image) if running.image else _built(catalog, running.host, loaded, names or [])
    needs = modules_for(loaded.ensemble, names or []) if loaded is not None else ALWAYS
    runner = ImageRunner(image, catalog, running.threads, running.memory, needs, say, **running.place(catalog))
    if runner.foreign:
        say(f"note: hpcgen did not build {image} ({runner.content or 'its files cannot all be read'})")
    for text in runner.lacks:
        say(f"note: {text}")
    return runner


def _built(catalog: Catalog, host: str | None, loaded: LoadedEnsemble | None, names: list[str]) -> ImageReference:
    """The image for these models, built where there is none yet."""
    from hpcgen.builders import BuildOptions
    from hpcgen.builders.display import display
    from hpcgen.builders.running import build_kit
    from hpcgen.core.support.leftovers import scratch_folder
    from hpcgen.images.reference import ImageReference
    from hpcgen.kit.folder import read_kit
    from hpcgen.kit.kit import make_kit, store_kit
    from hpcgen.plugins.onnx.image import built_already, place_of_image, plan_of_image

    assert loaded is not None
    plan = plan_of_image(loaded, names, catalog, host or "workstation")
    require_licences(plan.licences, ())
    with scratch_folder("hpcgen-kit-") as folder:
        store_kit(folder / "kit", make_kit(plan, catalog).files)
        kit = read_kit(folder / "kit")
        target = place_of_image(plan, kit.content)
        if there := built_already(target, kit.content):
            say(f"image: {there}")
            return there
        say(f"building {target.name}, once for all models of these frameworks; --image names an existing one")
        record = build_kit(kit, BuildOptions(output=target.name), display(say, shows_progress()))
    assert record.image is not None
    return ImageReference(record.image.kind, record.image.name)


PROVIDERS = ("cpu", "openvino", "cuda", "tensorrt", "migraphx")
"""A test holds them against the record, which takes longer to load."""

_NOT_THERE = {
    **dict.fromkeys(
        ("dnnl", "onednn"),
        "no package of ONNX Runtime has it, it would have to be compiled; `openvino` computes by oneDNN's kernels, "
        "and `cpu` by ONNX Runtime's own",
    ),
    "rocm": "ONNX Runtime has had none since 1.23; `migraphx` computes on AMD's GPUs",
}
"""Sources: the project's page on execution providers, the package index on 2026-11-20, microsoft/onnxruntime#25181."""


class ProviderChoice(click.Choice):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.2
    """A provider that there is; of others it says what to take."""

    def __init__(self) -> None:
        super().__init__(PROVIDERS)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Source: click's documentation of parameter types."""
        if str(value) in _NOT_THERE:
            self.fail(f"{value!r} is not a provider here: {_NOT_THERE[str(value)]}", param, ctx)
        return super().convert(value, param, ctx)
