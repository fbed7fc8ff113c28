#!/usr/bin/env bash
# check_headers.sh SOURCE FOLDER "COMPILER AND FLAGS" [ISA=FLAGS...]: every header of the folder compiles
# alone, included first into an empty file. A header of an instruction set (quant/<isa>/) is compiled
# with the flags given for it, and passed over if there are none.
set -euo pipefail
# shellcheck source=source_files.sh
. "$(dirname "${BASH_SOURCE[0]}")/source_files.sh"
source=$1 folder=$2 compile=$3
shift 3
declare -A isa_flags
for isa in "$@"; do isa_flags[${isa%%=*}]=${isa#*=}; done

cd "$source"
checked=0
while IFS= read -r header; do
  flags=
  if [[ $header =~ ^quant/(scalar|avx[0-9a-z_]*|neon[0-9a-z_]*|sve[0-9a-z_]*|amx[0-9a-z_]*)/ ]]; then
    isa=${BASH_REMATCH[1]}
    [[ -v isa_flags[$isa] ]] || continue
    flags=${isa_flags[$isa]}
  fi
  checked=$((checked + 1))
  name=${header#runtime/include/}
  # shellcheck disable=SC2086  # both are lists of words
  output=$(printf '#include "%s"\n' "$name" | $compile $flags -I. -Iruntime/include -Itest -fsyntax-only -x c++ - 2>&1) ||
    report not-self-contained "$header: $(grep -m1 -E 'error' <<<"$output" || echo "$output")"
done < <(cpp_files "$source" "$folder" | grep '\.h$')
[ "$checked" -gt 0 ] || report no-headers "$folder: no header found, nothing was checked"
echo "$checked headers"
finish
