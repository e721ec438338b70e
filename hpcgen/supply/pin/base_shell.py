"""A base image's files unpacked into a temporary folder, and shell commands run in them, with the host's network.

The image is somebody else's: its commands see their own root alone. They run in a user namespace in which the
caller is root, as ch-run and rootless podman do it, so nobody needs to be root here, and root gives nothing away.
Where the kernel keeps plain users from making one, an engine that is installed for them enters it.
Facts: unshare(1), user_namespaces(7).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hpcgen.backends.engines import ENGINES
from hpcgen.core.errors import FetchError, InputError, MissingToolError, PolicyError, Problem
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.placing import remove
from hpcgen.core.support.processes import interruptible, require_program, stream
from hpcgen.core.support.quoting import command, sh

if TYPE_CHECKING:
    from hpcgen.blocks.steps import Run
    from hpcgen.images.oci_layout import LayoutImage

OWN = ".hpcgen"
"""Folder in the unpacked root for files that hpcgen itself puts there."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_UNREAD = tuple(f"*/usr/share/{name}/*" for name in ("doc", "man", "locale", "zoneinfo"))
"""A quarter of the files of a small base or more, of which no package tool reads one when it is asked."""
_LINES = 200_000
_SEVERAL = f"mkdir -p /{OWN}\n: > /{OWN}/ids\nchown 1:1 /{OWN}/ids"
_TAIL = 30

# Runs as root of a mount namespace of its own. Single devices are enough for package tools.
_ENTER = """
set -e
root=$1
shift
mount --make-rprivate / 2>/dev/null || true
for name in null zero full random urandom; do
  : >> "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
mount --rbind /proc "$root/proc" 2>/dev/null || true
# bash's <(…) and /dev/stdin
ln -sfn /proc/self/fd "$root/dev/fd"
ln -sfn fd/0 "$root/dev/stdin"
if [ "${HPCGEN_ALONE:-}" ]; then
  exec unshare --net chroot "$root" "$@"
fi
exec chroot "$root" "$@"
"""
# A user namespace in which every user of this machine is there, which only root may make. A process outside of it
# writes what it maps (user_namespaces(7)); unshare(1) leaves that to newuidmap, which wants an entry for root.
_MAPPED = """
import ctypes, os, sys
ready, told = os.pipe()
done, said = os.pipe()
me = os.getpid()
if os.fork() == 0:
    os.read(ready, 1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{me}/{name}", "w") as out:
            out.write("0 0 65536")
    os.write(said, b"x")
    os._exit(0)
if ctypes.CDLL(None, use_errno=True).unshare(0x10000000 | 0x00020000):
    sys.exit(os.strerror(ctypes.get_errno()))
os.write(told, b"x")
os.read(done, 1)
os.wait()
os.execvp(sys.argv[1], sys.argv[1:])
"""


def _ways(root: str) -> list[list[str]]:
    """The words that may come before a command, each beginning with a program; best are those that make a chroot."""
    chroot = ["sh", "-c", _ENTER, "enter", root]
    own = [["unshare", "--user", "--map-root-user", "--mount", *chroot]]
    if os.geteuid() == 0:
        own.append(["unshare", "--mount", *chroot])
    engines = filter(None, (ENGINES.find(name)().enter(root, chroot) for name in ENGINES.names()))
    return own + sorted(engines, key=lambda words: words[-len(chroot) :] != chroot)


def _ways_with_users(root: str) -> list[list[str]]:
    """Those that have other users than root, by what root may do or by the caller's subordinate ids."""
    chroot = ["sh", "-c", _ENTER, "enter", root]
    own = [["unshare", "--user", "--map-root-user", "--map-auto", "--mount", *chroot]]
    return [[sys.executable, "-I", "-c", _MAPPED, *chroot], *own] if os.geteuid() == 0 else own


class BaseShell:
    """Commands in an unpacked base image. Made by :func:`base_shell`."""

    def __init__(self, root: Path, image: str, environment: Mapping[str, str], several_ids: bool = False) -> None:
        self.root = root
        self.image = image
        self.use(environment)
        self._way = self._find_way(several_ids)

    def use(self, environment: Mapping[str, str]) -> None:
        """Run what follows with these variables, besides HOME, USER, PATH and the C locale."""
        self._environment = {"HOME": "/root", "USER": "root", **environment, "PATH": environment.get("PATH", _PATH)}
        self._environment |= {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}

    def run(
        self, script: str, on_line: Callable[[str], None] = lambda line: None, alone: bool = False
    ) -> tuple[int, list[str]]:
        """The exit status of a shell script in the image, and all lines that it wrote (stdout and stderr).

        ``alone``: without a network, where the way into the image is one that can take it away.
        """
        lines: list[str] = []

        def take(line: str) -> None:
            if len(lines) >= _LINES:
                raise InputError(
                    Problem(
                        f"a command in {self.image} wrote more than {_LINES} lines",
                        remedy="lock without --fetch-bazel, or on another base image",
                    )
                )
            lines.append(line)
            on_line(line)

        outside = {**self._outside(), **({"HPCGEN_ALONE": "1"} if alone else {})}
        status = stream([*self._way, *self._command(script)], take, env=outside, cwd="/")
        return status, lines

    def check(self, script: str, what: str) -> list[str]:
        """The same, for what must succeed; FetchError with the last lines otherwise."""
        status, lines = self.run(script)
        if status:
            raise failed(self.image, what, lines, status)
        return lines

    def read(self, paths: Sequence[str], most: int | None = None) -> dict[str, bytes]:
        """Files of the image by their path, of at most so many bytes; links are followed inside it alone."""
        from hpcgen.images.folder import MAX_FILE, read_folder

        return read_folder(str(self.root), paths, MAX_FILE if most is None else most)

    def put(self, path: str, data: bytes) -> None:
        """Write a file into the image, in place of what is there; InputError if a link leads out of it."""
        place = self.root / path.lstrip("/")
        for parent in reversed(place.relative_to(self.root).parents):
            folder = self.root / parent
            inside = folder.resolve().is_relative_to(self.root.resolve())
            if not inside or (folder.is_symlink() and not folder.exists()):
                raise InputError(
                    Problem(
                        f"in {self.image} the link {parent} leads out of the image",
                        remedy="hpcgen does not enter such an image: name another with --image NAME=REFERENCE",
                    )
                )
            folder.mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            place.unlink()
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "wb") as out:
            out.write(data)

    def _find_way(self, several_ids: bool) -> list[str]:
        tried: list[str] = []
        ways = [*(_ways_with_users(str(self.root)) if several_ids else []), *_ways(str(self.root))]
        # Where no way has several users, packages may still be installed whose files are all root's.
        for probe in [_SEVERAL, "true"] if several_ids else ["true"]:
            tried = []
            for way in ways:
                if shutil.which(way[0]) is None:
                    continue
                said: list[str] = []
                status = stream([*way, *self._command(probe)], said.append, env=self._outside(), cwd="/")
                if status == 0:
                    return way
                tried.append(f"{way[0]}: {said[-1] if said else f'exit status {status}'}")
        if not tried:
            raise MissingToolError(
                Problem(
                    f"no tool here can run a command in {self.image}",
                    expected=f"one of these on PATH: {', '.join(dict.fromkeys(way[0] for way in ways))}",
                    remedy="install util-linux, or one of the engines",
                )
            )
        raise PolicyError(
            [
                Problem(
                    f"no command can be run in {self.image} on this machine",
                    expected="a user namespace, created by the kernel directly or by an engine",
                    remedy="make the lock on a machine that lets users build images, or as root",
                ),
                *(Problem(each) for each in tried),
            ]
        )

    def _command(self, script: str) -> list[str]:
        variables = [f"{name}={value}" for name, value in sorted(self._environment.items())]
        return ["/usr/bin/env", "-i", *variables, "/bin/sh", "-c", f"cd /\n{script}"]

    @staticmethod
    def _outside() -> dict[str, str]:
        # chroot and mount are in sbin, which is not on every user's PATH; ch-run wants to know a user.
        path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
        return {"USER": "user", **os.environ, "PATH": path, "LC_ALL": "C"}


def failed(image: str, what: str, lines: Sequence[str], status: int) -> FetchError:
    """The error for commands in an image that did not do what they should, with what they said."""
    told = [line for line in lines if line.startswith(("E:", "W:", "Err:"))] or list(lines)
    said = "\n".join(f"    {line}" for line in told[-_TAIL:])
    return FetchError(
        Problem(
            f"{what} failed in {image} (exit status {status}):\n{said}",
            remedy="check the site's mirrors, certificates and proxy (hpcgen show site), then try again",
        )
    )


@contextlib.contextmanager
def base_shell(
    layout: Path, image: str, environment: Mapping[str, str], *, several_ids: bool = False
) -> Iterator[BaseShell]:
    """Unpack an image of an OCI layout into a temporary folder (``TMPDIR``), which is removed at the end.

    environment: variables of the commands, besides HOME, USER, PATH and the C locale. several_ids: whether files may
    have to be given to other users than root, as packages want it. InputError, MissingToolError, PolicyError: it cannot
    be unpacked, or no tool here can run a command in it.
    """
    with _scratch() as scratch:
        root = scratch / "root"
        _unpack(layout, image, root, () if several_ids else _UNREAD)
        for name in ("/etc/resolv.conf", "/etc/hosts"):
            _take_over(root, name)
        for place in (root / "dev", root / "proc"):
            # Empty, so that no link in it leads to a file of this machine.
            shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink(missing_ok=True)
            place.mkdir()
        shell = BaseShell(root, image, environment, several_ids)
        try:
            yield shell
        finally:
            if several_ids:
                # What belongs to other users of the namespace could not be removed from outside.
                shell.run("find / -xdev ! -uid 0 -exec chown -h 0:0 {} + 2>/dev/null")


def laid_out(shell: BaseShell, step: Run) -> list[str]:
    """The commands of a step of the recipe, whose files are put into the image."""
    for file in step.files:
        shell.put(file.target, file.text.encode())
    return [*(command("chmod", "755", file.target) for file in step.files if file.executable), *step.commands]


def _take_over(root: Path, name: str) -> None:
    """Names are looked up as on this machine."""
    with contextlib.suppress(OSError):
        data = Path(name).read_bytes()
        place = root / name.lstrip("/")
        if place.parent.is_symlink():
            return
        place.unlink(missing_ok=True)
        place.write_bytes(data)


def _unpack(layout: Path, image: str, root: Path, unread: Sequence[str]) -> None:
    """The image's files; of a single layer by tar alone, which is several times faster.

    ``unread``: patterns of files that may be left out.
    """
    from hpcgen.images.oci_layout import folder_layout

    unpacked = folder_layout(layout).image(image)
    tar = require_program("tar", "unpack a base image", "install tar")
    words = [tar, "--extract", "--file=-", f"--directory={root}", "--no-same-owner", "--no-same-permissions"]
    if unpacked.layer_count() == 1 and (alone := _without_devices()) is not None:
        root.mkdir()
        left_out = [f"--exclude={pattern}" for pattern in ("dev/*", "./dev/*", *unread)]
        left_out = ["--anchored", *left_out, "--no-anchored", "--exclude=.wh.*"]
        if not _extract([*alone, *words, *left_out], lambda out: _copy(unpacked, out)):
            return
        remove(root)
    root.mkdir()
    said = _extract(words, lambda out: _flattened(unpacked, out))
    if said:
        raise InputError(
            Problem(
                f"{image} cannot be unpacked in {root.parent}: {said}",
                remedy="set TMPDIR to a folder with enough space, on a local disk",
            )
        )


def _without_devices() -> list[str] | None:
    """Words before a command that can make no devices, which root might; None where there are none."""
    if os.geteuid():
        return []
    words = ["unshare", "--user", "--map-root-user"]
    works = shutil.which(words[0]) and not subprocess.run([*words, "true"], capture_output=True).returncode
    return words if works else None


def _copy(image: LayoutImage, out: IO[bytes]) -> None:
    from hpcgen.images.archive import decompressed

    with image.layer(0) as stream:
        shutil.copyfileobj(decompressed(stream, image.path), out, 1 << 20)


def _flattened(image: LayoutImage, out: IO[bytes]) -> None:
    from hpcgen.images.roots import flatten

    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        flatten(image, archive, _ordinary)


def _extract(words: Sequence[str], write: Callable[[IO[bytes]], None]) -> str:
    """Give tar what ``write`` writes; what it complained of, "" if all went well."""
    with tempfile.TemporaryFile() as complaint:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=complaint, start_new_session=True)
        broken = None
        try:
            assert process.stdin is not None
            write(process.stdin)
            process.stdin.close()
        except BrokenPipeError as failure:
            broken = failure
        except BaseException:
            process.kill()
            process.wait()
            raise
        status = process.wait()
        complaint.seek(0)
        said = complaint.read(4096).decode("utf-8", "replace").strip().splitlines()
    return (said[-1] if said else f"exit status {status}") if status or broken else ""


def _ordinary(member: tarfile.TarInfo) -> bool:
    """No devices, which only root could make; and every folder stays one that its owner can remove."""
    if member.isdir():
        member.mode |= stat.S_IRWXU
    return not (member.ischr() or member.isblk() or member.isfifo())


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A private folder, removed at the end whatever happens, SIGTERM included; not where something is mounted in it."""
    main = threading.current_thread() is threading.main_thread()
    with interruptible() if main else contextlib.nullcontext(), scratch_folder("hpcgen-base-") as folder:
        yield folder


def script_of(commands: Sequence[str]) -> str:
    """A step's commands as a script: each must succeed, and each step starts in ``/``."""
    return "\n".join(["set -eu", "cd /", *commands])


def quoted(words: Sequence[str]) -> str:
    """Words of one command, each quoted for the shell."""
    return " ".join(sh(word) for word in words)
