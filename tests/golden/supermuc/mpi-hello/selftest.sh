#!/bin/sh
# Self-test of mpi-hello for supermuc, partition thin, by hpcgen.
# Run it inside the container: /opt/hpcgen/selftest.sh
# Prints one line per test; exits 1 if any failed. A test that needs a device is left out where there is none.
set -u
passed=0
failed=0
left_out=0

check() { # name, text that the output must contain, command
    if output=$(sh -c "$3" 2>&1); then
        case $output in
            *"$2"*) passed=$((passed + 1)); printf 'ok       %s\n' "$1"; return ;;
        esac
        printf 'FAILED   %s: no "%s" in the output\n' "$1" "$2"
    else
        printf 'FAILED   %s\n' "$1"
    fi
    failed=$((failed + 1))
    printf '%s\n' "$output" | tail -n 20 | sed 's/^/         | /'
}

check_with() { # device, then as check
    device=$1
    shift
    if [ -e "$device" ]; then
        check "$@"
    else
        left_out=$((left_out + 1))
        printf 'left out %s: no %s\n' "$1" "$device"
    fi
}

check 'psm2 12.0.1: library' 'libnuma.so.1 => /' 'ldd /opt/psm2/lib/libpsm2.so.2'
check_with /dev/hfi1_0 'psm2 12.0.1: device' '' 'test -r /dev/hfi1_0'
check 'intel_mpi 2019.6.166: library' 'libc.so.6 => /' 'ldd /opt/intel_mpi/intel64/lib/release/libmpi.so.12'
check 'intel_mpi 2019.6.166: launcher' 'Intel(R) MPI Library' 'mpiexec.hydra --version'
check 'rank_test 1: libraries' '' 'ldd /opt/rank_test/bin/rank_test | grep -c '"'"'not found'"'"' | grep -qx 0'

printf '%s passed, %s failed, %s left out\n' "$passed" "$failed" "$left_out"
[ "$failed" -eq 0 ]
