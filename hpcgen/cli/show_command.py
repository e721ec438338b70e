"""``hpcgen show``."""

from __future__ import annotations

import click

from hpcgen.cli.common import catalog_of


@click.command("show")
@click.argument("kind", type=click.Choice(["site", "stack", "block"]))
@click.argument("name")
@click.option("--origin", is_flag=True, help="Say first which file it comes from.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.pass_context
def command(ctx: click.Context, kind: str, name: str, origin: bool, as_json: bool) -> None:
    """Show one site (parents merged in), stack, or block with its options and releases."""
    from hpcgen.cli.describe import described

    catalog = catalog_of(ctx)
    path = catalog.find(kind, name)
    data = described(catalog, kind, name)
    if as_json:
        import json

        click.echo(json.dumps({"origin": str(path), **data} if origin else data, indent=2, ensure_ascii=False))
        return
    import yaml

    if origin:
        click.echo(f"# {path}")

    class Dumper(yaml.SafeDumper):  # type: ignore[misc, unused-ignore]
        """Text of several lines is shown as it stands."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    click.echo(yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110), nl=False)
