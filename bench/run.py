"""Times Symbind and its peers side by side and prints the ratios.

PEER_TORCH, PEER_MXNET and PEER_JAX are the Python interpreters of environments with the peer; a peer without one is
skipped. Each case runs in its own process. On a CPU Symbind and the peers alternate, so that other load on the machine
affects them equally; each figure is the median over the rounds. On a GPU (--device gpu) Symbind runs first, then
PyTorch as it is, and then those that compile for about a minute each: JAX and PyTorch compiled. --results stores the
rows, and a second call measures only what is missing.

usage: PEER_TORCH=.../bin/python PEER_MXNET=.../bin/python python3 bench/run.py [--rounds 5] [--seconds 3] [--threads 2]
       PEER_TORCH=.../bin/python PEER_JAX=.../bin/python python3 bench/run.py --device gpu [--limit 300] [--batch 128]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent
CASES = ["mlp-train", "lenet-train"]
GPU_CASES = ["resnet50v1-train", "resnet50v1-infer", "resnet50v1-infer-b1"]
MORE_CASES = [  # only when asked for
    "lstm-train",
    "lstm650-train",
    "lstm-train-unrolled",
    "resnet50-infer-b1",
    "resnet50-infer",
    "resnet50-train",
    *GPU_CASES,
    "inception-resnet-v2-infer",
    "text-cnn-train",
]
DTYPES = ["float32", "float16", "bfloat16"]
GPU_BATCH = 128  # of ResNet-50
OURS = "Symbind"
OURS_BY_MODULE = "Module"  # ours in C++ as the Python script does it
OURS_IN_PYTHON = "Python"  # the same script as MXNet's
# The variable that names its Python, its script, and options; on a GPU those that compile come last.
PEERS = {"PyTorch": ("PEER_TORCH", "torch", []), "MXNet": ("PEER_MXNET", "mxnet", [])}
GPU_PEERS = {
    "PyTorch": ("PEER_TORCH", "torch", ["--variant", "eager"]),
    "JAX": ("PEER_JAX", "jax", []),
    "PyTorch compiled": ("PEER_TORCH", "torch", ["--variant", "compiled"]),
}


def takes_part(name, case):
    """PyTorch's LSTM is one operator; the scripts for JAX and MXNet have fewer networks."""
    left_out = {
        "PyTorch": case == "lstm-train-unrolled",
        "PyTorch compiled": case == "lstm-train-unrolled",
        "JAX": case not in GPU_CASES,
        "MXNet": case in [*GPU_CASES, "lstm650-train"],
        OURS_IN_PYTHON: case in [*GPU_CASES, "lstm650-train"],
    }
    return not left_out.get(name, False)


def named_peers(peers, device):
    """Name, command and environment of the peers whose Python is named."""
    found = {}
    for name, (variable, library, options) in peers.items():
        if python := os.environ.get(variable):
            found[name] = ([python, str(BENCH / "peers" / f"{library}_{device}.py"), *options], {})
        else:
            print(f"{variable} is not set: {name} is left out")
    return found


def contestants(build, device):
    """Name, command and environment of Symbind and of each peer."""
    found = {OURS: ([str(build / "bench" / "train_step")], {})}
    if device == "gpu":
        return found | named_peers(GPU_PEERS, device)
    if python := python_of_package(build):
        found[OURS_BY_MODULE] = ([str(build / "bench" / "train_step"), "--through", "module"], {})
        package = {"AS_MXNET": "symbind", "PYTHONPATH": str(build / "python")}
        found[OURS_IN_PYTHON] = ([python, str(BENCH / "peers" / "mxnet_cpu.py")], package)
    return found | named_peers(PEERS, device)


