#!/usr/bin/env bash
# Runs the tests of a build made with CUDA on a machine with a GPU. It needs nothing but the tree, with the build folder
# and .venv/lib in it, so a build made elsewhere can be brought along.
#
# usage: tools/test_gpu.sh [BUILD_FOLDER] [GTEST_FLAG...]
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/release}
shift || true
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || { echo "no GPU here" >&2; exit 1; }

# Devices are compared at float tolerance, which TF32 does not reach.
export SYMBIND_TF32=${SYMBIND_TF32:-0}

failed=()
found=0
for test in "$build"/tests/test_*; do
  [[ -x $test && ! -d $test ]] || continue
  found=1
  echo "-- $(basename "$test")"
  "$test" --gtest_brief=1 "$@" || failed+=("$(basename "$test")")
done

((found)) || { echo "no tests in $build; build them where nvcc is, by: make build" >&2; exit 1; }
if ((${#failed[@]})); then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
