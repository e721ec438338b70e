"""Which of the host's variables a container does not see, by the MPI that its ranks use."""

from __future__ import annotations

import re
from pathlib import Path

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
