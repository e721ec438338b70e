#!/bin/bash
# build script of tf-horovod for hlrs-testbed, partition gpu: tensorflow 2.3.4, horovod 0.28.1, mpich 4.3.2 on ubuntu 20.04
# made by hpcgen 0.2.0: hpcgen render --site hlrs-testbed --stack tf-horovod
# why these versions: plan.json next to this file, or the same command with plan in place of render
set -euo pipefail

usage() {
    cat << 'END'
usage: build.sh [--accept-licence NAME] [--notest] [OUTPUT]

Builds Singularity.def next to this script.
HPCGEN_ENGINE chooses the command (apptainer or singularity), HPCGEN_BUILD_OPTIONS are further words for its
build command, --sandbox for example.
At its end the image's self-test runs, without which there is no image; --notest leaves it out: for another CPU than
this machine's, for example. Test it then where it is to work: hpcgen test IMAGE.
The build installs software under these licences.
The user accepts them: by --accept-licence NAME (all for every one), by HPCGEN_ACCEPT_LICENCES=NAME,NAME, or when asked:
  nvidia-cuda-eula: End User License Agreement of NVIDIA's CUDA Toolkit, https://docs.nvidia.com/cuda/eula/index.html
  nvidia-cudnn: NVIDIA's Software License Agreement for cuDNN, https://docs.nvidia.com/deeplearning/cudnn/latest/reference/eula.html
END
}

accepted=${HPCGEN_ACCEPT_LICENCES:-}
notest=${HPCGEN_NOTEST:-0}
output=
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        --notest) notest=1 ;;
        --accept-licence)
            accepted=$accepted,${2:-}
            shift $(($# < 2 ? 0 : 1))
            ;;
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
refused=0
accept_licence() { # name, title, address: accepted by a word, or by the user on a terminal
    local answer=
    case ,${accepted//[[:space:]]/}, in
        *",$1,"* | *,all,*)
            echo "build.sh: this build accepts the $2 ($1), $3" >&2
            return
            ;;
    esac
    if [ -t 0 ] && [ -t 2 ]; then
        echo "build.sh: $2 ($1): $3" >&2
        read -r -p 'Do you accept it? [y/N]: ' answer || true
    fi
    case $answer in
        [yY] | [yY][eE][sS]) return ;;
    esac
    echo "build.sh: $2 must be accepted by the user: $3" >&2
    echo "  remedy: read it, then add --accept-licence $1, or set HPCGEN_ACCEPT_LICENCES=$1" >&2
    refused=77
}
accept_licence nvidia-cuda-eula 'End User License Agreement of NVIDIA'"'"'s CUDA Toolkit' https://docs.nvidia.com/cuda/eula/index.html
accept_licence nvidia-cudnn 'NVIDIA'"'"'s Software License Agreement for cuDNN' https://docs.nvidia.com/deeplearning/cudnn/latest/reference/eula.html
[ "$refused" = 0 ] || exit "$refused"
output=$(realpath -m "${output:-tf-horovod.sif}")
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
