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
tools=$(mktemp -d)
partial=$output.partial
trap 'rm -rf "$context" "$tools" "$partial"' EXIT
@{files}
# ch-image's cache knows a file by its name, size and time: so its time is made from its content, a folder's is fixed.
find "$context" -type f -exec sha256sum {} + | while read -r sum file; do
    touch -d "@$((@{dawn} + 0x${sum:0:7}))" "$file"
done
find "$context" -type d -exec touch -d @@{dawn} {} +

cat > "$context/Dockerfile" << '@{delimiter}'
@{dockerfile}
@{delimiter}

# ch-image refers to the user by name, which batch and cron environments leave out.
export USER=${USER:-$(id -un)}
@{bases}
@{told}
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
if [ "$format" = squash ] && mksquashfs=$(command -v mksquashfs); then
    # ch-convert has no option for the compressor, but looks for mksquashfs in its own folder first.
    mkdir "$tools/bin" "$tools/empty"
    cat > "$tools/bin/mksquashfs" << END
#!/bin/sh
source=\$1 target=\$2
shift 2
exec $(printf %q "$mksquashfs") "\$source" "\$target" @{squashing} "\$@"
END
    chmod 755 "$tools/bin/mksquashfs"
    converter=$(command -v ch-convert)
    ln -s "$converter" "$tools/bin/ch-convert"
    ln -s "$(dirname "$(readlink -f "$converter")")/../lib" "$tools/lib"
    if "$tools/bin/mksquashfs" "$tools/empty" "$tools/trial" > /dev/null 2>&1; then
        PATH=$tools/bin:$PATH
    fi
fi
ch-convert -i ch-image -o "$format" "$name" "$partial"
rm -rf "$output"
mv "$partial" "$output"
if [ -f "$output" ]; then
    sha256sum "$output"
fi
