"""A remedy that names options or a command works when it is typed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.helpers.typed_remedies import command_of, remedies, typed

HEAD = "name: it\ntitle: t\nrun: {command: [it], mpi: false}\n"
PACKAGES = "python_packages: {options: {files: [requirements.txt]}}"
FILES = {
    "notes.txt": "x",
    "bad.lock": "a: b\n",
    "empty/README": "",
    "requirements.txt": "torch==1.1\n",
    "trt.yaml": HEAD + "blocks: {tensorrt: {}}\n",
    "torch.yaml": HEAD + f"blocks: {{pytorch: {{options: {{install: pip}}}}, {PACKAGES}}}\n",
}
PLANS = """
--site workstation --stack tf-horovod --set tensorflow.version=99
--site workstation --stack pytorch --set 'cmake.version=>=3.20'
--site workstation --stack pytorch --set python.version=2.7
--site workstation --stack jax --set jax.version=0.1
--site workstation --stack pytorch --set 'pytorch.version=>=99'
--site workstation --stack mpi-hello --set pytorch.version=2.5.1
--site workstation --stack mpi-hello --set cuda.version=12.4.1
--site workstation --stack mpi-hello --set mpich.version=4.0.99
--site workstation --stack mpi-hello --nodes 2
--site workstation --stack mpi-hello --format singularity
--site workstation --stack mpi-hello --format charliecloud
--site workstation --stack mpi-hello --engine shifter
--site workstation --stack pytorch --set base.provider=debian --set python.version=3.14.99
--site workstation --stack pytorch --set pytorch.install=source --set pytorch.version=2.5.1 --set python.version=3.14
--site supermuc --stack mpi-hello --nodes 100000
--site supermuc --stack mpi-hello --queue nope
--site supermuc --stack mpi-hello --ranks-per-node 10000
--site supermuc --stack mpi-hello --threads 1000
--site supermuc --stack mpi-hello --memory-per-rank 100000
--site supermuc --stack mpi-hello --gpus 4
--site supermuc --stack mpi-hello --set mpi.provider=openmpi
--site supermuc --stack mpi-hello --engine docker
--site supermuc --stack pytorch --set python.version=2.7
--site hunter --stack onnxruntime --set onnxruntime.provider=cuda --set onnxruntime.install=source
--site hunter --stack pytorch-ddp --add cuda --set cuda.version=12.0.1
--site archer2 --stack tf-horovod --set ubuntu.version=24.04
--site crpl-leia --stack tf-horovod --set tensorflow.version=1.15.0 --set ubuntu.version=24.04
--site juwels-booster --stack onnxruntime --set onnxruntime.version=1.19
--site juwels-booster --stack onnxruntime --set cudnn.version=9.19.1.2 --set cudnn.obtain=wheels
--site leonardo --stack pytorch --gpus 40
--site lumi-g --stack tf-horovod
--site marenostrum5 --stack mxnet
--site alps --stack pytorch-glow
--site snellius --stack vllm
--site frontera --stack vllm
--site stampede3 --stack vllm-ray
--site darwin --stack vllm-ray
--site darwin --stack ./trt.yaml --partition gpu-mi50
--site workstation --stack ./torch.yaml
--site perlmutter --stack pytorch --queue debug --time 99h
"""
OTHERS = """
render --site supermuc --stack mpi-hello --format docker
job --site supermuc --stack mpi-hello --nodes 99999
lock --check
lock --site workstation --stack mpi-hello --update images
build nowhere
build empty
build --locked bad.lock
build --bundle nowhere
render --locked nowhere.lock
render --bundle nowhere
bundle create --lock nowhere -o y
bundle create --lock bad.lock -o y
diff bad.lock notes.txt
uninstall x --prefix y
show site nope
show block nope
show stack nope
matrix --site nope
matrix --stack nope
site doctor nope
site refresh nope
init empty
wheels lock pytorch torch==99
"""
REFUSED = [("plan", *shlex.split(line)) for line in PLANS.split("\n") if line]
REFUSED += [tuple(shlex.split(line)) for line in OTHERS.split("\n") if line]
NOT_RUN = ("bundle", "build", "install", "wheels")
"""These fetch, build or need an image: the words are held against the command, and it is not run."""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """What the situations are about."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("words", REFUSED, ids=shlex.join)
def test_what_a_remedy_says_works(hpcgen: Command, words: tuple[str, ...]) -> None:
    assert works(hpcgen, words)


def works(hpcgen: Command, words: tuple[str, ...]) -> int:
    """Type what the remedies of a refusal say; how many command lines these were."""
    refused = hpcgen(*words)
    assert refused.returncode not in (0, 1), refused.stdout
    told = remedies(refused.stderr)
    tried = 0
    for problem, remedy in told:
        for again in typed(words, remedy):
            tried += 1
            # What cannot be planned cannot be locked; the lock itself needs the network.
            again = ["render", *again[1:]] if again[0] == "lock" else again
            if again[0] in NOT_RUN:
                command, taken = command_of(tuple(again))
                command.make_context(again[0], again[taken:])
                continue
            done = hpcgen(*again)
            shown = f"{remedy}\n{shlex.join(again)}\n{done.stderr}"
            assert problem not in done.stderr, shown
            # Of several problems each has a remedy of its own.
            assert done.returncode == 0 or len({each for each, _ in told}) > 1, shown
    return tried


def test_an_image_that_no_engine_of_the_site_starts_is_to_be_converted(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "image" / "opt" / "hpcgen").mkdir(parents=True)
    hpcgen("render", "--site", "workstation", "--stack", "mpi-hello", "-o", "image/opt/hpcgen/kit")
    said = hpcgen("job", str(tmp_path / "image")).stderr
    assert "lists docker, podman for docker, and not charliecloud" in said
    assert "hpcgen convert" in said and "--format" not in said


@pytest.mark.slow
def test_what_a_remedy_says_works_for_every_stack_at_every_site(hpcgen: Command) -> None:
    sites, stacks = (json.loads(hpcgen("list", kind, "--json").stdout) for kind in ("sites", "stacks"))
    asked = [("plan", "--site", site["name"], "--stack", stack["name"]) for site in sites for stack in stacks]
    refused = [words for words in asked if hpcgen(*words).returncode in (5, 6)]
    tried = sum(works(hpcgen, words) for words in refused)
    print(f"{len(asked)} plans, {len(refused)} refused, {tried} command lines of their remedies")
    assert tried > 100
