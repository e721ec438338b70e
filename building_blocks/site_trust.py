"""Certificates, proxy and mirrors of the site, in place before the first network step."""

from __future__ import annotations

from collections.abc import Iterable
from posixpath import basename, splitext

from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.steps import Environment, HostFile, Packages, Part, Run, TextFile, command, lines, run

SOURCES = "/etc/apt/hpcgen-sources.list"
APT_CONFIGURATION = "/etc/apt/apt.conf.d/00hpcgen"
PIP_CONFIGURATION = "/etc/pip.conf"
REPOSITORIES = "/etc/dnf/hpcgen.repos.d"
DNF_CONFIGURATION = "/etc/dnf/dnf.conf"

# Per package manager: where a site's certificates lie, the bundle made of them, and what makes it.
# Source for zypper: README of openSUSE/ca-certificates.
ANCHORS = {
    "apt": "/usr/local/share/ca-certificates",
    "dnf": "/etc/pki/ca-trust/source/anchors",
    "zypper": "/etc/pki/trust/anchors",
}
BUNDLE = {
    "apt": "/etc/ssl/certs/ca-certificates.crt",
    "dnf": "/etc/pki/tls/certs/ca-bundle.crt",
    "zypper": "/etc/ssl/ca-bundle.pem",
}
UPDATE = {"apt": "update-ca-certificates", "dnf": "update-ca-trust extract", "zypper": "update-ca-certificates"}

# What takes the mirror out again. In the dots of the pattern stand slashes, which sed would want escaped.
LEAVE = {
    "apt": [f"rm -rf {SOURCES} {APT_CONFIGURATION} /var/lib/apt/lists/*"],
    "dnf": [
        command("sed", "-i", f"/^reposdir={REPOSITORIES.replace('/', '.')}$/d", DNF_CONFIGURATION),
        f"rm -rf {REPOSITORIES} /var/cache/dnf/*",
    ],
}


class SiteTrust(Block):
    """Settings for the site's network: trusted certificates, the proxy, mirrors.  Source: the site profile.

    - The site's certificates are copied into both stages and **stay trusted in the image**, so that a program
      in the container reaches the same servers through the same proxy. They work at once, also on a base
      without the ca-certificates package.
    - The proxy is known only while building, as build arguments; the image has no proxy variables.
    - The mirror of the distribution's archive and the one of the Python package index are set while building
      and removed at the end of each stage; the image has the distribution's own sources again.
    """

    name = "site_trust"

    def host_files(self, ctx: Context) -> list[HostFile]:
        """The site's certificates, each under the ending ``.crt`` that Debian's tool asks for."""
        return [HostFile(source, target) for source, target in zip(_sources(ctx), _targets(ctx), strict=True)]

    def packages(self, ctx: Context) -> Packages:
        """The tool that maintains the trust store, where there is something to add to it."""
        if not _sources(ctx):
            return Packages()
        names = {_manager(ctx): ["ca-certificates"]}
        return Packages(build=names, run=names)

    def environment(self, ctx: Context) -> Environment:
        """The proxy, for the time of the build, in both spellings that programs look for."""
        proxy = ctx.supply.proxy
        if proxy is None:
            return Environment()
        values = {"http_proxy": proxy.http, "https_proxy": proxy.https, "no_proxy": proxy.no_proxy}
        known = {name: value for name, value in values.items() if value}
        return Environment(arguments=known | {name.upper(): value for name, value in known.items()})

    def prepare(self, ctx: Context, stage: str) -> Iterable[Run]:
        """Trust the certificates and point the package tools to the mirrors, before anything is fetched."""
        manager = _manager(ctx)
        if _sources(ctx):
            yield run("trust the site's certificates", self._trust(ctx, manager), joins="next")
        if _sources_of(ctx):
            yield run(
                f"use {ctx.supply.packages_from}", _use_apt(ctx) if manager == "apt" else _use_dnf(ctx), joins="next"
            )
        pip = _pip_settings(ctx, BUNDLE[manager])
        if pip and stage == "builder":
            yield run(
                "pip's index and certificates",
                TextFile("files/site/pip.conf", PIP_CONFIGURATION, lines("[global]", *pip)),
            )

    def build(self, ctx: Context) -> Iterable[Run]:
        """In the builder, make the trust store anew now that its tool is certainly there."""
        if _sources(ctx):
            yield run("trust store", UPDATE[_manager(ctx)], joins="next")

    def finish(self, ctx: Context, stage: str) -> Iterable[Run]:
        """In the image, make the trust store; in both stages, leave no trace of the mirrors."""
        manager = _manager(ctx)
        if _sources(ctx) and stage == "final":
            yield run("trust store", UPDATE[manager], joins="previous")
        leftovers = []
        if _sources_of(ctx):
            leftovers += LEAVE[manager]
        if stage == "builder" and _pip_settings(ctx, BUNDLE[manager]):
            leftovers.append(command("rm", "-f", PIP_CONFIGURATION))
        if leftovers:
            yield run("remove the mirrors", leftovers, joins="previous")

    def notices(self, ctx: Context) -> list[str]:
        """A mirror whose certificate nothing in the base can check."""
        if _sources(ctx) or _manager(ctx) != "apt" or not any(" https:" in line for line in _sources_of(ctx)):
            return []
        message = (
            f"the mirror of apt is https, and the images of {ctx.base.name} bring no certificates to check it with:"
        )
        return [f"{message} name the file of its authority in network.ca_certificates of the profile"]

    @staticmethod
    def _trust(ctx: Context, manager: str) -> list[str]:
        if manager != "apt":
            return [UPDATE[manager]]
        # The tool may be missing as yet, and the package brings it only over a connection that needs this.
        bundle = BUNDLE["apt"]
        return ["mkdir -p /etc/ssl/certs", *(f"{command('cat', path)} >> {bundle}" for path in _targets(ctx))]


