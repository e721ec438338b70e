"""What is chosen for a request, by which rows, and what is said where no row tells anything."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import ConflictError, HpcgenError
from hpcgen.plugins.tuning.measurements.collection import load_measurements
from hpcgen.plugins.tuning.measurements.lookup import Measurements
from hpcgen.plugins.tuning.measurements.records import Hardware, Measurement, Software, Workload
from hpcgen.plugins.tuning.optimise.decide import optimise
from hpcgen.plugins.tuning.optimise.records import Decision
from hpcgen.plugins.tuning.optimise.report import report
from hpcgen.plugins.tuning.optimise.target import target_of, with_wishes
from hpcgen.plugins.tuning.requests.reading import request_from
from tests.unit.plugins.tuning.predict.rows import PAPERS

TRAINING = "kind: ai_training\nframework: tensorflow\nversion: 2.1\nsite: hlrs-testbed\n"
MNIST = TRAINING + "workload: {name: mnist-cnn}\nhardware: {accelerator: none}\n"
RESNET = TRAINING + "workload: {name: resnet50}\n"
SQUEEZENET = "kind: ai_inference\nframework: pytorch\nsite: crpl-skywalker\nworkload: {name: squeezenet}\n"
MACHINE = Hardware(name="hlrs-modak-cpu", site="hlrs-testbed", partition="gpu", cpu="broadwell", cores=10)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


@pytest.fixture(scope="module")
def papers() -> Measurements:
    return Measurements(PAPERS)


def decide(catalog: Catalog, text: str, known: Measurements) -> Decision:
    read = request_from(loads(text, "request.yaml"))
    site, found = target_of(read.request, catalog, "2026-11-20")
    site, more = with_wishes(site, read.request)
    return optimise(catalog, read.request, site, known, [*read.findings, *found, *more], "request.yaml").decision


def chosen(decision: Decision) -> tuple[str, str]:
    (each,) = [each for each in decision.alternatives if each.result == "chosen"]
    return each.stack, each.compiler


def row(compiler: str, value: float, **more: Any) -> Measurement:
    fields: dict[str, Any] = {
        "workload": Workload(name="mnist-cnn", kind="training", batch=128),
        "software": Software(framework="tensorflow", version="2.1", compiler=compiler),
        "hardware": MACHINE,
        "metric": "samples_per_second",
        "value": value,
        "measured": "2026-11-01",
    }
    return Measurement(**{**fields, **more})


def test_xla_is_taken_where_it_was_faster_and_left_where_it_was_slower(catalog: Catalog, papers: Measurements) -> None:
    on_cpu, on_gpu = decide(catalog, MNIST, papers), decide(catalog, RESNET, papers)
    assert (chosen(on_cpu), chosen(on_gpu)) == (("tf", ""), ("tf-xla", "xla"))
    slow = next(each for each in on_cpu.alternatives if each.compiler == "xla")
    assert slow.slowdown == pytest.approx(1 / 0.7, abs=0.001)
    assert slow.estimate.basis == "measured" and "MODAK" in slow.estimate.rows[0].source


def test_graph_compiler_that_is_refused_is_no_alternative(catalog: Catalog, papers: Measurements) -> None:
    decision = decide(catalog, RESNET + "compilers: {without: [xla]}\n", papers)
    assert chosen(decision) == ("tf", "")
    assert "xla" not in {each.compiler for each in decision.alternatives}


@pytest.mark.parametrize("network", ["squeezenet", "alexnet", "bert-base"])
def test_rows_without_release_and_batch_are_predictions_that_decide_nothing(
    catalog: Catalog, papers: Measurements, network: str
) -> None:
    decision = decide(catalog, SQUEEZENET.replace("squeezenet", network), papers)
    assert chosen(decision) == ("pytorch", "")
    assert {each.estimate.basis for each in decision.alternatives} == {"predicted", "none"}
    (other,) = [each for each in decision.alternatives if each.stack == "onnxruntime"]
    assert other.estimate.rows[0].lacks == ["release", "batch"]
    assert "which decides nothing: no row is of a release within 3 minor ones" in other.estimate.why
    text = report(decision)
    assert "the release and batch of what was measured are unknown" in text and "measured 0." not in text


V100 = Hardware(name="v100", site="crpl-skywalker", partition="v100", gpu="NVIDIA Tesla V100")


def pair(faster: float, hardware: Hardware, network: str = "squeezenet", version: str = "2.10.0") -> list[Measurement]:
    """A network by PyTorch and by ONNX Runtime."""
    work = Workload(name=network, kind="inference", batch=1)
    plain = Software(framework="pytorch", version=version)
    other = Software(framework="pytorch", version=version, compiler="onnxruntime", blocks={"onnxruntime": "1.26.0"})
    common = {"workload": work, "hardware": hardware}
    return [row("", 100.0, software=plain, **common), row("", 100.0 * faster, software=other, **common)]


def test_runtime_that_bench_measured_in_the_frameworks_place_is_the_stack_of_that_runtime(catalog: Catalog) -> None:
    decision = decide(catalog, SQUEEZENET, Measurements(pair(1.6, V100)))
    assert chosen(decision) == ("onnxruntime", "")
    assert "1.6 times as fast as the default. Estimate: measured 160 samples/s in 1 x 1 x ?." in report(decision)
    bare = [msgspec.structs.replace(each, measured=None) for each in pair(1.6, V100)]
    assert chosen(decide(catalog, SQUEEZENET, Measurements(bare))) == ("pytorch", "")


def test_a_runtime_that_was_faster_elsewhere_is_proposed_and_not_taken(catalog: Catalog) -> None:
    request = "kind: ai_inference\nframework: pytorch\nsite: supermuc\n"

    def proposed(rows: list[Measurement]) -> list[str]:
        decision = decide(catalog, request, Measurements(rows))
        assert chosen(decision) == ("pytorch", "")
        return [each.message for each in decision.findings if each.name == "runtime"]

    elsewhere = Hardware(name="desk", cpu="zen4", model="AMD EPYC 9354")
    assert proposed(pair(1.6, elsewhere)) == [
        "onnxruntime was faster than pytorch: squeezenet 1.60 times, on AMD EPYC 9354, 2026-11-01"
    ]
    # Not what was slower, or on GPUs, or of which nobody says when.
    assert proposed(pair(0.9, elsewhere)) == proposed(pair(1.6, V100)) == []
    assert proposed([msgspec.structs.replace(each, measured=None) for each in pair(1.6, elsewhere)]) == []


def test_engines_are_proposed_by_the_rows_that_hpcgen_comes_with(catalog: Catalog) -> None:
    request = "kind: ai_inference\nframework: pytorch\nsite: supermuc\n"
    decision = decide(catalog, request, load_measurements(catalog.folders))
    said = [each.message for each in decision.findings if each.name == "runtime"]
    assert [each.partition(" ")[0] for each in said] == ["onnxruntime", "openvino"]
    # On the same machine ONNX Runtime was slower with a network of attention.
    assert "bert-small" not in said[0] and "bert-small 1.18 times" in said[1]


def elsewhere(machines: int, version: str) -> list[Measurement]:
    """The runtime pays for one network and costs for another, on every machine alike."""
    rows = []
    for number in range(machines):
        hardware = Hardware(name=f"other{number}", gpu="NVIDIA Tesla P40", cores=8 * number + 8)
        rows += pair(1.6, hardware, "squeezenet", version) + pair(0.5, hardware, "alexnet", version)
    return rows


@pytest.mark.parametrize(
    ("machines", "version", "stack", "why"),
    [
        (4, "2.9.1", "onnxruntime", "the nearest 1 release away, which decides: of each machine left out in turn"),
        (4, "2.2.0", "pytorch", "no row is of a release within 3 minor ones of this one"),
        (2, "2.9.1", "pytorch", "rows of 2 machines are too few to test it"),
    ],
)
def test_a_prediction_decides_only_where_its_test_is_won_with_releases_near_this_one(
    catalog: Catalog, machines: int, version: str, stack: str, why: str
) -> None:
    decision = decide(catalog, SQUEEZENET, Measurements(elsewhere(machines, version)))
    assert chosen(decision) == (stack, "")
    (other,) = [each for each in decision.alternatives if each.stack == "onnxruntime"]
    assert (other.estimate.basis, why in other.estimate.why) == ("predicted", True), other.estimate.why
    slower = decide(catalog, SQUEEZENET.replace("squeezenet", "alexnet"), Measurements(elsewhere(machines, version)))
    assert chosen(slower) == ("pytorch", "")


def test_the_linear_model_has_no_say_until_it_wins_its_test(catalog: Catalog) -> None:
    """XLA pays on CPUs and costs on GPUs: a term of the linear model, which pairs of a network's rows do not know."""
    rows = []
    for number, gpu in [(number, gpu) for number in range(4) for gpu in ("", "NVIDIA Tesla P40")]:
        there = Hardware(name=f"other{number}{'-gpu' if gpu else ''}", cores=8 + number, gpu=gpu)
        for compiler, value in (("", 100.0), ("xla", 60.0 if gpu else 160.0)):
            software = {"framework": "tensorflow", "version": "2.1", "install": "pip", "engine": "singularity"}
            known = msgspec.convert({**software, "compiler": compiler}, Software)
            rows.append(row(compiler, value, software=known, hardware=there))
    decision = decide(catalog, MNIST, Measurements(rows))
    (other,) = [each for each in decision.alternatives if each.compiler == "xla"]
    assert (other.estimate.basis, chosen(decision)) == ("predicted", ("tf-xla", "xla")), other.estimate.why
    assert "by the linear model, which decides" in other.estimate.why and other.estimate.rows[0].date == "2026-11-01"


