"""What an image brings for GPUs: run-time libraries and their releases, and for which GPUs its libraries have code.

Code of NVIDIA's is in the section ``.nv_fatbin``: containers one after the other, each with a header and entries, which
say what they are (1: PTX, 2: machine code) and for which compute capability. Nobody documents that; the layout is that
of n-eiling/cuda-fatbin-decompression, and was seen in the wheels of PyTorch and NVIDIA. Code of AMD's is in bundles,
each named after its target. Source: LLVM, "Clang Offload Bundler".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from hpcgen.core.model.image_facts import GpuCode, ImageGpu, ImageSoftware, Shown
from hpcgen.images.reading.elf_parts import section, text_in
from hpcgen.images.reading.files import LIBRARY, Look, SeenImage, text_of
from hpcgen.images.reading.owners import Owners, first_said, named_release, said_by
from hpcgen.machine.detect.elf import find_text
from hpcgen.machine.detect.tree import Blob

_MAGIC = 0xBA55ED50
_MOST_ENTRIES = 500_000
_WINDOW = 1 << 20
_BUNDLE = re.compile(rb"amdgcn-amd-amdhsa-[a-z]{0,20}-(gfx[0-9a-f]{3,5}(?:-generic)?)")
_ARCHITECTURES = re.compile(
    rb"\0((?:(?:sm|compute)_\d{2,3}[af]? ?){2,40})\0|\0((?:gfx[0-9a-f]{3,5} ){1,40}gfx[0-9a-f]{3,5})\0"
)
Found = set[tuple[str, str]]


def _code(blob: Blob) -> Found | None:
    """Pairs of a kind of code and what it is for."""
    found: Found = set()
    if place := section(blob, ".nv_fatbin"):
        found |= set(_entries(blob, *place))
    if place := section(blob, ".hip_fatbin"):
        found |= {("gfx", each.decode()) for each in _targets(blob, *place)}
    return found or None


def _entries(blob: Blob, start: int, size: int) -> Iterator[tuple[str, str]]:
    """Of each container the entries; what stands between two containers is passed over."""
    place, end, left = start, start + size, _MOST_ENTRIES
    while place + 16 <= end and left > 0:
        head = blob.at(place, 16)
        if len(head) < 16:
            return
        magic, _, length, inside = struct.unpack("<IHHQ", head)
        if magic != _MAGIC:
            place = _next_container(blob, place + 8, end)
            continue
        entry, last = place + length, min(place + length + inside, end)
        while entry + 32 <= last and left > 0:
            row = blob.at(entry, 32)
            if len(row) < 32:
                return
            kind, _, own, content = struct.unpack_from("<HHIQ", row)
            (capability,) = struct.unpack_from("<I", row, 28)
            if kind in (1, 2) and 10 <= capability < 1000:
                yield ("ptx" if kind == 1 else "cubin"), f"{capability // 10}.{capability % 10}"
            left -= 1
            entry += max(own + content, 32)
        left -= 1
        place = max(last, place + 16)


def _next_container(blob: Blob, place: int, end: int) -> int:
    mark = struct.pack("<I", _MAGIC)
    while place < end:
        found = blob.at(place, min(_WINDOW, end - place)).find(mark)
        if found >= 0:
            return place + found
        place += _WINDOW - 4
    return end


def _targets(blob: Blob, start: int, size: int) -> set[bytes]:
    found: set[bytes] = set()
    for place in range(start, start + size, _WINDOW):
        found |= set(_BUNDLE.findall(blob.at(place, min(_WINDOW + 80, start + size - place))))
    return found


def _listed(blob: Blob) -> str | None:
    match = find_text(blob, _ARCHITECTURES)
    return (match[1] or match[2]).decode().strip() if match else None


CODE = Look(
    r"/.*/(?:libtorch_(?:cuda|hip)\w*|lib(?:n|r)ccl|libcudnn\w*|lib(?:cu|roc|hip)blas\w*|libcufft|libcusparse|libcusolver"
    r"|libMIOpen|libtensorflow_(?:cc|framework)|_pywrap_tensorflow_internal|libonnxruntime_providers_(?:cuda|rocm)"
    r"|xla_(?:cuda|rocm)_plugin|flash_attn_2_cuda[\w.-]*|libgromacs\w*|liblammps\w*)\.so(?:\.[0-9.]+)?"
    r"|/.*/(?:vllm|xformers|flash_attn|transformer_engine|apex|deep_ep)/.*\.so",
    _code,
    LIBRARY,
    elf=True,
)
LISTED = Look(r"/.*/torch/lib/libtorch_python\.so", _listed, LIBRARY, elf=True)
TENSILE = Look(r"/.*/(?:rocblas|hipblaslt)/library/[^/]*gfx[0-9a-f]+[^/]*")
_TEXT = {
    "cuda": Look(r"/.*/libcudart\.so\.[0-9.]+"),
    "cudnn": Look(r"/.*/libcudnn\.so\.[0-9.]+"),
    "nccl": Look(
        r"/.*/libnccl\.so\.[0-9.]+", text_in(rb"NCCL version (\d{1,2}\.\d{1,3}\.\d{1,3})\+cuda"), LIBRARY, elf=True
    ),
    "rccl": Look(
        r"/.*/librccl\.so\.[0-9.]+", text_in(rb"RCCL version\W{0,3}(\d{1,2}\.\d{1,3}\.\d{1,3})"), LIBRARY, elf=True
    ),
    "nccl-plugin": Look(r"/.*/libnccl-(?:net|tuner|profiler)[\w-]*\.so(?:\.[0-9.]+)?"),
    "nvshmem": Look(r"/.*/libnvshmem_host\.so\.[0-9.]+"),
    "compat": Look(r"/.*/compat/(?:lib/)?libcuda\.so\.\d+\.[0-9.]+"),
    "driver": Look(r"/(?!.*(?:compat|stubs)/).*/libcuda\.so\.\d+\.[0-9.]+"),
    "rocm": Look(r"/opt/rocm[^/]*/\.info/version", text_of),
    "hip": Look(r"/.*/libamdhip64\.so\.[0-9.]+"),
    "level-zero": Look(r"/.*/libze_loader\.so\.[0-9.]+"),
}
_BY_NAME = {
    "cuda": r"\.so\.(\d+\.\d+\.\d+)$",
    "cudnn": r"\.so\.(\d+\.\d+\.\d+)$",
    "compat": r"\.so\.(\d+\.\d+(?:\.\d+)?)$",
    "driver": r"\.so\.(\d+\.\d+(?:\.\d+)?)$",
    "hip": r"\.so\.(\d+\.\d+\.\d+)$",
    "level-zero": r"\.so\.(\d+\.\d+\.\d+)$",
    "nccl-plugin": r"\.so\.(\d+\.\d+\.\d+)$",
}
CUDNN_HEADER = Look(r"/.*/cudnn_version(?:_v\d+)?\.h", text_of)
TOOLKIT = Look(r"/usr/local/cuda[^/]*/version\.json", text_of)
LOOKS = (CODE, LISTED, TENSILE, CUDNN_HEADER, TOOLKIT, *_TEXT.values())


def gpu_facts(view: SeenImage, owners: Owners) -> ImageGpu:
    """Libraries by product and path, and code by file."""
    libraries = []
    for name, look in _TEXT.items():
        texts = view.found(look)
        for path in sorted(set(view.named(look).values())):
            version = first_said(
                said_by(_number(texts.get(path)), path),
                named_release(path, _BY_NAME[name]) if name in _BY_NAME else None,
                owners.release(name, path) if name in _OWNED else None,
                _elsewhere(view, name, path),
            )
            libraries.append(ImageSoftware(name=name, file=path, version=version))
    return ImageGpu(libraries, [*_by_code(view), *_by_list(view)])


_OWNED = ("cuda", "cudnn", "nccl", "rccl", "nvshmem")


def _number(text: str | None) -> str | None:
    match = re.match(r"\d+(\.\d+)+", text.strip()) if text else None
    return match[0] if match else None


def _elsewhere(view: SeenImage, name: str, path: str) -> Shown | None:
    """cuDNN's header where it is installed with the library, the toolkit's list for what lies in its folder."""
    if name == "cudnn":
        for header, text in view.found(CUDNN_HEADER).items():
            numbers = dict(re.findall(r"^#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) (\d{1,4})$", text, re.MULTILINE))
            if len(numbers) == 3 and path.split(".so.")[1].split(".")[0] == numbers["MAJOR"]:
                return Shown(".".join(numbers[part] for part in ("MAJOR", "MINOR", "PATCHLEVEL")), header)
    if name == "cuda":
        for file, text in view.found(TOOLKIT).items():
            match = re.search(r'"cuda_cudart"\s*:\s*\{[^}]{0,200}"version"\s*:\s*"([\d.]+)"', text)
            if match and path.startswith(f"{file.rsplit('/', 1)[0]}/"):
                return Shown(match[1], file)
    return None


def _by_code(view: SeenImage) -> Iterator[GpuCode]:
    for path, found in view.found(CODE).items():
        kinds = {kind: _sorted({what for each, what in found if each == kind}) for kind in ("cubin", "ptx", "gfx")}
        yield GpuCode(path, "code", kinds["cubin"], kinds["ptx"], kinds["gfx"])
    folders: dict[str, set[str]] = {}
    for path in view.named(TENSILE):
        folders.setdefault(path.rsplit("/", 1)[0], set()).update(re.findall(r"gfx[0-9a-f]{3,5}", path))
    for folder, targets in sorted(folders.items()):
        yield GpuCode(folder, "code", gfx=sorted(targets))


def _by_list(view: SeenImage) -> Iterator[GpuCode]:
    """What PyTorch gives as ``torch.cuda.get_arch_list()``."""
    for path, text in view.found(LISTED).items():
        words = text.split()
        numbers = [re.sub(r"^[a-z]+_(\d+)(\d[af]?)$", r"\1.\2", word) for word in words]
        cubins = [number for word, number in zip(words, numbers, strict=True) if word.startswith("sm_")]
        ptx = [number for word, number in zip(words, numbers, strict=True) if word.startswith("compute_")]
        yield GpuCode(path, "list", _sorted(set(cubins)), _sorted(set(ptx)), [w for w in words if w.startswith("gfx")])


def _sorted(names: set[str]) -> list[str]:
    """By number, where they are numbers."""
    return sorted(names, key=lambda name: ([int(part) for part in re.findall(r"\d+", name)], name))
