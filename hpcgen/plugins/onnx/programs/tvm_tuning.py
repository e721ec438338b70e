"""Schedules for the operators of a model: MetaSchedule proposes them, each is compiled and timed, the best are kept.

Each trial is compiled and timed by one other process (tvm_trial.py). TVM's own builder and runner would need a C
compiler, psutil and a tar of objects for each; its own records of them cannot be written by TVM 0.27, which crashes.
"""

import json
import os
import select
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from .common import Cannot, imported
from .tvm_variant import SCHEDULES, plain_text, relaxed, target_of, tvm_for

SECONDS_OF_A_TRIAL = 30.0
PER_ITERATION = 16


def tune(path, folder, threads, feeds, trials, seed):
    """Try schedules, and keep the records of the best in ``folder``.

    Returns findings.

    ``trials``: at most, over all operators, those with the largest share of the time first.
    """
    tvm = tvm_for(threads)
    refuse_broken(tvm)
    target = target_of(tvm, threads)
    module = relaxed(tvm, path, feeds, target)
    schedule = imported("tvm.s_tir.meta_schedule", "TVM")
    integration = imported("tvm.s_tir.meta_schedule.relax_integration", "TVM")
    tasks = integration.extract_tasks(module, target)
    if not tasks:
        raise Cannot("TVM found no operator of the model with a tunable schedule", "leave tvm-tuned out for this model")
    model, strategy, found = _cost_model()
    kept = schedule.database.MemoryDatabase()
    with tempfile.TemporaryDirectory() as logs:
        how = {"num_threads": threads, "seed": seed, "strategy": strategy}
        contexts, weights = integration.extracted_tasks_to_tune_contexts(tasks, logs, **how)
        trier = Trier(threads)
        try:
            builder, runner = trier.parts()
            imported("tvm.s_tir.meta_schedule.tune", "TVM").tune_tasks(
                tasks=contexts,
                task_weights=weights,
                work_dir=logs,
                max_trials_global=trials,
                max_trials_per_task=trials,
                num_trials_per_iter=max(1, min(PER_ITERATION, trials // len(contexts))),
                builder=builder,
                runner=runner,
                database=kept,
                cost_model=model,
            )
        finally:
            trier.end()
    if not trier.good:
        raise Cannot(
            f"none of {trier.tried} trials of TVM could be compiled and run: {trier.last}",
            "leave tvm-tuned out for this model",
        )
    best = {}
    for task in tasks:
        tuned = kept.query_ir_module(task.dispatched[0], target, task.task_name)
        if tuned is not None:
            best[plain_text(tvm, task.dispatched[0]["main"])] = tuned.script(show_meta=True)
    (folder / SCHEDULES).write_text(json.dumps(best, indent=1, sort_keys=True) + "\n", "utf-8")
    shapes = ", ".join(f"{name} {'x'.join(map(str, value.shape))}" for name, value in feeds.items())
    done = f"{trier.tried} trials, {trier.good} of which ran, gave {len(best)} of {len(tasks)} operators a schedule"
    done += f"; tuned for {shapes}"
    return [done, *found]


def refuse_broken(tvm):
    """MetaSchedule of TVM 0.27 crashes with apache-tvm-ffi 0.1.15, which its metadata allow, and works with 0.1.14."""
    beside = metadata.version("apache-tvm-ffi")
    if tvm.__version__.startswith("0.27.") and not beside.startswith("0.1.14"):
        raise Cannot(
            f"MetaSchedule of TVM {tvm.__version__} crashes with apache-tvm-ffi {beside}",
            "take an image with apache-tvm-ffi 0.1.14, or leave tvm-tuned out",
        )


def _cost_model():
    """By which the next trials are chosen, how, and what to say of it."""
    try:
        imported("xgboost", "TVM")
    except Cannot:
        return "random", "replay-trace", ["the image has no xgboost, so schedules are tried at random"]
    return "xgb", "evolutionary", []


class Trier:
    """Compiles and times schedules in one other process, which is begun anew when a schedule breaks or blocks it."""

    def __init__(self, threads):
        self.threads, self.process = threads, None
        self.tried = self.good = 0
        self.last = "none was tried"

    def parts(self):
        """What builds and what runs, as MetaSchedule wants them: here the first only writes the schedule down."""
        schedule = imported("tvm.s_tir.meta_schedule", "TVM")
        derived, trier = imported("tvm.ir.utils", "TVM").derived_object, self

        @derived
        class Builder(schedule.builder.PyBuilder):
            def build(self, inputs):
                found = []
                for each in inputs:
                    # TVM's JSON of a module crashes in 0.27; as text it comes back as it was.
                    path = Path(tempfile.mkdtemp(), "trial.json")
                    text = {"module": each.mod.script(show_meta=True), "target": str(each.target)}
                    path.write_text(json.dumps(text), "utf-8")
                    found.append(schedule.builder.BuilderResult(str(path), None))
                return found

        @derived
        class Done(schedule.runner.PyRunnerFuture):
            def __init__(self, result):
                super().__init__()
                self.kept = result

            def done(self):
                return True

            def result(self):
                return self.kept

        @derived
        class Runner(schedule.runner.PyRunner):
            def run(self, inputs):
                return [Done(schedule.runner.RunnerResult(*trier.time(each))) for each in inputs]

        return Builder(), Runner()

    def time(self, each):
        """Seconds of the runs of one schedule, and what went wrong; one of them is None."""
        self.tried += 1
        asked = {"path": each.artifact_path, "arguments": [_plain(one.as_json()) for one in each.args_info]}
        said = self._ask(json.dumps(asked))
        if "seconds" in said:
            self.good += 1
            return said["seconds"], None
        self.last = said["failed"]
        return None, self.last

    def _ask(self, line):
        if self.process is None:
            program = Path(__file__).with_name("tvm_trial.py")
            environment = dict(os.environ, TVM_NUM_THREADS=str(self.threads))
            self.process = subprocess.Popen(
                [sys.executable, str(program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], SECONDS_OF_A_TRIAL)
            answer = self.process.stdout.readline() if ready else b""
        except BrokenPipeError:
            answer, ready = b"", True
        if answer:
            return json.loads(answer)
        self.end()
        return {"failed": "its process ended" if ready else f"it took more than {SECONDS_OF_A_TRIAL:g} s"}

    def end(self):
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


def _plain(value):
    """What TVM gives for JSON as Python's own types."""
    if isinstance(value, (str, int, float)):
        return value
    return [_plain(each) for each in value]
