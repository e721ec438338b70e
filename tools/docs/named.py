"""A page for each block, site and stack that comes with hpcgen, from its class, tables and file."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from writing import cell, code, prose, table

from hpcgen.catalog.catalog import Catalog
from hpcgen.cli.describe import described, one_line

_LISTS = {"block": "Building blocks", "site": "Sites", "stack": "Stacks"}


def pages() -> dict[str, str]:
    """reference/blocks/NAME.md and so on, with a list of each kind."""
    catalog = Catalog()
    found = {}
    blocks = catalog.names("block")
    makers = {"block": _block, "site": _site, "stack": lambda stack: _stack(stack, blocks)}
    for kind, title in _LISTS.items():
        names = catalog.names(kind)
        rows = [[f"[{name}]({name}.md)", cell(one_line(catalog, kind, name))] for name in names]
        found[f"reference/{kind}s/index.md"] = f"# {title}\n\n{table(['name', 'what it is'], rows)}"
        for name in names:
            found[f"reference/{kind}s/{name}.md"] = f"# {name}\n\n{makers[kind](described(catalog, kind, name))}"
    return found


def _block(block: dict[str, Any]) -> str:
    text = [prose(block["description"]) + "\n"]
    for word in ("provides", "needs"):
        if block[word]:
            text.append(f"{word.capitalize()} {', '.join(code(each) for each in block[word])}.\n")
    if block["options"]:
        rows = [[code(name), cell(said)] for name, said in block["options"].items()]
        text += ["## Options\n", table(["option", "meaning"], rows)]
    rows = [[code(version), cell(_release(release))] for version, release in block["releases"].items()]
    return "\n".join([*text, "## Releases\n", table(["version", "fits"], rows)])


def _release(release: dict[str, Any]) -> str:
    """What a row asks of others, of the distribution, the host and the node."""
    words = [f"{name} {versions}" for name, versions in release.get("accepts", {}).items()]
    words += [f"{name} {versions} of the host" for name, versions in release.get("host", {}).items()]
    if release.get("on"):
        words.append("on " + ", ".join(release["on"]))
    return "; ".join(words)


def _site(site: dict[str, Any]) -> str:
    if site.get("abstract"):
        return f"{site.get('title', '')}\n\nWhat several sites have in common.\n"
    rows = []
    for name, partition in site["partitions"].items():
        gpu = partition.get("gpu")
        gpus = f"{gpu.get('count', 1)} × {gpu['model']}" if gpu else ""
        rows.append([code(name), cell(str(partition.get("cpu", {}).get("target", ""))), cell(gpus)])
    batch = site.get("scheduler") or {}
    facts = [
        ["engine", cell(site["containers"]["preferred"])],
        ["batch system", cell(batch.get("kind", "none"))],
        ["MPI of the host", cell(_mpi(site.get("mpi"))) or "none is known"],
    ]
    partitions = table(["name", "CPU", "GPUs of a node"], rows)
    return f"{site['title']}\n\n{table(['', ''], facts)}\n## Partitions\n\n{partitions}"


def _mpi(mpi: dict[str, Any] | None) -> str:
    return f"{mpi.get('flavour', '')} {mpi.get('version', '') or ''}".strip() if mpi else ""


def _stack(stack: dict[str, Any], blocks: Collection[str]) -> str:
    rows = []
    for name, asked in stack["blocks"].items():
        options = ", ".join(f"{option}: {value}" for option, value in asked.get("options", {}).items())
        shown = f"[{name}](../blocks/{name}.md)" if name in blocks else f"any {name}"
        rows.append([shown, cell(asked.get("version") or "any"), cell(options)])
    command = " ".join(stack["run"].get("command") or [])
    notes = "".join(f"- {note}\n" for note in stack.get("notes", []))
    started = f"Starts {code(command)}.\n\n" if command else ""
    return f"{stack['title']}\n\n{started}{table(['block', 'version', 'options'], rows)}\n{notes}"
