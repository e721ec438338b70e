"""Dockerfiles and images of others as the beginning: by podman, ch-image and Apptainer, and without a network.

The base is bare and the additions are files, so that what is seen is the engines' part; the last test adds a package to
the environment that an image has.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from bare import without_servers, write_bare_base
from container_tools import BaseImage, Buildah, Sid, SidHpcgen, Tool
from test_rendered_kits import BASE_IN_SID, CERTIFICATES, site_profile

DOCKERFILE = """\
FROM {base} AS first
RUN echo made > /made
FROM {base}
COPY --from=first /made /opt/made
COPY numbers /opt/
ENV GREETING="good day"
"""
DEFINITION = """\
Bootstrap: oci-archive
From: {base}

%files
    numbers /opt/numbers

%post
    echo made > /opt/made
"""
SEEN = ["sh", "-c", "cat /opt/made /opt/numbers"]
OWN_PYTHON = """\
FROM {base}
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv
RUN python3 -m venv /opt/own && /opt/own/bin/pip install numpy==1.26.4
ENV PATH=/opt/own/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
USER nobody
ENTRYPOINT ["/bin/false"]
"""
PYTHONS = "import h5py, numpy; print(h5py.__version__, numpy.__version__, numpy.__file__.split('/lib/')[0])"

pytestmark = pytest.mark.slow


def project(folder: Path, profile: dict[str, Any], text: str, starts: str = "") -> Path:
    """A project with a Dockerfile, and a collection with a site and with a stack that starts from an image."""
    folder.mkdir(exist_ok=True)
    (folder / "Dockerfile").write_text(text)
    (folder / "numbers").write_text("1 2 3\n")
    ours = folder / "ours"
    write_bare_base(ours)
    for name in ("recipes", "site_profiles"):
        (ours / name).mkdir(exist_ok=True)
    (ours / "site_profiles" / "here.yaml").write_text(json.dumps(without_servers(profile)))
    if starts:
        stack = {
            "name": "more",
            "title": "a file on an image",
            "from": starts,
            "blocks": {},
            "copy": [{"from": "more", "to": "/opt/more/more"}],
            "run": {"command": ["cat", "/opt/more/more"], "mpi": False},
        }
        (ours / "recipes" / "more.yaml").write_text(json.dumps(stack))
        (ours / "recipes" / "more").write_text("4 5 6\n")
    return folder


def tool(env: dict[str, str], folder: Path) -> Tool:
    return Tool({**env, "HPCGEN_RECORDS": str(folder / "records"), "BUILDAH_ISOLATION": "chroot"})


HPCGEN = [sys.executable, "-m", "hpcgen", "--collection", "ours"]
BUILD = ["build", "--dockerfile", "Dockerfile", "--site", "here"]


@pytest.mark.parametrize(
    ("engine", "output"), [("podman", "podman:localhost/own:1"), ("buildah", "own.sqfs"), ("ch-image", "own")]
)
def test_a_dockerfile_is_built_and_stored(
    engine: str,
    output: str,
    machine_facts: dict[str, Any],
    base_image: BaseImage,
    testbed_env: dict[str, str],
    tmp_path: Path,
) -> None:
    base = base_image.ch_image if engine == "ch-image" else base_image.oci
    folder = project(tmp_path / "own", site_profile(machine_facts, base_image), DOCKERFILE.format(base=base))
    here = tool(testbed_env, tmp_path)
    try:
        done = here.run([*HPCGEN, *BUILD, "--engine", engine, "-o", output, "--json"], cwd=folder)
        record = json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])
        assert record["engine"] == engine and "failure" not in record and record["image"]["bytes"] > 1_000_000
        assert f"hpcgen inspect {output.removesuffix('own') if output == 'own' else ''}" in done.stdout
        if output.startswith("podman:"):
            said = Buildah(here.env).exec("localhost/own:1", SEEN).stdout
        elif output.endswith(".sqfs"):
            said = here.run(["unsquashfs", "-cat", output, "opt/made", "opt/numbers"], cwd=folder).stdout
        else:
            said = here.run(["ch-run", "./own", "--", *SEEN], cwd=folder).stdout
        assert "made" in said and "1 2 3" in said
        left = here.run(["podman", "images", "--format", "{{.Repository}}"]).stdout
        assert "hpcgen-build" not in left and "hpcgen-own" not in left
    finally:
        here.run(["podman", "rmi", "localhost/own:1"], check=False)


@pytest.mark.parametrize("starts", ["podman", "oci-archive", "ch-image"])
def test_a_stack_starts_from_an_image_of_the_machine(
    starts: str, machine_facts: dict[str, Any], base_image: BaseImage, testbed_env: dict[str, str], tmp_path: Path
) -> None:
    named = {
        "podman": f"podman:{base_image.oci}",
        "oci-archive": f"oci-archive:{base_image.archive}",
        "ch-image": f"ch-image:{base_image.ch_image}",
    }
    folder = project(tmp_path / "own", site_profile(machine_facts, base_image), "", named[starts])
    here = tool(testbed_env, tmp_path)
    image, by = ("more", "ch-image") if starts == "ch-image" else ("localhost/more:1", "buildah")
    try:
        here.run([*HPCGEN, "build", "--site", "here", "--stack", "more", "--engine", by, "-o", image], cwd=folder)
        if by == "buildah":
            said = Buildah(here.env).exec(image, ["cat", "/opt/more/more"]).stdout
        else:
            said = here.run([*HPCGEN, "run", image, "--", "cat", "/opt/more/more"], cwd=folder).stdout
        assert "4 5 6" in said
        told = json.loads(here.run([*HPCGEN, "inspect", image, "--json"], cwd=folder).stdout)
        assert told["stack"] == "more"
    finally:
        here.run(["podman", "rmi", "localhost/more:1"], check=False)


def test_an_image_is_locked_bundled_and_built_on_with_no_network(
    machine_facts: dict[str, Any], base_image: BaseImage, testbed_env: dict[str, str], tmp_path: Path
) -> None:
    profile = site_profile(machine_facts, base_image)
    folder = project(tmp_path / "own", profile, "", f"oci-archive:{base_image.archive}")
    here = tool(testbed_env, tmp_path)
    # A lock has the archive's name alone: it is looked for in the present folder.
    (folder / base_image.archive.name).symlink_to(base_image.archive)
    image = "localhost/more:2"
    try:
        words = ["--site", "here", "--stack", "more", "--format", "docker"]
        here.run([*HPCGEN, "lock", *words, "-o", "more.lock"], cwd=folder)
        assert "digest: sha256:" in (folder / "more.lock").read_text()
        here.run([*HPCGEN, "bundle", "create", "--lock", "more.lock", "-o", "bundle"], cwd=folder)
        offline = ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]
        trusting = [sys.executable, "-m", "hpcgen", "--trust-collections"]
        build = ["build", "--bundle", "bundle", "--engine", "buildah", "-o", image]
        here.run([*offline, *trusting, *build], cwd=folder)
        assert "4 5 6" in Buildah(here.env).exec(image, ["cat", "/opt/more/more"]).stdout
    finally:
        here.run(["podman", "rmi", image], check=False)


@pytest.mark.parametrize("starts", ["oci-archive", "sif"])
def test_apptainer_starts_from_an_archive_and_from_a_sif(
    starts: str,
    sid: Sid,
    sid_hpcgen: SidHpcgen,
    machine_facts: dict[str, Any],
    base_image: BaseImage,
    tmp_path: Path,
) -> None:
    named = {"sif": "/kit/base.sif", "oci-archive": f"oci-archive:{BASE_IN_SID}/{base_image.archive.name}"}
    folder = project(tmp_path / "own", site_profile(machine_facts, base_image), "", named[starts])
    binds = [(folder, "/kit"), (base_image.archive.parent, BASE_IN_SID), (CERTIFICATES, str(CERTIFICATES))]
    sid.folder(folder)
    if starts == "sif":
        archive = f"oci-archive:{BASE_IN_SID}/{base_image.archive.name}"
        sid.run(["apptainer", "build", "base.sif", archive], binds=binds, cwd="/kit")
    words = ["--collection", "/kit/ours", "build", "--site", "here", "--stack", "more", "--engine", "apptainer"]
    sid_hpcgen.run([*words, "-o", "more", "--no-record"], binds=binds, cwd="/kit")
    said = sid.run(["apptainer", "exec", "more", "cat", "/opt/more/more"], binds=binds, cwd="/kit").stdout
    assert "4 5 6" in said, said


def test_a_dockerfile_becomes_a_sif_for_a_site_with_apptainer(
    sid: Sid, sid_hpcgen: SidHpcgen, machine_facts: dict[str, Any], base_image: BaseImage, tmp_path: Path
) -> None:
    profile = site_profile(machine_facts, base_image)
    profile["containers"]["preferred"] = "apptainer"
    base = f"oci-archive:{BASE_IN_SID}/{base_image.archive.name}"
    folder = project(tmp_path / "own", profile, DOCKERFILE.format(base=base))
    binds = [(folder, "/kit"), (base_image.archive.parent, BASE_IN_SID)]
    sid.folder(folder)
    done = sid_hpcgen.run(
        ["--collection", "/kit/ours", *BUILD, "--no-record"],
        binds=binds,
        cwd="/kit",
        env={"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"},
    )
    assert "kit.sif (sif)" in done.stdout, done.stdout
    said = sid.run(["apptainer", "exec", "--unsquash", "kit.sif", *SEEN], binds=binds, cwd="/kit").stdout
    assert "made" in said and "1 2 3" in said


@pytest.mark.parametrize("output", ["kit.sif", "kit.sqfs"])
def test_a_definition_file_is_built_and_stored(
    output: str, sid: Sid, sid_hpcgen: SidHpcgen, machine_facts: dict[str, Any], base_image: BaseImage, tmp_path: Path
) -> None:
    profile = site_profile(machine_facts, base_image)
    profile["containers"]["preferred"] = "apptainer"
    folder = project(tmp_path / "own", profile, "")
    (folder / "own.def").write_text(DEFINITION.format(base=f"{BASE_IN_SID}/{base_image.archive.name}"))
    binds = [(folder, "/kit"), (base_image.archive.parent, BASE_IN_SID)]
    sid.folder(folder)
    words = ["build", "--dockerfile", "own.def", "--site", "here", "-o", output, "--no-record"]
    done = sid_hpcgen.run(["--collection", "/kit/ours", *words], binds=binds, cwd="/kit")
    assert f"/kit/{output} (" in done.stdout, done.stdout
    shown = ["unsquashfs", "-cat", output, "opt/made", "opt/numbers"]
    start = shown if output.endswith(".sqfs") else ["apptainer", "exec", "--unsquash", output, *SEEN]
    said = sid.run(start, binds=binds, cwd="/kit").stdout
    assert "made" in said and "1 2 3" in said
    assert not [each for each in folder.iterdir() if each.name.startswith(".hpcgen")]


def test_a_package_is_added_by_the_pip_of_the_images_own_environment(
    machine_facts: dict[str, Any], base_image: BaseImage, testbed_env: dict[str, str], tmp_path: Path
) -> None:
    profile = site_profile(machine_facts, base_image)
    folder = project(tmp_path / "own", profile, OWN_PYTHON.format(base=base_image.oci))
    (folder / "ours" / "building_blocks" / "debian.py").unlink()
    (folder / "ours" / "site_profiles" / "here.yaml").write_text(json.dumps(profile))
    here = tool(testbed_env, tmp_path)
    image, more = "localhost/own:2", "localhost/own:3"
    try:
        here.run([*HPCGEN, *BUILD, "--engine", "podman", "-o", image], cwd=folder)
        words = ["--site", "here", "--add", "pip:h5py==3.11.0", "--add", "apt:bc", "-o", more]
        here.run([*HPCGEN, "extend", f"podman:{image}", *words], cwd=folder)
        said = Buildah(here.env).exec(more, ["python3", "-c", PYTHONS]).stdout
        assert "3.11.0 1.26.4 /opt/own" in said, said
        said = Buildah(here.env).exec(more, ["/opt/own/bin/python3", "-c", PYTHONS]).stdout
        assert "3.11.0 1.26.4 /opt/own" in said, said
    finally:
        here.run(["podman", "rmi", more, image], check=False)