def python_of_package(build):
    """The Python for which the build made the package, if it did."""
    for line in (build / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(("Python_EXECUTABLE:", "_Python_EXECUTABLE:")) and list(
            build.glob("python/symbind/_symbind*")
        ):
            return line.partition("=")[2]
    return None


def run_rows(command, threads, timeout=None, **settings):
    """The JSON rows that a program prints, one a line."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "MXNET_SUBGRAPH_BACKEND": "NONE"}
    environment = settings | environment  # the user's choice comes first
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=timeout)
    rows = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    if result.returncode != 0 or not rows:
        raise RuntimeError(f"{' '.join(command)} failed with status {result.returncode}:\n{result.stderr.strip()}")
    return rows


def run_row(command, threads, **settings):
    """The last of them."""
    return run_rows(command, threads, **settings)[-1]


class Results:
    """The rows of each contestant by case and type, kept in a file if there is one."""

    def __init__(self, path):
        self.path, self.rows = path, {}
        for line in path.read_text().splitlines() if path and path.exists() else []:
            self.add(*json.loads(line))

    def add(self, case, dtype, name, row):
        self.rows.setdefault((case, dtype), {}).setdefault(name, []).append(row)

    def keep(self, case, dtype, name, row):
        self.add(case, dtype, name, row)
        if self.path:
            with self.path.open("a") as out:
                print(json.dumps([case, dtype, name, row]), file=out)

    def count(self, case, dtype, name):
        return len(self.rows.get((case, dtype), {}).get(name, []))

    def median_ms(self, case, dtype, name):
        times = [row["ms"] for row in self.rows.get((case, dtype), {}).get(name, [])]
        return statistics.median(times) if times else None

    def largest(self, case, dtype, name, figure):
        found = [row.get(figure) for row in self.rows.get((case, dtype), {}).get(name, [])]
        return max((value for value in found if value is not None), default=None)


def turns(contest, arguments):
    """Who runs what, in order: (case, type, contestant, how often it has run after that)."""
    work = [(case, dtype) for case in arguments.case for dtype in arguments.dtype]
    rounds = range(1, arguments.rounds + 1)
    if arguments.device == "gpu":
        order = [(*item, name, number) for number in rounds for name in contest for item in work]
    else:
        order = [(*item, name, number) for item in work for number in rounds for name in contest]
    return [turn for turn in order if takes_part(turn[2], turn[0])]


def options_of(case, dtype, arguments):
    options = ["--case", case, "--threads", str(arguments.threads), "--seconds", str(arguments.seconds)]
    batch = arguments.batch
    if arguments.device == "gpu":
        options += ["--dtype", dtype, "--device", "cpu" if arguments.try_on_cpu else "gpu"]
        if case.startswith("resnet50") and not case.endswith("-b1"):
            batch = batch or GPU_BATCH
    return options + (["--batch", str(batch)] if batch and not case.endswith("-b1") else [])


def measure(contest, arguments):
    """Everyone's rows. A peer that fails, or for which no time is left, has none."""
    end = time.monotonic() + arguments.limit
    results = Results(arguments.results)
    for case, dtype, name, number in turns(contest, arguments):
        if results.count(case, dtype, name) >= number:
            continue
        if time.monotonic() >= end:
            print("\r\033[Kno time is left for the rest", file=sys.stderr)
            break
        print(f"\r\033[K{case} {dtype}: round {number}, {name}", end="", file=sys.stderr, flush=True)
        command, settings = contest[name]
        command = command + options_of(case, dtype, arguments)
        try:
            row = run_row(command, arguments.threads, timeout=max(end - time.monotonic(), 1), **settings)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"\r\033[K{error}", file=sys.stderr)
            continue
        if "ms" in row:
            results.keep(case, dtype, name, row)
        else:
            print(f"\r\033[K{name}: {row.get('skipped', 'no time in its row')}", file=sys.stderr)
    print("\r\033[K", end="", file=sys.stderr)
    return results


def print_table(results, peers, arguments):
    """Times, what ours take of theirs, and memory: the peak of a GPU's allocator, or of the process."""
    everyone, figure = [OURS, *peers], "device_peak_mb" if arguments.device == "gpu" else "rss_mb"
    names = [*(f"{name} ms" for name in everyone), *(f"ours / {name}" for name in peers)]
    table = [["case", "dtype", *names, "per s", f"MB of {' / '.join(everyone)}"]]

    def text(value, digits):
        return "-" if value is None else f"{value:.{digits}f}"

    for case, dtype in results.rows:
        times = {name: results.median_ms(case, dtype, name) for name in everyone}
        ours, batch = times[OURS], results.largest(case, dtype, OURS, "batch")
        ratios = [ours / times[name] if ours and times[name] else None for name in peers]
        memory = " / ".join(text(results.largest(case, dtype, name, figure), 0) for name in everyone)
        per_second = batch / ours * 1e3 if ours and batch else None
        cells = [*(text(times[name], 3) for name in everyone), *(text(ratio, 2) for ratio in ratios)]
        table.append([case, dtype, *cells, text(per_second, 0), memory])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for label, *cells in table:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        print("  ".join([label.ljust(widths[0]), *padded]))


