"""What could run a program: stacks that say they suit it, on partitions that fit, in the ways of installing them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from packaging.specifiers import SpecifierSet

from hpcgen.backends.hardware.microarchitecture import vendor
from hpcgen.blocks.declared import Facts
from hpcgen.blocks.options import literal_words, option_fields
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.site import Partition, Site
from hpcgen.core.model.stack import Stack, Suited
from hpcgen.plugins.tuning.optimise.nearest import nearest_first
from hpcgen.plugins.tuning.requests.records import OptimiseRequest

_INSTALL = {"hub": ("hub",), "pip": ("pip", "wheel"), "source": ("source",)}
"""Ways of a request → the words by which blocks' option ``install`` says them. Any wheel is one of pip's."""

_NEAREST = 4
"""How many releases of an MPI are tried beside the one that is wished for."""


_VENDORS = {"intel": "GenuineIntel", "amd": "AuthenticAMD", "arm": "ARM"}
"""Vendors of a request → those of archspec."""


class RunCandidate(msgspec.Struct, frozen=True):
    """One way to run a program; ``settings`` and ``added`` are those of ``--set`` and ``--add``.

    ``install``: the request's word for how the framework gets into the image; "" where the block decides.
    ``mpi``: settings for the MPI that is wished for, the nearest first, of which the first that can be planned counts.
    """

    stack: Stack
    partition: str
    suited: Suited
    install: str
    settings: tuple[str, ...]
    added: tuple[str, ...] = ()
    mpi: tuple[tuple[str, ...], ...] = ()

    @property
    def framework(self) -> str:
        """The block that computes, or the stack where no framework does."""
        return self.suited.framework or self.stack.name


def candidates(catalog: Catalog, request: OptimiseRequest, site: Site, partitions: Sequence[str]) -> list[RunCandidate]:
    """All candidates, the default of each kind before its variants.

    ``partitions``: of the site, as :func:`fitting_partitions` gives them. InputError: no stack is what the request asks
    for.
    """
    stacks = list(_stacks(catalog, request))
    if not stacks:
        wanted = " ".join(filter(None, [request.framework or "", request.kind]))
        compiler = f" with {request.compilers.use}" if request.compilers.use else ""
        ranks = ", as several ranks" if wants_ranks(request) else ""
        raise InputError(
            f"no stack is for {wanted}{compiler}{ranks}", remedy="name one: `stack: …` (hpcgen list stacks)"
        )
    found = []
    for partition in partitions:
        facts = Facts.of(site, partition)
        for stack, suited in stacks:
            for install in _ways(request, suited):
                if (settings := _settings(catalog, request, facts, suited, install)) is not None:
                    added = ("keras",) if request.framework == "keras" else ()
                    mpi = _mpi(catalog, request) if stack.run.mpi else ()
                    found.append(RunCandidate(stack, partition, suited, install, settings, added, mpi))
    if not found:
        raise InputError(
            f"{request.framework} cannot be installed by {', '.join(request.install)}", remedy="leave out `install`"
        )
    return found


def _ways(request: OptimiseRequest, suited: Suited) -> list[str]:
    """The ways of installing to look at: those of the request, else all; of what compiles graphs the block's own."""
    aside = _compiler(suited, _computing(request)) and request.stack is None and request.compilers.use is None
    return [*request.install] or ["", *([] if aside else _INSTALL)]


def fitting_partitions(request: OptimiseRequest, site: Site) -> list[str]:
    """The partitions that have what the request wants of a node, the site's default first. InputError: none has."""
    if request.partition is not None:
        return [request.partition]
    names = sorted(site.partitions, key=lambda name: name != site.default_partition)
    found = [name for name in names if not (_lack(request, site, site.partitions[name]))]
    if not found:
        lacks = "; ".join(f"{name}: {_lack(request, site, site.partitions[name])}" for name in names)
        raise InputError(
            f"no partition of {site.name} meets `hardware`: {lacks}",
            remedy="ask for less in `hardware`, or name another site",
        )
    return found


def _lack(request: OptimiseRequest, site: Site, partition: Partition) -> str:
    """What a partition lacks of the hardware that is wanted; "" if nothing."""
    wanted = request.hardware
    gpu = partition.gpu.vendor if partition.gpu is not None else None
    if wanted.architecture not in (None, site.system.architecture):
        return f"its CPUs are {site.system.architecture}"
    if wanted.accelerator not in (None, "none", gpu):
        return f"its GPU is of {gpu}" if gpu else "it has no GPU"
    if wanted.cpu_vendor is not None:
        found = vendor(partition.cpu.target)
        if _VENDORS[wanted.cpu_vendor] != found:
            return f"its CPUs are {partition.cpu.target}, of {found}"
    return ""


