#!/bin/sh
# Self-test of @{title}, by hpcgen.
# Run it inside the container: @{path}
# Prints one line per test; exits 1 if any failed. A test that needs a device is skipped where there is none.
# With --build, at the end of a build: those are skipped, and nothing is left in the image. @{notest}=1 skips all.
# With --lines, for `hpcgen test`: each test as `@{mark} begin NAME`, its output, `@{mark} end RESULT`;
# `@{mark} done` when all have run.
set -u
passed=0
failed=0
skipped=0
mode=${1:-}
if [ "$mode" = --build ]; then
    if [ "${@{notest}:-0}" != 0 ]; then
        echo 'self-test left out: @{notest}'
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
    [ "$mode" != --lines ] || printf '@{mark} begin %s\n' "$name"
}

end() { # result, reason, output
    if [ "$mode" = --lines ]; then
        [ -z "$3" ] || printf '%s\n' "$3"
        printf '@{mark} end %s%s\n' "$1" "${2:+: $2}"
    else
        printf '%-8s %s%s\n' "$1" "$name" "${2:+: $2}"
        [ "$1" != @{failed} ] || printf '%s\n' "$3" | tail -n 20 | sed 's/^/         | /'
    fi
}

check() { # name, text that the output must contain, command
    begin "$1"
    if output=$(sh -c "$3" 2>&1); then
        case $output in
            *"$2"*) passed=$((passed + 1)); end @{passed} '' "$output"; return ;;
        esac
        reason="no \"$2\" in the output"
    else
        reason="status $?"
    fi
    failed=$((failed + 1))
    end @{failed} "$reason" "$output"
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
    end @{skipped} "$reason" ''
}

@{tests}

if [ "$mode" = --lines ]; then
    echo '@{mark} done'
else
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
fi
[ "$failed" -eq 0 ]
#: symbols
# What calls MPI: the library that the loader finds now, the host's for one, has all that it calls.
mpi_symbols() { # file
    found=$(ldd -r "$1" 2> /dev/null)
    library=$(printf '%s\n' "$found" | sed -n 's/^.*=> \(.*\/libmpi\(ch\|_[a-z]*\)*\.so[^ ]*\) .*$/\1/p' | head -n 1)
    [ -n "$library" ] || return 0
    printf '%s\n' "$found" | grep -F "($1)" |
        sed -n 's/^undefined symbol: \([Pp]*\(MPI\|mpi\)_[A-Za-z0-9_]*\).*$/\1/p' |
        while read -r symbol; do
            printf '%s needs %s, which %s does not have\n' "$1" "$symbol" "$library"
        done
}
begin @{name}
output=$(
    # The MPI's own tools are not asked to work with another MPI.
    find @{folders} -path @{own} -prune -o -type f \( -perm -100 -o -name '*.so*' \) -exec grep -l libmpi {} + |
        while read -r file; do
            mpi_symbols "$file"
        done
)
if [ -z "$output" ]; then
    passed=$((passed + 1))
    end @{passed} '' ''
else
    failed=$((failed + 1))
    end @{failed} "$(printf '%s\n' "$output" | head -n 1)" "$output"
fi
#: linked
# The user's programs that a launcher starts as ranks: without MPI each rank would be a job of its own.
without_mpi() { # file
    if [ ! -e "$1" ]; then
        printf '%s is not in the image: see what the build makes, and `run` in the stack\n' "$1"
    elif [ "$(head -c 4 "$1" | tail -c 3)" = ELF ] && ! ldd "$1" 2> /dev/null | grep -q libmpi &&
        ! grep -q 'MPI_Init' "$1"; then
        printf '%s is linked with no MPI: turn it on in `build`, or set `run.mpi: false` in the stack\n' "$1"
    fi
}
begin @{name}
output=$(
    for file in @{programs}; do
        without_mpi "$file"
    done
)
if [ -z "$output" ]; then
    passed=$((passed + 1))
    end @{passed} '' ''
else
    failed=$((failed + 1))
    end @{failed} "$(printf '%s\n' "$output" | head -n 1)" "$output"
fi
