#!/bin/bash
@{header}
set -euo pipefail

@{arguments}
output=${output:-@{output}}
name=@{image}
@{bundle}
for tool in ch-image ch-convert; do
    if ! command -v "$tool" > /dev/null; then
        echo "build.sh: $tool is not installed; it comes with Charliecloud 0.31 or later" >&2
        exit 69
    fi
done

context=$(mktemp -d)
partial=$output.partial
trap 'rm -rf "$context" "$partial"' EXIT
@{files}
# ch-image's cache knows a file by its name, size and time: so its time is made from its content.
find "$context" -type f -exec sha256sum {} + | while read -r sum file; do
    touch -d "@$((@{dawn} + 0x${sum:0:7}))" "$file"
done

cat > "$context/Dockerfile" << '@{delimiter}'
@{dockerfile}
@{delimiter}

# ch-image refers to the user by name, which batch and cron environments leave out.
export USER=${USER:-$(id -un)}
@{bases}
# --force lets package managers run without privilege. A relative path is the same in every build.
(cd "$context" && ch-image build --force "${options[@]}" -t "$name" -f Dockerfile .)
@{check}

case $output in
    *.sqfs) format=squash ;;
    *.tar.gz) format=tar ;;
    *) format=dir ;;
esac
rm -rf "$partial"
@{date}
ch-convert -i ch-image -o "$format" "$name" "$partial"
rm -rf "$output"
mv "$partial" "$output"
if [ -f "$output" ]; then
    sha256sum "$output"
fi
