#!/usr/bin/env bash
# Brings together what a build needs: Debian packages, and a virtual environment .venv in the tree for what PyPI has.
# Every `make` target calls it; when nothing is missing it takes a moment. As root it installs missing packages, for
# anyone else it prints the one line that does.
#
# usage: tools/setup.sh [lint|fuzz]   lint: the formatters and checkers as well; fuzz: clang and its fuzzer
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-build}
venv=.venv
compiler=${CXX:-g++}
oldest_gcc=12 oldest_cmake=3.22 oldest_ninja=1.10
export PATH="$PWD/$venv/bin:$PATH"

python_headers_check="
import os, sys, sysconfig
sys.exit(sys.base_prefix == '/usr' and not os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h')))"

# Can clang link a fuzzer? Its runtime is a package of its own.
has_fuzzer() {
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++ -x c++ -fsanitize=fuzzer - -o /dev/null 2>/dev/null
}

# The major version of clang: of the one there is, or of the one that Debian's package would bring.
clang_version() {
  if have clang++; then
    clang++ -dumpversion | cut -d. -f1
  else
    apt-cache depends clang 2>/dev/null | grep -oEm1 'clang-[0-9]+' | cut -d- -f2
  fi
}

say() { echo "setup: $*"; }
die() { echo "setup: $*" >&2; exit 1; }
have() { command -v "$1" >/dev/null; }
at_least() { [[ $(printf '%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

[[ -w . ]] || die "$(id -un) may not write here, where .venv and build/ belong; work in a copy of your own."

# Two builds started concurrently set up one after the other.
if have flock; then
  exec 9<tools/setup.sh
  flock 9
fi

# ---- Debian packages -------------------------------------------------------------------------------------------------
missing_packages() {
  have "$compiler" || echo g++
  python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  # Only the system's own Python can get its headers from a package; without them the Python package is left out.
  python3 -c "$python_headers_check" 2>/dev/null || echo python3-dev
  if have "$compiler"; then
    "$compiler" -E -P -x c++ - <<'CHECK' | sed 's/missing_//;s/_/-/g'
#if !__has_include(<gtest/gtest.h>)
missing_libgtest_dev
#endif
#if !__has_include(<nlohmann/json.hpp>)
missing_nlohmann_json3_dev
#endif
#if !__has_include(<zlib.h>)
missing_zlib1g_dev
#endif
#if !__has_include(<jpeglib.h>)
missing_libjpeg_dev
#endif
#if !__has_include(<png.h>)
missing_libpng_dev
#endif
CHECK
  else
    printf '%s\n' libgtest-dev nlohmann-json3-dev zlib1g-dev libjpeg-dev libpng-dev
  fi
  if [[ $purpose == lint ]]; then
    have clang-format || echo clang-format
    have clang-tidy || echo clang-tidy
  fi
  if [[ $purpose == fuzz ]]; then
    have clang++ || echo clang
    has_fuzzer || { version=$(clang_version) && echo "libclang-rt-$version-dev"; }
  fi
}

# What a build does without: ccache makes it quicker, Open MPI and rsync are for jobs of several workers. They are never asked
# for, but installed where that is possible.
optional_packages() {
  [[ $(id -u) == 0 ]] && have apt-get || return 0
  have ccache || echo ccache
  have mpirun || echo openmpi-bin
  have rsync || echo rsync
  if have "$compiler" && ! "$compiler" -E -x c++ -DOMPI_SKIP_MPICXX - >/dev/null 2>&1 <<<'#if !__has_include(<mpi.h>) && !__has_include(<mpi/mpi.h>)
#error
#endif'; then
    echo libopenmpi-dev
  fi
}

install_packages() {
  if ! have apt-get; then
    die "missing: $*. These are Debian's names; install your system's counterparts and run this again."
  elif [[ $(id -u) != 0 ]]; then
    echo "sudo apt-get install -y $*" >&2
    exit 1
  fi
  say "installing $*"
  export DEBIAN_FRONTEND=noninteractive
  if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }; then
    die "apt-get could not install: $*"
  fi
}

mapfile -t missing < <(missing_packages)
if ((${#missing[@]})); then
  mapfile -t optional < <(optional_packages)
  install_packages "${missing[@]}" ${optional[@]+"${optional[@]}"}
  mapfile -t missing < <(missing_packages)
  # clang's runtime is named by its version, which may be known only when clang is there.
  if ((${#missing[@]})); then
    install_packages "${missing[@]}"
    mapfile -t missing < <(missing_packages)
  fi
  if ((${#missing[@]})); then die "still missing after installation: ${missing[*]}"; fi
else
  mapfile -t optional < <(optional_packages)
  if ((${#optional[@]})); then (install_packages "${optional[@]}") || say "going on without ${optional[*]}"; fi
fi

if "$compiler" --version | grep -q "Free Software Foundation"; then
  gcc_version=$("$compiler" -dumpfullversion)
  at_least "$gcc_version" $oldest_gcc ||
    die "$compiler is version $gcc_version; $oldest_gcc or newer is needed. Name one: CXX=g++-$oldest_gcc make ..."
fi

# ---- the virtual environment -----------------------------------------------------------------------------------------
requirements=(-r tools/requirements.txt)
is_old() {  # is_old PROGRAM OLDEST: missing, too old, or already ours
  have "$1" || return 0
  [[ $(command -v "$1") == "$PWD/$venv/"* ]] || ! at_least "$("$1" --version | grep -oEm1 '[0-9]+(\.[0-9]+)+')" "$2"
}
if is_old cmake $oldest_cmake || is_old ninja $oldest_ninja; then requirements+=(-r tools/requirements-build.txt); fi
# CUDA comes without cuDNN, which PyPI has for each of CUDA's major versions.
if have nvcc && ! "$compiler" -E -x c++ -I"$(dirname "$(command -v nvcc)")/../include" - >/dev/null 2>&1 \
    <<<'#include <cudnn_graph.h>'; then
  requirements+=("nvidia-cudnn-cu$(nvcc --version | grep -oEm1 'release [0-9]+' | grep -oE '[0-9]+')==9.19.0.56")
fi
if [[ $purpose == lint || -x $venv/bin/ruff ]]; then requirements+=(-r tools/requirements-lint.txt); fi

# The stamp says what was installed; it is written last, so an interrupted set-up is done again.
stamp=$venv/.setup-stamp
wanted=$({ echo "${requirements[*]}"; cat tools/requirements*.txt; } | sha256sum)
if "$venv/bin/python" -c '' 2>/dev/null && [[ -f $stamp && $(<"$stamp") == "$wanted" ]]; then exit 0; fi

if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  say "making the virtual environment $venv"
  python3 -m venv --clear "$venv" || die "python3 -m venv failed; on Debian it needs the package python3-venv."
fi
say "installing from PyPI into $venv: ${requirements[*]}"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${requirements[@]}" ||
  die "pip could not install ${requirements[*]}"
# Open MPI 5 in a folder of its own, so that its mpirun does not hide the system's: elastic jobs are tested with it.
if have mpirun; then
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --prefix "$venv/openmpi5" \
    -r tools/requirements-elastic.txt || say "going on without Open MPI 5"
fi
echo "$wanted" >"$stamp"
say "done"
