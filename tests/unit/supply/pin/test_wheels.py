"""Hashed lists for another machine than this one, and the page by which pip finds the files of a bundle."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpcgen.core.errors import ConflictError, FetchError, InputError, MissingToolError
from hpcgen.core.model.bundle import BundleItem
from hpcgen.core.support import limits
from hpcgen.core.support.wheel_tags import WheelTarget, best_wheel, platforms
from hpcgen.supply.net.package_index import find_files
from hpcgen.supply.net.pip_settings import look_in, pip_settings
from hpcgen.supply.net.wheel_index import metadata_licence, wheel_index, wheel_licence
from hpcgen.supply.pin import uv_resolver
from hpcgen.supply.pin.uv_resolver import Request
from hpcgen.supply.pin.wheels import lock_wheels, resolve
from tests.helpers.stub_packages import index, sha256, source, wheel


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing of this machine's pip and uv takes part."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    pip_settings.cache_clear()
    yield
    pip_settings.cache_clear()


def line(path: Path, name: str, version: str) -> str:
    return f"{name}=={version} --hash=sha256:{sha256(path)}"


def test_markers_and_versions_are_those_of_the_target(tmp_path: Path) -> None:
    """Not of this machine: another Python, another architecture; only the files say what Python they need."""
    needs = [
        'only-old ; python_version < "3.9"',
        'only-new ; python_version >= "3.9"',
        'only-arm ; platform_machine == "aarch64"',
        'only-here ; platform_machine == "x86_64"',
    ]
    top = wheel(tmp_path, "top", "1.0", needs=needs)
    old = wheel(tmp_path, "only-old", "1.0", python=">=3.6")
    too_new = wheel(tmp_path, "only-old", "2.0", python=">=3.9")
    others = [wheel(tmp_path, name, "1.0") for name in ("only-new", "only-arm", "only-here")]
    address = index(tmp_path, top, old, too_new, *others)
    found = lock_wheels(["top"], "3.8.10", "aarch64", "2.31", indexes=[address])
    arm = next(path for path in others if "arm" in path.name)
    assert found == [line(arm, "only-arm", "1.0"), line(old, "only-old", "1.0"), line(top, "top", "1.0")]


def test_wheels_of_a_named_folder_are_taken_by_their_hash_beside_any_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the index is one of pip's settings or a site's mirror; the folder has no page and no hashes."""
    own = wheel(tmp_path / "own", "mine", "1.0+site", needs=["pack"])
    pack = wheel(tmp_path, "pack", "1.0")
    address = index(tmp_path, pack)
    look_in([own.parent])
    try:
        found = lock_wheels(["mine"], "3.11", "x86_64", "2.31", indexes=[address])
        assert found == [line(own, "mine", "1.0+site"), line(pack, "pack", "1.0")]
        assert [each.urls for each in find_files(found, [address])] == [[own.as_uri()], [pack.as_uri()]]
        monkeypatch.setenv("PIP_INDEX_URL", address)
        pip_settings.cache_clear()
        assert lock_wheels(["mine"], "3.11", "x86_64", "2.31") == found
    finally:
        look_in([])
        pip_settings.cache_clear()
    with pytest.raises(InputError, match="is not a folder"):
        look_in([own])


def test_the_pages_of_a_remote_index_are_not_read_again_for_what_uv_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call of uv has versions, names and hashes; files of this machine's own index still count, as for pip."""
    kinds = ["cp311-cp311-manylinux_2_28_x86_64", "cp311-cp311-manylinux_2_17_x86_64", "py3-none-any"]
    wheels = ", ".join(
        f'{{url = "https://index.example.org/f/pack-1.0-{kind}.whl", hashes = {{sha256 = "{number:064x}"}}}}'
        for number, kind in enumerate(kinds)
    )

    def answer(words: list[str], indexes: object, folder: Path, purpose: str) -> subprocess.CompletedProcess[str]:
        assert words[words.index("--format") + 1] == "pylock.toml"
        text = f'lock-version = "1.0"\n[[packages]]\nname = "Pack"\nversion = "1.0"\nwheels = [{wheels}]\n'
        Path(words[words.index("--output-file") + 1]).write_text(text, "utf-8")
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(uv_resolver, "run_uv", answer)
    remote = "https://index.example.org/simple"
    assert lock_wheels(["pack"], "3.11.2", "x86_64", "2.36", indexes=[remote]) == [f"pack==1.0 --hash=sha256:{0:064x}"]
    own = wheel(tmp_path, "pack", "1.0", "cp311-cp311-manylinux_2_36_x86_64")
    both = [remote, index(tmp_path, own)]
    assert lock_wheels(["pack"], "3.11.2", "x86_64", "2.36", indexes=both) == [line(own, "pack", "1.0")]


