"""OS packages as dnf in the very base image would install them.

dnf's own Python, which every image with dnf 4 has, is asked: what the program prints for people has no addresses and
no hashes. It reads the repositories' indexes as dnf does; each is held against the sha256 in repomd.xml.
Sources: dnf's documentation, "DNF API Reference"; dnf 4.14, cli/cli.py, for how it finds its settings; dnf.conf(5).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from hpcgen.core.errors import FetchError, InputError, Problem
from hpcgen.core.model.lock import KeyPin
from hpcgen.recipe.locked_rpms import KEY_FILE
from hpcgen.supply.pin.base_shell import OWN, failed, quoted
from hpcgen.supply.pin.package_manager import ANOTHER, index_keys, unsigned
from hpcgen.supply.pin.rpm_packages import RpmManager, RpmPackage

_PROGRAM = Path(__file__).with_name("dnf_question.txt")
_UPDATE = ["dnf", "-y", "-q", "--setopt=*.skip_if_unavailable=False", "makecache"]
# Rocky Linux 8 has no other Python than dnf's own.
_ASK = f"""
python=/usr/libexec/platform-python
if ! [ -x "$python" ]; then python=python3; fi
exec "$python" -s /{OWN}/dnf_question.py """


class _Repository(msgspec.Struct, frozen=True):
    """``checked``: whether packages have to be signed; ``keys``: [fingerprint, where]."""

    id: str
    address: str
    date: int
    checked: bool
    keys: list[tuple[str, str]]


class _Answer(msgspec.Struct, frozen=True):
    problems: list[str]
    repositories: list[_Repository] = []
    packages: list[RpmPackage] = []


class Dnf(RpmManager):
    """dnf 4 of Rocky Linux and its kind."""

    program = "dnf"
    settings = ("etc/dnf", "etc/yum.repos.d", "etc/pki")

    def update(self) -> None:
        """Read the indexes of the enabled repositories, all of them."""
        status, lines = self.shell.run(quoted(_UPDATE))
        if status:
            raise failed(self.shell.image, "dnf makecache", lines, status)

    def keys(self) -> tuple[list[KeyPin], int]:
        """The keys of which one must have signed each package; the build checks that, also from a bundle."""
        repositories = self._ask([]).repositories
        bad = [
            f"{each.address} {each.id}"
            for each in repositories
            if not each.checked or not each.keys or not all(place.startswith(KEY_FILE) for _, place in each.keys)
        ]
        if bad:
            remedy = f"set gpgcheck=1 and gpgkey={KEY_FILE}/… in its settings in the base image, or disable it there"
            raise unsigned(self.shell.image, bad, remedy)
        pins = [
            pin for each in repositories for pin in index_keys(f"{each.address} {each.id}", each.date, dict(each.keys))
        ]
        return pins, max((each.date for each in repositories), default=0)

    def found(self, names: Sequence[str]) -> Sequence[RpmPackage]:
        """As dnf's own solver says, without weak dependencies."""
        return self._ask(names).packages

    def _ask(self, names: Sequence[str]) -> _Answer:
        self.shell.put(f"/{OWN}/dnf_question.py", _PROGRAM.read_bytes())
        lines = self.shell.check(f"{_ASK}{quoted(names)}", "asking dnf for the packages")
        try:
            answer = msgspec.json.decode(lines[-1] if lines else "", type=_Answer)
        except msgspec.DecodeError as failure:
            raise FetchError(
                f"{self.shell.image}: dnf's output cannot be parsed: {failure}", remedy=ANOTHER
            ) from failure
        if answer.problems:
            remedy = "check the package's name for this distribution"
            said = [each for each in answer.problems if not each.endswith(":")] or answer.problems
            raise InputError(Problem(f"{self.shell.image}: {each}", remedy=remedy) for each in said)
        return answer
