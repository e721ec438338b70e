"""An allocator before all programs of an image goes with every block."""

from __future__ import annotations

from hpcgen.planning.contract.case import Check, ContractCase, holds, skipped

NAME = "malloc"


def served(case: ContractCase) -> Check:
    """No block is there that crashes with the allocator that another puts before every program."""
    before = {name: has.malloc for name, has in case.capabilities.items() if has.malloc}
    for name, malloc in before.items():
        for other, has in case.capabilities.items():
            if said := has.not_with_malloc.get(malloc):
                reason = f"{other} crashes with {malloc} before its programs ({said})"
                remedy = f"--set {name}.preload=false: then `env LD_PRELOAD=…` starts those programs that gain by it"
                return Check(NAME, "broken", reason, remedy, f"{name}.preload=false, or another allocator")
    if not before:
        return skipped(NAME, "the C library's own serves all programs")
    return holds(NAME, f"nothing in the image is known to crash with {' and '.join(before.values())}")
