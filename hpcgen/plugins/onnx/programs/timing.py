"""How long one call takes, runtime against runtime: all of a model in rounds, each runtime in a process of its own.

The processes are begun together and only one computes at a time: the others wait for the next word of theirs, so that
no threads or memory of one framework disturb another, and every round meets the same machine. What one runtime computes
with, the converted model and its variants, is in one process. A round begins with what comes after that with which the
last began. What a call costs at first, compilation and caches, is measured apart.
"""

import contextlib
import importlib
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from .common import Cannot, job, model_record, seed_of, text, threads_of
from .data import random_feeds, with_batch
from .runtimes import open_runtime, placed
from .variants import RUNTIME, loaded_from

ROUNDS = 5
SECONDS = 0.25
"""How long calls are repeated in each round, unless it is said: many calls of what is fast, one of what is not."""

WARMUP = 1
"""Calls before those that count, in each round."""

START_S = 900.0
"""Seconds that a runtime has to load, and compile, a model."""

MOST_CALLS = 1000


HERE = ("sklearn",)
"""Origins whose framework is measured in the process that has loaded the model to convert it.

Others were set up for something else there: TensorFlow without oneDNN, PyTorch with the hooks of its exporter.
"""


# the process that measures what one runtime computes with


class Measured:
    """What answers the words of the parent: ``open``, ``first`` (with a batch), ``time``."""

    def __init__(self, original=None):
        self.original = original
        self.model = self.feeds = None
        self.calls = 1

    def open(self, asked):
        """Load the model."""
        self.given = job()
        self.record = model_record(self.given, asked["model"])
        if asked["runtime"] == "framework":
            told = {"findings": []}
            # The module keeps GPUs away from whatever is imported after it.
            convert = importlib.import_module(".convert", __package__)
            self.model = self.original or convert.original_of(self.given, self.record, told)
            self.record = self.model.model if self.original else self.record
            versions = told.get("versions") or getattr(self.model, "versions", {})
            return {"version": version_of(self.record.origin, versions), "provider": ""}
        self._draw(asked["batch"])
        path = loaded_from(self.record, asked["variant"])
        how = {"provider": asked["provider"], "feeds": self.feeds, "variant": asked["variant"]}
        if asked["runtime"] == "onnxruntime" and asked["provider"] not in ("", "cpu"):
            # A session may have the provider and compute each node on the CPU.
            placed(path, threads_of(self.given), asked["provider"], self.feeds)
        self.model = open_runtime(asked["runtime"], path, threads_of(self.given), **how)
        return {"version": self.model.version, "provider": self.model.provider}

    def _draw(self, batch):
        self.feeds = random_feeds(self.record, with_batch(self.record, batch), seed_of(self.given))

    def first(self, asked):
        """The first call of a batch, and by two more how many fit into a round."""
        self._draw(asked["batch"])
        first = self._seconds(1)
        about = max(min(self._seconds(1), self._seconds(1)), 1e-7)
        self.calls = max(1, min(MOST_CALLS, int(asked["seconds"] / about)))
        return {"first": first}

    def time(self, asked):
        """Seconds of one call; those before them do not count."""
        self._seconds(asked["warmup"])
        return {"seconds": self._seconds(self.calls)}

    def _seconds(self, calls):
        begin = time.perf_counter()
        for _ in range(calls):
            self.model.run(self.feeds)
        return (time.perf_counter() - begin) / calls


class Worker:
    """What is measured in this process, by number; ``original``: one that is loaded already."""

    failed = ""

    def __init__(self, original=None):
        self.original, self.measured = original, {}

    def ask(self, word, of, **more):
        """The answer of one."""
        one = self.measured.setdefault(of, Measured(self.original))
        try:
            return getattr(one, word)(more)
        except Cannot as why:
            return {"failed": text(why.message)}
        except Exception as why:
            return {"failed": text(f"{type(why).__name__}: {why}")}

    def end(self):
        """Nothing to end."""


