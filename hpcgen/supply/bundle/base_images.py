"""The base images of a bundle: fetched or taken over, checked, and for Charliecloud each as one tar file too."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from hpcgen.core.errors import FetchError, HpcgenError, Problem
from hpcgen.core.model.bundle import BundleItem
from hpcgen.core.model.image_paths import FILES, IMAGES, MANIFEST, file_path, image_name, root_tar_name
from hpcgen.core.model.lock import ImagePin, Lock
from hpcgen.core.support.hashing import hash_file
from hpcgen.core.support.progress import Watch
from hpcgen.images import oci_layout
from hpcgen.recipe.formats import format_for
from hpcgen.supply.bundle.documents import load_manifest
from hpcgen.supply.bundle.store import sweep, take, walk
from hpcgen.supply.bundle.workspace import Workspace


class BaseImages:
    """The base images of a lock, in the place where its bundle is made.

    ``given``: name → skopeo reference, in place of where the lock says that an image is.
    """

    def __init__(self, lock: Lock, place: Workspace, given: Mapping[str, str], watch: Watch) -> None:
        self.pins = dict(sorted(lock.pins.images.items()))
        self.architecture = lock.plan.site.system.architecture
        self.with_roots = format_for(lock.plan.format).base_from_tar
        self.place, self.given, self.watch = place, given, watch
        self.layout = place.bundle / IMAGES

    def known_roots(self) -> dict[str, str]:
        """Tar files that an earlier run made of these images: path → sha256."""
        roots = self.place.state.roots
        made = {name: roots[digest] for name, digest in self._digests().items() if digest in roots}
        return {file_path(sha256, root_tar_name(name)): sha256 for name, sha256 in made.items()}

    def reuse(self, old: Path) -> None:
        """Take over what an older bundle has of these images; what is not as it should be stays behind."""
        source = old / IMAGES
        try:
            held = oci_layout.folder_layout(source)
            named = held.named()
            for name, digest in self._digests().items():
                if named.get(image_name(name)) == digest and not oci_layout.holds(self.layout, name, digest):
                    paths = {each: oci_layout.blob_path(each) for each in held.needed(digest)}
                    if all(self._take(source / path, self.layout / path, each) for each, path in paths.items()):
                        oci_layout.adopt(self.layout, source, name)
        except (OSError, oci_layout.LayoutError):
            return
        for item in load_manifest(old / MANIFEST)[0].items:
            if item.kind != "image" or not item.path.startswith(f"{FILES}/") or item.name not in self.pins:
                continue
            digest = self.pins[item.name].bundled
            same = named.get(image_name(item.name)) == digest
            if same and self._take(old / item.path, self.place.bundle / item.path, item.sha256):
                self.place.state.roots[digest] = item.sha256
        self.place.save()

    def fetch(self) -> None:
        """Fetch and check all images; FetchError with those that cannot be fetched."""
        wanted = self._digests().items()
        there = {name: digest for name, digest in wanted if oci_layout.holds(self.layout, name, digest)}
        if there:
            sweep(self.layout, oci_layout.tidy(self.layout, there))
        elif self.layout.is_dir():
            # Nothing of what an earlier run left is of use, so no tool shall have to make sense of it.
            sweep(self.layout, ())
        problems: list[Problem] = []
        for name, pin in self.pins.items():
            if name not in there:
                problems += self._fetch(name, pin)
        if problems:
            raise FetchError(problems)
        if self.pins:
            sweep(self.layout, oci_layout.tidy(self.layout, self._digests()))
        if self.with_roots:
            for name, digest in self._digests().items():
                self._make_root(name, digest)

    def items(self) -> list[BundleItem]:
        """What the bundle then holds of them."""
        found = []
        origin = "; ".join(dict.fromkeys(pin.origin for pin in self.pins.values()))
        for path, status in walk(self.layout) if self.pins else ():
            digest, _ = hash_file(self.layout / path)
            title = "base images: blob" if path.startswith(oci_layout.BLOBS) else "base images: index"
            found.append(_item(title, origin, digest, status.st_size, f"{IMAGES}/{path}"))
        for path, sha256 in self.known_roots().items() if self.with_roots else ():
            name, digest = next(
                (name, digest)
                for name, digest in self._digests().items()
                if self.place.state.roots.get(digest) == sha256 and path.endswith(f"/{root_tar_name(name)}")
            )
            count = (self.place.bundle / path).stat().st_size
            found.append(_item(name, f"made of {digest}", sha256, count, path))
        return found

    def _digests(self) -> dict[str, str]:
        return {name: pin.bundled for name, pin in self.pins.items()}

    def _take(self, source: Path, target: Path, digest: str) -> bool:
        sha256 = digest.removeprefix("sha256:")
        if target.is_file() and hash_file(target)[0] == sha256:
            return True
        return take(source, target, self.place.parts, sha256)

    def _fetch(self, name: str, pin: ImagePin) -> list[Problem]:
        from hpcgen.supply.pin.base_images import fetch_image

        given = self.given.get(name)
        source = msgspec.structs.replace(pin, origin=given) if given else pin
        self.watch.say(f"base image {name} from {source.origin}")
        try:
            fetch_image(source, name, self.architecture, self.layout)
        except HpcgenError as error:
            return list(error.problems)
        if oci_layout.holds(self.layout, name, pin.bundled):
            return []
        return [
            Problem(
                f"{source.origin} sent a different base image {name}, not {pin.digest}",
                remedy=f"name a source of that exact image: --image {name}=REFERENCE; or regenerate the lock",
            )
        ]

    def _make_root(self, name: str, digest: str) -> None:
        """The image's files as one tar file, unless it is there."""
        made = self.place.state.roots.get(digest, "")
        if made and (self.place.bundle / file_path(made, root_tar_name(name))).is_file():
            return
        from hpcgen.supply.pin.base_images import root_tar

        self.watch.say(f"base image {name} as one tar file")
        aside = self.place.parts / root_tar_name(name)
        aside.unlink(missing_ok=True)
        root_tar(self.layout, name, aside)
        made, _ = hash_file(aside)
        with open(aside, "rb") as stream:
            os.fsync(stream.fileno())
        target = self.place.bundle / file_path(made, root_tar_name(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        aside.rename(target)
        self.place.state.roots[digest] = made
        self.place.save()


def _item(name: str, origin: str, sha256: str, count: int, path: str) -> BundleItem:
    return BundleItem(kind="image", name=name, origin=origin, sha256=sha256, size=count, path=path)
