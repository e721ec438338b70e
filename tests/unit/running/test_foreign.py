"""Images that hpcgen did not build: what decides how they start, and what is looked for in them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpcgen.api import default_catalog
from hpcgen.core.errors import InputError, MissingToolError
from hpcgen.core.model.site import Site
from hpcgen.images.identity import identity_of
from hpcgen.images.reference import ImageReference, parse_image
from hpcgen.running.image_job import ImageJob, direct_script, plan_for_image
from hpcgen.running.python_inside import MARK, lacking, python_here, python_inside


def supermuc() -> Site:
    return default_catalog().site("supermuc")


@pytest.fixture
def image(tmp_path: Path) -> ImageReference:
    for name in ("bin", "ch"):
        (tmp_path / "image" / name).mkdir(parents=True)
    (tmp_path / "image" / "ch" / "environment").write_text("PATH=/opt/venv/bin:/bin\nBASH_ENV=/trap\nWHO=me\n")
    (tmp_path / "image" / "bin" / "tool").write_text("text")
    return parse_image(str(tmp_path / "image"))


def job_of(image: ImageReference) -> ImageJob:
    return plan_for_image(image, default_catalog(), foreign=supermuc, elsewhere=True, trust=True)


def test_the_profile_decides_and_variables_of_the_image_are_set_inside_alone(image: ImageReference) -> None:
    job = job_of(image)
    assert not job.content and job.plan.site.name == "supermuc" and not job.plan.blocks
    before, inside = direct_script(job).split(" --\n")
    for variable in ("PATH=/opt/venv", "BASH_ENV=/trap", "WHO=me"):
        assert variable in inside and variable not in before
    # It has no folders for what the site would bind.
    assert "/lrz/sys" not in before and "/hppfs" not in before and job.plan.site.mpi is None


def test_nobody_guesses_which_machine_it_is_for(image: ImageReference) -> None:
    with pytest.raises(InputError, match="the site for"):
        plan_for_image(image, default_catalog(), elsewhere=True)


def test_it_is_started_by_what_was_read_of_it(image: ImageReference) -> None:
    (Path(image.name) / "etc").mkdir()
    (Path(image.name) / "etc" / "os-release").write_text("ID=debian\nVERSION_ID=12\n")
    job = plan_for_image(image, default_catalog(), site=supermuc(), elsewhere=True)
    assert job.facts is not None and job.plan.found is not None and job.plan.found.digest == identity_of(image)
    # Of what the site binds it has no folder, and its engine makes none.
    assert "/lrz/sys" not in direct_script(job) and job.plan.job.ranks == 1
    with pytest.raises(InputError, match="there is no program to start"):
        job.need_command()


def test_the_sites_openmp_settings_reach_images_whose_openmp_reads_them(image: ImageReference) -> None:
    place = Path(image.name) / "usr/lib"
    place.mkdir(parents=True)
    (place / "os-release").write_text("ID=debian\nVERSION_ID=12\n")
    (place / "libgomp.so.1").write_bytes(b"\x7fELF")

    def script() -> str:
        return direct_script(plan_for_image(image, default_catalog(), site=supermuc(), elsewhere=True))

    assert "KMP_" not in script()
    (place / "libiomp5.so").write_bytes(b"\x7fELF")
    assert "export KMP_BLOCKTIME=0\n" in script()


def test_a_damaged_kit_makes_no_image_a_strangers(image: ImageReference) -> None:
    kit = Path(image.name) / "opt/hpcgen/kit"
    kit.mkdir(parents=True)
    for name in ("plan.json", "hpcgen.lock"):
        (kit / name).write_text("{")
    with pytest.raises(InputError, match="damaged"):
        job_of(image)


def test_it_is_known_by_all_that_it_holds(image: ImageReference) -> None:
    tool, first = Path(image.name) / "bin" / "tool", identity_of(image)
    assert first.startswith("sha256:") and identity_of(image) == first
    seen = {first}
    tool.chmod(0o755)
    seen.add(identity_of(image))
    tool.write_text("other")
    seen.add(identity_of(image))
    (tool.parent / "link").symlink_to("tool")
    seen.add(identity_of(image))
    (tool.parent / "folder").mkdir()
    seen.add(identity_of(image))
    assert len(seen) == 5


# which Python


def test_a_python_says_what_it_has_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # A folder of somebody's is not a package of the Python, and a module that is looked for is not run.
    (tmp_path / "torch.py").write_text("open('ran', 'w')")
    (tmp_path / "json.py").write_text("open('ran', 'w')")
    found = python_here([sys.executable], ["msgspec", "torch", "no_such_module"])
    assert found.program == sys.executable and found.version == ".".join(map(str, sys.version_info[:3]))
    assert found.modules["msgspec"] and "no_such_module" in lacking(found, ["msgspec", "no_such_module"])
    assert not (tmp_path / "ran").exists()


def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str) -> None:
    """An engine that does this in the place of a container."""
    program = tmp_path / "engines" / "ch-run"
    program.parent.mkdir()
    program.write_text(f"#!/bin/bash\n{inside}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_the_python_with_most_of_what_is_needed_is_taken(
    image: ImageReference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        '{"program": "/usr/bin/python3", "version": "3.11.2", "modules": {}}',
        '{"program": "/opt/a/bin/python3", "version": "3.11.2", "modules": {"torch": "2.1+cpu"}}',
        '{"program": "/opt/b c/$(touch x)/python3", "version": "3.11.2", "modules": {"torch": "1", "numpy": "2"}}',
        '{"program": "/usr/bin/python3", "version": "3", "modules": {"torch": 7}}',
        "[" * 100_000,
    ]
    said = "\n".join(f"{MARK} {each}" for each in lines)
    engine(tmp_path, monkeypatch, f"cat <<'END'\nsomething else\n{said}\nEND")
    found = python_inside(job_of(image), ["numpy", "torch"], "image")
    assert found.program == "/opt/a/bin/python3" and lacking(found, ["numpy", "torch"]) == ["numpy"]


def test_an_image_without_python_is_told_from_one_that_does_not_start(
    image: ImageReference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine(tmp_path, monkeypatch, "exit 0")
    with pytest.raises(MissingToolError, match="there is no Python in image"):
        python_inside(job_of(image), ["numpy"], "image")
    (tmp_path / "engines" / "ch-run").write_text("#!/bin/bash\necho exec format error; exit 126\n")
    with pytest.raises(Exception, match="exec format error"):
        python_inside(job_of(image), ["numpy"], "image")
