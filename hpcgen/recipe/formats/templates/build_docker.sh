#!/bin/bash
@{header}
set -euo pipefail

@{arguments}
tag=${tag:-@{image}}
engine=${HPCGEN_ENGINE:-@{engine}}
@{bundle}
if ! command -v "$engine" > /dev/null; then
    echo "build.sh: $engine is not installed; set HPCGEN_ENGINE to docker, podman or buildah" >&2
    exit 69
fi

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
@{context}

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
