"""Steps of a recipe, and what the engines' output says about them.

Lines of buildah 1.28, podman 4.3, ch-image 0.31 and Apptainer 1.4 are as these print them. The form of BuildKit's lines
is from moby/buildkit issues 3834 and 5644 and docker/cli issue 3423; 20.10 prints the same but for further lines.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from hpcgen.backends.engines import builder_for, builders
from hpcgen.backends.engines.steps import Reader, Recipe, definition_steps, dockerfile_steps
from hpcgen.builders.display import BuildProgress, Event
from hpcgen.core.model.record import BuilderName
from hpcgen.kit.folder import KitFolder, read_kit
from hpcgen.kit.kit import plan_text

GOLDEN = Path(__file__).parents[2] / "golden"
KITS = {"docker": "workstation", "singularity": "hlrs-testbed", "charliecloud": "supermuc"}

DOCKERFILE = """\
# syntax=docker/dockerfile:1
# A header: with a colon.

FROM docker.io/library/debian:12 AS builder
ARG X="1"
ENV A="b"
# one 1: first
RUN echo hello && \\
    mkdir -p /opt/x
# two 2: second: with a colon
RUN --mount=type=cache,target=/root/.cache/pip echo second && \\
    echo FROM nowhere

FROM docker.io/library/debian:12
COPY --from=builder /opt/x /opt/x
# three 3: third
RUN echo third
COPY kit/ /opt/kit/
LABEL a="b"
"""
BUILDAH = """\
[1/2] STEP 1/5: FROM docker.io/library/debian:12 AS builder
[1/2] STEP 2/5: ARG X="1"
--> Using cache 037e8479e57b723cac4a4e8bab719cf88bec6999ff9a03a62b338ba0d90946db
--> 037e8479e57
[1/2] STEP 3/5: ENV A="b"
--> bf84cd23206
[1/2] STEP 4/5: RUN echo hello &&     mkdir -p /opt/x
--> Using cache 4f88591a76babfb3c3dfbd0f4368dc8a1593097868f13f4420de02d391ebbd33
--> 4f88591a76b
[1/2] STEP 5/5: RUN --mount=type=cache,target=/root/.cache/pip echo second &&     echo FROM nowhere
second
STEP 3/4: RUN what a step itself prints
FROM nowhere
--> 954d77ef26a
[2/2] STEP 1/5: FROM docker.io/library/debian:12
[2/2] STEP 2/5: COPY --from=builder /opt/x /opt/x
--> 93b6dee741b
[2/2] STEP 3/5: RUN echo third
third
--> 587792c37c9
[2/2] STEP 4/5: COPY kit/ /opt/kit/
--> d6836514185
[2/2] STEP 5/5: LABEL a="b"
[2/2] COMMIT localhost/x:1
"""
CH_IMAGE = """\
  4* FROM debian:12 AS builder
  5* ARG X='1'
  6* ENV A='b'
  8* RUN.F echo hello && mkdir -p /opt/x
copying image from cache ...
 11. RUN.F echo second && echo FROM nowhere
second
  8 things that a step prints
 14* FROM debian:12
 15. COPY --from=builder ['/opt/x'] -> '/opt/x'
 17. RUN.F echo third
 18. COPY ['kit/'] -> /opt/kit/
--force: init OK & modified 1 RUN instructions
"""
BUILDKIT = """\
#1 [internal] load build definition from Dockerfile
#1 transferring dockerfile: 1.79kB done
#1 DONE 0.0s

#4 [builder 1/3] FROM docker.io/library/debian:12@sha256:0123
#4 resolve docker.io/library/debian:12@sha256:0123 0.0s done
#4 CACHED

#5 [builder 2/3] RUN echo hello &&     mkdir -p /opt/x
#5 0.106 hello
#5 DONE 1.5s

#6 [builder 3/3] RUN --mount=type=cache,target=/root/.cache/pip echo second &&     echo FROM nowhere
#6 0.321 second

#7 [internal] load build context
#7 transferring context: 2B done
#7 DONE 0.0s

#6 0.400 #5 CACHED is what a step itself prints
#6 DONE 2.0s

#8 [stage-1 2/4] COPY --from=builder /opt/x /opt/x
#8 DONE 0.1s

