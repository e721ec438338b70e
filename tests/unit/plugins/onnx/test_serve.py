"""The stack and the kit that run converted models on a partition."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError, PolicyError, UnknownNameError
from hpcgen.core.model.job import JobRequest, Queueing
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import in_format
from hpcgen.plugins.onnx.records import ConversionReport, Converted, ConvertedVariant, OnnxFile, Provider, ReportedModel
from hpcgen.plugins.onnx.results import REPORT
from hpcgen.plugins.onnx.serve import ServeKit, ServeRequest, serving_kit
from hpcgen.plugins.onnx.stack import STACK_FILE, serving_stack, stack_text
from tests.conftest import Command
from tests.unit.kit.test_readers import TOOLS, hadolint

MODELS = ("alexnet", "tree")
CATALOG = Catalog()
"""It knows where the files lie that a stack which it has read copies."""


def report(opset: int, ml: int = 3) -> ConversionReport:
    file = OnnxFile(name="model.onnx", opset=opset, nodes=1, parameters=1, domains={"ai.onnx.ml": ml})
    small = msgspec.structs.replace(file, opset=11)
    return ConversionReport(
        conversion=1,
        ensemble="candle",
        models={
            "alexnet": ReportedModel(
                converted=Converted(model="alexnet", origin="pytorch", file=file),
                variants=[ConvertedVariant(model="alexnet", variant="fp16", runtime="onnxruntime", file=small)],
            ),
            "tree": ReportedModel(converted=Converted(model="tree", origin="sklearn", file=small)),
        },
        given=[],
        hpcgen="0.2.0",
    )


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    """What a conversion of two models wrote, as far as a kit reads it."""
    for name in MODELS:
        (tmp_path / "candle" / name / "fp16").mkdir(parents=True)
        (tmp_path / "candle" / name / "model.onnx").write_bytes(b"a model")
    (tmp_path / "candle" / STACK_FILE).write_text(stack_text(serving_stack("candle", MODELS)))
    (tmp_path / "candle" / REPORT).write_bytes(msgspec.json.encode(report(20)))
    return tmp_path / "candle"


def kit_for(
    folder: Path, site: str, partition: str | None = None, provider: Provider | None = None, **more: object
) -> ServeKit:
    asked = ServeRequest(folder, CATALOG.site(site), partition, provider)
    return serving_kit(msgspec.structs.replace(asked, **more), CATALOG)


def dockerfile(kit: ServeKit) -> str:
    """The recipe as Docker would have it, which not every site allows."""
    return make_kit(in_format(kit.plan, "docker", allow_unsupported=True), CATALOG).recipe


def version(kit: ServeKit, block: str) -> str:
    found = kit.plan.block(block)
    assert found is not None
    return found.version


@pytest.mark.parametrize(
    ("site", "partition", "provider", "runtime"),
    [
        ("darwin", "gpu-t4", None, "1.26.0"),
        ("perlmutter", None, None, "1.31.1"),
        ("darwin", "gpu-v100", None, "1.26.0"),
        ("darwin", "gpu-v100", "tensorrt", "1.20.2"),
        ("darwin", "gpu-mi50", None, "1.32.0"),
        ("crpl-leia", "p40", None, "1.26.0"),
        ("lumi-g", None, None, "1.21.0"),
        ("supermuc", None, None, "1.32.0"),
        ("supermuc", None, "openvino", "2026.4.1"),
    ],
)
def test_kits_of_the_partitions_are_clean_for_the_linters(
    converted: Path, tmp_path: Path, site: str, partition: str | None, provider: Provider | None, runtime: str
) -> None:
    made = kit_for(converted, site, partition, provider)
    assert version(made, made.target.engine) == runtime == made.target.runtime
    done = hadolint(dockerfile(made))
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("build.sh", "selftest.sh", "preflight.sh", made.job_file):
        (tmp_path / name).write_text(made.kit.files[name].text)
    scripts = [tmp_path / name for name in ("build.sh", "selftest.sh", "preflight.sh", made.job_file)]
    checked = subprocess.run([TOOLS / "shellcheck", "--norc", *scripts], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    gpus = 1 if made.target.provider in ("cuda", "tensorrt", "migraphx") else 0
    assert made.plan.job.gpus_per_node == gpus


def test_the_models_are_copied_into_the_image(converted: Path) -> None:
    made = kit_for(converted, "supermuc")
    assert "/opt/onnx_models/alexnet" in dockerfile(made)
    assert [each.to for each in made.plan.stack.copy] == [f"/opt/onnx_models/{name}" for name in MODELS]


def test_an_array_shares_the_files(converted: Path) -> None:
    made = kit_for(
        converted,
        "darwin",
        "gpu-t4",
        models=["alexnet"],
        variant="fp16",
        batch=256,
        data="in",
        results="out",
        queueing=Queueing(tasks=8, at_once=4),
        job=JobRequest(walltime="2h"),
    )
    text = made.kit.files[made.job_file].text
    assert "#SBATCH --array=0-7%4" in text and "#SBATCH --time=02:00:00" in text
    assert made.plan.job.command[2:] == [
        *("--output", "out", "--model", "alexnet", "--variant", "fp16", "--batch", "256", "--tasks", "8", "in")
    ]
    assert made.submit == "sbatch --parsable job.slurm"
    assert "--set onnxruntime.provider=cuda" in made.plan.command


def test_a_variant_runs_by_what_it_was_made_for(converted: Path) -> None:
    for variant in ("openvino", "tvm"):
        for name in MODELS:
            (converted / name / variant).mkdir()
    made = kit_for(converted, "darwin", "gpu-t4", variant="openvino")
    assert (made.target.provider, made.plan.job.gpus_per_node) == ("openvino", 0)
    with pytest.raises(InputError, match="openvino is run by OpenVINO, not by cuda"):
        kit_for(converted, "darwin", "gpu-t4", "cuda", variant="openvino")
    with pytest.raises(InputError, match="tvm is only for measuring"):
        kit_for(converted, "supermuc", variant="tvm")


def test_no_array_without_a_batch_system(converted: Path) -> None:
    with pytest.raises(PolicyError, match="has no batch system that could take an array"):
        kit_for(converted, "crpl-leia", queueing=Queueing(tasks=2))
    assert kit_for(converted, "crpl-leia").submit == "./run.sh"


def test_models_that_are_newer_than_the_runtime_are_refused(converted: Path) -> None:
    (converted / REPORT).write_bytes(msgspec.json.encode(report(22, ml=5)))
    with pytest.raises(InputError) as refused:
        kit_for(converted, "crpl-leia", provider="tensorrt", models=["alexnet"])
    first, second = refused.value.problems
    assert first.message == "alexnet has the opset 22 of ai.onnx, and onnxruntime 1.17.1 on p40 takes 20 at most"
    assert "the opset 5 of ai.onnx.ml" in second.message
    assert "--site crpl-leia --partition p40" in first.remedy
    # The same models run by CUDA, and the older variant runs there too.
    assert kit_for(converted, "crpl-leia").target.opset == 26
    assert kit_for(converted, "crpl-leia", provider="tensorrt", variant="fp16", models=["tree"]).target.opset == 20


def test_what_is_no_result_of_a_conversion_is_said(converted: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no converted ensemble"):
        kit_for(tmp_path, "supermuc")
    with pytest.raises(UnknownNameError) as refused:
        kit_for(converted, "supermuc", models=["alexnett"])
    assert refused.value.problems[0].remedy == "did you mean alexnet?"
    with pytest.raises(UnknownNameError, match="alexnet, tree has no variant 'fp61'") as refused:
        kit_for(converted, "supermuc", variant="fp61")
    assert refused.value.problems[0].remedy == "did you mean fp16?"
    (converted / REPORT).write_text('{"ensemble": 3}')
    with pytest.raises(InputError, match="report"):
        kit_for(converted, "supermuc")


def test_the_command_says_what_it_chose_and_why_and_writes_the_kit(
    hpcgen: Command, converted: Path, tmp_path: Path
) -> None:
    kit = tmp_path / "kit"
    words = ["onnx", "serve-kit", str(converted), "--site", "darwin", "--partition", "gpu-v100", "-o", str(kit)]
    done = hpcgen(*words)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "alexnet, tree on darwin, partition gpu-v100"
    assert lines[1] == "  computed by cuda: onnxruntime 1.26.0, cuda 12.9.1, cudnn 9.10.2.21"
    assert f"build   bash {kit}/build.sh" in lines and "submit  sbatch --parsable job.slurm" in lines
    assert (kit / "copy" / "opt" / "onnx_models" / "tree" / "model.onnx").read_bytes() == b"a model"
    data = msgspec.json.decode(hpcgen(*words, "--json").stdout)
    assert data["target"]["provider"] == "cuda" and data["target"]["reasons"]
    assert (data["models"], data["blocks"]["onnx_serve"]) == (list(MODELS), "1")


def test_a_provider_that_the_nodes_have_not_is_an_error_of_the_command(hpcgen: Command, converted: Path) -> None:
    done = hpcgen("onnx", "serve-kit", str(converted), "--site", "supermuc", "--provider", "cuda", "-o", "kit")
    assert done.returncode == 3
    assert "cuda does not compute on the partition thin of supermuc: its nodes have no GPU" in done.stderr
    assert "remedy: another site, or --provider cpu" in done.stderr
