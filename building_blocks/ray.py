"""Ray: one cluster of processes inside a job, whatever launched its ranks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from hpcgen.blocks.base import Block, BlockOptions, Context, need
from hpcgen.blocks.steps import Environment, Input, Run, Runtime, Test, TextFile, Wheels, command, run
from hpcgen.core.model.image_paths import SCRATCH

NEEDED = (
    "attrs",
    "certifi",
    "charset-normalizer",
    "click",
    "filelock",
    "idna",
    "jsonschema",
    "jsonschema-specifications",
    "packaging",
    "protobuf",
    "pyyaml",
    "referencing",
    "requests",
    "rpds-py",
    "typing-extensions",
    "urllib3",
)
"""What Ray needs and most other software for models does too. A test holds it against the list of Ray."""

PROGRAMS = {"ray-job": "ray_job.py", "ranks.py": "torch_ranks.py"}


class Ray(Block):
    """Ray, tasks and actors over several nodes.  Source: https://github.com/ray-project/ray

    Every rank of a job, one on each node, starts ``ray-job COMMAND …``: it makes one cluster of the nodes, runs the
    command on the first node, and stops everything when the command ends or a node is lost. Each cluster has its own
    token, because Ray listens on all interfaces of a node and requires no password by default.
    """

    name = "ray"

    class Options(BlockOptions, frozen=True):
        """``needs``: which of Ray's requirements are installed with it.

        ``all``, or ``missing``: those that neither vLLM's lists nor its images have. These have the others in their own
        versions, which must not change.
        """

        needs: Literal["all", "missing"] = "all"

    # Either kind of Python will do: another block of the environment decides.
    needs = (need("python", enough={"obtain": "standalone"}),)

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheels of Ray and of all it needs."""
        return [_wheels(ctx)]

    def environment(self, ctx: Context) -> Environment:
        """The program is found by name."""
        return Environment(paths={"PATH": [f"{ctx.prefix}/bin"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it, and the program beside it."""
        yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))
        for name, file in PROGRAMS.items():
            scratch = f"{SCRATCH}/{file}"
            yield run(
                f"program {name}",
                TextFile(f"files/tests/{file}", scratch, ctx.text_file(file)),
                command("install", "-D", "-m", "755", scratch, f"{ctx.prefix}/bin/{name}"),
                joins="next",
            )

    def runtime(self, ctx: Context) -> Runtime:
        """The program; Ray itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """A cluster of this machine alone starts, works and ends."""
        python = f"{ctx.use('python').prefix}/bin/python"
        task = "import ray; ray.init('auto'); print(ray.get(ray.remote(lambda: 6 * 7).remote()))"
        alone = [
            "env",
            "-i",
            "HOME=/tmp",
            f"PATH={ctx.use('python').prefix}/bin:/usr/bin:/bin",
            "RAY_JOB_ADDRESS=127.0.0.1",
        ]
        words = [*alone, f"{ctx.prefix}/bin/ray-job", python, "-c", task]
        return [
            Test("version", command(python, "-c", "import ray; print(ray.__version__)"), expect=ctx.version),
            Test("one node", command(*words), expect="42"),
        ]


def _wheels(ctx: Context) -> Wheels:
    every = ctx.wheels(ctx.facts.listed(f"ray-{ctx.version}"), [f"ray=={ctx.version}"])
    if ctx.options.needs == "all":
        return every
    return msgspec.structs.replace(every.without(*NEEDED), name=f"{every.name}-missing")
