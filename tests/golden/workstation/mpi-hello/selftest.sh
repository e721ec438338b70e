#!/bin/sh
# Self-test of mpi-hello for workstation, partition main, by hpcgen.
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

check 'gnu 13.3.0: libstdc++' libstdc++.so.6 'ldconfig -p'
check 'gnu 13.3.0: libgomp' libgomp.so.1 'ldconfig -p'
check 'libfabric 2.3.1: version' 'libfabric: 2.3.1' 'fi_info --version'
check 'libfabric 2.3.1: provider' tcp: 'fi_info -l'
check 'mpich 4.3.2: library' libmpi.so.12 'ls /opt/mpich/lib'
check 'mpich 4.3.2: launcher' 4.3.2 'mpiexec --version'
check 'mpich 4.3.2: provider' ch4:ofi mpichversion
check 'rank_test 1: libraries' '' 'ldd /opt/rank_test/bin/rank_test | grep -c '"'"'not found'"'"' | grep -qx 0'

printf '%s passed, %s failed, %s left out\n' "$passed" "$failed" "$left_out"
[ "$failed" -eq 0 ]