def _manager(ctx: Context) -> str:
    return str(ctx.base.release.values["package_manager"])


def _sources(ctx: Context) -> list[str]:
    return list(ctx.facts.network.ca_certificates)


def _targets(ctx: Context) -> list[str]:
    """Where each certificate lies in the image; a second file of the same name gets a number."""
    folder = ANCHORS[_manager(ctx)]
    targets: list[str] = []
    for path in _sources(ctx):
        stem = splitext(basename(path))[0]
        target = f"{folder}/{stem}.crt"
        number = 2
        while target in targets:
            target = f"{folder}/{stem}-{number}.crt"
            number += 1
        targets.append(target)
    return targets


def _sources_of(ctx: Context) -> list[str]:
    """Lines of a sources.list or a repository file to use in place of the base's own; empty if there are none."""
    ask = ctx.supply.apt_sources if _manager(ctx) == "apt" else ctx.supply.dnf_repositories
    return ask(ctx.base.name, ctx.base.release.values)


def _use_apt(ctx: Context) -> list[Part]:
    settings = [f'Dir::Etc::SourceList "{SOURCES}";', 'Dir::Etc::SourceParts "-";', *ctx.supply.apt_settings()]
    return [
        TextFile("files/site/apt-sources.list", SOURCES, lines(*_sources_of(ctx))),
        TextFile("files/site/apt.conf", APT_CONFIGURATION, lines(*settings)),
    ]


def _use_dnf(ctx: Context) -> list[Part]:
    """dnf 4 reads no more than one configuration file, so it gets a line there.  Source: dnf.conf(5), reposdir."""
    setting = f"reposdir={REPOSITORIES}"
    return [
        TextFile("files/site/dnf-mirror.repo", f"{REPOSITORIES}/mirror.repo", lines(*_sources_of(ctx))),
        command("sed", "-i", f"/^[[]main[]]/a {setting}", DNF_CONFIGURATION),
        # Without that line dnf would go to the image's own repositories.
        command("grep", "-qx", setting, DNF_CONFIGURATION),
    ]


def _pip_settings(ctx: Context, bundle: str) -> list[str]:
    settings = []
    if ctx.supply.pip_index is not None:
        settings.append(f"index-url = {ctx.supply.pip_index}")
    if _sources(ctx):
        settings.append(f"cert = {bundle}")
    return settings
