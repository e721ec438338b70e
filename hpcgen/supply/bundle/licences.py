"""What licence each file of a bundle says itself that it has; many at once, since packages must be unpacked for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpcgen.core.model.bundle import Manifest, WantedFile
from hpcgen.core.support.progress import TransferProgress, Watch
from hpcgen.supply.net.workers import work_all


def known_licences(old: Manifest) -> dict[str, str]:
    """What an older bundle says of its files, by their sha256."""
    return {item.sha256: item.licence for item in old.items if item.kind in ("package", "wheel", "hpcgen")}


def licences(
    folder: Path, wants: Mapping[str, Sequence[WantedFile]], known: Mapping[str, str], watch: Watch
) -> dict[str, str]:
    """The licence of each file, by its path; empty where it does not say it clearly.

    Parameters
    ----------
    wants: the files of ``folder`` by relative path, and what each was wanted as.
    known: licences by sha256, which need not be looked for again.
    """
    found = {path: known[each[0].sha256] for path, each in wants.items() if each[0].sha256 in known}
    said = {path: text for path, each in wants.items() if (text := next((one.licence for one in each), ""))}
    found |= said
    left = [path for path in wants if path not in found]
    progress = TransferProgress("reading licences", len(left), sum((folder / path).stat().st_size for path in left))

    def work(path: str) -> None:
        progress.begin(path)
        found[path] = _licence(wants[path][0], folder / path)
        progress.moved(path, (folder / path).stat().st_size)
        progress.end(path)

    if left:
        watch.begin(progress)
        try:
            # Unpacking is done outside of Python's lock, so threads are enough.
            work_all(left, work, os.cpu_count() or 1, watch.tick, threading.Event())
        finally:
            watch.end()
    return found


def _licence(want: WantedFile, path: Path) -> str:
    if want.kind == "package":
        from hpcgen.supply.bundle.apt_index import deb_licence

        return deb_licence(path)
    if want.kind in ("wheel", "hpcgen"):
        from hpcgen.supply.net.wheel_index import wheel_licence

        return wheel_licence(path)
    return ""