def test_what_was_faster_on_every_machine_is_taken_on_another(catalog: Catalog) -> None:
    rows = [
        row(compiler, value, hardware=Hardware(name=f"other{number}", cores=8 + number))
        for number in range(4)
        for compiler, value in (("", 100.0), ("xla", 150.0 + number))
    ]
    decision = decide(catalog, MNIST, Measurements(rows))
    (other,) = [each for each in decision.alternatives if each.compiler == "xla"]
    assert (other.estimate.basis, chosen(decision)) == ("predicted", ("tf-xla", "xla")), other.estimate.why
    assert "all of its interval is on the faster side" in other.estimate.why


def test_row_with_another_allocator_says_nothing_of_the_plan_without(catalog: Catalog) -> None:
    fast = Software(framework="tensorflow", version="2.1", environment={"LD_PRELOAD": "/usr/lib/libtcmalloc.so"})
    rows = [row("", 500.0), row("", 900.0, software=fast), row("xla", 700.0)]
    assert chosen(decide(catalog, MNIST, Measurements(rows))) == ("tf-xla", "xla")


def test_pair_of_another_release_here_is_told_before_ratios_of_other_machines(
    catalog: Catalog, papers: Measurements
) -> None:
    newer = [
        row(name, value, software=Software(framework="tensorflow", version="2.9", compiler=name))
        for name, value in (("", 500.0), ("xla", 100.0))
    ]
    decision = decide(catalog, MNIST, Measurements([*newer, *_elsewhere(papers)]))
    (slow,) = [each for each in decision.alternatives if each.compiler == "xla"]
    assert slow.estimate.basis == "predicted" and slow.slowdown and 1 < slow.slowdown < 5
    assert slow.estimate.rows[0].release == "2.9" and "the nearest 8 releases away" in slow.estimate.why
    assert chosen(decision) == ("tf", "")


