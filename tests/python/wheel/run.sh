#!/usr/bin/env bash
# Builds a wheel as `pip install .` does, with nothing but what pyproject.toml asks for, installs it in every way pip knows
# and trains a small network with each, where neither the tree nor the build can be seen. CUDA is left out, since it would add
# minutes; what it changes is checked by configure.cmake.
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

# pip makes its isolated environment, and scikit-build-core its build folder, under names that differ each time, and the
# names are part of what a compiler cache goes by: every file would be compiled anew. So both have fixed paths here, the
# build folder as deep in the tree as those of the presets, and the options are those of the build in the tree.
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
environment=$tree/build/wheel-env-$version
build=$tree/build/wheel-$version
mkdir -p "$tree/build"
exec 9>"$tree/build/wheel.lock"
flock 9
requirements=$("$work/venv/bin/python" - "$tree/pyproject.toml" <<'READ'
import sys

try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
with open(sys.argv[1], "rb") as file:
    print("\n".join(tomllib.load(file)["build-system"]["requires"]))
READ
)
if [[ $(cat "$environment/made_for" 2>/dev/null) != "$python $requirements" ]]; then
  rm -rf "$environment"
  "$python" -m venv "$environment"
  echo "$requirements" >"$work/requirements.txt"
  "$environment/bin/python" -m pip install --quiet -r "$work/requirements.txt" || fail "the build's requirements failed"
  # cmake and ninja, where the system has none.
  (cd "$tree" && "$environment/bin/python" -c \
    'import scikit_build_core.build as build; print("\n".join(build.get_requires_for_build_wheel()))') \
    >"$work/requirements.txt"
  "$environment/bin/python" -m pip install --quiet -r "$work/requirements.txt" || fail "cmake and ninja failed"
  echo "$python $requirements" >"$environment/made_for"
fi
rm -rf "$build"
# The name of the compiler counts too: CMake takes c++, scikit-build-core what the Python was built with.
export CC=${CC:-cc} CXX=${CXX:-c++}
if ! PATH="$environment/bin:$PATH" "$environment/bin/python" -m pip wheel --no-deps --wheel-dir "$work/wheels" \
  --no-build-isolation --check-build-dependencies --config-settings=build-dir="$build" \
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
"$python" - "$wheel" "$tree" "$work" <<'CHECK' || fail "the wheel's contents are wrong"
import platform, sys, zipfile

names = zipfile.ZipFile(sys.argv[1]).namelist()
for due in ("symbind/__init__.py", "symbind/py.typed", "symbind/_symbind.pyi", "symbind/symbol/__init__.pyi",
            "symbind/ndarray/__init__.pyi", "symbind/lib/libsymbind.so.",
            *(["symbind/lib/libdnnl.so."] if platform.machine() == "x86_64" else []),
            *(["symbind/lib/libscipy_openblas.so"] if platform.machine() in ("x86_64", "aarch64") else [])):
    if not any(name.startswith(due) for name in names):
        sys.exit(f"{due} is missing from {names}")
strange = [name for name in names if not name.startswith(("symbind/", "symbind-")) or name.endswith((".h", ".cc"))]
if strange:
    sys.exit(f"these do not belong there: {strange}")
# No path of the machine that built it, in run paths or elsewhere.
for name in names:
    content = zipfile.ZipFile(sys.argv[1]).read(name)
    for folder in sys.argv[2:]:
        if folder.encode() in content:
            sys.exit(f"{name} contains {folder}")
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
