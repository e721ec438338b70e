"""What images have by default because programs like theirs were measured to gain by it."""

from typing import Annotated

import msgspec

from hpcgen.core.model.fields import Date, Name, Record, Source, Text

Times = Annotated[float, msgspec.Meta(gt=0, description="how many times as fast")]


class MeasuredDefault(Record, frozen=True):
    """A block that images have without being asked, and what was measured of it.

    ``title``: of what it is for. ``blocks``, ``packages``: an image that is asked for any of these blocks or Python
    packages is such a one. ``adds``: the block. ``gained``: how many times as fast workloads were, by their names in
    ``measurements/``; ``hardware``: on which machine, by its name there, ``on`` in words.
    """

    title: Text
    adds: Name
    gained: dict[Name, Times]
    hardware: Name
    on: Text
    measured: Date
    source: Source
    blocks: list[Name] = []
    packages: list[Name] = []


class MeasuredDefaults(Record, frozen=True):
    """The file ``building_blocks/measured_defaults.yaml``; of its rows the first counts that is for an image."""

    measured_defaults: list[MeasuredDefault]