def test_the_remote_index_comes_before_those_of_this_machine_so_that_uv_tells_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uv itself: of two indexes with a version it tells the files of the first, and the answer says which that is.

    Two folders stand for the two; only their order is in question.
    """
    far, near = (index(tmp_path / name, wheel(tmp_path / name, "pack", "1.0")) for name in ("far", "near"))
    remote = "https://index.example.org/simple"
    words = uv_resolver._index_words([remote, near])
    words[words.index(remote)] = far
    (tmp_path / "asked.in").write_text("pack")
    listing = tmp_path / "pylock.toml"
    command = ["pip", "compile", "asked.in", "--format", "pylock.toml", "--output-file", str(listing), "--quiet"]
    monkeypatch.setattr(uv_resolver, "_index_words", lambda indexes: words)
    done = uv_resolver.run_uv([*command, "--index-strategy", "unsafe-best-match"], None, tmp_path, "lock wheels")
    assert done.returncode == 0, done.stderr
    assert "far/" in listing.read_text() and "near/" not in listing.read_text()


def test_the_file_is_the_one_that_pip_would_take(tmp_path: Path) -> None:
    """The newest platform that the C library allows, compiled before pure; and ``best_wheel`` says the same."""
    kinds = [
        "cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64",
        "cp310-cp310-manylinux_2_35_x86_64",
        "cp310-cp310-manylinux_2_36_x86_64",
        "cp310-cp310-musllinux_1_2_x86_64",
        "cp38-abi3-manylinux_2_28_x86_64",
        "cp311-cp311-manylinux_2_17_x86_64",
        "cp310-cp310-manylinux_2_17_aarch64",
        "py3-none-any",
    ]
    files = {wheel(tmp_path, "pack", "1.0", kind) for kind in kinds}
    address = index(tmp_path, *sorted(files))
    names = [path.name for path in files]
    for target, expected in (
        (WheelTarget("3.10.12", "x86_64", "2.35"), "cp310-cp310-manylinux_2_35_x86_64"),
        (WheelTarget("3.10", "x86_64", "2.17"), "cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64"),
        (WheelTarget("3.12.3", "x86_64", "2.36"), "cp38-abi3-manylinux_2_28_x86_64"),
        (WheelTarget("3.10.12", "aarch64", "2.35"), "cp310-cp310-manylinux_2_17_aarch64"),
        (WheelTarget("3.6.9", "x86_64", "2.27"), "py3-none-any"),
    ):
        (found,) = resolve(Request(target, ("pack",), indexes=(address,)))
        assert found.file == f"pack-1.0-{expected}.whl" == best_wheel(names, target)


def test_old_names_of_platforms_come_after_the_new_ones() -> None:
    names = platforms(WheelTarget("3.7", "x86_64", "2.18"))
    assert names[:3] == ["manylinux_2_18_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"]
    assert names[-3:] == ["manylinux_2_5_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    assert platforms(WheelTarget("3.7", "aarch64", "2.17"))[-2:] == ["manylinux2014_aarch64", "linux_aarch64"]
    files = ["a-1-cp37-cp37m-manylinux1_x86_64.whl", "a-1-cp37-cp37m-manylinux2014_x86_64.whl"]
    assert best_wheel(files, WheelTarget("3.7.3", "x86_64", "2.28")) == files[1]
    assert best_wheel(files, WheelTarget("3.8.10", "x86_64", "2.31")) is None


def test_what_the_environment_holds_already_stays_as_it_is(tmp_path: Path) -> None:
    """Its version, and its very file where its list has one."""
    numpy = [wheel(tmp_path, "numpy", version) for version in ("1.26.4", "2.0.0")]
    h5py = wheel(tmp_path, "h5py", "3.11.0", needs=["numpy>=1.17"])
    address = index(tmp_path, *numpy, h5py)
    held = ["# a list", f"numpy==1.26.4 --hash=sha256:{'c' * 64}"]
    found = lock_wheels(["h5py==3.11.0"], "3.11.2", "x86_64", "2.36", constraints=held, indexes=[address])
    assert found == [line(h5py, "h5py", "3.11.0"), held[1]]
    loose = lock_wheels(["h5py"], "3.11.2", "x86_64", "2.36", constraints=["numpy==1.26.4"], indexes=[address])
    assert loose[1] == line(numpy[0], "numpy", "1.26.4")
    with pytest.raises(ConflictError) as error:
        lock_wheels(["numpy==2.0.0"], "3.11.2", "x86_64", "2.36", constraints=held, indexes=[address])
    assert "numpy==2.0.0" in str(error.value) and "numpy==1.26.4" in str(error.value)


def test_a_source_package_is_taken_without_running_it(tmp_path: Path) -> None:
    horovod = source(tmp_path, "horovod", "0.28.1")
    psutil = wheel(tmp_path, "psutil", "7.0")
    address = index(tmp_path, horovod, psutil)
    found = lock_wheels(["psutil"], "3.9", "x86_64", "2.34", sdists=["horovod==0.28.1"], indexes=[address])
    assert found == [line(horovod, "horovod", "0.28.1"), line(psutil, "psutil", "7.0")]
    with pytest.raises(FetchError, match=r"no package index has horovod==0\.1 as source"):
        lock_wheels([], "3.9", "x86_64", "2.34", sdists=["horovod==0.1"], indexes=[address])
    with pytest.raises(InputError, match="does not say which source package"):
        lock_wheels([], "3.9", "x86_64", "2.34", sdists=["horovod>0"], indexes=[address])


def test_no_solution_is_said_in_the_resolvers_own_words(tmp_path: Path) -> None:
    only = wheel(tmp_path, "pack", "1.0", "cp311-cp311-manylinux_2_35_x86_64")
    address = index(tmp_path, only, wheel(tmp_path, "innocent", "1.0"))
    with pytest.raises(ConflictError) as error:
        lock_wheels(["innocent>=1", "pack==1.0"], "3.11.2", "x86_64", "2.31", indexes=[address])
    text = str(error.value)
    assert "innocent" not in text
    assert "found no wheels for pack==1.0 on CPython 3.11.2, x86_64, glibc 2.31" in text
    assert "pack==1.0 has no wheels with a matching platform tag" in text
    assert len(text) < 2000 and "Traceback" not in text


def test_given_indexes_are_the_only_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of pip's settings beside them; one that does not answer is told as such."""
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel(tmp_path / "more", "pack", "2.0").parent))
    one = wheel(tmp_path, "pack", "1.0")
    assert lock_wheels(["pack"], "3.11.2", "x86_64", "2.36", indexes=[index(tmp_path, one)]) == [
        line(one, "pack", "1.0")
    ]
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(FetchError, match="could not query a package index for pack"):
        lock_wheels(["pack"], "3.11.2", "x86_64", "2.36", indexes=["https://127.0.0.1:9/simple"])


