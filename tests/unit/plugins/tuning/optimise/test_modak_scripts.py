"""The five requests of which MODAK's tests have the job script: ours beside it, by what it means.

What is expected stands in MODAK/test/input/*.sh of SODALITE-EU/application-optimisation at 54df6709. Where MODAK takes
an image from its database, one is made for the request here. Programs that MODAK fetches and compiles in the job are
compiled in the image, so their source has to be pinned.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import loads
from hpcgen.plugins.tuning.cli.optimise import kit_files
from hpcgen.plugins.tuning.measurements.lookup import Measurements
from hpcgen.plugins.tuning.optimise.decide import Optimised, optimise
from hpcgen.plugins.tuning.optimise.target import target_of, with_wishes
from hpcgen.plugins.tuning.requests.reading import request_from
from tests.unit.plugins.tuning.requests.test_modak_inputs import FOLDER

PIN = f"#sha256={64 * 'a'}"
RESNET = (
    "python3 resnet/resnet_imagenet_main.py --data_dir=/data/data/tf_records/train/ "
    "-batch_size=96 --train_epochs=3 --train_steps=10 --use_synthetic_data=false"
)
XLA = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"


class Meaning(msgspec.Struct, frozen=True):
    """What a job script asks for and starts.

    Parameters
    ----------
    nodes: with a node's slots and GPUs, and the property that it must have.
    mail: Torque's letters, or Slurm's words.
    launcher: its program and ranks; ``gpu``: the container sees the GPU.
    has: what the image has to have.
    """

    file: str
    name: str
    nodes: str
    time: str
    output: str
    mail: set[str]
    launcher: tuple[str, int] | None
    gpu: bool
    has: set[str]
    command: str
    environment: dict[str, str]
    copied: bool = False
    modules: str = ""


TORQUE_MAIL, SLURM_MAIL = set("abe"), {"BEGIN", "END", "FAIL"}
EXPECTED = {
    "mpi_test": Meaning(
        "job.pbs",
        "mpi_test",
        "nodes=2:ppn=40",
        "01:00:00",
        "mpi_test.out",
        TORQUE_MAIL,
        ("mpirun", 80),
        False,
        {"mpich", "application"},
        "xthi",
        {"OMP_NUM_THREADS": "2"},
    ),
    "mpi_test_egi": Meaning(
        "job.slurm",
        "mpi_test_egi",
        "2",
        "01:00:00",
        "mpi_test.out",
        SLURM_MAIL,
        ("srun", 80),
        False,
        {"openmpi", "application"},
        "xthi",
        {"OMP_NUM_THREADS": "2"},
        modules="module load mpi/openmpi-x86_64",
    ),
    "tf_resnet": Meaning(
        "job.pbs",
        "resnet",
        "nodes=1:ppn=40:gpus=1",
        "12:00:00",
        "resnet.out",
        TORQUE_MAIL,
        None,
        True,
        {"tensorflow", "cuda"},
        "./resnet_benchmark.sh",
        {"TF_XLA_FLAGS": XLA},
    ),
    "tf_snow": Meaning(
        "job.pbs",
        "skyline-extract",  # 15 characters are what every Torque takes
        "nodes=1:ppn=40:gpus=1:ssd",
        "12:00:00",
        "skyline-extraction-training.out",
        TORQUE_MAIL,
        None,
        True,
        {"tensorflow", "cuda"},
        RESNET,
        {"TF_XLA_FLAGS": XLA},
        copied=True,
    ),
    "mpi_solver": Meaning(
        "job.pbs",
        "solver",
        "nodes=2:ppn=40",
        "01:00:00",
        "file.out",
        TORQUE_MAIL,
        ("mpirun", 40),
        False,
        {"mpich", "application"},
        "/14.4/bin/aster /14.4/lib/aster/Execution/E_SUPERV.py -commandes fort.1 --num_job=1432 --mode=interactif "
        "--rep_outils=/outils --rep_mat=/14.4/share/aster/materiau --rep_dex=/14.4/share/aster/datg --numthreads=1 "
        "--suivi_batch --memjeveux=8192.0 --tpmax=3600.0",
        {"OMP_NUM_THREADS": "1"},
    ),
}


def made(data: dict[str, Any], tmp_path: Path | None = None) -> tuple[Optimised, dict[str, str]]:
    """The decision for a request, and the files of its kit."""
    catalog = Catalog()
    read = request_from(loads(json.dumps(data, indent=1), "request.json"))
    site, found = target_of(read.request, catalog, "2026-11-20")
    site, more = with_wishes(site, read.request)
    result = optimise(catalog, read.request, site, Measurements([]), [*read.findings, *found, *more], where=read.where)
    return result, {name: str(getattr(file, "text", "")) for name, file in kit_files(result, catalog, "").items()}


def request(name: str) -> dict[str, Any]:
    """One of MODAK's requests, its source pinned."""
    data: dict[str, Any] = json.loads((FOLDER / "test" / f"{name}.json").read_text("utf-8"))
    if build := data["job"]["application"].get("build"):
        build["src"] += PIN
    return data


