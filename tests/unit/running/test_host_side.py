"""A stranger's image does not decide what runs on the host: the profile of whoever starts it does."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import GOLDEN, Command

HOSTILE = {"PATH": "/tmp/evil", "BASH_ENV": "/tmp/evil.sh", "LD_PRELOAD": "/tmp/evil.so"}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An image of mpi-hello for SuperMUC-NG as a folder of Charliecloud's."""
    folder = tmp_path / "mpi-hello"
    shutil.copytree(GOLDEN / "supermuc" / "mpi-hello", folder / "opt/hpcgen/kit")
    (folder / "ch").mkdir()
    return folder


def change(image: Path, **fields: Any) -> None:
    """Change fields of the record, ``site__environment`` for ``site.environment``."""
    path = image / "opt/hpcgen/kit/plan.json"
    plan = json.loads(path.read_text())
    for name, value in fields.items():
        *places, last = name.split("__")
        part = plan
        for place in places:
            part = part[place]
        part[last] = value
    path.write_text(json.dumps(plan))


def test_a_record_that_says_what_the_users_profile_says_is_taken_as_it_is(hpcgen: Command, image: Path) -> None:
    done = hpcgen("job", str(image), "--account", "pn12ab", "--notes")
    assert done.returncode == 0 and "another profile" not in done.stderr, done.stderr


def test_what_a_changed_record_says_of_the_host_does_not_happen(hpcgen: Command, image: Path) -> None:
    change(
        image,
        site__environment=HOSTILE,
        site__mpi__binds=[{"source": "/", "target": "/mnt"}],
        site__mpi__modules=["evil-module"],
        site__scheduler__directives=["--prolog=/tmp/evil"],
        site__mpi__launcher="mpirun",
    )
    done = hpcgen("job", str(image), "--account", "pn12ab", "--notes")
    assert done.returncode == 0, done.stderr
    assert "evil" not in done.stdout and "/:/mnt" not in done.stdout and "mpirun" not in done.stdout
    assert "the image was built with another profile of supermuc; yours is used" in done.stderr


def test_variables_of_a_strangers_stack_stay_in_the_container(hpcgen: Command, image: Path) -> None:
    change(image, stack__run__environment=HOSTILE)
    done = hpcgen("job", str(image), "--account", "pn12ab")
    assert done.returncode == 0, done.stderr
    before, _, rest = done.stdout.partition("container=(")
    container, _, after = rest.partition("\n)\n")
    assert "LD_PRELOAD=/tmp/evil.so" in container, "its own programs may have it"
    assert "/tmp/evil" not in before and "/tmp/evil" not in after


def test_a_job_goes_to_the_queues_of_the_users_profile(hpcgen: Command, image: Path) -> None:
    change(image, job__queue="evil")
    done = hpcgen("job", str(image), "--account", "pn12ab")
    assert done.returncode == 0 and "evil" not in done.stdout, done.stderr


def test_without_a_profile_of_the_site_one_is_named_or_the_image_trusted(hpcgen: Command, image: Path) -> None:
    change(image, site__name="nowhere", site__environment={"WHO": "the-image"})
    for verb in ("run", "submit", "job", "test"):
        refused = hpcgen(verb, str(image))
        assert refused.returncode == 3, (verb, refused.stderr)
        assert "the image was built for nowhere, and there is no profile of that site here" in refused.stderr
        assert "remedy: --site NAME|FILE, or --trust-image if you trust the image's source" in refused.stderr
    assert "the-image" not in hpcgen("job", str(image), "--site", "supermuc").stdout
    trusted = hpcgen("job", str(image), "--trust-image")
    assert "export WHO=the-image\n" in trusted.stdout
    assert "the image's own record of nowhere decides here: environment WHO=the-image" in trusted.stderr


def test_nothing_of_the_record_runs(hpcgen: Command, image: Path, tmp_path: Path) -> None:
    """The real script, with stand-ins for the engine and the launcher, which are scripts of bash."""
    touched, script, programs = tmp_path / "touched", tmp_path / "evil.sh", tmp_path / "bin"
    script.write_text(f"touch {touched}\n")
    evil = {"BASH_ENV": str(script)}
    change(image, site__environment=evil, stack__run__environment=evil)
    programs.mkdir()
    for name in ("ch-run", "mpiexec"):
        (programs / name).write_text("#!/bin/bash\nexit 0\n")
        (programs / name).chmod(0o755)
    # supermuc's modules are functions of a login shell.
    functions = {"PATH": f"{programs}:{os.environ['PATH']}", "BASH_FUNC_module%%": "() { :; }", "HPCGEN_PREFLIGHT": "0"}
    done = hpcgen("run", str(image), "--", "true", env=functions)
    assert done.returncode == 0 and not touched.exists(), done.stderr
    hpcgen("run", str(image), "--trust-image", "--", "true", env=functions)
    assert touched.exists(), "the record would have run"


def test_a_rebuilt_kit_says_whose_job_script_it_has(hpcgen: Command, image: Path, tmp_path: Path) -> None:
    same = hpcgen("rebuild", str(image), "-o", str(tmp_path / "same"))
    assert same.returncode == 0 and "not by a profile of yours" not in same.stderr, same.stderr
    change(image, site__environment={"LD_PRELOAD": "/tmp/evil.so"})
    other = hpcgen("rebuild", str(image), "-o", str(tmp_path / "other"))
    assert other.returncode == 0, other.stderr
    assert "record of supermuc, not from your profile: environment LD_PRELOAD=/tmp/evil.so" in other.stderr


def test_variables_that_the_stack_got_after_the_build_are_not_ignored_in_silence(
    hpcgen: Command, image: Path, tmp_path: Path
) -> None:
    stack = tmp_path / "mine.yaml"
    text = "name: mpi-hello\ntitle: Mine\nblocks: {mpi: {}}\nrun:\n  command: [echo]\n"
    stack.write_text(text)
    change(image, command=f"hpcgen render --site supermuc --stack {stack}")
    words = ("job", str(image), "--site", "supermuc")
    assert "since the image was built" not in hpcgen(*words).stderr
    stack.write_text(f"{text}  environment: {{MALLOC_ARENA_MAX: '1'}}\n")
    done = hpcgen(*words)
    assert f"the stack {stack} has MALLOC_ARENA_MAX=1 since the image was built; the image's variables are used" in (
        " ".join(done.stderr.split())
    )
    assert f"add --stack {stack}" in " ".join(done.stderr.split())
    assert "MALLOC_ARENA_MAX" not in done.stdout
    stack.unlink()
    assert "since the image was built" not in hpcgen(*words).stderr
