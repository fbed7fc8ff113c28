#!/usr/bin/env bash
# check_headers.sh SOURCE FOLDER "COMPILER AND FLAGS" [ISA=FLAGS...]: every header of the folder compiles
# alone. One that some source includes before anything else is proved by the build (sources include their own
# header first for this reason); each of the others is included into an empty file and compiled. A header of an instruction set (quant/<isa>/) is compiled
# with the flags given for it, and passed over if there are none.
set -euo pipefail
# shellcheck source=source_files.sh
. "$(dirname "${BASH_SOURCE[0]}")/source_files.sh"
source=$1 folder=$2 compile=$3
shift 3
declare -A isa_flags
for isa in "$@"; do isa_flags[${isa%%=*}]=${isa#*=}; done

cd "$source"
# "ops/shape.h" for every source that has it as its first include.
declare -A proved
mapfile -t sources < <(cpp_files "$source" topology quant ops runtime perf test | grep '\.cpp$')
if [ ${#sources[@]} -gt 0 ]; then
  while IFS= read -r header; do
    [ -z "$header" ] || proved[$header]=1
  done < <(grep -hm1 -E '^[[:space:]]*#[[:space:]]*include' -- "${sources[@]}" | sed -nE 's/.*"([^"]+)".*/\1/p')
fi

checked=0 built=0
while IFS= read -r header; do
  flags=
  if [[ $header =~ ^quant/(scalar|avx[0-9a-z_]*|neon[0-9a-z_]*|sve[0-9a-z_]*|amx[0-9a-z_]*)/ ]]; then
    isa=${BASH_REMATCH[1]}
    [[ -v isa_flags[$isa] ]] || continue
    flags=${isa_flags[$isa]}
  fi
  name=${header#runtime/include/}
  name=${name#test/}
  if [[ -v proved[$name] ]]; then
    built=$((built + 1))
    continue
  fi
  checked=$((checked + 1))
  # shellcheck disable=SC2086  # both are lists of words
  output=$(printf '#include "%s"\n' "$name" | $compile $flags -I. -Iruntime/include -Itest -fsyntax-only -x c++ - 2>&1) ||
    report not-self-contained "$header: $(grep -m1 -E 'error' <<<"$output" || echo "$output")"
done < <(cpp_files "$source" "$folder" | grep '\.h$')
[ $((checked + built)) -gt 0 ] || report no-headers "$folder: no header found, nothing was checked"
echo "$checked headers compiled, $built compiled by the build"
finish
