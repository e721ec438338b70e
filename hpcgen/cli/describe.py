"""Sites, stacks and blocks described for people and as data."""

from __future__ import annotations

import sys

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.type_words import type_text


def one_line(catalog: Catalog, kind: str, name: str) -> str:
    """The title of a site or stack, the first line of a block's description, what an engine does."""
    if kind == "site":
        site = catalog.site_document(name).data
        return str(site.get("title", "")) + (" (abstract)" if site.get("abstract") is True else "")
    if kind == "stack":
        return str(catalog.stack_document(name).data.get("title", ""))
    if kind == "engine":
        from hpcgen.backends.engines import ENGINES

        engine = ENGINES.find(name)
        does = " and ".join(verb for verb, able in (("builds", engine.builds), ("starts", engine.runs)) if able)
        return f"{does} images of the format {engine.format}"
    return (catalog.block(name).__doc__ or "").strip().split("\n")[0]


def origin_of(catalog: Catalog, kind: str, name: str) -> str:
    """The file that something is from."""
    if kind != "engine":
        return str(catalog.find(kind, name))
    from hpcgen.backends.engines import ENGINES

    module = ENGINES.find(name).__module__
    return str(getattr(sys.modules.get(module), "__file__", module))


def described(catalog: Catalog, kind: str, name: str) -> dict[str, object]:
    """Everything known of one site, stack or block, as plain data."""
    if kind == "block":
        return _block(catalog, name)
    if kind == "site":
        document = catalog.site_document(name)
        if document.data.get("abstract") is True:
            return dict(document.data)
        data: dict[str, object] = msgspec.to_builtins(catalog.site(name))
        return data
    data = msgspec.to_builtins(catalog.stack(name))
    return data


def _default(field: msgspec.structs.FieldInfo) -> str:
    """An option's default as it is written in YAML."""
    if field.required:
        return "required"
    factory = field.default_factory
    value = field.default if factory is msgspec.NODEFAULT else factory()
    return "left open" if value is None else f"default {msgspec.json.encode(value).decode()}".replace('"', "")


def _block(catalog: Catalog, name: str) -> dict[str, object]:
    from hpcgen.blocks.requirements import version

    cls = catalog.block(name)
    releases = catalog.releases(name)
    fields = msgspec.structs.fields(cls.Options)
    options = {field.encode_name: f"{type_text(field.type)}; {_default(field)}" for field in fields}
    needs = [f"{n.name} {n.versions}".strip() + (" (to build)" if n.build_only else "") for n in cls.needs]
    return {
        "name": name,
        "description": "\n".join(line.strip() for line in (cls.__doc__ or "").strip().splitlines()),
        "provides": list(cls.provides),
        # A block may need the same in several ways, each in its own case.
        "needs": list(dict.fromkeys(needs)),
        **({"distributions": list(cls.distributions)} if cls.distributions else {}),
        "options": options,
        "releases": {v: msgspec.to_builtins(releases[v]) for v in sorted(releases, key=version, reverse=True)},
    }
