"""The only programs that detection starts: they tell and change nothing. Timeouts, bounded output, no input."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping

import msgspec

from hpcgen.machine.detect.tree import printable_lines

MAX_OUTPUT = 4 * 1024 * 1024

SLURM_CONF = (
    "/etc/slurm/slurm.conf",
    "/run/slurm/conf/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",
    "/etc/opt/slurm/slurm.conf",
    "/opt/slurm/etc/slurm.conf",
    "/usr/local/etc/slurm.conf",
)


class ProbeCommand(msgspec.Struct, frozen=True):
    """A program and its words.

    argv: ``{node}`` stands for this machine's short name, ``{init}`` for the module system's script.
    slurm: it asks Slurm; started only where a slurm.conf is, since it asks the network's name service for one else.
    timeout_s: after which it is ended, with all that it started.
    """

    argv: tuple[str, ...]
    slurm: bool = False
    timeout_s: float = 10.0


class ProgramOutput(msgspec.Struct, frozen=True):
    """What a program said: ``text``, or None and ``why`` there is nothing; ``missing``: it is not installed."""

    text: str | None
    why: str = ""
    missing: bool = False


def not_installed(program: str) -> ProgramOutput:
    """The answer of a program that is not there."""
    return ProgramOutput(None, f"{program} is not installed", missing=True)


SINFO_FORMAT = "%P|%a|%D|%c|%m|%G|%X|%Y|%Z|%l|%s"

COMMANDS: dict[str, ProbeCommand] = {
    "apptainer-version": ProbeCommand(("apptainer", "--version")),
    "singularity-version": ProbeCommand(("singularity", "--version")),
    "charliecloud-version": ProbeCommand(("ch-run", "--version")),
    "docker-version": ProbeCommand(("docker", "--version")),
    "podman-version": ProbeCommand(("podman", "--version")),
    "podman-hpc-version": ProbeCommand(("podman-hpc", "--version")),
    # It has no option for its version.
    "shifter-version": ProbeCommand(("shifter", "--help")),
    "sarus-version": ProbeCommand(("sarus", "--version")),
    "sarusctl-version": ProbeCommand(("sarusctl", "--version")),
    "enroot-version": ProbeCommand(("enroot", "version")),
    "srun-mpi-list": ProbeCommand(("srun", "--mpi=list"), slurm=True),
    "sinfo": ProbeCommand(("sinfo", "--noheader", "--format", SINFO_FORMAT), slurm=True),
    "scontrol-node": ProbeCommand(("scontrol", "--oneliner", "show", "node", "{node}"), slurm=True),
    "scontrol-config": ProbeCommand(("scontrol", "show", "config"), slurm=True),
    "qconf-queues": ProbeCommand(("qconf", "-sq", "*")),
    "qstat-version": ProbeCommand(("qstat", "--version")),
    "qstat-queues": ProbeCommand(("qstat", "-Qf")),
    "condor-version": ProbeCommand(("condor_version",)),
    "module-avail": ProbeCommand(
        ("bash", "--noprofile", "--norc", "-c", '. "$1" && module -t avail', "hpcgen", "{init}"), timeout_s=60.0
    ),
}
"""By the name that a captured tree has for what it says: ``commands/NAME``."""


def ask(command: ProbeCommand, environment: Mapping[str, str], words: Mapping[str, str]) -> ProgramOutput:
    """Run a command and return what it prints, on either stream; it succeeded, or there is no text.

    ``environment``: the whole environment of the program. ``words``: for the braces in its words.
    """
    argv = [words.get(word[1:-1], "") if word.startswith("{") else word for word in command.argv]
    program = shutil.which(argv[0], path=environment.get("PATH"))
    if program is None:
        return not_installed(argv[0])
    if not all(argv):
        return ProgramOutput(None, f"nothing to ask {argv[0]} about")
    try:
        process = subprocess.Popen(
            [program, *argv[1:]],
            env=dict(environment),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as failure:
        return ProgramOutput(None, f"{argv[0]} cannot be started: {failure.strerror}")
    try:
        output, complaint = _read_until(process, time.monotonic() + command.timeout_s)
    finally:
        _end(process)
    if complaint:
        return ProgramOutput(None, f"{argv[0]} {complaint}")
    lines, _ = printable_lines(output)
    if process.returncode:
        said = next((line.strip() for line in lines if line.strip()), "nothing")
        return ProgramOutput(None, f"{argv[0]} ended with status {process.returncode}: {said[:200]}")
    return ProgramOutput("\n".join(lines))


def _read_until(process: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, str]:
    """All output, or why it was not waited for."""
    assert process.stdout is not None
    pieces: list[bytes] = []
    size = 0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if not selector.select(left):
                continue
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                try:
                    process.wait(max(left, 0.1))
                except subprocess.TimeoutExpired:
                    break
                return b"".join(pieces), ""
            pieces.append(piece)
            size += len(piece)
            if size > MAX_OUTPUT:
                return b"", f"printed more than {MAX_OUTPUT} bytes"
    return b"", "gave no answer in time"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a program's own session."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
