#!/bin/bash
# build script of onnxruntime for supermuc, partition thin: onnxruntime 1.32.0 on ubuntu 24.04
# made by hpcgen 0.2.0: hpcgen render --site supermuc --stack onnxruntime
# why these versions: plan.json next to this file, or the same command with plan in place of render
set -euo pipefail

usage() {
    cat << 'END'
usage: build.sh [--notest] [OUTPUT]

Builds with ch-image on a machine that has a network, and converts with ch-convert.
OUTPUT may end in .sqfs (squashfs) or .tar.gz, or be a folder; copy it to the system afterwards.
HPCGEN_BUILD_OPTIONS are further words for ch-image build.
The Dockerfile in this script is in the dialect that ch-image 0.31 and later read.
At its end the image's self-test runs, without which there is no image; --notest leaves it out: for another CPU than
this machine's, for example. Test it then where it is to work: hpcgen test IMAGE.
END
}

notest=${HPCGEN_NOTEST:-0}
output=
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        --notest) notest=1 ;;
        -*)
            echo "build.sh: unknown option $1; build.sh --help shows the usage" >&2
            exit 64
            ;;
        *)
            if [ -n "$output" ]; then
                echo "build.sh: $1 is one word too many; build.sh --help shows the usage" >&2
                exit 64
            fi
            output=$1
            ;;
    esac
    shift
done
kit=$(cd "$(dirname "$0")" && pwd)
read -r -a options <<< "${HPCGEN_BUILD_OPTIONS:-}"
[ "$notest" = 0 ] || options+=(--build-arg HPCGEN_NOTEST=1)
case $(uname -m) in
    x86_64) ;;
    *)
        if [ "${HPCGEN_EMULATE:-0}" = 0 ]; then
            echo "build.sh: the image is for x86_64, and this machine is $(uname -m)" >&2
            echo "  remedy: build it on such a machine, or set HPCGEN_EMULATE=1 where an emulator is registered (qemu)" >&2
            exit 69
        fi
        options+=(--arch=amd64)
        ;;
esac
output=${output:-onnxruntime.sqfs}
name=onnxruntime-supermuc
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
kit_files=(
    build.sh files/requirements/onnxruntime-1.32.0.txt files/requirements/pip-26.3.txt files/tests/onnx_model.py
    files/tests/onnx_provider files/tests/onnx_step.py hpcgen.lock job.slurm plan.json preflight.sh recipe.json
    selftest.sh
)
for file in "${kit_files[@]}"; do
    if [ ! -r "$kit/$file" ]; then
        echo "build.sh: the kit's $file is not beside this script; render the kit again with -o" >&2
        exit 66
    fi
    case $file in
        *.sh | job.*) mode=755 ;;
        *) mode=644 ;;
    esac
    install -D -m "$mode" "$kit/$file" "$context/$file"
done
# ch-image's cache knows a file by its name, size and time: so its time is made from its content, a folder's is fixed.
find "$context" -type f -exec sha256sum {} + | while read -r sum file; do
    touch -d "@$((946684800 + 0x${sum:0:7}))" "$file"
done
find "$context" -type d -exec touch -d @946684800 {} +

cat > "$context/Dockerfile" << 'HPCGEN_DOCKERFILE'
FROM docker.io/library/ubuntu:noble-20260911 AS builder

ENV GLIBC_TUNABLES="glibc.malloc.hugetlb=1" \
    MALLOC_MMAP_THRESHOLD_=1073741824 \
    MALLOC_TRIM_THRESHOLD_=4294967296 \
    PATH=/opt/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONNOUSERSITE=1 \
    THP_MEM_ALLOC_ENABLE=1

