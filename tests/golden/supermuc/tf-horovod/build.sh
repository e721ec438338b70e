#!/bin/bash
# Build script of tf-horovod for supermuc, partition thin
# by hpcgen 0.1.0; made again by:
#   hpcgen render --site supermuc --stack tf-horovod
#
# usage: build.sh [OUTPUT]
# Builds with ch-image on a machine that has a network, and converts with ch-convert. OUTPUT may end in .sqfs
# (squashfs), .tar.gz, or be a folder; copy it to the system afterwards. The Dockerfile below is in
# the dialect that ch-image 0.31 and later read. HPCGEN_BUILD_OPTIONS are further words for ch-image build.
set -euo pipefail

kit=$(cd "$(dirname "$0")" && pwd)
output=${1:-tf-horovod.sqfs}
name=tf-horovod-supermuc
certificates=()
certificate_names=()
kit_files=(build.sh hpcgen.lock job.slurm plan.json preflight.sh recipe.json selftest.sh)
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
FROM docker.io/library/ubuntu:22.04 AS builder

ENV CC="/usr/bin/gcc-12"
ENV CXX="/usr/bin/g++-12"
ENV FI_PROVIDER_PATH="/opt/intel_mpi/intel64/libfabric/lib/prov"
ENV I_MPI_ROOT="/opt/intel_mpi"
ENV LD_LIBRARY_PATH="/opt/intel_mpi/intel64/lib:/opt/intel_mpi/intel64/lib/release:/opt/intel_mpi/intel64/libfabric/lib:/opt/psm2/lib"
ENV PATH="/opt/rank_test/bin:/opt/intel_mpi/intel64/bin:/opt/cmake/cmake/data/bin:/opt/bazel/bin:/opt/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENV PYTHONNOUSERSITE="1"

