"""Files of models and data sets: what a bundle or a job wants of them, and the hashes of what an address has now.

Of a repository of the Hugging Face hub its interface tells the commit and the sha256 of files in Git LFS; the others
are fetched, and held against the name that git has for them. Source: huggingface/huggingface_hub, src/huggingface_hub,
hf_api.py (``model_info`` with ``files_metadata``) and constants.py.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from http.client import HTTPException

import msgspec

from hpcgen.core.errors import FetchError, InputError
from hpcgen.core.model.bundle import WantedFile
from hpcgen.core.model.models import Model, ModelFile, ModelPath
from hpcgen.core.support.progress import TransferProgress, Watch
from hpcgen.supply.net.web import Response, Web, WebError, shown

HUB = "https://huggingface.co"
_TOKEN, _ENDPOINT = "HF_TOKEN", "HF_ENDPOINT"
_ANSWER_BYTES = 64 << 20
_AGAIN = "try again later, or open the address in a browser"
_FILE = "leave both out for a file; a repository is https://huggingface.co/ORG/NAME"
_OTHER = "pass another --name or --to, or write the entry yourself"
_REPOSITORY = re.compile(r"/(?P<kind>datasets/)?(?P<name>[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?)")


def wanted_files(model: Model) -> dict[str, WantedFile]:
    """What has to be fetched of a model, by its path."""
    return {
        path: WantedFile(
            kind="model",
            name=model.name,
            file=path.rpartition("/")[2],
            sha256=file.sha256,
            urls=[address],
            size=file.size,
        )
        for path, (address, file) in model.parts.items()
    }


def hub_tokens(environment: Mapping[str, str]) -> dict[str, str]:
    """The user's token for the hub, by the host that gets it."""
    token = environment.get(_TOKEN, "").strip()
    return {urllib.parse.urlsplit(_hub(environment)).netloc: token} if token else {}


def _hub(environment: Mapping[str, str]) -> str:
    return (environment.get(_ENDPOINT) or HUB).rstrip("/")


class _Lfs(msgspec.Struct):
    sha256: str


class _HubFile(msgspec.Struct):
    rfilename: str
    size: int | None = None
    blobId: str = ""
    lfs: _Lfs | None = None


class _Repository(msgspec.Struct):
    sha: str
    siblings: list[_HubFile]


class Pinning:
    """Asks addresses what they have now.

    Parameters
    ----------
    web: with the user's token for the hub.
    environment: its ``HF_ENDPOINT`` names another hub.
    watch: sees a file arrive, and hears of files that are left out.
    """

    def __init__(self, web: Web, environment: Mapping[str, str], watch: Watch) -> None:
        self.web, self.hub, self.watch = web, _hub(environment), watch

    def model(self, address: str, name: str, to: str, revision: str, patterns: Sequence[str]) -> Model:
        """The entry of ``run.models`` for a file, or for a repository of the hub at a revision.

        Parameters
        ----------
        patterns: which files of a repository, with ``*``, ``?`` and ``[…]``; all of them if there are none.

        Raises
        ------
        FetchError: no answer. InputError: it cannot be an entry.
        """
        repository = _REPOSITORY.fullmatch(address.removeprefix(self.hub)) if address.startswith(self.hub) else None
        if repository is not None:
            commit, files = self._repository(repository["kind"] or "", repository["name"], revision, patterns)
            return _checked(name, f"{address}/resolve/{commit}", to, files=files)
        if revision or patterns:
            raise InputError(
                f"{shown(address)} is not a repository of {self.hub}", "--revision, --include", remedy=_FILE
            )
        sha256, count = self._file(address)
        return _checked(name, address, to, sha256=sha256, size=count)

    def _file(self, address: str) -> tuple[str, int]:
        """The sha256 of a file and how many bytes it has."""
        answer = self._asked(address)
        length = answer.headers.get("content-length", "")
        announced = int(length) if length.isdecimal() else 0
        hasher, progress = hashlib.sha256(), TransferProgress("reading", 1, announced)
        self.watch.begin(progress)
        try:
            while data := answer.read(1 << 20):
                hasher.update(data)
                progress.moved(address, len(data))
                self.watch.tick()
        except (OSError, HTTPException) as failure:
            raise FetchError(f"{shown(address)}: the connection broke: {failure}", remedy=_AGAIN) from failure
        finally:
            answer.close()
            self.watch.end()
        count = progress.bytes_done
        if announced not in (0, count):
            raise FetchError(f"{shown(address)}: the connection ended after {count} of {length} bytes", remedy=_AGAIN)
        return hasher.hexdigest(), count

    def _repository(
        self, kind: str, name: str, revision: str, patterns: Sequence[str]
    ) -> tuple[str, dict[str, ModelFile]]:
        """The commit that a revision is now, and its files."""
        api = f"{self.hub}/api/{kind or 'models/'}{name}/revision/{urllib.parse.quote(revision or 'main', safe='')}"
        try:
            found = msgspec.json.decode(self._body(f"{api}?blobs=true"), type=_Repository)
        except msgspec.DecodeError as failure:
            raise FetchError(f"{self.hub} sent an invalid reply about {name}: {failure}", remedy=_AGAIN) from failure
        files = {}
        for each in found.siblings:
            if patterns and not any(fnmatch.fnmatchcase(each.rfilename, pattern) for pattern in patterns):
                continue
            try:
                path = msgspec.convert(each.rfilename, ModelPath)
            except msgspec.ValidationError:
                self.watch.say(f"left out: {ascii(each.rfilename)[:200]}")
                continue
            place = f"{self.hub}/{kind}{name}/resolve/{found.sha}/{path}"
            files[path] = ModelFile(sha256=each.lfs.sha256, size=each.size) if each.lfs else self._small(place, each)
        if not files:
            raise InputError(f"{name} has no such file", "--include", remedy="leave --include out for all files")
        return found.sha, files

    def _small(self, address: str, file: _HubFile) -> ModelFile:
        """A file that git itself keeps; its name there is the sha1 of its length and content."""
        data = self._body(address)
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        if file.blobId and blob != file.blobId:
            raise FetchError(
                f"{shown(address)} is not the file that the commit names: {blob}, not {file.blobId}", remedy=_AGAIN
            )
        return ModelFile(sha256=hashlib.sha256(data).hexdigest(), size=len(data))

    def _asked(self, address: str) -> Response:
        try:
            return self.web.get(address, {}, False, lambda line: None)
        except WebError as failure:
            remedy = f"{_TOKEN} must hold the token for restricted files" if address.startswith(self.hub) else ""
            raise FetchError(f"{shown(address)}: {failure.message}", remedy=remedy) from failure

    def _body(self, address: str) -> bytes:
        answer = self._asked(address)
        try:
            return answer.body(_ANSWER_BYTES)
        except (WebError, OSError, HTTPException) as failure:
            raise FetchError(f"{shown(address)}: {failure}", remedy=_AGAIN) from failure
        finally:
            answer.close()


def _checked(name: str, address: str, to: str, **more: object) -> Model:
    """The entry, as a stack's file would have it."""
    data = {"name": name, "from": address, "to": to, **msgspec.to_builtins(more)}
    try:
        return msgspec.convert(data, Model)
    except msgspec.ValidationError as failure:
        raise InputError(f"{shown(address)} cannot be an entry of run.models: {failure}", remedy=_OTHER) from failure
