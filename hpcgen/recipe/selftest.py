"""The self-test: a POSIX shell script inside the image that proves each block works."""

from __future__ import annotations

from hpcgen.blocks.steps import Test
from hpcgen.model.image_paths import SELFTEST
from hpcgen.model.plan import Plan
from hpcgen.support.quoting import sh

_HEAD = """\
#!/bin/sh
# Self-test of {title}, by hpcgen.
# Run it inside the container: {path}
# Prints one line per test; exits 1 if any failed. A test that needs a device is left out where there is none.
# With --lines: for `hpcgen test`, each test as `{mark} begin NAME`, its output, `{mark} end RESULT`.
set -u
passed=0
failed=0
left_out=0
mode=${1:-}

begin() { # name
    name=$1
    [ "$mode" != --lines ] || printf '{mark} begin %s\\n' "$name"
}

end() { # result, reason, output
    if [ "$mode" = --lines ]; then
        [ -z "$3" ] || printf '%s\\n' "$3"
        printf '{mark} end %s%s\\n' "$1" "${2:+: $2}"
    else
        printf '%-8s %s%s\\n' "$1" "$name" "${2:+: $2}"
        [ "$1" != FAILED ] || printf '%s\\n' "$3" | tail -n 20 | sed 's/^/         | /'
    fi
}

check() { # name, text that the output must contain, command
    begin "$1"
    if output=$(sh -c "$3" 2>&1); then
        case $output in
            *"$2"*) passed=$((passed + 1)); end ok '' "$output"; return ;;
        esac
        reason="no \\"$2\\" in the output"
    else
        reason="status $?"
    fi
    failed=$((failed + 1))
    end FAILED "$reason" "$output"
}

check_with() { # device, then as check
    device=$1
    shift
    if [ -e "$device" ]; then
        check "$@"
    else
        left_out=$((left_out + 1))
        begin "$1"
        end 'left out' "no $device" ''
    fi
}

"""

_TAIL = """
printf '%s passed, %s failed, %s left out\\n' "$passed" "$failed" "$left_out"
[ "$failed" -eq 0 ]
"""

MARK = "hpcgen-test:"
"""What the lines about a test begin with."""

GPU_DEVICES = {"nvidia": "/dev/nvidiactl", "amd": "/dev/kfd", "intel": "/dev/dri"}

DRIVER_FILE = "/proc/driver/nvidia/version"
"""Where NVIDIA's driver tells its version."""


def selftest_script(plan: Plan, tests: list[tuple[str, list[Test]]]) -> str:
    """The script for a plan.

    Parameters
    ----------
    tests: pairs of a block's label and its tests.
    """
    head = _HEAD.replace("{title}", f"{plan.stack.name} for {plan.site.name}, partition {plan.partition}")
    lines = [head.replace("{path}", SELFTEST).replace("{mark}", MARK)]
    for label, block_tests in tests:
        for test in block_tests:
            words = f"{sh(f'{label}: {test.name}')} {sh(test.expect)} {sh(test.command)}\n"
            device = _device(plan, test.device)
            lines.append(f"check_with {sh(device)} {words}" if device else f"check {words}")
    return "".join(lines) + _TAIL


def _device(plan: Plan, wanted: str) -> str:
    """The device file that stands for ``gpu`` or ``fabric`` at the site; a path stands for itself."""
    if wanted == "gpu":
        gpu = plan.site.partitions[plan.partition].gpu
        return GPU_DEVICES[gpu.vendor] if gpu is not None else "/dev/nvidiactl"
    if wanted == "fabric":
        return plan.site.fabric.devices[0] if plan.site.fabric.devices else "/dev/no-fabric"
    return wanted
