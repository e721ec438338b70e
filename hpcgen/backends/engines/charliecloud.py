"""Charliecloud: ch-run starts images, ch-image builds them, ch-convert writes them as files.

Options by release, read in bin/ch-run.c of hpc/charliecloud at its tags: ``-b SRC:DST`` and ``-c`` v0.2.4,
``--join`` and ``--join-ct`` v0.2.5, ``--set-env=FILE`` v0.9.7, ``--unset-env=GLOB`` v0.9.8, ``--set-env=NAME=VALUE``
and squashfs images v0.26. ``--set-env`` strips quotes and, without ``--env-no-expand`` (v0.24), expands ``$``:
``env`` inside does neither and is the same in every release, so variables are set with that. Since v0.31 the home
directory is shown inside only with ``--home``; before, unless ``--no-home`` is given.

A squashfs image is mounted at /var/tmp/$USER.ch/mnt, which every ch-run makes where it is not there, and fails if
another made it meanwhile ("can't mkdir: … File exists"): ``mkdirs`` of bin/ch_misc.c, v0.26 to v0.38.

Output of a build, seen with 0.31 and 0.45 and read in their lib/build.py: ``  4* RUN.F …`` is the line of the
Dockerfile, then ``*`` where the instruction was taken from the cache,
``.`` where it is done, a space where that is not known yet.

The cache needs git 2.28.1 or later; without it ch-image does without by itself (lib/build_cache.py). 0.31 has git
sign with the user's name and fails where that is not set, so it is set here; 0.45 brings a name of its own.
``ch-image delete NAME`` removes the stages' images too and leaves the cache as it is.

What ``COPY`` copies is known to the cache by its path as well as by size and time (lib/filesystem.py, stat_bytes), and
for ``--from`` that is the path of the stage's image: so the context is named by a path relative to the folder that
ch-image is started in, and the image in the store is called the same in every build. ch-image itself lets only one
build at a time use a store.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from msgspec.structs import replace

from hpcgen.backends.engines.base import JOINED, Call, Engine, bind_words, environment_words, file_system_words
from hpcgen.backends.engines.building import (
    BuildFolder,
    EngineCommand,
    LeftImage,
    Target,
    Work,
    file_target,
    measured,
    query,
)
from hpcgen.backends.engines.steps import HERE_DOCUMENT, HPCGEN, Event, Labels, Reader, Recipe, Step, dockerfile_steps
from hpcgen.core.errors import BuildFailedError
from hpcgen.core.model.image_paths import EVERY_IMAGE_HAS, MOUNT, STORED_BASES, SUBMIT_FOLDER
from hpcgen.core.model.plan import BaseImage, ExtendedImage, Plan
from hpcgen.core.model.record import BuiltImage
from hpcgen.core.support.quoting import Shell, joined
from hpcgen.core.support.templates import Template

UNSET_OPTION = "0.9.8"
SQUASHFS = "0.26"
HOME_OPTION = "0.31"
MAKES_TARGETS = "0.36"
# ch-run makes a namespace for users and one for mounts alone. In those of unshare there is no network and no process of
# the host; its shared memory, which comes with /dev, is hidden. unshare of util-linux 2.32 and later has --kill-child.
SEAL = (
    ["unshare", "--user", "--map-root-user", "--net", "--ipc", "--pid", "--mount"],
    ["--fork", "--kill-child", "--mount-proc"],
    ["sh", "-c", 'mount -t tmpfs -o mode=1777,nosuid,nodev none /dev/shm && exec "$@"', "sealed"],
)
_LINE = r" *(\d+)([ .*]) ?([A-Z]+)\b"
# Installed commands of an image stand before the host's on PATH, and may have these names.
_MAKE_FIRST = Shell('"command -p mkdir -p \'/var/tmp/${USER:-}.ch/mnt\' 2> /dev/null; exec \\"\\$@\\""')
FOLDER_FIRST = ("/bin/sh", "-c", _MAKE_FIRST, "folder-first")
"""Before ch-run: the first of a node's ranks makes the folder of its mount, and the others find it there."""
NAMING = "Dockerfile.name"
OF_PYTHON = {
    **{"IPYTHONDIR": "/ipython", "JUPYTER_CONFIG_DIR": "/jupyter/config", "JUPYTER_DATA_DIR": "/jupyter/data"},
    "MPLCONFIGDIR": "/matplotlib",
}
"""Folders that programs in Python have in the home directory by default. The tokens of Jupyter's servers lie in data's
``runtime``, which it makes for the user alone. Source: jupyter_core 5.9.1, paths.py and application.py."""
CHECK, TELL = "check_bases.sh", "base_words.sh"
# All files of a base image are looked at, which takes minutes on a busy file system.
_LISTING_S = 3600
CONVERSIONS = {"squashfs": "squash", "tar": "tar", "directory": "dir"}
_SIGNATURE = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "hpcgen"), ("EMAIL", "hpcgen@localhost"))
}


