"""Ways in which a release can be had: which one options and architecture choose, and what is refused."""

from __future__ import annotations

import msgspec
import pytest

from hpcgen.blocks.requirements import Candidate
from hpcgen.blocks.ways import in_use, way_refusals, wheel_for, wheel_tags
from hpcgen.core.model.release import Release

HASH = "0" * 64
SITE = "https://files.example.org/"
ROW = msgspec.convert(
    {
        "accepts": {"python": ">=3.9,<3.14", "gnu": ">=9"},
        "host": {"capability": ">=5.0"},
        "ways": [
            {
                "only": {"accelerator": ["cuda"], "install": ["pip"]},
                "architectures": ["x86_64"],
                "gpu": "nvidia",
                "host": {"driver": ">=525"},
            },
            {"only": {"accelerator": ["cpu"], "install": ["package"]}, "on": {"debian": "==12"}},
            {
                "only": {"accelerator": ["cpu"], "install": ["wheel"]},
                "wheels": [
                    {"url": f"{SITE}x-1%2Bcpu-cp310-cp310-linux_x86_64.whl", "sha256": HASH},
                    {"url": f"{SITE}x-1%2Bcpu-cp312-cp312-manylinux_2_28_x86_64.whl", "sha256": HASH},
                    {"url": f"{SITE}x-1%2Bcpu-cp311-cp311-manylinux_2_28_aarch64.whl", "sha256": HASH},
                ],
            },
            {"only": {"install": ["source"]}, "accepts": {"gnu": "<14"}},
        ],
    },
    Release,
)


@pytest.mark.parametrize(
    ("name", "python", "architecture"),
    [
        ("torch-2.9.1%2Bcpu-cp312-cp312-manylinux_2_28_x86_64.whl", "==3.12.*", "x86_64"),
        ("torch-1.5.1-cp36-cp36m-manylinux1_x86_64.whl", "==3.6.*", "x86_64"),
        ("torch-2.6.0%2Bcpu-cp310-cp310-linux_x86_64.whl", "==3.10.*", "x86_64"),
        ("x-1-cp38-abi3-manylinux_2_17_aarch64.manylinux2014_aarch64.whl", ">=3.8", "aarch64"),
        ("x-1-py3-none-any.whl", "", ""),
    ],
)
def test_the_name_of_a_wheel_says_what_it_is_for(name: str, python: str, architecture: str) -> None:
    tags = wheel_tags(SITE + name)
    assert tags is not None
    assert (tags.python, tags.architecture) == (python, architecture)


@pytest.mark.parametrize("name", ["x-1.tar.gz", "x-1-cp312-cp312-win_amd64.whl", "x.whl"])
def test_other_files_are_no_wheels_for_linux(name: str) -> None:
    assert wheel_tags(SITE + name) is None


def of(architecture: str = "x86_64", **options: str) -> Release:
    return in_use(ROW, options, architecture)


def refused(architecture: str = "x86_64", **options: str) -> list[str]:
    found = way_refusals(Candidate("x", "x", "1"), ROW, options, architecture, ("amd", "partitions.a.gpu.vendor"))
    return [f"{each.reason.by}: {' '.join((each.reason.requires or {}).values())}" for each in found]


def test_a_way_adds_to_what_the_row_says() -> None:
    cuda = of(accelerator="cuda", install="pip")
    assert cuda.host == {"capability": ">=5.0", "driver": ">=525"}
    assert cuda.accepts == ROW.accepts
    assert of(accelerator="cpu", install="package").on == {"debian": "==12"}
    assert of(accelerator="cpu", install="source").accepts["gnu"] == ">=9,<14"


def test_the_wheels_of_a_way_say_for_which_pythons_it_is() -> None:
    here = of(accelerator="cpu", install="wheel")
    assert here.accepts["python"] == ">=3.10,<3.13,!=3.11.*"
    found = wheel_for(here, "3.12.3", "x86_64")
    assert found is not None
    assert "cp312" in found.url
    assert wheel_for(here, "3.11.2", "x86_64") is None
    assert of("aarch64", accelerator="cpu", install="wheel").accepts["python"] == "==3.11.*"


def test_what_leaves_no_way_is_named() -> None:
    assert refused(accelerator="cpu", install="wheel") == []
    assert refused(accelerator="rocm", install="pip") == ["x.install: source"]
    assert refused(accelerator="cpu", install="pip") == ["x.install: package or wheel or source"]
    assert refused("aarch64", accelerator="cuda", install="pip") == ["x.install: source"]
    assert refused(accelerator="cuda", install="pip") == ["GPU: nvidia"]
    only_x86 = msgspec.structs.replace(ROW, ways=ROW.ways[:1])
    (found,) = way_refusals(Candidate("x", "x", "1"), only_x86, {"accelerator": "cuda", "install": "pip"}, "aarch64")
    assert (found.reason.by, found.reason.place) == ("architecture", "system.architecture")
