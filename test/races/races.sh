#!/usr/bin/env bash
# races.sh SOURCE_FOLDER BUILD_FOLDER: builds the executor's tests with clang's ThreadSanitizer and libomp, whose
# Archer tool tells it about OpenMP's barriers, and runs them: no report may come. Then the same for a program
# with a missing barrier: there one must. 77 (skipped) where clang, libomp or Archer is missing.
set -euo pipefail
source=$1
build=$2
# shellcheck source=../../runtime/demo/dependencies.sh
. "$source/runtime/demo/dependencies.sh"
compiler=$(command -v clang++-14 clang++ | head -n 1) || skip "no clang++ (package clang-14)"
archer=$(find /usr/lib/llvm-14/lib /usr/lib -maxdepth 2 -name 'libarcher.so*' 2>/dev/null | head -n 1)
[ -n "$archer" ] || skip "no libarcher.so (package libomp-14-dev)"

if have_command ccache; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
configure "$source" "$build" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" -DLOCKSTEP_SANITIZE=thread \
  -DLOCKSTEP_PERF=OFF >/dev/null
cmake --build "$build" -j "$(build_jobs)" --target test_executor test_profile races_planted

export TSAN_OPTIONS="ignore_noninstrumented_modules=1 exitcode=66"
export OMP_TOOL=enabled OMP_TOOL_LIBRARIES=$archer
"$build/test/test_executor"
"$build/test/test_profile"

status=0
"$build/test/races_planted" >"$build/planted.txt" 2>&1 || status=$?
if [ "$status" -ne 66 ] || ! grep -q "WARNING: ThreadSanitizer: data race" "$build/planted.txt"; then
  cat "$build/planted.txt"
  echo "The planted missing barrier was not found (exit status $status, expected 66)." >&2
  exit 1
fi
echo "No race in the executor's tests; the planted one was found."
