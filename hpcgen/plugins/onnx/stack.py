"""The ready stack for inference: what runs the models, with the models themselves in the image."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.model.stack import Copied, RunSpec, Stack, StackBlock
from hpcgen.plugins.onnx.records import Provider

STACK_FILE = "stack.yaml"
MODELS = "/opt/onnx_models"
PROGRAM = "/opt/onnx_serve/share/onnx_infer.py"
DATA, RESULTS = "data", "results"


def serving_stack(ensemble: str, models: Sequence[str]) -> Stack:
    """The stack of an ensemble's models.

    What computes is decided by the partition that it is planned for, or by ``--set onnx_serve.runtime=openvino`` and
    ``--set onnxruntime.provider=…``.

    ``models``: folders of models, beside the file that the stack becomes.
    """
    return Stack(
        name=f"{ensemble[:58]}-serve",
        title=f"Inference over files with the models of {ensemble} in ONNX",
        blocks={"onnx_serve": StackBlock()},
        run=RunSpec(command=command_words(), mpi=False, gpus_per_node=1),
        copy=[Copied(from_=name, to=f"{MODELS}/{name}", ignore=["*.npz"]) for name in models],
        notes=[
            f"It computes {DATA}/MODEL/*.npz, or {DATA}/*.npz with every model, to {RESULTS}/MODEL/*.npz.",
            "An existing result of the same model and data is not computed again.",
        ],
    )


def command_words(
    *,
    models: Sequence[str] = (),
    variant: str = "",
    batch: int | None = None,
    tasks: int | None = None,
    data: str = DATA,
    results: str = RESULTS,
) -> list[str]:
    """The job's command: the program over the files in the job's own folder.

    ``models``: those that run, all of the image if empty. ``tasks``: of the array that shares the files.
    """
    words = ["python3", PROGRAM, "--output", results]
    for name in models:
        words += ["--model", name]
    given = {"--variant": variant, "--batch": batch, "--tasks": tasks}
    words += [word for option, value in given.items() if value for word in (option, str(value))]
    return [*words, data]


def provider_for(variant: str, provider: Provider | None) -> Provider | None:
    """The provider that runs a variant: OpenVINO its own files, and what was asked for all others.

    InputError: another was asked for; nothing here runs the variant.
    """
    if variant.startswith("tvm"):
        raise InputError(
            f"{variant} is only for measuring: the program over files runs ONNX Runtime and OpenVINO",
            "--variant",
            remedy="name a variant of these, or leave --variant out",
        )
    if not variant.startswith("openvino"):
        return provider
    if provider not in (None, "openvino"):
        raise InputError(f"{variant} is run by OpenVINO, not by {provider}", "--provider", "openvino, or none")
    return "openvino"


def stack_text(stack: Stack) -> str:
    """The stack as a file."""
    from hpcgen.machine.detect.yaml_text import dump

    return dump(msgspec.to_builtins(stack))
