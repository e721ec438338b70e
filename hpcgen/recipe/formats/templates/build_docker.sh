#!/bin/bash
@{header}
#
# usage: @{usage}
# Builds the Dockerfile beside this script with docker (BuildKit), podman or buildah.
# HPCGEN_ENGINE chooses the engine; HPCGEN_BUILD_OPTIONS are further words for its build command.
set -euo pipefail
kit=$(cd "$(dirname "$0")" && pwd)
@{start}

tag=${1:-@{image}}
engine=${HPCGEN_ENGINE:-@{engine}}
certificates=(@{certificates})
certificate_names=(@{certificate_names})
kit_files=(@{kit_files})
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
@{bases}
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
@{date}
"$engine" build "${options[@]}" -f "$kit/Dockerfile" -t "$tag" "$context"
@{after}
echo "built $tag" >&2
