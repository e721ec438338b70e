"""Kill the making of a bundle at random moments (``kill -9``), let it finish, and compare with one made in peace.

``python -m tests.helpers.bundle_kills 20`` does it twenty times and says at which moments; the unit tests, a few times.
As ``… make ROOT TARGET URL`` it is the process that is killed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcgen.core.errors import OutputError
from hpcgen.core.model.bundle import WantedFile
from hpcgen.core.support.progress import ProgressLines
from hpcgen.supply.bundle.create import Creation, create_bundle
from hpcgen.supply.bundle.verify import verify
from tests.conftest import ROOT
from tests.helpers.bundles import QUICK, a_lock, content, sha, tree
from tests.helpers.file_server import make_certificate, serving
from tests.helpers.locks import CATALOG

FILES = {f"f{number}": content(f"f{number}", 300_000) for number in range(10)}
PIECE = 1_000_000


def make_one(target: Path, url: str, say: Callable[[str], None]) -> None:
    """Make the bundle in this process."""
    kinds = ("archive", "wheel", "hpcgen")
    wants = [
        WantedFile(kind=kinds[n % 3], name=name, file=name, sha256=sha(data), urls=[f"{url}/{name}"], size=len(data))  # type: ignore[arg-type]
        for n, (name, data) in enumerate(FILES.items())
    ]
    split = PIECE if target.suffix == ".tar" else None
    how = Creation(jobs=3, split=split, policy=QUICK, watch=ProgressLines(say), catalog=CATALOG)
    create_bundle(a_lock(), wants, target, how)


def start(target: Path, url: str, certificate: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "tests.helpers.bundle_kills", "make", str(target), url]
    environment = {**os.environ, "REQUESTS_CA_BUNDLE": str(certificate), "no_proxy": "*"}
    return subprocess.Popen(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(target: Path, url: str, certificate: Path) -> str:
    """Run it to its end; a target that had its name when it was killed may be refused as being there."""
    named = target.exists() or target.with_name(f"{target.name}.SHA256SUMS").exists()
    said: list[str] = []
    with pytest.MonkeyPatch.context() as here:
        here.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        here.setenv("no_proxy", "*")
        try:
            make_one(target, url, said.append)
        except OutputError as error:
            assert named and "already exists" in str(error), error
            said.append(str(error))
    return "\n".join(said)


def whole(folder: Path, target: Path) -> dict[str, bytes]:
    """What was made, with nothing beside it."""
    pieces = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert not [path.name for path in folder.iterdir() if path.name.endswith(".partial")]
    first = target if target.is_dir() else target.with_name(f"{target.name}.000")
    assert not verify(first).problems
    return tree(target) if target.is_dir() else pieces


def there(folder: Path) -> int:
    """How many files a bundle that is being made has got."""
    return sum(1 for path in folder.rglob("f*") if path.name in FILES)


def kill_at_moments(folder: Path, count: int, seed: int = 0) -> list[str]:
    """Kill ``count`` processes, let the next finish; where each was when it was killed."""
    key = make_certificate(folder)
    told = []
    dice = random.Random(seed)
    with serving(key) as server:
        server.files = dict(FILES)
        url = server.url("")[:-1]
        reference: dict[str, dict[str, bytes]] = {}
        for name in ("B", "B.tar"):
            (folder / f"peace-{name}").mkdir()
            finish(folder / f"peace-{name}" / name, url, key[1])
            reference[name] = whole(folder / f"peace-{name}", folder / f"peace-{name}" / name)
        server.faults = {name: ["slow:0.03"] for name in FILES}
        for number in range(count):
            name = ("B", "B.tar")[number % 2]
            place = folder / f"kill-{number}"
            place.mkdir()
            process = start(place / name, url, key[1])
            # By what is there and a little later, not by the clock: that is at another point on a busy machine.
            least, later = dice.randrange(len(FILES)), dice.uniform(0, 0.05)
            while process.poll() is None and there(place / f"{name}.partial") < least:
                time.sleep(0.005)
            time.sleep(later)
            ended = process.poll() is not None
            process.send_signal(signal.SIGKILL)
            process.communicate()
            files = there(place / f"{name}.partial")
            finish_said = "" if ended else finish(place / name, url, key[1])
            assert whole(place, place / name) == reference[name]
            state = "had ended" if ended else f"{files} of {len(FILES)} files were there"
            going = " (went on)" if "going on" in finish_said or "was whole" in finish_said else ""
            told.append(f"{name} killed with {least} files and {later:.2f} s later: {state}; the same bytes{going}")
    return told


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make_one(Path(sys.argv[2]), sys.argv[3], lambda text: print(text, flush=True))
    else:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
            for line in kill_at_moments(Path(work), int(sys.argv[1]), int(time.time())):
                print(line)
