"""Apptainer and Singularity.

Options by release, from the change logs in apptainer/apptainer: ``--rocm`` Singularity 3.5.0; ``--env`` 3.6.0, before
which the image's %environment also won over ``SINGULARITYENV_X``. ``--env`` reads a comma as the start of another
variable, so ``env`` inside is used in every release; it also comes after the image's %environment.
"""

from __future__ import annotations

from hpcgen.engines.base import Call, Engine, bind_words, environment_words

ROCM = "3.5"


class Apptainer(Engine):
    """The host's variables enter, the image's own are set over them; the library path is the image's alone."""

    # Where --nv and --rocm put the driver's libraries.
    library_path = "/.singularity.d/libs"

    def command_name(self) -> str:
        """``apptainer`` or ``singularity``."""
        return self.name

    def oldest(self, call: Call) -> str:
        """The Singularity with ``--rocm``, where it is used."""
        return ROCM if call.gpu == "amd" and self.name == "singularity" else ""

    def image_names(self, stack: str, site: str) -> list[str]:
        """A SIF file."""
        return [f"{stack}.sif"]

    def lacks(self, gpu: str) -> str:
        """``--rocm`` in Singularity before 3.5, or of unknown version."""
        old = gpu == "amd" and self.name == "singularity" and not self.at_least(ROCM)
        return f"AMD GPUs need --rocm, which came with {ROCM}" if old else ""

    def words(self, call: Call) -> list[list[str]]:
        """exec, with the folder of the job at its own place."""
        groups: list[list[str]] = [[self.name, "exec"]]
        if call.gpu == "nvidia":
            groups.append(["--nv"])
        elif call.gpu == "amd":
            if lacks := self.lacks(call.gpu):
                raise self.refuse(lacks, "state the version in the profile")
            groups.append(["--rocm"])
        groups += bind_words("-B", call.binds)
        groups.append(["-B", call.folder, "--pwd", call.folder])
        groups.append([call.image])
        return groups + environment_words(call, call.unset)
