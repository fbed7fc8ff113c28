#!/usr/bin/env bash
# dependencies_test.sh DEPENDENCIES: the script that installs packages, on machines made of a few fake
# commands: with and without apt, as root, through sudo, and without rights.
set -euo pipefail
dependencies=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# fake NAME BODY: a command on the machine under test.
fake() {
  printf '#!%s\n%s\n' "$(command -v bash)" "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

# machine ROOT: an empty machine with a user of the given kind. Installed packages are lines of
# $work/installed; what apt-get is asked is written to $work/apt.
machine() {
  rm -rf "$work/bin"
  mkdir "$work/bin"
  : >"$work/installed"
  : >"$work/apt"
  ln -s "$(command -v cat)" "$(command -v env)" "$(command -v bash)" "$(command -v grep)" "$work/bin"
  if [ "$1" = root ]; then fake id 'echo 0'; else fake id 'echo 1000'; fi
}
with_apt() {
  fake apt-get 'echo "${DEBIAN_FRONTEND:-} $*" >>'"$work/apt"
  fake dpkg-query 'grep -qx -- "${@: -1}" '"$work/installed"' && echo -n installed || exit 1'
}

run() {
  # Not from a terminal, so nobody can be asked for a password.
  output=$(env -i PATH="$work/bin" "$(command -v bash)" -c ". '$dependencies'; install_dependencies $*" </dev/null 2>&1) || {
    echo "install_dependencies failed: $output"
    failures=$((failures + 1))
  }
}

# says WHERE TEXT, silent WHERE TEXT: what must and must not be in the output or in what apt-get was asked.
says() {
  local text=$output
  [ "$1" = output ] || text=$(cat "$work/apt")
  [[ $text == *"$2"* ]] && return
  echo "FAILED: $1 lacks '$2': $text"
  failures=$((failures + 1))
}
nothing_asked() {
  [ ! -s "$work/apt" ] && return
  echo "FAILED: apt-get was asked: $(cat "$work/apt")"
  failures=$((failures + 1))
}

machine root
with_apt
printf '%s\n' libhwloc-dev libeigen3-dev libcli11-dev nlohmann-json3-dev libfmt-dev >"$work/installed"
run build
says output 'Installing with apt-get: cmake g++ ninja-build pkg-config libpcre2-dev'
says apt 'noninteractive -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 update'
says apt 'install -y --no-install-recommends cmake g++ ninja-build pkg-config libpcre2-dev'

# Everything there, some of it not from packages: apt is left alone and nothing is said.
for name in cmake g++ make pkgconf; do fake "$name" ''; done
echo libpcre2-dev >>"$work/installed"
: >"$work/apt"
run build
nothing_asked
[ -z "$output" ] || { echo "FAILED: chatter: $output"; failures=$((failures + 1)); }
run build test
says apt 'install -y --no-install-recommends catch2 binutils'

# An installation that fails is reported and does not stop anything.
machine root
with_apt
fake apt-get 'exit 100'
run build
says output 'Going on without'

machine user
with_apt
run build
says output 'sudo cannot be used'
says output 'libhwloc-dev'
nothing_asked

machine user
with_apt
fake sudo 'case "$*" in "-n true") exit 1 ;; esac; echo "must not be called: $*" >&2; exit 1'
run build
says output 'sudo cannot be used'
nothing_asked

machine user
with_apt
fake sudo '[ "$1" = -n ] || exit 1; shift; [ "$1" = true ] && exit 0; echo through-sudo >>'"$work/apt"'; exec "$@"'
run build test
says output 'Installing with apt-get through sudo: cmake'
says apt 'through-sudo'
says apt 'noninteractive -q'
says apt 'libfmt-dev libpcre2-dev catch2 binutils'

machine root
run build
says output 'No apt here'
says output 'libhwloc-dev libeigen3-dev libcli11-dev'

[ "$failures" -eq 0 ] && echo "dependencies_test: passed"
exit "$failures"
