"""What the builders that read a Dockerfile into a store have in common."""

from __future__ import annotations

from hpcgen.builders.engines.base import Builder, FromFile, Target, Word, Work
from hpcgen.builders.steps import Labels, Recipe, dockerfile_steps
from hpcgen.errors import InputError, Problem
from hpcgen.model.plan import Plan
from hpcgen.model.record import ImageKind

LONGEST_LABEL = 100_000
"""In bytes. Linux takes no word of a command line above 128 KiB; the image has the whole kit in any case."""
LABELLED = ("plan.json", "hpcgen.lock", "Dockerfile")
"""Files of the kit whose text becomes a label, so that it can be read without starting the image."""


class DockerfileBuilder(Builder):
    """An image by name, in the engine's own store."""

    format = "docker"
    store: ImageKind

    def target(self, plan: Plan, output: str | None, token: str) -> Target:
        """The name in the store; ``podman:NAME`` and ``docker:NAME`` name it with its store."""
        name = output or f"{plan.stack.name}:{plan.site.name}"
        store, separator, rest = name.partition(":")
        if separator and store in ("podman", "docker", "ch-image", "oci-archive"):
            if store != self.store:
                raise InputError(
                    Problem(
                        f"{self.name} does not put images into {store}",
                        "--output",
                        remedy=f"leave {store}: out, or build first and use hpcgen convert",
                    )
                )
            name = rest
        if not name or name.startswith(("/", ".")) or name.endswith((".sif", ".sqfs", ".tar.gz", ".tar")):
            raise InputError(
                Problem(
                    f"{self.name} makes no file: {name!r} cannot be the name of an image",
                    "--output",
                    expected="a name such as mpi-hello:here",
                    remedy="build first, then make the file with hpcgen convert",
                )
            )
        return Target(self.store, name, self.temporary_name(token))

    def temporary_name(self, token: str) -> str:
        """What the image is called until it is whole."""
        return f"localhost/hpcgen-build:{token}"

    def recipe(self, text: str, labels: Labels | None = None) -> Recipe:
        """The steps of the Dockerfile."""
        return dockerfile_steps(text, labels)

    def labels(self, work: Work) -> list[Word]:
        """The words that put texts of the kit into labels."""
        short = [name for name in LABELLED if (work.kit / name).stat().st_size < LONGEST_LABEL]
        return [word for name in short for word in ("--label", FromFile(f"io.hpcgen.kit.{name}=", work.kit / name))]
