#!/bin/sh
# Self-test of example-app for example-cluster, partition thin, by hpcgen.
# Run it inside the container: /opt/hpcgen/selftest.sh
# Prints one line per test; exits 1 if any failed. A test that needs a device is left out where there is none.
# With --lines: for `hpcgen test`, each test as `hpcgen-test: begin NAME`, its output, `hpcgen-test: end RESULT`.
set -u
passed=0
failed=0
left_out=0
mode=${1:-}

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
    if [ -e "$device" ]; then
        check "$@"
    else
        left_out=$((left_out + 1))
        begin "$1"
        end 'left out' "no $device" ''
    fi
}

check 'gnu 12.2.0: libstdc++' libstdc++.so.6 'ldconfig -p'
check 'gnu 12.2.0: libgomp' libgomp.so.1 'ldconfig -p'
check 'psm2 12.0.1: library' 'libnuma.so.1 => /' 'ldd /opt/psm2/lib/libpsm2.so.2'
check_with /dev/hfi1_0 'psm2 12.0.1: device' '' 'test -r /dev/hfi1_0'
check 'libfabric 1.22.0: version' 'libfabric: 1.22.0' 'fi_info --version'
check 'libfabric 1.22.0: provider' psm2: 'fi_info -l'
check_with /dev/no-fabric 'libfabric 1.22.0: psm2 on the device' 'provider: psm2' 'fi_info -p psm2'
check 'mpich 3.4.3: library' libmpi.so.12 'ls /opt/mpich/lib'
check 'mpich 3.4.3: launcher' 3.4.3 'mpiexec --version'
check 'mpich 3.4.3: provider' ch4:ofi mpichversion
check 'rank_test 1: libraries' '' 'test -x /opt/rank_test/bin/rank_test && ldd /opt/rank_test/bin/rank_test | grep -c '"'"'not found'"'"' | grep -qx 0'
check 'python 3.11.2: version' 'Python 3.11.' '/opt/python/bin/python --version'
check 'python 3.11.2: standard library' '' '/opt/python/bin/python -c '"'"'import bz2, ctypes, hashlib, lzma, sqlite3, ssl, zlib'"'"''
check 'python_packages 1: h5py' 'Version: 3.11.0' '/opt/python/bin/python -m pip show h5py'

printf '%s passed, %s failed, %s left out\n' "$passed" "$failed" "$left_out"
[ "$failed" -eq 0 ]
