#!/bin/bash
# build script of mpi-hello for hlrs-testbed, partition gpu: rank_test 1, mpich 4.3.2 on ubuntu 24.04
# made by hpcgen 0.2.0: hpcgen render --site hlrs-testbed --stack mpi-hello
# why these versions: plan.json next to this file, or the same command with plan in place of render
set -euo pipefail

usage() {
    cat << 'END'
usage: build.sh [--notest] [OUTPUT]

Builds Singularity.def next to this script.
HPCGEN_ENGINE chooses the command (apptainer or singularity), HPCGEN_BUILD_OPTIONS are further words for its
build command, --sandbox for example.
At its end the image's self-test runs, without which there is no image; --notest leaves it out: for another CPU than
this machine's, for example. Test it then where it is to work: hpcgen test IMAGE.
END
}

notest=${HPCGEN_NOTEST:-0}
output=
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        --notest) notest=1 ;;
        -*)
            echo "build.sh: unknown option $1; build.sh --help shows the usage" >&2
            exit 64
            ;;
        *)
            if [ -n "$output" ]; then
                echo "build.sh: $1 is one word too many; build.sh --help shows the usage" >&2
                exit 64
            fi
            output=$1
            ;;
    esac
    shift
done
kit=$(cd "$(dirname "$0")" && pwd)
read -r -a options <<< "${HPCGEN_BUILD_OPTIONS:-}"
[ "$notest" = 0 ] || options+=(--notest)
case $(uname -m) in
    x86_64) ;;
    *)
        if [ "${HPCGEN_EMULATE:-0}" = 0 ]; then
            echo "build.sh: the image is for x86_64, and this machine is $(uname -m)" >&2
            echo "  remedy: build it on such a machine, or set HPCGEN_EMULATE=1 where an emulator is registered (qemu)" >&2
            exit 69
        fi
        options+=(--arch amd64)
        ;;
esac
output=$(realpath -m "${output:-mpi-hello.sif}")
engine=${HPCGEN_ENGINE:-singularity}
if ! command -v "$engine" > /dev/null; then
    echo "build.sh: $engine is not installed; set HPCGEN_ENGINE to apptainer or singularity" >&2
    exit 69
fi

# Written aside, so that a failed build leaves no half image under the final name.
partial=$output.partial
trap 'rm -rf "$partial"' EXIT
squashing=()
if [[ $("$engine" build --help 2> /dev/null) == *--mksquashfs-args* ]]; then # Apptainer 1.4 and later
    squashing=(--mksquashfs-args '-comp gzip -Xcompression-level 6')
fi
# The definition file takes the kit's files from the current folder.
(cd "$kit" && "$engine" build --fakeroot --force "${squashing[@]}" "${options[@]}" "$partial" Singularity.def)
rm -rf "$output"
mv "$partial" "$output"
if [ -f "$output" ]; then
    sha256sum "$output"
fi
