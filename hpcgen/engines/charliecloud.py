"""Charliecloud's ch-run.

Options by release, read in bin/ch-run.c of hpc/charliecloud at its tags: ``-b SRC:DST`` and ``-c`` v0.2.4,
``--join`` and ``--join-ct`` v0.2.5, ``--set-env=FILE`` v0.9.7, ``--unset-env=GLOB`` v0.9.8, ``--set-env=NAME=VALUE``
and squashfs images v0.26. ``--set-env`` strips quotes and, without ``--env-no-expand`` (v0.24), expands ``$``:
``env`` inside does neither and is the same in every release, so variables are set with that.
"""

from __future__ import annotations

from types import MappingProxyType

from msgspec.structs import replace

from hpcgen.engines.base import Call, Engine, bind_words, environment_words
from hpcgen.model.image_paths import SUBMIT_FOLDER
from hpcgen.support.shell_words import joined

UNSET_OPTION = "0.9.8"
SQUASHFS = "0.26"


class Charliecloud(Engine):
    """The host's variables enter; those of the image's recipe lie in /ch/environment and are not set by themselves."""

    program = "ch-run"
    image_environment = False
    image_releases = MappingProxyType({".sqfs": SQUASHFS})

    def oldest(self, call: Call) -> str:
        """The one with ``--unset-env``, where it is used."""
        return UNSET_OPTION if call.unset and self.at_least(UNSET_OPTION) else ""

    def image_names(self, stack: str, site: str) -> list[str]:
        """A squashfs file where ch-run is known to mount it, and the folder that it was unpacked to."""
        if self.at_least(SQUASHFS):
            return [f"{stack}.sqfs", stack]
        return [stack, f"{stack}.sqfs"] if self.version is None else [stack]

    def words(self, call: Call) -> list[list[str]]:
        """ch-run of a read-only image. GPUs need no option: /dev is the host's, the driver's libraries the image's."""
        groups: list[list[str]] = [["ch-run"]]
        unset = call.unset
        if self.at_least(UNSET_OPTION):
            groups += [[f"--unset-env={name}"] for name in call.unset]
            unset = ()
        groups += bind_words("-b", call.binds)
        groups.append(["-b", joined(call.folder, f":{SUBMIT_FOLDER}"), "-c", SUBMIT_FOLDER])
        if call.join > 1:
            groups.append(["--join", f"--join-ct={call.join}"])
        groups.append([call.image, "--"])
        # The host's PWD would come in too, and launchers start ranks where it says.
        inside = replace(call, inside={**call.inside, "PWD": SUBMIT_FOLDER})
        return groups + environment_words(inside, unset)
