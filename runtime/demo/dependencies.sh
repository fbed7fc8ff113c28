# Sourced by the scripts that build something: installs the packages that are missing, configures, builds.
# Debian and Ubuntu names are used, as both have all of these packages. Nothing here is fatal by itself:
# where nothing can be installed the needs are listed, and the configuration step has the last word.

# dependencies_for PURPOSE...: "test-command package" pairs; the package is missing if the command fails.
# What is often there from elsewhere (compiler, cmake) is asked for by use, libraries by package.
dependencies_for() {
  local purpose
  for purpose in "$@"; do
    case $purpose in
      build)
        cat <<'PAIRS'
have_command cmake|cmake
have_command ${CXX:-g++}|g++
have_command ninja make|ninja-build
have_command pkg-config pkgconf|pkg-config
have_package libhwloc-dev|libhwloc-dev
have_package libeigen3-dev|libeigen3-dev
have_package libcli11-dev|libcli11-dev
have_package nlohmann-json3-dev|nlohmann-json3-dev
have_package libfmt-dev|libfmt-dev
have_package libpcre2-dev|libpcre2-dev
PAIRS
        ;;
      test)
        cat <<'PAIRS'
have_package catch2|catch2
have_command nm|binutils
have_command python3|python3
have_package python3-jinja2|python3-jinja2
have_package python3-matplotlib|python3-matplotlib
have_command lstopo-no-graphics|hwloc-nox
have_command mpicxx|libopenmpi-dev
have_command mpirun|openmpi-bin
PAIRS
        ;;
      ci)
        cat <<'PAIRS'
have_command clang++-14|clang-14
have_package libomp-14-dev|libomp-14-dev
have_command clang-format-14|clang-format-14
have_command clang-tidy-14|clang-tidy-14
have_command git|git
PAIRS
        ;;
      emulated)
        cat <<'PAIRS'
have_command aarch64-linux-gnu-g++|g++-aarch64-linux-gnu
have_command qemu-aarch64-static qemu-aarch64|qemu-user-static
have_command bochs-bin|bochs
have_package bochs-term|bochs-term
have_package bochsbios|bochsbios
have_package isolinux|isolinux
have_package syslinux-common|syslinux-common
have_command xorriso|xorriso
have_command script|bsdutils
PAIRS
        ;;
      guest)
        cat <<'PAIRS'
have_command qemu-system-x86_64|qemu-system-x86
have_command busybox|busybox-static
have_command cpio|cpio
PAIRS
        ;;
      *) echo "dependencies: unknown purpose $purpose" >&2 ;;
    esac
  done
}

# One of the commands is there.
have_command() {
  local name
  for name in "$@"; do
    command -v "$name" >/dev/null 2>&1 && return 0
  done
  return 1
}

have_package() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# The words that make a command run as root, one a line; fails if there is no way.
become_root() {
  if [ "$(id -u)" -eq 0 ]; then
    return 0
  fi
  have_command sudo || return 1
  if sudo -n true 2>/dev/null; then
    printf '%s\n' sudo -n
  elif [ -t 0 ] && [ -t 2 ]; then
    # Somebody is there who can be asked for a password.
    printf '%s\n' sudo
  else
    return 1
  fi
}

# install_dependencies PURPOSE...: returns 0 also when it could not install, after saying what is needed.
install_dependencies() {
  local pair missing=() as_root
  while IFS= read -r pair; do
    eval "${pair%%|*}" || missing+=("${pair#*|}")
  done < <(dependencies_for "$@")
  if [ ${#missing[@]} -eq 0 ]; then
    return 0
  fi

  if ! have_command apt-get || ! have_command dpkg-query; then
    echo "No apt here. If the build does not find them, install what these Debian packages hold: ${missing[*]}" >&2
    return 0
  fi
  if ! as_root=$(become_root); then
    echo "Not root, and sudo cannot be used without asking. Please have these packages installed: ${missing[*]}" >&2
    echo "Going on without them, in case the build finds them elsewhere." >&2
    return 0
  fi

  local prefix=()
  [ -z "$as_root" ] || mapfile -t prefix <<<"$as_root"
  local apt=("${prefix[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3
    -o DPkg::Lock::Timeout=120)
  echo "Installing with apt-get${as_root:+ through sudo}: ${missing[*]}" >&2
  # A failed update may be one dead mirror among many: the installation shows whether it matters.
  "${apt[@]}" update >&2 || true
  if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2; then
    echo "apt-get could not install all of: ${missing[*]}" >&2
    echo "Going on without, in case the build finds them elsewhere." >&2
  fi
}

# skip REASON: ends a test whose tool is missing. Where LOCKSTEP_NO_SKIPS is set that is a failure.
skip() {
  echo "SKIPPED: $1" >&2
  [ -z "${LOCKSTEP_NO_SKIPS:-}" ] || exit 1
  exit 77
}

# Processors this process may use.
build_jobs() { nproc 2>/dev/null || echo 2; }

# configure SOURCE BUILD ARGUMENT...: cmake, with Ninja where there is one and the folder is new.
configure() {
  local source=$1 build=$2 generator=()
  shift 2
  # A folder that was configured for a checkout at another place cannot be reused.
  if [ -f "$build/CMakeCache.txt" ] &&
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$source" "$build/CMakeCache.txt"; then
    rm -rf "$build/CMakeCache.txt" "$build/CMakeFiles"
  fi
  if [ ! -f "$build/CMakeCache.txt" ] && have_command ninja; then
    generator=(-G Ninja)
  fi
  cmake -S "$source" -B "$build" "${generator[@]}" "$@"
}
