# Sourced by the checks: which files a check looks at. Tracked files where there is a git checkout, so that
# somebody's half-written file fails nobody; every file outside of build folders where there is none.
# Paths come relative to the source folder $1, one a line.
all_files() {
  if [ -e "$1/.git" ] && git -C "$1" rev-parse --git-dir >/dev/null 2>&1; then
    git -C "$1" ls-files | while IFS= read -r file; do
      [ ! -f "$1/$file" ] || printf '%s\n' "$file"
    done
  else
    (cd "$1" && find . -path './build*' -prune -o -type f -print | sed 's|^\./||')
  fi
}

# C++ sources and headers below the folders named after $1.
cpp_files() {
  local source=$1
  shift
  local folders
  folders=$(IFS='|' && printf '%s' "$*")
  all_files "$source" | grep -E "^($folders)/.*\.(h|cpp)\$" || true
}

problems=0
# report RULE TEXT: one line per finding, "rule: file:line: text".
report() {
  printf '%s: %s\n' "$1" "$2"
  problems=$((problems + 1))
}

# matches RULE PATTERN FILE...: reports each line of the files that matches.
matches() {
  local rule=$1 pattern=$2 line
  shift 2
  [ $# -gt 0 ] || return 0
  while IFS= read -r line; do report "$rule" "$line"; done < <(grep -IHnE -e "$pattern" -- "$@" || true)
}

finish() {
  if [ "$problems" -gt 0 ]; then
    echo "$problems problem(s)"
    exit 1
  fi
  echo "nothing found"
}
