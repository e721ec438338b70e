"""What a kit puts into its build context: certificates and its own files, whatever the kit or its profile names."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import hpcgen
from hpcgen.core.errors import InputError
from hpcgen.core.support.writing import write_kit
from hpcgen.kit.folder import check_host_files, make_context, read_kit
from tests.conftest import GOLDEN

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----\n"


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit of a site whose certificate lies beside it."""
    folder = tmp_path_factory.mktemp("rendered")
    network = {"ca_certificates": [str(folder / "site-ca.pem")]}
    site = hpcgen.load_site({"name": "certs", "title": "Certs", "extends": "workstation", "network": network})
    kit = hpcgen.render(hpcgen.plan(site, "mpi-hello", format="docker"))
    write_kit(folder / "kit", kit.files)
    return folder


@pytest.fixture
def kit(rendered: Path) -> Path:
    (rendered / "site-ca.pem").write_text(CERTIFICATE)
    return rendered / "kit"


def test_a_certificate_goes_into_the_context_under_its_name(kit: Path, tmp_path: Path) -> None:
    check_host_files(read_kit(kit))
    make_context(read_kit(kit), tmp_path / "context")
    assert (tmp_path / "context/certificates/site-ca.crt").read_text() == CERTIFICATE


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "user:password\n",
            "site-ca.pem is not a certificate; recipes copy only certificates from this machine",
        ),
        (KEY, "site-ca.pem has a private key, which would go into the image"),
        (CERTIFICATE + KEY, "site-ca.pem has a private key, which would go into the image"),
    ],
)
def test_no_other_file_of_this_machine_goes_into_an_image(kit: Path, tmp_path: Path, text: str, told: str) -> None:
    """A profile, a kit or a lock may be a stranger's, and name any file here."""
    (kit.parent / "site-ca.pem").write_text(text)
    with pytest.raises(InputError) as refused:
        check_host_files(read_kit(kit))
    assert told in str(refused.value) and refused.value.problems[0].remedy
    with pytest.raises(InputError):
        make_context(read_kit(kit), tmp_path / "context")
    script = subprocess.run(["bash", kit / "build.sh"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert script.returncode == 65 and "site-ca.pem is not a certificate in PEM, or has a private key" in script.stderr


def renamed(folder: Path, name: str) -> None:
    facts = json.loads((folder / "recipe.json").read_text())
    facts["certificates"][0]["name"] = name
    (folder / "recipe.json").write_text(json.dumps(facts))


def renamed_in_script(folder: Path, name: str) -> None:
    """As a kit of hpcgen 0.1.0 says it."""
    (folder / "recipe.json").unlink()
    plan = json.loads((folder / "plan.json").read_text())
    del plan["plan"]
    (folder / "plan.json").write_text(json.dumps(plan))
    script = (folder / "build.sh").read_text().replace("certificate_names=(site-ca.crt)", f"certificate_names=({name})")
    (folder / "build.sh").write_text(script)


@pytest.mark.parametrize("name", ["../../escaped", "..", "/etc/escaped", "a/b"])
@pytest.mark.parametrize("change", [renamed, renamed_in_script])
def test_a_certificate_is_not_written_outside_of_the_context(
    kit: Path, tmp_path: Path, name: str, change: Callable[[Path, str], None]
) -> None:
    good, copied = tmp_path / "good", tmp_path / "copied"
    for folder, called in ((good, "site-ca.pem"), (copied, name)):
        shutil.copytree(kit, folder)
        change(folder, called)
    assert read_kit(good).host_files == [(str(kit.parent / "site-ca.pem"), "site-ca.pem")]
    with pytest.raises(InputError):
        make_context(read_kit(copied), tmp_path / "deep" / "context")
    assert not list(tmp_path.glob("**/escaped")) and not Path("/etc/escaped").exists()


@pytest.mark.parametrize("link", ["selftest.sh", "files"])
def test_a_link_out_of_the_kit_brings_no_file_of_this_machine_into_an_image(tmp_path: Path, link: str) -> None:
    copied, secret = tmp_path / "kit", tmp_path / "secret"
    shutil.copytree(GOLDEN / "supermuc" / "mpi-hello", copied)
    shutil.move(copied / link, secret)
    (copied / link).symlink_to(secret)
    with pytest.raises(InputError, match="is a link that leads out of the kit"):
        read_kit(copied)


def test_a_kit_may_lie_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "kit").symlink_to(GOLDEN / "supermuc" / "mpi-hello")
    assert read_kit(tmp_path / "kit").plan.site.name == "supermuc"
