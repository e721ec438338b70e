"""What computes where converted models are to run, in which release, and which opsets that takes."""

from __future__ import annotations

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError, UnknownNameError
from hpcgen.plugins.onnx.records import EnsembleTarget, Provider
from hpcgen.plugins.onnx.target import OnnxTarget, known_opsets, target_of


def target(site: str | None, partition: str | None = None, provider: Provider | None = None) -> OnnxTarget:
    return target_of(EnsembleTarget(site=site, partition=partition, provider=provider), Catalog())


@pytest.mark.parametrize(
    ("site", "partition", "provider", "runtime", "opset", "why"),
    [
        ("darwin", "gpu-t4", "cuda", "1.26.0", 26, "Tesla T4 (capability 7.5"),
        ("perlmutter", None, "cuda", "1.31.1", 26, "A100 (capability 8.0"),
        ("darwin", "gpu-v100", "cuda", "1.26.0", 26, "1.31.1 wants cuda >=13,<14, and cuda 12.9.1 is here"),
        ("crpl-leia", "p40", "cuda", "1.26.0", 26, "it needs capability >=7.5, the node has 6.1"),
        ("lumi-g", None, "migraphx", "1.21.0", 22, "rocm 6.4.1 is the last that supports driver 6.3"),
        ("darwin", "gpu-mi50", "cpu", "1.32.0", 28, "rocm 5.7.1 is the last that supports target gfx906"),
        ("supermuc", None, "cpu", "1.32.0", 28, "its nodes have no GPU"),
    ],
)
def test_the_partition_decides_what_computes(
    site: str, partition: str | None, provider: str, runtime: str, opset: int, why: str
) -> None:
    found = target(site, partition)
    assert (found.provider, found.engine, found.runtime, found.opset) == (provider, "onnxruntime", runtime, opset)
    assert any(why in reason for reason in found.reasons), found.reasons


def test_what_no_package_fits_is_compiled() -> None:
    found = target("lumi-g")
    assert found.settings == ["onnxruntime.provider=migraphx", "onnxruntime.install=source"]
    assert found.blocks == {"rocm": "6.4.1", "migraphx": "6.4.1"}


@pytest.mark.parametrize(
    ("site", "partition", "runtime", "tensorrt", "opset"),
    [
        ("darwin", "gpu-t4", "1.26.0", "10.16.1.11", 26),
        ("perlmutter", "gpu", "1.31.1", "10.16.1.11", 26),
        ("darwin", "gpu-v100", "1.20.2", "10.4.0.26", 21),
        ("crpl-leia", "p40", "1.17.1", "8.6.1.6", 20),
    ],
)
def test_an_older_tensorrt_takes_older_models(
    site: str, partition: str, runtime: str, tensorrt: str, opset: int
) -> None:
    found = target(site, partition, "tensorrt")
    assert (found.runtime, found.blocks["tensorrt"], found.opset) == (runtime, tensorrt, opset)


def test_a_provider_for_other_gpus_is_refused_with_the_partitions_that_have_them() -> None:
    with pytest.raises(InputError) as refused:
        target("darwin", "gpu-mi100", "cuda")
    problem = refused.value.problems[0]
    assert "Instinct MI100 of amd" in problem.message
    assert problem.remedy == "--partition gpu-t4 or gpu-v100, or --provider cpu"


def test_what_is_not_known_of_openvino_is_said() -> None:
    found = target("supermuc", provider="openvino")
    assert (found.engine, found.opset, found.ir, found.settings) == ("openvino", None, None, [])
    assert any("which opsets openvino 2026.4.1 takes is unknown" in reason for reason in found.reasons)


def test_without_a_site_it_is_the_newest_release_with_the_provider() -> None:
    assert (target(None).runtime, target(None, provider="cuda").runtime) == ("1.32.0", "1.31.1")
    assert target(None, provider="tensorrt").settings == ["onnxruntime.provider=tensorrt"]


def test_a_site_of_the_command_line_comes_first_and_leaves_the_partition_of_the_other() -> None:
    asked = EnsembleTarget(site="darwin", partition="gpu-t4")
    found = target_of(asked, Catalog(), site="crpl-leia")
    assert (found.site, found.partition) == ("crpl-leia", "p40")
    assert target_of(asked, Catalog(), partition="gpu-v100").partition == "gpu-v100"


def test_an_unknown_partition_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match="gpu-t5"):
        target("darwin", "gpu-t5")


def test_every_release_says_which_opsets_it_takes() -> None:
    catalog = Catalog()
    known = [known_opsets(catalog, "onnxruntime", version) for version in catalog.releases("onnxruntime")]
    assert all(set(each) == {"opset", "ml", "ir"} for each in known)
    newest = [each["opset"] for each in known]
    assert newest == sorted(newest), "a newer release takes what an older one took"