def test_what_is_no_requirement_never_reaches_pip() -> None:
    bad = [
        "--index-url=https://example.org",
        "six @ https://example.org/six.whl",
        "a b",
        "six\n--pre",
        "-r /etc/passwd",
    ]
    with pytest.raises(InputError) as error:
        lock_wheels(bad, "3.11.2", "x86_64", "2.36", indexes=[])
    assert len(error.value.problems) == len(bad)
    with pytest.raises(InputError, match="wheels cannot be chosen for 'newest'"):
        lock_wheels(["six"], "newest", "x86_64", "2.36", indexes=[])


def test_a_machine_that_uv_does_not_know_is_refused_before_it_is_asked() -> None:
    with pytest.raises(InputError, match="wheels cannot be chosen for 'ppc64le'"):
        resolve(Request(WheelTarget("3.11", "ppc64le", "2.36"), ("pack",), indexes=()))


def test_the_file_is_chosen_from_all_indexes(tmp_path: Path) -> None:
    """The first has the version too, but another file of it fits better."""
    old = wheel(tmp_path / "one", "pack", "1.0", "cp311-cp311-manylinux_2_17_x86_64")
    new = wheel(tmp_path / "two", "pack", "1.0", "cp311-cp311-manylinux_2_34_x86_64")
    indexes = (index(tmp_path / "one", old), index(tmp_path / "two", new))
    (found,) = resolve(Request(WheelTarget("3.11.2", "x86_64", "2.35"), ("pack",), indexes=indexes))
    assert found.line == line(new, "pack", "1.0")


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match="uv is needed to lock wheels") as error:
        lock_wheels(["six"], "3.11.2", "x86_64", "2.36", indexes=[])
    assert error.value.problems[0].remedy == "pip install 'uv>=0.9'"


def item(folder: Path, path: Path) -> BundleItem:
    target = folder / "files" / sha256(path) / path.name
    target.parent.mkdir(parents=True)
    target.write_bytes(path.read_bytes())
    size = path.stat().st_size
    return BundleItem(
        kind="wheel", name=path.name, origin="x", sha256=sha256(path), size=size, path=str(target.relative_to(folder))
    )


