#!/bin/bash
# build script of tf-horovod for workstation, partition main: tensorflow 2.15.1, horovod 0.28.1, mpich 4.3.2 on ubuntu 22.04
# made by hpcgen 0.2.0: hpcgen render --site workstation --stack tf-horovod
# why these versions: plan.json next to this file, or the same command with plan in place of render
set -euo pipefail

usage() {
    cat << 'END'
usage: build.sh [--notest] [TAG]

Builds the Dockerfile next to this script with docker (BuildKit), podman or buildah.
HPCGEN_ENGINE chooses the engine, HPCGEN_BUILD_OPTIONS are further words for its build command.
At its end the image's self-test runs, without which there is no image; --notest leaves it out: for another CPU than
this machine's, for example. Test it then where it is to work: hpcgen test IMAGE.
END
}

notest=${HPCGEN_NOTEST:-0}
tag=
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
            if [ -n "$tag" ]; then
                echo "build.sh: $1 is one word too many; build.sh --help shows the usage" >&2
                exit 64
            fi
            tag=$1
            ;;
    esac
    shift
done
kit=$(cd "$(dirname "$0")" && pwd)
read -r -a options <<< "${HPCGEN_BUILD_OPTIONS:-}"
[ "$notest" = 0 ] || options+=(--build-arg HPCGEN_NOTEST=1)
case $(uname -m) in
    x86_64) ;;
    *)
        if [ "${HPCGEN_EMULATE:-0}" = 0 ]; then
            echo "build.sh: the image is for x86_64, and this machine is $(uname -m)" >&2
            echo "  remedy: build it on such a machine, or set HPCGEN_EMULATE=1 where an emulator is registered (qemu)" >&2
            exit 69
        fi
        options+=(--platform linux/amd64)
        ;;
esac
tag=${tag:-tf-horovod:workstation}
engine=${HPCGEN_ENGINE:-docker}
if ! command -v "$engine" > /dev/null; then
    echo "build.sh: $engine is not installed; set HPCGEN_ENGINE to docker, podman or buildah" >&2
    exit 69
fi

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
kit_files=(
    Dockerfile build.sh files/requirements/cmake-3.31.10.txt files/requirements/horovod-0.28.1-source.txt
    files/requirements/horovod-0.28.1.txt files/requirements/pip-26.3.txt
    files/requirements/tensorflow-cpu-2.15.1.txt files/tests/rank_test.c files/tests/step.py hpcgen.lock plan.json
    preflight.sh recipe.json run.sh selftest.sh
)
for file in "${kit_files[@]}"; do
    if [ ! -r "$kit/$file" ]; then
        echo "build.sh: the kit's $file is not beside this script; render the kit again with -o" >&2
        exit 66
    fi
    case $file in
        *.sh | job.*) mode=755 ;;
        *) mode=644 ;;
    esac
    install -D -m "$mode" "$kit/$file" "$context/$file"
done

# What the image was made from can then be read without starting it, also in a registry.
for name in plan.json hpcgen.lock Dockerfile; do
    # Linux takes no longer word than 128 KiB.
    if [ "$(wc -c < "$kit/$name")" -lt 100000 ]; then
        options+=(--label "io.hpcgen.kit.$name=$(cat "$kit/$name")")
    fi
done
case $(basename "$engine") in
    docker) export DOCKER_BUILDKIT=1 ;;
    *) options+=(--format docker) ;;
esac
"$engine" build "${options[@]}" -f "$kit/Dockerfile" -t "$tag" "$context"
echo "built $tag" >&2
