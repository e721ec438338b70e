"""Which of the host's variables a container does not see, by the MPI that its ranks use."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command


def kept_out(hpcgen: Command, *words: str) -> set[str]:
    done = hpcgen("job", "--nodes", "2", "--account", "abc", *words)
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"-u (\w+)", next(line for line in done.stdout.splitlines() if "/usr/bin/env -u" in line)))


def test_folders_of_the_hosts_open_mpi_are_not_those_of_the_images(hpcgen: Command) -> None:
    found = kept_out(hpcgen, "--site", "leonardo", "--stack", "mpi-python")
    assert {"OPAL_PREFIX", "OPAL_LIBDIR", "PMIX_INSTALL_PREFIX", "PRTE_PREFIX", "UCX_MODULE_DIR"} <= found
    # Plugins that it was not built with, and certificates' files.
    assert {"OMPI_MCA_pml", "PMIX_MCA_mca_base_component_path", "PRTE_LIBDIR", "REQUESTS_CA_BUNDLE"} <= found
    # What a launcher tells its ranks.
    assert not found & {"PMIX_RANK", "PMIX_SERVER_URI41", "OMPI_COMM_WORLD_RANK"}


def test_what_the_hosts_mpi_is_told_stays_where_its_libraries_are_used(hpcgen: Command) -> None:
    found = kept_out(hpcgen, "--site", "supermuc", "--stack", "tf-horovod")
    assert "SSL_CERT_FILE" in found and not found & {"FI_PROVIDER_PATH", "I_MPI_ROOT", "OPAL_PREFIX"}


def test_what_the_profile_sets_on_purpose_stays(hpcgen: Command, tmp_path: Path) -> None:
    sites = tmp_path / "ours" / "site_profiles"
    sites.mkdir(parents=True)
    (sites / "here.yaml").write_text(
        "name: here\nextends: leonardo\nenvironment: {UCX_MODULE_DIR: /opt/site/ucx, OMPI_MCA_pml: ucx}\n"
    )
    found = kept_out(hpcgen, "--site", str(sites / "here.yaml"), "--stack", "mpi-python")
    assert "OPAL_PREFIX" in found and not found & {"UCX_MODULE_DIR", "OMPI_MCA_pml"}


@pytest.mark.parametrize("site", ["workstation", "supermuc", "leonardo"])
def test_what_loader_and_allocator_read_is_set_inside_alone(hpcgen: Command, tmp_path: Path, site: str) -> None:
    said = {
        "LD_PRELOAD": "libtcmalloc_minimal.so.4",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "MALLOC_ARENA_MAX": "2",
    }
    run: dict[str, Any] = {"command": ["python3", "-c", "1"], "mpi": False, "gpus_per_node": 0}
    run["environment"] = {**said, "OURS": "1"}
    stack = tmp_path / "own.json.yaml"
    stack.write_text(json.dumps({"name": "own", "title": "Own", "blocks": {"python": {}}, "run": run}))
    done = hpcgen("job", "--account", "abc", "--site", site, "--stack", str(stack))
    assert done.returncode == 0, done.stderr
    before, _, container = done.stdout.partition("container=(")
    assert "export OURS=1" in before
    for name, value in said.items():
        assert f"export {name}" not in done.stdout
        assert f"{name}={value}" in container.partition("\n)\n")[0]