def test_pip_installs_from_the_page_and_from_nothing_else(tmp_path: Path) -> None:
    """Also a name with ``+``; a wrong hash is refused; the address of the page has a space in it."""
    bundle = tmp_path / "a bundle"
    pack, torch = wheel(tmp_path, "pack", "1.0"), wheel(tmp_path, "torch", "2.0+cpu")
    (bundle / "files").mkdir(parents=True)
    items = [item(bundle, pack), item(bundle, torch)]
    (bundle / "wheels.html").write_text(wheel_index(items))
    assert wheel_index(items) == wheel_index(reversed(items))

    def install(name: str, *lines: str) -> subprocess.CompletedProcess[str]:
        listing = tmp_path / f"{name}.txt"
        listing.write_text("\n".join(lines))
        words = ["--no-index", "--find-links", (bundle / "wheels.html").as_uri(), "--no-deps", "--require-hashes"]
        command = [sys.executable, "-m", "pip", "install", "--target", str(tmp_path / name), *words, "-r", str(listing)]
        return subprocess.run(command, capture_output=True, text=True)

    done = install("good", line(pack, "pack", "1.0"), line(torch, "torch", "2.0+cpu"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "good" / "torch.py").read_text().startswith("version = '2.0+cpu'")
    bad = install("bad", f"pack==1.0 --hash=sha256:{'0' * 64}")
    assert bad.returncode == 1 and "DO NOT MATCH THE HASHES" in bad.stderr


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ("License-Expression: Apache-2.0 OR BSD-2-Clause\nLicense: other", "Apache-2.0 OR BSD-2-Clause"),
        ("License-Expression: MIT; rm -rf /", ""),
        ("Classifier: License :: OSI Approved\nClassifier: License :: OSI Approved :: MIT License", "MIT"),
        ("Classifier: License :: OSI Approved :: BSD License", ""),
        ("Classifier: License :: OSI Approved :: BSD License\nLicense: BSD-3-Clause", "BSD-3-Clause"),
        ("Classifier: License :: OSI Approved :: Apache Software License\nLicense: Apache 2.0", "Apache-2.0"),
        ("License: Apache License, Version 2.0", "Apache-2.0"),
        ("License: Apache-2.0 OR MIT", "Apache-2.0 OR MIT"),
        (
            "Classifier: License :: OSI Approved :: MIT License\n"
            "Classifier: License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)",
            "",
        ),
        ("License: see LICENSE", ""),
        ("Name: nothing", ""),
    ],
)
def test_a_licence_is_believed_where_it_is_said_plainly(fields: str, licence: str) -> None:
    assert metadata_licence(f"Metadata-Version: 2.4\n{fields}\n\nLicense-Expression: GPL-3.0-only\n") == licence


def test_licences_of_files(tmp_path: Path) -> None:
    mit = ["Classifier: License :: OSI Approved :: MIT License"]
    assert wheel_licence(wheel(tmp_path, "pack", "1.0", more=mit)) == "MIT"
    assert wheel_licence(source(tmp_path, "pack", "1.0", more=mit)) == "MIT"
    broken = tmp_path / "broken-1.0-py3-none-any.whl"
    broken.write_bytes(b"PK\x03\x04 nothing")
    assert wheel_licence(broken) == wheel_licence(tmp_path / "missing.tar.gz") == ""
    with zipfile.ZipFile(tmp_path / "empty-1.0-py3-none-any.whl", "w"):
        pass
    assert wheel_licence(tmp_path / "empty-1.0-py3-none-any.whl") == ""


def test_a_source_package_of_zeros_without_end_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pack-1.0.tar.gz"
    told = b"Metadata-Version: 2.4\nLicense-Expression: MIT\n"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in (("pack-1.0/zeros", bytes(1_000_000)), ("pack-1.0/PKG-INFO", told)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    assert wheel_licence(path) == "MIT"
    monkeypatch.setattr(limits, "_BYTES", 1000)
    assert wheel_licence(path) == ""


IN_THREADS = """
import sys, threading
from pathlib import Path
sys.setswitchinterval(1e-6)
from hpcgen.supply.pin.uv_resolver import run_uv
import uv
failures, together = [], threading.Barrier(8)
def ask():
    together.wait()
    try:
        run_uv(["--version"], [], Path("."), "try")
    except Exception as failure:
        failures.append(repr(failure))
threads = [threading.Thread(target=ask) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
print(failures)
"""


def test_several_threads_find_uv_at_the_same_time() -> None:
    # In a process of its own each time: it is the first question in one that can fail.
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", IN_THREADS], capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stdout == "[]\n"