def _elsewhere(papers: Measurements) -> list[Measurement]:
    """What the papers say of XLA, as if it had been measured on another machine."""
    replace = msgspec.structs.replace
    return [replace(each, hardware=Hardware(name="other")) for each in papers if each.software.compiler == "xla"]


def test_version_is_a_range_of_releases_and_no_substring(catalog: Catalog, papers: Measurements) -> None:
    decision = decide(catalog, MNIST, papers)
    assert {each.software for each in decision.alternatives if each.stack == "tf"} >= {"tensorflow 2.1.4"}
    assert all(each.result == "refused" or "tensorflow 2.1." in each.software for each in decision.alternatives)
    newer = decide(catalog, MNIST.replace("hlrs-testbed", "workstation").replace("2.1\n", "2.11\n"), papers)
    assert {each.software for each in newer.alternatives if each.stack == "tf"} >= {"tensorflow 2.11.1"}


def test_the_best_row_decides_and_not_the_last(catalog: Catalog) -> None:
    rows = [row("xla", 900.0), row("", 500.0), row("xla", 100.0)]
    assert chosen(decide(catalog, MNIST, Measurements(rows))) == ("tf-xla", "xla")
    rows = [row("xla", 400.0), row("", 500.0), row("xla", 450.0)]
    assert chosen(decide(catalog, MNIST, Measurements(rows))) == ("tf", "")


