#!/usr/bin/env bash
# Builds a wheel as `pip install .` does, in isolation, installs it in every way pip knows and trains a small network with
# each, where neither the tree nor the build can be seen. CUDA is left out: it would add minutes and nothing to check.
#
# usage: run.sh PYTHON
set -euo pipefail

python=$1
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$here/../../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/symbind-wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH PYTHONHOME LD_LIBRARY_PATH
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1

fail() {
  echo "wheel test: $*" >&2
  exit 1
}

# try WAY PYTHON [VARIABLE=VALUE]...: runs the check far from the tree, which is hidden where the system allows that;
# elsewhere the check looks at what was loaded from where.
hide=()
# shellcheck disable=SC2016
if unshare --mount --map-root-user mount -t tmpfs none "$tree" 2>/dev/null; then
  hide=(unshare --mount --map-root-user bash -c 'mount -t tmpfs none "$0" && exec "$@"' "$tree")
fi
try() {
  local way=$1 interpreter=$2
  shift 2
  echo "-- $way"
  (cd "$work/elsewhere" && "${hide[@]}" env "$@" "$interpreter" check.py "$tree") || fail "$way failed"
}

echo "-- build with $("$python" --version)"
"$python" -m venv "$work/venv"
if ! "$work/venv/bin/python" -m pip download --quiet --no-deps --dest "$work/probe" scikit-build-core 2>/dev/null; then
  echo "skipped: pip reaches no package index, from which the build takes what it needs"
  exit 77
fi
# The options are those of the build that stands in the tree, so that a compiler cache knows most of the files.
if ! "$work/venv/bin/python" -m pip wheel --no-deps --wheel-dir "$work/wheels" \
  --config-settings=cmake.define.SYMBIND_CUDA=OFF --config-settings=cmake.define.SYMBIND_WERROR=ON "$tree" \
  >"$work/build.log" 2>&1; then
  tail -n 60 "$work/build.log"
  fail "pip wheel failed"
fi
wheel=$(echo "$work"/wheels/symbind-*.whl)
[[ -f $wheel ]] || fail "no wheel was written"
mkdir "$work/elsewhere"
cp "$here/check.py" "$work/elsewhere/"

echo "-- what is in it"
"$python" - "$wheel" <<'CHECK' || fail "the wheel's contents are wrong"
import platform, sys, zipfile

names = zipfile.ZipFile(sys.argv[1]).namelist()
for due in ("symbind/__init__.py", "symbind/py.typed", "symbind/_symbind.pyi", "symbind/symbol/__init__.pyi",
            "symbind/ndarray/__init__.pyi", "symbind/lib/libsymbind.so.",
            *(["symbind/lib/libdnnl.so."] if platform.machine() == "x86_64" else [])):
    if not any(name.startswith(due) for name in names):
        sys.exit(f"{due} is missing from {names}")
strange = [name for name in names if not name.startswith(("symbind/", "symbind-")) or name.endswith((".h", ".cc"))]
if strange:
    sys.exit(f"these do not belong there: {strange}")
CHECK

"$work/venv/bin/python" -m pip install --quiet "$wheel" || fail "pip install failed"
try "in a virtual environment" "$work/venv/bin/python"

# numpy comes from the virtual environment in the next two: pip need not fetch it again.
site=$("$work/venv/bin/python" -c 'import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))')
"$work/venv/bin/python" -m pip install --quiet --no-deps --target "$work/target" "$wheel" || fail "pip --target failed"
"$work/venv/bin/python" -m pip uninstall --quiet --yes symbind
try "with --target" "$work/venv/bin/python" "PYTHONPATH=$work/target"

# A virtual environment has a user site only together with the system's packages.
"$python" -m venv --system-site-packages "$work/with_user"
export PYTHONUSERBASE=$work/user
"$work/with_user/bin/python" -m pip install --quiet --user --no-deps "$wheel" || fail "pip --user failed"
try "with --user" "$work/with_user/bin/python" "PYTHONPATH=$site"
echo "the wheel is well"
