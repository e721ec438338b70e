"""Resolved blocks → plan: job layout, findings."""
