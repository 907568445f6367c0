"""Requests per second of Predictor and of libtorch in turns, and their ratio.

PEER_TORCH names the Python of an environment with PyTorch, whose wheel holds libtorch's headers and libraries; the peer
is compiled against them first.

usage: PEER_TORCH=.../bin/python python3 bench/predict.py [--build build/release] [--threads 2] [--batch 1]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BENCH = Path(__file__).resolve().parent


def build_peer(python, folder):
    """The peer's program, and the model that it reads."""
    script = """
import torch
from torch.utils import cpp_extension

print(*cpp_extension.include_paths(), torch.__path__[0], int(torch.compiled_with_cxx11_abi()), sep="\\n")
"""
    answer = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True).stdout
    *includes, package, abi = answer.split()
    program, libraries = folder / "libtorch_predict", Path(package) / "lib"
    command = ["g++", "-std=c++20", "-O2", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-w", "-o", str(program)]
    command += [f"-isystem{path}" for path in includes] + [str(BENCH / "peers" / "libtorch_predict.cc")]
    command += [f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-ltorch_cpu", "-lc10", "-pthread"]
    subprocess.run(command, check=True)
    model = folder / "lenet.pt"
    subprocess.run([python, "-W", "ignore", str(BENCH / "peers" / "torch_export.py"), str(model)], check=True)
    return [str(program), str(model)]


def rate(command, arguments):
    result = subprocess.run([*command, *arguments], check=True, capture_output=True, text=True)
    return json.loads(result.stdout.strip().splitlines()[-1])["requests_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(BENCH.parent / "build" / "release"), type=Path)
    parser.add_argument("--threads", default=2, type=int)
    parser.add_argument("--batch", default=1, type=int)
    parser.add_argument("--seconds", default=3, type=int)
    parser.add_argument("--rounds", default=3, type=int)
    options = parser.parse_args()
    arguments = [str(options.threads), str(options.batch), str(options.seconds)]
    with tempfile.TemporaryDirectory() as folder:
        programs = {"Symbind": [str(options.build / "bench" / "predict")]}
        if python := os.environ.get("PEER_TORCH"):
            programs["libtorch"] = build_peer(python, Path(folder))
        else:
            print("PEER_TORCH is not set: libtorch is left out", file=sys.stderr)
        rates = {name: [] for name in programs}
        for _ in range(options.rounds):
            for name, command in programs.items():
                rates[name].append(rate(command, arguments))
    medians = {name: statistics.median(each) for name, each in rates.items()}
    for name, median in medians.items():
        print(f"{name:10} {median:10.0f} requests/s")
    if "libtorch" in medians:
        print(f"{'ratio':10} {medians['Symbind'] / medians['libtorch']:10.2f}")


if __name__ == "__main__":
    main()
