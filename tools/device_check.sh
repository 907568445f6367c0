#!/usr/bin/env bash
# For a machine with a GPU: builds with CUDA (and without oneDNN, which such a machine may lack), runs the tests and, if asked
# for, times networks and operators beside JAX and PyTorch; prints a table of what happened. A part that fails or takes too long
# does not keep the others from running.
#
# On 16 cores one or two parts take less than ten minutes, all parts take longer. A run can be divided into parts, and a part of
# tests into shards (DEVICE_CHECK_SHARD) or by the names of tests (DEVICE_CHECK_FILTER). All runs share the build in build/device.
#
# usage: tools/device_check.sh [PART...]
#   cuda       the tests of the CUDA backend, and networks with poisoned memory
#   tests      every other C++ test
#   python     the tests of the Python package, where nanobind and pytest are installed
#   sanitize   tests of our own CUDA kernels under compute-sanitizer (only when asked for)
#   bench      steps and predictions of ResNet-50 and of small networks, here, in JAX and in PyTorch (whose Python PEER_JAX and
#              PEER_TORCH name: python3), fit beside a bare step, and where the time goes, by class and, where CUPTI is
#              installed, by kernel (only when asked for)
#   operators  every operator beside PyTorch, one row each (only when asked for; needs what python needs)
# Without a PART: cuda, tests, python; nothing is timed.
#   DEVICE_CHECK_SECONDS=570   when to stop
#   DEVICE_CHECK_FILTER=…      the tests of cuda and of sanitize, as for --gtest_filter
#   DEVICE_CHECK_SHARD=1/2     the first of two runs that together do the jobs of cuda, tests, python and sanitize; 2/2: the other
#   DEVICE_CHECK_ARCHITECTURES=90   what kernels are compiled for, as in CMAKE_CUDA_ARCHITECTURES
#   DEVICE_CHECK_TOOLS=…       what sanitize runs: racecheck and memcheck
#   DEVICE_CHECK_GO_ON=1       bench keeps the rows of the call before and measures only what that had no time for
#   SYMBIND_LAPACK_LIBRARY=…   libscipy_openblas.so; without it one that SciPy brought is used, and where there is none, tests
#                              that factorize matrices on the CPU are skipped
set -uo pipefail
cd "$(dirname "$0")/.."

