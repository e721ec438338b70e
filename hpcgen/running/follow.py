"""Follow a job to its end: what it is doing, and its output as it comes."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from codecs import getincrementaldecoder
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import msgspec

from hpcgen.backends.schedulers.base import GONE, JobState, Scheduler
from hpcgen.core.errors import JobFailedError
from hpcgen.launch.script import MARK, StepState, read_step
from hpcgen.running.here import OWN_STATUS, status_text
from hpcgen.running.submission import Submitted

FIRST_ASK_S = 1.0
LAST_ASK_S = 15.0
"""The batch system is asked often at first, then every 15 s: it serves others too."""
LOOK_S = 0.5
"""How often the output file is looked at."""
SETTLE_S = 1.5
"""An output file that has not grown for so long after the job's end is complete."""
COPY_S = 60.0
"""How long PBS may take to copy the output back after the job's end."""
DEAF_S = 600.0
"""How long the batch system may give no answer."""
ANSWER_S = 60.0
_LONGEST = 1000
"""Characters of a line that is not complete yet; those of steps are shorter."""


class JobResult(msgspec.Struct, frozen=True):
    """How a job ended. ``output`` are its files, as far as they are there; ``steps`` those that began."""

    id: str
    name: str
    state: str
    good: bool
    exit_status: int | None
    elapsed_s: int | None
    output: list[str]
    script: str
    reason: str = ""
    signal: int = 0
    steps: list[StepState] = []


class StepLines:
    """Finds a job's steps in its output, which comes in pieces."""

    def __init__(self) -> None:
        self.steps: list[StepState] = []
        self._rest = b""

    def feed(self, new: bytes) -> None:
        """Take what the output has got."""
        *lines, rest = (self._rest + new).split(b"\n")
        # A program may print a great deal without a line break.
        self._rest = rest[:_LONGEST]
        for line in lines:
            found = read_step(line.decode("utf-8", "replace")) if line.startswith(MARK.encode()) else None
            if found is not None:
                # A job that was put back into the queue begins again with the first.
                self.steps = [*(each for each in self.steps if each.number < found.number), found]


class Tail:
    """What a growing file has got since the last look. It is opened each time: only so do network file systems tell."""

    def __init__(self, path: Path, lines: StepLines | None = None) -> None:
        self.path = path
        self.offset = 0
        self.lines = lines

    def copy_new(self, stream: BinaryIO) -> bool:
        """Copy what is new; False if there was nothing."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                # A shorter file was begun anew.
                self.offset = min(self.offset, size) if size >= self.offset else 0
                file.seek(self.offset)
                new = file.read()
        except OSError:
            return False
        self.offset += len(new)
        if new:
            if self.lines is not None:
                self.lines.feed(new)
            stream.write(new)
            stream.flush()
        return bool(new)


class _AsText(io.RawIOBase):
    """Writes to a stream of text that has no bytes below it, as a notebook's."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def write(self, new: Any) -> int:
        self._stream.write(self._decoder.decode(bytes(new)))
        return len(new)

    def flush(self) -> None:
        self._stream.flush()


def _bytes_of(stream: TextIO) -> BinaryIO:
    """Where bytes go that are meant for a stream."""
    below: BinaryIO | None = getattr(stream, "buffer", None)
    return below if below is not None else cast(BinaryIO, _AsText(stream))


