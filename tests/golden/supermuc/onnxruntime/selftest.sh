#!/bin/sh
# Self-test of onnxruntime for supermuc, partition thin, by hpcgen.
# Run it inside the container: /opt/hpcgen/selftest.sh
# Prints one line per test; exits 1 if any failed. A test that needs a device is skipped where there is none.
# With --build, at the end of a build: those are skipped, and nothing is left in the image. HPCGEN_NOTEST=1 skips all.
# With --lines, for `hpcgen test`: each test as `hpcgen-test: begin NAME`, its output, `hpcgen-test: end RESULT`;
# `hpcgen-test: done` when all have run.
set -u
passed=0
failed=0
skipped=0
mode=${1:-}
if [ "$mode" = --build ]; then
    if [ "${HPCGEN_NOTEST:-0}" != 0 ]; then
        echo 'self-test left out: HPCGEN_NOTEST'
        exit 0
    fi
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    export HOME="$scratch" TMPDIR="$scratch" PYTHONDONTWRITEBYTECODE=1
elif [ -z "${XDG_CACHE_HOME:-}" ] && [ ! -w "${HOME:-/}" ] && scratch=$(mktemp -d); then
    # A read-only image without the home directory: a job has its caches elsewhere, too.
    trap 'rm -rf "$scratch"' EXIT
    export XDG_CACHE_HOME="$scratch"
fi

begin() { # name
    name=$1
    [ "$mode" != --lines ] || printf 'hpcgen-test: begin %s\n' "$name"
}

end() { # result, reason, output
    if [ "$mode" = --lines ]; then
        [ -z "$3" ] || printf '%s\n' "$3"
        printf 'hpcgen-test: end %s%s\n' "$1" "${2:+: $2}"
    else
        printf '%-8s %s%s\n' "$1" "$name" "${2:+: $2}"
        [ "$1" != FAILED ] || printf '%s\n' "$3" | tail -n 20 | sed 's/^/         | /'
    fi
}

check() { # name, text that the output must contain, command
    begin "$1"
    if output=$(sh -c "$3" 2>&1); then
        case $output in
            *"$2"*) passed=$((passed + 1)); end ok '' "$output"; return ;;
        esac
        reason="no \"$2\" in the output"
    else
        reason="status $?"
    fi
    failed=$((failed + 1))
    end FAILED "$reason" "$output"
}

check_with() { # device, then as check
    device=$1
    shift
    reason="no $device"
    if [ "$mode" = --build ]; then
        reason="not while building"
    elif [ -e "$device" ]; then
        check "$@"
        return
    fi
    skipped=$((skipped + 1))
    begin "$1"
    end skipped "$reason" ''
}

check 'python 3.12.3: version' 'Python 3.12.' '/opt/python/bin/python --version'
check 'python 3.12.3: standard library' '' '/opt/python/bin/python -c '"'"'import bz2, ctypes, hashlib, lzma, sqlite3, ssl, zlib'"'"''
check 'python 3.12.3: packages' '' '/opt/python/bin/python -m pip check'
check 'onnxruntime 1.32.0: version' 1.32.0 '/opt/python/bin/python -c '"'"'import onnxruntime as o; print(o.__version__)'"'"''
check 'onnxruntime 1.32.0: provider' CPUExecutionProvider '/opt/python/bin/python -c '"'"'import onnxruntime as o; print(*o.get_available_providers())'"'"''
check 'onnxruntime 1.32.0: model' 'inferences per second' '/opt/python/bin/python /opt/onnxruntime/share/onnx_step.py CPUExecutionProvider'
check 'kept_memory 1: threshold' 1073741824 'printenv MALLOC_MMAP_THRESHOLD_'
# shellcheck disable=SC2016 # the shell that runs the test expands it
check 'huge_pages 1: malloc.hugetlb' 'hugetlb: 0x1' '$(ls /lib*/ld-linux-*.so.* | head -n 1) --list-tunables | grep malloc.hugetlb'

if [ "$mode" = --lines ]; then
    echo 'hpcgen-test: done'
else
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
fi
[ "$failed" -eq 0 ]
