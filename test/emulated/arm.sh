#!/usr/bin/env bash
# arm.sh BUILD_FOLDER: compiles quant/ and its kernel tests for 64-bit ARM and runs them under emulation, on
# processors with i8mm, with dotprod alone and with neither. Every kernel is compared with the scalar one bit
# for bit. 77 (skipped) where the cross compiler, the emulator or the single header of Catch2 is missing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
# shellcheck source=../../runtime/demo/dependencies.sh
. "$here/../../runtime/demo/dependencies.sh"

compiler=aarch64-linux-gnu-g++
command -v "$compiler" >/dev/null || skip "no $compiler (package g++-aarch64-linux-gnu)"
emulator=$(command -v qemu-aarch64-static qemu-aarch64 | head -n 1) || true
[ -n "$emulator" ] || skip "no qemu-aarch64 (package qemu-user-static)"
[ -f /usr/include/catch2/catch.hpp ] || skip "no single header of Catch2 2 (package catch2 of Debian 12)"

# Compiled code that is there from before is used again: the time goes into compiling.
if have_command ccache; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
configure "$here/arm" "$build" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS_RELEASE=-O2 -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER="$compiler"
cmake --build "$build" -j "$(build_jobs)"

# The set that must be chosen on a processor, and the formats with a kernel of that set.
expect() {
  local cpu=$1 isa=$2 answer kernels
  answer=$("$emulator" -cpu "$cpu" "$build/test/chosen_kernels")
  if [ "${answer%%$'\n'*}" != "$isa" ]; then
    echo "On $cpu the set ${answer%%$'\n'*} is chosen, not $isa." >&2
    exit 1
  fi
  kernels=$(grep -c "/$isa/r8$" <<<"$answer" || true)
  if [ "$kernels" -ne 15 ]; then
    echo "On $cpu $kernels formats run on $isa, not 15:" "$answer" >&2
    exit 1
  fi
  echo "$cpu: $isa is chosen and has kernels for $kernels formats"
}
expect max i8mm
expect neoverse-n1 dotprod
expect cortex-a72 neon

# Where i8mm is, the tests run the kernels of all three sets. The older processors show that the others use
# no instruction that is not theirs: a forbidden one ends the program.
for test in isa rows packing vec_dot matmul; do
  echo "max: $test"
  "$emulator" -cpu max "$build/test/test_$test"
done
for cpu in neoverse-n1 cortex-a72; do
  for test in isa rows; do
    echo "$cpu: $test"
    "$emulator" -cpu "$cpu" "$build/test/test_$test"
  done
  echo "$cpu: matmul"
  "$emulator" -cpu "$cpu" "$build/test/test_matmul" "matmul: every*"
done
