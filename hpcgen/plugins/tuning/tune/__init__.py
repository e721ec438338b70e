"""A search over the settings with which an image is started, by its speed: which layout, threads, variables …"""

from hpcgen.plugins.tuning.tune.search import Search, confirm, finalist, finalists
from hpcgen.plugins.tuning.tune.space import Space, cell_of, space_for
from hpcgen.plugins.tuning.tune.study import Trial, TuneStudy, open_study

__all__ = [
    "Search",
    "Space",
    "Trial",
    "TuneStudy",
    "cell_of",
    "confirm",
    "finalist",
    "finalists",
    "open_study",
    "space_for",
]
