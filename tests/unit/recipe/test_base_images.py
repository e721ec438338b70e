"""Base images: the dated one of the release table with its digest, the moving tag where that is asked for."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.backends.engines.charliecloud import CHECK, base_script
from hpcgen.blocks.inputs.image import Image, image
from hpcgen.blocks.sources import Supply
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import record_from
from hpcgen.core.model.lock import ImagePin
from hpcgen.core.model.network import ImageMirror, Mirrors
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.release import DatedImage
from hpcgen.core.support.hashing import sha256_of
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble, content_hash
from hpcgen.recipe.bases import wanted_system
from tests.conftest import Command

CATALOG = Catalog()
TABLE = CATALOG.releases("ubuntu")["24.04"].images["default"]
BASE = image(TABLE)
AMD64, ARM64 = BASE.platforms["amd64"], BASE.platforms["arm64"]
OTHER = "sha256:" + "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(CATALOG, CATALOG.site("workstation"), CATALOG.stack("mpi-hello"))


def changed(plan: Plan, format: str, mirrors: Mirrors | None = None, **more: Any) -> Plan:
    site = plan.site
    if mirrors is not None:
        site = msgspec.structs.replace(site, network=msgspec.structs.replace(site.network, mirrors=mirrors))
    return msgspec.structs.replace(plan, format=format, site=site, **more)


def recipe(plan: Plan) -> str:
    return make_kit(plan, CATALOG).recipe


def test_every_dated_image_of_the_tables_names_the_file_that_was_read() -> None:
    found = [
        each
        for name in CATALOG.names("block")
        for release in CATALOG.releases(name).values()
        for each in release.images.values()
        if isinstance(each, DatedImage)
    ]
    assert len(found) >= 5
    for each in found:
        assert each.source is not None and each.source.verified == "yes"
        assert each.source.from_.startswith("github.com/docker-library/repo-info@")
        assert each.source.from_.endswith(f" repos/{each.name.partition(':')[0]}/remote/{each.dated}.md")
        assert each.platforms.keys() >= {"amd64", "arm64"}
    digests = [digest for each in found for digest in (each.digest, *each.platforms.values())]
    assert len(set(digests)) == len(digests)


REGISTRY = Mirrors(registry="registry.example.org/proxy")


@pytest.mark.parametrize(
    ("format", "mirrors", "expected"),
    [
        ("docker", None, f"FROM docker.io/library/{BASE.pulled}@{AMD64} AS builder\n"),
        ("docker", REGISTRY, f"FROM registry.example.org/proxy/library/{BASE.pulled}@{AMD64} AS builder\n"),
        ("singularity", None, f"From: ubuntu@{AMD64}\n"),
        ("singularity", None, f"# base image {BASE.pulled}, by its digest: {AMD64[:19]}…\n"),
        ("singularity", REGISTRY, f"From: registry.example.org/proxy/library/ubuntu@{AMD64}\n"),
        ("charliecloud", None, f"FROM docker.io/library/{BASE.pulled} AS builder\n"),
        ("charliecloud", None, f"\ncheck_bases docker.io/library/{BASE.pulled} {AMD64}\n"),
        ("charliecloud", REGISTRY, f"\ncheck_bases registry.example.org/proxy/library/{BASE.pulled} {AMD64}\n"),
    ],
)
def test_a_recipe_names_the_dated_image_with_its_digest(
    format: str, mirrors: Mirrors | None, expected: str, plan: Plan
) -> None:
    text = recipe(changed(plan, format, mirrors))
    assert expected in text
    assert "may change" not in text


@pytest.mark.parametrize("format", ["docker", "singularity", "charliecloud"])
def test_the_latest_base_is_the_moving_tag_and_the_kit_says_so(format: str, plan: Plan) -> None:
    kit = make_kit(changed(plan, format, latest_base=True), CATALOG)
    line = "base image ubuntu:24.04 has no digest and may change (hpcgen lock pins it)"
    assert "ubuntu:24.04" in kit.recipe and "sha256:4" not in kit.recipe and BASE.dated not in kit.recipe
    assert f"\n# {line}\n" in kit.recipe and kit.notices.count(line) == 1
    assert "check_bases" not in kit.recipe and ("ARG HPCGEN_BASE=pulled" in kit.recipe) == (format == "charliecloud")
    assert '"latest_base": true' in kit.files["plan.json"].text


def test_an_image_that_the_site_has_itself_has_not_the_digest_of_the_table(plan: Plan) -> None:
    mirrors = Mirrors(images={"ubuntu:24.04": ImageMirror(docker="localhost/ubuntu:24.04")})
    kit = make_kit(changed(plan, "docker", mirrors), CATALOG)
    assert "FROM localhost/ubuntu:24.04 AS builder\n" in kit.recipe and "image.base." not in kit.recipe
    line = "base image ubuntu:24.04, here localhost/ubuntu:24.04, has no digest and may change (hpcgen lock pins it)"
    assert line in kit.notices
    # For another format it is pulled.
    assert f"check_bases docker.io/library/{BASE.pulled}" in recipe(changed(plan, "charliecloud", mirrors))
    digest = Mirrors(images={"ubuntu:24.04": ImageMirror(docker=f"registry.example.org/u@{OTHER}")})
    kit = make_kit(changed(plan, "docker", digest), CATALOG)
    assert f"FROM registry.example.org/u@{OTHER} AS builder" in kit.recipe
    assert not any("no digest" in notice for notice in kit.notices)


def test_an_image_is_that_of_the_sites_architecture(plan: Plan) -> None:
    system = msgspec.structs.replace(plan.site.system, architecture="aarch64")
    stage = assemble(msgspec.structs.replace(plan, site=msgspec.structs.replace(plan.site, system=system)), CATALOG)
    assert stage.final.image == Image("ubuntu:24.04", ARM64, BASE.dated)
    known = msgspec.structs.replace(BASE, platforms={"arm64": ARM64})
    assert known.on("x86_64").digest == BASE.digest  # of the index, by which an engine finds its own


def test_labels_lock_and_hash_say_the_same_image(plan: Plan) -> None:
    assembly = assemble(plan, CATALOG)
    labels = assembly.labels
    assert labels["org.opencontainers.image.base.name"] == f"docker.io/library/{BASE.pulled}"
    assert labels["org.opencontainers.image.base.digest"] == AMD64
    text = make_kit(plan, CATALOG).files["hpcgen.lock"].text
    assert f"    name: {BASE.pulled}\n    digest: {AMD64}\n" in text
    latest = assemble(changed(plan, plan.format, latest_base=True), CATALOG).labels
    assert latest["org.opencontainers.image.base.name"] == "docker.io/library/ubuntu:24.04"
    assert "org.opencontainers.image.base.digest" not in latest
    assert latest["io.hpcgen.content"] != labels["io.hpcgen.content"]
    stages = [assembly.builder, assembly.final]
    before = content_hash(stages)
    for stage in stages:
        stage.image = msgspec.structs.replace(stage.image, dated="another-20250101")
    assert content_hash(stages) == before  # the digest decides


def test_a_lock_of_another_day_keeps_its_tag_and_one_of_a_store_is_nothing_to_compare_with() -> None:
    pin = ImagePin(digest=OTHER, origin="docker://docker.io/library/ubuntu:x-20250101", dated="x-20250101")
    assert Supply(None).image("ubuntu:24.04", pin) == Image("ubuntu:24.04", OTHER, "x-20250101")
    local = ImagePin(digest=OTHER, origin="containers-storage:localhost/ubuntu:24.04")
    assert not Supply(None).image("ubuntu:24.04", local).in_registry


# Release tables

DATED = {"name": "ubuntu:24.04", "dated": BASE.dated, "digest": OTHER, "platforms": {"amd64": AMD64}}


@pytest.mark.parametrize(
    ("changes", "column", "said"),
    [
        ({}, 0, ""),
        ({"dated": "9.3.20231119"}, 0, ""),
        ({"dated": "24.04"}, 0, "the tag of one build of an image, with its date"),
        ({"dated": "noble"}, 0, "the tag of one build of an image, with its date"),
        ({"digest": OTHER[:-1]}, 0, "sha256: and 64 lower-case hexadecimal digits"),
        ({"digest": OTHER.upper()}, 0, "sha256: and 64 lower-case hexadecimal digits"),
        ({"platforms": {"amd64": "x"}}, 0, "sha256: and 64 lower-case hexadecimal digits"),
        ({"platforms": {"x86_64": AMD64}}, 0, "amd64, arm64, ppc64le"),
        ({"name": f"ubuntu:24.04@{OTHER}"}, 0, "without a digest"),
        ({"name": "ubuntu"}, 0, "with its tag"),
        ({"platforms": {"amd64": OTHER}}, 0, "the index and amd64 have the same digest"),
        ({"platforms": {"amd64": AMD64, "arm64": AMD64}}, 0, "amd64 and arm64 have the same digest"),
    ],
)
def test_mistakes_in_a_table_are_told(
    changes: dict[str, Any], column: int, said: str, tmp_path: Path, hpcgen: Command
) -> None:
    table = {"block": "ubuntu", "releases": {"24.04": {"images": {"default": {**DATED, **changes}}}}}
    (tmp_path / "ubuntu.yaml").write_text(json.dumps(table, indent=1))
    done = hpcgen("check", str(tmp_path / "ubuntu.yaml"))
    assert (done.returncode == 0) == (not said), done.stderr
    assert said in done.stderr


def test_a_name_with_a_malformed_digest_is_a_mistake(tmp_path: Path, hpcgen: Command) -> None:
    table = {"block": "ubuntu", "releases": {"24.04": {"images": {"default": "ubuntu:24.04@sha256:123"}}}}
    (tmp_path / "ubuntu.yaml").write_text(json.dumps(table, indent=1))
    done = hpcgen("check", str(tmp_path / "ubuntu.yaml"))
    assert done.returncode == 3 and "ubuntu.yaml:6" in done.stderr, done.stderr


def test_a_dated_image_of_a_table_is_read_as_one() -> None:
    assert isinstance(record_from(DATED, DatedImage), DatedImage)
    assert image(f"ubuntu:24.04@{OTHER}") == Image("ubuntu:24.04", OTHER)
    assert image("ubuntu:24.04").moving() == Image("ubuntu:24.04")


# What ch-image keeps of a pull, compared with a digest

NAME = "registry.example.org:5000/library/debian:bookworm-20260918"
HELD = "registry.example.org+5000%library%debian+bookworm-20260918"


class Storage:
    """ch-image's storage as 0.31 and 0.38 write it, with one pulled image, and a ch-image that says where it is."""

    def __init__(self, folder: Path) -> None:
        self.cache, self.image = folder / "dlcache", folder / "img" / HELD / "ch"
        program = folder / "bin" / "ch-image"
        for each in (self.cache, self.image, program.parent):
            each.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho {folder}\n")
        program.chmod(0o755)
        self.path = f"{program.parent}:/usr/bin:/bin"

    def pulled(self, config: str = "config", layer: str = "layer", suffix: str = "ab%skinny") -> str:
        """Lay an image out; the digest of its manifest."""
        described = [{"digest": f"sha256:{sha256_of(each.encode())}"} for each in (config, layer)]
        manifest = json.dumps({"config": described[0], "layers": [described[1]]})
        (self.image / "config.pulled.json").write_text(config)
        (self.cache / f"{described[1]['digest'][7:]}.tar.gz").write_text(layer)
        (self.cache / f"{HELD}%{suffix}.manifest.json").write_text(manifest)
        return f"sha256:{sha256_of(manifest.encode())}"

    def check(self, *words: str) -> subprocess.CompletedProcess[str]:
        script = f'set -euo pipefail\n{base_script(CHECK)}check_bases "$@"\necho went on\n'
        argv = ["bash", "-c", script, "check", *words]
        return subprocess.run(argv, env={"PATH": self.path}, capture_output=True, text=True, check=False)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path / "a store")