def _stacks(catalog: Catalog, request: OptimiseRequest) -> Iterator[tuple[Stack, Suited]]:
    if request.stack is not None:
        stack = catalog.stack(request.stack)
        own = Suited(kinds=[request.kind], framework=_framework_of(catalog, stack))
        rows = [each for each in stack.suits if request.kind in each.kinds] or [own]
        yield from ((stack, each) for each in rows if _may(request, each.compiler))
        return
    framework = _computing(request)
    ranks = wants_ranks(request)
    found = []
    for name in catalog.names("stack"):
        stack = catalog.stack(name)
        for suited in stack.suits:
            same = suited.framework == framework or request.framework in suited.takes
            if request.kind in suited.kinds and same and _may(request, _compiler(suited, framework)):
                found.append((stack, suited))
    # A program of several ranks needs a stack with MPI; one of a single process takes another only where it must.
    fitting = [each for each in found if each[0].run.mpi == ranks] or [each for each in found if not ranks]
    yield from sorted(fitting, key=lambda each: (bool(_compiler(each[1], framework)), each[0].name))


def compiler_environment(catalog: Catalog, request: OptimiseRequest) -> dict[str, str]:
    """The variables that switch on the graph compiler that a request names, by the stack that is for it."""
    if request.compilers.use is None:
        return {}
    return next((dict(stack.run.environment) for stack, _ in _stacks(catalog, request)), {})


def _framework_of(catalog: Catalog, stack: Stack) -> str | None:
    """The first block of a stack that some stack is chosen for."""
    known = {suited.framework for name in catalog.names("stack") for suited in catalog.stack(name).suits}
    return next((name for name in stack.blocks if name in known), None)


def _computing(request: OptimiseRequest) -> str | None:
    """The framework that computes: of Keras what is behind it."""
    return (request.backend or "tensorflow") if request.framework == "keras" else request.framework


def _compiler(suited: Suited, framework: str | None) -> str:
    """What compiles a framework's graph: a runtime of converted models counts as that."""
    return suited.compiler or (suited.framework if suited.framework != framework else "") or ""


def wants_ranks(request: OptimiseRequest) -> bool:
    """Whether a program runs as several processes; those of MPI do unless the request says otherwise."""
    if request.run.mpi is not None:
        return request.run.mpi
    limits = request.limits
    several = (limits.nodes or 1) > 1 or (limits.ranks or 1) > 1
    return bool(request.workload.distributed) or several or request.kind in ("mpi", "hpc", "python")


def _may(request: OptimiseRequest, compiler: str) -> bool:
    """Whether a graph compiler, or none, may be chosen."""
    rules = request.compilers
    if rules.use is not None:
        return compiler == rules.use
    if compiler in rules.without:
        return False
    return not compiler or rules.allow is None or compiler in rules.allow


def _settings(
    catalog: Catalog, request: OptimiseRequest, facts: Facts, suited: Suited, install: str
) -> tuple[str, ...] | None:
    """What ``--set`` says for a candidate; None where the framework is not installed in that way."""
    settings = list(suited.settings)
    framework = suited.framework
    if request.framework == "keras" and request.version:
        settings.append(f"keras.version={request.version}")
    elif framework is not None and request.version and request.framework not in suited.takes:
        settings.append(f"{framework}.version={request.version}")
    if not install:
        return tuple(settings)
    if framework is None:
        # Without a framework there is one way alone, whatever the request allows.
        return tuple(settings) if request.install else None
    word = _install_word(catalog, framework, facts, install)
    return None if word is None else (*settings, f"{framework}.install={word}")


def _install_word(catalog: Catalog, framework: str, facts: Facts, way: str) -> str | None:
    """The block's own word for a way of installing, its default if that is one; None where it has no such way."""
    block = catalog.block(framework)
    known = [literal_words(field.type) for field in option_fields(block.Options) if field.encode_name == "install"]
    words = [each for each in _INSTALL[way] if known and each in known[0]]
    usual = block.defaults(facts).get("install")
    return usual if usual in words else next(iter(words), None)


def _mpi(catalog: Catalog, request: OptimiseRequest) -> tuple[tuple[str, ...], ...]:
    """Settings for the MPI that is wished for: that release, then others of it by their distance, then any MPI."""
    library, wanted = request.mpi.library, request.mpi.version
    if library is None:
        return ()
    provider = f"mpi.provider={library}"
    known = list(catalog.releases(library))
    if not wanted:
        return ((provider,), ())
    exact = [(provider, f"{library}.version={wanted}")] if any(map(SpecifierSet(wanted).contains, known)) else []
    near = nearest_first(wanted, known)[:_NEAREST]
    return (*exact, *((provider, f"{library}.version==={each}") for each in near), (provider,), ())
