"""Docker and Podman.

GPUs: ``--gpus`` is Docker's (19.03 and later); Podman takes the CDI name ``nvidia.com/gpu=all``, made on the host with
``nvidia-ctk cdi generate`` (NVIDIA Container Toolkit, "Support for Container Device Interface").
"""

from __future__ import annotations

from hpcgen.engines.base import Call, Engine, bind_words
from hpcgen.model.image_paths import SUBMIT_FOLDER
from hpcgen.support.shell_words import Shell, joined


class Docker(Engine):
    """Nothing of the host enters but what is named, so a launcher on the host cannot reach its ranks inside."""

    host_environment = False
    started_by_launcher = False
    image_is_file = False

    def command_name(self) -> str:
        """``docker`` or ``podman``."""
        return self.name

    def image_names(self, stack: str, site: str) -> list[str]:
        """The tag that the build script gives."""
        return [f"{stack}:{site}"]

    def words(self, call: Call) -> list[list[str]]:
        """run, with the folder of the job at /mnt/0."""
        groups: list[list[str]] = [[self.name, "run", "--rm"]]
        # Labels of SELinux, where it is, would hide the folder.
        groups.append(["--security-opt", "label=disable"])
        if self.name == "docker":
            # So that files written to the folder are the user's. Rootless podman's root is the user already.
            groups.append(["--user", Shell('"$(id -u):$(id -g)"'), "-e", "HOME=/tmp"])
        if call.shared_memory:
            # A container of its own has 64 MB of shared memory, too little for ranks or data loaders.
            groups.append(["--ipc=host"])
        return [*groups, *self._device_words(call), *self._job_words(call)]

    def _job_words(self, call: Call) -> list[list[str]]:
        """What every podman and docker understands: binds, the folder of the job, variables, and last the image."""
        return [
            *bind_words("-v", call.binds),
            ["-v", joined(call.folder, f":{SUBMIT_FOLDER}"), "-w", SUBMIT_FOLDER],
            *(["-e", name] for name in call.inherited),
            *(["-e", f"{name}={value}"] for name, value in call.inside.items()),
            [call.image],
        ]

    def _device_words(self, call: Call) -> list[list[str]]:
        groups: list[list[str]] = []
        if call.gpu == "nvidia":
            groups.append(["--gpus", "all"] if self.name == "docker" else ["--device", "nvidia.com/gpu=all"])
        elif call.gpu == "amd":
            groups.append(["--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video"])
        elif call.gpu == "intel":
            groups.append(["--device", "/dev/dri"])
        if call.devices:
            # RDMA registers memory, which must then stay in place.
            groups.append(["--ulimit", "memlock=-1:-1"])
        groups += [["--device", device] for device in call.devices]
        return groups