def work_as_asked():
    """Answer words until there are none; what the model prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path.append(str(Path("given").resolve()))
    worker = Worker()
    for line in sys.stdin:
        answers.write(json.dumps(worker.ask(**json.loads(line))) + "\n")
        answers.flush()


# the process that asks


class Process:
    """One runtime in a process of its own; ``failed``: how it has ended."""

    def __init__(self, threads):
        self.failed = ""
        # Frameworks read these as they are imported.
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TVM_NUM_THREADS")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "programs.timing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(os.environ, TF_ENABLE_ONEDNN_OPTS="1", **dict.fromkeys(names, str(threads))),
        )

    def ask(self, word, of, **more):
        """The answer of one that is measured there."""
        line = json.dumps({"word": word, "of": of, **more}).encode() + b"\n"
        answer, ready = b"", True
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line)
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], START_S)
            answer = self.process.stdout.readline() if ready else b""
        if answer:
            return json.loads(answer)
        self.failed = self._why(ready)
        return {"failed": self.failed}

    def _why(self, ready):
        if not ready:
            return f"it took more than {START_S:g} s"
        try:
            return f"its process ended with status {self.process.wait(10)}"
        except subprocess.TimeoutExpired:
            return "its process said nothing"

    def end(self):
        """End the process."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Runner:
    """The framework, the converted model or a variant; ``of``: its number in the process where it is measured."""

    def __init__(self, asked, of, process, another):
        """``another``: gives a new process, where this one is ended by something else that is measured in it."""
        self.asked, self.of, self.process, self.another = asked, of, process, another
        self.found, self.failed, self.began = {}, "", {}
        told = self.ask("open", **asked)
        self.version, self.provider = told.get("version"), told.get("provider", "")

    def ask(self, word, **more):
        """The answer; without one it has failed."""
        if not self.failed and self.process.failed:
            self.process = self.another()
            if word != "open":
                self.ask("open", **self.asked)
            if word == "time":
                self.ask("first", **self.began)
        if self.failed:
            return {}
        self.began = more if word == "first" else self.began
        told = self.process.ask(word, self.of, **more)
        self.failed = told.get("failed", "")
        return told

    def told(self, batch):
        """The record of one batch."""
        names = ("model", "runtime", "variant")
        record = {**{name: self.asked[name] for name in names}, "batch": batch, "provider": self.provider}
        record |= self.found.get(batch, {"seconds": []})
        if self.version:
            record["version"] = self.version
        return record | ({"failed": self.failed} if self.failed else {})


def version_of(origin, versions):
    """Of the packages of an original, that of the framework itself."""
    name = {"pytorch": "torch", "torch-export": "torch", "onnx": "onnxruntime"}.get(origin, origin)
    return versions.get(name) or next(iter(versions.values()), None)


def runtimes_of(asked, model):
    """What is measured: the framework, ONNX Runtime, and every variant that is there."""
    # OpenVINO is a runtime of its own; what ONNX Runtime computes beside it is on the CPU, too.
    provider = asked.get("provider") if asked.get("provider") != "openvino" else None
    base = {"model": model.name, "batch": batches_of(asked, model)[0], "provider": provider or "cpu"}
    found = []
    if asked.get("framework", True):
        found.append(dict(base, runtime="framework", variant="", provider="cpu"))
    found.append(dict(base, runtime="onnxruntime", variant=""))
    return found + [
        dict(base, runtime=RUNTIME.get(variant, "onnxruntime"), variant=variant)
        for variant in asked.get("variants") or []
    ]


def batches_of(asked, model):
    """Lengths of the axis ``batch`` that are measured: asked for, or the model's own; 1 without such an axis."""
    if "batch" not in model.axes:
        return [1]
    return asked.get("batches") or model.batches or [model.axes["batch"]]


def begun(model):
    """No figure is known."""
    return []


def work(asked, model, record):
    """Measure all runtimes of a model; what cannot be measured says why, and the others go on."""
    threads, processes = threads_of(asked), []

    def another():
        processes.append(Process(threads))
        return processes[-1]

    places, runners = {}, []
    if model.original is not None and model.origin in HERE:
        places["framework"] = Worker(model.original)
    try:
        for of, each in enumerate(runtimes_of(asked, model)):
            # A model that is ONNX already is computed by ONNX Runtime.
            place = "onnxruntime" if model.origin == "onnx" and each["runtime"] == "framework" else each["runtime"]
            places[place] = places.get(place) or another()
            runners.append(Runner(each, of, places[place], another))
        for batch in batches_of(asked, model):
            in_rounds(runners, batch, asked)
            record += [each.told(batch) for each in runners]
    finally:
        for each in processes:
            each.end()


def in_rounds(runners, batch, asked):
    """Measure one batch, a figure for each runtime in every round."""
    for each in runners:
        told = each.ask("first", batch=batch, seconds=asked.get("seconds") or SECONDS)
        each.found[batch] = {"seconds": [], "first": told.get("first", 0.0)}
    for number in range(asked.get("rounds") or ROUNDS):
        first = number % len(runners)
        for each in [*runners[first:], *runners[:first]]:
            told = each.ask("time", warmup=asked.get("warmup") or WARMUP)
            if "seconds" in told:
                each.found[batch]["seconds"].append(told["seconds"])


if __name__ == "__main__":
    work_as_asked()
