"""The pictures of README and docs: python tools/docs/pictures.py writes docs/pictures/*.svg.

The terminal's text is that of a recorded run (terminal.py). A test says when a picture is no longer what this makes.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

from drawing import Picture
from layers import packages
from terminal import RECORDING, drawn

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


def flow() -> Picture:
    """From what is given to a job that runs."""
    picture = Picture(
        920, 330, "Site profile, stack and release tables make a plan; the plan a kit; the kit an image and a job"
    )
    site = picture.box(20, 40, 170, 66, "site profile", "where it will run", kind="given")
    stack = picture.box(20, 132, 170, 66, "stack", "what it must contain", kind="given")
    tables = picture.box(20, 224, 170, 66, "release tables", "what fits what", kind="given")
    plan = picture.box(258, 122, 150, 86, "plan", "versions, reasons,", "layout, checks", kind="made")
    kit = picture.box(
        472, 92, 170, 146, "kit", "recipe", "build script", "job script", "self-test", "lock", kind="made"
    )
    image = picture.box(714, 40, 180, 66, "image", "carries its kit", kind="image")
    proof = picture.box(714, 132, 180, 66, "tests", "image against machine", kind="host")
    job = picture.box(714, 224, 180, 66, "job", "with the host's MPI", kind="host")
    for each in (site, stack, tables):
        picture.line(*(each.x + each.width, each.middle[1]), *(plan.x, plan.middle[1] + (each.y - stack.y) / 4))
    picture.arrow(plan, kit, "render")
    picture.line(kit.x + kit.width, 110, image.x, image.middle[1])
    picture.words(680, 80, "build", size=12, colour="#495057")
    picture.arrow(image, proof, "")
    picture.words(822, 124, "test", size=12, colour="#495057", anchor="start")
    picture.arrow(proof, job, "")
    picture.words(822, 216, "run, submit", size=12, colour="#495057", anchor="start")
    picture.words(105, 26, "given", size=13, colour="#6c757d")
    picture.words(450, 26, "pure: no network, no clock, the same bytes everywhere", size=13, colour="#6c757d")
    picture.words(804, 26, "engines and batch system", size=13, colour="#6c757d")
    return picture


def sides() -> Picture:
    """What comes from the image and what from the host when a job runs."""
    picture = Picture(
        920, 330, "In a job the program and its libraries are the image's; MPI, fabric and driver are the host's"
    )
    picture.frame(20, 20, 420, 290, "image")
    picture.frame(480, 20, 420, 290, "host")
    program = picture.box(50, 56, 360, 56, "your program", "compiled for the node's CPU", kind="image")
    own = picture.box(50, 144, 180, 66, "Python, framework", "and their libraries", kind="image")
    mpi = picture.box(245, 144, 165, 66, "MPI of the image", "of the host's ABI", kind="image")
    libc = picture.box(50, 238, 360, 52, "C library of the base", kind="image")
    theirs = picture.box(510, 144, 360, 66, "MPI and fabric of the host", "take the place of the image's", kind="host")
    start = picture.box(510, 56, 360, 56, "job script and launcher", "preflight on every node first", kind="host")
    kernel = picture.box(510, 238, 360, 52, "kernel, GPU driver", kind="host")
    picture.arrow(start, program, "")
    picture.arrow(program, own)
    picture.arrow(program, mpi)
    picture.arrow(theirs, mpi)
    picture.arrow(own, libc)
    picture.arrow(kernel, libc)
    picture.arrow(theirs, kernel)
    picture.words(460, 134, "bind", size=12, colour="#495057")
    picture.words(460, 226, "driver", size=12, colour="#495057")
    picture.words(460, 46, "starts", size=12, colour="#495057")
    return picture


def chain() -> Picture:
    """Why a version is what it is: each limits the next."""
    picture = Picture(920, 150, "GPU and driver limit CUDA, CUDA the framework, the framework Python, Python the base")
    steps = (
        ("GPU, driver", "site profile", "host"),
        ("CUDA", "release table", "given"),
        ("framework", "release table", "given"),
        ("Python", "release table", "given"),
        ("base", "release table", "given"),
    )
    boxes = [picture.box(20 + 180 * n, 50, 140, 66, *words, kind=kind) for n, (*words, kind) in enumerate(steps)]
    for before, after in pairwise(boxes):
        picture.arrow(before, after)
    for number in range(4):
        picture.words(180 + 180 * number, 40, "limits", size=12, colour="#495057")
    return picture


def gap() -> Picture:
    """Building without a network."""
    picture = Picture(
        920, 220, "On the connected side a plan becomes a lock and a bundle; on the other the bundle alone is enough"
    )
    picture.frame(20, 20, 500, 180, "connected side")
    picture.frame(620, 20, 280, 180, "without a network")
    plan = picture.box(40, 76, 100, 66, "plan", kind="made")
    lock = picture.box(200, 76, 130, 66, "lock", "all pinned", kind="made")
    bundle = picture.box(390, 76, 110, 66, "bundle", "all files", kind="made")
    build = picture.box(680, 76, 160, 66, "image", "the same plan hash", kind="image")
    picture.arrow(plan, lock)
    picture.arrow(lock, bundle)
    picture.arrow(bundle, build)
    picture.words(170, 66, "hpcgen lock", size=12, colour="#495057")
    picture.words(362, 66, "bundle create", size=12, colour="#495057")
    picture.words(570, 98, "carried over", size=12, colour="#495057")
    picture.words(760, 66, "build --bundle", size=12, colour="#495057")
    return picture


def drawings() -> dict[str, str]:
    """The text of every picture by its name."""
    pictures = {f"{each.__name__}.svg": each().svg() for each in (flow, sides, chain, gap, packages)}
    return pictures | {"terminal.svg": drawn(RECORDING.read_text("utf-8"))}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in drawings().items():
        (FOLDER / name).write_text(text, "utf-8")
        print(FOLDER / name, file=sys.stderr)


if __name__ == "__main__":
    main()
