#!/bin/bash
@{header}
#
# usage: @{usage}
# Builds with ch-image @{where}, and converts with ch-convert. OUTPUT may end in .sqfs
# (squashfs), .tar.gz, or be a folder; copy it to the system afterwards. The Dockerfile below is in
# the dialect that ch-image 0.31 and later read. HPCGEN_BUILD_OPTIONS are further words for ch-image build.
set -euo pipefail

kit=$(cd "$(dirname "$0")" && pwd)
@{start}
output=${1:-@{output}}
name=@{image}
certificates=(@{certificates})
certificate_names=(@{certificate_names})
kit_files=(@{kit_files})
read -r -a options <<< "${HPCGEN_BUILD_OPTIONS:-}"

for tool in ch-image ch-convert; do
    if ! command -v "$tool" > /dev/null; then
        echo "build.sh: $tool is not installed; it comes with Charliecloud 0.31 or later" >&2
        exit 69
    fi
done

work=$(mktemp -d)
partial=$output.partial
trap 'rm -rf "$work" "$partial"' EXIT
mkdir "$work/certificates" "$work/kit"
for file in "${kit_files[@]}"; do
    if [ ! -r "$kit/$file" ]; then
        echo "build.sh: the kit's $file is not beside this script; render the kit again with -o" >&2
        exit 66
    fi
    cp -p "$kit/$file" "$work/kit/"
done
for number in "${!certificates[@]}"; do
    file=${certificates[number]}
    if [ ! -r "$file" ]; then
        echo "build.sh: the site's certificate $file is not on this machine; copy it here or correct the profile" >&2
        exit 66
    fi
    cp -p "$file" "$work/certificates/${certificate_names[number]}"
done

cat > "$work/Dockerfile" << '@{delimiter}'
@{dockerfile}
@{delimiter}

# ch-image refers to the user by name, which batch and cron environments leave out.
export USER=${USER:-$(id -un)}
@{bases}
# --force lets package managers run without privilege. ch-image's cache knows what is copied by its path, size and
# time: a relative path is the same in every build.
(cd "$work" && ch-image build --force "${options[@]}" -t "$name" -f Dockerfile .)

case $output in
    *.sqfs) format=squash ;;
    *.tar.gz) format=tar ;;
    *) format=dir ;;
esac
rm -rf "$partial"
ch-convert -i ch-image -o "$format" "$name" "$partial"
rm -rf "$output"
mv "$partial" "$output"
if [ -f "$output" ]; then
    sha256sum "$output"
fi
