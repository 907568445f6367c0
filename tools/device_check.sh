#!/usr/bin/env bash
# Everything there is to learn from a machine with a GPU, in one go: builds with CUDA (and without oneDNN, which such a
# machine may lack), runs the tests, times networks beside JAX and PyTorch, and prints a table of what happened. A part that
# fails or takes too long does not keep the others from running; the whole takes less than ten minutes on 16 cores.
#
# usage: tools/device_check.sh [PART...]
#   cuda       the tests of the CUDA backend
#   sanitize   the same under compute-sanitizer (only when asked for)
#   bench      steps and predictions of ResNet-50 and of small networks, here, in JAX and in PyTorch (whose Python PEER_JAX and
#              PEER_TORCH name: python3), fit beside a bare step, and where the time goes
#   tests      every other C++ test
#   python     the tests of the Python package, where nanobind and pytest are installed
#   operators  every operator beside PyTorch, one row each (only when asked for; needs what python needs)
# Without a PART: cuda, bench, tests, python. With DEVICE_CHECK_GO_ON=1, bench keeps the rows of the call before and
# measures only what that had no time for.
set -uo pipefail
cd "$(dirname "$0")/.."

parts=("$@")
((${#parts[@]})) || parts=(cuda bench tests python)
for wanted in "${parts[@]}"; do
  [[ " cuda sanitize bench tests python operators " == *" $wanted "* ]] || { echo "unknown part $wanted" >&2; exit 2; }
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

# run_tests NAME SECONDS OPTIONS PROGRAM...: test programs concurrently, each in as many shards as keep all cores at work.
run_tests() {
  local name=$1 limit=$2 options=$3 program shard shards
  shift 3
  shards=$(($# < 4 ? jobs / $# : 4))
  part "$name" "$limit" xargs -P "$jobs" -L 1 bash -c \
    "GTEST_TOTAL_SHARDS=\$1 GTEST_SHARD_INDEX=\$2 \$0 --gtest_brief=1 $options"' || { echo "FAILED: $0"; exit 1; }' \
    < <(for program in "$@"; do
      for ((shard = 0; shard < shards; shard++)); do echo "$program $shards $shard"; done
    done)
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
wants cuda && run_tests cuda_tests 200 "--gtest_filter='Cuda*:Gpu*'" "$build/tests/test_backend"
wants sanitize && command -v compute-sanitizer >/dev/null &&
  part memcheck 300 compute-sanitizer --error-exitcode 1 "$build/tests/test_backend" --gtest_brief=1 \
    --gtest_filter='CudaOps.*:CudaMoves.*:CudaLayers.*BatchNorm*:CudaLayers.*Pooling*:CudaLayers.Reorders*-*Products*'
unset SYMBIND_TF32

# Ours and the peers in one table, fit beside a bare step, and where the time goes.
if wants bench; then
  part build_bench 240 cmake --build "$build" -j "$jobs" --target train_step fit
  go_on=${DEVICE_CHECK_GO_ON:-0}
  # run_bench NAME SECONDS OPTIONS...: a table of bench/run.py.
  run_bench() {
    local name=$1 limit=$2 left=$((deadline - SECONDS))
    shift 2
    ((go_on)) || rm -f "$log/$name.rows"
    PEER_TORCH="${PEER_TORCH:-python3}" PEER_JAX="${PEER_JAX:-python3}" part "$name" "$limit" python3 bench/run.py \
      --device gpu --build "$build" --limit $(((limit < left ? limit : left) - 5)) --results "$log/$name.rows" "$@"
  }
  # timed NAME PROGRAM OPTIONS...: a program on ResNet-50.
  timed() {
    local name=$1 program=$2
    shift 2
    ((go_on)) && [[ -s $log/$name.txt ]] && return
    part "$name" 60 "$build/bench/$program" --device gpu --batch 128 "$@"
  }
  for dtype in float32 float16 bfloat16; do
    timed fit_$dtype fit --case resnet50v1-train --dtype $dtype --rounds 3 --steps 30
  done
  for dtype in float32 float16; do
    for mode in train infer; do
      timed profile_${mode}_$dtype train_step --case resnet50v1-$mode --dtype $dtype --seconds 1 --profile \
        --table "$log/${mode}_${dtype}_plan.txt"
    done
  done
  run_bench bench_small 90 --case mlp-train --case lenet-train --dtype float32
  run_bench bench_resnet50 $((${#parts[@]} > 1 ? 150 : 540))
fi

export SYMBIND_TF32=0
if wants tests; then
  part build_tests 240 cmake --build "$build" -j "$jobs" -- -k 0
  mapfile -t programs < <(find "$build/tests" -maxdepth 1 -name 'test_*' -type f -executable)
  run_tests cpp_tests 240 "--gtest_filter='-Cuda*:Gpu*'" "${programs[@]}"
fi
if wants python; then
  part build_python 240 cmake --build "$build" -j "$jobs" --target _symbind
  # Each file in a process of its own: they share the GPU and the cores.
  part python_tests 240 env PYTHONPATH="$PWD/$build/python${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=2 bash -c \
    "cd tests/python && ls test_*.py | xargs -P $((jobs / 2)) -n 1 python3 -m pytest -q -p no:cacheprovider"
fi
unset SYMBIND_TF32
if wants operators; then
  part build_operators 240 cmake --build "$build" -j "$jobs" --target _symbind
  PEER_TORCH="${PEER_TORCH:-python3}" part operators 300 python3 bench/operators.py --device gpu --build "$build" \
    --json "$log/operators.json"
fi

echo
echo "== what happened"
printf '%s\n' "${results[@]}"
for name in cuda_tests cpp_tests; do
  [[ -f $log/$name.txt ]] && awk -v name=$name '/\[  PASSED  \]/ { n += $4 } /FAILED  \].*\(/ { print }
    END { print name ": " n " passed" }' "$log/$name.txt"
done
wants python && grep -oE '[0-9]+ (passed|failed|error)' "$log/python_tests.txt" 2>/dev/null |
  awk '{ n[$2] += $1 } END { for (word in n) printf "Python: %d %s\n", n[word], word }'
echo
if wants bench; then
  for name in bench_small bench_resnet50; do
    [[ -f $log/$name.txt ]] && tail -n +2 "$log/$name.txt"
  done
  for name in fit_float32 fit_float16 fit_bfloat16 profile_{train,infer}_float32 profile_{train,infer}_float16; do
    [[ -f $log/$name.txt ]] && echo && echo "== $name" && cat "$log/$name.txt"
  done
  # Each step timed on its own: a launch and a wait add some ten microseconds to each.
  for plan in train_float32 train_float16; do
    [[ -f $log/${plan}_plan.txt ]] || continue
    echo
    echo "== the slowest steps of $plan"
    awk '$NF ~ /^[0-9.]+$/ && $1 ~ /^[0-9]+$/ { print $(NF - 1) "  " $0 }' "$log/${plan}_plan.txt" | sort -rn | head -n 25 |
      cut -d ' ' -f 3- | cut -c 1-160
  done
fi

[[ ${results[*]} != *failed* && ${results[*]} != *stopped* ]]