#9 [stage-1 3/4] RUN echo third
#9 0.200 third
#9 ERROR: process "/bin/sh -c echo third" did not complete successfully: exit code: 1
"""


def begun(reader: Reader, text: str, progress: BuildProgress) -> dict[int, str]:
    """Which steps were begun by these lines, each with its state after them."""
    for line in text.splitlines():
        for event in reader(line):
            progress.take(event)
    return dict(progress.states)


@pytest.fixture
def recipe() -> Recipe:
    return dockerfile_steps(DOCKERFILE)


def read(name: BuilderName, recipe: Recipe, text: str) -> tuple[dict[int, str], BuildProgress]:
    builder = builder_for(name)
    progress = BuildProgress(recipe.steps, builder.alone)
    return begun(builder.reader(recipe), text, progress), progress


def test_a_dockerfile_says_what_each_step_is_for(recipe: Recipe) -> None:
    assert [(step.title, step.stage) for step in recipe.steps] == [
        ("hpcgen: base image docker.io/library/debian:12", 1),
        ("one 1: first", 1),
        ("two 2: second: with a colon", 1),
        ("hpcgen: base image docker.io/library/debian:12", 2),
        ("hpcgen: copy /opt/x from the builder", 2),
        ("three 3: third", 2),
        ("hpcgen: copy kit/", 2),
    ]
    assert recipe.instructions == [5, 5]


@pytest.mark.parametrize("name", list(builders()))
def test_what_a_step_is_for_is_not_read_out_of_the_recipe(name: BuilderName) -> None:
    kit = golden(name, "tf-horovod")
    assert kit.facts is not None
    reworded = re.sub(r"(?m)^( *)# .*: .*$", r"\1# something else", kit.recipe)
    reworded = re.sub(r"(hpcgen: step \d+ of \d+): [^\n']+", r"\1: something else", reworded)
    assert reworded != kit.recipe
    builder = builder_for(name)
    assert builder.recipe(reworded, kit.facts.steps) == builder.recipe(kit.recipe, kit.facts.steps)


def test_a_kit_of_hpcgen_0_1_0_has_its_labels_in_comments(tmp_path: Path) -> None:
    kit = golden("docker")
    old = tmp_path / "kit"
    shutil.copytree(kit.folder, old)
    (old / "recipe.json").unlink()
    plan = msgspec.structs.replace(kit.plan, number=1)
    (old / "plan.json").write_text(plan_text(plan))
    text = "FROM x AS builder\n# ucx 1.17.0: compile\nRUN make\n\nFROM x\nRUN true\n"
    (old / "Dockerfile").write_text(text)
    (old / "build.sh").write_text("certificates=('/etc/a b.crt')\ncertificate_names=(a.crt)\n")
    again = read_kit(old)
    assert '"plan"' not in (old / "plan.json").read_text()
    assert again.facts is None
    assert again.host_files == [("/etc/a b.crt", "a.crt")]
    steps = builder_for("docker").recipe(again.recipe).steps
    assert [step.title for step in steps] == [
        "hpcgen: base image x",
        "ucx 1.17.0: compile",
        "hpcgen: base image x",
        "hpcgen: true",
    ]


@pytest.mark.parametrize("stack", ["mpi-hello", "tf-horovod"])
@pytest.mark.parametrize("name", list(builders()))
def test_every_block_of_a_kit_has_steps(name: BuilderName, stack: str) -> None:
    """What the writers of the formats print is what is read here: no RUN without its block."""
    kit = golden(name, stack)
    assert kit.facts is not None
    steps = builder_for(name).recipe(kit.recipe, kit.facts.steps).steps
    blocks = {step.block.split()[0] for step in steps}
    compiled = {"rank_test"} if stack == "mpi-hello" else {"horovod", "tensorflow"}
    assert compiled <= blocks
    known = {block.name for block in kit.plan.blocks} | {"hpcgen", "site", "distribution"}
    assert blocks <= known, blocks - known
    assert len([step for step in steps if step.keyword in ("FROM", "BASE")]) == 2


def golden(name: BuilderName, stack: str = "mpi-hello") -> KitFolder:
    return read_kit(GOLDEN / KITS[builder_for(name).format] / stack)


@pytest.mark.parametrize("name", ["buildah", "podman"])
def test_buildah_tells_steps_and_its_cache(name: BuilderName, recipe: Recipe) -> None:
    states, progress = read(name, recipe, BUILDAH)
    progress.close(failed=False)
    assert progress.states == {
        **dict.fromkeys(range(7), "done"),
        1: "cached",
    }
    assert states[6] == "running"
    assert list(progress.states.values()).count("cached") == 1


def test_ch_image_tells_steps_and_its_cache(recipe: Recipe) -> None:
    _, progress = read("ch-image", recipe, CH_IMAGE)
    progress.close(failed=False)
    assert progress.states == {0: "cached", 1: "cached", 2: "done", 3: "cached", 4: "done", 5: "done", 6: "done"}


def test_buildkit_runs_stages_side_by_side_and_says_what_failed(recipe: Recipe) -> None:
    _, progress = read("docker", recipe, BUILDKIT)
    assert progress.states == {0: "cached", 1: "done", 2: "done", 4: "done", 5: "failed"}
    assert progress.seconds[1] == 1.5
    assert progress.seconds[2] == 2.0
    assert progress.failing() == 5
    assert [step.result for step in progress.built_steps()] == ["cached", "done", "done", "done", "failed"]


def test_apptainer_tells_steps_by_what_they_print() -> None:
    text = (GOLDEN / "hlrs-testbed" / "mpi-hello" / "Singularity.def").read_text()
    plain = definition_steps(text)
    builder = builder_for("apptainer")
    target = builder.target(golden("apptainer").plan, "/tmp/x.sif", "0")
    steps = [*plain.steps, *builder.later_steps(target)]
    marks = [index for index, step in enumerate(steps) if step.keyword == "MARK"]
    first_of_final = next(i for i, step in enumerate(steps) if step.stage == 2)
    lines = ["INFO:    Starting build..."]
    for number, index in enumerate(marks, 1):
        if index == first_of_final + 1:
            lines.append("INFO:    Fetching OCI image...")
        said = f"hpcgen: step {number} of {len(marks)}: {steps[index].title}"
        lines += [f"+ echo {said}", said, "+ what it does"]
    lines += [
        "hpcgen: step 1000 of 3: what no step says",
        "INFO:    Running testscript",
        "INFO:    Creating SIF file...",
    ]
    progress = BuildProgress(steps, builder.alone)
    begun(builder.reader(Recipe(steps)), "\n".join(lines), progress)
    progress.close(failed=False)
    assert progress.states == dict.fromkeys(range(len(steps)), "done")


def test_a_failed_step_is_the_one_that_ran(recipe: Recipe) -> None:
    _, progress = read("buildah", recipe, BUILDAH.split("[2/2] STEP 4/5")[0])
    progress.close(failed=True)
    assert progress.failing() == 5
    assert progress.line(5) == "[6/7] three 3: third … failed after 0 s"
    assert progress.line(1) == "[2/7] one 1: first … cached"


def test_each_step_is_told_once(recipe: Recipe) -> None:
    ended: list[int] = []
    progress = BuildProgress(recipe.steps, True, ended.append)
    for kind, index in (("begin", 0), ("cached", 1), ("begin", 2), ("begin", 2), ("begin", 3)):
        progress.take(Event(kind, index))  # type: ignore[arg-type]
    progress.close(failed=False)
    assert ended == [0, 1, 2, 3]


def test_a_second_start_tells_only_what_is_new(recipe: Recipe) -> None:
    """Steps that ended in the first one stay as they are; the one that failed begins anew."""
    ended: list[int] = []
    progress = BuildProgress(recipe.steps, True, ended.append)
    for kind, index in (("begin", 0), ("cached", 1), ("begin", 2)):
        progress.take(Event(kind, index))  # type: ignore[arg-type]
    progress.again()
    for kind, index in (("begin", 0), ("cached", 0), ("begin", 1), ("begin", 2), ("begin", 3)):
        progress.take(Event(kind, index))  # type: ignore[arg-type]
    progress.close(failed=True)
    assert ended == [0, 1, 2, 3]
    assert progress.states == {0: "done", 1: "cached", 2: "done", 3: "failed"}