def test_rows_of_other_batches_are_not_compared(catalog: Catalog) -> None:
    large = Workload(name="mnist-cnn", kind="training", batch=1024)
    rows = [row("", 500.0), row("xla", 900.0, workload=large)]
    decision = decide(catalog, MNIST, Measurements(rows))
    assert chosen(decision) == ("tf", "")
    (other,) = [each for each in decision.alternatives if each.compiler == "xla"]
    assert other.slowdown is None and other.estimate.value == 900.0
    assert other.why == "no row of the default is like its own"


def test_rows_that_nobody_should_trust_decide_nothing(catalog: Catalog) -> None:
    rows = [row("", 500.0), row("xla", 900.0, doubtful="the clock stood still")]
    assert chosen(decide(catalog, MNIST, Measurements(rows))) == ("tf", "")


def test_without_evidence_the_default_is_taken_and_said_so(catalog: Catalog) -> None:
    decision = decide(catalog, RESNET, Measurements([]))
    assert chosen(decision) == ("tf", "")
    assert any("no row is of the workload 'resnet50', training" in each.message for each in decision.findings)
    assert any("--workload resnet50" in line for line in decision.measure)


def test_nothing_that_can_be_planned_is_told_with_all_reasons(catalog: Catalog, papers: Measurements) -> None:
    with pytest.raises(ConflictError) as caught:
        decide(catalog, MNIST.replace("2.1\n", "0.9\n"), papers)
    assert "tf on gpu" in str(caught.value)
    assert "tf-xla with xla on gpu" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RESNET + "partition: fast\n", "fast"),
        (RESNET + "hardware: {accelerator: amd}\n", "no partition of hlrs-testbed"),
        (
            RESNET.replace("tensorflow", "cntk").replace("version: 2.1\n", "install: [hub]\n"),
            "cannot be installed by hub",
        ),
    ],
)
def test_request_that_fits_nothing_is_refused(catalog: Catalog, papers: Measurements, text: str, said: str) -> None:
    with pytest.raises(HpcgenError) as caught:
        decide(catalog, text, papers)
    assert said in str(caught.value)


def test_ratio_of_an_old_release_says_nothing_of_a_new_one(catalog: Catalog, papers: Measurements) -> None:
    text = "kind: ai_training\nframework: tensorflow\nsite: workstation\nworkload: {name: mnist-cnn}\n"
    decision = decide(catalog, text, papers)
    assert chosen(decision) == ("tf", "")
    (old,) = [each for each in decision.alternatives if each.compiler == "ngraph"]
    assert "nothing compares it with tensorflow" in old.why


