#!/bin/bash
# Build script of mpi-hello for example-cluster, partition thin
# by hpcgen 0.1.0; made again by:
#   hpcgen --collection collection render --site example-cluster --stack mpi-hello --format charliecloud
#
# usage: build.sh [OUTPUT]
# Builds with ch-image on a machine that has a network, and converts with ch-convert. OUTPUT may end in .sqfs
# (squashfs), .tar.gz, or be a folder; copy it to the system afterwards. The Dockerfile below is in
# the dialect that ch-image 0.31 and later read. HPCGEN_BUILD_OPTIONS are further words for ch-image build.
set -euo pipefail

kit=$(cd "$(dirname "$0")" && pwd)
output=${1:-mpi-hello.sqfs}
name=mpi-hello-example-cluster
certificates=()
certificate_names=()
kit_files=(build.sh hpcgen.lock job.slurm plan.json preflight.sh selftest.sh)
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

cat > "$work/Dockerfile" << 'HPCGEN_DOCKERFILE'
FROM registry.example.org/proxy/library/ubuntu:24.04 AS builder

ENV CC="/usr/bin/gcc-13"
ENV CXX="/usr/bin/g++-13"
ENV LD_LIBRARY_PATH="/opt/mpich/lib:/opt/libfabric/lib:/opt/psm2/lib"
ENV MPI_HOME="/opt/mpich"
ENV PATH="/opt/rank_test/bin:/opt/mpich/bin:/opt/libfabric/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# distribution: packages
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends bzip2 ca-certificates curl g++-13 gcc-13 libc6-dev libgomp1 libnuma-dev libnuma1 libstdc++6 make patch xz-utils && \
    apt-get clean && \
    rm -rf /var/lib/apt/lists/*

# gnu 13.3.0: choose the compiler
RUN ln -sf /usr/bin/gcc-13 /usr/local/bin/gcc && \
    ln -sf /usr/bin/g++-13 /usr/local/bin/g++ && \
    ln -sf gcc /usr/local/bin/cc && \
    ln -sf g++ /usr/local/bin/c++

# psm2 12.0.1: fetch psm2
RUN mkdir -p /opt/hpcgen/build && \
    curl -fsSL --proto =https --retry 3 -o /opt/hpcgen/build/PSM2_12.0.1.tar.gz https://github.com/cornelisnetworks/opa-psm2/archive/PSM2_12.0.1.tar.gz && \
    printf '%s  %s\n' e41af2d7d36a6ab67639ecbd5c1012aa20b2b464bf5cfbdac60e7eb37bfe58de /opt/hpcgen/build/PSM2_12.0.1.tar.gz > /opt/hpcgen/build/PSM2_12.0.1.tar.gz.sha256 && \
    sha256sum -c --quiet /opt/hpcgen/build/PSM2_12.0.1.tar.gz.sha256 && \
    mkdir -p /opt/hpcgen/build/psm2 && \
    tar -xf /opt/hpcgen/build/PSM2_12.0.1.tar.gz -C /opt/hpcgen/build/psm2 --strip-components=1 --no-same-owner

# psm2 12.0.1: compile psm2
RUN cd /opt/hpcgen/build/psm2 && \
    make install LIBDIR=/lib DESTDIR=/opt/hpcgen/build/psm2-installed WERROR=

# psm2 12.0.1: install psm2
RUN mkdir -p /opt/psm2/lib && \
    cp -a /opt/hpcgen/build/psm2-installed/lib/libpsm2.so* /opt/psm2/lib/ && \
    cp -a /opt/hpcgen/build/psm2-installed/usr/include /opt/psm2/include && \
    rm -rf /opt/hpcgen/build/psm2 /opt/hpcgen/build/psm2-installed

# libfabric 1.22.0: fetch libfabric
RUN mkdir -p /opt/hpcgen/build && \
    curl -fsSL --proto =https --retry 3 -o /opt/hpcgen/build/libfabric-1.22.0.tar.bz2 https://github.com/ofiwg/libfabric/releases/download/v1.22.0/libfabric-1.22.0.tar.bz2 && \
    printf '%s  %s\n' 485e6cafa66c9e4f6aa688d2c9526e274c47fda3a783cf1dd8f7c69a07e2d5fe /opt/hpcgen/build/libfabric-1.22.0.tar.bz2 > /opt/hpcgen/build/libfabric-1.22.0.tar.bz2.sha256 && \
    sha256sum -c --quiet /opt/hpcgen/build/libfabric-1.22.0.tar.bz2.sha256 && \
    mkdir -p /opt/hpcgen/build/libfabric && \
    tar -xf /opt/hpcgen/build/libfabric-1.22.0.tar.bz2 -C /opt/hpcgen/build/libfabric --strip-components=1 --no-same-owner

# libfabric 1.22.0: configure libfabric
RUN cd /opt/hpcgen/build/libfabric && \
    ./configure --prefix=/opt/libfabric --disable-static --enable-only --enable-rxm=yes --enable-shm=yes --enable-sockets=yes --enable-tcp=yes --enable-udp=yes --enable-psm2=/opt/psm2

# libfabric 1.22.0: compile libfabric
RUN make -C /opt/hpcgen/build/libfabric -j "$(nproc)"

# libfabric 1.22.0: install libfabric
RUN make -C /opt/hpcgen/build/libfabric install && \
    rm -rf /opt/hpcgen/build/libfabric

# mpich 3.4.3: fetch mpich
RUN mkdir -p /opt/hpcgen/build && \
    curl -fsSL --proto =https --retry 3 -o /opt/hpcgen/build/mpich-3.4.3.tar.gz https://www.mpich.org/static/downloads/3.4.3/mpich-3.4.3.tar.gz && \
    printf '%s  %s\n' 8154d89f3051903181018166678018155f4c2b6f04a9bb6fe9515656452c4fd7 /opt/hpcgen/build/mpich-3.4.3.tar.gz > /opt/hpcgen/build/mpich-3.4.3.tar.gz.sha256 && \
    sha256sum -c --quiet /opt/hpcgen/build/mpich-3.4.3.tar.gz.sha256 && \
    mkdir -p /opt/hpcgen/build/mpich && \
    tar -xf /opt/hpcgen/build/mpich-3.4.3.tar.gz -C /opt/hpcgen/build/mpich --strip-components=1 --no-same-owner

# mpich 3.4.3: configure mpich
RUN cd /opt/hpcgen/build/mpich && \
    ./configure --prefix=/opt/mpich --with-device=ch4:ofi --with-libfabric=/opt/libfabric --with-pm=hydra --disable-fortran --with-hwloc-prefix=embedded --disable-static --disable-dependency-tracking

# mpich 3.4.3: compile mpich
RUN make -C /opt/hpcgen/build/mpich -j "$(nproc)"

# mpich 3.4.3: install mpich
RUN make -C /opt/hpcgen/build/mpich install && \
    rm -rf /opt/hpcgen/build/mpich

# rank_test 1: write rank_test
RUN mkdir -p /opt/hpcgen/build && \
    printf '%s\n' '/* rank_test: is this one MPI job, and which libraries does it really use?' > /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '   Prints "rank R of N on HOST" and the MPI and fabric libraries mapped in each rank, which need not be those' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '   that were linked. Status 2: the ranks do not reach each other. Status 3: HPCGEN_RANKS is set to another' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '   number; with a wrong PMI some launchers start N jobs of one rank each, and every one of them succeeds. */' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '#include <mpi.h>' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '#include <stdio.h>' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '#include <stdlib.h>' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '#include <string.h>' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' 'static const char *const wanted[] = {' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    "/libmpi.so", "/libmpi_", "/libmpich.", "/libfabric.", "-fi.so", "/libpsm2.", "/libucp.", NULL};' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' 'static int is_wanted(const char *path)' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '{' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    int i;' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    for (i = 0; wanted[i] != NULL; i++)' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '        if (strstr(path, wanted[i]) != NULL)' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '            return 1;' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    return 0;' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '}' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '/* The mappings of one file are neighbours, so only the last path printed is remembered. */' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' 'static void print_libraries(int rank)' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '{' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    char line[4400], last[4400] = "", *path;' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    FILE *maps = fopen("/proc/self/maps", "r");' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    if (maps == NULL)' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '        return;' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    while (fgets(line, sizeof line, maps) != NULL) {' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '        line[strcspn(line, "\n")] = 0;' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '        path = strstr(line, " /");' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '        if (path != NULL && is_wanted(path) && strcmp(path, last) != 0) {' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '            printf("rank %d maps%s\n", rank, path);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '            strcpy(last, path);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '        }' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    }' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    fclose(maps);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '}' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' 'int main(int argc, char **argv)' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '{' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    int rank, size, length, status = 0;' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    long mine, sum = -1;' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    char host[MPI_MAX_PROCESSOR_NAME], version[MPI_MAX_LIBRARY_VERSION_STRING];' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    const char *ranks = getenv("HPCGEN_RANKS");' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    MPI_Init(&argc, &argv);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    MPI_Comm_rank(MPI_COMM_WORLD, &rank);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    MPI_Comm_size(MPI_COMM_WORLD, &size);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    MPI_Get_processor_name(host, &length);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    mine = rank;' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    printf("rank %d of %d on %s\n", rank, size, host);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    print_libraries(rank);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    if (rank == 0) {' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '        MPI_Get_library_version(version, &length);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '        version[strcspn(version, "\n")] = 0;' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '        printf("library %s\n", version);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    }' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    if (sum != (long)size * (size - 1) / 2) {' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '        fprintf(stderr, "rank %d: the sum of the ranks is %ld\n", rank, sum);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '        status = 2;' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    }' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    if (ranks != NULL && *ranks != 0 && strtol(ranks, NULL, 10) != size) {' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '        fprintf(stderr, "rank %d: %s ranks were wanted, this job has %d\n", rank, ranks, size);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '        status = 3;' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    }' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    fflush(stdout);' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    MPI_Finalize();' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '    return status;' >> /opt/hpcgen/build/rank_test.c && \
    printf '%s\n' '}' >> /opt/hpcgen/build/rank_test.c

