"""Podman.

GPUs: it takes the CDI name ``nvidia.com/gpu=all``, made on the host with ``nvidia-ctk cdi generate`` (NVIDIA Container
Toolkit, "Support for Container Device Interface").
"""

from __future__ import annotations

from hpcgen.engines.buildah import Buildah


class Podman(Buildah):
    """Builds as buildah does. The root inside is the user, so files in the folder of the job are the user's."""

    name = "podman"
    runs = True
    starts = ("podman",)
    containers_words = ("ps", "-a", "--external", "--no-trunc", "--format", "json")
    remove_words = ("rm", "-f")
    equal_since = "5.6"
    store_place = "{{.Store.GraphRoot}}"
    images_words = ("images", "--format", "json")

    def _nvidia_words(self) -> list[str]:
        return ["--device", "nvidia.com/gpu=all"]
