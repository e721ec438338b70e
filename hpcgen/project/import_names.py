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
    "community": ("python-louvain",),
    "composer": ("mosaicml",),
    "Crypto": ("pycryptodome",),
    "cv2": ("opencv-python-headless", "opencv-python", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "dateutil": ("python-dateutil",),
    "docx": ("python-docx",),
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
    "imblearn": ("imbalanced-learn",),
    "jwt": ("pyjwt",),
    "imwatermark": ("invisible-watermark",),
    "IPython": ("ipython",),
    "keras": ("keras",),
    "lightning_fabric": ("lightning-fabric", "lightning"),
    "magic": ("python-magic",),
    "mpl_toolkits": ("matplotlib",),
    "neuralop": ("neuraloperator",),
    "OpenGL": ("pyopengl",),
    "orbax": ("orbax-checkpoint", "orbax"),
    "OpenSSL": ("pyopenssl",),
    "ott": ("ott-jax",),
    "PIL": ("pillow", "pillow-simd"),
    "pl_bolts": ("lightning-bolts",),
    "pyro": ("pyro-ppl",),
    "pytorch_lightning": ("pytorch-lightning", "lightning"),
    "pywt": ("pywavelets",),
    "rdkit": ("rdkit", "rdkit-pypi"),
    "ruamel": ("ruamel-yaml",),
    "serial": ("pyserial",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",),
    "skopt": ("scikit-optimize",),
    "slugify": ("python-slugify",),
    "skvideo": ("scikit-video",),
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
    accelerate addict aim aiohttp albumentations altair anndata arviz ase astropy asyncssh audiomentations auraloss
    av backoff beartype bitsandbytes blackjax blobfile blosc bokeh boto3 botorch bottleneck braceexpand cachetools
    captum cartopy catboost category_encoders cftime chardet chex clearml click cloudpickle clu cma cmaes colorama
    coloredlogs colorlog colossalai comet_ml configargparse contextily corner cupy cvxpy dacite dask
    dataclasses_json datasets datashader datasketch deap decord deepdiff deepspeed deepxde devito dgl diffrax
    diffusers dill diskcache distrax dm_control dm_env docopt e3nn easydict editdistance einops einx emcee emoji
    encodec equinox escnn ete3 etils evaluate evosax fairscale fastapi filelock fire flair flask flax fsspec ftfy
    func_timeout fvcore g2p_en gdown gensim geopandas geopy geoviews gluonts gpytorch gradio gradio_client graphviz
    gsd gseapy gym gymnasium gymnax h5netcdf h5py hdbscan healpy hjson holoviews horovod httpx huggingface_hub
    huggingface_sb3 humanize hvplot imagehash imageio imgaug imutils inflect iopath ipdb ipywidgets jaxopt jaxtyping
    jinja2 jiwer joblib jraph jsonlines jsonschema julius kaldiio kfac_jax kornia kymatio langchain langdetect
    Levenshtein lhotse librosa lifelines liger_kernel lightgbm lightning lightning_utilities lime lineax litellm
    llvmlite lm_eval lmdb lmfit local_attention loguru lpips lxml markdown matgl matplotlib mdtraj mediapipe
    memory_profiler meshio minigrid missingno ml_collections mlflow mlxtend mmengine mmh3 modelscope monai
    more_itertools motmetrics moviepy mpi4py mpmath msgpack msgspec mteb mujoco mujoco_py multiprocess munch mup
    music21 natsort nbformat neptune netCDF4 networkx nevergrad nibabel ninja nltk nnunetv2 noisereduce num2words
    numba numexpr numpy numpyro nvtx ogb omegaconf onnx onnxruntime opacus open3d openai openmm openpyxl opt_einsum
    opt_einsum_fx optax optree optuna orjson ortools packaging pandarallel pandas pandera parameterized pathos patsy
    pebble peewee peft periodictable pesq pettingzoo phonemizer picmistandard pingouin pint plotly plotnine ply
    pmdarima polars pooch portalocker praatio pretty_midi prettytable procgen progressbar prophet psutil pyamg
    pyarrow pybullet pycocoevalcap pycocotools pydantic pydicom pyDOE pydot pydub pyedflib pyfiglet pygame
    pyloudnorm pymatgen pymc pymoo pynvml pypinyin pyproj pyrallis pyrender pysam pyscf pystoi pythainlp
    pytorch_forecasting pytorch_msssim pytorch_tabnet pytorch_wavelets pytorchvideo pytz pyvista pyworld quax
    rasterio rasterstats ray redis regex requests resampy retrying rich rouge rouge_score ruptures s3fs sacrebleu
    sacremoses safetensors sb3_contrib scanpy scikit_posthocs scipy seaborn sentencepiece seqeval seqio setproctitle
    shap shapely shortuuid SimpleITK simplejson sionna six sktime smart_open sounddevice soundfile soxr spacy
    sqlalchemy stable_baselines3 stanza statsmodels streamlit submitit supersuit swanlab sympy t5 tables tabulate
    tenacity tensorboard tensorboardX tensordict tensorflow_addons tensorflow_gan tensorflow_graphics tensorflow_hub
    tensorflow_io tensorflow_model_optimization tensorflow_probability tensorflow_text tensorly tensornvme
    tensorstore termcolor textdistance textgrid tf2onnx tf_keras threadpoolctl tifffile tiktoken timm tokenizers
    toml tomli toolz torch torch_geometric torch_optimizer torch_tb_profiler torchao torchaudio torchdata
    torchdiffeq torchdyn torchinfo torchio torchmetrics torchprofile torchrl torchsde torchsummary torchtyping
    torchvision tornado tqdm transformers treelib trimesh trl tslearn typeguard typer typing_extensions tyro ujson
    unidecode uvicorn vega_datasets visdom vllm vocos wandb webdataset websockets wget widgetsnbextension wordcloud
    xarray xformers xgboost xlrd xlsxwriter xmltodict yacs yellowbrick yfinance zarr zstandard
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
    "threadpoolctl": {"scikit-learn"},
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


MISTAKEN = {
    "cv2": "opencv-python-headless",
    "opencv": "opencv-python-headless",
    "opencv3": "opencv-python-headless",
    "pil": "pillow",
    "pytorch": "torch",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
}
"""Names in lists for pip that are of conda or of modules, and the packages that are meant.

The index has none of these names, or something that only says so (pytorch, sklearn).
"""


def conda_name(package: str) -> str:
    """What conda-forge calls a package of the index."""
    names = (_OF_CONDA[name][0] for name in _OF_CONDA if package in packages_with(name))
    return next(names, package)


def conda_names(name: str) -> tuple[str, ...]:
    """What conda calls packages that have an imported name."""
    return _OF_CONDA.get(name.partition(".")[0], ())
