# shellcheck shell=bash
# Shared by the scripts of the test bed: work folder, messages, tool checks.
# Source it; it runs nothing but assignments.

# Everything the test bed makes is kept here, so that a second run is quick and
# one `rm -rf` undoes it all.
testbed=${HPCGEN_TESTBED:-${XDG_CACHE_HOME:-$HOME/.cache}/hpcgen-testbed}

die() {
  echo "${0##*/}: $*" >&2
  exit 1
}

note() {
  echo "${0##*/}: $*" >&2
}

# Print the comment block at the top of the calling script as its help text.
usage() {
  awk 'NR == 1 { next } !/^#/ { exit } { sub(/^# ?/, ""); print }' "$0"
}

need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || die "$tool is missing: run .ci/install-tools"
  done
}

need_root() {
  ((EUID == 0)) || die "must run as root ($1)"
}

# The Debian mirror this machine uses itself, so that no address is written
# down in the project.
apt_mirror() {
  local mirror
  # shellcheck disable=SC2016 # apt fills these in
  mirror=$(apt-get indextargets --format '$(CREATED_BY) $(REPO_URI) $(RELEASE)' 2>/dev/null |
    awk '$1 == "Packages" && $3 == "bookworm" { print $2; exit }')
  [[ $mirror ]] || die "no Debian bookworm mirror in apt's configuration"
  echo "${mirror%/}"
}

# Run a command under an exclusive lock, so that parallel test workers make
# each cached thing once.  Usage: locked NAME COMMAND...
locked() {
  local name=$1
  shift
  mkdir -p "$testbed"
  (
    flock 9
    "$@"
  ) 9>"$testbed/.lock-$name"
}
