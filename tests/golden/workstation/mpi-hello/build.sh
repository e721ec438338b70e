#!/bin/bash
# Build script of mpi-hello for workstation, partition main
# by hpcgen 0.1.0; made again by:
#   hpcgen render --site workstation --stack mpi-hello
#
# usage: build.sh [TAG]
# Builds the Dockerfile beside this script with docker (BuildKit), podman or buildah.
# HPCGEN_ENGINE chooses the engine; HPCGEN_BUILD_OPTIONS are further words for its build command.
set -euo pipefail
kit=$(cd "$(dirname "$0")" && pwd)

tag=${1:-mpi-hello:workstation}
engine=${HPCGEN_ENGINE:-docker}
certificates=()
certificate_names=()
read -r -a options <<< "${HPCGEN_BUILD_OPTIONS:-}"

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir "$context/certificates"
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
case $(basename "$engine") in
    docker) export DOCKER_BUILDKIT=1 ;;
    *) options+=(--format docker) ;;
esac
"$engine" build "${options[@]}" -f "$kit/Dockerfile" -t "$tag" "$context"
echo "built $tag" >&2