# distribution: packages
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends bzip2 ca-certificates cpio curl file g++-12 gcc-12 git libc6-dev libgomp1 libnuma-dev libnuma1 libstdc++6 make patch patchelf python3 python3-dev python3-venv rsync unzip xz-utils zip && \
    apt-get clean && \
    rm -rf /var/lib/apt/lists/*

# python 3.10.12: Python environment
RUN /usr/bin/python3 -m venv /opt/python

# python 3.10.12: pip
RUN mkdir -p /opt/hpcgen/build && \
    printf '%s\n' 'packaging==26.3 --hash=sha256:d7193f7c8e4e93f444fde0262bf90af30e16fa0ad0ad44cb553c87339b23cd1c' > /opt/hpcgen/build/pip-26.3.txt && \
    printf '%s\n' 'pip==26.3 --hash=sha256:f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13' >> /opt/hpcgen/build/pip-26.3.txt && \
    printf '%s\n' 'setuptools==80.10.2 --hash=sha256:95b30ddfb717250edb492926c92b5221f7ef3fbcc2b07579bcd4a27da21d0173' >> /opt/hpcgen/build/pip-26.3.txt && \
    printf '%s\n' 'wheel==0.48.0 --hash=sha256:3217dcc807155e45db462d7ef2431f5ddda0d7273b700d05a67b271ceb1287ab' >> /opt/hpcgen/build/pip-26.3.txt && \
    /opt/python/bin/python -m pip install --no-deps --require-hashes -r /opt/hpcgen/build/pip-26.3.txt

# gnu 12.3.0: choose the compiler
RUN ln -sf /usr/bin/gcc-12 /usr/local/bin/gcc && \
    ln -sf /usr/bin/g++-12 /usr/local/bin/g++ && \
    ln -sf gcc /usr/local/bin/cc && \
    ln -sf g++ /usr/local/bin/c++

# bazel 6.1.0: Bazel
RUN mkdir -p /opt/hpcgen/build && \
    curl -fsSL --proto =https --retry 3 -o /opt/hpcgen/build/bazel-6.1.0-linux-x86_64 https://github.com/bazelbuild/bazel/releases/download/6.1.0/bazel-6.1.0-linux-x86_64 && \
    printf '%s  %s\n' 6c25a6d716545d6b672ec46f770521cd9ebb63d73617b8f4e6747825d1db1839 /opt/hpcgen/build/bazel-6.1.0-linux-x86_64 > /opt/hpcgen/build/bazel-6.1.0-linux-x86_64.sha256 && \
    sha256sum -c --quiet /opt/hpcgen/build/bazel-6.1.0-linux-x86_64.sha256 && \
    install -D -m 755 /opt/hpcgen/build/bazel-6.1.0-linux-x86_64 /opt/bazel/bin/bazel

# tensorflow 2.15.1: what TensorFlow needs
RUN mkdir -p /opt/hpcgen/build && \
    printf '%s\n' 'absl-py==2.5.1 --hash=sha256:721200f2f0e9960f2ca9dc3a2a706b201f5f75d812c158f059cbbe29eeafbdb8' > /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'astunparse==1.6.3 --hash=sha256:c2652417f2c8b5bb325c885ae329bdf3f86424075c4fd1a128674bc6fba4b8e8' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'certifi==2026.10.18 --hash=sha256:73191c47aaa79da394e8fee2dbc2ec827432cab56311122c9e47abf79e390f62' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'cffi==2.1.1 --hash=sha256:194cffa889098ced9976c3fc6340305e43f6303657d298da55366907c05c22d6' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'charset-normalizer==3.5.2 --hash=sha256:8a893cc101149f80a653f82062ebc95b34525a2614382e1da5458fe7c6997249' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'cryptography==50.0.2 --hash=sha256:f21e8a22c8605750c7af886bab299a363721264061b4ac0a30efb73cfd58efc5' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'flatbuffers==25.12.19 --hash=sha256:7634f50c427838bb021c2d66a3d1168e9d199b0607e6329399f04846d42e20b4' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'gast==0.7.0 --hash=sha256:99cbf1365633a74099f69c59bd650476b96baa5ef196fec88032b00b31ba36f7' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'google-auth==2.62.2 --hash=sha256:e9bcdb0679b6a4369ac327c5c59f06d92f7b4cd2624e7100294c14632f55a36b' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'google-auth-oauthlib==1.5.0 --hash=sha256:71625fdea21c6c03217eb9ff13741c3096e6d257ebca0ad084dbd6e9f4aa4ef4' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'google-pasta==0.2.0 --hash=sha256:b32482794a366b5366a32c92a9a9201b107821889935a02b3e51f6b432ea84ed' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'grpcio==1.85.1 --hash=sha256:1f04e51dc65c82af420f6cd177ea76132a78c14dc7adc3044f549b419bc70487' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'h5py==3.16.0 --hash=sha256:8975273c2c5921c25700193b408e28d6bdd0111c37468b2d4e25dcec4cd1d84d' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'idna==3.20 --hash=sha256:ab7ae7122974553370f0bdb919e1a960b2cd1bc1ef0276416d896db81c14582c' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'keras==2.15.0 --hash=sha256:2dcc6d2e30cf9c951064b63c1f4c404b966c59caf09e01f3549138ec8ee0dd1f' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'libclang==18.1.1 --hash=sha256:c533091d8a3bbf7460a00cb6c1a71da93bffe148f172c7d03b1c31fbf8aa2a0b' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'markdown==3.10.3 --hash=sha256:fa6c92a00a4a3c98b22728c64a935ae1928250ae65058a6ded814d2cc29a4cea' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'markupsafe==3.0.4 --hash=sha256:d1aca03ede943eb80ab3d63bb082c84b7aab85ea83bd0fd0c200260945fb49d9' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'ml-dtypes==0.3.2 --hash=sha256:961134ea44c7b8ca63eda902a44b58cd8bd670e21d62e255c81fba0a8e70d9b7' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'numpy==1.26.4 --hash=sha256:ffa75af20b44f8dba823498024771d5ac50620e6915abac414251bd971b4529f' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'oauthlib==4.0.1 --hash=sha256:498a298876e996301950a5b053d12c31628bb7b895db03666430c69ce182eb61' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'opt-einsum==3.4.0 --hash=sha256:69bb92469f86a1565195ece4ac0323943e83477171b91d24c35afe028a90d7cd' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'packaging==26.3 --hash=sha256:d7193f7c8e4e93f444fde0262bf90af30e16fa0ad0ad44cb553c87339b23cd1c' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'protobuf==4.25.9 --hash=sha256:438c636de8fb706a0de94a12a268ef1ae8f5ba5ae655a7671fcda5968ba3c9be' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'pyasn1==0.6.5 --hash=sha256:4017b0fce125096b8573b39c989fdb1a4b19cf761e683398184550fea0e66587' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'pyasn1-modules==0.4.2 --hash=sha256:29253a9207ce32b64c3ac6600edc75368f98473906e8fd1043bd6b5b1de2c14a' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'pycparser==3.11 --hash=sha256:51d5a8ba2be0bbe440b99d2112604c95bbbc3c2748a64260186c541e1729cd80' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'requests==2.34.2 --hash=sha256:2a0d60c172f83ac6ab31e4554906c0f3b3588d37b5cb939b1c061f4907e278e0' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'requests-oauthlib==2.0.0 --hash=sha256:7dd8a5c40426b779b0868c404bdef9768deccf22749cde15852df527e6269b36' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'setuptools==80.10.2 --hash=sha256:95b30ddfb717250edb492926c92b5221f7ef3fbcc2b07579bcd4a27da21d0173' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'six==1.17.0 --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'tensorboard==2.15.2 --hash=sha256:a6f6443728064d962caea6d34653e220e34ef8df764cb06a8212c17e1a8f0622' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'tensorboard-data-server==0.7.2 --hash=sha256:7e0610d205889588983836ec05dc098e80f97b7e7bbff7e994ebb78f578d0ddb' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'tensorflow-estimator==2.15.0 --hash=sha256:aedf21eec7fb2dc91150fc91a1ce12bc44dbb72278a08b58e79ff87c9e28f153' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'tensorflow-io-gcs-filesystem==0.37.1 --hash=sha256:9679b36e3a80921876f31685ab6f7270f3411a4cc51bc2847e80d0e4b5291e27' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'termcolor==3.3.0 --hash=sha256:cf642efadaf0a8ebbbf4bc7a31cec2f9b5f21a9f726f4ccbb08192c9c26f43a5' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'typing-extensions==4.16.0 --hash=sha256:481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'urllib3==2.8.0 --hash=sha256:0cf3cae568d36aa9576b28dfb35f11328f1cb974ca7647d9475ebb86c75ac6e3' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'werkzeug==3.1.9 --hash=sha256:6392e50c78460ba618e5b21f08a71f59c99ce99cdc6cf6e3dd7e6ccca8754fab' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'wheel==0.48.0 --hash=sha256:3217dcc807155e45db462d7ef2431f5ddda0d7273b700d05a67b271ceb1287ab' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    printf '%s\n' 'wrapt==1.14.2 --hash=sha256:851ded3662733bab093297a0adb844c71e7754b8c144f76bb569ac6544a7c27a' >> /opt/hpcgen/build/tensorflow-2.15.1-needs.txt && \
    /opt/python/bin/python -m pip install --no-deps --require-hashes -r /opt/hpcgen/build/tensorflow-2.15.1-needs.txt

# tensorflow 2.15.1: TensorFlow source
RUN mkdir -p /opt/hpcgen/build && \
    curl -fsSL --proto =https --retry 3 -o /opt/hpcgen/build/tensorflow-2.15.1.tar.gz https://github.com/tensorflow/tensorflow/archive/v2.15.1/tensorflow-2.15.1.tar.gz && \
    printf '%s  %s\n' f36416d831f06fe866e149c7cd752da410a11178b01ff5620e9f265511ed57cf /opt/hpcgen/build/tensorflow-2.15.1.tar.gz > /opt/hpcgen/build/tensorflow-2.15.1.tar.gz.sha256 && \
    sha256sum -c --quiet /opt/hpcgen/build/tensorflow-2.15.1.tar.gz.sha256 && \
    mkdir -p /opt/hpcgen/build/tensorflow && \
    tar -xf /opt/hpcgen/build/tensorflow-2.15.1.tar.gz -C /opt/hpcgen/build/tensorflow --strip-components=1 --no-same-owner

# tensorflow 2.15.1: configure TensorFlow
RUN cd /opt/hpcgen/build/tensorflow && \
    env 'CC_OPT_FLAGS=-march=skylake-avx512 -mtune=skylake-avx512' HOME=/opt/hpcgen/build PYTHON_BIN_PATH=/opt/python/bin/python3 PYTHON_LIB_PATH=/opt/python/lib/python3.10/site-packages TF_CUDA_CLANG=0 TF_DOWNLOAD_CLANG=0 TF_ENABLE_XLA=1 TF_NEED_CLANG=0 TF_NEED_CUDA=0 TF_NEED_MPI=0 TF_NEED_OPENCL=0 TF_NEED_ROCM=0 TF_SET_ANDROID_WORKSPACE=0 TF_SYSTEM_LIBS= USE_DEFAULT_PYTHON_LIB_PATH=1 ./configure < /dev/null && \
    sed -i /march=native/d .tf_configure.bazelrc

# tensorflow 2.15.1: compile TensorFlow
RUN cd /opt/hpcgen/build/tensorflow && \
    env HOME=/opt/hpcgen/build bazel --batch --output_user_root=/opt/hpcgen/build/bazel --host_jvm_args=-Xmx4096m --local_startup_timeout_secs=300 build --config=opt --copt=-march=skylake-avx512 --copt=-mtune=skylake-avx512 --config=noaws --config=nohdfs --config=nogcp --repo_env=TF_PYTHON_VERSION=3.10 --curses=no --show_progress_rate_limit=60 --verbose_failures //tensorflow/tools/pip_package:build_pip_package

# tensorflow 2.15.1: install TensorFlow
RUN cd /opt/hpcgen/build/tensorflow && \
    ./bazel-bin/tensorflow/tools/pip_package/build_pip_package /opt/hpcgen/build/tensorflow-wheel && \
    /opt/python/bin/python -m pip install --no-deps --no-index /opt/hpcgen/build/tensorflow-wheel/*.whl && \
    cd / && \
    rm -rf /opt/hpcgen/build/tensorflow /opt/hpcgen/build/bazel

# cmake 3.31.10: CMake
RUN mkdir -p /opt/hpcgen/build && \
    printf '%s\n' 'cmake==3.31.10 --hash=sha256:2f766bb46367e5e0559fa33184653754bce044583a06014dcaebf8e6dff8a1f1' > /opt/hpcgen/build/cmake-3.31.10.txt && \
    /opt/python/bin/python -m pip install --no-deps --require-hashes --target /opt/cmake -r /opt/hpcgen/build/cmake-3.31.10.txt

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

# intel_mpi 2019.6.166: fetch intel_mpi
RUN mkdir -p /opt/hpcgen/build && \
    curl -fsSL --proto =https --retry 3 -o /opt/hpcgen/build/l_mpi_2019.6.166.tgz https://registrationcenter-download.intel.com/akdlm/irc_nas/tec/16120/l_mpi_2019.6.166.tgz && \
    printf '%s  %s\n' 119be69f1117c93a9e5e9b8b4643918e55d2a55a78ad9567f77d16cdaf18cd6e /opt/hpcgen/build/l_mpi_2019.6.166.tgz > /opt/hpcgen/build/l_mpi_2019.6.166.tgz.sha256 && \
    sha256sum -c --quiet /opt/hpcgen/build/l_mpi_2019.6.166.tgz.sha256 && \
    mkdir -p /opt/hpcgen/build/intel-mpi && \
    tar -xf /opt/hpcgen/build/l_mpi_2019.6.166.tgz -C /opt/hpcgen/build/intel-mpi --strip-components=1 --no-same-owner

# intel_mpi 2019.6.166: install intel_mpi
RUN printf '%s\n' ACCEPT_EULA=accept > /opt/hpcgen/build/intel-mpi/hpcgen.cfg && \
    printf '%s\n' CONTINUE_WITH_OPTIONAL_ERROR=yes >> /opt/hpcgen/build/intel-mpi/hpcgen.cfg && \
    printf '%s\n' CONTINUE_WITH_INSTALLDIR_OVERWRITE=yes >> /opt/hpcgen/build/intel-mpi/hpcgen.cfg && \
    printf '%s\n' PSET_INSTALL_DIR=/opt/hpcgen/build/intel-mpi-installed >> /opt/hpcgen/build/intel-mpi/hpcgen.cfg && \
    printf '%s\n' PSET_MODE=install >> /opt/hpcgen/build/intel-mpi/hpcgen.cfg && \
    printf '%s\n' COMPONENTS=ALL >> /opt/hpcgen/build/intel-mpi/hpcgen.cfg && \
    cd /opt/hpcgen/build/intel-mpi && \
    ./install.sh -s /opt/hpcgen/build/intel-mpi/hpcgen.cfg

# intel_mpi 2019.6.166: move intel_mpi
RUN mkdir -p /opt/intel_mpi && \
    cp -a /opt/hpcgen/build/intel-mpi-installed/impi/2019.6.166/. /opt/intel_mpi && \
    sed -i 's|^prefix=.*|prefix=/opt/intel_mpi|' /opt/intel_mpi/intel64/bin/mpif77 /opt/intel_mpi/intel64/bin/mpif90 /opt/intel_mpi/intel64/bin/mpigcc /opt/intel_mpi/intel64/bin/mpigxx && \
    rm -rf /opt/hpcgen/build/intel-mpi /opt/hpcgen/build/intel-mpi-installed

# horovod 0.28.1: what Horovod needs
RUN mkdir -p /opt/hpcgen/build && \
    printf '%s\n' 'cffi==2.1.1 --hash=sha256:194cffa889098ced9976c3fc6340305e43f6303657d298da55366907c05c22d6' > /opt/hpcgen/build/horovod-0.28.1.txt && \
    printf '%s\n' 'cloudpickle==3.1.2 --hash=sha256:9acb47f6afd73f60dc1df93bb801b472f05ff42fa6c84167d25cb206be1fbf4a' >> /opt/hpcgen/build/horovod-0.28.1.txt && \
    printf '%s\n' 'packaging==26.3 --hash=sha256:d7193f7c8e4e93f444fde0262bf90af30e16fa0ad0ad44cb553c87339b23cd1c' >> /opt/hpcgen/build/horovod-0.28.1.txt && \
    printf '%s\n' 'psutil==7.2.2 --hash=sha256:076a2d2f923fd4821644f5ba89f059523da90dc9014e85f8e45a5774ca5bc6f9' >> /opt/hpcgen/build/horovod-0.28.1.txt && \
    printf '%s\n' 'pycparser==3.11 --hash=sha256:51d5a8ba2be0bbe440b99d2112604c95bbbc3c2748a64260186c541e1729cd80' >> /opt/hpcgen/build/horovod-0.28.1.txt && \
    printf '%s\n' 'pyyaml==6.0.3 --hash=sha256:9c7708761fccb9397fe64bbc0395abcae8c4bf7b0eac081e12b809bf47700d0b' >> /opt/hpcgen/build/horovod-0.28.1.txt && \
    printf '%s\n' 'setuptools==80.10.2 --hash=sha256:95b30ddfb717250edb492926c92b5221f7ef3fbcc2b07579bcd4a27da21d0173' >> /opt/hpcgen/build/horovod-0.28.1.txt && \
    printf '%s\n' 'wheel==0.48.0 --hash=sha256:3217dcc807155e45db462d7ef2431f5ddda0d7273b700d05a67b271ceb1287ab' >> /opt/hpcgen/build/horovod-0.28.1.txt && \
    /opt/python/bin/python -m pip install --no-deps --require-hashes -r /opt/hpcgen/build/horovod-0.28.1.txt

# horovod 0.28.1: compile Horovod
RUN mkdir -p /opt/hpcgen/build && \
    printf '%s\n' 'horovod==0.28.1 --hash=sha256:92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0' > /opt/hpcgen/build/horovod-0.28.1-source.txt && \
    env 'HOROVOD_BUILD_ARCH_FLAGS=-march=skylake-avx512 -mtune=skylake-avx512' HOROVOD_CPU_OPERATIONS=MPI HOROVOD_WITHOUT_GLOO=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITH_MPI=1 HOROVOD_WITH_TENSORFLOW=1 /opt/python/bin/python -m pip install --no-deps --require-hashes --no-binary horovod --no-build-isolation -r /opt/hpcgen/build/horovod-0.28.1-source.txt

# horovod 0.28.1: training step
RUN mkdir -p /opt/horovod/share && \
    printf '%s\n' '"""A few training steps with Horovod, one process per rank, to prove that a job is one job.' > /opt/horovod/share/step.py && \
    printf '%s\n' '' >> /opt/horovod/share/step.py && \
    printf '%s\n' 'Every rank trains the same small model on data of its own and prints one line' >> /opt/horovod/share/step.py && \
    printf '%s\n' '' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    rank R size N loss X' >> /opt/horovod/share/step.py && \
    printf '%s\n' '' >> /opt/horovod/share/step.py && \
    printf '%s\n' 'Exit status 1: the loss did not fall, or the ranks ended with different weights. 3: the job has another' >> /opt/horovod/share/step.py && \
    printf '%s\n' 'number of ranks than HPCGEN_RANKS says, because some launchers silently start that many jobs of one rank.' >> /opt/horovod/share/step.py && \
    printf '%s\n' '"""' >> /opt/horovod/share/step.py && \
    printf '%s\n' '' >> /opt/horovod/share/step.py && \
    printf '%s\n' 'import os' >> /opt/horovod/share/step.py && \
    printf '%s\n' 'import sys' >> /opt/horovod/share/step.py && \
    printf '%s\n' '' >> /opt/horovod/share/step.py && \
    printf '%s\n' 'os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")' >> /opt/horovod/share/step.py && \
    printf '%s\n' '' >> /opt/horovod/share/step.py && \
    printf '%s\n' 'import horovod.tensorflow as hvd' >> /opt/horovod/share/step.py && \
    printf '%s\n' 'import tensorflow as tf' >> /opt/horovod/share/step.py && \
    printf '%s\n' '' >> /opt/horovod/share/step.py && \
    printf '%s\n' 'STEPS = 20' >> /opt/horovod/share/step.py && \
    printf '%s\n' '' >> /opt/horovod/share/step.py && \
    printf '%s\n' '' >> /opt/horovod/share/step.py && \
    printf '%s\n' 'def train():' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    """First loss, last loss, and whether all ranks have the same weights in the end."""' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    tf.random.set_seed(1000 + hvd.rank())  # the ranks start apart, so that the broadcast has work to do' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    weights = tf.Variable(tf.random.normal([4, 1]))' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    inputs = tf.random.normal([64, 4])' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    targets = tf.matmul(inputs, [[1.0], [-2.0], [3.0], [0.5]])' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    hvd.broadcast_variables([weights], root_rank=0)' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    losses = []' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    for _ in range(STEPS):' >> /opt/horovod/share/step.py && \
    printf '%s\n' '        with tf.GradientTape() as tape:' >> /opt/horovod/share/step.py && \
    printf '%s\n' '            loss = tf.reduce_mean(tf.square(tf.matmul(inputs, weights) - targets))' >> /opt/horovod/share/step.py && \
    printf '%s\n' '        (gradient,) = hvd.DistributedGradientTape(tape).gradient(loss, [weights])' >> /opt/horovod/share/step.py && \
    printf '%s\n' '        weights.assign_sub(0.1 * gradient)' >> /opt/horovod/share/step.py && \
    printf '%s\n' '        losses.append(float(loss))' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    everywhere = hvd.allgather(tf.reshape(weights, [1, 4]), name="weights")' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    same = bool(tf.reduce_all(tf.abs(everywhere - everywhere[:1]) < 1e-5))' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    return losses[0], losses[-1], same' >> /opt/horovod/share/step.py && \
    printf '%s\n' '' >> /opt/horovod/share/step.py && \
    printf '%s\n' '' >> /opt/horovod/share/step.py && \
    printf '%s\n' 'def main():' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    """The exit status."""' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    hvd.init()' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    gpus = tf.config.list_physical_devices("GPU")' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    if gpus:' >> /opt/horovod/share/step.py && \
    printf '%s\n' '        tf.config.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    wanted = int(os.environ.get("HPCGEN_RANKS", "0"))' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    if wanted and hvd.size() != wanted:' >> /opt/horovod/share/step.py && \
    printf '%s\n' '        sys.stderr.write(f"expected {wanted} ranks, this job has {hvd.size()}\n")' >> /opt/horovod/share/step.py && \
    printf '%s\n' '        return 3' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    first, last, same = train()' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    # One write, so that the lines of several ranks do not mix.' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    sys.stdout.write(f"rank {hvd.rank()} size {hvd.size()} loss {last:.6f}\n")' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    sys.stdout.flush()' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    if not same:' >> /opt/horovod/share/step.py && \
    printf '%s\n' '        sys.stderr.write(f"rank {hvd.rank()}: the weights differ between the ranks\n")' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    return 0 if same and last < first else 1' >> /opt/horovod/share/step.py && \
    printf '%s\n' '' >> /opt/horovod/share/step.py && \
    printf '%s\n' '' >> /opt/horovod/share/step.py && \
    printf '%s\n' 'if __name__ == "__main__":' >> /opt/horovod/share/step.py && \
    printf '%s\n' '    sys.exit(main())' >> /opt/horovod/share/step.py

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

FROM docker.io/library/ubuntu:22.04

ENV FI_PROVIDER_PATH="/opt/intel_mpi/intel64/libfabric/lib/prov"
ENV I_MPI_ROOT="/opt/intel_mpi"
ENV LD_LIBRARY_PATH="/opt/intel_mpi/intel64/lib:/opt/intel_mpi/intel64/lib/release:/opt/intel_mpi/intel64/libfabric/lib:/opt/psm2/lib"
ENV PATH="/opt/rank_test/bin:/opt/intel_mpi/intel64/bin:/opt/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENV PYTHONNOUSERSITE="1"

COPY --from=builder /opt/horovod /opt/horovod
COPY --from=builder /opt/intel_mpi /opt/intel_mpi
COPY --from=builder /opt/psm2 /opt/psm2
COPY --from=builder /opt/python /opt/python
COPY --from=builder /opt/rank_test /opt/rank_test

# distribution: packages
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libgomp1 libnuma1 libstdc++6 python3 && \
    apt-get clean && \
    rm -rf /var/lib/apt/lists/*

# site: folders that the host's are bound onto
RUN mkdir -p /dss/dsshome1/lrz/sys /lrz/sys /mnt/0

# hpcgen: self-test
RUN mkdir -p /opt/hpcgen && \
    printf '%s\n' '#!/bin/sh' > /opt/hpcgen/selftest.sh && \
    printf '%s\n' '# Self-test of tf-horovod for supermuc, partition thin, by hpcgen.' >> /opt/hpcgen/selftest.sh && \
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
    printf '%s\n' 'check '"'"'python 3.10.12: version'"'"' '"'"'Python 3.10.'"'"' '"'"'/opt/python/bin/python --version'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'python 3.10.12: standard library'"'"' '"'"''"'"' '"'"'/opt/python/bin/python -c '"'"'"'"'"'"'"'"'import bz2, ctypes, hashlib, lzma, sqlite3, ssl, zlib'"'"'"'"'"'"'"'"''"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'gnu 12.3.0: libstdc++'"'"' libstdc++.so.6 '"'"'ldconfig -p'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'gnu 12.3.0: libgomp'"'"' libgomp.so.1 '"'"'ldconfig -p'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'tensorflow 2.15.1: version'"'"' 2.15.1 '"'"'/opt/python/bin/python -c '"'"'"'"'"'"'"'"'import tensorflow; print(tensorflow.__version__)'"'"'"'"'"'"'"'"''"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'tensorflow 2.15.1: matrix product'"'"' 128.0 '"'"'/opt/python/bin/python -c '"'"'"'"'"'"'"'"'import tensorflow as tf; print(float(tf.linalg.trace(tf.matmul(tf.eye(64), 2.0 * tf.eye(64)))))'"'"'"'"'"'"'"'"''"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'tensorflow 2.15.1: oneDNN'"'"' '"'"'oneDNN True'"'"' '"'"'/opt/python/bin/python -c '"'"'"'"'"'"'"'"'from tensorflow.python.framework import test_util; print('"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'oneDNN'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"', test_util.IsMklEnabled())'"'"'"'"'"'"'"'"''"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'tensorflow 2.15.1: AVX-512'"'"' '"'"''"'"' '"'"'/opt/python/bin/python -c '"'"'"'"'"'"'"'"'import subprocess, sys; p = subprocess.run([sys.executable, '"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'-c'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"', '"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'import tensorflow as tf; tf.add(1.0, 1.0)'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'], check=True, stderr=subprocess.PIPE); sys.exit(b'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'AVX512F'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"'"' in p.stderr)'"'"'"'"'"'"'"'"''"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'psm2 12.0.1: library'"'"' '"'"'libnuma.so.1 => /'"'"' '"'"'ldd /opt/psm2/lib/libpsm2.so.2'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check_with /dev/hfi1_0 '"'"'psm2 12.0.1: device'"'"' '"'"''"'"' '"'"'test -r /dev/hfi1_0'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'intel_mpi 2019.6.166: library'"'"' '"'"'libc.so.6 => /'"'"' '"'"'ldd /opt/intel_mpi/intel64/lib/release/libmpi.so.12'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'intel_mpi 2019.6.166: launcher'"'"' '"'"'Intel(R) MPI Library'"'"' '"'"'mpiexec.hydra --version'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'horovod 0.28.1: built for mpi'"'"' '"'"''"'"' '"'"'/opt/python/bin/python -c '"'"'"'"'"'"'"'"'import sys, horovod.tensorflow as hvd; sys.exit(not (hvd.mpi_built()))'"'"'"'"'"'"'"'"''"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'rank_test 1: libraries'"'"' '"'"''"'"' '"'"'test -x /opt/rank_test/bin/rank_test && ldd /opt/rank_test/bin/rank_test | grep -c '"'"'"'"'"'"'"'"'not found'"'"'"'"'"'"'"'"' | grep -qx 0'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'printf '"'"'%s passed, %s failed, %s left out\n'"'"' "$passed" "$failed" "$left_out"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '[ "$failed" -eq 0 ]' >> /opt/hpcgen/selftest.sh && \
    chmod 755 /opt/hpcgen/selftest.sh

COPY kit/ /opt/hpcgen/kit/

LABEL org.opencontainers.image.title="tf-horovod for supermuc"
LABEL org.opencontainers.image.description="TensorFlow with Horovod over the host's MPI"
LABEL io.hpcgen.version="0.1.0"
LABEL io.hpcgen.site="supermuc"
LABEL io.hpcgen.partition="thin"
LABEL io.hpcgen.stack="tf-horovod"
LABEL io.hpcgen.blocks="ubuntu@22.04 site_trust@1 python@3.10.12 gnu@12.3.0 bazel@6.1.0 tensorflow@2.15.1 cmake@3.31.10 psm2@12.0.1 intel_mpi@2019.6.166 horovod@0.28.1 rank_test@1"
LABEL io.hpcgen.content="93bea223659ba5c161f7575910fc7d44a0665390fa266c04e704f13346a5e2c6"
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
