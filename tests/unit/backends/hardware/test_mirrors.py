"""``--mirror`` and ``network.mirrors``: what a user sees in the recipe, and what is said of a mistake."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.backends.hardware.mirrors import KINDS, image_mirror, with_mirrors
from hpcgen.blocks.steps import image
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError, InputError, UnknownNameError
from hpcgen.core.model.lock import ImagePin, Pins
from hpcgen.core.model.network import AptMirror, ImageMirror, Mirrors
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.formats import format_for
from tests.conftest import Command
from tests.helpers import locks

CATALOG = Catalog()
DIGEST = "sha256:" + "7" * 64


def site(**mirrors: Any) -> Site:
    known = CATALOG.site("workstation")
    return msgspec.structs.replace(known, network=msgspec.structs.replace(known.network, mirrors=Mirrors(**mirrors)))


def plan(given: Site, base: str = "debian", format: Any = "docker") -> Plan:
    settings = [f"base.provider={base}"]
    stack = CATALOG.stack("mpi-hello")
    return make_plan(CATALOG, given, stack, settings=settings, format=format, allow_unsupported=True)


def rendered(given: Site, base: str = "debian", format: Any = "docker", pins: Pins | None = None) -> str:
    return whole_text(plan(given, base, format), pins)


def whole_text(planned: Plan, pins: Pins | None = None) -> str:
    """The recipe, and below it the text files that its steps copy."""
    assembly = assemble(planned, CATALOG, pins)
    recipe = format_for(planned.format).recipe(planned, assembly).text
    recipe = re.sub(r" \\\n +", " ", recipe)
    return "\n".join([recipe, *(file.text for file in assembly.files.values())])


def problems(*words: str, given: Site | None = None) -> tuple[type, list[str]]:
    with pytest.raises(HpcgenError) as caught:
        with_mirrors(given or site(), words)
    return caught.type, [str(problem) for problem in caught.value.problems]


# every kind


def test_apt_is_read_from_the_mirror_while_building_and_left_afterwards() -> None:
    text = rendered(
        with_mirrors(
            site(), ["apt=https://mirror.example.org/debian", "apt-security=https://mirror.example.org/security"]
        )
    )
    signed = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    assert f"{signed} https://mirror.example.org/debian bookworm main" in text
    assert f"{signed} https://mirror.example.org/security bookworm-security main" in text
    assert text.count("rm -rf /etc/apt/hpcgen-sources.list") == 2  # in both stages


def test_the_apt_mirror_is_of_the_distribution_that_the_image_is_based_on() -> None:
    text = rendered(with_mirrors(site(), ["apt=https://mirror.example.org/ubuntu"]), base="ubuntu")
    assert "signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] https://mirror.example.org/ubuntu" in text


def test_packages_of_rocky_linux_come_from_the_mirror_alone() -> None:
    text = rendered(with_mirrors(site(), ["dnf=https://mirror.example.org/rocky/"]), base="rockylinux")
    for name in ("BaseOS", "AppStream"):
        assert f"baseurl=https://mirror.example.org/rocky/9/{name}/$basearch/os/\n" in text
    assert "reposdir=/etc/dnf/hpcgen.repos.d" in text
    assert text.count("gpgcheck=1") == text.count("gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-Rocky-9") == 4
    assert "/etc/yum.repos.d" not in text
    assert text.count("rm -rf /etc/dnf/hpcgen.repos.d") == 2
    assert "rockylinux.org" not in text


def test_each_release_of_rocky_linux_has_its_own_folder_and_key() -> None:
    given = with_mirrors(site(), ["dnf=https://mirror.example.org/rocky"])
    settings = ["base.provider=rockylinux", "rockylinux.version=8"]
    planned = make_plan(CATALOG, given, CATALOG.stack("mpi-hello"), settings=settings)
    text = whole_text(planned)
    assert "https://mirror.example.org/rocky/8/BaseOS/$basearch/os/" in text
    assert "https://mirror.example.org/rocky/8/PowerTools/$basearch/os/" in text
    assert "RPM-GPG-KEY-rockyofficial" in text


def test_dnf_reads_the_mirror_and_its_configuration_is_as_it_was_afterwards(tmp_path: Path) -> None:
    """The commands of the recipe, on a copy of the configuration that Rocky Linux has."""
    own = "[main]\ngpgcheck=1\ninstallonly_limit=3\nclean_requirements_on_remove=True\nbest=True\n"
    (tmp_path / "etc/dnf").mkdir(parents=True)
    (tmp_path / "var/cache/dnf").mkdir(parents=True)
    configuration = tmp_path / "etc/dnf/dnf.conf"
    configuration.write_text(own)
    planned = plan(with_mirrors(site(), ["dnf=https://mirror.example.org/rocky"]), base="rockylinux")
    steps = [step for label, step in assemble(planned, CATALOG).final.steps if label.startswith("site_trust")]

    def run(step: Any) -> None:
        for file in step.files:
            (tmp_path / file.target[1:]).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file.target[1:]).write_text(file.text)
        for line in step.commands:
            here = line.replace(" /etc/", f" {tmp_path}/etc/").replace(" /var/", f" {tmp_path}/var/")
            subprocess.run(["/bin/sh", "-c", here], check=True)

    run(steps[0])
    assert configuration.read_text() == own.replace("[main]\n", "[main]\nreposdir=/etc/dnf/hpcgen.repos.d\n")
    lines = (tmp_path / "etc/dnf/hpcgen.repos.d/mirror.repo").read_text().splitlines()
    assert lines[:4] == [
        "[baseos]",
        "name=baseos (mirror)",
        "baseurl=https://mirror.example.org/rocky/9/BaseOS/$basearch/os/",
        "enabled=1",
    ]
    run(steps[-1])
    assert configuration.read_text() == own
    assert [path.name for path in (tmp_path / "etc/dnf").iterdir()] == ["dnf.conf"]


def test_a_base_without_a_configuration_of_dnf_ends_the_build(tmp_path: Path) -> None:
    """Its own repositories would be used without a word."""
    (tmp_path / "etc/dnf").mkdir(parents=True)
    (tmp_path / "etc/dnf/dnf.conf").write_text("# nothing\n")
    planned = plan(with_mirrors(site(), ["dnf=https://mirror.example.org/rocky"]), base="rockylinux")
    step = next(each for _, each in assemble(planned, CATALOG).final.steps if "dnf.conf" in " ".join(each.commands))
    script = "\n".join(["set -e", *step.commands]).replace(" /etc/", f" {tmp_path}/etc/")
    assert subprocess.run(["/bin/sh", "-c", script]).returncode == 1


def test_pip_and_archives() -> None:
    words = ["pip=https://mirror.example.org/simple", "files=https://mirror.example.org/sources"]
    text = rendered(with_mirrors(site(), words))
    assert "index-url = https://mirror.example.org/simple" in text
    fetched = [line for line in text.splitlines() if "curl -fsSL" in line]
    assert fetched
    assert all(" https://mirror.example.org/sources/" in line for line in fetched)


@pytest.mark.parametrize("folder", ["/srv/sources", "file:///srv/sources"])
def test_a_folder_of_archives_is_for_bundles(folder: str) -> None:
    """The steps of a build would not find it."""
    from hpcgen.blocks.steps import Archive

    given = with_mirrors(site(), [f"files={folder}"])
    fetched = [line for line in rendered(given).splitlines() if "curl -fsSL" in line]
    assert fetched and all("https://" in line and "/srv/sources" not in line for line in fetched)
    archive = Archive("https://example.org/a/tool-1.tar.gz", "0" * 64)
    mirrors = given.network.mirrors
    assert mirrors.files is not None and archive.mirrored(mirrors.files) == "file:///srv/sources/tool-1.tar.gz"
    assert archive.unmirrored(mirrors) == "source archives"


@pytest.mark.parametrize(
    ("base", "folder", "dated"), [("debian", "library", True), ("rockylinux", "rockylinux", False)]
)
def test_base_images_come_from_the_registry_by_their_own_path(base: str, folder: str, dated: bool) -> None:
    """With tag and digest: a mirror has the same images."""
    given = with_mirrors(site(), ["images=registry.example.org:5000/proxy"])
    known = [row.images["default"] for row in Catalog().releases(base).values() if not row.not_default][-1]
    held = image(known).on("x86_64")
    name = f"registry.example.org:5000/proxy/{folder}/{held.pulled.rpartition('/')[2]}"
    digest = f"@{held.digest}" if dated else ""
    assert bool(held.dated) == dated
    assert f"FROM {name}{digest} AS builder\n" in rendered(given, base, "docker")
    assert f"FROM {name} AS builder\n" in rendered(given, base, "charliecloud")
    untagged = name.rpartition(":")[0] if dated else name
    assert f"BootStrap: docker\nFrom: {untagged}{digest}\n" in rendered(given, base, "singularity")


def test_digests_of_a_lock_hold_for_the_mirror_too() -> None:
    given = with_mirrors(site(), ["images=registry.example.org:5000/proxy"])
    pins = Pins(images={"debian:12": ImagePin(digest=DIGEST, origin="docker://debian:12")})
    name = "registry.example.org:5000/proxy/library/debian"
    assert f"FROM {name}:12@{DIGEST} AS builder\n" in rendered(given, format="docker", pins=pins)
    assert f"From: {name}@{DIGEST}\n" in rendered(given, format="singularity", pins=pins)


def test_an_image_of_another_registry_loses_that_registry() -> None:
    mirrors = Mirrors(registry="registry.example.org")
    for name in ("cuda.example.net/nvidia/cuda:12.2.2", "cuda.example.net:8443/nvidia/cuda:12.2.2"):
        found = image_mirror(mirrors, name)
        assert found is not None
        assert found.docker == "registry.example.org/nvidia/cuda:12.2.2"
    # What is made on the building machine is in no registry.
    assert image_mirror(mirrors, "localhost/our-base:1") is None


def test_an_image_that_the_profile_names_is_taken_from_there_and_the_others_from_the_registry() -> None:
    named = {"debian:12": ImageMirror(singularity="/images/debian.sif", bootstrap="localimage")}
    mirrors = Mirrors(registry="registry.example.org/proxy", images=named)
    assert "BootStrap: localimage\nFrom: /images/debian.sif\n" in rendered(
        msgspec.structs.replace(site(), network=msgspec.structs.replace(site().network, mirrors=mirrors)),
        format="singularity",
    )
    found = image_mirror(mirrors, "debian:12")
    assert found is not None
    assert found.docker == "registry.example.org/proxy/library/debian:12"


# beside the profile


def test_what_the_profile_has_beside_it_stays() -> None:
    known = site(
        apt={"debian": AptMirror(archive="http://apt.example.org/debian", security="http://apt.example.org/security")},
        pip="https://pip.example.org/simple",
        images={"debian:12": ImageMirror(docker="apt.example.org/debian")},
    )
    mirrors = with_mirrors(known, ["apt=https://mirror.example.org/debian"]).network.mirrors
    assert mirrors.apt["debian"].archive == "https://mirror.example.org/debian"
    assert mirrors.apt["debian"].security == "http://apt.example.org/security"
    assert mirrors.pip == "https://pip.example.org/simple"
    assert mirrors.images == known.network.mirrors.images
    # The same kind is replaced.
    replaced = with_mirrors(known, ["pip=https://mirror.example.org/simple", "images=registry.example.org"])
    assert replaced.network.mirrors.pip == "https://mirror.example.org/simple"
    assert "FROM registry.example.org/library/debian:bookworm-" in rendered(replaced)


def test_security_updates_alone_go_to_the_archives_that_the_profile_names() -> None:
    known = site(apt={"debian": AptMirror(archive="http://apt.example.org/debian")})
    mirrors = with_mirrors(known, ["apt-security=https://mirror.example.org/security"]).network.mirrors
    assert mirrors.apt == {
        "debian": AptMirror(archive="http://apt.example.org/debian", security="https://mirror.example.org/security")
    }
    kind, said = problems("apt-security=https://mirror.example.org/security")
    assert kind is InputError
    assert "--mirror apt=" in said[0]


def test_without_a_word_nothing_changes() -> None:
    known = site()
    assert with_mirrors(known, []) is known


def test_what_the_option_takes_a_profile_takes() -> None:
    """A plan is written into the kit and read again."""
    words = [
        "apt=https://mirror.example.org/a+b/~c",
        "dnf=https://mirror.example.org:8443/rocky,linux",
        "pip=https://mirror.example.org/repository/pypi@2/simple",
        "files=https://mirror.example.org/",
        "images=registry.example.org/proxy/docker-io",
    ]
    planned = plan(with_mirrors(site(), words))
    assert msgspec.json.decode(msgspec.json.encode(planned), type=Plan) == planned


# mistakes


def test_every_mistake_is_told_at_once() -> None:
    kind, said = problems(
        "pypi=https://mirror.example.org",
        "file=https://mirror.example.org",
        "pip",
        "dnf=https://mirror.example.org",
        "dnf=https://other.example.org",
        "apt=http://mirror.example.org/debian",
    )
    assert kind is InputError
    text = "\n".join(said)
    assert len(said) == 5
    assert "'pip' is not a mirror" in text
    assert "did you mean files?" in text
    assert "dnf: its mirror is given twice" in text
    assert "network.mirrors.apt" in text
    assert all(line.startswith("--mirror: ") for line in said)


def test_an_unknown_kind_names_the_nearest_or_all() -> None:
    kind, said = problems("apt-secure=https://mirror.example.org")
    assert kind is UnknownNameError
    assert "did you mean apt-security?" in said[0]
    _, said = problems("zypper=https://mirror.example.org")
    assert all(name in said[0] for name in KINDS)


@pytest.mark.parametrize(
    ("word", "part"),
    [
        ("pip=", "no address"),
        ("pip=mirror.example.org/simple", "is not https"),
        ("files=ftp://mirror.example.org/", "is not https"),
        ("files=file://other/srv/mirror", "is not https"),
        ("files=srv/mirror", "is not https"),
        ("pip=file:///srv/mirror", "is not https"),
        ("pip=https://", "is not an address"),
        ("pip=https://mirror.example.org:99999999/", "is not an address"),
        ("files=https://mirror.example.org/a?b", "? or #"),
        ("dnf=https://mirror.example.org/a#b", "? or #"),
        ("apt=https://mirror.example.org/a b", "characters"),
        ("apt=https://mirror.example.org/$(id)", "characters"),
        ("apt=https://mirror.example.org/a\nb", "characters"),
        ("apt=https://mirror.example.org/a\x1b[2J", "characters"),
        ("files=https://mirror.example.org/'", "characters"),
        ('files=https://mirror.example.org/"', "characters"),
        ("dnf=https://mirror.example.org/`id`", "characters"),
        ("images=https://registry.example.org/proxy", "images=registry.example.org/proxy"),
        ("images=docker://registry.example.org", "images=registry.example.org"),
        ("images=proxy/docker", "its full name"),
        ("images=registry.example.org/Proxy", "lower case"),
        ("images=registry.example.org/proxy/", "lower case"),
        ("images=registry.example.org/../proxy", "lower case"),
        ("images=registry.example.org/debian:12", "only"),
        (f"images=registry.example.org/debian@{DIGEST}", "only"),
        ("images=user@registry.example.org", "only"),
    ],
)
def test_an_address_that_cannot_be_used(word: str, part: str) -> None:
    kind, said = problems(word)
    assert kind is InputError
    assert len(said) == 1
    assert part in said[0]
    # Nothing of it reaches the terminal as it is.
    assert all(line.isprintable() for line in said[0].splitlines())


def test_a_password_is_not_repeated() -> None:
    for word in ("files=https://me:secret@mirror.example.org/", "files=http://me:secret@mirror.example.org/"):
        _, said = problems(word)
        assert "contains a password" in said[0]
        assert "secret" not in said[0]


# the profile


def test_https_for_apt_without_a_certificate_in_the_base_is_noticed() -> None:
    planned = plan(with_mirrors(site(), ["apt=https://mirror.example.org/debian"]))
    assert any("network.ca_certificates" in notice for notice in assemble(planned, CATALOG).notices)
    http = plan(site(apt={"debian": AptMirror(archive="http://mirror.example.org/debian")}))
    assert not any("network.ca_certificates" in notice for notice in assemble(http, CATALOG).notices)


@pytest.mark.parametrize(
    ("mirrors", "part"),
    [
        ("dnf: {rockylinux: {archive: http://mirror.example.org/rocky}}", "https://"),
        ("dnf: {rockylinux: {archive: https://mirror.example.org/$x}}", "https://"),
        ("dnf: {fedora: {archive: https://mirror.example.org/fedora}}", "rockylinux"),
        ("registry: https://registry.example.org", "without https://"),
        ("registry: proxy/docker", "a registry"),
    ],
)
def test_a_profile_with_a_wrong_mirror_is_refused_by_check(
    hpcgen: Command, collection: Path, mirrors: str, part: str
) -> None:
    text = f"name: ours\nextends: workstation\ntitle: Ours\nnetwork: {{mirrors: {{{mirrors}}}}}\n"
    file = collection / "site_profiles" / "ours.yaml"
    file.write_text(text)
    done = hpcgen("--collection", str(collection), "check", str(file))
    assert done.returncode == 3
    assert part in done.stderr
    assert "ours.yaml:4:" in done.stderr


def test_a_profile_says_the_same_as_the_option(hpcgen: Command, collection: Path, tmp_path: Path) -> None:
    mirrors = "dnf: {rockylinux: {archive: https://mirror.example.org/rocky}}, registry: registry.example.org/proxy"
    (collection / "site_profiles" / "ours.yaml").write_text(
        f"name: ours\nextends: workstation\ntitle: Ours\nnetwork: {{mirrors: {{{mirrors}}}}}\n"
    )
    words = ["--site", "ours", "--stack", "mpi-hello", "--set", "base.provider=rockylinux"]
    done = hpcgen("--collection", str(collection), "render", *words, "-o", str(tmp_path / "kit"))
    assert done.returncode == 0, done.stderr
    repositories = (tmp_path / "kit" / "files" / "site" / "dnf-mirror.repo").read_text()
    assert "https://mirror.example.org/rocky/9/BaseOS/" in repositories
    recipe = (tmp_path / "kit" / "Dockerfile").read_text()
    assert "FROM registry.example.org/proxy/rockylinux/rockylinux:9 AS builder" in recipe


def test_a_table_of_the_site_without_repositories_is_explained() -> None:
    from hpcgen.backends.hardware.mirrors import repository_lines

    with pytest.raises(InputError, match="release table"):
        repository_lines("https://mirror.example.org/rocky", {"package_manager": "dnf"})


# the command


def test_the_option_is_part_of_the_command_that_makes_the_recipe_again(hpcgen: Command) -> None:
    words = ["render", "--site", "workstation", "--stack", "mpi-hello"]
    mirrors = ["--mirror", "files=https://mirror.example.org/sources", "--mirror", "images=registry.example.org"]
    done = hpcgen(*words, *mirrors)
    assert done.returncode == 0, done.stderr
    assert " ".join(mirrors) in done.stdout
    again = next(line for line in done.stdout.splitlines() if line.startswith("# made by hpcgen "))
    assert hpcgen(*again.split(": hpcgen ")[1].split()).stdout == done.stdout


@pytest.mark.parametrize(("word", "status"), [("pypi=https://mirror.example.org", 4), ("pip=http://x", 3), ("pip", 3)])
def test_mistakes_end_the_command_with_a_status_and_without_a_recipe(hpcgen: Command, word: str, status: int) -> None:
    done = hpcgen("render", "--site", "workstation", "--stack", "mpi-hello", "--mirror", word)
    assert (done.returncode, done.stdout) == (status, "")
    assert "--mirror: " in done.stderr
    assert "Traceback" not in done.stderr


def test_what_a_lock_pins_is_taken_from_a_mirror_and_is_the_same_image(hpcgen: Command, tmp_path: Path) -> None:
    lock = tmp_path / "hpcgen.lock"
    lock.write_text(locks.lock(stack="mpi-hello").text)
    direct = hpcgen("render", "--locked", str(lock))
    assert direct.returncode == 0, direct.stderr
    mirrors = ["--mirror", "apt=https://mirror.example.org/debian", "--mirror", "images=registry.example.org/proxy"]
    done = hpcgen("render", "--locked", str(lock), *mirrors)
    assert done.returncode == 0, done.stderr
    digest = locks.pins().images["debian:12"].digest
    assert f"FROM registry.example.org/proxy/library/debian:12@{digest} AS builder" in done.stdout
    assert "libstdc++6=12.2.0-14+deb12u1" in done.stdout

    def content(text: str) -> str:
        return next(line for line in text.splitlines() if "io.hpcgen.content" in line)

    assert content(done.stdout) == content(direct.stdout)
