
# Everything that the build takes from outside comes from the bundle, which is checked first.
if [ -z "$bundle" ] || [ ! -r "$bundle/SHA256SUMS" ]; then
    echo "build.sh: name the folder of the bundle: build.sh --bundle DIR" >&2
    exit 66
fi
# Absolute before cd, which takes CDPATH and - for more than they are.
case $bundle in
    /*) ;;
    *) bundle=$PWD/$bundle ;;
esac
bundle=$(cd "$bundle" && pwd)
case $bundle in
    *[:,]*)
        echo "build.sh: engines do not accept the path $bundle, because of its : or ,; name a link to it" >&2
        exit 66
        ;;
esac
if [ ! -r "$bundle/hpcgen.lock" ] || [ "$(sha256sum < "$bundle/hpcgen.lock")" != "$(sha256sum < "$kit/hpcgen.lock")" ]; then
    echo "build.sh: $bundle is not the bundle for this kit's hpcgen.lock" >&2
    exit 65
fi
if [ -e "$bundle/artifacts" ]; then
    echo "build.sh: $bundle has blocks as they were compiled, without their sources: hpcgen build --bundle $bundle" >&2
    exit 65
fi
echo "build.sh: checking $bundle" >&2
if ! (cd "$bundle" && sha256sum --check --quiet --strict SHA256SUMS) >&2; then
    echo "build.sh: $bundle is damaged; copy it again, or ask: hpcgen bundle verify" >&2
    exit 65
fi

