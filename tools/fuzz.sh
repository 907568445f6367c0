#!/usr/bin/env bash
# Runs every fuzzer of tests/fuzz in turn, so many minutes in all (MINUTES, 10 unless said otherwise). What they find is
# written to build/fuzz/found, with the commands that repeat it. Without clang the fuzzers of readers are left out.
set -uo pipefail
cd "$(dirname "$0")/.."

minutes=${MINUTES:-10}
found=build/fuzz/found
programs=build/release/tests/fuzz
readers=build/fuzz/tests/fuzz
declare -A parts=([op]=3 [graph]=3 [network]=2 [json]=1 [params]=1 [states]=1 [idx]=1 [records]=1 [record_index]=1
  [image]=2 [csv]=1 [libsvm]=1 [image_list]=1)  # of the time

build() {
  cmake --build build/release --target fuzz_op fuzz_graph || exit 1
  if ! command -v clang++ >/dev/null; then
    echo "fuzz: no clang: the readers are left out"
    return 1
  fi
  CXX=clang++ cmake -S . -B build/fuzz -G Ninja -DSYMBIND_FUZZ=ON -DSYMBIND_CUDA=OFF -DSYMBIND_ONEDNN=OFF \
    -DSYMBIND_OPENMP=OFF -DSYMBIND_PYTHON=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" --log-level=NOTICE &&
    cmake --build build/fuzz --target fuzz_network fuzz_json fuzz_params fuzz_states fuzz_idx \
      fuzz_records fuzz_record_index fuzz_image fuzz_csv fuzz_libsvm fuzz_image_list || exit 1
}

share() { awk -v all="$minutes" -v part="$1" 'BEGIN { print all * part / '"$2"' }'; }

mkdir -p "$found"
subjects=(op graph)
if build; then subjects+=(network json params states idx records record_index image csv libsvm image_list); fi
total=0
for subject in "${subjects[@]}"; do ((total += parts[$subject])); done

failed=()
for subject in "${subjects[@]}"; do
  time=$(share "${parts[$subject]}" "$total")
  echo "fuzz: $subject, $time minutes"
  if [[ $subject == op || $subject == graph ]]; then
    GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-1000} "$programs/fuzz_$subject" --minutes "$time" --out "$found" ||
      failed+=("$subject")
  else
    # Inputs that reach something new are kept from run to run; those that fail are written beside the other findings.
    mkdir -p "build/fuzz/inputs/$subject"
    seconds=$(awk -v minutes="$time" 'BEGIN { print int(minutes * 60) + 1 }')
    "$readers/fuzz_$subject" -max_total_time="$seconds" -rss_limit_mb=6000 -timeout=60 -print_final_stats=1 \
      -artifact_prefix="$found/${subject}_" "build/fuzz/inputs/$subject" "tests/fuzz/corpus/$subject" 2>&1 |
      grep -E "^stat::number_of_executed_units|^==|ERROR|SUMMARY|artifact|what\(\)"
    if ((PIPESTATUS[0])); then
      failed+=("$subject")
      echo "fuzz: repeat it with $readers/fuzz_$subject FILE"
    fi
  fi
done
if ((${#failed[@]})); then
  echo "fuzz: found something: ${failed[*]}; see $found"
  exit 1
fi
echo "fuzz: nothing found"