def print_small_operator(contest):
    """The time of a + b of ten numbers, for every contestant with a Python."""
    times = {}
    for name, library in ((OURS_IN_PYTHON, "symbind"), *((peer, library) for peer, (_, library, _) in PEERS.items())):
        if name in contest:
            command, settings = contest[name]
            times[name] = run_row([command[0], str(BENCH / "peers" / "small_op.py"), library], 1, **settings)["us"]
    print("\na + b, ten numbers each: " + ", ".join(f"{name} {us:.2f} us" for name, us in times.items()))


def print_parts(contest, programs, threads):
    """What single parts of a step on a CPU cost."""
    print_small_operator(contest)
    overhead = run_row([str(programs / "plan_overhead")], threads)
    print(f"\nOur own time per step of a plan: {overhead['ns_per_step']:.0f} ns")
    update = run_row([str(programs / "update")], threads)
    print(
        f"SGD with momentum on ResNet-50's {update['arrays']} arrays: {update['gb_per_s']:.1f} GB/s, "
        f"{update['ratio']:.2f} of a plain copy's {update['copy_gb_per_s']:.1f} GB/s"
    )
    for name, settings in (("as it is", {}), ("OMP_WAIT_POLICY=passive", {"OMP_WAIT_POLICY": "passive"})):
        fit, contexts = run_rows([str(programs / "fit")], threads, **settings)
        print(
            f"LeNet, {name}: a step of fit with a metric takes {fit['ratio']:.3f} of a bare step's "
            f"{fit['base_ms']:.2f} ms, two CPU contexts {contexts['ratio']:.3f} of one's"
        )


def parse_arguments():
    parser = argparse.ArgumentParser(description="Times Symbind and its peers side by side and prints the ratios.")
    parser.add_argument("--case", choices=CASES + MORE_CASES, action="append", help="what to time; may be repeated")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="where it runs (%(default)s)")
    parser.add_argument("--dtype", choices=DTYPES, action="append", help="with --device gpu; may be repeated (all)")
    parser.add_argument("--batch", type=int, help=f"with --device gpu: samples in a batch ({GPU_BATCH} images)")
    parser.add_argument("--rounds", type=int, help="turns per contestant (5; with --device gpu 1)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one turn (%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (%(default)s)")
    parser.add_argument("--limit", type=float, default=1e6, help="seconds after which nothing is begun")
    parser.add_argument("--results", type=Path, help="a file that keeps rows; what it has is not measured again")
    parser.add_argument("--try-on-cpu", action="store_true", help="with --device gpu: run that on a CPU, to try it")
    parser.add_argument("--build", type=Path, default=BENCH.parent / "build" / "release", help="the build to time")
    arguments = parser.parse_args()
    on_gpu = arguments.device == "gpu"
    if not on_gpu and (arguments.batch or arguments.dtype or arguments.try_on_cpu):
        parser.error("--batch, --dtype and --try-on-cpu need --device gpu")
    arguments.case = arguments.case or (GPU_CASES if on_gpu else CASES)
    arguments.dtype = (arguments.dtype or DTYPES) if on_gpu else DTYPES[:1]
    arguments.rounds = arguments.rounds or (1 if on_gpu else 5)
    return arguments


def main():
    arguments = parse_arguments()
    contest = contestants(arguments.build, arguments.device)
    results = measure(contest, arguments)
    device = "CPU" if arguments.try_on_cpu else arguments.device.upper()
    print(f"\nOne step on a {device}, median of {arguments.rounds} rounds\n")
    print_table(results, [name for name in contest if name != OURS], arguments)
    if arguments.device == "cpu":
        print_parts(contest, arguments.build / "bench", arguments.threads)


if __name__ == "__main__":
    main()
