#!/bin/bash
# Build script of example-app for example-cluster, partition thin
# by hpcgen 0.1.0; made again by:
#   hpcgen --collection collection render --locked hpcgen.lock
#
# usage: build.sh [TAG]
# Builds the Dockerfile beside this script with docker (BuildKit), podman or buildah.
# HPCGEN_ENGINE chooses the engine; HPCGEN_BUILD_OPTIONS are further words for its build command.
set -euo pipefail
kit=$(cd "$(dirname "$0")" && pwd)

tag=${1:-example-app:example-cluster}
engine=${HPCGEN_ENGINE:-docker}
certificates=()
certificate_names=()
kit_files=(Dockerfile build.sh hpcgen.lock job.slurm plan.json preflight.sh selftest.sh)
read -r -a options <<< "${HPCGEN_BUILD_OPTIONS:-}"

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir "$context/certificates" "$context/kit"
for name in "${kit_files[@]}"; do
    if [ ! -r "$kit/$name" ]; then
        echo "build.sh: the kit's $name is not beside this script; render the kit again with -o" >&2
        exit 66
    fi
    cp "$kit/$name" "$context/kit/"
done
for number in "${!certificates[@]}"; do
    file=${certificates[number]}
    if [ ! -r "$file" ]; then
        echo "build.sh: the site's certificate $file is not on this machine; copy it here or correct the profile" >&2
        exit 66
    fi
    cp "$file" "$context/certificates/${certificate_names[number]}"
done

if ! command -v "$engine" > /dev/null; then
    echo "build.sh: $engine is not installed; set HPCGEN_ENGINE to docker, podman or buildah" >&2
    exit 69
fi
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
# The same image again has the same dates: those of the lock.
case $(basename "$engine") in
    docker) options+=(--build-arg SOURCE_DATE_EPOCH=1763000000) ;;
    *) options+=(--timestamp 1763000000) ;;
esac
"$engine" build "${options[@]}" -f "$kit/Dockerfile" -t "$tag" "$context"
echo "built $tag" >&2
