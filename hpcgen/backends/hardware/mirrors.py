"""Mirrors of a site: ``--mirror`` laid over the profile, and where a mirror holds what; addresses of channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from hpcgen.core.errors import InputError, Problem, Problems, UnknownNameError, did_you_mean
from hpcgen.core.model.fields import Url
from hpcgen.core.model.network import AptMirror, DnfMirror, FilesMirror, ImageMirror, Mirrors, Registry
from hpcgen.core.model.site import Site
from hpcgen.core.secret_rules import secret_in

OPTION = "--mirror"
KINDS = ("apt", "apt-security", "dnf", "pip", "conda", "files", "images")
_EXAMPLES = {
    "apt": "https://mirror.example.org/debian",
    "apt-security": "https://mirror.example.org/debian-security",
    "dnf": "https://mirror.example.org/rocky",
    "pip": "https://mirror.example.org/simple",
    "conda": "https://mirror.example.org/conda",
    "files": "https://mirror.example.org/sources",
    "images": "registry.example.org/proxy",
}
_APT_DISTRIBUTIONS: tuple[Literal["debian", "ubuntu"], ...] = ("debian", "ubuntu")
# What the field of the profile is that the address becomes; its pattern has the last word.
_PLAIN = ("pip", "conda", "files")
_FIELDS: dict[str, Any] = {
    "apt": AptMirror,
    "apt-security": AptMirror,
    "dnf": DnfMirror,
    "pip": Url,
    "conda": Url,
    "files": FilesMirror,
}


def with_mirrors(site: Site, words: Sequence[str]) -> Site:
    """The site with the mirrors of ``--mirror`` in place of its own of the same kind; its others stay.

    words: ``KIND=ADDRESS``, each kind at most once. ``apt`` stands for the archive of Debian and of Ubuntu: only
        the one that the image is based on is used.
    InputError: not of that form, a kind named twice, an address that is not https or cannot stand in a recipe.
    UnknownNameError: no such kind. Every mistake is told at once.
    """
    given, problems, unknown = _parsed(words)
    known = site.network.mirrors
    if "apt-security" in given and "apt" not in given and not known.apt:
        message = "apt-security: it accompanies an archive, but no archive is named"
        problems.append(Problem(message, OPTION, remedy=f"add {OPTION} apt={_EXAMPLES['apt']}, the site's archive"))
    if problems:
        raise InputError([*problems, *unknown])
    if unknown:
        raise UnknownNameError(unknown)
    if not given:
        return site
    network = msgspec.structs.replace(site.network, mirrors=_over(known, given))
    return msgspec.structs.replace(site, network=network)


def _parsed(words: Sequence[str]) -> tuple[dict[str, str], list[Problem], list[Problem]]:
    """Kind → address, what is wrong with the words, and kinds that do not exist."""
    given: dict[str, str] = {}
    problems = Problems()
    unknown = Problems()
    for word in words:
        kind, equals, address = word.partition("=")
        if not equals:
            expected = f"KIND=ADDRESS, such as pip={_EXAMPLES['pip']}"
            problems.add(f"{word!r} is not a mirror", OPTION, expected)
        elif kind not in KINDS:
            unknown.add(f"there is no mirror of {kind!r}", OPTION, remedy=did_you_mean(kind, KINDS))
        elif kind in given:
            problems.add(f"{kind}: its mirror is given twice", OPTION, remedy="leave one out")
        else:
            given[kind] = address
            problems += _address_problems(kind, address)
    return given, problems, unknown


def _over(known: Mirrors, given: Mapping[str, str]) -> Mirrors:
    changes: dict[str, Any] = {}
    if "apt" in given or "apt-security" in given:
        changes["apt"] = _apt(known, given.get("apt"), given.get("apt-security"))
    if "dnf" in given:
        changes["dnf"] = {"rockylinux": DnfMirror(archive=given["dnf"])}
    for kind in _PLAIN:
        if kind in given:
            changes[kind] = given[kind]
    if "images" in given:
        changes |= {"registry": given["images"], "images": {}}
    return msgspec.structs.replace(known, **changes)


def _apt(known: Mirrors, archive: str | None, security: str | None) -> dict[str, AptMirror]:
    """Both distributions' mirrors; where only ``security`` is given, that of those whose archive is known."""
    result: dict[str, AptMirror] = {}
    for name in _APT_DISTRIBUTIONS:
        before = known.apt.get(name) or (AptMirror(archive=archive) if archive else None)
        if before is not None:
            result[name] = AptMirror(archive=archive or before.archive, security=security or before.security)
    return result


def _address_problems(kind: str, address: str) -> list[Problem]:
    """What is wrong with an address, most telling first; one is enough to correct it."""
    expected = f"{kind}={'REGISTRY[/PREFIX]' if kind == 'images' else 'https://…'}, such as {kind}={_EXAMPLES[kind]}"

    def wrong(message: str, remedy: str = "") -> list[Problem]:
        return [Problem(f"{kind}: {message}", OPTION, expected, remedy)]

    if not address:
        return wrong("no address is given")
    if not address.isprintable() or any(sign in address for sign in " '\"`$\\;|<>"):
        return wrong(f"the address {address!r} has characters that are not allowed in a recipe", "leave them out")
    if secret := secret_in(address):
        return wrong(f"the address contains {secret}, which would end up in the recipe and the image", "leave it out")
    if kind == "images":
        return wrong(*_registry_mistake(address)) if not _fits(Registry, address) else []
    scheme, found, rest = address.partition("://")
    if kind == "files" and (address.startswith("/") or scheme == "file") and _fits(FilesMirror, address):
        return []
    if not found or scheme.lower() != "https":
        remedy = "name a server that supports https"
        if kind.startswith("apt") and scheme.lower() == "http":
            remedy += ", or write the mirror into the profile (network.mirrors.apt): apt checks signatures"
        return wrong(f"the address {address!r} is not https", remedy)
    if "?" in rest or "#" in rest:
        return wrong(f"the address {address!r} has a ? or #, after which no path can follow", "leave it out")
    if not _fits(_FIELDS[kind], address):
        return wrong(f"{address!r} is not an address that is allowed in a recipe")
    return []