# rank_test 1: compile rank_test
RUN mkdir -p /opt/rank_test/bin && \
    mpicc -O2 -o /opt/rank_test/bin/rank_test /opt/hpcgen/build/rank_test.c

# hpcgen: remove downloads
RUN rm -rf /opt/hpcgen/build

FROM registry.example.org/proxy/library/ubuntu:24.04

ENV LD_LIBRARY_PATH="/opt/mpich/lib:/opt/libfabric/lib:/opt/psm2/lib"
ENV MPI_HOME="/opt/mpich"
ENV PATH="/opt/rank_test/bin:/opt/mpich/bin:/opt/libfabric/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

COPY --from=builder /opt/libfabric /opt/libfabric
COPY --from=builder /opt/mpich /opt/mpich
COPY --from=builder /opt/psm2 /opt/psm2
COPY --from=builder /opt/rank_test /opt/rank_test

# distribution: packages
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libgomp1 libnuma1 libstdc++6 && \
    apt-get clean && \
    rm -rf /var/lib/apt/lists/*

# site: folders that the host's are bound onto
RUN mkdir -p /mnt/0 /opt/example

# hpcgen: self-test
RUN mkdir -p /opt/hpcgen && \
    printf '%s\n' '#!/bin/sh' > /opt/hpcgen/selftest.sh && \
    printf '%s\n' '# Self-test of mpi-hello for example-cluster, partition thin, by hpcgen.' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '# Run it inside the container: /opt/hpcgen/selftest.sh' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '# Prints one line per test; exits 1 if any failed. A test that needs a device is left out where there is none.' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '# With --lines: for `hpcgen test`, each test as `hpcgen-test: begin NAME`, its output, `hpcgen-test: end RESULT`.' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'set -u' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' passed=0 >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' failed=0 >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' left_out=0 >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'mode=${1:-}' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'begin() { # name' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    name=$1' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    [ "$mode" != --lines ] || printf '"'"'hpcgen-test: begin %s\n'"'"' "$name"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '}' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'end() { # result, reason, output' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    if [ "$mode" = --lines ]; then' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        [ -z "$3" ] || printf '"'"'%s\n'"'"' "$3"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        printf '"'"'hpcgen-test: end %s%s\n'"'"' "$1" "${2:+: $2}"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    else' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        printf '"'"'%-8s %s%s\n'"'"' "$1" "$name" "${2:+: $2}"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        [ "$1" != FAILED ] || printf '"'"'%s\n'"'"' "$3" | tail -n 20 | sed '"'"'s/^/         | /'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    fi' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '}' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check() { # name, text that the output must contain, command' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    begin "$1"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    if output=$(sh -c "$3" 2>&1); then' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        case $output in' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '            *"$2"*) passed=$((passed + 1)); end ok '"'"''"'"' "$output"; return ;;' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        esac' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        reason="no \"$2\" in the output"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    else' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        reason="status $?"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    fi' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    failed=$((failed + 1))' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    end FAILED "$reason" "$output"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '}' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check_with() { # device, then as check' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    device=$1' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    shift' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    if [ -e "$device" ]; then' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        check "$@"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    else' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        left_out=$((left_out + 1))' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        begin "$1"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        end '"'"'left out'"'"' "no $device" '"'"''"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    fi' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '}' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'gnu 13.3.0: libstdc++'"'"' libstdc++.so.6 '"'"'ldconfig -p'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'gnu 13.3.0: libgomp'"'"' libgomp.so.1 '"'"'ldconfig -p'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'psm2 12.0.1: library'"'"' '"'"'libnuma.so.1 => /'"'"' '"'"'ldd /opt/psm2/lib/libpsm2.so.2'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check_with /dev/hfi1_0 '"'"'psm2 12.0.1: device'"'"' '"'"''"'"' '"'"'test -r /dev/hfi1_0'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'libfabric 1.22.0: version'"'"' '"'"'libfabric: 1.22.0'"'"' '"'"'fi_info --version'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'libfabric 1.22.0: provider'"'"' psm2: '"'"'fi_info -l'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check_with /dev/no-fabric '"'"'libfabric 1.22.0: psm2 on the device'"'"' '"'"'provider: psm2'"'"' '"'"'fi_info -p psm2'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'mpich 3.4.3: library'"'"' libmpi.so.12 '"'"'ls /opt/mpich/lib'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'mpich 3.4.3: launcher'"'"' 3.4.3 '"'"'mpiexec --version'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'mpich 3.4.3: provider'"'"' ch4:ofi mpichversion' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'rank_test 1: libraries'"'"' '"'"''"'"' '"'"'test -x /opt/rank_test/bin/rank_test && ldd /opt/rank_test/bin/rank_test | grep -c '"'"'"'"'"'"'"'"'not found'"'"'"'"'"'"'"'"' | grep -qx 0'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'printf '"'"'%s passed, %s failed, %s left out\n'"'"' "$passed" "$failed" "$left_out"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '[ "$failed" -eq 0 ]' >> /opt/hpcgen/selftest.sh && \
    chmod 755 /opt/hpcgen/selftest.sh

COPY kit/ /opt/hpcgen/kit/

LABEL org.opencontainers.image.title="mpi-hello for example-cluster"
LABEL org.opencontainers.image.description="The smallest MPI job, to see that ranks find each other and which libraries they use"
LABEL io.hpcgen.version="0.1.0"
LABEL io.hpcgen.site="example-cluster"
LABEL io.hpcgen.partition="thin"
LABEL io.hpcgen.stack="mpi-hello"
LABEL io.hpcgen.blocks="ubuntu@24.04 site_trust@1 gnu@13.3.0 psm2@12.0.1 libfabric@1.22.0 mpich@3.4.3 rank_test@1"
LABEL io.hpcgen.content="47e048642085fd553ca75a07a79be706a810ad7802d53fe7b2fb5491a77d0ec0"
LABEL io.hpcgen.kit="/opt/hpcgen/kit"
HPCGEN_DOCKERFILE

# ch-image refers to the user by name, which batch and cron environments leave out.
export USER=${USER:-$(id -un)}
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
