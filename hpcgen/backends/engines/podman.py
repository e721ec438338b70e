"""Podman.

With AMD's CDI name for GPUs the user's own groups are kept, to which video and render have to belong.
Source: github.com/ROCm/container-toolkit@192fe8e, docs/container-runtime/running-workloads.rst.
"""

from __future__ import annotations

from hpcgen.backends.engines.base import Call
from hpcgen.backends.engines.buildah import Buildah


class Podman(Buildah):
    """Builds as buildah does. The root inside is the user, so files in the folder of the job are the user's."""

    name = "podman"
    runs = True
    starts = ("podman",)
    containers_words = ("ps", "-a", "--external", "--no-trunc", "--format", "json")
    remove_words = ("rm", "-f")
    equal_since = "5.6"
    # For --init it requires a program, catatonit, that it does not bring; a process among the host's is no first one.
    signal_words = ("--pid=host",)
    dev_containers = True
    user_namespaces = True
    store_place = "{{.Store.GraphRoot}}"
    images_words = ("images", "--format", "json")

    def _amd_groups(self, call: Call) -> list[str]:
        return ["--group-add", "keep-groups"] if call.gpu_cdi else super()._amd_groups(call)
