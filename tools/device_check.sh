#!/usr/bin/env bash
# Everything there is to learn from a machine with a GPU, in one go: builds with CUDA (and without oneDNN, which such a
# machine may lack), runs the tests, times a training step beside PyTorch, and prints a table of what happened. A part that
# fails or takes too long does not keep the others from running; the whole takes less than ten minutes on 16 cores.
#
# usage: tools/device_check.sh [PART...]
#   cuda       the tests of the CUDA backend
#   sanitize   the same under compute-sanitizer (only when asked for)
#   bench      a training step of three networks, here and in PyTorch, and where its time goes
#   tests      every other C++ test
#   python     the tests of the Python package, where nanobind and pytest are installed
# Without a PART: cuda, bench, tests, python.
set -uo pipefail
cd "$(dirname "$0")/.."

parts=("$@")
((${#parts[@]})) || parts=(cuda bench tests python)
for wanted in "${parts[@]}"; do
  [[ " cuda sanitize bench tests python " == *" $wanted "* ]] || { echo "unknown part $wanted" >&2; exit 2; }
done
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }
build=build/device
log=$build/log
jobs=$(nproc)
mkdir -p "$log"
export PATH="$PATH:/usr/local/cuda/bin"

results=()
deadline=${DEVICE_CHECK_SECONDS:-570}
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
if wants cuda || wants sanitize; then
  part build_cuda 240 cmake --build "$build" -j "$jobs" --target test_backend
fi
# Products in full float32: devices are compared at float tolerance.
export SYMBIND_TF32=0
wants cuda && part cuda_tests 150 "$build/tests/test_backend" --gtest_brief=1 --gtest_filter='Cuda*:Gpu*'
wants sanitize && command -v compute-sanitizer >/dev/null &&
  part memcheck 300 compute-sanitizer --error-exitcode 1 "$build/tests/test_backend" --gtest_brief=1 \
    --gtest_filter='CudaOps.*:CudaMoves.*:CudaLayers.*BatchNorm*:CudaLayers.*Pooling*:CudaLayers.Reorders*-*Products*'
unset SYMBIND_TF32

# bench CASE SECONDS OPTIONS...: a case here and in PyTorch, the same batch.
bench() {
  local case=$1 limit=$2
  shift 2
  part "symbind_$case" "$limit" "$build/bench/train_step" --case "$case" --device gpu "$@"
  part "torch_$case" "$limit" python3 bench/peers/torch_gpu.py --case "$case" "$@"
}
if wants bench; then
  part build_bench 240 cmake --build "$build" -j "$jobs" --target train_step
  bench lenet-train 40 --seconds 4
  bench resnet50-train 90 --batch 128 --seconds 6
  bench mlp-train 40 --seconds 4
  SYMBIND_PROFILE=1 part profile_resnet50 60 "$build/bench/train_step" --case resnet50-train --device gpu --batch 128 \
    --seconds 1 --table "$log/resnet50_table.txt"
  SYMBIND_PROFILE=1 part profile_lenet 30 "$build/bench/train_step" --case lenet-train --device gpu --seconds 1 \
    --table "$log/lenet_table.txt"
fi

export SYMBIND_TF32=0
if wants tests; then
  part build_tests 240 cmake --build "$build" -j "$jobs" -- -k 0
  for test in "$build"/tests/test_*; do
    name=$(basename "$test")
    [[ -f $test && -x $test && $name != test_backend ]] || continue
    part "$name" 120 "$test" --gtest_brief=1
  done
fi
if wants python; then
  part build_python 240 cmake --build "$build" -j "$jobs" --target _symbind
  # Each file in a process of its own: they share the GPU and the cores.
  part python_tests 240 env PYTHONPATH="$PWD/$build/python" OMP_NUM_THREADS=2 bash -c \
    "cd tests/python && ls test_*.py | xargs -P $((jobs / 2)) -n 1 python3 -m pytest -q -p no:cacheprovider"
fi
unset SYMBIND_TF32

echo
echo "== what happened"
printf '%s\n' "${results[@]}"
wants cuda && grep -hE '\[  PASSED  \]|\[  SKIPPED \]' "$log/cuda_tests.txt" | head -n 5
wants python && awk '/ passed| failed| error/ { for (i = 1; i < NF; ++i) if ($i ~ /^[0-9]+$/) n[$(i + 1)] += $i }
  END { for (word in n) printf "Python: %d %s\n", n[word], word }' "$log/python_tests.txt"
echo
wants bench && python3 - "$log" <<'TABLE'
import json
import sys
from pathlib import Path


def row(name):
    path = Path(sys.argv[1], name + ".txt")
    for line in reversed(path.read_text().splitlines() if path.exists() else []):
        try:
            found = json.loads(line)
            return found if "ms" in found else {}
        except (ValueError, TypeError):
            continue
    return {}


def show(value, digits=4):
    return "-" if value is None else f"{value:.{digits}f}"


print(f"{'case':<18}{'batch':>6}{'Symbind ms':>12}{'PyTorch ms':>12}{'times faster':>14}{'per s':>10}{'MB':>8}{'PyTorch MB':>12}")
for case in ("mlp-train", "lenet-train", "resnet50-train"):
    ours, torch = row("symbind_" + case), row("torch_" + case)
    faster = torch["ms"] / ours["ms"] if ours and torch else None
    print(
        f"{case:<18}{ours.get('batch', '-'):>6}{show(ours.get('ms')):>12}{show(torch.get('ms')):>12}{show(faster, 2):>14}"
        f"{show(ours.get('per_s'), 0):>10}{show(ours.get('device_peak_mb'), 0):>8}{show(torch.get('device_peak_mb'), 0):>12}"
    )
TABLE

# Where the time goes, each step timed on its own: a launch and a wait add some ten microseconds to each.
for name in lenet resnet50; do
  [[ -f $log/${name}_table.txt ]] || continue
  echo
  echo "== steps of $name"
  grep -A 40 '^working memory' "$log/${name}_table.txt"
  echo "the slowest:"
  awk '$NF ~ /^[0-9.]+$/ && $1 ~ /^[0-9]+$/ { print $(NF - 1) "  " $0 }' "$log/${name}_table.txt" | sort -rn | head -n 25 |
    cut -d ' ' -f 3- | cut -c 1-160
done

[[ ${results[*]} != *failed* && ${results[*]} != *stopped* ]]
