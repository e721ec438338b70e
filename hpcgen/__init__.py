"""hpcgen: HPC container recipes from a site profile and a software stack."""

__version__ = "0.1.0"
