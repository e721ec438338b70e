#!/bin/bash
@{header}
set -euo pipefail

@{arguments}
output=$(realpath -m "${output:-@{image}}")
engine=${HPCGEN_ENGINE:-@{engine}}
@{bundle}
@{certificates}
@{stack_files}
if ! command -v "$engine" > /dev/null; then
    echo "build.sh: $engine is not installed; set HPCGEN_ENGINE to apptainer or singularity" >&2
    exit 69
fi

# Written aside, so that a failed build leaves no half image under the final name.
partial=$output.partial
trap 'rm -rf "$partial"' EXIT
@{bases}
@{date}
squashing=()
if [[ $("$engine" build --help 2> /dev/null) == *@{squashing_option}* ]]; then # Apptainer 1.4 and later
    squashing=(@{squashing_option} @{squashing})
fi
# The definition file takes the kit's files from the current folder.
(cd "$kit" && "$engine" build@{fakeroot} --force "${squashing[@]}" "${options[@]}" "$partial" Singularity.def)
rm -rf "$output"
mv "$partial" "$output"
if [ -f "$output" ]; then
    sha256sum "$output"
fi
