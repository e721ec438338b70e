"""What the engines that read a Dockerfile and keep images in a store have in common."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpcgen.backends.engines.base import NO_IMAGE, Call, Engine, bind_words, file_system_words
from hpcgen.backends.engines.building import EngineCommand, FromFile, LeftImage, Target, Word, Work, query
from hpcgen.backends.engines.common import gpu_devices
from hpcgen.backends.engines.steps import Labels, Recipe, dockerfile_steps
from hpcgen.core.errors import InputError
from hpcgen.core.model.image_paths import CONTENT_LABEL, STORED_BASES, SUBMIT_FOLDER
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.record import ImageKindName
from hpcgen.core.support.quoting import Shell, joined, sh

LONGEST_LABEL = 100_000
"""In bytes. Linux takes no word of a command line above 128 KiB; the image has the whole kit in any case."""
TERMINAL = Shell("${terminal:+-t}")
"""A script that starts an attached command sets ``terminal`` where there is one."""
LABELLED = ("plan.json", "hpcgen.lock", "Dockerfile")
"""Files of the kit whose text becomes a label, so that it can be read without starting the image."""


def own_label(step: str) -> bool:
    """Whether a step of an image's history gives it a label of hpcgen's."""
    return re.search(r"\bLABEL\b.*\bio\.hpcgen\.", step) is not None


class DockerfileEngine(Engine):
    """An image by name, in the engine's own store.

    Nothing of the host enters but what is named, so a launcher on the host cannot reach its ranks inside.
    """

    format = "docker"
    host_environment = False
    started_by_launcher = False
    image_is_file = False
    bind_option = "-v"
    store: ImageKindName
    reads_dockerfiles = True
    # The first process of a container ends by no signal that it does not expect; the engine's own one passes them on.
    signal_words = ("--init",)

    def image_names(self, stack: str, site: str) -> list[str]:
        """The tag that the build script gives."""
        return [f"{stack}:{site}"]

    def unsealed_reason(self) -> str:
        return ""

    def words(self, call: Call) -> list[list[str]]:
        """run, with the folder of the job at /mnt/0."""
        # Labels of SELinux, where it is, would hide the folder.
        groups: list[list[str]] = [[self.command_name(), "run", "--rm"], ["--security-opt", "label=disable"]]
        groups += self._user_words()
        if call.sealed:
            groups.append(["--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges"])
        elif call.shared_memory:
            # A container of its own has 64 MB of shared memory, too little for ranks or data loaders.
            groups.append(["--ipc=host"])
        return [*groups, *self._attached_words(call), *self._device_words(call), *self._job_words(call)]

    def _attached_words(self, call: Call) -> list[list[str]]:
        """Options of a command among others: its input, the terminal if there is one, signals, the network."""
        attached = [["-i", TERMINAL], [*self.signal_words]] if call.attached else []
        return [*attached, *([["--network=host"]] if call.host_network else [])]

    def _user_words(self) -> list[list[str]]:
        """Options that make files written to the folder of the job the user's."""
        return []

    def missing_image(self, named: bool) -> tuple[str, str]:
        return f'! {sh(self.command_name())} image inspect "$image" > /dev/null 2>&1', NO_IMAGE

    def _gpu_words(self, call: Call) -> list[str]:
        """Options that show all GPUs inside."""
        named = [word for device in gpu_devices(call) for word in ("--device", device)]
        return [*named, *(self._amd_groups(call) if call.gpu == "amd" else [])]

    def _amd_groups(self, call: Call) -> list[str]:
        """Options for the groups that may open the device files of AMD's GPUs."""
        return ["--group-add", "video"]

    def _job_words(self, call: Call) -> list[list[str]]:
        """What every podman and docker understands: binds, the folder of the job, variables, and last the image."""
        return [
            *bind_words(self.bind_option, call.binds),
            *file_system_words(call),
            ["-v", joined(call.folder, f":{SUBMIT_FOLDER}"), "-w", SUBMIT_FOLDER],
            *(["-e", name] for name in call.inherited),
            *(["-e", f"{name}={value}"] for name, value in call.inside.items()),
            [call.image],
        ]

    def _device_words(self, call: Call) -> list[list[str]]:
        groups = [self._gpu_words(call)] if call.gpu else []
        if call.devices:
            # RDMA registers memory, which must then stay in place.
            groups.append(["--ulimit", "memlock=-1:-1"])
        groups += [["--device", device] for device in call.devices]
        return groups

    def target(self, plan: Plan, output: str | None, token: str) -> Target:
        """The name in the store; ``podman:NAME`` and ``docker:NAME`` name it with its store."""
        name = output or f"{plan.stack.name}:{plan.site.name}"
        store, separator, rest = name.partition(":")
        if separator and store in ("podman", "docker", "ch-image", "oci-archive"):
            if store != self.store:
                raise InputError(
                    f"{self.builder_name()} does not put images into {store}",
                    "--output",
                    remedy=f"omit {store}:, or build first and use hpcgen convert",
                )
            name = rest
        if not name or name.startswith(("/", ".")) or name.endswith((".sif", ".sqfs", ".tar.gz", ".tar")):
            raise InputError(
                f"{self.builder_name()} makes no file: {name!r} cannot be the name of an image",
                "--output",
                expected="a name such as mpi-hello:here",
                remedy="build first, then make the file with hpcgen convert",
            )
        return Target(self.store, name, self.temporary_name(token), is_file=False)

    def temporary_name(self, token: str) -> str:
        """What the image is called until it is whole."""
        return f"localhost/hpcgen-build:{token}"

    def left_images(self) -> list[LeftImage]:
        """Those that lost their name to a newer build; buildah cannot tell which these are.

        Their last step gives them labels of hpcgen's. One that a user made from such an image has more steps.
        """
        words = ("images", "--quiet", "--no-trunc", "--filter", "dangling=true", "--filter", f"label={CONTENT_LABEL}")
        status, text = query([self.builder_name(), *words])
        found = []
        for name in dict.fromkeys(text.split() if status == 0 else ()):
            told = query([self.builder_name(), "history", "--no-trunc", "--format", "{{.CreatedBy}}", name])
            if told[0] == 0 and own_label(told[1].partition("\n")[0]):
                found.append(LeftImage(name))
        loaded = ("--quiet", "--no-trunc", "--filter", f"reference={STORED_BASES}*")
        status, text = query([self.builder_name(), "images", *loaded])
        return [*found, *(LeftImage(name, cache=True) for name in dict.fromkeys(text.split() if status == 0 else ()))]

    def remove_images(self, names: Sequence[str]) -> list[list[str]]:
        """Without what they were made from, which may be a base that lost its name."""
        return [[self.builder_name(), "rmi", "--no-prune", *names]]

    def recipe(self, text: str, labels: Labels | None = None) -> Recipe:
        """The steps of the Dockerfile."""
        return dockerfile_steps(text, labels)

    def labels(self, work: Work) -> list[Word]:
        """The words that put texts of the kit into labels; a user's own Dockerfile has none."""
        there = [name for name in LABELLED if (work.kit / name).is_file()]
        short = [name for name in there if (work.kit / name).stat().st_size < LONGEST_LABEL]
        return [word for name in short for word in ("--label", FromFile(f"io.hpcgen.kit.{name}=", work.kit / name))]

    def publish(self, work: Work) -> list[EngineCommand]:
        """The final name for the image of the temporary one."""
        return [EngineCommand((self.builder_name(), "tag", work.target.temporary, work.target.name))]
