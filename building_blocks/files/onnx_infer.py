"""Run converted models over many data files: in pieces, in shards, and again from where it was ended.

    onnx_infer.py [--models DIR] [--model NAME]... [--output DIR] [--batch N] [--provider NAME] DATA...

DATA are files .npz with an array for each input, files .npy for models of one input, or folders of such. A folder with
folders called as models holds the data of each; other data are for every model that runs. The arrays' first axis is cut
into pieces of --batch. What a model gives becomes OUTPUT/MODEL/FILE.npz, with an array for each output, written whole
or not at all. One that is there, of the same model and the same data, is not computed again.

As a task of an array (HPCGEN_TASK or SLURM_ARRAY_TASK_ID, of SLURM_ARRAY_TASK_COUNT or --tasks), or with --shard 2/8,
it runs its share of the files.

The provider is that of the image. Exit status 76: a provider for a GPU was asked for, and the CPU would have computed.
1: some files failed, each said; 2: it was called in a wrong way, or there is no such model.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from onnx_arrays import digest, infer, is_whole, read_data, write
from onnx_sessions import FELL_BACK, PROVIDERS, Cannot, model_file, open_model

MODELS = Path("/opt/onnx_models")
PROVIDER_FILES = [Path("/opt/onnx_serve/share/provider"), Path("/opt/onnxruntime/share/provider")]


def files_of(folder_or_file):
    """Data files, each with its path below the folder that was named."""
    if not folder_or_file.is_dir():
        return [(folder_or_file, Path(folder_or_file.name))]
    found = sorted(each for end in ("*.npy", "*.npz") for each in folder_or_file.rglob(end) if each.is_file())
    return [(each, each.relative_to(folder_or_file)) for each in found if not each.name.startswith(".")]


def work(models, data):
    """Model, data file and the path of its result, for all that there is to do, in one order on every task."""
    found = []
    for name in models:
        mine = []
        for each in data:
            own = each / name
            foreign = each.is_dir() and any((each / other).is_dir() for other in models)
            mine += files_of(own) if own.is_dir() else [] if foreign else files_of(each)
        places = {}
        for path, relative in mine:
            place = relative.with_suffix(".npz")
            if place in places:
                raise Cannot(f"{path} and {places[place]} would have the same result {name}/{place}: name them apart")
            places[place] = path
        found += [(name, path, Path(name, place)) for place, path in sorted(places.items())]
    if not found:
        raise Cannot(f"there are no .npy or .npz files in {' '.join(map(str, data))}")
    return found


def shard(asked):
    """Which task of how many this is, from 0."""
    env = os.environ
    if asked.shard:
        number, _, count = asked.shard.partition("/")
        if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
            raise Cannot(f"--shard {asked.shard}: not one of so many, such as 2/8")
        return int(number) - 1, int(count)
    first = int(env.get("SLURM_ARRAY_TASK_MIN") or 0)
    task = env.get("HPCGEN_TASK") or ""
    if not task and env.get("SLURM_ARRAY_TASK_ID"):
        task = str(int(env["SLURM_ARRAY_TASK_ID"]) - first)
    if not task:
        return 0, 1
    count = int(env.get("SLURM_ARRAY_TASK_COUNT") or asked.tasks or 0)
    if not count:
        raise Cannot(f"this is task {task} of an array, and nothing says of how many: --tasks N")
    if not 0 <= int(task) < count:
        raise Cannot(f"this is task {task}, counted from 0, of an array of {count}: number the tasks without gaps")
    return int(task), count


def provider_of_the_image():
    """The word in the file that the image has for it; the CPU outside of an image of hpcgen."""
    for path in PROVIDER_FILES:
        if path.is_file():
            word = path.read_text().strip()
            return next((name for name, provider in PROVIDERS.items() if provider == word), word)
    return "cpu"


def options(words):
    parser = argparse.ArgumentParser(description="Run converted models over data files.")
    parser.add_argument("data", nargs="+", type=Path, metavar="DATA")
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--model", action="append", default=[], metavar="NAME", help="by default all of --models")
    parser.add_argument("--variant", default="", help="as the conversion called it, such as ort-all")
    parser.add_argument("--output", type=Path, default=Path("results"))
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--provider", choices=["openvino", *PROVIDERS], default=None)
    parser.add_argument("--threads", type=int, default=int(os.environ.get("OMP_NUM_THREADS") or 0))
    parser.add_argument("--shard", default="", metavar="N/COUNT", help="this share of the files")
    parser.add_argument("--tasks", type=int, default=0, metavar="N", help="of the array, where it does not say that")
    parser.add_argument("--report", type=Path, help="what was done, as JSON")
    asked = parser.parse_args(words)
    if asked.batch < 1:
        parser.error("--batch has to be at least 1")
    return asked


def chosen_models(asked):
    there = sorted(each.name for each in asked.models.iterdir() if each.is_dir()) if asked.models.is_dir() else []
    there = [each for each in there if any((asked.models / each).glob("*.onnx"))]
    unknown = [each for each in asked.model if each not in there]
    if unknown or not there:
        raise Cannot(f"{asked.models} has no model {' '.join(unknown)}: it has {', '.join(there) or 'none'}")
    return asked.model or there


class Report:
    """What was done, for people line by line and for programs at the end."""

    def __init__(self, task, tasks):
        self.began, self.failed = time.monotonic(), []
        self.data = {"task": task, "tasks": tasks, "computed": 0, "there": 0, "rows": 0, "models": {}}

    def fail(self, path, why):
        self.failed.append({"data": str(path), "why": str(why)})
        sys.stderr.write(f"onnx_infer: {why}\n")

    def done(self):
        seconds = round(time.monotonic() - self.began, 3)
        return {**self.data, "failed": self.failed, "seconds": seconds}


def run_all(asked, report, mine, provider):
    """Compute what is not there yet, model by model."""
    precision = "bf16" if asked.variant == "openvino-bf16" else "f32"
    for name in dict.fromkeys(each[0] for each in mine):
        path = model_file(asked.models / name, asked.variant, provider)
        identity, model = {"model": digest(path), "provider": provider, "variant": asked.variant}, None
        for _, data, place in [each for each in mine if each[0] == name]:
            try:
                mark = json.dumps({**identity, "data": digest(data)}, sort_keys=True).encode()
            except OSError as failure:
                report.fail(data, failure)
                continue
            if is_whole(asked.output / place, mark):
                report.data["there"] += 1
                continue
            if model is None:
                model = open_model(path, provider, asked.threads, precision)
                print(f"{name}: {model.runtime}, {model.provider}", flush=True)
            compute(asked, report, model, data, place, mark)
        if model is not None:
            report.data["models"][name] = {"runtime": model.runtime, "provider": model.provider, "nodes": model.nodes}


def compute(asked, report, model, data, place, mark):
    """One file; what is wrong with it is noted, and the others are computed."""
    began = time.monotonic()
    try:
        arrays = read_data(data, model)
        found = infer(model, arrays, asked.batch)
        write(asked.output / place, dict(zip(model.outputs, found, strict=True)), mark)
    except Cannot as failure:
        if failure.status == FELL_BACK:
            raise
        report.fail(data, failure)
    except OSError as failure:
        report.fail(data, f"{asked.output / place}: {failure}")
    else:
        rows = max([len(each) for each in arrays.values() if each.ndim] or [1])
        report.data["computed"] += 1
        report.data["rows"] += rows
        print(f"{place}: {rows} rows in {time.monotonic() - began:.2f} s", flush=True)


def main(words):
    """The exit status."""
    asked = options(words)
    try:
        task, tasks = shard(asked)
        missing = [each for each in asked.data if not each.exists()]
        if missing:
            raise Cannot(f"there is no {' '.join(map(str, missing))}")
        mine = work(chosen_models(asked), asked.data)[task::tasks]
        report = Report(task, tasks)
        run_all(asked, report, mine, asked.provider or provider_of_the_image())
    except Cannot as failure:
        sys.stderr.write(f"onnx_infer: {failure}\n")
        return failure.status
    done = report.done()
    if asked.report:
        asked.report.parent.mkdir(parents=True, exist_ok=True)
        aside = asked.report.with_name(f".{asked.report.name}.{os.getpid()}.partial")
        aside.write_text(json.dumps(done, indent=1) + "\n")
        aside.replace(asked.report)
    share = f"task {task + 1} of {tasks}: " if tasks > 1 else ""
    print(f"{share}{done['computed']} computed, {done['there']} were there, {len(done['failed'])} failed")
    return 1 if done["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
