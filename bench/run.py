"""Times Symbind and its peers side by side and prints the ratios.

PEER_TORCH and PEER_MXNET name the Python of an environment with the peer; a peer that is not named is left out.
Symbind and the peers take turns, so that a slow moment of the machine hits them alike; each figure is the median over
the rounds.

usage: PEER_TORCH=.../bin/python PEER_MXNET=.../bin/python python3 bench/run.py [--rounds 5] [--seconds 3] [--threads 2]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
CASES = ["mlp-train", "lenet-train"]
MORE_CASES = [  # only when asked for
    "lstm-train",
    "lstm-train-unrolled",
    "resnet50-infer-b1",
    "resnet50-infer",
    "resnet50-train",
    "inception-resnet-v2-infer",
    "text-cnn-train",
]
OURS = "Symbind"
OURS_BY_MODULE = "Module"  # ours in C++ as the Python script does it
OURS_IN_PYTHON = "Python"  # the same script as MXNet's
PEERS = {"PyTorch": ("PEER_TORCH", "torch"), "MXNet": ("PEER_MXNET", "mxnet")}
LEFT_OUT = {("lstm-train-unrolled", "PyTorch")}  # whose LSTM is one operator


def contestants(build):
    """Name, command and environment of Symbind and of each peer."""
    found = {OURS: ([str(build / "bench" / "train_step")], {})}
    if python := python_of_package(build):
        found[OURS_BY_MODULE] = ([str(build / "bench" / "train_step"), "--through", "module"], {})
        package = {"AS_MXNET": "symbind", "PYTHONPATH": str(build / "python")}
        found[OURS_IN_PYTHON] = ([python, str(BENCH / "peers" / "mxnet_cpu.py")], package)
    for name, (variable, library) in PEERS.items():
        if python := os.environ.get(variable):
            found[name] = ([python, str(BENCH / "peers" / f"{library}_cpu.py")], {})
        else:
            print(f"{variable} is not set: {name} is left out")
    return found


def python_of_package(build):
    """The Python for which the build made the package, if it did."""
    for line in (build / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(("Python_EXECUTABLE:", "_Python_EXECUTABLE:")) and list(
            build.glob("python/symbind/_symbind*")
        ):
            return line.partition("=")[2]
    return None


def run_rows(command, threads, **settings):
    """The JSON rows that a program prints, one a line."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "MXNET_SUBGRAPH_BACKEND": "NONE"}
    environment = settings | environment  # the user's choice comes first
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    lines = result.stdout.strip().splitlines()
    if result.returncode != 0 or not lines:
        sys.exit(f"{' '.join(command)} failed with status {result.returncode}:\n{result.stderr.strip()}")
    return [json.loads(line) for line in lines if line.startswith("{")]


def run_row(command, threads, **settings):
    """The last of them."""
    return run_rows(command, threads, **settings)[-1]


def measure(contest, case, arguments):
    """Median milliseconds and largest resident memory per contestant."""
    options = ["--case", case, "--threads", str(arguments.threads), "--seconds", str(arguments.seconds)]
    here = {name: entry for name, entry in contest.items() if (case, name) not in LEFT_OUT}
    rows = {name: [] for name in here}
    for number in range(1, arguments.rounds + 1):
        for name, (command, settings) in here.items():
            print(f"\r\033[K{case}: round {number} of {arguments.rounds}, {name}", end="", file=sys.stderr, flush=True)
            rows[name].append(run_row(command + options, arguments.threads, **settings))
    print("\r\033[K", end="", file=sys.stderr)
    return {
        name: (statistics.median(row["ms"] for row in of_one), max(row["rss_mb"] for row in of_one))
        for name, of_one in rows.items()
    }


def print_table(results, peers):
    header = ["case", *(f"{name} ms" for name in [OURS, *peers]), *(f"ours / {name}" for name in peers), "RSS MB"]
    table = [header]
    for case, measured in results.items():
        ours = measured[OURS][0]
        times = [f"{measured[name][0]:.3f}" if name in measured else "-" for name in [OURS, *peers]]
        ratios = [f"{ours / measured[name][0]:.2f}" if name in measured else "-" for name in peers]
        memory = " / ".join(str(measured[name][1]) if name in measured else "-" for name in [OURS, *peers])
        table.append([case, *times, *ratios, memory])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for label, *cells in table:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        print("  ".join([label.ljust(widths[0]), *padded]))


def print_small_operator(contest):
    """The time of a + b of ten numbers, for every contestant with a Python."""
    times = {}
    for name, library in ((OURS_IN_PYTHON, "symbind"), *((peer, library) for peer, (_, library) in PEERS.items())):
        if name in contest:
            command, settings = contest[name]
            times[name] = run_row([command[0], str(BENCH / "peers" / "small_op.py"), library], 1, **settings)["us"]
    print("\na + b, ten numbers each: " + ", ".join(f"{name} {us:.2f} us" for name, us in times.items()))


def main():
    parser = argparse.ArgumentParser(description="Times Symbind and its peers side by side and prints the ratios.")
    parser.add_argument("--case", choices=CASES + MORE_CASES, action="append", help="what to time; may be repeated")
    parser.add_argument("--rounds", type=int, default=5, help="turns per contestant (%(default)s)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one turn (%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (%(default)s)")
    parser.add_argument("--build", type=Path, default=BENCH.parent / "build" / "release", help="the build to time")
    arguments = parser.parse_args()

    programs = arguments.build / "bench"
    contest = contestants(arguments.build)
    results = {case: measure(contest, case, arguments) for case in arguments.case or CASES}
    peers = [name for name in contest if name != OURS]

    print(f"\nOne step, {arguments.threads} threads, median of {arguments.rounds} rounds\n")
    print_table(results, peers)
    print_small_operator(contest)
    overhead = run_row([str(programs / "plan_overhead")], arguments.threads)
    print(f"\nOur own time per step of a plan: {overhead['ns_per_step']:.0f} ns")
    update = run_row([str(programs / "update")], arguments.threads)
    print(
        f"SGD with momentum on ResNet-50's {update['arrays']} arrays: {update['gb_per_s']:.1f} GB/s, "
        f"{update['ratio']:.2f} of a plain copy's {update['copy_gb_per_s']:.1f} GB/s"
    )
    data = str(BENCH.parent / "data")
    for name, settings in (("as it is", {}), ("OMP_WAIT_POLICY=passive", {"OMP_WAIT_POLICY": "passive"})):
        fit, contexts = run_rows([str(programs / "fit"), "--data", data], arguments.threads, **settings)
        print(
            f"An epoch of LeNet, {name}: fit with a metric takes {fit['ratio']:.3f} of a bare loop's "
            f"{fit['base_ms']:.0f} ms, two CPU contexts {contexts['ratio']:.3f} of one's"
        )


if __name__ == "__main__":
    main()
