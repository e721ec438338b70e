"""A kit and a container engine → an image and its build record."""

from __future__ import annotations

from pathlib import Path

from hpcgen.builders.choosing import choose_builder, put_base_beside
from hpcgen.builders.display import Watcher
from hpcgen.builders.preparing import BuildOptions
from hpcgen.builders.running import build_kit
from hpcgen.core.model.record import BuildRecord
from hpcgen.kit.folder import read_kit
from hpcgen.kit.kit import Kit

__all__ = ["BuildOptions", "Watcher", "build_image", "choose_builder"]


def build_image(kit: Path | Kit, options: BuildOptions | None = None, watcher: Watcher | None = None) -> BuildRecord:
    """Build the image of a kit, and save the record of it.

    Returns the record; its ``result`` is ``built`` and its ``image`` says where the image is.

    kit: the folder that ``render -o`` wrote, or a kit that is not written yet.
    watcher: told about every step and line while the build goes on.
    BuildFailedError: the engine did not build it; under the image's name is what was there before.
    InputError: it is no kit, a certificate of the site is not here, or the engine reads another format.
    MissingToolError: the engine, or what it needs, is not installed here.
    OutputError: the image, its log or its record cannot be written.
    KeyboardInterrupt: Ctrl-C or SIGTERM, after everything was undone.
    """
    options = options or BuildOptions()
    if isinstance(kit, Path):
        return build_kit(read_kit(kit), options, watcher)
    from hpcgen.core.support.leftovers import scratch_folder
    from hpcgen.core.support.writing import write_kit

    with scratch_folder("hpcgen-kit-") as folder:
        write_kit(folder / "kit", kit.all_files)
        written = read_kit(folder / "kit")
        put_base_beside(written.plan, written.folder, {})
        return build_kit(written, options, watcher)