class Charliecloud(Engine):
    """A squashfs file, an archive or a folder, by the name's end; ``ch-image:NAME`` stays in ch-image's store.

    The host's variables enter; those of the image's recipe lie in /ch/environment and are not set by themselves.
    """

    name = "charliecloud"
    format = "charliecloud"
    program = "ch-run"
    starts = ("squashfs", "directory", "ch-image", "sandbox")
    image_environment = False
    image_releases = MappingProxyType({".sqfs": SQUASHFS})
    converter = "ch-convert"
    adds_to = ("ch-image", "squashfs", "directory")
    makes = ("ch-image", "squashfs", "tar", "directory")
    reads_dockerfiles = True
    # Source: ch-image(1), "Compatibility with other Dockerfile interpreters"; seen with 0.31 and 0.45.
    not_read: ClassVar[Mapping[str, str]] = {
        r"^\s*ADD\b": "ADD is ignored, so that the files are missing",
        r"^\s*RUN\s+--mount": "RUN --mount fails",
        rf"^\s*(RUN|COPY)\b.*{HERE_DOCUMENT}": "a here-document is a syntax error",
        r"\\\n\s*#": "a comment inside an instruction is a syntax error",
    }
    driver_in_image = True
    targets_in_image = True
    # Source: ch-run(1); ch-convert makes these in what it writes, and binds have no flags.
    mount_points = (*(f"/mnt/{number}" for number in range(1, 10)), EVERY_IMAGE_HAS)
    read_only_binds = False
    user_namespaces = True
    bind_option = "-b"
    sees_mounts = True
    asks_user = True
    builder = "ch-image"
    builds_since = ("0.31", "the instructions of the recipe")
    comes_from = "Charliecloud 0.31 or later has it"
    storage_variables = ("CH_IMAGE_STORAGE",)
    # Seen with 0.31: the history of the image, and nothing else in two squashfs files of a lock.
    differs_before = "the dates in /ch/metadata.json"

    def requires(self, gpu: str, fakeroot: bool) -> list[tuple[str, str]]:
        """Source: bin/ch-run.c of hpc/charliecloud at its tags."""
        return [("0.2.4", "-b SOURCE:TARGET and -c")]

    def oldest(self, call: Call) -> str:
        """The one with ``--unset-env``, where it is used."""
        return UNSET_OPTION if call.unset and self.at_least(UNSET_OPTION) else ""

    def unsealed_reason(self) -> str:
        if self.version is None:
            return "the profile does not say its version, by which it shows the home directory inside or does not"
        return ""

    def image_names(self, stack: str, site: str) -> list[str]:
        """A squashfs file where ch-run is known to mount it, and the folder that it was unpacked to."""
        if self.at_least(SQUASHFS):
            return [f"{stack}.sqfs", stack]
        return [stack, f"{stack}.sqfs"] if self.version is None else [stack]

    def fetch(self, address: str, name: str) -> list[list[str]]:
        """Into its store, and from there; it knows no ``docker://``."""
        reference = address.removeprefix("docker://")
        return [["ch-image", "pull", reference], ["ch-convert", reference, name]]

    def can_make_targets(self) -> bool:
        """In a layer over the image that the memory holds. Source: ch-run(1) of that release, --write-fake."""
        return self.at_least(MAKES_TARGETS)

    def before_words(self) -> list[str]:
        """Where ch-run may be one that mounts."""
        return list(FOLDER_FIRST) if self.version is None or self.at_least(SQUASHFS) else []

    def words(self, call: Call) -> list[list[str]]:
        """ch-run of a read-only image. GPUs need no option: /dev is the host's, the driver's libraries the image's."""
        if call.sealed:
            return self._sealed_words(call)
        groups: list[list[str]] = [["ch-run", *(["--write-fake"] if call.makes_targets else [])]]
        unset = call.unset
        if self.at_least(UNSET_OPTION):
            groups += [[f"--unset-env={name}"] for name in call.unset]
            unset = ()
        groups += bind_words(self.bind_option, call.binds) + file_system_words(call)
        groups.append(["-b", joined(call.folder, f":{SUBMIT_FOLDER}"), "-c", SUBMIT_FOLDER])
        if call.join > 1:
            groups.append(["--join", f"--join-ct={call.join}"])
        elif call.ranks_outside:
            groups.append([JOINED])
        groups.append([call.image, "--"])
        # The host's PWD would come in too, and launchers start ranks where it says.
        inside = replace(call, inside={**call.inside, "PWD": SUBMIT_FOLDER})
        # The image is read-only, and the home directory is not inside: what programs compile, fetch or keep goes here.
        own = {"XDG_CACHE_HOME": "", **(OF_PYTHON if call.python else {})}
        kept = {name: Shell(f'"${{{name}:-{SUBMIT_FOLDER}/.cache{part}}}"') for name, part in own.items()}
        folders: list[list[str]] = [[joined(f"{name}=", word)] for name, word in kept.items()]
        return [*groups, *environment_words(inside, unset), *folders]

    def _sealed_words(self, call: Call) -> list[list[str]]:
        """ch-run with nothing of the host but the job's folder and what is bound, and with none of its variables."""
        home = [] if self.at_least(HOME_OPTION) else ["--no-home"]
        inside = replace(call, inside={**call.inside, "HOME": "/tmp", "PWD": SUBMIT_FOLDER})
        return [
            *SEAL,
            ["ch-run", *(["--write-fake"] if call.makes_targets else []), "--private-tmp", *home],
            *bind_words(self.bind_option, call.binds),
            ["-b", joined(call.folder, f":{SUBMIT_FOLDER}"), "-c", SUBMIT_FOLDER],
            [call.image, "--"],
            ["/usr/bin/env", "-i"],
            *environment_words(inside)[1:],
        ]

    def join_words(self) -> str:
        """Source: ch-run(1)."""
        return '--join "--join-ct=$ranks"'

    def ranks_together(self, mpi: str) -> bool:
        """They are joined in every release."""
        return True

    @classmethod
    def platform_words(cls, architecture: str) -> tuple[str, ...]:
        """Source: ch-image(1)."""
        return (f"--arch={'arm64/v8' if architecture == 'aarch64' else 'amd64'}",)

    def enter(self, root: str, chroot: list[str]) -> list[str]:
        """Source: ch-run(1)."""
        return ["ch-run", "--write", "--uid=0", "--gid=0", root, "--"]

    def requires_programs(self, target: Target) -> dict[str, str]:
        """What turns the image in the store into a file."""
        if target.kind == "ch-image":
            return {}
        words = {"ch-convert": "write the image (it comes with Charliecloud)"}
        if target.kind == "squashfs":
            words["mksquashfs"] = "write a .sqfs file; give -o a name without this ending for a folder instead"
        return words

    def target(self, plan: Plan, output: str | None, token: str) -> Target:
        """A file, a folder, or a name in the store."""
        from hpcgen.backends.engines import job_image

        name = output or job_image(plan)
        if name.startswith("ch-image:"):
            return Target("ch-image", name.partition(":")[2], self.stored_name(plan), is_file=False)
        return file_target(name, token, {".sqfs": "squashfs", ".squashfs": "squashfs", ".tar.gz": "tar", ".tgz": "tar"})

    @staticmethod
    def stored_name(plan: Plan) -> str:
        """What the image is called in ch-image's store while it is built."""
        return f"hpcgen-build-{plan.stack.name}-{plan.site.name}"

    def recipe(self, text: str, labels: Labels | None = None) -> Recipe:
        """The steps of the Dockerfile."""
        return dockerfile_steps(text, labels)

    def later_steps(self, target: Target) -> list[Step]:
        """What the image is written as."""
        what = {"squashfs": "write the squashfs file", "tar": "write the archive", "directory": "write the folder"}
        if target.kind == "ch-image":
            return []
        return [Step(HPCGEN, what[target.kind], 2, "WRITE")]

    def _environment(self, work: Work) -> dict[str, str]:
        """ch-image refers to the user by name; ch-run shows the steps $TMPDIR as /tmp, which is then theirs alone."""
        import getpass

        own = {**_SIGNATURE, "USER": getpass.getuser()}
        if work.plan.extends is not None:
            # The cache would take in every file of a finished image first, which lasts longer than the steps.
            own["CH_IMAGE_CACHE"] = "disabled"
        return {"TMPDIR": str(work.scratch), **{name: value for name, value in own.items() if not os.environ.get(name)}}

    def _storage(self) -> Path | None:
        """The folder of its store, as it says itself."""
        import getpass

        status, text = query(["ch-image", "gestalt", "storage-path"], {"USER": getpass.getuser(), **os.environ})
        return Path(text.strip().splitlines()[-1]) if status == 0 and text.strip() else None

    def places(self, work: Work) -> list[BuildFolder]:
        """The store; temporary files are in hpcgen's own folder."""
        remedy = (
            "remove unneeded images (ch-image list, ch-image delete IMAGE, ch-image build-cache --gc), or set "
            "CH_IMAGE_STORAGE to a folder on a larger disk"
        )
        storage = self._storage()
        return [BuildFolder(storage, "images", remedy)] if storage is not None else []

    def growing(self, work: Work) -> list[tuple[Path, str]]:
        """A file; a folder's size takes long to count."""
        path = Path(work.target.temporary)
        return [] if work.target.kind in ("directory", "ch-image") else [(path.parent, glob.escape(path.name))]

    def load(self, work: Work) -> list[EngineCommand]:
        """Each base, anew in every build: an import that was stopped leaves half an image under the name."""
        beneath = work.plan.extends or work.plan.base
        if work.bundle is None:
            return self._stored_file(work, beneath) if beneath is not None and beneath.file else []
        env = {name: value for name, value in self._environment(work).items() if name != "TMPDIR"}
        bundle = work.bundle
        return [
            EngineCommand(("ch-image", "import", str(bundle.root_tar(each)), each.stored), env=env)
            for each in bundle.bases
        ]

    def extended_name(self, content: str, file: str) -> str:
        """By the plan's hash: an image in the store, which is made of the file."""
        return f"hpcgen-extended-{content[:12]}"

    def _stored_file(self, work: Work, extended: ExtendedImage | BaseImage) -> list[EngineCommand]:
        """The finished image, which is a file or folder, into the store."""
        env = {name: value for name, value in self._environment(work).items() if name != "TMPDIR"}
        place = work.kit / extended.file
        if place.is_dir():
            return [EngineCommand(("ch-image", "import", str(place.resolve()), extended.image), env=env)]
        words = ("ch-convert", "-i", "squash", "-o", "ch-image", str(place.resolve()), extended.image)
        return [EngineCommand(words, env=env)]

    def build(self, work: Work) -> list[EngineCommand]:
        """build into the store, compare what was pulled, and convert.

        ``--force`` lets package managers run without privilege.
        """
        env = self._environment(work)
        words = ["ch-image", "build", "--force", *([] if work.cache else ["--no-cache"]), *work.options]
        if work.bundle is not None:
            words += ["--bind", f"{work.bundle.folder}:{MOUNT}"]
        words += self._base_words(work)
        stored = self.stored_name(work.plan)
        end = ("-f", work.recipe.name, _context(work))
        calls = [EngineCommand((*words, "-t", stored, *end), env=env, cwd=work.recipe.parent)]
        env = {name: value for name, value in env.items() if name == "USER"}
        if work.bases:
            named = [word for base in work.bases for word in (base.name, base.digest)]
            calls.append(EngineCommand(("bash", CHECK, *named), env=env, cwd=work.recipe.parent, told=True))
        if work.target.kind != "ch-image":
            format = CONVERSIONS[work.target.kind]
            convert = ("ch-convert", "-i", "ch-image", "-o", format, stored, work.target.temporary)
            # mksquashfs 4.4 and later
            dated = {} if work.epoch is None else {"SOURCE_DATE_EPOCH": str(work.epoch)}
            calls.append(EngineCommand(convert, env={**env, **dated}, step=len(work.steps) - 1))
        return calls

    def _base_words(self, work: Work) -> list[str]:
        """What its cache is told of base images that were imported."""
        named = [word for base in work.stored for word in (base.name, base.argument)]
        named += [word for base in work.bases for word in (base.name, "")]
        if not named or not work.cache:
            return []
        script = f'{base_script(TELL)}base_words "$@"'
        words = ["bash", "-c", script, TELL, *named]
        status, text = query(words, {**os.environ, **self._environment(work)}, timeout_s=_LISTING_S)
        if status:
            said = " ".join(text.split())[-300:] or f"status {status}"
            remedy = "repeat the build, or build without ch-image's cache: --no-cache"
            raise BuildFailedError(f"the base images in ch-image's store could not be read: {said}", remedy=remedy)
        return text.splitlines()[-1].split() if text.strip() else []

    def publish(self, work: Work) -> list[EngineCommand]:
        """A name in the store is given by a build of nothing but the base, which is the image."""
        if work.target.kind != "ch-image":
            return []
        words = ["ch-image", "build", *([] if work.cache else ["--no-cache"]), "-t", work.target.name]
        end = ("-f", NAMING, _context(work))
        return [EngineCommand((*words, *end), env=self._environment(work), cwd=work.recipe.parent)]

    def more_files(self, work: Work) -> dict[Path, str]:
        """What :meth:`publish` builds, and what compares the base images with their digests."""
        naming = {NAMING: f"FROM {work.target.temporary}\n"} if work.target.kind == "ch-image" else {}
        check = {CHECK: f'{base_script(CHECK)}check_bases "$@"\n'} if work.bases else {}
        return {work.recipe.with_name(name): text for name, text in {**naming, **check}.items()}

    def clean(self, work: Work, built: bool) -> list[EngineCommand]:
        """The image in the store and those of its stages; what the cache has of them stays.

        Those with the stack's own code stay, too: after a changed line of it, ch-image then changes the few files that
        differ instead of writing both stages anew.
        """
        if built and work.cache and work.plan.copied and work.plan.extends is None:
            return []
        env = {name: value for name, value in self._environment(work).items() if name != "TMPDIR"}
        names = [self.stored_name(work.plan)]
        beneath = work.plan.extends or work.plan.base
        names += [beneath.image] if work.bundle is None and beneath is not None and beneath.file else []
        return [EngineCommand(("ch-image", "delete", name), env=env) for name in names]

    def left_images(self) -> list[LeftImage]:
        """The names that builds use in its store, each with those of its stages."""
        from hpcgen.core.support.placing import folder_bytes

        storage = self._storage()
        folder = storage / "img" if storage is not None else None
        if folder is None or not folder.is_dir() or folder.is_symlink():
            return []
        found: dict[str, int] = {}
        for path in sorted(folder.iterdir()):
            name = re.sub(r"_stage\d+$", "", path.name.replace("%", "/").replace("+", ":"))
            ours = name.startswith(("hpcgen-build-", "hpcgen-extended-", STORED_BASES))
            if ours and path.is_dir() and not path.is_symlink():
                found[name] = found.get(name, 0) + folder_bytes(path)
        return [LeftImage(name, size, cache=True) for name, size in found.items()]

    def remove_images(self, names: Sequence[str]) -> list[list[str]]:
        """Each, and then what only they had in the build cache."""
        return [*(["ch-image", "delete", name] for name in names), ["ch-image", "build-cache", "--gc"]]

    def reader(self, recipe: Recipe) -> Reader:
        """Recognises a step by its line in the Dockerfile."""
        lines = {step.line: index for index, step in enumerate(recipe.steps) if step.line}

        def read(line: str) -> Iterator[Event]:
            found = re.match(_LINE, line)
            if found is None:
                return
            index = lines.get(int(found[1]))
            if index is not None and recipe.steps[index].keyword == found[3]:
                yield Event("cached" if found[2] == "*" else "begin", index)

        return read

    def built_image(self, target: Target) -> BuiltImage:
        """Of an image in the store, the size of its folder."""
        if target.kind != "ch-image":
            return measured(target.kind, Path(target.name))
        storage = self._storage()
        folder = storage / "img" / _folder_name(target.name) if storage is not None else None
        size = measured("directory", folder).bytes if folder is not None and folder.is_dir() else None
        return BuiltImage(kind="ch-image", name=target.name, bytes=size)

    def login(self, user: str, password: str, folder: Path) -> dict[str, str]:
        return {"CH_IMAGE_USERNAME": user, "CH_IMAGE_PASSWORD": password}

    def push(self, kind: str, name: str, target: str, scratch: Path) -> list[list[str]]:
        """From the store or a folder; a file is unpacked first."""
        if kind == "ch-image":
            return [["ch-image", "push", name, target]]
        if kind == "directory":
            return [["ch-image", "push", "--image", name, target]]
        if kind not in CONVERSIONS:
            return []
        unpacked = str(scratch / "image")
        return [
            ["ch-convert", "-i", CONVERSIONS[kind], "-o", "dir", name, unpacked],
            ["ch-image", "push", "--image", unpacked, target],
        ]


def _context(work: Work) -> str:
    """The build's folder, from that of the recipe; of a user's own Dockerfile it is anywhere."""
    return work.context.name if work.context.parent == work.recipe.parent else str(work.context)


def base_script(name: str) -> str:
    """Functions of bash for the base images of a build.

    ``name``: :data:`CHECK`: ``check_bases NAME DIGEST…`` fails for an image that was pulled and is another one;
    :data:`TELL`: ``base_words NAME ARGUMENT…`` says which words ``ch-image build`` is given for imported images.
    """
    return Template(Path(__file__).with_name(name)).fill()


def _folder_name(reference: str) -> str:
    """How ch-image writes a name as a folder's (image.py, for_path)."""
    return reference.replace("/", "%").replace(":", "+")
