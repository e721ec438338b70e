"""Why a plan is as it is, as records: they become words here, on output, and nothing reads the words back."""

from collections.abc import Mapping
from typing import Literal

from hpcgen.core.model.fields import Record, Text

Rule = Literal[
    "always",
    "asked",
    "site",
    "fact",
    "vendor",
    "option",
    "newest",
    "refused",
    "not beside",
    "needs",
    "kept",
    "preferred",
    "not default",
    "rest",
    "chosen",
]

_THERE: dict[Rule, str] = {
    "always": "every image has it",
    "asked": "{who} asks for {what}",
    "newest": "newest known",
    "not beside": "{found}",
    "chosen": "{who}",
}
_BOUND: dict[Rule, str] = {
    "site": "{who}",
    "fact": "the node's {who} {found}",
    "vendor": "the node's GPU vendor {found}",
    "option": "{who}={found}",
}
_NOT_NEWER: dict[Rule, str] = {
    "fact": "it needs {what}, the node has {found}",
    "vendor": "it is for {values} GPUs, the node has {found}",
    "option": "it is available only with {who}={values}",
    "refused": "refused by {who}",
    "not beside": "{found}",
    "needs": "it needs {what}, and {found} is here",
    "kept": "the lock has this one",
    "preferred": "it is for {what}, and {found} comes first",
    "not default": "not a default ({found})",
    "rest": "it does not fit together with the rest{clash}",
}


class Reason(Record, frozen=True):
    """Why a block is in a plan, what bounds its versions, or why it is not the next newer version.

    rule: which kind of reason it is.
    by: who asks, refuses or bounds: a block, ``stack NAME``, ``--set NAME``, a fact of the node, an option; what a
        block says of the site's fact.
    by_version: the version of that block.
    of: the block or virtual that is asked for.
    requires: accepted ranges, by the name of a block or a fact; None accepts all.
    found: what is there instead: the fact's value, the option's value, a block with its version; why a release is no
        default, or does not go with another one.
    newer: the next newer version, if this is why it was not taken.
    clash: what it does not fit together with, as reasons of their own.
    place: path of the fact in the site profile, or of the block in the stack.
    """

    rule: Rule
    by: Text = ""
    by_version: Text = ""
    of: Text = ""
    requires: dict[Text, Text] | None = None
    found: Text = ""
    newer: Text = ""
    place: Text = ""
    clash: "list[Reason]" = []

    @property
    def bounds(self) -> bool:
        """Whether it rules versions of the block out."""
        if self.rule == "asked":
            return any((self.requires or {}).values())
        return not self.newer and self.rule in _BOUND

    def __str__(self) -> str:
        if self.newer:
            return f"not {self.newer}: {self.cause}"
        if self.rule not in _BOUND:
            return self._filled(_THERE)
        if self.rule == "fact" and not self.found:
            return f"because the node has no {self.by}"
        return f"because {'of ' if self.rule in ('fact', 'vendor') else ''}{self.bound}"

    @property
    def bound(self) -> str:
        """The fact or option that rules versions out, in words."""
        if self.rule == "fact" and not self.found:
            return f"no {self.by} in the node"
        return self._filled(_BOUND)

    @property
    def cause(self) -> str:
        """The reason against the newer version, in words."""
        return self._filled(_NOT_NEWER)

    def _filled(self, words: Mapping[Rule, str]) -> str:
        return words[self.rule].format(
            who=f"{self.by} {self.by_version}".strip(),
            what=requirement_text(self.of, self.requires),
            values=" or ".join((self.requires or {}).values()),
            found=self.found or "none",
            clash="".join(f"{';' if number else ':'} {each}" for number, each in enumerate(self.clash)),
        )


def requirement_text(identifier: str, allowed: Mapping[str, str] | None) -> str:
    """The requirement as text: ``any mpi``, ``cuda >=11.2,<12``, ``ucx or libfabric >=1.15``."""
    if allowed is None:
        return f"any {identifier}"
    return " or ".join(f"{name} {versions}".strip() for name, versions in allowed.items()) or f"no {identifier}"


JobField = Literal[
    "nodes", "ranks_per_node", "threads_per_rank", "walltime_s", "queue", "memory_per_rank_gb", "gpus_per_node"
]
JobRule = Literal[
    "asked",
    "layout",
    "stack",
    "no mpi",
    "no layout",
    "shared cores",
    "site default",
    "queue limit",
    "one per GPU",
    "all of a node",
    "recorded",
    "default",
    "first queue",
]

JOB_WORDS: dict[str, str] = {
    "nodes": "nodes",
    "ranks_per_node": "ranks per node",
    "threads_per_rank": "threads per rank",
    "walltime_s": "time",
    "queue": "queue",
    "memory_per_rank_gb": "memory per rank",
    "gpus_per_node": "GPUs per node",
}
"""What people call the fields of a job."""

_JOB_RULES: dict[JobRule, str] = {
    "asked": "requested",
    "layout": "layout of the site for {by}",
    "stack": "stack {by}",
    "no mpi": "stack {by} runs without MPI",
    "no layout": "no layout fits, so one",
    "shared cores": "{by} cores shared by {note}",
    "site default": "default of {by}",
    "one per GPU": "one for each GPU",
    "all of a node": "all that a node of {by} has",
    "queue limit": "the most that queue {by} takes",
    "recorded": "as the record of the image says",
    "default": "the default",
    "first queue": "the first that takes {by} ({note})",
}


class JobReason(Record, frozen=True):
    """Where a number of a job is from.

    field: which one.
    rule: what decided it.
    by: the partition of the layout, the stack, the site, the number of cores or nodes.
    note: why this of several layouts; how many ranks share the cores; which sizes the queue takes.
    measured: what the profile says of the layout's measurement.
    """

    field: JobField
    rule: JobRule
    by: Text = ""
    note: Text = ""
    measured: Text = ""

    def __str__(self) -> str:
        text = _JOB_RULES[self.rule].format(by=self.by, note=self.note)
        if self.rule == "layout" and self.note:
            text += f": {self.note}"
        return f"{text}; measured: {self.measured}" if self.measured else text
