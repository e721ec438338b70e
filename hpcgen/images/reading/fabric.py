"""What an image brings for networks.

A provider that is built into libfabric is known by names of its functions, which are in its messages, or by the library
that it needs; one that is a file of its own, by its name. A list of all providers' names is in every libfabric, and so
shows nothing. Source: prov/ of ofiwg/libfabric; UCX's modules are ``libuct_TRANSPORT.so``.
"""

from __future__ import annotations

import posixpath
import re

import msgspec

from hpcgen.core.model.image_facts import ImageFabric, ImageSoftware, Shown
from hpcgen.images.reading.elf_parts import text_in
from hpcgen.images.reading.files import LIBRARY, Look, SeenImage
from hpcgen.images.reading.owners import Owners, first_said, in_order, named_release, said_by
from hpcgen.machine.detect.elf import read_library
from hpcgen.machine.detect.tree import Blob

_FUNCTIONS = re.compile(
    rb"\0(?:(vrb|psmx2|psmx3|fi_opx|opx|efa|cxip|usdf|ucx|xnet|tcpx|udpx|smr|sm2|sock|lnx|rxm|rxd)_[a-z0-9_]{3,60})(?=\0)"
)
_PROVIDERS = {
    b"vrb": "verbs",
    b"psmx2": "psm2",
    b"psmx3": "psm3",
    b"fi_opx": "opx",
    b"opx": "opx",
    b"cxip": "cxi",
    b"usdf": "usnic",
    b"xnet": "tcp",
    b"tcpx": "tcp",
    b"udpx": "udp",
    b"smr": "shm",
    b"sock": "sockets",
    b"rxm": "ofi_rxm",
    b"rxd": "ofi_rxd",
}
_NEEDED = {"libpsm2": "psm2", "libpsm_infinipath": "psm", "libcxi": "cxi", "libefa": "efa", "libucp": "ucx"}
_FILES = {
    "psmx2": "psm2",
    "verbs-1.1": "verbs",
    "verbs-1.12": "verbs",
    "rxm": "ofi_rxm",
    "rxd": "ofi_rxd",
}
_SCANNED = 64 * 1024 * 1024


class _Fabric(msgspec.Struct, frozen=True):
    providers: tuple[str, ...]


def _providers(blob: Blob) -> _Fabric | None:
    library = read_library(blob)
    if library is None:
        return None
    found = {match[1] for match in _FUNCTIONS.finditer(blob.at(0, min(blob.size, _SCANNED)))}
    names = {_PROVIDERS.get(each, each.decode()) for each in found}
    names |= {name for text, name in _NEEDED.items() if any(each.startswith(f"{text}.so") for each in library.needed)}
    return _Fabric(tuple(sorted(names)))


LIBFABRIC = Look(r"/.*/libfabric\.so\.[0-9.]+", _providers, LIBRARY, elf=True)
LIBFABRIC_TEXT = Look(LIBFABRIC.pattern, text_in(rb"\0([12]\.\d{1,2}\.\d{1,2}(?:rc\d|a\d|b\d)?)\0"), LIBRARY, elf=True)
PROVIDERS = Look(r"/.*/lib[a-z0-9_.-]+-fi\.so")
UCX = Look(r"/.*/libucp\.so\.[0-9.]+", text_in(rb"(?<![\d.])(1\.\d{1,2}\.\d{1,2})\0"), LIBRARY, elf=True)
TRANSPORTS = Look(r"/.*/libuct_[a-z0-9]+\.so(?:\.[0-9.]+)?")
VERBS = Look(r"/.*/libibverbs/lib[a-z0-9_]+-rdmav\d+\.so")
OTHERS = {
    "rdma-core": Look(r"/.*/libibverbs\.so\.[0-9.]+"),
    "psm2": Look(r"/.*/libpsm2\.so\.[0-9.]+"),
    "gdrcopy": Look(r"/.*/libgdrapi\.so\.[0-9.]+"),
    "xpmem": Look(r"/.*/libxpmem\.so\.[0-9.]+"),
    "cxi": Look(r"/.*/libcxi\.so\.[0-9.]+"),
}
_BY_NAME = {"rdma-core": r"\.so\.1\.\d+\.(\d+\.\d+)$", "gdrcopy": r"\.so\.(\d+\.\d+)$"}
"""The last numbers of rdma-core's libraries are those of its release, and gdrcopy's are all of it."""
LOOKS = (LIBFABRIC, LIBFABRIC_TEXT, PROVIDERS, UCX, TRANSPORTS, VERBS, *OTHERS.values())


def fabric_facts(view: SeenImage, owners: Owners) -> ImageFabric:
    """Libraries, providers, transports and drivers, each once."""
    libraries = []
    for name, look in (("libfabric", LIBFABRIC_TEXT), ("ucx", UCX)):
        texts = view.found(look)
        for path in sorted(set(view.named(look).values())):
            said = (said_by(texts.get(path), path), owners.release(name, path))
            # A number in the text of UCX may be another's.
            version = first_said(*(said if name == "libfabric" else reversed(said)))
            libraries.append(ImageSoftware(name=name, file=path, version=version))
    for name, look in OTHERS.items():
        for path in sorted(set(view.named(look).values())):
            by_name = named_release(path, _BY_NAME[name]) if name in _BY_NAME else None
            libraries.append(
                ImageSoftware(name=name, file=path, version=first_said(by_name, owners.release(name, path)))
            )
    built_in = [Shown(name, path) for path, told in view.found(LIBFABRIC).items() for name in told.providers]
    files = sorted(set(view.named(PROVIDERS).values()))
    own = [Shown(_FILES.get(name := posixpath.basename(path)[3:-6], name), path) for path in files]
    return ImageFabric(
        libraries=libraries,
        providers=list(in_order([*built_in, *own])),
        transports=list(in_order(Shown(_named(r"libuct_([a-z0-9]+)", p), p) for p in view.named(TRANSPORTS).values())),
        verbs=list(in_order(Shown(_named(r"lib(\w+)-rdmav", p), p) for p in view.named(VERBS))),
    )


def _named(pattern: str, path: str) -> str:
    match = re.match(pattern, posixpath.basename(path))
    return match[1] if match else posixpath.basename(path)
