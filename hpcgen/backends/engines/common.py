"""What several engines have in common."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from hpcgen.backends.engines.base import Call, Engine
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import SquashfsCompressor
from hpcgen.core.support.quoting import sh

# What engines have in common that start enroot's squashfs file by an option of srun.


class Enroot(Engine):
    """The image is the squashfs file that ``enroot import`` makes of one in Podman's store."""

    format = "docker"
    builds = False
    built_by = "podman"
    program = "srun"
    starts = ("squashfs",)
    launcher = "srun"
    tells_version = False

    def image_names(self, stack: str, site: str) -> list[str]:
        return [f"{stack}.sqsh"]

    def fetch(self, address: str, name: str) -> list[list[str]]:
        return [["enroot", "import", "-o", name, address]]

    def after_build(self, stack: str) -> str:
        """The file, of the image in Podman's store."""
        file = sh(f"{stack}.sqsh")
        where = "# On a machine other than the one where it runs, copy the file over."
        return f'{where}\nenroot import -x mount -o {file} "podman://$tag"\n'


# What engines have in common that start images by their names in a registry, and no files.

# What a registry or a store could know: a reference has no other signs, and begins with none of a path's.
_NO_REFERENCE = "[[ -f $image || $image != [A-Za-z0-9]* || $image == *[!A-Za-z0-9._/:@-]* ]]"


class ByReference(Engine):
    """The site's own tools keep images for it, under the names that they have in a registry."""

    format = "docker"
    builds = False
    built_by = "podman"
    starts: ClassVar[tuple[str, ...]] = ("registry",)
    image_is_file = False
    tells_version = False

    def missing_image(self, named: bool) -> tuple[str, str]:
        """A file; whether there is an image of a name, the start itself says best."""
        return _NO_REFERENCE, f"$image is not an image name, and {self.name} starts no files: {self.image_todo}"


# How engines that do as Podman does are told of a node's GPUs: by CDI names, or by device files.
#
# AMD's and Intel's libraries are in the image, so their device files are enough. NVIDIA's come with the CDI name that
# ``nvidia-ctk cdi generate`` makes on the host. AMD's toolkit makes ``amd.com/gpu=all``, which stands for the same
# device files; a profile has it (``gpu.cdi``) where the host does. Source: NVIDIA Container Toolkit, "Support for
# Container Device Interface"; github.com/ROCm/container-toolkit@192fe8e,
# docs/container-runtime/{cdi-guide,running-workloads}.rst, internal/cdi/cdi.go.

_USUAL = MappingProxyType({"nvidia": ("nvidia.com/gpu=all",), "amd": ("/dev/kfd", "/dev/dri"), "intel": ("/dev/dri",)})


def gpu_devices(call: Call) -> tuple[str, ...]:
    """Values of the option ``--device`` that show all GPUs of a node inside; none without GPUs."""
    if call.gpu and call.gpu_cdi:
        return (call.gpu_cdi,)
    return _USUAL.get(call.gpu, ())


MKSQUASHFS_OPTIONS: Mapping[SquashfsCompressor, tuple[str, ...]] = MappingProxyType(
    {
        "gzip": ("-comp", "gzip", "-Xcompression-level", "6"),
        "zstd": ("-comp", "zstd", "-Xcompression-level", "3"),
    }
)
"""Words for mksquashfs, which uses all processors by itself."""

SQUASHING = "--mksquashfs-args"
"""Apptainer's option for words of mksquashfs, since 1.4.0 (its CHANGELOG.md)."""


def squashing_words(plan: Plan) -> tuple[str, ...]:
    """What mksquashfs is told for an image of the plan's engine: gzip where the profile does not name a compressor."""
    engine = plan.site.containers.engines.get(plan.engine)
    return MKSQUASHFS_OPTIONS[engine.squashfs if engine is not None and engine.squashfs else "gzip"]