def test_one_row_of_another_machine_is_not_enough(catalog: Catalog) -> None:
    fast = row("xla", 1.5, metric="speedup", baseline=Software(framework="tensorflow", version="2.1"))
    assert chosen(decide(catalog, MNIST, Measurements([fast]))) == ("tf-xla", "xla")
    elsewhere = row("xla", 1.5, metric="speedup", baseline=fast.baseline, hardware=Hardware(name="other"))
    assert chosen(decide(catalog, MNIST, Measurements([elsewhere]))) == ("tf", "")


def test_limits_are_no_wishes_of_a_program_that_is_one_process(catalog: Catalog, papers: Measurements) -> None:
    decision = decide(catalog, RESNET + "limits: {nodes: 4}\nrun: {mpi: false}\n", papers)
    assert "--nodes" not in decision.command


def test_request_without_a_site_is_planned_for_one_like_it_and_warned_of(
    catalog: Catalog, papers: Measurements
) -> None:
    text = RESNET.replace("site: hlrs-testbed\n", "hardware: {accelerator: nvidia}\n").replace("2.1\n", "2.15\n")
    decision = decide(catalog, text, papers)
    assert decision.site == "slurm-nvidia"
    assert any(each.severity == "warning" and "where the program runs" in each.message for each in decision.findings)


def test_what_decides_nothing_is_said(catalog: Catalog, papers: Measurements) -> None:
    more = "tune: true\nlimits: {efficiency: 0.5}\n"
    text = RESNET.replace("{name: resnet50}", "{name: resnet50, epochs: 3, data: {cache: false}}") + more
    told = " ".join(each.message for each in decide(catalog, text, papers).findings)
    for part in ("tune:", "limits.efficiency 0.5", "workload.data.cache, workload.epochs:"):
        assert part in told
    quiet = decide(catalog, GAN + "limits: {nodes: 64, efficiency: 0.9}\n", papers)
    assert not [each for each in quiet.findings if each.name == "request"]


@pytest.mark.parametrize(("limits", "ranks"), [("nodes: 4, ranks: 8", 2), ("ranks: 3, ranks_per_node: 2", 2)])
def test_ranks_over_all_nodes_are_a_limit(catalog: Catalog, papers: Measurements, limits: str, ranks: int) -> None:
    text = "kind: mpi\nsite: lumi-c\nmpi: {library: mpich}\njob: {account: abc}\nlimits: {" + limits + "}\n"
    assert f"--ranks-per-node {ranks}" in decide(catalog, text, papers).command


def test_report_shows_rows_and_what_else_there_was(catalog: Catalog, papers: Measurements) -> None:
    decision = decide(catalog, RESNET, papers)
    text = report(decision)
    assert "**Taken:** tensorflow 2.1.4 (pip) + xla; 1.09 times as fast as the default" in text
    assert "tf-ngraph" in text
    assert "tf-ngraph" not in report(decision, top=1).partition("## To know")[0].partition("| stack |")[2]
    assert decision.command in text


GAN = "kind: ai_training\nstack: 3dgan\nsite: supermuc\nworkload: {name: 3dgan}\njob: {account: abc}\n"


def layout(decision: Decision) -> tuple[int, int, int]:
    (each,) = [each for each in decision.layouts if each.chosen]
    return each.nodes, each.ranks_per_node, each.threads_per_rank


def test_fastest_measured_layout_is_taken_on_as_many_nodes_as_are_allowed(
    catalog: Catalog, papers: Measurements
) -> None:
    decision = decide(catalog, GAN + "limits: {nodes: 128}\n", papers)
    assert layout(decision) == (128, 4, 12)
    assert "--nodes 128 --ranks-per-node 4 --threads 12" in decision.command
    (best,) = [each for each in decision.layouts if each.chosen]
    assert (best.estimate.basis, best.estimate.value) == ("predicted", 31.22)
    assert best.estimate.why == "the release and batch of what was measured are unknown"
    (taken,) = [each for each in decision.alternatives if each.result == "chosen"]
    assert taken.estimate == best.estimate
    assert "Estimate: predicted 31.22 s per epoch in 128 x 4 x 12; the release" in report(decision)


