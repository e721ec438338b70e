"""How a stage gets the RPM packages of a lock: dnf, zypper or a bundle has them, rpm checks and installs them.

Each is held against its sha256 and its signature. For dnf the keys are files that the lock names, in a database that is
removed: dnf would write the key into the image's own, with the time, when it first meets it. For zypper they are in the
image's own already. dnf and zypper would also keep a history with the time, and dnf takes no package of a module from a
file. Sources: rpmkeys(8); zypper(8), "download"; rpm 4.18 writes SOURCE_DATE_EPOCH as the time of an installation
(rpm@71456f2fc); SQLite's documentation, "WAL-mode File Format": the -shm file holds nothing that is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hpcgen.blocks.steps import Compound, Part, TextFile, command, lines
from hpcgen.core.model.image_paths import SCRATCH
from hpcgen.core.support.quoting import sh
from hpcgen.recipe.bases import TRACES

if TYPE_CHECKING:
    from hpcgen.blocks.sources import Supply
    from hpcgen.core.model.lock import KeyPin, PackagePin, Pins

FOLDER = f"{SCRATCH}/rpm"
LISTS = "/opt/hpcgen/packages"
KEY_FILE = "file://"
"""How the place of a key begins that lies in the image."""
_ZYPPER_TRACES = ("/run/zypp.pid", "/var/lib/YaST2/cookies", "/var/lib/zypp/AnonymousUniqueId", "/var/log/zypp")
"""What zypper leaves although it installs nothing: a lock, cookies, a random identity of the machine, a history."""
_DATED_SINCE = (4, 18)


def install_rpms(
    manager: str, pins: Mapping[str, PackagePin], keys: Sequence[KeyPin], name: str, supply: Supply
) -> list[Part]:
    """The list of packages with their hashes, and the commands that fetch, check and install them.

    manager: dnf or zypper.
    pins: by the names of the packages.
    keys: of dnf, those that may have signed them; their files are in the image.
    name: of the list.
    """
    of_dnf = manager == "dnf"
    files = sorted({key.keyring.removeprefix(KEY_FILE) for key in keys}) if of_dnf else []
    database = f"rpmkeys --dbpath {FOLDER}/keys" if of_dnf else "rpmkeys"
    fetch = _fetch_by_dnf if of_dnf else _fetch_by_zypper
    held = {package: supply.package_file(pin.sha256, pin.file(package)) for package, pin in pins.items()}
    listing = f"{LISTS}/{name}.sha256"
    text = lines(*(f"{pin.sha256}  {held[package] or pin.file(package)}" for package, pin in pins.items()))
    return [
        TextFile(f"files/packages/{name}.sha256", listing, text),
        command("mkdir", "-p", FOLDER),
        *([] if all(held.values()) else fetch(pins)),
        command("cd", FOLDER),
        command("sha256sum", "-c", "--quiet", listing),
        *([command("mkdir", "keys")] if of_dnf else []),
        *(f"{database} --import {command(file)}" for file in files),
        # 64 digits and two spaces precede each name.
        Compound(
            f"LC_ALL=C {database} --checksig $(cut -c 67- {listing}) > signatures || {{ cat signatures >&2; exit 65; }}"
        ),
        # Of a package without any signature it says "digests OK".
        Compound("if grep -v ' digests signatures OK$' signatures >&2; then exit 65; fi"),
        f"rpm -U --oldpackage $(cut -c 67- {listing})",
        "cd /",
        f'rm -f "$(rpm --eval {sh("%{_dbpath}")})/rpmdb.sqlite-shm"',
        command("rm", "-rf", FOLDER, LISTS, *TRACES, *(() if of_dnf else _ZYPPER_TRACES)),
    ]


def _fetch_by_dnf(pins: Mapping[str, PackagePin]) -> list[str]:
    """Download exactly these versions, and install none."""
    folders = {"cachedir": "cache", "persistdir": "state", "logdir": "log"}
    settings = [f"--setopt={setting}={FOLDER}/{folder}" for setting, folder in folders.items()]
    words = ["install", "-y", "--setopt=install_weak_deps=False", *settings]
    names = [f"{name}-{pin.version}.{pin.architecture}" for name, pin in pins.items()]
    return [command("dnf", *words, "--nogpgcheck", "--downloadonly", f"--downloaddir={FOLDER}", *names)]


def _fetch_by_zypper(pins: Mapping[str, PackagePin]) -> list[str]:
    """The same; of a version that is not there zypper says a word and ends well, and then its file is missing."""
    cache = f"{FOLDER}/cache"
    names = [f"{name}.{pin.architecture}={pin.version}" for name, pin in pins.items()]
    words = ["env", f"ZYPP_LOGFILE={FOLDER}/log", "zypper", "--non-interactive", "--cache-dir", cache, "download"]
    return [
        command(*words, *names),
        command("bash", "-O", "globstar", "-c", f"mv -t {FOLDER} {cache}/packages/**/*.rpm"),
    ]


def undated_rpms(pins: Pins | None) -> list[str]:
    """Why two builds of a lock differ, where the rpm of its base writes the time of each installation."""
    final = pins.packages.get("final") if pins is not None else None
    version = final.present.get("rpm", "") if final is not None and final.added else ""
    numbers = version.rpartition(":")[2].split(".")[:2]
    if len(numbers) < 2 or not all(map(str.isdecimal, numbers)) or tuple(map(int, numbers)) >= _DATED_SINCE:
        return []
    return [
        f"another build of this lock will have another digest: rpm {version} of the base writes the time of each "
        "installation into its database, which is equal since 4.18"
    ]
