#!/usr/bin/env bash
# test/run.sh [-DNAME=VALUE]... [OPTION OF ctest]...: installs what is missing, builds everything in build/
# (or the folder that BUILD names), runs every test. Definitions go to cmake, all else to ctest:
#   bash test/run.sh -L quant
#   BUILD=build-asan bash test/run.sh -DLOCKSTEP_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=RelWithDebInfo
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../runtime/demo/dependencies.sh
. "$root/runtime/demo/dependencies.sh"

build=${BUILD:-build}
[[ $build = /* ]] || build=$root/$build
cmake_options=(-DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_TESTS=ON -DLOCKSTEP_PERF=ON)
# Warnings of a compiler newer than ours are no failure of a test; continuous integration asks for them.
[ -f "$build/CMakeCache.txt" ] || cmake_options+=(-DLOCKSTEP_WERROR=OFF)
ctest_options=()
for argument in "$@"; do
  case $argument in
    -D?*=*) cmake_options+=("$argument") ;;
    *) ctest_options+=("$argument") ;;
  esac
done

install_dependencies build test
configure "$root" "$build" "${cmake_options[@]}"
cmake --build "$build" -j "$(build_jobs)"
ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$(build_jobs)" "${ctest_options[@]}"