def meaning(result: Optimised, files: dict[str, str]) -> Meaning:
    """What our script asks for and starts, read from its text."""
    (file,) = [name for name in files if name.startswith("job.")]
    text = files[file]
    options = re.findall(r"(?m)^#(?:PBS|SBATCH) (.*)$", text)
    said = dict(re.match(r"(-\w|--[\w-]+)[ =]?(.*)", each).groups() for each in options)  # type: ignore[union-attr]
    nodes, _, time = said.get("-l", "").partition(",walltime=")
    start = next(line for line in text.splitlines() if '"${container[@]}" "$@"' in line and "preflight" not in line)
    ranks = re.search(r"(?:-n |--ntasks=)(\d+)", start)
    words = shlex.split(re.search(r"(?m)^\[ .* \|\| set -- (.*)$", text)[1])  # type: ignore[index]
    if words[:2] == ["/bin/sh", "-c"]:
        # A shell in the image expands the variables of MODAK's command, which its job script's own shell does.
        words = shlex.split(words[2].removeprefix("exec ").replace("${ASTER_ROOT}", ""))
    exported = dict(re.findall(r"(?m)^export (\w+)='?([^'\n]*)'?$", text))
    names = {block.name for block in result.plan.blocks}
    expected = next(each for each in EXPECTED.values() if each.name == said.get("-N", said.get("-J")))
    return Meaning(
        file=file,
        name=said.get("-N") or said["-J"],
        nodes=nodes or said["--nodes"],
        time=time or said["--time"],
        output=said["-o"],
        mail=set(said["-m"]) & TORQUE_MAIL if "-m" in said else set(said["--mail-type"].split(",")),
        launcher=(start.split()[0], int(ranks[1])) if ranks else None,
        gpu="    --nv" in text,
        has=expected.has & names,
        command=" ".join(words),
        environment={name: exported[name] for name in expected.environment},
        copied="-V" in said,
        modules=next((line for line in text.splitlines() if line.startswith("module load")), ""),
    )


@pytest.mark.parametrize("name", EXPECTED)
def test_the_script_means_what_modaks_own_does(name: str) -> None:
    result, files = made(request(name))
    assert meaning(result, files) == EXPECTED[name]
    if "build" in request(name)["job"]["application"]:
        (program,) = [block for block in result.plan.blocks if block.name == "application"]
        assert program.options["commands"] == [request(name)["job"]["application"]["build"]["build_command"].strip()]


def test_an_image_that_a_request_names_is_started_in_its_place() -> None:
    data = request("mpi_test")
    data["job"]["application"]["container_runtime"] = "docker://ethcscs/mpich:ub1804_cuda101_mpi314_gnugprof"
    result, files = made(data)
    assert meaning(result, files) == msgspec.structs.replace(EXPECTED["mpi_test"], has=set(), command="./xthi")
    assert "Singularity.def" not in files
    image = "mpich_ub1804_cuda101_mpi314_gnugprof.sif"
    assert f'image=${{HPCGEN_IMAGE:-"$folder"/{image}}}' in files["job.pbs"]
    assert f"apptainer pull {image} docker://ethcscs/mpich:ub1804_cuda101_mpi314_gnugprof" in files["build.sh"]
    assert "curl -fsSL --proto =https" in files["build.sh"]  # also after a redirect
    assert "sha256sum -c -" in files["build.sh"] and "'mpicc -o xthi -fopenmp Xthi.c'" in files["build.sh"]
    said = [each.message for each in result.decision.findings]
    assert any("cannot be known" in each for each in said) and any("not a digest" in each for each in said)
