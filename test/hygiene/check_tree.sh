#!/usr/bin/env bash
# check_tree.sh SOURCE: the shape of the tree (folders, file sizes) and what no file may hold.
set -euo pipefail
# shellcheck source=source_files.sh
. "$(dirname "${BASH_SOURCE[0]}")/source_files.sh"
source=$1
cd "$source"

mapfile -t files < <(all_files "$source")
while IFS= read -r folder; do
  case $folder in
    topology | quant | ops | runtime | perf | test | .ci) ;;
    *) report top-level-folder "$folder/: not on the design card" ;;
  esac
done < <(printf '%s\n' "${files[@]}" | grep / | cut -d/ -f1 | sort -u)
while IFS= read -r file; do
  case $file in
    CMakeLists.txt | CMakePresets.json | README.md | LICENSE | .*) ;;
    *) report top-level-file "$file: not on the design card" ;;
  esac
done < <(printf '%s\n' "${files[@]}" | grep -v /)

# Written so that these lines do not match themselves. Documents and data may say what they like about
# other people's folders, but then as an example: ~/models.
unfinished='(^|[^A-Za-z_])(TO[D]O|FIX[M]E|X[X]X|HA[C]K|TB[D]|WI[P])([^A-Za-z_]|$)'
machine='(^|[^A-Za-z0-9_.~*$}>-])/(work|home|root|mnt|Users)/[A-Za-z0-9_.]'
text=()
for file in "${files[@]}"; do
  case $file in
    test/hygiene/check_the_checks.sh | LICENSE) continue ;;
    *.h | *.cpp | *.cmake | *.txt | *.sh | *.py | *.json | *.md | .ci/*) text+=("$file") ;;
  esac
done
matches unfinished "$unfinished" "${text[@]}"
matches machine-path "$machine" "${text[@]}"

sized=()
ascii=()
for file in "${text[@]}"; do
  case $file in
    *.h | *.cpp | *.cmake | *.sh | *CMakeLists.txt) sized+=("$file") ascii+=("$file") ;;
    *.py | .ci/*) sized+=("$file") ;;
  esac
done
while read -r lines file; do
  [ "$file" = total ] || [ "$lines" -le 700 ] || report file-size "$file:$lines: more than 700 lines"
done < <(wc -l -- "${sized[@]}")
# Test data may hold any bytes; sources are ASCII, so that everybody sees the same text everywhere.
while IFS= read -r line; do report non-ascii "$line"; done < <(LC_ALL=C grep -HnP '[^\x00-\x7F]' -- "${ascii[@]}" || true)
finish
