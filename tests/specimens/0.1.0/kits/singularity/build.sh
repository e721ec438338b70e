#!/bin/bash
# Build script of mpi-hello for example-cluster, partition thin
# by hpcgen 0.1.0; made again by:
#   hpcgen --collection collection render --site example-cluster --stack mpi-hello --format singularity
#
# usage: build.sh [OUTPUT.sif]
# Builds Singularity.def beside this script. HPCGEN_ENGINE chooses the command (apptainer or singularity),
# HPCGEN_BUILD_OPTIONS are further words for its build command, --sandbox for example.
set -euo pipefail
kit=$(cd "$(dirname "$0")" && pwd)

output=$(realpath -m "${1:-mpi-hello.sif}")
engine=${HPCGEN_ENGINE:-apptainer}
certificates=()
read -r -a options <<< "${HPCGEN_BUILD_OPTIONS:-}"

for file in "${certificates[@]}"; do
    if [ ! -r "$file" ]; then
        echo "build.sh: the site's certificate $file is not on this machine; copy it here or correct the profile" >&2
        exit 66
    fi
done
if ! command -v "$engine" > /dev/null; then
    echo "build.sh: $engine is not installed; set HPCGEN_ENGINE to apptainer or singularity" >&2
    exit 69
fi

# Written aside, so that a failed build leaves no half image under the final name.
partial=$output.partial
trap 'rm -rf "$partial"' EXIT
# The definition file takes the kit's files from the current folder.
(cd "$kit" && "$engine" build --force "${options[@]}" "$partial" Singularity.def)
rm -rf "$output"
mv "$partial" "$output"
if [ -f "$output" ]; then
    sha256sum "$output"
fi