# hpcgen: check the base image; distribution: packages
RUN found=$(ID="" VERSION_ID=""; eval "$(grep -E '^(ID|VERSION_ID)=' /etc/os-release)"; echo \
        "$(/usr/bin/dpkg --print-architecture 2> /dev/null || uname -m) $ID $VERSION_ID") && \
    case "$found." in 'amd64 ubuntu 24.04.'*) ;; *) echo \
        'hpcgen: wrong base image: ubuntu:noble-20260911 should be amd64 ubuntu 24.04 and is '"$found"'; correct network.mirrors.images of the profile, or import the right image under its name' \
        >&2; exit 65 ;; esac && \
    apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends bzip2 ca-certificates curl \
        libstdc++6 patch python3 python3-dev python3-venv xz-utils && \
    apt-get clean && \
    rm -rf /var/lib/apt/lists/*

# python 3.12.3: environment and pip; onnxruntime 1.32.0: install; hpcgen: remove downloads
COPY files/requirements/pip-26.3.txt files/requirements/onnxruntime-1.32.0.txt /opt/hpcgen/build/
RUN /usr/bin/python3 -m venv /opt/python && \
    /opt/python/bin/python -m pip install --no-deps --require-hashes -r /opt/hpcgen/build/pip-26.3.txt && \
    /opt/python/bin/python -m pip install --no-deps --require-hashes -r /opt/hpcgen/build/onnxruntime-1.32.0.txt && \
    rm -rf /opt/hpcgen/build

# onnxruntime 1.32.0: inference step
COPY files/tests/onnx_model.py files/tests/onnx_step.py /opt/onnxruntime/share/
COPY files/tests/onnx_provider /opt/onnxruntime/share/provider

FROM docker.io/library/ubuntu:noble-20260911

ENV GLIBC_TUNABLES="glibc.malloc.hugetlb=1" \
    MALLOC_MMAP_THRESHOLD_=1073741824 \
    MALLOC_TRIM_THRESHOLD_=4294967296 \
    PATH=/opt/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONNOUSERSITE=1 \
    THP_MEM_ALLOC_ENABLE=1

# hpcgen: check the base image; distribution: packages; site: mount points for the host's files
RUN found=$(ID="" VERSION_ID=""; eval "$(grep -E '^(ID|VERSION_ID)=' /etc/os-release)"; echo \
        "$(/usr/bin/dpkg --print-architecture 2> /dev/null || uname -m) $ID $VERSION_ID") && \
    case "$found." in 'amd64 ubuntu 24.04.'*) ;; *) echo \
        'hpcgen: wrong base image: ubuntu:noble-20260911 should be amd64 ubuntu 24.04 and is '"$found"'; correct network.mirrors.images of the profile, or import the right image under its name' \
        >&2; exit 65 ;; esac && \
    apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libstdc++6 python3 && \
    apt-get clean && \
    rm -rf /var/lib/apt/lists/* && \
    mkdir -p /dss/dsshome1/lrz/sys /hppfs/scratch /hppfs/work /lrz/sys /mnt/0

COPY --from=builder /opt/onnxruntime /opt/onnxruntime
COPY --from=builder /opt/python /opt/python

# hpcgen: self-test
COPY selftest.sh /opt/hpcgen/

# hpcgen: the kit's files of the steps above
COPY files/ /opt/hpcgen/kit/files/

# hpcgen: --build-arg HPCGEN_NOTEST=1 leaves the self-test out
ARG HPCGEN_NOTEST=0

# hpcgen: run the self-test
RUN /bin/sh /opt/hpcgen/selftest.sh --build

# hpcgen: the kit, which describes the image
COPY build.sh hpcgen.lock job.slurm plan.json preflight.sh recipe.json selftest.sh /opt/hpcgen/kit/

LABEL org.opencontainers.image.title="onnxruntime for supermuc" \
      org.opencontainers.image.description="Inference with ONNX Runtime on one node" \
      org.opencontainers.image.base.name="docker.io/library/ubuntu:noble-20260911" \
      org.opencontainers.image.base.digest="sha256:496754492fb28b4d3049432f2ca787449331e23fb14f0dd3fffea86bf5a93eb4" \
      io.hpcgen.version="0.2.0" \
      io.hpcgen.site="supermuc" \
      io.hpcgen.partition="thin" \
      io.hpcgen.stack="onnxruntime" \
      io.hpcgen.blocks="ubuntu@24.04 site_trust@1 python@3.12.3 onnxruntime@1.32.0 kept_memory@1 huge_pages@1" \
      io.hpcgen.content="6997341a4a9a3b11f5ed220803a4eebc1bd62e41b8fb9b7e5038568df624d123" \
      io.hpcgen.kit="/opt/hpcgen/kit"
HPCGEN_DOCKERFILE

# ch-image refers to the user by name, which batch and cron environments leave out.
export USER=${USER:-$(id -un)}

# ch-image's cache knows what was imported at most by its name (lib/build_cache.py, adopt; 0.31 not even by that), so it
# would take the steps of another image of the name for those of this one. It is told which one it is by an argument:
# names, sizes and times of its files, as a hash. What was pulled it knows.
base_words() { # NAME ARGUMENT of each image: words for ch-image build; an image with a digest has no ARGUMENT
    local storage held found words=()
    storage=$(ch-image gestalt storage-path | tail -n 1) || storage=
    while [ $# -gt 1 ]; do
        held=${1//\//%}
        held=${held//:/+}
        case $(git -C "$storage/bucache" log -n 1 --format=%s "refs/heads/$held" 2> /dev/null) in
            PULL*) found= ;;
            *) found=$(listing "$storage/img/$held") ;;
        esac
        if [ -n "$found" ] && [ -n "$2" ]; then
            words+=(--build-arg "$2=$found")
        elif [ -n "$found" ]; then
            echo "note: $1 was imported, not pulled: no step of it comes from the cache" >&2
            words+=(--rebuild)
        fi
        shift 2
    done
    echo "${words[*]}"
}
listing() { # FOLDER of an image, without what ch-image puts there; nothing if there is none
    [ ! -d "$1" ] || find "$1" -path "$1/ch" -prune -o -type f ! -name '.git*' -printf '%P %s %T@\n' |
        LC_ALL=C sort | sha256sum | cut -c -64
}
read -r -a told <<< "$(base_words docker.io/library/ubuntu:noble-20260911 '')"
options+=("${told[@]}")
# --force lets package managers run without privilege. A relative path is the same in every build.
(cd "$context" && ch-image build --force "${options[@]}" -t "$name" -f Dockerfile .)

# ch-image takes no digest and checks none: what it keeps of what it pulled is compared with the digests of the recipe.
# The configuration beside a pulled image says which of the manifests in its download cache are that image's; a manifest
# names the layers, which lie there too. Source: lib/pull.py, filesystem.py and image.py of Charliecloud 0.31 and 0.38.
check_bases() { # NAME DIGEST of each image
    local storage found
    storage=$(ch-image gestalt storage-path | tail -n 1) || storage=
    while [ $# -gt 1 ]; do
        found=$(pulled "$storage" "$1" "$2")
        case $found in
            "$2") ;;
            "") echo "note: whether $1 is $2 is not known: ch-image keeps no record of pulling it" >&2 ;;
            *)
                echo "error: ch-image pulled another $1 than the recipe names: it has $found, not $2" >&2
                return 65
                ;;
        esac
        shift 2
    done
}
pulled() { # STORAGE NAME DIGEST: the digest, or another one that fits the image no less; nothing if there is no record
    local held=${2//\//%} cache=$1/dlcache config manifest digest blob other=
    held=${held//:/+}
    config=$(sha256sum 2> /dev/null < "$1/img/$held/ch/config.pulled.json") || return 0
    for manifest in "$cache/$held%"*.manifest.json; do
        grep -qsF "\"sha256:${config%% *}\"" "$manifest" || continue
        digest=$(sha256sum < "$manifest")
        digest=sha256:${digest%% *}
        while read -r blob; do
            [ ! -e "$cache/$blob.tar.gz" ] || [ "$(sha256sum < "$cache/$blob.tar.gz")" = "$blob  -" ] ||
                digest="a layer that is not sha256:$blob"
        done < <(grep -oE 'sha256:[0-9a-f]{64}' "$manifest" | cut -d : -f 2)
        other=$digest
        [ "$digest" != "$3" ] || break
    done
    echo "$other"
}
check_bases docker.io/library/ubuntu:noble-20260911 sha256:496754492fb28b4d3049432f2ca787449331e23fb14f0dd3fffea86bf5a93eb4

case $output in
    *.sqfs) format=squash ;;
    *.tar.gz) format=tar ;;
    *) format=dir ;;
esac
rm -rf "$partial"
if [ "$format" = squash ] && mksquashfs=$(command -v mksquashfs); then
    # ch-convert has no option for the compressor, but looks for mksquashfs in its own folder first.
    mkdir "$tools/bin" "$tools/empty"
    cat > "$tools/bin/mksquashfs" << END
#!/bin/sh
source=\$1 target=\$2
shift 2
exec $(printf %q "$mksquashfs") "\$source" "\$target" -comp gzip -Xcompression-level 6 "\$@"
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
