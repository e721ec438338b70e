#!/bin/bash
# build script of mpi-hello for supermuc, partition thin: rank_test 1, intel_mpi 2019.6.166 on ubuntu 24.04
# made by hpcgen 0.2.0: hpcgen render --site supermuc --stack mpi-hello
# why these versions: plan.json next to this file, or the same command with plan in place of render
set -euo pipefail

usage() {
    cat << 'END'
usage: build.sh [--accept-licence NAME] [--notest] [OUTPUT]

Builds with ch-image on a machine that has a network, and converts with ch-convert.
OUTPUT may end in .sqfs (squashfs) or .tar.gz, or be a folder; copy it to the system afterwards.
HPCGEN_BUILD_OPTIONS are further words for ch-image build.
The Dockerfile in this script is in the dialect that ch-image 0.31 and later read.
At its end the image's self-test runs, without which there is no image; --notest leaves it out: for another CPU than
this machine's, for example. Test it then where it is to work: hpcgen test IMAGE.
The build installs software under these licences.
The user accepts them: by --accept-licence NAME (all for every one), by HPCGEN_ACCEPT_LICENCES=NAME,NAME, or when asked:
  intel-eula: Intel End User License Agreement, https://www.intel.com/content/www/us/en/developer/articles/license/end-user-license-agreement.html
END
}

