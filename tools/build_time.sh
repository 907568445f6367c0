#!/usr/bin/env bash
# How long a clean build takes: the library, tests, examples and benchmarks without CUDA, with no help from ccache. The
# figure in docs/benchmarks.md comes from here; look at it when a change makes builds slower.
set -euo pipefail
cd "$(dirname "$0")/.."
export CCACHE_DISABLE=1
folder=build/timing
rm -rf "$folder"
cmake --preset release -B "$folder" -DSYMBIND_CUDA=OFF --log-level=NOTICE >/dev/null
begin=$SECONDS
cmake --build "$folder" --target symbind >/dev/null
library=$((SECONDS - begin))
cmake --build "$folder" >/dev/null
echo "library: $library s, everything: $((SECONDS - begin)) s, on $(nproc) cores"
rm -rf "$folder"
