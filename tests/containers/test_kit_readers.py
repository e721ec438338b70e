"""The reviewed kits, read by the real tools of the sites: ch-image old and new, sbatch, buildah, Apptainer."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from container_tools import ChImage, Sid, Slurm

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
STACKS = ["tf-horovod", "mpi-hello"]


@pytest.fixture(params=STACKS)
def charliecloud_dockerfile(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The Dockerfile inside the supermuc kit's build script."""
    text = (GOLDEN / "supermuc" / request.param / "build.sh").read_text()
    found = re.search(r"<< 'HPCGEN_DOCKERFILE'\n(.*?)\nHPCGEN_DOCKERFILE\n", text, re.DOTALL)
    assert found is not None
    folder = tmp_path / "context"
    folder.mkdir()
    (folder / "Dockerfile").write_text(found[1] + "\n")
    return folder / "Dockerfile"


def test_old_ch_image_parses_the_supermuc_kit(charliecloud_dockerfile: Path, ch_image: ChImage) -> None:
    folder = charliecloud_dockerfile.parent
    words = ["ch-image", "build", "--parse-only", "-t", "parsed", "-f", charliecloud_dockerfile, folder]
    done = ch_image.run(words)
    assert "error" not in done.stdout
    assert "warning" not in done.stdout
    assert "not supported" not in done.stdout.replace("LABEL", "")


def test_new_ch_image_parses_the_supermuc_kit(charliecloud_dockerfile: Path, sid: Sid) -> None:
    folder = sid.folder(charliecloud_dockerfile.parent)
    words = ["ch-image", "build", "--parse-only", "-t", "parsed", "-f", "/kit/Dockerfile", "/kit"]
    done = sid.run(words, binds=[(folder, "/kit")], cwd="/kit")
    assert "error" not in done.stdout
    assert "not supported" not in done.stdout


@pytest.fixture(scope="session")
def ear_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's own option --ear for sbatch, as its plugin gives it."""
    plugin = tmp_path_factory.mktemp("plugin") / "ear_option.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", plugin, HERE / "ear_option.c"], check=True)
    return plugin


@pytest.mark.parametrize("stack", STACKS)
def test_sbatch_takes_the_supermuc_job(
    stack: str, slurm_cluster: Callable[..., Slurm], ear_plugin: Path, tmp_path: Path
) -> None:
    slurm = slurm_cluster("micro", cpus=96, plugin=ear_plugin)
    job = tmp_path / "job.slurm"
    job.write_text((GOLDEN / "supermuc" / stack / "job.slurm").read_text())
    done = slurm.test_only(job)
    assert "to start at" in done.stdout


def test_stock_sbatch_refuses_what_the_site_alone_has(slurm_cluster: Callable[..., Slurm], tmp_path: Path) -> None:
    """That --test-only is a real check: without the site's plugin the same script is refused."""
    slurm = slurm_cluster("micro", cpus=96)
    job = tmp_path / "job.slurm"
    job.write_text((GOLDEN / "supermuc" / "mpi-hello" / "job.slurm").read_text())
    done = slurm.test_only(job, check=False)
    assert done.returncode != 0
    assert "ear" in done.stdout


@pytest.mark.parametrize("stack", STACKS)
def test_apptainer_parses_the_hlrs_definition(stack: str, sid: Sid, tmp_path: Path) -> None:
    """Read whole, up to the base, which is not there; a section that Apptainer does not know is found before that."""
    text = (GOLDEN / "hlrs-testbed" / stack / "Singularity.def").read_text()
    text, replaced = re.subn(
        r"BootStrap: docker\nFrom: ubuntu@sha256:[0-9a-f]{64}", "BootStrap: oci-archive\nFrom: /none.tar", text
    )
    assert replaced == 2

    def build(definition: str) -> str:
        kit = tmp_path / "kit"
        kit.mkdir(exist_ok=True)
        (kit / "Singularity.def").write_text(definition)
        words = ["apptainer", "build", "--fakeroot", "--sandbox", "--force", "image", "Singularity.def"]
        done = sid.run(words, binds=[(sid.folder(kit), "/kit")], cwd="/kit", check=False)
        assert done.returncode != 0
        return done.stdout

    read = build(text)
    assert "/none.tar" in read
    assert "section" not in read
    assert "pots" in build(text.replace("%post", "%pots", 1))