accepted=${HPCGEN_ACCEPT_LICENCES:-}
notest=${HPCGEN_NOTEST:-0}
output=
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        --notest) notest=1 ;;
        --accept-licence)
            accepted=$accepted,${2:-}
            shift $(($# < 2 ? 0 : 1))
            ;;
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
refused=0
accept_licence() { # name, title, address: accepted by a word, or by the user on a terminal
    local answer=
    case ,${accepted//[[:space:]]/}, in
        *",$1,"* | *,all,*)
            echo "build.sh: this build accepts the $2 ($1), $3" >&2
            return
            ;;
    esac
    if [ -t 0 ] && [ -t 2 ]; then
        echo "build.sh: $2 ($1): $3" >&2
        read -r -p 'Do you accept it? [y/N]: ' answer || true
    fi
    case $answer in
        [yY] | [yY][eE][sS]) return ;;
    esac
    echo "build.sh: $2 must be accepted by the user: $3" >&2
    echo "  remedy: read it, then add --accept-licence $1, or set HPCGEN_ACCEPT_LICENCES=$1" >&2
    refused=77
}
accept_licence intel-eula 'Intel End User License Agreement' https://www.intel.com/content/www/us/en/developer/articles/license/end-user-license-agreement.html
[ "$refused" = 0 ] || exit "$refused"
output=${output:-mpi-hello.sqfs}
name=mpi-hello-supermuc
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
    build.sh files/settings/intel_mpi.cfg files/tests/rank_test.c hpcgen.lock job.slurm plan.json preflight.sh
    recipe.json selftest.sh
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

ENV CC=/usr/bin/gcc-13 \
    CXX=/usr/bin/g++-13 \
    FI_PROVIDER_PATH=/opt/intel_mpi/intel64/libfabric/lib/prov \
    I_MPI_ROOT=/opt/intel_mpi \
    LD_LIBRARY_PATH=/opt/intel_mpi/intel64/lib:/opt/intel_mpi/intel64/lib/release:/opt/intel_mpi/intel64/libfabric/lib:/opt/psm2/lib \
    PATH=/opt/rank_test/bin:/opt/intel_mpi/intel64/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# hpcgen: check the base image; distribution: packages
RUN found=$(ID="" VERSION_ID=""; eval "$(grep -E '^(ID|VERSION_ID)=' /etc/os-release)"; echo \
        "$(/usr/bin/dpkg --print-architecture 2> /dev/null || uname -m) $ID $VERSION_ID") && \
    case "$found." in 'amd64 ubuntu 24.04.'*) ;; *) echo \
        'hpcgen: wrong base image: ubuntu:noble-20260911 should be amd64 ubuntu 24.04 and is '"$found"'; correct network.mirrors.images of the profile, or import the right image under its name' \
        >&2; exit 65 ;; esac && \
    apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends bzip2 ca-certificates cpio \
        curl g++-13 gcc-13 libc6-dev libgomp1 libnuma-dev libnuma1 libstdc++6 make patch xz-utils && \
    apt-get clean && \
    rm -rf /var/lib/apt/lists/*

# gnu 13.3.0: choose the compiler; psm2 12.0.1: fetch
RUN ln -sf /usr/bin/gcc-13 /usr/local/bin/gcc && \
    ln -sf /usr/bin/g++-13 /usr/local/bin/g++ && \
    ln -sf gcc /usr/local/bin/cc && \
    ln -sf g++ /usr/local/bin/c++ && \
    mkdir -p /opt/hpcgen/build && \
    curl -fsSL --proto =https --retry 3 -o /opt/hpcgen/build/PSM2_12.0.1.tar.gz \
        https://github.com/cornelisnetworks/opa-psm2/archive/PSM2_12.0.1.tar.gz && \
    printf '%s  %s\n' e41af2d7d36a6ab67639ecbd5c1012aa20b2b464bf5cfbdac60e7eb37bfe58de \
        /opt/hpcgen/build/PSM2_12.0.1.tar.gz > /opt/hpcgen/build/PSM2_12.0.1.tar.gz.sha256 && \
    sha256sum -c --quiet /opt/hpcgen/build/PSM2_12.0.1.tar.gz.sha256 && \
    mkdir -p /opt/hpcgen/build/psm2 && \
    tar -xf /opt/hpcgen/build/PSM2_12.0.1.tar.gz -C /opt/hpcgen/build/psm2 --strip-components=1 --no-same-owner

# psm2 12.0.1: compile, install
RUN cd /opt/hpcgen/build/psm2 && \
    make install LIBDIR=/lib DESTDIR=/opt/hpcgen/build/psm2-installed WERROR= && \
    mkdir -p /opt/psm2/lib && \
    cp -a /opt/hpcgen/build/psm2-installed/lib/libpsm2.so* /opt/psm2/lib/ && \
    cp -a /opt/hpcgen/build/psm2-installed/usr/include /opt/psm2/include && \
    rm -rf /opt/hpcgen/build/psm2 /opt/hpcgen/build/psm2-installed

# intel_mpi 2019.6.166: fetch, install, move
RUN mkdir -p /opt/hpcgen/build && \
    curl -fsSL --proto =https --retry 3 -o /opt/hpcgen/build/l_mpi_2019.6.166.tgz \
        https://registrationcenter-download.intel.com/akdlm/irc_nas/tec/16120/l_mpi_2019.6.166.tgz && \
    printf '%s  %s\n' 119be69f1117c93a9e5e9b8b4643918e55d2a55a78ad9567f77d16cdaf18cd6e \
        /opt/hpcgen/build/l_mpi_2019.6.166.tgz > /opt/hpcgen/build/l_mpi_2019.6.166.tgz.sha256 && \
    sha256sum -c --quiet /opt/hpcgen/build/l_mpi_2019.6.166.tgz.sha256 && \
    mkdir -p /opt/hpcgen/build/intel-mpi && \
    tar -xf /opt/hpcgen/build/l_mpi_2019.6.166.tgz -C /opt/hpcgen/build/intel-mpi --strip-components=1 \
        --no-same-owner
COPY files/settings/intel_mpi.cfg /opt/hpcgen/build/
RUN cd /opt/hpcgen/build/intel-mpi && \
    ./install.sh -s /opt/hpcgen/build/intel_mpi.cfg && \
    mkdir -p /opt/intel_mpi && \
    cp -a /opt/hpcgen/build/intel-mpi-installed/impi/2019.6.166/. /opt/intel_mpi && \
    sed -i 's|^prefix=.*|prefix=/opt/intel_mpi|' /opt/intel_mpi/intel64/bin/mpif77 \
        /opt/intel_mpi/intel64/bin/mpif90 /opt/intel_mpi/intel64/bin/mpigcc /opt/intel_mpi/intel64/bin/mpigxx && \
    rm -rf /opt/hpcgen/build/intel-mpi /opt/hpcgen/build/intel-mpi-installed

# rank_test 1: compile; hpcgen: remove downloads
COPY files/tests/rank_test.c /opt/hpcgen/build/
RUN mkdir -p /opt/rank_test/bin && \
    mpicc -O2 -rdynamic -o /opt/rank_test/bin/rank_test /opt/hpcgen/build/rank_test.c && \
    rm -rf /opt/hpcgen/build

FROM docker.io/library/ubuntu:noble-20260911

ENV FI_PROVIDER_PATH=/opt/intel_mpi/intel64/libfabric/lib/prov \
    I_MPI_ROOT=/opt/intel_mpi \
    LD_LIBRARY_PATH=/opt/intel_mpi/intel64/lib:/opt/intel_mpi/intel64/lib/release:/opt/intel_mpi/intel64/libfabric/lib:/opt/psm2/lib \
    PATH=/opt/rank_test/bin:/opt/intel_mpi/intel64/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# hpcgen: check the base image; distribution: packages; site: mount points for the host's files
RUN found=$(ID="" VERSION_ID=""; eval "$(grep -E '^(ID|VERSION_ID)=' /etc/os-release)"; echo \
        "$(/usr/bin/dpkg --print-architecture 2> /dev/null || uname -m) $ID $VERSION_ID") && \
    case "$found." in 'amd64 ubuntu 24.04.'*) ;; *) echo \
        'hpcgen: wrong base image: ubuntu:noble-20260911 should be amd64 ubuntu 24.04 and is '"$found"'; correct network.mirrors.images of the profile, or import the right image under its name' \
        >&2; exit 65 ;; esac && \
    apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libnuma1 && \
    apt-get clean && \
    rm -rf /var/lib/apt/lists/* && \
    mkdir -p /dss/dsshome1/lrz/sys /hppfs/scratch /hppfs/work /lrz/sys /mnt/0

COPY --from=builder /opt/intel_mpi /opt/intel_mpi
COPY --from=builder /opt/psm2 /opt/psm2
COPY --from=builder /opt/rank_test /opt/rank_test

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

LABEL org.opencontainers.image.title="mpi-hello for supermuc" \
      org.opencontainers.image.description="The smallest MPI job, to see that ranks find each other and which libraries they use" \
      org.opencontainers.image.base.name="docker.io/library/ubuntu:noble-20260911" \
      org.opencontainers.image.base.digest="sha256:496754492fb28b4d3049432f2ca787449331e23fb14f0dd3fffea86bf5a93eb4" \
      io.hpcgen.version="0.2.0" \
      io.hpcgen.site="supermuc" \
      io.hpcgen.partition="thin" \
      io.hpcgen.stack="mpi-hello" \
      io.hpcgen.blocks="ubuntu@24.04 site_trust@1 gnu@13.3.0 psm2@12.0.1 intel_mpi@2019.6.166 rank_test@1" \
      io.hpcgen.content="68d52987b263d47ee0e32057e6858cde19c8e2a175496ea5835413bb81c0be29" \
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
