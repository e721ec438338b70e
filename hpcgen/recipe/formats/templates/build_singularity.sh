#!/bin/bash
@{header}
#
# usage: @{usage}
# Builds Singularity.def beside this script. HPCGEN_ENGINE chooses the command (apptainer or singularity),
# HPCGEN_BUILD_OPTIONS are further words for its build command, --sandbox for example.
set -euo pipefail
kit=$(cd "$(dirname "$0")" && pwd)
@{start}

output=$(realpath -m "${1:-@{output}}")
engine=${HPCGEN_ENGINE:-@{engine}}
certificates=(@{certificates})
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
@{bases}
# The definition file takes the kit's files from the current folder.
(cd "$kit" && "$engine" build@{fakeroot} --force "${options[@]}" "$partial" Singularity.def)
rm -rf "$output"
mv "$partial" "$output"
if [ -f "$output" ]; then
    sha256sum "$output"
fi
