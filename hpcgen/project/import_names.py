"""Which package of the index an import comes from, where that is well known.

From the packages' documentation, not checked one by one against their files. What is not here is not guessed: many
modules are called like a package that is something else.
"""

from __future__ import annotations

import sys
from collections.abc import Collection

OTHERWISE = {
    "absl": ("absl-py",),
    "attr": ("attrs",),
    "Bio": ("biopython",),
    "bs4": ("beautifulsoup4",),
    "Crypto": ("pycryptodome",),
    "cv2": ("opencv-python-headless", "opencv-python", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "dateutil": ("python-dateutil",),
    "dotenv": ("python-dotenv",),
    "faiss": ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu12"),
    "fitz": ("pymupdf",),
    "gin": ("gin-config",),
    "git": ("gitpython",),
    "google.protobuf": ("protobuf",),
    "haiku": ("dm-haiku",),
    "hydra": ("hydra-core",),
    "jax": ("jax", "jaxlib"),
    "jaxlib": ("jax", "jaxlib"),
    "jwt": ("pyjwt",),
    "imwatermark": ("invisible-watermark",),
    "IPython": ("ipython",),
    "keras": ("keras",),
    "lightning_fabric": ("lightning-fabric", "lightning"),
    "mpl_toolkits": ("matplotlib",),
    "OpenGL": ("pyopengl",),
    "orbax": ("orbax-checkpoint", "orbax"),
    "OpenSSL": ("pyopenssl",),
    "PIL": ("pillow", "pillow-simd"),
    "pl_bolts": ("lightning-bolts",),
    "pytorch_lightning": ("pytorch-lightning", "lightning"),
    "pywt": ("pywavelets",),
    "rdkit": ("rdkit", "rdkit-pypi"),
    "ruamel": ("ruamel-yaml",),
    "serial": ("pyserial",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",),
    "skopt": ("scikit-optimize",),
    "sonnet": ("dm-sonnet",),
    "tensorflow_datasets": ("tensorflow-datasets", "tfds-nightly"),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-rocm", "intel-tensorflow"),
    "torch.utils.tensorboard": ("tensorboard",),
    "tree": ("dm-tree",),
    "triton": ("triton",),
    "umap": ("umap-learn",),
    "yaml": ("pyyaml",),
    "zmq": ("pyzmq",),
}
"""Import → packages that have it; the first is the one to take, and any of them will do."""
_ALIKE = """
    accelerate aiohttp albumentations altair anndata arviz ase astropy asyncssh bitsandbytes blosc bokeh boto3
    botorch braceexpand captum cartopy cftime chex click cloudpickle clu colorama colorlog configargparse
    contextily corner cupy dask datasets datashader decord deepspeed dgl diffrax diffusers dill distrax docopt
    e3nn easydict einops emcee emoji equinox etils evaluate fairscale fastapi filelock fire flask flax fsspec ftfy
    fvcore gdown geopandas geoviews gpytorch gradio gseapy gym gymnasium h5py healpy holoviews horovod httpx
    huggingface_hub huggingface_sb3 hvplot imageio imgaug inflect iopath ipdb ipywidgets jaxtyping jinja2 joblib
    jraph jsonlines jsonschema kfac_jax kornia Levenshtein lifelines lightgbm lightning lightning_utilities
    llvmlite lmdb loguru lpips lxml matgl matplotlib mdtraj meshio ml_collections mlflow monai moviepy mpi4py
    mpmath msgpack msgspec natsort nbformat netCDF4 networkx nevergrad nibabel nltk nnunetv2 numba numexpr numpy
    numpyro omegaconf onnx onnxruntime open3d openai openpyxl opt_einsum opt_einsum_fx optax optuna orjson packaging
    pandas pandera patsy peft pint plotly polars pooch portalocker prettytable psutil pyarrow pycocotools pydantic
    pydicom pydot pyedflib pygame pymatgen pymc pynvml pyproj pysam pyscf pytorch_msssim pyvista rasterio ray
    regex requests rich s3fs sacrebleu safetensors sb3_contrib scanpy scipy seaborn sentencepiece shap shapely
    SimpleITK simplejson six sktime spacy sqlalchemy stable_baselines3 statsmodels submitit sympy tables tabulate
    tensorboard tensorboardX tensordict tensorflow_addons tensorflow_gan tensorflow_hub tensorflow_io
    tensorflow_probability tensorflow_text tensorstore termcolor tf_keras tifffile tiktoken timm tokenizers toml
    tomli toolz torch torch_geometric torchaudio torchdata torchdiffeq torchinfo torchio torchmetrics torchrl
    torchsde torchsummary torchvision tornado tqdm transformers trimesh trl typeguard typer typing_extensions tyro
    ujson unidecode uvicorn vega_datasets vllm wandb webdataset websockets widgetsnbextension xarray xformers
    xgboost yacs zarr zstandard
"""
ALIKE = frozenset(_ALIKE.split())
"""Imports that are called like their package, but for ``_`` and ``-``."""
COMES_WITH = {
    "absl-py": {"tensorflow", "chex", "optax", "ml-collections"},
    "chex": {"optax"},
    "opt-einsum-fx": {"e3nn"},
    "huggingface-hub": {"transformers", "diffusers", "timm", "accelerate", "datasets", "tokenizers"},
    "joblib": {"scikit-learn"},
    "keras": {"tensorflow"},
    "lightning-utilities": {"lightning", "pytorch-lightning", "torchmetrics"},
    "msgpack": {"flax"},
    "numpy": {
        *("scipy", "pandas", "matplotlib", "scikit-learn", "torchvision", "tensorflow", "jax", "opencv-python", "h5py"),
        *("pytorch", "transformers", "datasets", "accelerate", "torchmetrics", "lightning", "pytorch-lightning"),
    },
    "optax": {"flax"},
    "packaging": {"matplotlib", "transformers", "datasets", "lightning", "pytorch-lightning", "wandb", "accelerate"},
    "pillow": {"torchvision", "matplotlib", "scikit-image", "imageio"},
    "protobuf": {"tensorflow", "tensorboard", "wandb"},
    "pyyaml": {"transformers", "omegaconf", "wandb", "huggingface-hub", "datasets", "accelerate", "pytorch-lightning"},
    "six": {"tensorflow", "pandas", "matplotlib", "python-dateutil"},
    "tensorboard": {"tensorflow"},
    "torchmetrics": {"lightning", "pytorch-lightning"},
    "tqdm": {"transformers", "huggingface-hub", "datasets", "lightning", "pytorch-lightning"},
    "triton": {"torch"},
    "typing-extensions": {"torch", "pytorch", "tensorflow", "pydantic"},
}
"""Packages that others bring, of which one is enough."""
_GONE = {"asynchat", "asyncore", "cgi", "crypt", "distutils", "imp", "pipes", "smtpd", "telnetlib", "__future__"}
"""Modules of older Pythons, or of this one, that no package brings."""
_BLOCK = {"pip", "pkg_resources", "setuptools", "wheel"}
"""Modules of packages that the block ``python`` brings."""
_OF_CONDA = {
    "cv2": ("opencv", "py-opencv", "libopencv"),
    "torch": ("pytorch", "pytorch-gpu", "pytorch-cpu"),
    "tables": ("pytables",),
    "torchvision": ("torchvision", "torchvision-extra-decoders"),
}
"""Names of conda that differ from the index's."""


def is_standard(name: str) -> bool:
    """Whether every Python has a module, or had it in the past."""
    return name in sys.stdlib_module_names or name in _GONE or name in _BLOCK


def packages_with(name: str, known: Collection[str] = ()) -> tuple[str, ...]:
    """The packages of the index that have an imported name; none where that is not known.

    Parameters
    ----------
    name: dotted, as it is imported.
    known: packages that are called like what they have, but for ``_`` and ``-``.
    """
    first = name.partition(".")[0]
    for each in (name, ".".join(name.split(".")[:3]), ".".join(name.split(".")[:2]), first):
        if each in OTHERWISE:
            return OTHERWISE[each]
    plain = first.replace("_", "-").lower()
    return (plain,) if first in ALIKE or plain in known else ()


def conda_name(package: str) -> str:
    """What conda-forge calls a package of the index."""
    names = (_OF_CONDA[name][0] for name in _OF_CONDA if package in packages_with(name))
    return next(names, package)


def conda_names(name: str) -> tuple[str, ...]:
    """What conda calls packages that have an imported name."""
    return _OF_CONDA.get(name.partition(".")[0], ())
