"""What engines have in common that start enroot's squashfs file by an option of srun."""

from __future__ import annotations

from hpcgen.backends.engines.base import Engine
from hpcgen.core.support.quoting import sh


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

    def after_build(self, stack: str) -> str:
        """The file, of the image in Podman's store."""
        file = sh(f"{stack}.sqsh")
        where = "# On a machine other than the one where it runs, copy the file over."
        return f'{where}\nenroot import -x mount -o {file} "podman://$tag"\n'