def test_the_image_that_was_pulled_is_compared(storage: Storage) -> None:
    digest = storage.pulled()
    good = storage.check(NAME, digest, NAME, digest)
    assert (good.returncode, good.stdout, good.stderr) == (0, "went on\n", "")
    bad = storage.check(NAME, digest, NAME, OTHER)
    assert (bad.returncode, bad.stdout) == (65, "")
    assert bad.stderr == f"error: ch-image pulled another {NAME} than the recipe names: it has {digest}, not {OTHER}\n"


def test_of_several_pulls_that_of_the_image_counts(storage: Storage) -> None:
    old = storage.pulled("older", suffix="0")
    new = storage.pulled("newer", suffix="1")
    assert storage.check(NAME, new).returncode == 0
    assert storage.check(NAME, old).returncode == 65
    # The same configuration over layers that were packed anew: either may be meant.
    again = storage.pulled("newer", "packed anew", suffix="2")
    assert [storage.check(NAME, each).returncode for each in (new, again)] == [0, 0]


def test_a_layer_that_is_another_one_is_told(storage: Storage) -> None:
    digest = storage.pulled()
    layer = next(storage.cache.glob("*.tar.gz"))
    layer.write_text("altered")
    bad = storage.check(NAME, digest)
    assert bad.returncode == 65 and f"a layer that is not sha256:{layer.name[:64]}" in bad.stderr
    layer.unlink()  # the cache may be emptied
    assert storage.check(NAME, digest).returncode == 0


