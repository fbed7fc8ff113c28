#!/usr/bin/env bash
# check_weak_symbols.sh COMPILE_COMMANDS EXPECT_SOME: objects compiled for an instruction set that not every
# processor has may define no weak symbols. The linker keeps one copy of a weak function for everybody,
# and if it keeps the one with the newer instructions, older processors die in an innocent std::vector.
# Names in a namespace renamed for the instruction set (Eigen_avx2) are nobody else's and allowed.
# EXPECT_SOME=1: it is an error if no such object is found.
set -euo pipefail
commands=$1 expect_some=$2

objects() {
  # "directory" and "command" are lines of their own, in this order.
  local directory= line
  while IFS= read -r line; do
    case $line in
      *'"directory":'*) directory=$(sed -E 's/.*"directory": "(.*)",?$/\1/' <<<"$line") ;;
      *'"command":'*)
        [[ $line =~ \ -m(avx|fma|f16c|arch|sse4|cpu) ]] || continue
        [[ $line =~ \ -o\ ([^ ]*(quant|ops|runtime|topology)/[^ ]*/lockstep[^ ]*)\  ]] || continue
        local object=${BASH_REMATCH[1]}
        [[ $object = /* ]] || object=$directory/$object
        printf '%s\n' "$object"
        ;;
    esac
  done <"$commands"
}

count=0 problems=0
while IFS= read -r object; do
  [ -f "$object" ] || { echo "not built: $object"; problems=$((problems + 1)); continue; }
  count=$((count + 1))
  # DW.ref.* is a pointer; __clang_call_terminate only calls the library.
  weak=$(nm --defined-only "$object" | awk '$2 ~ /^[VWuvw]$/ { print $2, $3 }' |
    grep -vE '^. (DW\.ref\.|__clang_call_terminate$)|[0-9]+Eigen_[a-z0-9_]+' || true)
  [ -n "$weak" ] || continue
  echo "weak symbols in $object:"
  c++filt <<<"$weak"
  problems=$((problems + 1))
done < <(objects)
echo "$count objects with instruction-set flags"
if [ "$count" -eq 0 ] && [ "$expect_some" = 1 ]; then
  echo "none found, so nothing was checked"
  problems=1
fi
[ "$problems" -eq 0 ]
