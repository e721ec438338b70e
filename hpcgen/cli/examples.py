"""Examples that ``--help`` ends with. A test reads every one as the command would, and runs what can run anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpcgen.cli import COMMANDS

EXAMPLES: dict[str, tuple[str, ...]] = {
    "": (
        "hpcgen list sites",
        "hpcgen plan --site supermuc --stack mpi-hello",
        "hpcgen render --site supermuc --stack mpi-hello -o kit",
        "hpcgen build kit",
    ),
    "help": ("hpcgen help images", "hpcgen help exit-codes", "hpcgen help site new"),
    "init": ("hpcgen init", "hpcgen init --dry-run", "hpcgen init --command train.py", "hpcgen init --force project"),
    "render": (
        "hpcgen render --site supermuc --stack mpi-hello -o kit",
        "hpcgen render --site workstation --stack tf-horovod --set tensorflow.install=pip",
        "hpcgen render --locked hpcgen.lock -o kit",
    ),
    "data": ("hpcgen data fetch --site lumi-c --account project_465000001", "hpcgen data pack imagenet"),
    "data fetch": (
        "hpcgen data fetch",
        "hpcgen data fetch image.sif --trust-image --site leonardo",
        "hpcgen data fetch --bundle bundle.tar --site leonardo",
    ),
    "data pin": (
        "hpcgen data pin https://example.org/models/segmenter.onnx",
        "hpcgen data pin https://huggingface.co/google-bert/bert-base-uncased --include '*.safetensors'",
    ),
    "data pack": (
        "hpcgen data pack imagenet",
        "hpcgen data pack imagenet -o imagenet.sqfs --site lumi-c --fixed-times",
    ),
    "lock": (
        "hpcgen lock --site lumi-c --stack mpi-hello",
        "hpcgen lock --check",
        "hpcgen lock --update mpich",
    ),
    "bundle": (
        "hpcgen bundle create --lock hpcgen.lock -o bundle",
        "hpcgen bundle verify bundle",
    ),
    "bundle create": (
        "hpcgen bundle create --lock hpcgen.lock -o bundle",
        "hpcgen bundle create --lock hpcgen.lock -o bundle.tar --split 4G",
        "hpcgen bundle create --lock hpcgen.lock -o bundle --artifacts --cache ~/artifacts",
        "hpcgen bundle create --lock hpcgen.lock -o bundle --dry-run",
    ),
    "bundle verify": ("hpcgen bundle verify bundle.tar.000 --lock hpcgen.lock",),
    "bundle diff": ("hpcgen bundle diff old-bundle new-bundle -o increment.tar",),
    "bundle join": ("hpcgen bundle join old-bundle increment.tar -o new-bundle",),
    "plan": (
        "hpcgen plan --site supermuc --stack mpi-hello",
        "hpcgen plan --site leonardo --stack tf-horovod --nodes 8 --time 12h",
        "hpcgen plan --site workstation --stack mpi-hello --add cmake --set mpi.provider=openmpi",
        "hpcgen plan --site workstation --stack mpi-hello --inputs",
    ),
    "explain": (
        "hpcgen explain tensorflow OMP_NUM_THREADS --site supermuc --stack tf-horovod",
        "hpcgen explain kit/job.slurm:8",
        "hpcgen explain numpy torch",
    ),
    "graph": ("hpcgen graph --site supermuc --stack tf-horovod", "hpcgen graph --from image.sif -o plan.svg"),
    "diff": (
        "hpcgen diff supermuc supermuc-phase2",
        "hpcgen diff old.lock hpcgen.lock",
        "hpcgen diff kit image.sif",
        "hpcgen diff",
    ),
    "contract": ("hpcgen contract --site supermuc --stack mpi-hello",),
    "build": (
        "hpcgen build kit",
        "hpcgen build --site workstation --stack mpi-hello --engine podman",
        "hpcgen build --dockerfile Dockerfile --site workstation",
        "hpcgen build --all",
        "hpcgen build kit --dry-run",
    ),
    "test": ("hpcgen test image.sif", "hpcgen test podman:hello --site workstation --junit tests.xml"),
    "job": (
        "hpcgen job image.sif --nodes 4 --time 2h -- python3 train.py",
        "hpcgen job --site supermuc --stack mpi-hello -o job.slurm",
    ),
    "run": ("hpcgen run image.sif", "hpcgen run image.sif --ranks-per-node 2 -- python3 train.py", "hpcgen run --live"),
    "shell": ("hpcgen shell image.sif", "hpcgen shell image.sif --nodes 1 --time 30m", "hpcgen shell --live"),
    "submit": (
        "hpcgen submit image.sif --nodes 4 --account pn12ab",
        "hpcgen submit image.sif --no-follow -- python3 train.py",
    ),
    "install": (
        "hpcgen install image.sif --prefix ~/apps",
        "hpcgen install image.sif --prefix ~/apps --command python3 --kernel",
    ),
    "uninstall": ("hpcgen uninstall our-python --prefix ~/apps",),
    "inspect": ("hpcgen inspect image.sif", "hpcgen inspect podman:hello --json", "hpcgen inspect other.sif --sbom"),
    "extend": (
        "hpcgen extend mpi-hello.sif --add pip:h5py==3.11.0 --add apt:git",
        "hpcgen extend podman:mpi-hello:here --add copy:src=/opt/src -o mpi-hello:mine",
    ),
    "verify": ("hpcgen verify hello.sif --provenance hello.json --signer signers",),
    "rebuild": ("hpcgen rebuild image.sif -o kit",),
    "convert": ("hpcgen convert podman:hello hello.sif", "hpcgen convert hello.sif hello.sqfs"),
    "records": ("hpcgen records --limit 5", "hpcgen records show 22dd1060"),
    "records show": ("hpcgen records show 22dd1060 --json",),
    "records provenance": ("hpcgen records provenance 22dd1060 -o hello.json --sign ~/.ssh/id_ed25519",),
    "records compare": ("hpcgen records compare 22dd1060 6fa58952",),
    "records prune": ("hpcgen records prune --result failed --older-than 30 --dry-run",),
    "cache": ("hpcgen cache list --cache ~/artifacts", "hpcgen cache verify --cache ~/artifacts"),
    "cache list": ("hpcgen cache list --cache ~/artifacts --json",),
    "cache show": ("hpcgen cache show mpich --cache ~/artifacts",),
    "cache verify": ("hpcgen cache verify --cache ~/artifacts",),
    "cache sign": ("hpcgen cache sign --key ~/.ssh/id_ed25519 --cache ~/artifacts",),
    "cache push": (
        "hpcgen cache push /media/disk/artifacts --cache ~/artifacts",
        "hpcgen cache push docker://registry.example.org/hpc/artifacts --cache ~/artifacts",
    ),
    "cache pull": ("hpcgen cache pull /media/disk/artifacts --cache ~/artifacts",),
    "cache prune": ("hpcgen cache prune --max-size 20 --dry-run --cache ~/artifacts",),
    "clean": ("hpcgen clean --dry-run", "hpcgen clean unfinished cache --yes", "hpcgen clean jobs --older-than 30"),
    "list": ("hpcgen list", "hpcgen list sites --facts"),
    "show": (
        "hpcgen show site lumi-g --origin --unverified",
        "hpcgen show stack tf-horovod",
        "hpcgen show block tensorflow",
    ),
    "site": ("hpcgen site new our-cluster --detect", "hpcgen site doctor workstation"),
    "site new": (
        "hpcgen site new our-cluster --detect -o ours/site_profiles/our-cluster.yaml",
        "hpcgen site new our-cluster --from slurm /etc/slurm/slurm.conf --from reframe settings.py",
    ),
    "site capture": ("hpcgen site capture our-node",),
    "site refresh": (
        "hpcgen site refresh leonardo --network",
        "hpcgen site refresh frontera --clone TACC/TACC-Docs=clones/TACC-Docs",
    ),
    "site doctor": ("hpcgen site doctor our-cluster", "hpcgen site doctor our-cluster --login --json"),
    "stack": ("hpcgen stack new my-stack",),
    "stack new": ("hpcgen stack new my-stack -o ours/recipes/my-stack.yaml",),
    "block": ("hpcgen block new petsc -o ours",),
    "block new": ("hpcgen block new petsc -o ours", "hpcgen check ours/building_blocks/petsc.py"),
    "wheels": ("hpcgen wheels lock --into ours/building_blocks/wheels psutil-7.2.2 psutil==7.2.2",),
    "wheels requires": ("hpcgen wheels requires", "hpcgen wheels requires --into ours/building_blocks/wheels"),
    "wheels lock": (
        "hpcgen wheels lock --into ours/building_blocks/wheels psutil-7.2.2 psutil==7.2.2",
        "hpcgen wheels lock --python 3.12.3 --architecture x86_64 --architecture aarch64 jax-0.10.2 jax==0.10.2",
        "hpcgen wheels lock --python 3.10.12 --every-python cmake-3.31.10 cmake==3.31.10",
    ),
    "check": ("hpcgen check ours", "hpcgen check ours/site_profiles/our-cluster.yaml"),
    "schema": ("hpcgen schema site",),
    "completion": ('eval "$(hpcgen completion bash)"',),
}
"""Of the core's commands, by their paths; a plug-in's command has them beside it."""


def examples_of(name: str) -> Mapping[str, Sequence[str]]:
    """The examples of a command and of those below it, by their paths; "" is hpcgen itself."""
    if not name or name in COMMANDS:
        return EXAMPLES
    from hpcgen.cli.plugged import plugged_examples

    return plugged_examples(name)
