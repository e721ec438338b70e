"""Podman.

With AMD's CDI name for GPUs the user's own groups are kept, to which video and render have to belong.
Source: github.com/ROCm/container-toolkit@192fe8e, docs/container-runtime/running-workloads.rst.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpcgen.backends.engines.base import Call
from hpcgen.backends.engines.buildah import Buildah, another_build
from hpcgen.backends.engines.building import LeftImage, query_list
from hpcgen.backends.engines.dockerfiles import own_label
from hpcgen.core.model.image_paths import CONTENT_LABEL, KIT, STORED_BASES

FOLDER = KIT.rpartition("/")[0] + "/"
"""Of images, which recipes alone fill."""


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
    sees_mounts = True
    user_namespaces = True
    store_place = "{{.Store.GraphRoot}}"
    images_words = ("images", "--format", "json")

    def left_images(self) -> list[LeftImage]:
        """Images without a name, steps and bases of builds, images of killed ones; each before what it was made from.

        A step is known by the folder that only hpcgen's recipes fill. What an image with a name is made of stays: it
        takes no room of its own.
        """
        images = _stored()
        if another_build():
            return []
        kept = _named(images)
        loose = [name for name in images if name not in kept]
        inspected = query_list(["podman", "image", "inspect", *loose]) if loose else []
        of_builds = {each["Id"].removeprefix("sha256:"): found for each in inspected if (found := _kind_of(each))}
        of_builds |= {name: "step" for name in loose if any(map(_is_base, images[name].get("Names") or ()))}
        # Steps before them are the build's too, up to its base; what somebody made from one of these keeps it.
        before = {step for name in of_builds for step in _steps_of(name, images) if images[step].get("ParentId")}
        made = {*of_builds, *before}
        kept |= {step for name in loose if name not in made for step in _steps_of(name, images)}
        # The last steps of a recipe give labels, one after the other.
        of_builds |= {name: "step" for each in images.values() if (name := each.get("ParentId") or "") in of_builds}
        ours = sorted(made - kept, key=lambda name: (-len(list(_steps_of(name, images))), name))
        return [LeftImage(name, _own_bytes(images[name], images), of_builds.get(name) != "image") for name in ours]

    def remove_images(self, names: Sequence[str]) -> list[list[str]]:
        """First the working containers that a killed build left of them, and of the steps before them."""
        images = _stored()
        steps = {step for name in names for step in _steps_of(name, images)} - _named(images)
        left = [each["id"] for each in self._containers() if each["imageid"] in steps and each["state"] == "storage"]
        return [*([["podman", "rm", "-f", *left]] if left else []), *super().remove_images(names)]

    def _amd_groups(self, call: Call) -> list[str]:
        return ["--group-add", "keep-groups"] if call.gpu_cdi else super()._amd_groups(call)


def _stored() -> dict[str, dict[str, Any]]:
    """The images of the store by their IDs, those without a name too."""
    return {each["Id"]: each for each in query_list(["podman", "images", "--all", "--format", "json"])}


def _named(images: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Those that have a name of the user's, and those that they were made from."""
    named = [name for name, each in images.items() if {*(each.get("Names") or ())} - _of_builds(each)]
    return {step for name in named for step in _steps_of(name, images)}


def _kind_of(image: Mapping[str, Any]) -> str:
    """Whether an inspected image is an ``image`` or a ``step`` of a recipe's; "" for what hpcgen did not make."""
    steps = [str(step.get("created_by")) for step in image.get("History") or ()]
    if CONTENT_LABEL in (image.get("Labels") or {}):
        return "image" if steps and own_label(steps[-1]) else ""
    return "step" if any(FOLDER in step for step in steps) else ""


def _of_builds(image: Mapping[str, Any]) -> set[str]:
    """Its names that builds give it: until it is whole, and as a base that they loaded."""
    return {name for name in image.get("Names") or () if name.startswith("localhost/hpcgen-build:") or _is_base(name)}


def _is_base(name: str) -> bool:
    return name.startswith(STORED_BASES)


def _steps_of(name: str, images: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """An image and those that it was made from, as far as the store has them."""
    seen: set[str] = set()
    while name in images and name not in seen:
        seen.add(name)
        yield name
        name = images[name].get("ParentId") or ""


def _own_bytes(image: Mapping[str, Any], images: Mapping[str, Mapping[str, Any]]) -> int:
    """What it has more than the image that it was made from."""
    parent = images.get(image.get("ParentId") or "", {})
    return max(0, int(image.get("Size") or 0) - int(parent.get("Size") or 0))
