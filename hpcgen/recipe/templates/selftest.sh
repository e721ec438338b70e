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
#: one_mpi
# At the end of a build: programs load the image's own MPI, and no second one that a package brought.
if [ "$mode" = --build ]; then
    begin @{name}
    # Files of any other MPI. Most images have none, and then nothing else is looked at.
    find / -xdev \( -path @{own} -o -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp \) \
        -prune -o -type f -name 'libmpi*.so*' -print |
        grep -E '/libmpi(ch|_abi|_cray|_mt)?(-[0-9a-f]+)?\.so[.0-9]*$' | sort > "$scratch/others"
    : > "$scratch/loads"
    if [ -s "$scratch/others" ]; then
        # What names them, what names that, and so on: a program may need an MPI through another library alone.
        sed 's|.*/||; s|\(\.so\.[0-9]*\).*|\1|' "$scratch/others" | sort -u > "$scratch/names"
        for _ in 1 2 3 4 5 6; do
            find /usr /lib /opt -xdev -type f -name '*.so*' -exec grep -lFf "$scratch/names" {} + |
                sed 's|.*/||; s|\.so.*|.so|' | grep -vxE 'libmpi(ch)?\.so' | sort -u - "$scratch/names" > "$scratch/more"
            ! cmp -s "$scratch/names" "$scratch/more" || break
            mv "$scratch/more" "$scratch/names"
        done
        # The loader is asked about these alone, the job's own programs first, and about no more than @{most}.
        {
            for program in @{programs}; do
                printf '%s\n' "$program"
            done
            find @{folders} -xdev -path @{own} -prune -o -type f \( -perm -100 -o -name '*.so*' \) \
                -exec grep -lFf "$scratch/names" {} +
        } | grep . > "$scratch/users"
        head -n @{most} "$scratch/users" | while read -r file; do
            ldd "$file" 2> /dev/null | sed -n 's|^.*=> \(/.*/libmpi[^/]*\) (0x.*$|\1|p' | while read -r library; do
                library=$(readlink -f "$library")
                ! grep -qxF "$library" "$scratch/others" || printf '%s loads %s\n' "$file" "$library"
            done
        done > "$scratch/loads"
    fi
    # Wheels and copied programs may bring an MPI that their own files load; what the job starts must not.
    {
        grep -vE @{bundles} "$scratch/loads"
        for program in @{programs}; do
            grep -F "$program loads " "$scratch/loads"
        done
    } | sort -u > "$scratch/wrong"
    if [ -s "$scratch/wrong" ]; then
        failed=$((failed + 1))
        end @{failed} "$(head -n 1 "$scratch/wrong"), a second MPI" "$(cat "$scratch/wrong")"
    else
        passed=$((passed + 1))
        reason=$(sed 's|$| is in the image too, for files that came with it alone|; q' "$scratch/others")
        if [ -s "$scratch/others" ] && [ "$(wc -l < "$scratch/users")" -gt @{most} ]; then
            reason="$reason; of $(wc -l < "$scratch/users") files @{most} were looked at"
        fi
        end @{passed} "$reason" ''
    fi
fi