def _registry_mistake(address: str) -> tuple[str, str]:
    """What most likely is meant instead, for an address that is no registry."""
    scheme, found, rest = address.partition("://")
    if found:
        return f"{address!r} has {scheme}:// before the registry", f"omit it: images={rest}"
    host, _, path = address.partition("/")
    if "@" in address or ":" in path:
        return f"{address!r} has a tag, a digest or a user name", "name only the registry and the folder in it"
    if "." not in host and ":" not in host and host != "localhost":
        return f"{host!r} would not be recognised as a registry", "write its full name, or its port"
    return (
        f"{address!r} is not a registry with an optional folder",
        "the folder's name must be lower case, without / at its end",
    )


def _fits(field: Any, address: str) -> bool:
    value: Any = address if field in (Url, FilesMirror, Registry) else {"archive": address}
    try:
        msgspec.convert(value, field)
    except msgspec.ValidationError:
        return False
    return True


def split_image(name: str) -> tuple[str, str]:
    """The registry in an image's name (empty where none is named) and the path there, with ``library/`` said."""
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first, rest
    return "", name if slash else f"library/{name}"


def qualified(image: str) -> str:
    """An image name with its registry: buildah and podman would ask which one is meant."""
    registry, path = split_image(image)
    return f"{registry or 'docker.io'}/{path}"


def names_image(mirrors: Mirrors, name: str, format: str) -> str:
    """What a mirror of the site says by itself to take for a base image, in a format; empty where none does."""
    return getattr(mirrors.images.get(name), format, None) or ""


def image_mirror(mirrors: Mirrors, name: str, pulled: str = "") -> ImageMirror | None:
    """Where a base image is found: by the mirror that names it, else in the site's registry, by its own path there.

    ``name``: as mirrors name it, with the tag that moves. ``pulled``: the name with the tag that is asked for there, if
    that is another.
    """
    named = mirrors.images.get(name)
    registry, path = split_image(pulled or name)
    if mirrors.registry is None or registry.partition(":")[0] == "localhost":
        return named
    held = f"{mirrors.registry}/{path}"
    if named is None:
        return ImageMirror(docker=held, charliecloud=held, singularity=held)
    return ImageMirror(
        docker=named.docker or held,
        charliecloud=named.charliecloud or held,
        singularity=named.singularity or held,
        bootstrap=named.bootstrap if named.singularity else "docker",
    )


def repository_lines(archive: str, values: Mapping[str, Any]) -> list[str]:
    """Lines of one repository file for dnf (dnf.conf(5), "[repository] options").

    The names are the distribution's own, so that a step that asks for one finds it, and the image's history reads
    as it would without a mirror. Only packages with a signature of ``keyring`` are installed; a mirror that does not
    answer is an error, not a reason to go on without it.

    archive: the folder of the mirror that holds the releases.
    values: of a release: ``repositories`` by name, each the path below ``archive``; ``more_repositories``, the
        same, which are there for a step that names them; ``keyring``.
    InputError: the release says none of that.
    """
    missing = [name for name in ("repositories", "more_repositories", "keyring") if name not in values]
    if missing:
        problem = f"the base's release has no {', '.join(missing)} among its values, so no mirror of dnf can be used"
        raise InputError(problem, remedy="add them to the release table, or omit network.mirrors.dnf")
    lines = []
    for enabled, repositories in ((1, values["repositories"]), (0, values["more_repositories"])):
        for name, path in repositories.items():
            lines += [
                f"[{name}]",
                f"name={name} (mirror)",
                f"baseurl={archive.rstrip('/')}/{path}/",
                f"enabled={enabled}",
                "gpgcheck=1",
                f"gpgkey=file://{values['keyring']}",
                "skip_if_unavailable=0",
            ]
    return lines


def conda_mirror(mirrors: Mirrors, url: str) -> str:
    """Where a mirror of the site has a conda channel, or a file of one; ``url`` itself without a mirror."""
    if mirrors.conda is None:
        return url
    return f"{mirrors.conda.rstrip('/')}/{url.partition('://')[2].partition('/')[2]}"


_HOST = "https://conda.anaconda.org"
_DEFAULTS = ("https://repo.anaconda.com/pkgs/main", "https://repo.anaconda.com/pkgs/r")
"""What conda's channel ``defaults`` stands for: docs.conda.io, "channels", "default channels"."""
_NO_CHANNEL = "nodefaults"


def channel_of(text: str) -> str:
    """The channel that ``text`` takes its package from; empty where it names none."""
    return text.partition("::")[0] if "::" in text else ""


def channel_addresses(named: Sequence[str]) -> list[str]:
    """Addresses of channels that are named as conda does."""
    found: list[str] = []
    for each in named:
        plain = each.rstrip("/")
        if plain != _NO_CHANNEL:
            found += _DEFAULTS if plain == "defaults" else [plain if "://" in plain else f"{_HOST}/{plain}"]
    return list(dict.fromkeys(found))
