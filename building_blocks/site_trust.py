"""Certificates, proxy and mirrors of the site, in place before the first network step."""

from __future__ import annotations

from collections.abc import Iterable
from posixpath import basename, splitext

from hpcgen.block import Block, Context
from hpcgen.steps import Environment, HostFile, Packages, Run, command, run, write_lines

SOURCES = "/etc/apt/hpcgen-sources.list"
APT_CONFIGURATION = "/etc/apt/apt.conf.d/00hpcgen"
PIP_CONFIGURATION = "/etc/pip.conf"

# Per package manager: where a site's certificates lie, the bundle made of them, and what makes it.
ANCHORS = {"apt": "/usr/local/share/ca-certificates", "dnf": "/etc/pki/ca-trust/source/anchors"}
BUNDLE = {"apt": "/etc/ssl/certs/ca-certificates.crt", "dnf": "/etc/pki/tls/certs/ca-bundle.crt"}
UPDATE = {"apt": "update-ca-certificates", "dnf": "update-ca-trust extract"}


class SiteTrust(Block):
    """What the site's network needs: trusted certificates, the proxy, mirrors.  Source: the site profile.

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
            yield run("trust the site's certificates", self._trust(ctx, manager))
        sources = _apt_sources(ctx)
        if sources:
            settings = [f'Dir::Etc::SourceList "{SOURCES}";', 'Dir::Etc::SourceParts "-";', *ctx.supply.apt_settings()]
            yield run(
                f"use {ctx.supply.packages_from}",
                write_lines(SOURCES, "\n".join(sources)),
                write_lines(APT_CONFIGURATION, "\n".join(settings)),
            )
        pip = _pip_settings(ctx, BUNDLE[manager])
        if pip and stage == "builder":
            yield run("pip's index and certificates", write_lines(PIP_CONFIGURATION, "\n".join(["[global]", *pip])))

    def build(self, ctx: Context) -> Iterable[Run]:
        """In the builder, make the trust store anew now that its tool is certainly there."""
        if _sources(ctx):
            yield run("trust store", UPDATE[_manager(ctx)])

    def finish(self, ctx: Context, stage: str) -> Iterable[Run]:
        """In the image, make the trust store; in both stages, leave no trace of the mirrors."""
        manager = _manager(ctx)
        if _sources(ctx) and stage == "final":
            yield run("trust store", UPDATE[manager])
        leftovers = []
        if _apt_sources(ctx):
            leftovers.append(f"rm -rf {SOURCES} {APT_CONFIGURATION} /var/lib/apt/lists/*")
        if stage == "builder" and _pip_settings(ctx, BUNDLE[manager]):
            leftovers.append(command("rm", "-f", PIP_CONFIGURATION))
        if leftovers:
            yield run("remove the mirrors", leftovers)

    @staticmethod
    def _trust(ctx: Context, manager: str) -> list[str]:
        if manager == "dnf":
            return [UPDATE["dnf"]]
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


def _apt_sources(ctx: Context) -> list[str]:
    """Lines of a sources.list to use in place of the base's own; empty if there are none."""
    return ctx.supply.apt_sources(ctx.base.name, ctx.base.release.values)


def _pip_settings(ctx: Context, bundle: str) -> list[str]:
    settings = []
    if ctx.supply.pip_index is not None:
        settings.append(f"index-url = {ctx.supply.pip_index}")
    if _sources(ctx):
        settings.append(f"cert = {bundle}")
    return settings
