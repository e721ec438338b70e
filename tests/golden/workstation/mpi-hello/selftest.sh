#!/bin/sh
# Self-test of mpi-hello for workstation, partition main, by hpcgen.
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

check 'gnu 13.3.0: libstdc++' libstdc++.so.6 'ldconfig -p'
check 'gnu 13.3.0: libgomp' libgomp.so.1 'ldconfig -p'
check 'libfabric 2.6.0: version' 'libfabric: 2.6.0' 'fi_info --version'
check 'libfabric 2.6.0: provider' tcp: 'fi_info -l'
check 'mpich 4.3.2: library' libmpi.so.12 'ls /opt/mpich/lib'
check 'mpich 4.3.2: launcher' 4.3.2 'mpiexec --version'
check 'mpich 4.3.2: provider' ch4:ofi mpichversion
check 'rank_test 1: libraries' '' 'test -x /opt/rank_test/bin/rank_test && ldd /opt/rank_test/bin/rank_test | grep '"'"'not found'"'"' | grep -vc '"'"'libcuda.so.1 '"'"' | grep -qx 0'
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
begin 'mpich 4.3.2: symbols'
output=$(
    # The MPI's own tools are not asked to work with another MPI.
    find /opt/libfabric /opt/mpich /opt/rank_test -path /opt/mpich -prune -o -type f \( -perm -100 -o -name '*.so*' \) -exec grep -l libmpi {} + |
        while read -r file; do
            mpi_symbols "$file"
        done
)
if [ -z "$output" ]; then
    passed=$((passed + 1))
    end ok '' ''
else
    failed=$((failed + 1))
    end FAILED "$(printf '%s\n' "$output" | head -n 1)" "$output"
fi
# At the end of a build: programs load the image's own MPI, and no second one that a package brought.
if [ "$mode" = --build ]; then
    begin 'mpich 4.3.2: one MPI'
    # Files of any other MPI. Most images have none, and then nothing else is looked at.
    find / -xdev \( -path /opt/mpich -o -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp \) \
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
        # The loader is asked about these alone, the job's own programs first, and about no more than 200.
        {
            for program in ; do
                printf '%s\n' "$program"
            done
            find /opt/libfabric /opt/mpich /opt/rank_test /usr/bin -xdev -path /opt/mpich -prune -o -type f \( -perm -100 -o -name '*.so*' \) \
                -exec grep -lFf "$scratch/names" {} +
        } | grep . > "$scratch/users"
        head -n 200 "$scratch/users" | while read -r file; do
            ldd "$file" 2> /dev/null | sed -n 's|^.*=> \(/.*/libmpi[^/]*\) (0x.*$|\1|p' | while read -r library; do
                library=$(readlink -f "$library")
                ! grep -qxF "$library" "$scratch/others" || printf '%s loads %s\n' "$file" "$library"
            done
        done > "$scratch/loads"
    fi
    # Wheels and copied programs may bring an MPI that their own files load; what the job starts must not.
    {
        grep -vE '/site-packages/.* loads .*/site-packages/' "$scratch/loads"
        for program in ; do
            grep -F "$program loads " "$scratch/loads"
        done
    } | sort -u > "$scratch/wrong"
    if [ -s "$scratch/wrong" ]; then
        failed=$((failed + 1))
        end FAILED "$(head -n 1 "$scratch/wrong"), a second MPI" "$(cat "$scratch/wrong")"
    else
        passed=$((passed + 1))
        reason=$(sed 's|$| is in the image too, for files that came with it alone|; q' "$scratch/others")
        if [ -s "$scratch/others" ] && [ "$(wc -l < "$scratch/users")" -gt 200 ]; then
            reason="$reason; of $(wc -l < "$scratch/users") files 200 were looked at"
        fi
        end ok "$reason" ''
    fi
fi

if [ "$mode" = --lines ]; then
    echo 'hpcgen-test: done'
else
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
fi
[ "$failed" -eq 0 ]
