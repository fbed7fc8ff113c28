#!/usr/bin/env bash
# check_layers.sh SOURCE: the folders are layers, and a few things live in one file only. Both are promises
# of the architecture that no compiler keeps, so they are kept here.
set -euo pipefail
# shellcheck source=source_files.sh
. "$(dirname "${BASH_SOURCE[0]}")/source_files.sh"
source=$1
cd "$source"

# includes RULE ALLOWED FILE...: every include of the files must match ALLOWED as a whole, brackets and all.
includes() {
  local rule=$1 allowed=$2 line
  shift 2
  [ $# -gt 0 ] || return 0
  while IFS= read -r line; do
    [[ $line =~ \#[[:space:]]*include[[:space:]]*([\<\"][^\>\"]*[\>\"]) ]] || continue
    [[ ${BASH_REMATCH[1]} =~ ^($allowed)$ ]] || report "$rule" "$line"
  done < <(grep -IHnE '^[[:space:]]*#[[:space:]]*include' -- "$@" || true)
}

std='<[a-z_0-9]+>'
intrinsics='<(immintrin|arm_neon|arm_sve|cpuid|sys/auxv|asm/hwcap)\.h>'
system='<((sys|linux|asm)/[a-z_]+|sched|unistd|fcntl|link|dlfcn|signal|spawn|termios)\.h>'
list() { mapfile -t files < <(cpp_files "$source" "$@"); }

list topology
includes layer "$std|$system|<hwloc(/[a-z-]+)?\.h>|\"topology/[^\"]*\"" "${files[@]}"
list quant
includes layer "$std|$intrinsics|\"quant/[^\"]*\"" "${files[@]}"
list ops
includes layer "$std|$intrinsics|<Eigen/[A-Za-z/]+(\.h)?>|\"(ops|quant)/[^\"]*\"" "${files[@]}"
list runtime
mpi=()
others=()
for file in "${files[@]}"; do
  case $file in
    runtime/mpi/*.cpp) mpi+=("$file") ;;
    *) others+=("$file") ;;
  esac
done
files=("${others[@]}")
# MPI is for one library that the command alone links.
includes layer "$std|$system|<mpi\.h>|\"(runtime|lockstep|topology)/[^\"]*\"" "${mpi[@]}"
includes layer "$std|$system|<(omp|pcre2)\.h>|<(fmt|nlohmann|CLI)/[a-z_A-Z]+\.(h|hpp)>|\"(runtime|lockstep|ops|quant|topology)/[^\"]*\"" \
  "${files[@]}"
# The public headers must be usable from an installed tree by themselves.
list runtime/include
includes public-header "<[a-z_0-9]+(\.h)?>|\"lockstep/[^\"]*\"" "${files[@]}"
list perf test
matches include-from-root '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^/"]*"' "${files[@]}"

list topology quant ops runtime
parallel=()
threads=()
for file in "${files[@]}"; do
  case $file in
    runtime/executor.cpp) ;;
    *) parallel+=("$file") ;;
  esac
  case $file in
    runtime/cli/*) ;;
    *) threads+=("$file") ;;
  esac
done
matches omp-outside-executor '^[[:space:]]*#[[:space:]]*pragma[[:space:]]+omp|_Pragma\([[:space:]]*"omp' \
  "${parallel[@]}"
# The library never prints, exits or sets environment variables; the command line does.
matches library-side-effect \
  '(^|[^A-Za-z_0-9:])(std::)?(cout|cerr|clog|printf|fprintf|puts|abort|exit|_exit|setenv|putenv|unsetenv)([[:space:]]*\(|[[:space:]]*<<)' \
  "${threads[@]}"

list topology ops runtime perf test
matches format-switch 'case[[:space:]]+([a-z]+::)*Format::|using[[:space:]]+enum[[:space:]]+([a-z]+::)*Format[[:space:]]*;' \
  "${files[@]}"

mapfile -t files < <(all_files "$source" | grep -E '(^|/)CMakeLists\.txt$|\.cmake$|CMakePresets\.json$' |
  grep -vE '^(quant/isa\.cmake|test/hygiene/)')
matches machine-flag '(^|[^A-Za-z0-9_-])-m(arch|cpu|tune|avx|sse|fma|f16c|bmi|fpu)' "${files[@]}"
list topology quant ops runtime perf
matches machine-flag '#[[:space:]]*pragma[[:space:]]+(GCC|clang)[[:space:]]+(target|attribute)' "${files[@]}"

list topology quant ops runtime perf test
for file in "${files[@]}"; do
  [[ $file != *.h ]] || grep -q '^#pragma once$' "$file" || report pragma-once "$file:1: no #pragma once"
done
finish
