"""Layers by Symbind and its peers in turns: each library in a process of its own, which `peers/layer_*.py` are.

The processes take turns, a few milliseconds each, with a pause in which the threads of the last one go to sleep.
PEER_TORCH and PEER_MXNET name the Python of an environment with the peer.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import BENCH, OURS, PEERS, python_of_package

MODES = ("forward", "training")


def add_options(parser):
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (%(default)s)")
    parser.add_argument(
        "--clock",
        choices=["wall", "cpu"],
        default="wall",
        help="cpu: all threads' time, for a busy machine (%(default)s)",
    )
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu", help="where they run (%(default)s)")
    parser.add_argument("--rounds", type=int, default=4, help="turns per library and pass (%(default)s)")
    parser.add_argument("--milliseconds", type=float, default=8, help="length of a turn (%(default)s)")
    parser.add_argument("--pause", type=float, default=10, help="milliseconds between turns (%(default)s)")
    parser.add_argument("--retries", type=int, default=2, help="times to measure a slow layer again (%(default)s)")
    parser.add_argument(
        "--confirm",
        type=int,
        default=2,
        help="times to measure a layer above the limit again in new processes; the median counts (%(default)s)",
    )
    parser.add_argument("--json", type=Path, help="a file for all rows, one a line")
    parser.add_argument("--build", type=Path, default=BENCH.parent / "build" / "release", help="the build to time")


class Process:
    """One library in a process of its own."""

    def __init__(self, name, command, settings):
        self.name = name
        self.pipe = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=settings
        )

    def ask(self, **request):
        try:
            self.pipe.stdin.write(json.dumps(request) + "\n")
            self.pipe.stdin.flush()
            line = self.pipe.stdout.readline()
            while line and not line.startswith("{"):
                line = self.pipe.stdout.readline()
            return json.loads(line) if line else {"error": "the process ended"}
        except BrokenPipeError:
            return {"error": "the process ended"}


def start_processes(arguments):
    environment = os.environ | {"OMP_NUM_THREADS": str(arguments.threads), "MXNET_SUBGRAPH_BACKEND": "NONE"}
    environment |= {"LAYERS_CLOCK": arguments.clock, "LAYERS_DEVICE": arguments.device}
    script = str(BENCH / "peers" / "layer_{}.py")
    python = python_of_package(arguments.build)
    if not python:
        sys.exit(f"{arguments.build} has no Python package")
    package = {"AS_MXNET": "symbind", "PYTHONPATH": str(arguments.build / "python")}
    processes = [Process(OURS, [python, script.format("mxnet")], environment | package)]
    for name, (variable, library, _) in PEERS.items():
        if peer := os.environ.get(variable):
            processes.append(Process(name, [peer, script.format(library)], environment))
        else:
            print(f"{variable} is not set: {name} is left out")
    return processes


def measure(processes, layer, arguments, folder):
    """A row: milliseconds by mode and library, and what was wrong."""
    row = {"layer": layer, "ms": {mode: {} for mode in MODES}, "errors": {}, "differences": ""}
    once = {}
    for process in processes:
        answer = process.ask(do="prepare", layer=layer)
        if "error" in answer:
            row["errors"][process.name] = answer["error"]
        else:
            once[process.name] = answer["once_ms"]
    able = [process for process in processes if process.name in once]
    file = str(folder / "ours.npz")
    by_name = {process.name: process for process in able}
    if OURS in by_name and "PyTorch" in by_name:
        by_name[OURS].ask(do="save", file=file)
        row["differences"] = by_name["PyTorch"].ask(do="compare", file=file).get("differences", "not compared")
    for mode in MODES:
        able = [process for process in able if mode in once[process.name]]
        fastest = min((once[process.name][mode] for process in able), default=0)
        times = {process.name: [once[process.name][mode]] for process in able}
        for _ in range(arguments.rounds):
            for process in able:
                if once[process.name][mode] > max(20 * fastest, 500):
                    continue  # once was enough
                time.sleep(arguments.pause / 1e3)  # OpenMP's threads of the last process spin for a while
                answer = process.ask(do="time", mode=mode, milliseconds=arguments.milliseconds)
                if "ms" in answer:
                    times[process.name].append(answer["ms"])
        row["ms"][mode] = {name: min(of_one) for name, of_one in times.items()}
    return row


def ratios(row):
    """Our time over the better peer's, by mode; none where there is no peer."""
    found = {}
    for mode, times in row["ms"].items():
        peers = [ms for name, ms in times.items() if name != OURS]
        if OURS in times and peers:
            found[mode] = times[OURS] / min(peers)
    return found


def worst(row):
    return max(ratios(row).values(), default=0)


def geometric_mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else math.nan


def end_processes(processes):
    for process in processes:
        process.pipe.stdin.close()
        process.pipe.wait()


def confirm(rows, limit, arguments, folder):
    """Measures the rows above the limit again, each time in new processes: where the memory of one process is, and
    whether its threads keep waking each other, does not describe a layer. The median of all times counts."""
    slow = [row for row in rows if worst(row) > limit]
    if not slow or not arguments.confirm:
        return
    first = sum(worst(row) > limit for row in slow)
    measured = [[row["ms"]] for row in slow]
    for turn in range(arguments.confirm):
        processes = start_processes(arguments)
        for done, row in enumerate(slow, start=1):
            again = measure(processes, row["layer"], arguments, folder)
            measured[done - 1].append(again["ms"])
            progress = f"again {turn + 1} of {arguments.confirm}: {done} of {len(slow)}"
            print(f"\r\033[K{progress}", end="", file=sys.stderr, flush=True)
        end_processes(processes)
    print("\r\033[K", end="", file=sys.stderr)
    for row, times in zip(slow, measured, strict=True):
        row["first_ms"] = row["ms"]
        row["ms"] = {
            mode: {name: statistics.median([ms[mode][name] for ms in times if name in ms[mode]]) for name in of_mode}
            for mode, of_mode in row["first_ms"].items()
        }
    left = sum(worst(row) > limit for row in slow)
    print(f"{first} above {limit} at first, {left} by the median of {1 + arguments.confirm} processes")


def time_all(layers, arguments, limit):
    """The names of the libraries and a row for each layer; shows progress. Layers above the limit are confirmed."""
    processes = start_processes(arguments)
    rows = []
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for done, layer in enumerate(layers, start=1):
            row = measure(processes, layer, arguments, Path(folder))
            for _ in range(arguments.retries):  # a slow moment of the machine is not a slow layer
                if worst(row) <= limit * 0.93:
                    break
                again = measure(processes, layer, arguments, Path(folder))
                for mode in MODES:
                    for name, ms in again["ms"][mode].items():
                        row["ms"][mode][name] = min(ms, row["ms"][mode].get(name, ms))
            rows.append(row)
            print(
                f"\r\033[K{done} of {len(layers)} layers, {time.monotonic() - begin:.0f} s, "
                f"{sum(worst(each) > limit for each in rows)} slow",
                end="",
                file=sys.stderr,
                flush=True,
            )
        print("\r\033[K", end="", file=sys.stderr)
        names = [process.name for process in processes]
        end_processes(processes)
        confirm(rows, limit, arguments, Path(folder))
    if arguments.json:
        arguments.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return names, rows
