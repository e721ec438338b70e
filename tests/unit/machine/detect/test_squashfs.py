"""Whether what mounts an engine's squashfs files reads zstd: by the kernel's configuration and squashfuse's needs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hpcgen.machine.detect.capture import reduce_file
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.probes import squashfs
from hpcgen.machine.detect.profile import profile_of
from hpcgen.machine.detect.tree import MAX_TEXT
from tests.conftest import Command
from tests.helpers.trees import library, link, make_tree, seen_in

Files = dict[str, str | bytes]
RELEASE = "5.14.0-427.el9.x86_64"
KERNEL: Files = {"/proc/sys/kernel/osrelease": f"{RELEASE}\n"}
YES = "CONFIG_SQUASHFS=m\nCONFIG_SQUASHFS_ZLIB=y\nCONFIG_SQUASHFS_ZSTD=y\n"
NO = "CONFIG_SQUASHFS=m\n# CONFIG_SQUASHFS_ZSTD is not set\n"
BOOT = f"/boot/config-{RELEASE}"
LIBEXEC = "/usr/libexec/apptainer/bin"
SETUID: Files = {"/usr/bin/apptainer": "", f"{LIBEXEC}/starter": "", f"{LIBEXEC}/starter-suid": ""}
USER: Files = {"/usr/bin/apptainer": "", f"{LIBEXEC}/starter": ""}
WITH, WITHOUT = (library("", needed=("libz.so.1", *more, "libc.so.6")) for more in (("libzstd.so.1",), ()))
FIELD = "containers.engines.apptainer.squashfs"


def machine(folder: Path, files: Files, command: str = "apptainer-version") -> Path:
    said = {command: "apptainer version 1.3.6\n" if "apptainer" in command else "0.37\n"}
    return make_tree(folder, KERNEL | files, said, {"PATH": "/opt/tools/bin:/usr/bin"})


@pytest.mark.parametrize(
    ("files", "squashfs"),
    [
        (SETUID | {BOOT: YES}, "zstd"),
        (SETUID | {BOOT: NO}, "gzip"),
        (SETUID | {BOOT: "CONFIG_SQUASHFS=y\n"}, "gzip"),
        (SETUID | {BOOT: "CONFIG_SMP=y\n"}, None),
        (SETUID | {"/proc/config.gz": gzip.compress(YES.encode())}, "zstd"),
        (SETUID | {"/proc/config.gz": gzip.compress(NO.encode())}, "gzip"),
        (SETUID | {"/proc/config.gz": b"\x1f\x8b damaged"}, None),
        (SETUID | {f"/lib/modules/{RELEASE}/config": YES}, "zstd"),
        (SETUID | {f"/lib/modules/{RELEASE}/build/.config": NO}, "gzip"),
        (SETUID | {"/boot/config-6.1.0": YES}, None),
        (SETUID, None),
        # A setuid installation may mount by either, as its configuration says.
        (SETUID | {BOOT: YES, "/usr/bin/squashfuse": WITH}, "zstd"),
        (SETUID | {BOOT: YES, "/usr/bin/squashfuse": WITHOUT}, "gzip"),
        (SETUID | {BOOT: NO, "/usr/bin/squashfuse": WITH}, "gzip"),
        (SETUID | {"/usr/bin/squashfuse": WITH}, None),
        # Without setuid only squashfuse mounts, its own before that of PATH.
        (USER | {BOOT: YES}, None),
        (USER | {BOOT: NO, "/usr/bin/squashfuse": WITH}, "zstd"),
        (USER | {"/usr/bin/squashfuse": WITHOUT}, "gzip"),
        (USER | {"/usr/bin/squashfuse": WITHOUT, "/opt/tools/bin/squashfuse": WITH}, "zstd"),
        (USER | {"/usr/bin/squashfuse_ll": WITHOUT, f"{LIBEXEC}/squashfuse_ll": WITH}, "zstd"),
        # One that holds what decompresses, and one that is not a program, tell nothing.
        (USER | {"/usr/bin/squashfuse": library("", needed=("libc.so.6",))}, None),
        (USER | {"/usr/bin/squashfuse": "#!/bin/sh\n"}, None),
        # A script in front of an installation that lies elsewhere.
        ({"/opt/tools/bin/apptainer": "#!/bin/sh\n", BOOT: YES, "/usr/bin/squashfuse": WITH}, None),
        ({BOOT: YES, "/usr/bin/squashfuse": WITH}, None),
    ],
)
def test_all_that_may_mount_the_files_of_apptainer_has_to_read_zstd(
    files: Files, squashfs: str | None, tmp_path: Path
) -> None:
    seen = seen_in(machine(tmp_path, files))
    assert seen.value(FIELD) == squashfs
    assert (FIELD in seen.unseen) == (squashfs is None)
    written = profile_of(seen, "lab", "2026-11-27").text
    assert ("squashfs: zstd" in written) == (squashfs == "zstd")
    assert "squashfs: gzip" not in written


def test_singularity_is_looked_at_in_its_own_folder(tmp_path: Path) -> None:
    own = "/opt/singularity/4.1/libexec/singularity/bin"
    files: Files = {"/opt/singularity/4.1/bin/singularity": "", f"{own}/starter-suid": "", BOOT: YES}
    said = {"singularity-version": "singularity-ce version 4.1.3\n"}
    tree = make_tree(tmp_path, KERNEL | files, said, {"PATH": "/usr/bin"})
    link(tree, "/usr/bin/singularity", "/opt/singularity/4.1/bin/singularity")
    assert seen_in(tree).value("containers.engines.singularity.squashfs") == "zstd"


@pytest.mark.parametrize(
    ("files", "squashfs"),
    [
        ({"/usr/lib64/libsquashfuse_ll.so.0": WITH}, "zstd"),
        ({"/usr/lib64/libsquashfuse_ll.so.0": WITHOUT}, "gzip"),
        ({"/opt/fuse/lib/libsquashfuse_ll.so.0": WITH, "/usr/lib64/libsquashfuse_ll.so.0": WITHOUT}, "zstd"),
        ({"/usr/lib64/libsquashfuse_ll.so.0": library("", needed=("libsquashfuse_ll.so.0",))}, None),
        ({}, None),
    ],
)
def test_ch_run_mounts_by_the_library_that_it_is_linked_with(
    files: Files, squashfs: str | None, tmp_path: Path
) -> None:
    program = library("", needed=("libsquashfuse_ll.so.0", "libc.so.6"), runpath=("$ORIGIN", "/opt/fuse/lib"))
    tree = machine(tmp_path, {BOOT: YES, "/usr/bin/ch-run": program, **files}, "charliecloud-version")
    assert seen_in(tree).value("containers.engines.charliecloud.squashfs") == squashfs


def test_a_ch_run_that_mounts_nothing_says_nothing(tmp_path: Path) -> None:
    files: Files = {BOOT: YES, "/usr/bin/ch-run": library("", needed=("libc.so.6",)), "/usr/bin/squashfuse": WITH}
    seen = seen_in(machine(tmp_path, files, "charliecloud-version"))
    assert "containers.engines.charliecloud.squashfs" in seen.unseen


def test_a_configuration_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    bomb = gzip.compress(b"#" * (64 * MAX_TEXT))
    assert len(bomb) < MAX_TEXT
    tree = Machine.captured(machine(tmp_path, SETUID | {"/proc/config.gz": bomb}))
    assert tree.text("/proc/config.gz") is None
    assert tree.refused == {"/proc/config.gz": f"is larger than {MAX_TEXT} bytes"}


def test_of_a_configuration_only_its_lines_on_squashfs_are_captured() -> None:
    config = (
        'CONFIG_LOCALVERSION="-secret"\nCONFIG_SQUASHFS=m\nCONFIG_SQUASHFS_XZ=y\n# CONFIG_SQUASHFS_ZSTD is not set\n'
    )
    for path in squashfs.CONFIGS:
        assert reduce_file(path.format(release=RELEASE), config, "jane") == NO
    assert reduce_file(f"/usr/src/kernels/{RELEASE}/.config", config, "jane") == NO


def test_a_captured_tree_has_what_tells_how_images_are_mounted(hpcgen: Command, tmp_path: Path) -> None:
    """Programs and libraries as their names and needs alone, folders of PATH that have them, and where links led."""
    tools = tmp_path / "apptainer" / "bin"
    own = tmp_path / "apptainer" / "libexec" / "apptainer" / "bin"
    for folder in (tools, own, tmp_path / "empty"):
        folder.mkdir(parents=True)
    (own / "starter").write_bytes(b"\x7fELF")
    (own / "squashfuse_ll").write_bytes(library("", b"code", needed=("libz.so.1", "libzstd.so.1")))
    (tools / "apptainer").write_text("#!/bin/sh\necho apptainer version 1.4.5\n")
    (tools / "apptainer").chmod(0o755)
    environment = {"PATH": f"{tmp_path / 'empty'}:{tools}:/usr/bin:/bin"}
    assert hpcgen("site", "capture", "tree", env=environment).returncode == 0
    (tmp_path / "apptainer").rename(tmp_path / "gone")
    seen = seen_in(tmp_path / "tree")
    assert seen.value(FIELD) == "zstd"
    assert str(tmp_path / "empty") not in (tmp_path / "tree" / "environment").read_text()
