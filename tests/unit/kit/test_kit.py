"""What a kit holds for sites with facts of their own."""

from __future__ import annotations

import re
import shlex

import hpcgen


def test_every_certificate_of_a_site_reaches_both_stages_under_its_own_name() -> None:
    site = hpcgen.load_site(
        {
            "name": "certs",
            "title": "Behind two authorities",
            "extends": "workstation",
            "network": {"ca_certificates": ["/etc/pki/site-ca.pem", "/opt/other/root.crt"]},
        }
    )
    kit = hpcgen.render(hpcgen.plan(site, "mpi-hello", format="docker"))
    anchors = "/usr/local/share/ca-certificates"
    copies = [line for line in kit.recipe.splitlines() if line.startswith("COPY certificates/")]
    both = [f"COPY certificates/{name} {anchors}/{name}" for name in ("site-ca.crt", "root.crt")]
    assert copies == [*both, *both]
    script = kit.files["build.sh"].text
    arrays = {name: shlex.split(words) for name, words in re.findall(r"(?m)^(certificate\w*)=\((.*)\)$", script)}
    assert arrays == {
        "certificates": ["/etc/pki/site-ca.pem", "/opt/other/root.crt"],
        "certificate_names": ["site-ca.crt", "root.crt"],
    }


def test_open_mpi_of_the_image_may_be_started_by_root() -> None:
    """Who one is inside rootless podman."""
    kit = hpcgen.render(hpcgen.plan("workstation", "mpi-hello", settings={"mpi.provider": "openmpi"}))
    words = kit.files["run.sh"].text.replace("=", " ").split()
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        assert words[words.index(name) + 1] == "1"
