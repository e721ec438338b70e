"""What a site has done before modules are loaded, the proxy of its jobs, and its own options of an engine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.model.network import Proxy
from hpcgen.core.model.site import Site, System
from hpcgen.launch.command import command_script
from hpcgen.launch.script import job_script, preflight_script
from hpcgen.running.host_side import asked_of_host
from hpcgen.running.verify.node import engine_script
from tests.unit.launch.test_launch import IMAGE, allow_every_engine, container, directives, make_plan, site

replace = msgspec.structs.replace
SETUP = ["module reset", "source /opt/site/init.sh batch", "ulimit -s unlimited"]
PROXY = "http://proxy.example.org:3128"


def prepared(name: str = "supermuc", **system: Any) -> Site:
    profile = site(name)
    given = {"module_paths": ["/soft/modulefiles", "/soft/more+1"], "setup": SETUP, **system}
    return replace(profile, system=replace(profile.system, **given))


def first_lines(text: str) -> list[str]:
    words = ("module ", "source ", "ulimit ", "vpkg_require ", "set -")
    return [line.strip() for line in text.splitlines() if line.strip().startswith(words)]


@pytest.mark.parametrize("script", ["job", "preflight", "command", "verify"])
def test_setup_comes_first_then_the_folders_then_the_modules(script: str) -> None:
    plan = make_plan(prepared(), mpi=False, mpi_block=None)
    texts = {
        "job": lambda: job_script(plan, IMAGE)[1],
        "preflight": lambda: preflight_script(plan, IMAGE),
        "command": lambda: command_script(plan, IMAGE, "/images/demo"),
        "verify": lambda: engine_script(plan, IMAGE),
    }
    expected = [*SETUP, "module use /soft/modulefiles", "module use /soft/more+1", "module load slurm_setup"]
    assert first_lines(texts[script]())[: len(expected)] == expected


def test_folders_are_for_modules_and_setup_for_every_job() -> None:
    profile = prepared("workstation")
    text = job_script(make_plan(profile), IMAGE)[1]
    assert first_lines(text)[:4] == [*SETUP, "set -euo pipefail"]
    assert "module use" not in text


def test_bash_runs_the_lines_as_they_are_meant(tmp_path: Path) -> None:
    init = tmp_path / "init.sh"
    init.write_text('echo "sourced $1"\nmodule() { echo "module $*"; }\n')
    system = System(os="sles", module_paths=["/soft/modulefiles"], setup=[f"source {init} batch", "umask 027"])
    text = "\n".join([*system.loading(["spack-pe-base", "apptainer/1.4"]), "umask"])
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True, env={"PATH": os.defpath})
    assert done.stdout.splitlines() == [
        "sourced batch",
        "module use /soft/modulefiles",
        "module load spack-pe-base",
        "module load apptainer/1.4",
        "0027",
    ]


BAD = [
    "rm -rf /",
    "module load a; rm -rf /",
    "source init.sh",
    "source /a $(id)",
    "ulimit -s `id`",
    "module use a\nb",
]


@pytest.mark.parametrize("line", BAD)
def test_a_profile_says_no_other_line_of_shell(line: str, tmp_path: Path) -> None:
    text = "extends: supermuc\nname: x\ntitle: x\nsystem: {setup: [" + repr(line).replace("'", '"') + "]}\n"
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(InputError, match="setup"):
        Catalog().site(str(tmp_path / "x.yaml"))


def test_valet_has_no_folders_of_modules(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("extends: darwin\nname: x\ntitle: x\nsystem: {module_paths: [/soft/m]}\n")
    with pytest.raises(InputError, match="VALET"):
        Catalog().site(str(tmp_path / "x.yaml"))


def test_jobs_have_the_sites_proxy_by_both_kinds_of_names() -> None:
    profile = site("supermuc")
    network = replace(profile.network, job_proxy=Proxy(http=PROXY, https=PROXY, no_proxy=".example.org"))
    profile = replace(profile, network=network, environment={"https_proxy": "http://other.example.org:1"})
    text = job_script(make_plan(profile), IMAGE)[1]
    for name, value in {"http_proxy": PROXY, "HTTP_PROXY": PROXY, "NO_PROXY": ".example.org"}.items():
        assert f"export {name}={value}\n" in text
    assert "export https_proxy=http://other.example.org:1\n" in text
    assert f"http_proxy={PROXY}" in asked_of_host(make_plan(profile))


@pytest.mark.parametrize("engine", ["charliecloud", "apptainer", "singularity", "docker", "podman", "shifter"])
@pytest.mark.parametrize("sealed", [False, True])
def test_an_engine_has_the_sites_options_before_the_image(engine: Any, sealed: bool) -> None:
    profile = allow_every_engine(site("workstation"))
    plan = make_plan(profile, engine)
    known = plan.site.containers.engines.get(engine, site("supermuc").containers.engines["charliecloud"])
    engines = {**plan.site.containers.engines, engine: replace(known, run_options=["--fakeroot", "--opt a,b"])}
    plan = replace(plan, site=replace(plan.site, containers=replace(plan.site.containers, engines=engines)))
    if sealed and engine == "shifter":
        return
    words = container(job_script(plan, IMAGE, sealed=sealed)[1])
    at = words.index("--fakeroot")
    program = next(i for i, word in enumerate(words) if word in (engine, "ch-run"))
    image = next(i for i, word in enumerate(words) if "$image" in word)
    assert words[at + 1 : at + 3] == ["--opt", "a,b"]
    assert program < at and (at < image or engine == "shifter")
    assert "--fakeroot --opt a,b" in asked_of_host(plan)


FILE_SYSTEMS = {"filesystems": "home:eagle", "singularity_fakeroot": "true"}


OPTIONS = [("pbs", "#PBS", "-l"), ("torque", "#PBS", "-l"), ("pjm", "#PJM", "-L")]


@pytest.mark.parametrize(("kind", "mark", "option"), OPTIONS)
def test_every_job_names_the_resources_that_the_site_wants(kind: str, mark: str, option: str) -> None:
    profile = replace(site("supermuc"), scheduler=BatchSystem(kind=kind, resources=FILE_SYSTEMS), mpi=None)
    found = directives(job_script(make_plan(profile, mpi=False, mpi_block=None), IMAGE)[1], mark)
    assert {f"{option} filesystems=home:eagle", f"{option} singularity_fakeroot=true"} <= found


def test_a_resource_that_would_be_more_than_one_option_is_refused() -> None:
    for value in ("home\t-q", "a b", "$(id)"):
        scheduler = BatchSystem(kind="pbs", resources={"filesystems": value})
        profile = replace(site("supermuc"), scheduler=scheduler, mpi=None)
        with pytest.raises(InputError, match="header"):
            job_script(make_plan(profile, mpi=False, mpi_block=None), IMAGE)


def test_a_batch_system_without_such_an_option_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("extends: supermuc\nname: x\ntitle: x\nscheduler: {resources: {fs: home}}\n")
    with pytest.raises(InputError, match="Slurm has no option for resources by name"):
        Catalog().site(str(tmp_path / "x.yaml"))
