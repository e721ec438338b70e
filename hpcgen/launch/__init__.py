"""From a plan to a running job: container engines × batch systems."""

from __future__ import annotations

from hpcgen.launch.script import job_script, preflight_script, run_line

__all__ = ["job_script", "preflight_script", "run_line"]
