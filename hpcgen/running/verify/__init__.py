"""Prove an image: the self-tests of its blocks, and the promises between image and host, on the machine it runs on."""

from __future__ import annotations

from hpcgen.running.verify.image import TIMEOUT_S, failed, failure, job_of_tests, verify_image

__all__ = ["TIMEOUT_S", "failed", "failure", "job_of_tests", "verify_image"]
