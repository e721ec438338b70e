"""Fixtures for tests against real container tools, on a real small base.

The scripts in testbed/ do the work and can be used without pytest; the fixtures
here run them once per session and hand out what they made.  Everything is kept
in $HPCGEN_TESTBED, so only the first session on a machine pays for it.

A missing tool fails the test with what to run, it never skips: a skipped tier
looks green and proves nothing.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from container_tools import (
    BASE_IN_SID,
    CERTIFICATES,
    HERE,
    REPORTS,
    TESTBED,
    BaseImage,
    Buildah,
    ChImage,
    Clusters,
    HostMpi,
    Run,
    Sid,
    SidHpcgen,
    Slurm,
    Tool,
    need,
    run,
    script,
    variables,
)
from leftovers import (
    Session,
    common_folder,
    kept_while_used,
    remove_temporary_folders_of_killed_sessions,
    shared_while_used,
)
from slurm_site import SlurmSite
from torch_mirror import TorchMirror, torch_mirror_in
from virtual_cluster import VirtualCluster, virtual_cluster

LONGEST_FIRST = (
    *("build", "offline", "failing_builds", "images", "install", "rendered_kits", "copied_files", "locking"),
    *("cluster", "base_images", "fleet", "equal_digests", "application", "submit", "kit_readers", "gridengine"),
    *("foreign_images", "site_in_browser", "signed_images"),
)
"""The files of tests that take more than half a minute of two processes' time; the others fill up what is left."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test in this folder belongs to the container tier, or to the slow one; long files come first."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("slow") is None:
            item.add_marker("containers")
    order = {HERE / f"test_{name}.py": number for number, name in enumerate(LONGEST_FIRST)}
    gone = [path.name for path in order if not path.exists()]
    assert not gone, f"LONGEST_FIRST names {gone}"
    items.sort(key=lambda item: order.get(item.path, len(order)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how long the builds took and how large the images are."""
    for line in REPORTS:
        terminalreporter.write_line(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """One of several processes leaves saying it to the first, in tests/conftest.py."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["reports"] = REPORTS


@pytest.fixture(scope="session")
def testbed_env(worker_id: str) -> dict[str, str]:
    """The environment that all container tools here are run with; each of several processes has stores of its own."""
    env = {**os.environ, **variables(script("environment"))}
    if worker_id in ("master", "gw0"):
        return env
    env["HPCGEN_TESTBED"] = script("make-copy", worker_id, env=env).strip()
    return {**env, **variables(script("environment", env=env))}


@pytest.fixture(scope="session", autouse=True)
def testbed_session(testbed_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Begins and ends with stores that hold the bases alone."""
    remove_temporary_folders_of_killed_sessions(tmp_path_factory.getbasetemp())
    session = Session(testbed_env)
    yield session
    session.close()


@pytest.fixture(scope="module", autouse=True)
def images_of_one_file(testbed_session: Session) -> Iterator[None]:
    """An image in a store is gone when the file of tests ends; what files share lies in folders."""
    yield
    testbed_session.clean("--images")


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """As pytest's own, but images in it do not keep the next test waiting."""
    with kept_while_used(request, tmp_path_factory, re.sub(r"\W", "_", request.node.name)[:30]) as folder:
        yield folder


@pytest.fixture(scope="session")
def machine_facts() -> dict[str, Any]:
    """What a site profile must know of this machine, for profiles written at run time."""
    done = run([sys.executable, TESTBED / "machine_facts.py"])
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def _base(env: Mapping[str, str], suffix: str, *options: str) -> BaseImage:
    script("make-base", *options, env=env)
    work = Path(env["HPCGEN_TESTBED"])
    return BaseImage(
        ch_image=f"debian:12{suffix}",
        oci=f"localhost/debian:12{suffix}",
        archive=work / f"debian12{suffix}.tar",
        root_tar=work / f"debian12{suffix}-root.tar",
    )


@pytest.fixture(scope="session")
def base_image(testbed_env: dict[str, str]) -> BaseImage:
    """Debian 12 with this machine's certificate authorities, in every store."""
    return _base(testbed_env, "")


@pytest.fixture(scope="session")
def plain_base_image(testbed_env: dict[str, str]) -> BaseImage:
    """Debian 12 without them: a recipe has to bring what the site needs."""
    return _base(testbed_env, "-plain", "--without-certificates")


@pytest.fixture(scope="session")
def ch_image(testbed_env: dict[str, str]) -> ChImage:
    """The machine's own Charliecloud."""
    need("ch-image", "ch-run", "ch-convert", path=testbed_env["PATH"])
    return ChImage(testbed_env)


@pytest.fixture(scope="session")
def buildah(testbed_env: dict[str, str]) -> Buildah:
    """The machine's own buildah."""
    need("buildah", path=testbed_env["PATH"])
    return Buildah(testbed_env)


@pytest.fixture(scope="session")
def sid(testbed_env: dict[str, str]) -> Sid:
    """The newer tools, in a root of their own."""
    script("make-sid-root", env=testbed_env)
    return Sid(testbed_env)


@pytest.fixture(scope="session")
def sid_hpcgen(sid: Sid) -> SidHpcgen:
    """hpcgen itself in the sid root: ``sid_hpcgen.run(["build", …], binds=…)``."""
    from importlib.metadata import requires

    needed = [word for word in requires("hpcgen") or [] if "extra ==" not in word]
    return SidHpcgen(sid, Path(script("make-sid-packages", *needed, env=sid.env).strip()))


@pytest.fixture
def by_engine(
    request: pytest.FixtureRequest, base_image: BaseImage, testbed_env: dict[str, str]
) -> Callable[[str, Path, list[str]], Run]:
    """``by_engine(engine, folder, words)``: hpcgen where the engine is, in a folder that is its collection, too."""

    def start(engine: str, folder: Path, words: list[str]) -> Run:
        own = {"HPCGEN_COLLECTIONS": str(folder), "HPCGEN_RECORDS": str(folder / "records")}
        if engine == "slurm":
            cluster: Slurm = request.getfixturevalue("slurm_cluster")("general")
            return cluster.run([sys.executable, "-m", "hpcgen", *words], env=own, cwd=folder)
        if engine != "apptainer":
            settings = ("HOME", "REGISTRY_AUTH_FILE", "HPCGEN_CONFIG")
            own |= {name: os.environ[name] for name in settings if name in os.environ}
            here = Tool({**testbed_env, **own, "BUILDAH_ISOLATION": "chroot"})
            return here.run([sys.executable, "-m", "hpcgen", *words], cwd=folder)
        sid: Sid = request.getfixturevalue("sid")
        sid_hpcgen: SidHpcgen = request.getfixturevalue("sid_hpcgen")
        binds = [(sid.folder(folder), str(folder)), (base_image.archive.parent, BASE_IN_SID)]
        own["APPTAINER_CACHEDIR"] = str(folder / "cache")
        return sid_hpcgen.run(words, binds=[*binds, (CERTIFICATES, str(CERTIFICATES))], env=own, cwd=str(folder))

    return start


@pytest.fixture(scope="session")
def host_mpi(testbed_env: dict[str, str]) -> HostMpi:
    """Intel MPI as a host has it."""
    root = Path(script("make-host-mpi", env=testbed_env).strip())
    # its libmpi opens libfabric by name, and does not look beside itself
    needed = {"I_MPI_ROOT": str(root), "LD_LIBRARY_PATH": str(root / "lib")}
    return HostMpi({**testbed_env, **needed}, root)


@pytest.fixture(scope="session")
def slurm_cluster(testbed_env: dict[str, str]) -> Iterator[Callable[..., Slurm]]:
    """``slurm_cluster("general", "fat")``: a Slurm with these partitions, the first is default.

    The same names give the same Slurm; all are stopped at the end of the session.
    """
    need("slurmctld", "slurmd", "munged", path=testbed_env["PATH"])
    clusters = Clusters(testbed_env)
    yield clusters.get
    clusters.stop()


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, testbed_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[VirtualCluster | Slurm]:
    """The virtual nodes that NODES of the file of tests counts, or else this machine alone as Slurm's only node."""
    nodes = getattr(request.module, "NODES", None)
    if nodes is None:
        yield request.getfixturevalue("slurm_cluster")("general")
    else:
        with virtual_cluster(testbed_env, nodes, common_folder(request, tmp_path_factory)) as started:
            yield started


@pytest.fixture
def site(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    host_mpi: HostMpi,
    cluster: VirtualCluster | Slurm,
    tmp_path: Path,
) -> SlurmSite[Any]:
    """``site.run("submit", …)`` calls hpcgen where that cluster's commands work; its profile is ``site.profile``."""
    return SlurmSite(tmp_path, machine_facts, plain_base_image, host_mpi, cluster)


@pytest.fixture(scope="session")
def mpi_hello_image(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    host_mpi: HostMpi,
    ch_image: ChImage,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Path]:
    """mpi-hello with room for the host's MPI, built by ch-image, beside it kit and record. Not to be changed."""
    from mpi_hello import profile, render

    def make(folder: Path) -> None:
        kit = render(profile(machine_facts, plain_base_image, host_mpi), folder)
        # ch-image's cache costs more time than it saves with images of some hundred megabytes.
        words = [kit, "--engine", "ch-image", "--no-cache", "-o", folder / "image"]
        own = {"HPCGEN_RECORDS": str(folder / "records")}
        ch_image.run([sys.executable, "-m", "hpcgen", "build", *words], env=own)

    with shared_while_used(request, tmp_path_factory, "mpi-hello", make) as folder:
        yield folder / "image"


@pytest.fixture(scope="session")
def python_image(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    ch_image: ChImage,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Path]:
    """NumPy and a Jupyter kernel, beside it the collection that it was built from. Not to be changed."""
    from test_rendered_kits import render_by_command, site_profile

    packages = {"packages": ["ipykernel==6.29.5", "numpy==2.2.6"]}
    stack = {
        "name": "python-packages",
        "title": "NumPy with a kernel",
        "blocks": {"python_packages": {"options": packages}},
        "run": {"mpi": False, "command": ["python3", "-c", "import numpy"], "gpus_per_node": 0},
    }

    def make(folder: Path) -> None:
        collection = folder / "collection"
        for kind, data in (("recipes", stack), ("site_profiles", site_profile(machine_facts, plain_base_image))):
            (collection / kind).mkdir(parents=True)
            (collection / kind / f"{data['name']}.yaml").write_text(json.dumps(data))
        render_by_command(collection, folder / "kit", "--site", "here", "--stack", stack["name"])
        ch_image.run(["bash", folder / "kit/build.sh", folder / "image"], env={"HPCGEN_BUILD_OPTIONS": "--no-cache"})

    with shared_while_used(request, tmp_path_factory, "python-packages", make) as folder:
        yield folder / "image"


@pytest.fixture(scope="session")
def torch_mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchMirror]:
    """A mirror of files that has PyTorch's wheel for the CPU."""
    with torch_mirror_in(tmp_path_factory.mktemp("torch")) as mirror:
        yield mirror
