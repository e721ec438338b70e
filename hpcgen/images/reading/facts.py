"""All that is read of an image, in one go."""

from __future__ import annotations

import msgspec

from hpcgen._version import __version__
from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.core.model.image_facts import ImageFacts, ImagePackage
from hpcgen.core.support.file_formats import IMAGE_FACTS
from hpcgen.images.packages import DATABASE_BYTES, RECORD, SYSTEM_RECORDS, named_record, recorded_packages
from hpcgen.images.reading import fabric, gpu, mpi, openmp, programs, python, settings, system
from hpcgen.images.reading.files import Look, SeenImage, bytes_of, viewed
from hpcgen.images.reading.owners import Owners
from hpcgen.images.reference import ImageReference
from hpcgen.images.rpm_database import MOST_PACKAGES
from hpcgen.images.summary import SummaryImage

NAMED = Look(RECORD.pattern)
DATABASES = Look(SYSTEM_RECORDS, bytes_of, DATABASE_BYTES)
LOOKS = (
    NAMED,
    DATABASES,
    *system.LOOKS,
    *settings.LOOKS,
    *mpi.LOOKS,
    *fabric.LOOKS,
    *gpu.LOOKS,
    *openmp.LOOKS,
    *python.LOOKS,
    *programs.LOOKS,
)


class ReadImage(msgspec.Struct, frozen=True):
    """What ``hpcgen inspect --json`` prints of an image: the number of this format, who wrote it, what was read."""

    image_facts: int
    hpcgen: str
    image: SummaryImage
    facts: ImageFacts


def read_image(image: ImageReference, facts: ImageFacts) -> ReadImage:
    """The facts of an image with its name, to be kept or printed."""
    about = SummaryImage(image.kind, image.shown or image.name, image.bytes_on_disk())
    return ReadImage(IMAGE_FACTS.newest, __version__, about, facts)


def image_facts(image: ImageReference) -> ImageFacts:
    """What an image has, whoever built it. Nothing of it is started.

    InputError: it cannot be read where it is, or is made to do harm. MissingToolError: a program that reads this kind
    of image is not installed.
    """
    kind = image.image_kind
    with kind.files(image.name) as source:
        if source is None:
            raise InputError(
                f"the files of {image} cannot be listed where it is",
                remedy="hpcgen convert turns it into a file, which can be listed",
            )
        view = viewed(source, LOOKS)
    try:
        configuration = kind.configuration(image.name)
    except HpcgenError as failure:
        configuration = None
        view.unread.append(failure.problems[0].message)
    packages = _packages(view)
    owners = Owners(packages)
    told = system.system_facts(view, owners)
    if not (packages or told.distribution or told.architecture):
        raise InputError(
            f"{image} does not look like an image: no distribution, no programs, no packages",
            expected="an image's root",
            remedy="check the name; if it is an archive within an archive, name the inner one",
        )
    return ImageFacts(
        system=told,
        settings=settings.settings_facts(view, configuration),
        mpi=mpi.mpi_facts(view, owners),
        pmi=mpi.pmi_facts(view, owners),
        fabric=fabric.fabric_facts(view, owners),
        gpu=gpu.gpu_facts(view, owners),
        openmp=openmp.openmp_facts(view, owners),
        python=python.python_facts(view),
        frameworks=python.framework_facts(view, owners),
        compilers=programs.compiler_facts(view, owners),
        jupyter=programs.jupyter_facts(view, owners),
        packages=packages,
        folders=view.folders,
        unread=view.unread,
    )


def _packages(view: SeenImage) -> list[ImagePackage]:
    found = set(filter(None, map(named_record, view.named(NAMED))))
    found |= set(recorded_packages(view.found(DATABASES), view.unread))
    if len(found) > MOST_PACKAGES:
        view.unread.append(f"it has records of more than {MOST_PACKAGES} packages, which are left out")
        return []
    printable = (each for each in found if all(map(str.isprintable, (each.name, each.version))))
    return sorted(printable)
