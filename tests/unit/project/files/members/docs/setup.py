from setuptools import setup

setup(name="weather-docs", install_requires=["sphinx", "torch", "einops", "hydra-core"])
