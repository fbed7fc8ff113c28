#!/usr/bin/env bash
# check_the_checks.sh: a check that finds nothing may be right, or blind. Each rule gets a small tree that
# breaks it, and must say so; a tree that breaks none must pass.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# fresh: an innocent tree in $work/tree, on a path with a space.
tree="$work/a tree"
fresh() {
  rm -rf "$tree"
  mkdir -p "$tree"/{topology,quant/avx2,ops,runtime/include/lockstep,runtime/mpi,perf,test}
  local file
  for file in topology/a.h quant/a.h quant/avx2/simd.h ops/a.h runtime/include/lockstep/a.h perf/a.h test/a.h; do
    printf '// Innocent.\n#pragma once\n#include <vector>\n' >"$tree/$file"
  done
  printf '#include "ops/a.h"\n#include "topology/a.h"\n#pragma omp parallel\n' >"$tree/runtime/executor.cpp"
  printf '#include <mpi.h>\n#include "topology/a.h"\n' >"$tree/runtime/mpi/ranks.cpp"
  printf 'set(FLAGS -mavx2)\n' >"$tree/quant/isa.cmake"
}

# plant RULE FILE TEXT: a file that breaks one rule; expect_planted: the script names each of them.
planted=()
plant() {
  mkdir -p "$tree/$(dirname "$2")"
  printf '// Guilty.\n#pragma once\n%b\n' "$3" >"$tree/$2"
  planted+=("$1: $2")
}
expect_planted() {
  local script=$1 output finding
  shift
  output=$("$here/$script" "$tree" "$@" 2>&1) && {
    echo "$script passed a guilty tree"
    failures=$((failures + 1))
  }
  for finding in "${planted[@]}"; do
    grep -qF "$finding" <<<"$output" && continue
    echo "NOT FOUND by $script: $finding"
    failures=$((failures + 1))
  done
  planted=()
}

passes() {
  local output
  output=$("$here/$1" "$tree" "${@:2}" 2>&1) && return
  echo "FOUND SOMETHING in an innocent tree: $1:" "$output"
  failures=$((failures + 1))
}

fresh
passes check_layers.sh
passes check_tree.sh

plant layer topology/b.h '#include "quant/format.h"'
plant layer topology/c.h '#include <omp.h>'
plant layer quant/b.h '#include "ops/op.h"'
plant layer quant/c.h '#include <hwloc.h>'
plant layer quant/d.h '#  include <omp.h>'
plant layer quant/e.h '#include <Eigen/Core>'
plant layer ops/b.cpp '#include "runtime/plan.h"'
plant layer ops/c.cpp '#include "lockstep/error.h"'
plant layer ops/d.cpp '#include "topology/machine.h"'
plant layer ops/e.cpp '#include "shape.h"'
plant layer runtime/b.cpp '#include <Eigen/Core>'
plant layer runtime/c.cpp '#include <hwloc.h>'
plant layer runtime/d.cpp '#include "perf/harness.h"'
plant layer runtime/e.cpp '#include "support/catch.h"'
plant layer runtime/batch/b.cpp '#include <mpi.h>'
plant layer runtime/mpi/b.h '#include <mpi.h>'
plant layer runtime/mpi/c.cpp '#include "ops/op.h"'
plant public-header runtime/include/lockstep/b.h '#include "ops/op.h"'
plant include-from-root test/b.cpp '#include "neighbour.h"'
plant omp-outside-executor runtime/plan.cpp '  #pragma omp parallel for'
plant omp-outside-executor ops/f.cpp '#pragma omp simd'
plant library-side-effect runtime/f.cpp 'void f() { std::cerr << 1; }'
plant library-side-effect ops/g.cpp 'void f() { std::exit(1); }'
plant library-side-effect quant/f.cpp 'void f() { printf("x"); }'
plant library-side-effect topology/d.cpp 'void f() { setenv("A", "1", 1); }'
plant format-switch runtime/g.cpp '    using enum quant::Format;'
plant format-switch ops/h.cpp 'case quant::Format::q4_0:'
plant machine-flag ops/CMakeLists.txt 'target_compile_options(x PRIVATE -mavx2)'
plant machine-flag CMakePresets.json '"CMAKE_CXX_FLAGS": "-march=native"'
plant machine-flag ops/i.cpp '#pragma GCC target("avx2")'
plant pragma-once ops/j.h ''
sed -i '/pragma once/d' "$tree/ops/j.h"
expect_planted check_layers.sh

fresh
plant top-level-folder src/a.cpp ''
planted=("top-level-folder: src/:")
plant top-level-file program.log ''
plant unfinished ops/b.cpp '// TODO: later'
plant unfinished test/run.sh '# FIXME'
plant machine-path README.md "see /"work/main/x
plant machine-path ops/c.cpp '"/home/me/model.gguf"'
plant file-size ops/d.cpp "$(printf '\\n%.0s' {1..701})"
plant non-ascii ops/e.cpp '// caf\xc3\xa9'
expect_planted check_tree.sh

# Headers: one that needs its includer, one for another instruction set, and a folder without any.
compile="${CXX:-c++} -std=c++20"
fresh
passes check_headers.sh ops "$compile"
printf '#include "ops/c.h"\n' >"$tree/ops/c.cpp"
printf '#include <vector>\n#include "ops/b.h"\n' >"$tree/ops/b.cpp"
plant not-self-contained ops/b.h 'inline std::string name() { return {}; }'
expect_planted check_headers.sh ops "$compile"
fresh
printf '#ifndef FLAG\n#error the flags of the instruction set are missing\n#endif\n' >>"$tree/quant/avx2/simd.h"
passes check_headers.sh quant "$compile"
passes check_headers.sh quant "$compile" "avx2=-DFLAG -Wall"
planted=("not-self-contained: quant/avx2/simd.h")
expect_planted check_headers.sh quant "$compile" "avx2="
rm "$tree"/ops/*.h
planted=("no-headers: ops")
expect_planted check_headers.sh ops "$compile"

# Weak symbols: an inline function that is not inlined is one, a static function is not.
objects="$work/quant/CMakeFiles/lockstep_quant.dir"
mkdir -p "$objects"
weak_check() {
  printf '%s\n' "$2" | ${CXX:-c++} -O2 -x c++ -c - -o "$objects/k.o"
  printf '{\n  "directory": "%s",\n  "command": "c++ -mavx2 -o quant/CMakeFiles/lockstep_quant.dir/k.o -c k.cpp",\n' \
    "$work" >"$work/commands.json"
  local result=clean
  "$here/check_weak_symbols.sh" "$work/commands.json" 1 >/dev/null 2>&1 || result=weak
  [ "$result" = "$1" ] || {
    echo "weak symbols: expected $1, got $result for: $2"
    failures=$((failures + 1))
  }
}
weak_check weak '__attribute__((noinline)) inline int f(int x) { return x * x; } int g(int x) { return f(x); }'
weak_check clean 'static int f(int x) { return x * x; } int g(int x) { return f(x); }'
weak_check clean 'namespace Eigen_avx2 { __attribute__((noinline)) inline int f(int x) { return x; } } int g(int x) { return Eigen_avx2::f(x); }'
printf '[]\n' >"$work/commands.json"
if "$here/check_weak_symbols.sh" "$work/commands.json" 1 >/dev/null; then
  echo "weak symbols: an empty list of objects passed"
  failures=$((failures + 1))
fi

[ "$failures" -eq 0 ] && echo "every rule finds what it is for"
exit "$failures"