@pytest.mark.parametrize("lost", ["ch/config.pulled.json", "manifest"])
def test_what_was_not_pulled_is_not_known(lost: str, storage: Storage) -> None:
    digest = storage.pulled()
    for path in [*storage.image.glob("*.json")] if lost != "manifest" else [*storage.cache.glob("*.manifest.json")]:
        path.unlink()
    done = storage.check(NAME, digest)
    assert (done.returncode, done.stdout) == (0, "went on\n")
    assert done.stderr == (f"note: whether {NAME} is {digest} is not known: ch-image keeps no record of pulling it\n")


def check_of(plan: Plan, stage: str) -> list[str]:
    """The commands by which a stage looks at its base, which are its first."""
    steps = getattr(assemble(plan, CATALOG), stage).steps
    assert [step.checks for _, step in steps][:2] == [True, False]
    return list(steps[0][1].commands)


def says(plan: Plan, folder: Path, os_release: str | None, architecture: str = "amd64") -> tuple[int, str]:
    """What the look at a base with this os-release and dpkg says: its status and its words."""
    release, dpkg = folder / "os-release", folder / "dpkg"
    release.unlink(missing_ok=True)
    if os_release is not None:
        release.write_text(os_release)
    dpkg.write_text(f"#!/bin/sh\necho {architecture}\n")
    dpkg.chmod(0o755)
    script = "\n".join(["set -eu", *check_of(plan, "final"), "echo went on"])
    script = script.replace("/etc/os-release", str(release)).replace("/usr/bin/dpkg", str(dpkg))
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout == "went on\n") == (done.returncode == 0)
    return done.returncode, done.stderr.splitlines()[-1] if done.stderr else ""


