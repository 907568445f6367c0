#!/usr/bin/env bash
# Installs a build, moves the tree, hides oneDNN's original and CUDA's libraries, then builds and runs a program against
# it.
#
# usage: run.sh BUILD_FOLDER CMAKE CXX_COMPILER
set -euo pipefail

build=$1 cmake=$2 compiler=$3
here=$(cd "$(dirname "$0")" && pwd)
venv=$(cd "$here/../.." && pwd)/.venv
work=$(mktemp -d "${TMPDIR:-/tmp}/symbind-install.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
  echo "install test: $*" >&2
  exit 1
}

echo "-- install, then move"
if ! "$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"; then
  cat "$work/install.log"
  fail "cmake --install failed"
fi
mv "$work/first" "$work/moved"
library=$(find "$work/moved" -name libsymbind.so)
[[ -n $library ]] || fail "no libsymbind.so in the installed tree"

echo "-- nothing in the tree remembers where it was built"
for trace in "$venv" "$build" "$work/first"; do
  if readelf -d "$library" | grep -F "$trace"; then fail "libsymbind.so refers to $trace"; fi
  if grep -rF "$trace" "$work/moved/lib"*/cmake; then fail "the CMake package refers to $trace"; fi
done

# Asserts and debug information may name sources. A wheel has the same code (tests/python/wheel).
if grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=Release$' "$build/CMakeCache.txt"; then
  for trace in "$(cd "$here/../.." && pwd)/symbind/" "$build"; do
    if grep -qF "$trace" "$library"; then fail "libsymbind.so contains $trace"; fi
  done
fi

echo "-- CUDA is not needed to start, and none of its symbols is exported"
if readelf -d "$library" | grep NEEDED | grep -E "libcud|libcublas|libnvrtc|libnccl"; then
  fail "libsymbind.so cannot be loaded without CUDA"
fi
if nm -D --defined-only "$library" | grep -E " (cuda|cublas|cudnn|nvrtc|__cuda)[A-Za-z]"; then
  fail "libsymbind.so exports symbols of CUDA"
fi

echo "-- only what installed headers declare is exported"
python3 "$here/check_exports.py" "$library" "$work/moved/include" || fail "libsymbind.so exports too much"

echo "-- public headers, and no others, mark what they declare as exported"
while read -r header; do
  [[ -f $work/moved/include/$header ]] || fail "$header is marked SYMBIND_API and not installed"
done < <(cd "$here/../.." && grep -rl "^namespace SYMBIND_API symbind" symbind)
if unmarked=$(grep -rlE "^namespace symbind" "$work/moved/include"); then fail "not marked SYMBIND_API: $unmarked"; fi

echo "-- every installed header compiles alone"
compile_alone() {
  echo "#include \"$1\"" | "$compiler" -x c++ -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I "$work/moved/include" - ||
    { echo "install test: $1 does not compile alone" >&2; return 1; }
}
export -f compile_alone
(cd "$work/moved/include" && find symbind -name '*.h' | sort) |
  work=$work compiler=$compiler xargs -P 2 -I{} bash -c 'compile_alone {}' || fail "a header needs another before it"

# The program is built and run where neither the virtual environment's oneDNN nor CUDA's libraries can be read. That takes
# a mount namespace; where the system refuses one, the checks on what the loader resolves must do.
hide_libraries() {
  hide_onednn
  hide_cuda
}

hide_onednn() {
  local path
  for path in "$venv/include" "$venv/lib/cmake"; do
    if [[ -d $path ]]; then mount -t tmpfs none "$path"; fi
  done
  for path in "$venv"/lib/libdnnl*; do
    if [[ -f $path ]]; then mount --bind /dev/null "$path"; fi
  done
}

# In the folders that the library's run path names and in those that the system's loader knows. The driver stays.
hide_cuda() {
  local folder path
  {
    readelf -d "$library" | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]/\2/p' | tr ':' '\n' | grep '^/' || true
    PATH=$PATH:/sbin ldconfig -p | sed -n 's|.*=> \(.*\)/lib[^/]*$|\1|p'
    echo /usr/local/cuda/lib64
  } | sort -u | while read -r folder; do
    for path in "$folder"/lib{cudart,cublas,cublasLt,nvrtc,cudnn}*.so*; do
      if [[ -s $path ]]; then mount --bind /dev/null "$path"; fi
    done
  done
}

build_and_run() {
  unset LD_LIBRARY_PATH
  if ! {
    "$cmake" -S "$here/consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler" \
      -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" -DCMAKE_PREFIX_PATH="$work/moved" && "$cmake" --build "$work/build"
  } >"$work/build.log" 2>&1; then
    cat "$work/build.log"
    return 1
  fi

  local resolved
  resolved=$(ldd "$work/build/consumer")
  if grep -q "not found" <<<"$resolved"; then echo "$resolved"; return 1; fi
  # libdnnl is there exactly when the build uses oneDNN, and then it must be the copy in the moved tree.
  if grep -E "libdnnl|libsymbind" <<<"$resolved" | grep -vF "$work/moved/"; then
    echo "resolved outside the installed tree"
    return 1
  fi
  "$work/build/consumer"
}

export -f hide_libraries hide_onednn hide_cuda build_and_run
export here venv work cmake compiler library
if unshare --mount --map-root-user bash -c 'set -e; hide_libraries' 2>/dev/null; then
  echo "-- build and run a program, with the virtual environment's oneDNN and CUDA's libraries hidden"
  unshare --mount --map-root-user bash -c 'set -e; hide_libraries; build_and_run' || fail "the program failed"
else
  echo "-- build and run a program (no mount namespaces here: libraries are not hidden, only checked for)"
  build_and_run || fail "the program failed"
fi
