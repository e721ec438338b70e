"""The contract between image and host, checked while an image is planned: pure functions over a plan.

``hpcgen.running.verify.contract`` holds the same promises against an image that runs.
"""
