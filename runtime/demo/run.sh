#!/usr/bin/env bash
# runtime/demo/run.sh [OPTION OF lockstep batch]...: from a fresh clone to answers. Installs what is missing,
# builds the command, and runs the requests beside this script on the model beside this script.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=dependencies.sh
. "$root/runtime/demo/dependencies.sh"

build=$root/build
install_dependencies build
options=(-DCMAKE_BUILD_TYPE=Release)
# A folder that test/run.sh has configured keeps its tests; a new one needs no Catch2 for this. Warnings of
# a compiler newer than ours are no reason to have no demo.
[ -f "$build/CMakeCache.txt" ] ||
  options+=(-DLOCKSTEP_TESTS=OFF -DLOCKSTEP_PERF=OFF -DLOCKSTEP_WERROR=OFF)
configure "$root" "$build" "${options[@]}"
cmake --build "$build" --target lockstep_cli -j "$(build_jobs)"

# The command refuses to overwrite answers; these are its own from last time.
answers=$build/demo/answers.jsonl
mkdir -p "$build/demo"
rm -f "$answers"
"$build/bin/lockstep" batch --input "$root/runtime/demo/requests.jsonl" --output "$answers" --show "$@"
echo "Answers: $answers"
