"""A root folder with a shell, small tools and stand-ins, in which scripts run for real as a user with no rights."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

# fmt: off
TOOLS = (
    "bash", "awk", "basename", "cat", "chmod", "cp", "cut", "date", "dirname", "env", "find", "grep", "head", "id",
    "install", "ln", "ls", "mkdir", "mktemp", "mv", "nproc", "printf", "readlink", "realpath", "rm", "sed",
    "sha256sum", "sleep", "sort", "stat", "tail", "tee", "test", "timeout", "touch", "tr", "true", "uname", "uniq",
    "wc",
)
ONWARD = (
    "srun", "mpiexec", "mpirun", "aprun", "flux", "ch-run", "singularity", "apptainer", "docker", "podman", "buildah",
    "numactl", "taskset", "stdbuf",
)
QUIET = (
    "module", "valet", "ch-image", "ch-convert", "apt-get", "apt", "apt-mark", "dpkg", "dnf", "rpm", "curl", "tar",
    "make", "gcc", "cc", "cmake", "python3", "pip", "git", "ldconfig", "update-ca-certificates", "nvidia-smi",
    "rocm-smi", "lscpu", "hpcgen", "scontrol", "sbatch", "qsub", "gzip", "bzip2", "xz", "patch", "useradd", "ulimit",
    "hostname",
)
# fmt: on
STAND_IN = """\
#!/bin/bash
# A launcher or an engine: goes on with the command that it was given.
for ((i = 1; i <= $#; i++)); do
    case ${!i} in
        */env | env | sh | */sh | bash | */bash | %s) exec "${@:i}" ;;
    esac
done
exit 0
"""
# Goes on where a script would end, because something is not there, so that all of its lines are reached.
GOES_ON = """\
command_not_found_handle() { return 0; }
set() { :; }
exit() { :; }
exec() { "$@"; }
"""
DRIVER = """\
for file in "$@"; do
    for mode in as_is goes_on; do
        mkdir -p "/work/$mode" && cd "/work/$mode"
        env -i PATH=/stand:/bin HOME=/work/home LC_ALL=C.UTF-8 BASH_ENV="/mode/$mode" HPCGEN_IMAGE=/work/image \
            SLURM_JOB_ID=1 PBS_JOBID=1 SLURM_JOB_NUM_NODES=1 HPCGEN_PREFLIGHT=warn \
            timeout -k 1 10 bash "$file" < /dev/null > "/work/said" 2>&1
        status=$?
        traces=(/trace/*)
        echo "$mode $status ${#traces[@]} $file"
        [ ${#traces[@]} -eq 0 ] || rm -f /trace/*
    done
done
"""


def make_root(folder: Path) -> Path:
    """Make it; only /work, /trace and /tmp in it can be written."""
    for name in ("bin", "stand", "mode", "scripts", "dev", "etc", "usr/bin"):
        (folder / name).mkdir(parents=True)
    for name in ("work/home", "work/image", "trace", "tmp", "opt"):
        (folder / name).mkdir(parents=True)
    for path in (folder / "work").rglob("*"):
        path.chmod(0o777)
    for name in ("work", "trace", "tmp"):
        (folder / name).chmod(0o777)
    for name in TOOLS:
        _take(folder, name)
    (folder / "bin" / "sh").symlink_to("bash")
    (folder / "usr" / "bin" / "env").symlink_to("/bin/env")
    (folder / "usr" / "bin" / "bash").symlink_to("/bin/bash")
    for name in ONWARD:
        _program(folder / "stand" / name, STAND_IN % " | ".join(ONWARD))
    for name in QUIET:
        _program(folder / "stand" / name, "#!/bin/bash\nexit 0\n")
    # In an image's PATH too, with which programs of a job are looked up in the end.
    for name in ("stand", "usr/bin"):
        _program(folder / name / "canary", '#!/bin/bash\necho "$0 $*" > /trace/ran\n')
    (folder / "mode" / "as_is").write_text("")
    (folder / "mode" / "goes_on").write_text(GOES_ON)
    os.mknod(folder / "dev" / "null", 0o020666, os.makedev(1, 3))
    (folder / "dev" / "null").chmod(0o666)
    return folder


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _take(folder: Path, name: str) -> None:
    """A program of this machine and the libraries that it is linked with."""
    found = shutil.which(name)
    assert found, f"{name} is not installed"
    shutil.copy(Path(found).resolve(), folder / "bin" / name)
    linked = subprocess.run(["ldd", found], capture_output=True, text=True).stdout
    for library in re.findall(r"(/\S+) \(0x", linked):
        target = folder / library.lstrip("/")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(library).resolve(), target)


def run_scripts(root: Path, scripts: Sequence[str], at_once: int = 2) -> list[str]:
    """Run them one after the other, each as it is and once more past all that ends it; a line for each trace.

    Raises
    ------
    AssertionError: not all of them ran.
    """
    names = []
    for number, text in enumerate(scripts):
        (root / "scripts" / str(number)).write_text(text, "utf-8", "surrogateescape")
        names.append(f"/scripts/{number}")
    shares = [names[start::at_once] for start in range(at_once)]
    roots = [root, *(_again(root, number) for number in range(1, at_once))]
    command = ["chroot", "--userspec=65534:65534"]
    with_options = "shopt -s nullglob\n" + DRIVER
    running = [
        subprocess.Popen(
            [*command, str(place), "/bin/bash", "-c", with_options, "driver", *share], stdout=subprocess.PIPE, text=True
        )
        for place, share in zip(roots, shares, strict=True)
    ]
    lines = [line for process in running for line in process.communicate()[0].splitlines()]
    assert len(lines) == 2 * len(names), f"{len(lines)} runs of {2 * len(names)}"
    return [line for line in lines if line.split()[2] != "0"]


def _again(root: Path, number: int) -> Path:
    """A second one with the same scripts, so that a trace is of one script alone."""
    copy = root.with_name(f"{root.name}-{number}")
    shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns("null"))
    os.mknod(copy / "dev" / "null", 0o020666, os.makedev(1, 3))
    (copy / "dev" / "null").chmod(0o666)
    for name in ("work", "work/home", "work/image", "trace", "tmp"):
        (copy / name).chmod(0o777)
    return copy
