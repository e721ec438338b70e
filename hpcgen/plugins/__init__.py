"""Optional parts with their own commands, records and pages: nothing imports one, and each may be taken out.

What each brings stands here as text, ``module:attribute``, so that it can be told without being imported. Only
:mod:`hpcgen.cli.plugged` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "fleets": {
        "fleet": ("hpcgen.plugins.fleet.cli.fleet:command", "List many images, and which have to be built."),
        "matrix": (
            "hpcgen.plugins.fleet.cli.matrix:command",
            "Show which stack renders on which partition, and why not.",
        ),
        "affected": ("hpcgen.plugins.fleet.cli.affected:command", "List the images that must be rebuilt, and why."),
        "ci": ("hpcgen.plugins.fleet.cli.ci:command", "Write pipelines of a fleet, and checks of an image."),
    },
    "models": {
        "onnx": ("hpcgen.plugins.onnx.cli.onnx:command", "Convert trained models to ONNX, prove and start them."),
    },
    "measuring": {
        "bench": ("hpcgen.plugins.tuning.cli.bench:command", "Measure standard workloads in images."),
        "tune": (
            "hpcgen.plugins.tuning.cli.tune:command",
            "Search for the settings with which an image runs fastest.",
        ),
        "optimise": (
            "hpcgen.plugins.tuning.cli.optimise:command",
            "Choose framework build, compiler and layout by measurement.",
        ),
        "measurements": (
            "hpcgen.plugins.tuning.cli.measurements:command",
            "List measurements, and import them from other tools.",
        ),
        "model": ("hpcgen.plugins.tuning.cli.model:command", "Fit models to measurements, and predict."),
    },
    "maintainers": {"tables": ("hpcgen.plugins.tables.cli:command", "Keep release tables true, for maintainers.")},
}
"""Commands by group, each with what it is and the line about it."""
SCHEMAS: Mapping[str, str] = {
    "fleet": "hpcgen.plugins.fleet.records:Fleet",
    "request": "hpcgen.plugins.tuning.requests.records:OptimiseRequest",
    "ensemble": "hpcgen.plugins.onnx.records:Ensemble",
}
"""Files that people write, each with the record that it is read into."""
FILES: Mapping[str, tuple[str, str, str]] = {
    "members": ("a fleet", "", "hpcgen.plugins.fleet.file:checked_fleet"),
    "kind": ("a request", ".json", "hpcgen.plugins.tuning.requests.reading:check_request"),
    "series": ("measurements", ".jsonl", "hpcgen.plugins.tuning.measurements.collection:check_measurements"),
}
"""Files that `hpcgen check` takes, as :class:`hpcgen.cli.plugged.FileKind` has them."""
OPTIONS: Mapping[str, tuple[str, ...]] = {"build": ("hpcgen.plugins.fleet.cli.build:with_fleets",)}
"""Options that are added to commands of the core, as :class:`hpcgen.cli.plugged.ExtensibleCommand` takes them."""
FETCHERS: Mapping[str, str] = {"bazel": "hpcgen.plugins.bazel.fetch:fetch_bazel"}
"""What runs a build tool to learn what it fetches, for ``hpcgen lock``."""
