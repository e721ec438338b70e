"""Pipelines that build, test and publish what changed in a fleet, as YAML for GitHub and GitLab.

Nothing from the fleet is ever part of a shell command there: commands read it from variables, in quotes.
"""