class Follower:
    """Asks for a job's state, shows its output, and knows when both have come to an end."""

    def __init__(self, submitted: Submitted, say: Callable[[str], None], to_stderr: bool = False) -> None:
        self.submitted = submitted
        self.say = say
        self.state = JobState("waiting", "")
        self.tails: list[tuple[Tail, BinaryIO]] = []
        self.heard = self.known = time.monotonic()
        self.shown = ""
        self.step = ""
        self.out = _bytes_of(sys.stderr if to_stderr else sys.stdout)

    def follow(self) -> JobResult:
        """Follow until the job has ended and its output is complete.

        JobFailedError: the batch system gives no answer any more. KeyboardInterrupt: the job goes on.
        """
        pause = FIRST_ASK_S
        while True:
            self._ask()
            if self.state.phase in ("ended", "gone"):
                break
            self._show_for(pause)
            pause = min(pause * 1.3, LAST_ASK_S)
        self._drain()
        return self._result()

    def _ask(self) -> None:
        state = ask(self.submitted)
        if state is None:
            if time.monotonic() - self.heard > DEAF_S:
                message = f"the batch system has not answered for {DEAF_S:.0f} s; job {self.submitted.id} may continue"
                looking = [*self.submitted.queue.looking, self.submitted.id]
                raise JobFailedError(message, remedy=f"later: {' '.join(looking)}")
            return
        self.heard = time.monotonic()
        if state.phase == "gone" and not self.shown:
            # Some systems know of a job a moment after they took it.
            self.shown = "gone"
            return
        if state.phase == "gone" and time.monotonic() - self.known < self.submitted.queue.records_after_s:
            return
        if state.phase != "gone":
            self.state = state
            self.known = time.monotonic()
        else:
            self.state = msgspec.structs.replace(self.state, phase="gone", word=GONE.word, good=False, exit_status=None)
        self._tell()
        if self.state.phase == "running" or (self.state.phase in ("ended", "gone") and not self.tails):
            self._open()

    def _tell(self) -> None:
        state = self.state
        line = {
            "waiting": f"waits ({state.reason})" if state.reason else "waits",
            "running": f"runs on {state.where}" if state.where else "runs",
        }.get(state.phase, "")
        if line and line != self.shown:
            id = self.submitted.id
            if state.phase == "waiting" and self.shown.startswith("runs"):
                cancel = " ".join([*self.submitted.queue.cancelling, id])
                self.say(f"job {id} was requeued and will run again from the start (or cancel it: {cancel})")
            self.shown = line
            self.say(f"job {id} {line}")

    def _open(self) -> None:
        """Begin with the output files, whose names the batch system may tell only now."""
        if self.tails:
            return
        output, error = files_of(self.submitted, self.state)
        self.tails = [(Tail(output, StepLines()), self.out)]
        if error is not None:
            self.tails.append((Tail(error, StepLines()), _bytes_of(sys.stderr)))

    def _show_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._pour()
            time.sleep(min(LOOK_S, left))

    def _pour(self) -> bool:
        poured = [tail.copy_new(stream) for tail, stream in self.tails]
        if steps := self._steps():
            self._tell_step(steps[-1])
        return any(poured)

    def _steps(self) -> list[StepState]:
        """In the file that has them: the batch system may keep errors apart from the output."""
        found = [tail.lines.steps for tail, _ in self.tails if tail.lines is not None and tail.lines.steps]
        return found[0] if found else []

    def _tell_step(self, last: StepState) -> None:
        if last.exit_status is None and last.title != self.step:
            self.step = last.title
            self.say(f"job {self.submitted.id} runs the step {last.title}")

    def _drain(self) -> None:
        """Wait for the last of the output."""
        end = time.monotonic() + COPY_S
        quiet = time.monotonic()
        while time.monotonic() - quiet < SETTLE_S:
            missing = self.submitted.queue.output_at_end and not all(tail.path.exists() for tail, _ in self.tails)
            if self._pour() or (missing and time.monotonic() < end):
                quiet = time.monotonic()
            time.sleep(LOOK_S / 2)

    def _result(self) -> JobResult:
        state = self.state
        return JobResult(
            id=self.submitted.id,
            name=self.submitted.name,
            state=state.word,
            good=state.good,
            exit_status=state.exit_status,
            elapsed_s=state.elapsed_s,
            output=[str(tail.path) for tail, _ in self.tails if tail.path.exists()],
            script=str(self.submitted.script),
            reason=state.reason,
            signal=state.signal,
            steps=self._steps(),
        )


def ask(submitted: Submitted) -> JobState | None:
    """The job's state; ``gone`` if the system does not know it, None if it gives no answer."""
    answers = []
    for command in submitted.queue.ask(submitted.id):
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=ANSWER_S,
                check=False,
                # So that a Ctrl-C for hpcgen does not cut the answer off.
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        state = submitted.queue.read(done.returncode, done.stdout, done.stderr)
        if state is not None and state.phase != "gone":
            return state
        answers.append(state)
    return next((state for state in answers if state is not None), None)


def files_of(submitted: Submitted, state: JobState) -> tuple[Path, Path | None]:
    """Output and error file: as the batch system tells them, else as they are named by default."""
    plan = submitted.job.plan
    output, error = submitted.queue.default_files(submitted.name, submitted.id, plan.site.scheduler)
    if state.output:
        output, error = state.output, state.error
    return submitted.folder / output, submitted.folder / error if error else None


def failure(result: JobResult, queue: Scheduler) -> JobFailedError:
    """What is said of a job that did not end as it should; its output has been shown as it came."""
    if result.state == GONE.word:
        message = f"how job {result.id} ({result.name}) ended is unknown: the batch system no longer knows it"
    else:
        message = f"job {result.id} ({result.name}) ended in the state {result.state}"
        if result.signal:
            message += f", by {status_text(-result.signal)}"
        elif result.exit_status is not None:
            message += f", with {status_text(result.exit_status)}"
    if result.reason:
        message += f" ({result.reason})"
    if result.steps and result.steps[-1].exit_status != 0:
        message += f", in its step {result.steps[-1].title}"
    where = f"; the output is in {' and '.join(result.output)}" if result.output else "; it left no output"
    return JobFailedError(message, remedy=_remedy(result, queue) + where)


def _remedy(result: JobResult, queue: Scheduler) -> str:
    if result.exit_status in OWN_STATUS:
        return f"{OWN_STATUS[result.exit_status]}, if its output says so"
    return queue.endings.get(result.state, f"look at the script {result.script}")
