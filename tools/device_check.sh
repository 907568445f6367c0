#!/usr/bin/env bash
# Everything there is to learn from a machine with a GPU, in one go: builds with CUDA (and without oneDNN, which such a
# machine may lack), runs the tests, times a training step beside PyTorch, and prints a table of what happened. A part that
# fails or takes too long does not keep the others from running; the whole takes less than eight minutes on 16 cores.
#
# usage: tools/device_check.sh [--sanitize]      --sanitize: the CUDA tests once more under compute-sanitizer
set -uo pipefail
cd "$(dirname "$0")/.."

sanitize=0
[[ ${1:-} == --sanitize ]] && sanitize=1
build=build/device
log=$build/log
jobs=$(nproc)
mkdir -p "$log"
export PATH="$PATH:/usr/local/cuda/bin"

results=()
deadline=${DEVICE_CHECK_SECONDS:-470}
# part NAME SECONDS COMMAND...: runs a command within its time, keeps what it prints, and notes how it ended.
part() {
  local name=$1 limit=$2 begin=$SECONDS status=0 outcome
  shift 2
  ((limit > deadline - SECONDS)) && limit=$((deadline - SECONDS))
  if ((limit < 5)); then
    results+=("$(printf '%-24s %-20s' "$name" "stopped: no time left")")
    return 1
  fi
  echo "== $name"
  timeout --kill-after=5 "$limit" "$@" >"$log/$name.txt" 2>&1 || status=$?
  case $status in
    0) outcome=passed ;;
    124 | 137) outcome="stopped after ${limit} s" ;;
    *) outcome="failed ($status)" ;;
  esac
  if ((status)); then
    grep -E 'FAILED:|error:|Failure|FAILED|Error|fatal' "$log/$name.txt" | head -n 25
    tail -n 25 "$log/$name.txt"
  fi
  results+=("$(printf '%-24s %-20s %4d s' "$name" "$outcome" $((SECONDS - begin)))")
  return $status
}

echo "== machine"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || echo "no GPU answers"
nvcc --version 2>/dev/null | tail -n 2 | head -n 1
"${CXX:-g++}" --version | head -n 1
cmake --version | head -n 1
echo "cores: $jobs"
"${CXX:-g++}" -E -P -x c++ - 2>/dev/null <<'CHECK' | sed '/^$/d'
#if !__has_include(<gtest/gtest.h>)
GoogleTest is missing here: the build will fail
#endif
#if !__has_include(<nlohmann/json.hpp>)
nlohmann-json is missing here: the build will fail
#endif
#if !__has_include(<zlib.h>)
the headers of zlib are missing here: the build will fail
#endif
CHECK

generator=()
command -v ninja >/dev/null && generator=(-G Ninja)
part configure 60 cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DSYMBIND_ONEDNN=OFF \
  -DSYMBIND_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=90 -DSYMBIND_BUILD_EXAMPLES=OFF -DSYMBIND_WERROR=OFF

# What the GPU needs comes first: if time runs out, it is the rest that is missing.
part build_gpu 200 cmake --build "$build" -j "$jobs" --target test_backend train_step

# Products in full float32: devices are compared at float tolerance.
export SYMBIND_TF32=0
part cuda_tests 90 "$build/tests/test_backend" --gtest_brief=1 --gtest_filter='Cuda*:Gpu*'
((sanitize)) && command -v compute-sanitizer >/dev/null &&
  part memcheck 200 compute-sanitizer --error-exitcode 1 "$build/tests/test_backend" --gtest_brief=1 \
    --gtest_filter='CudaOps.*-*Products*'

unset SYMBIND_TF32
part bench_symbind 40 "$build/bench/train_step" --case mlp-train --device gpu --seconds 6
part bench_torch 60 python3 bench/peers/torch_gpu.py --case mlp-train --seconds 6

export SYMBIND_TF32=0
part build_tests 120 cmake --build "$build" -j "$jobs" -- -k 0
for test in "$build"/tests/test_*; do
  name=$(basename "$test")
  [[ -f $test && -x $test ]] || continue
  part "$name" 45 "$test" --gtest_brief=1
done
unset SYMBIND_TF32

echo
echo "== what happened"
printf '%s\n' "${results[@]}"
grep -hE '\[  PASSED  \]|\[  SKIPPED \]' "$log/cuda_tests.txt" | head -n 5
echo
python3 - "$log" <<'TABLE'
import json
import sys
from pathlib import Path


def milliseconds(name):
    for line in reversed(Path(sys.argv[1], name).read_text().splitlines() if Path(sys.argv[1], name).exists() else []):
        try:
            return json.loads(line)["ms"]
        except (ValueError, KeyError, TypeError):
            continue
    return None


ours, torch = milliseconds("bench_symbind.txt"), milliseconds("bench_torch.txt")
show = lambda value: "-" if value is None else f"{value:.4f}"
print(f"{'case':<12}{'Symbind ms':>12}{'PyTorch ms':>12}{'ours / PyTorch':>16}{'times faster':>14}")
ratio = ours / torch if ours and torch else None
faster = torch / ours if ours and torch else None
print(f"{'mlp-train':<12}{show(ours):>12}{show(torch):>12}{show(ratio):>16}{show(faster):>14}")
TABLE

[[ ${results[*]} != *failed* && ${results[*]} != *stopped* ]]