def test_a_build_ends_on_another_base_than_the_plans(plan: Plan, tmp_path: Path) -> None:
    good = 'NAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian\n'
    assert says(plan, tmp_path, good) == (0, "")
    told = f"hpcgen: wrong base image: {BASE.pulled} should be amd64 ubuntu 24.04 and is %s; correct "
    for text, architecture, found in [
        ("ID=debian\nVERSION_ID=12\n", "amd64", "amd64 debian 12"),
        ("ID=ubuntu\nVERSION_ID='24.10'\n", "amd64", "amd64 ubuntu 24.10"),
        ("ID=ubuntu\nVERSION_ID=24.040\n", "amd64", "amd64 ubuntu 24.040"),
        ("ID=debian\n", "amd64", "amd64 debian "),
        (good, "arm64", "arm64 ubuntu 24.04"),
        (None, "amd64", "amd64  "),
    ]:
        status, said = says(plan, tmp_path, text, architecture)
        assert (status, said.startswith(told % found)) == (65, True), said


def test_a_distribution_that_says_no_name_is_held_to_the_architecture_alone(tmp_path: Path) -> None:
    leap = make_plan(
        CATALOG,
        CATALOG.site("workstation"),
        CATALOG.stack("mpi-hello"),
        settings=("base.provider=opensuse_leap", "base.version=15.6"),
    )
    assert check_of(leap, "builder")[1].startswith("case \"$found.\" in 'x86_64 opensuse-leap 15.6.'*) ;; ")
    assert wanted_system(leap, {"package_manager": "zypper"}).begins == "x86_64 "


def test_a_point_release_is_the_release(tmp_path: Path) -> None:
    rocky = make_plan(
        CATALOG, CATALOG.site("workstation"), CATALOG.stack("mpi-hello"), settings=("base.provider=rockylinux",)
    )
    if platform.machine() == "x86_64":
        assert says(rocky, tmp_path, 'ID="rocky"\nVERSION_ID="9.4"\n') == (0, "")
        assert says(rocky, tmp_path, 'ID="almalinux"\nVERSION_ID="9.4"\n')[0] == 65
        assert says(rocky, tmp_path, 'ID="rocky"\nVERSION_ID="8.9"\n')[0] == 65


def test_what_only_looks_does_not_change_the_plan_hash(plan: Plan) -> None:
    final = assemble(plan, CATALOG).final
    without = msgspec.structs.replace(final, steps=final.steps[1:])
    assert content_hash([final]) == content_hash([without])


def test_a_base_that_may_be_imported_is_told_to_the_cache(plan: Plan) -> None:
    """After every FROM, before anything that could be taken from the cache; not where a digest says what is pulled."""
    named = Mirrors(images={"ubuntu:24.04": ImageMirror(charliecloud="ubuntu:24.04")})
    kit = make_kit(changed(plan, "charliecloud", named), CATALOG)
    froms = [text.split("\n\n")[:2] for text in kit.recipe.split("\nFROM ")[1:]]
    assert [(first.split()[0], second.splitlines()[0]) for first, second in froms] == [
        ("ubuntu:24.04", "ARG HPCGEN_BUILDER_BASE=pulled"),
        ("ubuntu:24.04", "ARG HPCGEN_BASE=pulled"),
    ]
    call = 'read -r -a told <<< "$(base_words ubuntu:24.04 HPCGEN_BUILDER_BASE ubuntu:24.04 HPCGEN_BASE)"\n'
    assert call in kit.recipe and kit.recipe.index(call) < kit.recipe.index("ch-image build --force")
    facts = json.loads(kit.files["recipe.json"].text)
    assert [each["argument"] for each in facts["stored"]] == ["HPCGEN_BUILDER_BASE", "HPCGEN_BASE"]
    pulled = recipe(changed(plan, "charliecloud"))
    assert "ARG HPCGEN_BASE" not in pulled and f"base_words docker.io/library/{BASE.pulled} ''" in pulled
    assert "HPCGEN_BASE" not in recipe(changed(plan, "docker", named))
