#!/usr/bin/env bash
# Builds, installs and tries the wheel with every Python from 3.10 to 3.13 that is on the PATH or under pyenv.
#
# usage: tools/test_pythons.sh
set -euo pipefail
cd "$(dirname "$0")/.."

find_python() {  # find_python VERSION: the first interpreter of that version which starts
  local candidate
  for candidate in "$(command -v "python$1" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
    if [[ -x $candidate ]] && "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
}

tried=() failed=()
for version in 3.10 3.11 3.12 3.13; do
  python=$(find_python $version)
  if [[ -z $python ]]; then
    echo "== Python $version: not found"
    continue
  fi
  echo "== Python $version: $python"
  tried+=("$version")
  tests/python/wheel/run.sh "$python" || failed+=("$version")
done

((${#tried[@]})) || { echo "no Python from 3.10 to 3.13 was found" >&2; exit 1; }
echo "tried: ${tried[*]}; failed: ${failed[*]:-none}"
((${#failed[@]} == 0))
