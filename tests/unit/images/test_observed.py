"""Images of others as a base: what their files say, and the recipes that start from them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.core.model.fields import FormatName
from hpcgen.core.model.plan import BaseImage, Plan
from hpcgen.core.model.stack import RunSpec, Stack, StackBlock
from hpcgen.images.observed import observed_image
from hpcgen.images.reference import ImageReference
from hpcgen.kit.kit import make_kit, plan_text, read_plan
from hpcgen.planning.planner import make_plan
from hpcgen.supply.pin.foreign_base import own_source, stack_base
from tests.conftest import Command

CATALOG = Catalog()
ELF = b"\x7fELF" + bytes(14)
DEBIAN = 'ID=debian\nVERSION_ID="12"\n'
DIGEST = f"sha256:{'a' * 64}"


def root(folder: Path, release: str = DEBIAN, machine: bytes = b"\x3e\0", variables: str = "") -> ImageReference:
    """A folder with the files of an image."""
    for name in ("bin", "dev", "etc", "proc", "usr/lib", "ch"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "bin" / "sh").write_bytes(ELF + machine + bytes(44))
    (folder / "etc" / "os-release").write_text(release)
    (folder / "ch" / "environment").write_text(variables)
    return ImageReference("directory", str(folder))


def seen(image: ImageReference) -> BaseImage:
    return observed_image(image, CATALOG, "x86_64")


def python(folder: Path, *packages: str) -> None:
    """An environment at /opt/own, as venv makes one."""
    (folder / "opt/own/bin").mkdir(parents=True)
    (folder / "opt/own/bin/python3").symlink_to("/usr/bin/python3")
    (folder / "opt/own/bin/python3.11").symlink_to("python3")
    for each in packages:
        place = folder / "opt/own/lib/python3.11/site-packages" / each
        place.mkdir(parents=True)
        (place / "METADATA").write_text("")


def test_distribution_python_packages_and_variables_are_read_and_nothing_is_started(tmp_path: Path) -> None:
    image = root(tmp_path / "sci", variables="PATH=/opt/own/bin:/usr/bin\nMODEL=big one\nODD=$(touch x)\nLESS=\\e\n")
    python(tmp_path / "sci", "numpy-1.26.4.dist-info", "Mark_Down-3.5.dist-info")
    found = seen(image)
    assert (found.os_id, found.os_version, found.block, found.release) == ("debian", "12", "debian", "12")
    assert found.environment == {"PATH": "/opt/own/bin:/usr/bin", "MODEL": "big one"}
    assert found.python is not None and found.python.program == "/opt/own/bin/python3"
    assert (found.python.version, found.python.packages) == ("3.11", {"numpy": "1.26.4", "mark-down": "3.5"})
    assert (found.kind, found.file, found.image) == ("directory", "sci", "localhost/hpcgen-base/sci:folder")


@pytest.mark.parametrize(
    ("release", "block", "version"),
    [
        ('ID="almalinux"\nVERSION_ID="9.4"\n', "rockylinux", "9"),
        ("ID=ubuntu\nVERSION_ID='22.04'\n", "ubuntu", "22.04"),
        ('ID="opensuse-leap"\nVERSION_ID="15.6"\n', "opensuse_leap", "15.6"),
        ('ID="sles"\nVERSION_ID="15.6"\n', "opensuse_leap", "15.6"),
    ],
)
def test_distributions_made_of_the_same_sources_have_one_block(
    release: str, block: str, version: str, tmp_path: Path
) -> None:
    found = seen(root(tmp_path, release))
    assert (found.block, found.release) == (block, version)


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("ID=alpine\nVERSION_ID=3.20.1\n", "(?s)Alpine Linux 3.20.1, which uses musl.*RUN apk add"),
        ("ID=fedora\nVERSION_ID=41\n", "is fedora 41, and hpcgen has no package names"),
        ("ID=debian\nVERSION_ID=99\n", "is debian 99, and hpcgen has"),
        ("ID=$(touch /tmp/x)\nVERSION_ID=12\n", "does not state its distribution"),
        ("ID=debian; reboot\nVERSION_ID=12\n", "does not state its distribution"),
        ('ID="debian\nVERSION_ID=12"\n', "does not state its distribution"),
        (f"ID={'d' * 70}\n", "does not state its distribution"),
        ("#" * 70_000 + "\nID=debian\n", "has more than|does not state"),
        ("", "does not state its distribution"),
    ],
)
def test_what_cannot_be_built_on_is_refused(release: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        seen(root(tmp_path, release))


def test_a_link_out_of_the_image_means_a_file_of_the_image(tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text(DEBIAN)
    image = root(tmp_path / "image")
    (tmp_path / "image/etc/os-release").unlink()
    (tmp_path / "image/etc/os-release").symlink_to("../../os-release")
    with pytest.raises(InputError, match="does not state its distribution"):
        seen(image)


def test_another_architecture_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="an image for arm64, and the site is amd64"):
        seen(root(tmp_path, machine=b"\xb7\0"))


def base_plan(base: BaseImage, format: FormatName | None = None, **blocks: StackBlock) -> Plan:
    run = RunSpec(command=["true"], mpi=False)
    stack = Stack(name="more", title="on another image", blocks=blocks, run=run, from_="image")
    site = CATALOG.site("workstation")
    return make_plan(CATALOG, site, stack, format=format, allow_unsupported=True, base=base)


PACKAGES = StackBlock(options={"packages": ["h5py==3.11.0"]})


def test_both_stages_start_from_the_image_and_its_python_stays(tmp_path: Path) -> None:
    image = root(tmp_path / "sci", variables="PATH=/opt/own/bin:/usr/bin\nLD_LIBRARY_PATH=/opt/lib\n")
    python(tmp_path / "sci", "numpy-1.26.4.dist-info")
    base = msgspec.structs.replace(seen(image), image="example.org/sci:1", kind="", file="", digest=DIGEST)
    plan = base_plan(base, python_packages=PACKAGES)
    recipe = make_kit(plan, CATALOG).recipe
    assert recipe.count(f"\nFROM example.org/sci:1@{DIGEST}") == 2 and recipe.count("\nUSER 0\n") == 2
    assert "PATH=/opt/python/bin:/opt/own/bin:/usr/bin" in recipe and "LD_LIBRARY_PATH=/opt/lib" in recipe
    assert "'amd64 debian 12.'*)" in recipe and "python3 /opt/hpcgen/image_python.py seen /opt/python" in recipe
    assert "pip check" not in recipe and "ENTRYPOINT []" in recipe
    assert read_plan(msgspec.json.decode(plan_text(plan)), "plan.json") == plan


def test_without_a_need_for_python_the_image_gets_none(tmp_path: Path) -> None:
    image = root(tmp_path / "sci", variables="PATH=/opt/own/bin\n")
    python(tmp_path / "sci")
    plan = base_plan(msgspec.structs.replace(seen(image), kind="ch-image"), "charliecloud")
    assert plan.block("python") is None and plan.blocks[0].label == "debian 12"


@pytest.mark.parametrize(
    ("format", "kind", "start"),
    [
        ("singularity", "sif", "BootStrap: localimage\nFrom: sci"),
        ("singularity", "oci-archive", "BootStrap: oci-archive\nFrom: sci"),
        ("charliecloud", "squashfs", "\nFROM localhost/hpcgen-base/sci:folder"),
        ("docker", "oci-archive", "\nFROM localhost/hpcgen-base/sci:folder"),
    ],
)
def test_every_format_starts_from_what_its_engines_can(
    format: FormatName, kind: str, start: str, tmp_path: Path
) -> None:
    base = msgspec.structs.replace(seen(root(tmp_path / "sci")), kind=kind)
    assert start in make_kit(base_plan(base, format), CATALOG).recipe


def test_what_no_engine_of_the_format_starts_from_is_told_with_the_conversion(tmp_path: Path) -> None:
    base = msgspec.structs.replace(seen(root(tmp_path / "sci")), kind="sif", file="x.sif")
    with pytest.raises(InputError, match=r"(?s)cannot start from x.sif, a sif image.*hpcgen convert.*--format sing"):
        base_plan(base, "docker")
    with pytest.raises(HpcgenError, match="a lock holds images by their digest"):
        own_source(base_plan(base, "singularity"), CATALOG)


def test_another_distribution_than_the_images_is_refused(tmp_path: Path) -> None:
    base = msgspec.structs.replace(seen(root(tmp_path / "sci")), kind="podman")
    with pytest.raises(InputError, match=r"asks for debian ==11, and its image is debian 12"):
        base_plan(base, "docker", debian=StackBlock(version="==11"))


def test_a_registrys_image_needs_a_digest_or_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    stack = Stack(name="x", title="x", blocks={}, run=RunSpec(mpi=False), from_="docker://example.org/x:1")
    site = CATALOG.site("workstation")
    with pytest.raises(InputError, match=r"(?s)has no digest.*skopeo inspect .*docker://example.org/x:1.*lock pins it"):
        stack_base(CATALOG, stack, tmp_path, site)
    stack = msgspec.structs.replace(stack, from_=f"docker://example.org/x:1@{DIGEST}")
    with pytest.raises(InputError, match=r"(?s)not on this machine.*hpcgen lock reads it.*podman pull example.org/x"):
        stack_base(CATALOG, stack, tmp_path, site)


def test_an_image_without_a_kit_is_extended_for_a_site(
    tmp_path: Path, hpcgen: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    root(tmp_path / "sci")
    (tmp_path / "more").write_text("more\n")
    for name in ("ch-image", "ch-convert"):
        place = tmp_path / "programs" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("#!/bin/true\n")
        place.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/programs:/usr/bin:/bin")
    words = ["extend", str(tmp_path / "sci"), "--add", f"copy:{tmp_path}/more=/opt/more", "--dry-run"]
    done = hpcgen(*words, "--site", "supermuc")
    assert done.returncode == 0, done.stderr
    assert "ch-image import" in done.stdout and "sci-extended" in done.stdout
    assert "debian 12" in done.stderr and "--site is missing" in hpcgen(*words).stderr
    assert "pin what is added" in hpcgen(*words, "--site", "supermuc", "--lock", "x.lock").stderr
