#!/usr/bin/env bash
# Formatting, layering and static checks. clang-tidy is slow, so it reads only the sources that differ from BASE
# (default: the main branch of origin, else the last commit); ALL=1 reads every source.
#
# usage: [ALL=1] [BASE=commit] tools/lint.sh BUILD_FOLDER
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

build=${1:-build/release}
failed=()

check() {  # check NAME COMMAND...: runs it, remembers whether it failed, goes on
  local name=$1
  shift
  echo "-- $name"
  "$@" || failed+=("$name")
}

list_sources() {
  find symbind python/src examples bench tests -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) | sort
}

list_tidy_sources() {
  local base=${BASE:-}
  if [[ -z $base ]]; then base=$(git rev-parse --verify --quiet origin/main || git rev-parse --verify --quiet HEAD); fi
  if [[ -n ${ALL:-} || -z $base ]]; then
    list_sources
  else
    { git diff --name-only --diff-filter=d "$base"; git ls-files --others --exclude-standard; } | sort -u
  fi | grep -E '^(symbind|examples|bench|tests)/.*\.cc$' | while read -r source; do
    # Sources outside this build, as an absent library's folder, have no compile command.
    if grep -qF "/$source\"" "$build/compile_commands.json"; then echo "$source"; fi
  done
}

tidy() {
  # clang does not look where gcc keeps omp.h, and lacks some of gcc's warnings. Counts of warnings in other people's
  # headers are noise.
  local gcc_headers
  gcc_headers=$(dirname "$(gcc -print-file-name=include/omp.h)")
  printf '%s\n' "$@" |
    xargs -P "$(nproc)" -n 1 clang-tidy -p "$build" --quiet --extra-arg="-idirafter$gcc_headers" \
      --extra-arg=-Wno-unknown-warning-option 2> >(grep -v 'warnings\? .*generated' >&2)
}

mapfile -t sources < <(list_sources)
mapfile -t tidy_sources < <(list_tidy_sources)

if ((${#sources[@]})); then check "format" clang-format --dry-run -Werror "${sources[@]}"; fi
check "layering" python3 tests/layering/check_layering.py
check "python" .venv/bin/ruff check --no-cache .
check "python format" .venv/bin/ruff format --no-cache --check .
if ((${#tidy_sources[@]})); then check "clang-tidy on ${#tidy_sources[@]} file(s)" tidy "${tidy_sources[@]}"; fi

if ((${#failed[@]})); then
  printf 'lint: failed: %s\n' "${failed[@]}"
  exit 1
fi
echo "lint: clean"
