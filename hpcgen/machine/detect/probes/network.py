"""What a build on this machine needs on the way out: mirrors, a package index, a proxy, extra certificates.

Read from where the machine itself keeps them; nothing is asked on the network. Sources: sources.list(5),
pip's "Configuration", update-ca-certificates(8), update-ca-trust(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpcgen.core.secret_rules import secret_in
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.probes.system import os_release
from hpcgen.machine.detect.seen import Seen

_APT = "/etc/apt"
_CERTIFICATES = (
    "/usr/local/share/ca-certificates",
    "/etc/pki/ca-trust/source/anchors",
    "/etc/pki/trust/anchors",
    "/usr/share/pki/trust/anchors",
)
_HTTP = re.compile(r"https?://[A-Za-z0-9.@:_-]+(/[A-Za-z0-9._~/+@%:,=-]*)?")
_PIP_FILES = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf")


def probe(machine: Machine, seen: Seen) -> None:
    _apt(machine, seen)
    _pip(machine, seen)
    _proxy(machine, seen)
    certificates = [path for folder in _CERTIFICATES for path in _below(machine, folder)]
    seen.add("network.ca_certificates", certificates, "folders of additional certificates that the machine trusts")


def _below(machine: Machine, folder: str) -> list[str]:
    names = sorted({*machine.names(folder, "*.crt"), *machine.names(folder, "*.pem")})
    return [path for path in (f"{folder}/{name}" for name in names) if machine.is_file(path)]


def apt_sources(machine: Machine) -> Iterator[tuple[str, str]]:
    """Address and suite of each source of binary packages that is switched on."""
    lists = [f"{_APT}/sources.list", *_named(machine, ".list")]
    for line in "\n".join(machine.text(path) or "" for path in lists).split("\n"):
        match = re.match(r"deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", line.strip())
        if match:
            yield match[1], match[2]
    for path in _named(machine, ".sources"):
        for paragraph in re.split(r"\n\s*\n", machine.text(path) or ""):
            lines = [line for line in paragraph.split("\n") if not line.startswith("#")]
            fields = {key.strip().lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
            if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() == "no":
                continue
            yield from (
                (uri, suite) for uri in fields.get("uris", "").split() for suite in fields.get("suites", "").split()
            )


def _named(machine: Machine, end: str) -> list[str]:
    folder = f"{_APT}/sources.list.d"
    return [f"{folder}/{name}" for name in machine.names(folder, f"*{end}")]


def _apt(machine: Machine, seen: Seen) -> None:
    """Where the machine itself gets packages of its distribution from."""
    settings = os_release(machine)
    name, code = settings.get("ID", ""), settings.get("VERSION_CODENAME", "")
    if name not in ("debian", "ubuntu") or not code:
        return
    found = {suite: uri.rstrip("/") for uri, suite in reversed(list(apt_sources(machine)))}
    archive, security = found.get(code), found.get(f"{code}-security")
    if not archive or not _HTTP.fullmatch(archive):
        return
    mirror = {"archive": archive}
    if security and _HTTP.fullmatch(security):
        mirror["security"] = security
    if any(map(secret_in, mirror.values())):
        seen.notes.append("apt's mirror has a secret in its address; it was left out of the profile")
        return
    seen.add(f"network.mirrors.apt.{name}", mirror, f"apt's sources below {_APT}")


def _pip(machine: Machine, seen: Seen) -> None:
    home = machine.environment.get("HOME", "")
    files = [*_PIP_FILES]
    if home:
        files += [f"{home}/.pip/pip.conf", f"{home}/.config/pip/pip.conf"]
    if folder := machine.environment.get("XDG_CONFIG_HOME"):
        files.append(f"{folder}/pip/pip.conf")
    if folder := machine.environment.get("VIRTUAL_ENV"):
        files.append(f"{folder}/pip.conf")
    if path := machine.environment.get("PIP_CONFIG_FILE"):
        files.append(path)
    index, how = "", ""
    for path in files:
        match = re.search(r"^[ \t]*index[-_]url[ \t]*[=:][ \t]*(\S+)[ \t]*$", machine.text(path) or "", re.MULTILINE)
        if match:
            index, how = match[1], path
    if address := machine.environment.get("PIP_INDEX_URL"):
        index, how = address, "PIP_INDEX_URL"
    if not index:
        return
    if secret_in(index):
        seen.notes.append(f"the index in {how} has a secret in its address; it was left out of the profile")
    elif index.startswith("https://"):
        seen.add("network.mirrors.pip", index, how)
    else:
        seen.notes.append(f"the index in {how} does not use https; it was left out of the profile")


def _proxy(machine: Machine, seen: Seen) -> None:
    found = {}
    for field, name in (("http", "http_proxy"), ("https", "https_proxy")):
        value = machine.environment.get(name) or machine.environment.get(name.upper())
        if value and secret_in(value):
            seen.notes.append(f"{name} has a secret in its address; it was left out of the profile")
        elif value:
            found[field] = value if "://" in value else f"http://{value}"
    if not found:
        return
    if besides := machine.environment.get("no_proxy") or machine.environment.get("NO_PROXY"):
        found["no_proxy"] = besides
    seen.add("network.proxy", found, "http_proxy, https_proxy and no_proxy")
