Parts that the build scripts have in common.
#: arguments
usage() {
    cat << 'END'
usage: @{usage}

@{about}
At its end the image's self-test runs, without which there is no image; --notest leaves it out: for another CPU than
this machine's, for example. Test it then where it is to work: hpcgen test IMAGE.
@{licences}
END
}

@{bundle}
@{accepted}
notest=${@{variable}:-0}
@{name}=
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        --notest) notest=1 ;;
        @{options}
        -*)
            echo "build.sh: unknown option $1; build.sh --help shows the usage" >&2
            exit 64
            ;;
        *)
            if [ -n "$@{name}" ]; then
                echo "build.sh: $1 is one word too many; build.sh --help shows the usage" >&2
                exit 64
            fi
            @{name}=$1
            ;;
    esac
    shift
done
kit=$(cd "$(dirname "$0")" && pwd)
read -r -a options <<< "${HPCGEN_BUILD_OPTIONS:-}"
[ "$notest" = 0 ] || options+=(@{notest})
case $(uname -m) in
    @{machines}) ;;
    *)
        if [ "${@{emulate}:-0}" = 0 ]; then
            echo "build.sh: the image is for @{architecture}, and this machine is $(uname -m)" >&2
            echo "  remedy: build it on such a machine, or set @{emulate}=1 where an emulator is registered (qemu)" >&2
            exit 69
        fi
        options+=(@{platform})
        ;;
esac
@{licences_asked}
#: option
--bundle)
    bundle=${2:-}
    shift $(($# < 2 ? 0 : 1))
    ;;
#: licence_option
--accept-licence)
    accepted=$accepted,${2:-}
    shift $(($# < 2 ? 0 : 1))
    ;;
#: licences
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
    echo "  remedy: read it, then add --accept-licence $1, or set @{variable}=$1" >&2
    refused=77
}
@{licences}
[ "$refused" = 0 ] || exit "$refused"
#: context
kit_files=(
    @{kit_files}
)
for file in "${kit_files[@]}"; do
    if [ ! -r "$kit/$file" ]; then
        echo "build.sh: the kit's $file is not beside this script; render the kit again with -o" >&2
        exit 66
    fi
    case $file in
        *.sh | job.*@{executables}) mode=755 ;;
        *) mode=644 ;;
    esac
    install -D -m "$mode" "$kit/$file" "$context/$file"
done
@{stack_files}
@{certificates}
#: stack_files
# The stack's own files: a line of the list has the sha256, the mode and the path of one.
while IFS= read -r line; do
    file=@{folder}/${line:69}
    case "$(stat -c %A "$kit/$file")${line:65:3}" in
        -??x*755 | -??-*644) found=$(sha256sum < "$kit/$file") ;;
        *) found= ;;
    esac
    if [ "$found" != "${line:0:64}  -" ]; then
        echo "build.sh: the kit's $file is not as @{list} says; render the kit again with -o" >&2
        exit 65
    fi
    @{install}
done < "$kit/@{list}"
@{no_others}
#: no_others
# The folder is taken as a whole.
if [ "$(cd "$kit" && find @{folder} ! -type d | LC_ALL=C sort)" != \
    "$(cut -b 70- "$kit/@{list}" | sed 's,^,@{folder}/,' | LC_ALL=C sort)" ]; then
    echo "build.sh: the kit's @{folder} has files that @{list} does not name; render the kit again with -o" >&2
    exit 65
fi
#: certificates
certificates=(@{files})
for file in "${certificates[@]}"; do
    if [ ! -r "$file" ]; then
        echo "build.sh: the site's certificate $file is not on this machine; copy it here or correct the profile" >&2
        exit 66
    fi
    if ! grep -q -e '-----BEGIN CERTIFICATE-----' "$file" || grep -q -e 'PRIVATE KEY-----' "$file"; then
        echo "build.sh: $file is not a certificate in PEM, or has a private key; correct network.ca_certificates" >&2
        exit 65
    fi
done
#: copied
certificate_names=(@{names})
for number in "${!certificates[@]}"; do
    install -D -m 644 "${certificates[number]}" "$context/certificates/${certificate_names[number]}"
done
