"""Files of conda packages: what hpcgen reads of them, and what it says of mistakes, each at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.readers.conda_files import read_conda

URL = "https://conda.example.org/forge"
ZLIB = f"{URL}/linux-64/zlib-1.3.1-hb9d3cd8_2.conda"
TZDATA = f"{URL}/noarch/tzdata-2025b-h78e105d_0.conda"
HASH = "ab" * 32


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder


def messages(error: pytest.ExceptionInfo[HpcgenError]) -> list[str]:
    return [f"{str(each.where).rpartition('/')[2]} {each.message}" for each in error.value.problems]


def test_an_environment_has_channels_needs_pip_and_variables(tmp_path: Path) -> None:
    written(tmp_path, "requirements.txt", "tqdm>=4\n")
    text = """\
name: climate
channels: [conda-forge, https://conda.example.org/own/]
dependencies:
  - python=3.12
  - conda-forge::NumPy >=1.26,<3
  - mpich=4.*=external_*
  - pip
  - pip:
      - h5py==3.11.0
      - -r requirements.txt
variables:
  HDF5_USE_FILE_LOCKING: "FALSE"
prefix: /home/somebody/env
"""
    found = read_conda(written(tmp_path, "environment.yml", text), "environment.yml")
    assert (found.kind, found.name, found.locked) == ("environment", "climate", False)
    assert found.channels == ["conda-forge", "https://conda.example.org/own"]
    assert [each.name for each in found.needs] == ["python", "numpy", "mpich", "pip"]
    assert str(found.needs[2].where) == "environment.yml:6:5" and found.needs[2].spec == "mpich=4.*=external_*"
    assert [(each.asked, each.origin) for each in found.pip] == [
        ("h5py==3.11.0", "environment.yml:9"),
        ("tqdm>=4", "requirements.txt:1"),
    ]
    assert found.variables == {"HDF5_USE_FILE_LOCKING": "FALSE"}
    assert sorted(found.read) == ["environment.yml", "requirements.txt"]


def test_all_mistakes_of_an_environment_are_said_at_their_places(tmp_path: Path) -> None:
    text = """\
channels: ["https://me:pw@conda.example.org/own", "https://conda.example.org/t/abc/own", "http://old.example.org/x"]
dependencies:
  - ./here.conda
  - npm: [left-pad]
  - pip:
      - -e ../x
      - git+http://example.org/x.git
"""
    with pytest.raises(InputError) as error:
        read_conda(written(tmp_path, "environment.yml", text), "environment.yml")
    assert [each.split(" ", 1)[0] for each in messages(error)] == [
        "environment.yml:1:12",
        "environment.yml:1:51",
        "environment.yml:1:90",
        "environment.yml:3:5",
        "environment.yml:4:5",
        "environment.yml:6:9",
        "environment.yml:7:9",
    ]
    assert "pw" not in str(error.value) and "abc" not in str(error.value)


PIXI_6 = f"""\
version: 6
environments:
  default:
    channels:
    - url: {URL}/
    packages:
      linux-64:
      - conda: {ZLIB}
      - conda: {TZDATA}
      - pypi: https://files.example.org/h5py-3.11.0-cp312-cp312-manylinux_2_17_x86_64.whl
      osx-arm64:
      - conda: {URL}/osx-arm64/zlib-1.3.1-h8359307_2.conda
packages:
- conda: {ZLIB}
  sha256: {HASH}
  depends:
  - libzlib 1.3.1 hb9d3cd8_2
  license: Zlib
  size: 92286
- conda: {TZDATA}
  sha256: {HASH}
- pypi: https://files.example.org/h5py-3.11.0-cp312-cp312-manylinux_2_17_x86_64.whl
  name: h5py
  version: 3.11.0
  sha256: {HASH}
- conda: {URL}/osx-arm64/zlib-1.3.1-h8359307_2.conda
  md5: "00"
"""
PIXI_5 = f"""\
version: 5
environments:
  default:
    channels:
    - url: {URL}/
    packages:
      linux-64:
      - conda: {ZLIB}
packages:
- kind: conda
  name: zlib
  version: 1.3.1
  build: hb9d3cd8_2
  subdir: linux-64
  url: {ZLIB}
  sha256: {HASH}
  depends:
  - libzlib 1.3.1 hb9d3cd8_2
  license: Zlib
  size: 92286
"""
PIXI_7 = PIXI_6.replace("version: 6", "version: 7\nplatforms:\n- name: node\n  subdir: linux-64").replace(
    "      linux-64:", "      node:"
)


@pytest.mark.parametrize("text", [PIXI_5, PIXI_6], ids=["5", "6"])
def test_locks_of_pixi_have_packages_with_address_and_hash(tmp_path: Path, text: str) -> None:
    found = read_conda(written(tmp_path, "pixi.lock", text), "pixi.lock")
    zlib = found.environments["default"]["linux-64"].packages[0]
    assert (zlib.exact, zlib.subdir, zlib.url, zlib.sha256) == ("zlib=1.3.1=hb9d3cd8_2", "linux-64", ZLIB, HASH)
    assert (zlib.size, zlib.licence, zlib.depends) == (92286, "Zlib", ["libzlib 1.3.1 hb9d3cd8_2"])
    assert (zlib.channel, found.channels, found.locked) == (URL, [URL], True)


def test_a_lock_of_pixi_also_has_wheels_and_says_where(tmp_path: Path) -> None:
    found = read_conda(written(tmp_path, "pixi.lock", PIXI_6), "pixi.lock")
    linux = found.environments["default"]["linux-64"]
    assert [each.subdir for each in linux.packages] == ["linux-64", "noarch"]
    assert [(each.name, each.version) for each in linux.wheels] == [("h5py", "3.11.0")]
    # What is for other systems is not looked at: the package there has no sha256.
    assert not found.environments["default"]["osx-arm64"].packages


def test_a_lock_of_version_7_names_its_platforms_itself(tmp_path: Path) -> None:
    found = read_conda(written(tmp_path, "pixi.lock", PIXI_7), "pixi.lock")
    assert [each.name for each in found.environments["default"]["linux-64"].packages] == ["zlib", "tzdata"]


def test_mistakes_in_a_lock_of_pixi(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_conda(written(tmp_path, "pixi.lock", PIXI_6.replace("version: 6", "version: 9")), "pixi.lock")
    assert messages(error) == ["pixi.lock:1:10 the lock has version 9"]
    text = PIXI_6.replace(f"  sha256: {HASH}\n  depends", "  depends").replace(
        f"- conda: {TZDATA}\n  sha", "- x: y\n  sha"
    )
    with pytest.raises(InputError) as error:
        read_conda(written(tmp_path, "pixi.lock", text), "pixi.lock")
    assert messages(error) == [
        "pixi.lock:14:3 zlib has no sha256 in the lock",
        "pixi.lock:9:9 this package is not in the list `packages` of the lock",
    ]


CONDA_LOCK = f"""\
version: 1
metadata:
  content_hash:
    linux-64: {HASH}
  channels:
  - url: conda-forge
    used_env_vars: []
  platforms: [linux-64, osx-64]
  sources: [environment.yml]
package:
- name: zlib
  version: 1.3.1
  manager: conda
  platform: linux-64
  dependencies:
    libzlib: 1.3.1
  url: {ZLIB}
  hash:
    md5: aaaa
    sha256: {HASH}
  category: main
  optional: false
- name: tzdata
  version: 2025b
  manager: conda
  platform: linux-64
  dependencies: {{}}
  url: {TZDATA}
  hash: {{md5: aaaa, sha256: {HASH}}}
  category: dev
  optional: true
- name: tqdm
  version: 4.67.1
  manager: pip
  platform: linux-64
  dependencies: {{}}
  url: https://files.example.org/tqdm-4.67.1-py3-none-any.whl
  hash: {{sha256: {HASH}}}
  category: main
- name: zlib
  version: 1.3.1
  manager: conda
  platform: osx-64
  dependencies: {{}}
  url: {URL}/osx-64/zlib-1.3.1-hd23fc13_2.conda
  hash: {{md5: aaaa}}
"""


def test_a_lock_of_conda_lock_has_categories(tmp_path: Path) -> None:
    found = read_conda(written(tmp_path, "conda-lock.yml", CONDA_LOCK), "conda-lock.yml")
    names = {
        category: [each.exact for each in platforms["linux-64"].packages]
        for category, platforms in found.environments.items()
    }
    assert names == {
        "main": ["zlib=1.3.1=hb9d3cd8_2"],
        "dev": ["zlib=1.3.1=hb9d3cd8_2", "tzdata=2025b=h78e105d_0"],
    }
    assert [each.name for each in found.environments["main"]["linux-64"].wheels] == ["tqdm"]
    assert found.channels == ["conda-forge"]


def test_an_explicit_list_needs_a_sha256_of_each(tmp_path: Path) -> None:
    text = f"# platform: linux-64\n@EXPLICIT\n{ZLIB}#sha256:{HASH}\n{TZDATA}#{HASH}\n"
    found = read_conda(written(tmp_path, "conda-linux-64.lock", text), "conda-linux-64.lock")
    assert [each.name for each in found.environments["default"]["linux-64"].packages] == ["zlib", "tzdata"]
    written(
        tmp_path, "conda-linux-64.lock", f"{ZLIB}#0123456789abcdef0123456789abcdef\n  https://x.example.org/y.zip\n"
    )
    with pytest.raises(InputError) as error:
        read_conda(tmp_path, "conda-linux-64.lock")
    assert messages(error) == [
        "conda-linux-64.lock:1:1 zlib has no sha256 in the lock",
        "conda-linux-64.lock:2:3 'https://x.example.org/y.zip' is not the address of a conda package",
        "conda-linux-64.lock this is not an explicit list of conda packages",
    ]


def test_a_lock_with_an_address_that_no_shell_must_see_is_refused(tmp_path: Path) -> None:
    evil = ZLIB.replace("zlib-", "$(id)/zlib-")
    with pytest.raises(InputError):
        read_conda(written(tmp_path, "pixi.lock", PIXI_6.replace(ZLIB, evil)), "pixi.lock")


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a file of conda packages"):
        read_conda(tmp_path, "setup.cfg")