parts=("$@")
((${#parts[@]})) || parts=(cuda tests python)
for wanted in "${parts[@]}"; do
  [[ " cuda sanitize bench tests python operators " == *" $wanted "* ]] || { echo "unknown part $wanted" >&2; exit 2; }
done
shard=${DEVICE_CHECK_SHARD:-1/1}
if ! [[ $shard =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] || ((${shard%/*} > ${shard#*/})); then
  echo "DEVICE_CHECK_SHARD=$shard is not of the form 1/2" >&2
  exit 2
fi
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }
build=build/device
log=$build/log
mkdir -p "$log"
mapfile -t cores < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
jobs=${#cores[@]}
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

# gtest_jobs PROGRAM MOST FILTER [PREFIX]: a line per shard of a test program, MOST of them if it has as many tests. The prefix,
# variables or a command that runs the program, comes before it.
gtest_jobs() {
  local program=$1 most=$2 filter=$3 prefix=${4:-} count shard
  [[ -x $program ]] || return
  count=$("$program" --gtest_list_tests --gtest_filter="$filter" 2>/dev/null | grep -c '^  ')
  ((count < most)) && most=$count
  for ((shard = 0; shard < most; shard++)); do
    echo "env GTEST_TOTAL_SHARDS=$most GTEST_SHARD_INDEX=$shard $prefix $program --gtest_filter='$filter'"
  done
}

# run_jobs NAME SECONDS: the commands of standard input, a line each, that are in this run's shard, as many concurrently as there
# are cores. Each has two cores: test programs that all used all of them would spend their time waiting for each other's threads.
run_jobs() {
  local name=$1 folder=$log/$1
  rm -rf "$folder"
  mkdir -p "$folder"
  nl -ba -w 1 -s ' ' | awk -v own="${shard%/*}" -v all="${shard#*/}" 'NR % all == own % all' >"$folder/commands"
  [[ -s $folder/commands ]] || return 0
  part "$name" "$2" xargs -a "$folder/commands" -d '\n' -P "$jobs" --process-slot-var=SLOT -n 1 bash -c '
    cores=('"${cores[*]}"') number=${2%% *}
    taskset -c "${cores[SLOT % ${#cores[@]}]},${cores[(SLOT + 1) % ${#cores[@]}]}" bash -c "${2#* }" >"$1/$number.txt" 2>&1 && exit
    echo "FAILED: ${2#* }"
    grep -E "Failure|FAILED|Error|fatal" "$1/$number.txt" | head -n 5
    exit 1' jobs "$folder"
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

# LAPACK for the CPU: SciPy brings one, under a longer name.
lapack=()
if [[ -z ${SYMBIND_LAPACK_LIBRARY:-} ]]; then
  SYMBIND_LAPACK_LIBRARY=$(python3 -c 'import pathlib, scipy
for found in pathlib.Path(scipy.__file__).parents[1].glob("scipy.libs/libscipy_openblas-*.so"): print(found)' 2>/dev/null |
    head -n 1)
fi
if [[ -n $SYMBIND_LAPACK_LIBRARY ]]; then
  mkdir -p "$build/lapack"
  ln -sf "$SYMBIND_LAPACK_LIBRARY" "$build/lapack/libscipy_openblas.so"
  export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(dirname "$SYMBIND_LAPACK_LIBRARY")" # what it needs itself
  lapack=(-DSYMBIND_LAPACK_LIBRARY="$PWD/$build/lapack/libscipy_openblas.so")
fi

generator=()
command -v ninja >/dev/null && generator=(-G Ninja)
part configure 60 cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DSYMBIND_ONEDNN=OFF \
  -DSYMBIND_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="${DEVICE_CHECK_ARCHITECTURES:-90}" -DSYMBIND_BUILD_EXAMPLES=OFF \
  -DSYMBIND_WERROR=OFF "${lapack[@]}"

# All in one call: no core waits for the last file of a part.
targets=()
if wants cuda || wants sanitize; then targets+=(test_backend); fi
if wants bench; then
  targets+=(train_step fit)
  cmake --build "$build" --target help 2>/dev/null | grep -q '\bkernel_trace\b' && targets+=(kernel_trace)
fi
wants tests && targets+=(test_programs)
if wants python || wants operators; then
  if cmake --build "$build" --target help 2>/dev/null | grep -q '\b_symbind\b'; then
    targets+=(_symbind)
  else
    results+=("$(printf '%-24s %-20s' python "not built: is nanobind installed?")")
  fi
fi
part build 420 cmake --build "$build" -j "$jobs" --target "${targets[@]}" -- -k 0

# Products in full float32: devices are compared at float tolerance.
export SYMBIND_TF32=0
backend=$build/tests/test_backend
cuda_tests='Cuda*:Gpu*:FollowedSteps.*'
filter=${DEVICE_CHECK_FILTER:-$cuda_tests}
# all_jobs: the programs whose tests take longest come first.
all_jobs() {
  if wants cuda; then
    gtest_jobs "$backend" 999 "$filter" # a process for each test
    gtest_jobs "$backend" 999 'CudaNetworks.*:CudaBatchNormPair.*' SYMBIND_POISON=1
  fi
  if wants tests; then
    gtest_jobs "$backend" 999 "-$cuda_tests"
    for program in "$build"/tests/test_{oracle,ops,exec}; do gtest_jobs "$program" $((4 * jobs)) '*'; done
    for program in "$build"/tests/test_*; do
      [[ -d $program || $program == */test_@(backend|oracle|ops|exec) ]] || gtest_jobs "$program" "$jobs" '*'
    done
  fi
  if wants python && [[ " ${targets[*]} " == *" _symbind "* ]]; then
    for file in tests/python/test_*.py; do
      echo "env PYTHONPATH=$PWD/$build/python${PYTHONPATH:+:$PYTHONPATH} python3 -m pytest -q -p no:cacheprovider --durations=5 $file"
    done
  fi
}
run_jobs tests 400 < <(all_jobs)
# Our own kernels, a process for each test: racecheck first, as it takes longer.
sanitize_jobs() {
  local own='CudaBatchNormPair.*:CudaReluSigns.*:CudaStatistics.*:CudaProduct.*:Cuda/OneFirstLayer.*:CudaMaxPool.*'
  own+=':CudaUpdate.*:CudaScaledLoss.*:CudaGradientWatch.*:CudaLayers.*:CudaMoves.*:CudaOps.*'
  own+=':CudaTransferTest.UploadsConvert*:CudaFewRows.*:CudaImage*:CudaPlaneGradient.*:CudaStep.*:FollowedSteps.*:CudaMetric*'
  own+=':CudaRnn*:Cuda*Captured*:Cuda/LargerConvolution*:Cuda/OneConvolution*:Cuda/WhatAConvolutionTakesIn*'
  for tool in ${DEVICE_CHECK_TOOLS:-racecheck memcheck}; do
    gtest_jobs "$backend" 999 "${DEVICE_CHECK_FILTER:-$own}" "timeout 150 compute-sanitizer --tool $tool --error-exitcode 1"
  done
}
wants sanitize && command -v compute-sanitizer >/dev/null && run_jobs sanitize 400 < <(sanitize_jobs)
unset SYMBIND_TF32

# Ours and the peers in one table, fit beside a bare step, and where the time goes.
if wants bench; then
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
  if [[ -f $build/bench/libkernel_trace.so ]]; then
    part kernels_float16 60 python3 bench/kernel_trace.py --library "$build/bench/libkernel_trace.so" \
      --sequence "$log/kernels_float16_sequence.txt" -- \
      "$build/bench/train_step" --device gpu --batch 128 --case resnet50v1-train --dtype float16 --seconds 0.3
  fi
  run_bench bench_small 120 --case mlp-train --case lenet-train --case lstm650-train --dtype float32
  run_bench bench_b256 60 --case resnet50v1-train --dtype float16 --batch 256
  run_bench bench_resnet50 540
fi

if wants operators; then
  PEER_TORCH="${PEER_TORCH:-python3}" part operators 300 python3 bench/operators.py --device gpu --build "$build" \
    --json "$log/operators.json"
fi

echo
echo "== what happened"
printf '%s\n' "${results[@]}"
for name in tests sanitize; do
  [[ -s $log/$name/commands ]] &&
    echo "$name: $(grep -c . <(ls "$log/$name" | grep '\.txt$')) of $(wc -l <"$log/$name/commands") jobs were started"
done
if [[ -s $log/tests/commands ]]; then
  cat "$log"/tests/*.txt >"$log/all_tests.txt"
  awk '/^\[  PASSED  \]/ { n += $4 } /^\[  SKIPPED \] [0-9]/ { skipped += $4 } /^\[  FAILED  \].*\(/ { print }
    END { print "C++: " n " passed, " skipped + 0 " skipped" }' "$log/all_tests.txt"
  grep -E '^[0-9]+ (passed|failed|skipped|error).* in [0-9.]+s' "$log/all_tests.txt" | grep -oE '[0-9]+ (passed|failed|skipped|error)' |
    awk '{ n[$2] += $1 } END { for (word in n) printf "Python: %d %s\n", n[word], word }'
  grep -hE -A 1 ': Skipped$|^Skipped$' "$log/all_tests.txt" | grep -vE 'Skipped$|^--|^$' | sort | uniq -c | sort -rn | head -n 10
  echo "the slowest tests:"
  { sed -nE 's/^\[ +(OK|FAILED) +\] ([^ ,]+).*\(([0-9]+) ms\)$/\3 \2/p' "$log/all_tests.txt"
    sed -nE 's/^([0-9]+)\.([0-9]{2})s call +(.*)$/\1\20 \3/p' "$log/all_tests.txt"; } |
    sort -rn | head -n 15 | awk '{ printf "%8.1f s  %s\n", $1 / 1000, $2 }'
fi
echo
if wants bench; then
  for name in bench_small bench_b256 bench_resnet50; do
    [[ -f $log/$name.txt ]] && tail -n +2 "$log/$name.txt"
  done
  for name in fit_float32 fit_float16 fit_bfloat16 profile_{train,infer}_float32 profile_{train,infer}_float16 kernels_float16; do
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

[[ ${results[*]} != *failed* && ${results[*]} != *stopped* && ${results[*]} != *"not built"* ]]
