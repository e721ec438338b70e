"""``hpcgen ci gitlab``."""

from __future__ import annotations

from hpcgen.cli.ci_pipeline import pipeline_command

command = pipeline_command("gitlab")
