"""What a GPU runs in one step of a program: runs it with the library of support/kernel_trace.cc, finds the steps that
repeat at its end, and prints the time of each kernel in a step and the time in which nothing runs; with --sequence FILE
also every kernel in order.

    python3 bench/kernel_trace.py --library build/device/bench/libkernel_trace.so -- \\
        build/device/bench/train_step --device gpu --case resnet50v1-train --batch 128 --seconds 0.5
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile


def read(path):
    with open(path) as lines:
        rows = (line.rstrip("\n").split("\t", 2) for line in lines)
        return [(int(begin), int(end), name) for begin, end, name in rows]


def find_period(names):
    """How many of the last entries are the same as those before them, and how many entries follow the last of these."""
    for left_out in range(0, min(64, len(names) // 4)):
        seen = names[: len(names) - left_out]
        last = len(seen) - 1
        positions = [i for i in range(last) if seen[i] == seen[last]]
        for before in reversed(positions):
            period = last - before
            if period > len(seen) // 3:
                break
            if seen[-period:] == seen[-2 * period : -period] == seen[-3 * period : -2 * period]:
                return period, left_out
    raise SystemExit("no repeated step: run more of them")


def short(name):
    """The name of a kernel without namespaces and most of its template arguments."""
    name = re.sub(r"symbind::cuda_backend::(\(anonymous namespace\)::|_GLOBAL__N__\w+::)?", "", name)
    return re.sub(r"\(anonymous namespace\)::", "", name)


def demangle(names):
    filtered = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=False)
    return filtered.stdout.split("\n") if filtered.returncode == 0 else list(names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="libkernel_trace.so")
    parser.add_argument("--sequence", help="a file for every kernel of a step in order")
    parser.add_argument("--steps", type=int, default=5, help="how many steps are averaged")
    parser.add_argument("--width", type=int, default=150, help="of the names")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace")
        settings = {"CUDA_INJECTION64_PATH": os.path.abspath(options.library), "KERNEL_TRACE": path}
        subprocess.run(options.command, env={**os.environ, **settings}, check=True)
        entries = read(path)

    period, left_out = find_period([name for _, _, name in entries])
    entries = entries[: len(entries) - left_out]
    steps = min(options.steps, len(entries) // period - 1)
    seen = entries[-steps * period - 1 :]  # with the one before, for the gap in front of the first
    order = demangle([short(name) for _, _, name in seen[1 : period + 1]])
    busy, gap = [0.0] * period, [0.0] * period
    last_end = seen[0][1]
    for i, (begin, end, _) in enumerate(seen[1:]):
        busy[i % period] += (end - max(begin, min(last_end, end))) / 1e3 / steps  # what it adds to the step
        gap[i % period] += max(begin - last_end, 0) / 1e3 / steps
        last_end = max(last_end, end)
    whole = (last_end - seen[0][1]) / 1e3 / steps
    totals = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for name, own, before in zip(order, busy, gap):
        total = totals[re.sub(r" <[\d,]+> r\d+$", "", short(name))]
        total[0] += 1
        total[1] += own
        total[2] += before
    print(f"{period} kernels, {whole:.1f} us a step, {sum(gap):.1f} us without any")
    print("      us  count  gap before  kernel")
    for name, (count, own, before) in sorted(totals.items(), key=lambda row: -row[1][1]):
        print(f"{own:8.1f}  {count:5}  {before:10.1f}  {name[: options.width]}")
    if options.sequence:
        with open(options.sequence, "w") as sequence:
            for name, own, before in zip(order, busy, gap):
                print(f"{before:7.1f} {own:8.1f}  {short(name)}", file=sequence)


if __name__ == "__main__":
    sys.exit(main())