def test_layout_of_another_release_is_a_prediction(catalog: Catalog) -> None:
    here = {"workload": Workload(name="3dgan", kind="training", batch=8), "threads_per_rank": 12, "ranks_per_node": 4}
    there = {**here, "hardware": Hardware(name="thin", site="supermuc", partition="thin")}
    for version, basis in (("2.15", "measured"), ("1.11", "predicted")):
        software = Software(framework="tensorflow", version=version)
        rows = [row("", 100.0 * nodes, software=software, nodes=nodes, **there) for nodes in (4, 8, 16)]
        decision = decide(catalog, GAN + "limits: {nodes: 8}\n", Measurements(rows))
        (best,) = [each for each in decision.layouts if each.chosen]
        assert (best.nodes, best.estimate.basis, best.estimate.value) == (8, basis, 800.0)
        assert best.estimate.why == ("" if basis == "measured" else "measured with tensorflow 1.11")


def test_number_of_nodes_that_was_not_measured_is_predicted_with_an_interval(
    catalog: Catalog, papers: Measurements
) -> None:
    decision = decide(catalog, GAN + "limits: {nodes: 100}\n", papers)
    assert layout(decision) == (100, 4, 12)
    (best,) = [each for each in decision.layouts if each.chosen]
    estimate = best.estimate
    assert estimate.basis == "predicted"
    assert estimate.low and estimate.value and estimate.high
    assert 31.22 < estimate.low < estimate.value < estimate.high < 62.24


def test_efficiency_takes_the_layout_with_the_least_node_time(catalog: Catalog, papers: Measurements) -> None:
    decision = decide(catalog, GAN + "goal: efficiency\nlimits: {nodes: 700, efficiency: 0.92}\n", papers)
    nodes, ranks, threads = layout(decision)
    assert (ranks, threads) == (4, 12)
    assert 16 <= nodes < 32


def test_without_the_libraries_of_models_the_measured_numbers_of_nodes_are_chosen_from(
    catalog: Catalog, papers: Measurements, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("numpy", "scipy", "scipy.optimize", "scipy.stats", "sklearn"):
        monkeypatch.setitem(sys.modules, name, None)
    assert layout(decide(catalog, GAN + "limits: {nodes: 700}\n", papers)) == (512, 4, 12)
    saving = GAN + "goal: efficiency\nlimits: {nodes: 700, efficiency: 0.92}\n"
    assert layout(decide(catalog, saving, papers)) == (16, 4, 12)
    resnet = decide(catalog, RESNET, papers)
    assert chosen(resnet) == ("tf-xla", "xla")
    converted = decide(catalog, SQUEEZENET, papers)
    assert any("pip install 'matplotlib>=" in each.estimate.why for each in converted.alternatives)


def test_layout_beyond_the_limits_is_not_considered(catalog: Catalog, papers: Measurements) -> None:
    decision = decide(catalog, GAN + "limits: {nodes: 64, ranks_per_node: 1}\n", papers)
    assert [(each.ranks_per_node, each.threads_per_rank) for each in decision.layouts] == [(1, 48)]
    assert layout(decision) == (64, 1, 48)


def test_layout_that_was_measured_and_does_not_fit_is_told(catalog: Catalog, papers: Measurements) -> None:
    decision = decide(catalog, GAN + "limits: {nodes: 128, memory_per_rank_gb: 40}\n", papers)
    assert [each for each in decision.layouts if each.chosen] == []
    assert any("does not fit" in each.message and "GB" in each.message for each in decision.findings)
