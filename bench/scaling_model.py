"""Predicts what the exchange of gradients costs in distributed training.

Shared memory: the time of an exchange by `dist_sync` between ranks that share the cores of one machine. The constants
are fitted to a few of the measurements; the others check the prediction.

Clusters of GPUs: gradients are exchanged in the order in which backward produces them, while backward continues, with
one queue per link. When each is ready comes from a plan table (train_step --profile --table FILE), or from the FLOPs of
ResNet-50's layers. Measured are the table and the time of a step on one GPU; the links are assumed (H200_HOSTS). Not
modelled are kernels that the exchange slows down, waiting for the slowest worker, and reading data: the efficiencies
are optimistic.
"""

import argparse
import heapq
import json
import math
import os
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

BENCH = Path(__file__).resolve().parent
MB = 1e6
ACCEPTED = 0.15  # deviation of a prediction


# ---- Shared memory ---------------------------------------------------------------------------------------------------


def work(ranks, size, cores):
    """What the three constants are multiplied by: exchanges of a rank, bytes sent, bytes updated; of all ranks, divided
    among the cores. Every byte goes from n - 1 ranks to its owner, and the result back to them."""
    running = min(ranks, cores)
    return ranks / running, 2 * (ranks - 1) * size / running, size / running


def exchange_seconds(constants, ranks, size, cores):
    return sum(c * w for c, w in zip(constants, work(ranks, size, cores)))


def solve(rows, right):
    """A small linear system, by elimination with pivots."""
    rows = [[*row, value] for row, value in zip(rows, right)]
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(len(rows)):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i])]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def fitted(measured):
    """The fewest and the most ranks at the largest size, and the fewest ranks at the smallest size."""
    by_ranks = sorted(measured, key=lambda m: m["ranks"])
    large, small = (bound(m["bytes"] for m in measured) for bound in (max, min))
    at_large = [m for m in by_ranks if m["bytes"] == large]
    chosen = [at_large[0], at_large[-1], next(m for m in by_ranks if m["bytes"] == small)]
    if small == large or at_large[0]["ranks"] == at_large[-1]["ranks"]:
        sys.exit("scaling_model: a fit needs two sizes, and two numbers of ranks at the larger size")
    return chosen


def fit(measured, cores):
    chosen = fitted(measured)
    return solve([work(m["ranks"], m["bytes"], cores) for m in chosen], [m["seconds"] for m in chosen])


def run_ranks(ranks, program, *arguments):
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []  # as symbind-launch does, in containers for example
    command = ["mpirun", *as_root, "--oversubscribe", "--bind-to", "none", "-n", str(ranks), program, *arguments]
    run = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(f"scaling_model: {program} failed between {ranks} ranks; is it built, and is MPI installed?")
    return run.stdout


def measure(programs):
    """ResNet-50's gradients between 2 to 8 ranks, and LeNet's between 2: a small exchange."""
    lenet = json.loads(run_ranks(2, programs / "distributed_train", "--network", "lenet", "--steps", "50"))
    exchanges = [{"ranks": 2, "bytes": 4 * 431_080, "seconds": lenet["exchange_alone_ms"] * 1e-3}]
    for ranks in range(2, 9):
        output = run_ranks(ranks, programs / "distributed", "8")
        size, ms = re.search(r"([\d.]+) MB: exchange, update and copy ([\d.]+) ms", output).groups()
        exchanges.append({"ranks": ranks, "bytes": float(size) * MB, "seconds": float(ms) * 1e-3})
    return {"cores": len(os.sched_getaffinity(0)), "exchanges": exchanges}


def check_shared_memory(measured, cores):
    constants, used = fit(measured, cores), fitted(measured)
    per_exchange, per_sent, per_updated = constants
    print(f"Shared memory, {cores} cores: {per_exchange * 1e3:.2f} ms per rank and exchange,", end=" ")
    print(f"{per_sent * 1e9:.3f} ns per byte sent, {per_updated * 1e9:.3f} ns per byte updated")
    print("ranks      MB  predicted ms  measured ms  deviation")
    deviations = []
    for m in measured:
        predicted = exchange_seconds(constants, m["ranks"], m["bytes"], cores)
        deviation = predicted / m["seconds"] - 1
        if m not in used:
            deviations.append(abs(deviation))
        print(
            f"{m['ranks']:5} {m['bytes'] / MB:7.1f} {predicted * 1e3:13.1f} {m['seconds'] * 1e3:12.1f} "
            f"{f'{deviation:+.1%}' if m not in used else 'fitted':>10}"
        )
    good = bool(deviations) and max(deviations) <= ACCEPTED
    print(f"{len(deviations)} predicted, {'all' if good else 'NOT all'} within {ACCEPTED:.0%}")
    return good


# ---- Links and algorithms --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Link:
    latency: float  # seconds per hop
    bandwidth: float  # bytes per second and direction, of one GPU


@dataclass(frozen=True)
class Cluster:
    per_host: int
    local: Link  # between the GPUs of a host
    network: Link  # between hosts
    memory: float  # of a GPU, bytes per second
    start: float = 8.4e-6  # seconds before an exchange begins
    message: float = 1e-6  # seconds of a processor per message

    def hosts(self, ranks):
        return math.ceil(ranks / self.per_host)


# Latencies: NCCL's own model (src/graph/tuning.cc of 2.2x, rings, protocol Simple). Bandwidths: what NCCL reaches of
# NVLink 4's 450 GB/s and of 400 Gb/s, according to its maintainers (NVIDIA/nccl-tests, issues 212 and 290). Memory: the
# data sheet. The time of a message is an estimate.
H200_HOSTS = Cluster(8, Link(3.4e-6, 370e9), Link(14e-6, 47e9), 4.8e12)
# Horovod's: four Pascal GPUs per host share 25 Gb/s, of which 94 % are reached as above. PCIe 3: 12 GB/s, as in NCCL.
PASCAL_HOSTS = Cluster(4, Link(5.7e-6, 12e9), Link(14e-6, 0.94 * 25e9 / 8 / 4), 0.73e12)


@dataclass(frozen=True)
class Gradient:
    ready: float  # seconds after the start of backward
    bytes: float
    key: int  # its index in the order of the network


# An algorithm returns the stages of an exchange: for how many seconds each uses which links.


def ring(cluster, ranks):
    """One ring over all ranks for each network link of a host: a hop between hosts uses all links."""
    steps, between = 2 * (ranks - 1), 2 * (cluster.hosts(ranks) - 1)
    latency = cluster.start + (steps - between) * cluster.local.latency + between * cluster.network.latency
    bandwidth = min(cluster.local.bandwidth, cluster.per_host * cluster.network.bandwidth if between else math.inf)

    def stages(gradients):
        seconds = latency + steps / ranks * sum(g.bytes for g in gradients) / bandwidth
        return [{"local": seconds, "network": seconds}]

    return stages


def hierarchical(cluster, ranks):
    """Reduce-scatter in each host, allreduce of every GPU's part between the hosts by a double binary tree or a ring,
    whichever is faster, allgather in each host."""
    near, hosts = min(ranks, cluster.per_host), cluster.hosts(ranks)

    def stages(gradients):
        part = sum(g.bytes for g in gradients) / near
        inside = (near - 1) * (cluster.local.latency + part / cluster.local.bandwidth)
        if hosts == 1:
            return [{"local": cluster.start + 2 * inside}]
        latency, transfer = cluster.network.latency, part / cluster.network.bandwidth
        tree = 2 * math.ceil(math.log2(hosts)) * latency + 2 * transfer
        between = min(tree, 2 * (hosts - 1) * (latency + transfer / hosts))
        return [{"local": cluster.start + inside}, {"network": between}, {"local": inside}]

    return stages


def owners_of(elements, ranks, smallest_piece=4096):
    """The owner of each key, or None where every rank owns a slice: the rule of symbind/kvstore/shares.cc."""
    load, owners = [(0, rank) for rank in range(ranks)], []
    for count in elements:
        if count >= ranks * smallest_piece:
            owners.append(None)
            continue
        given, rank = load[0]
        heapq.heapreplace(load, (given + count, rank))
        owners.append(rank)
    return owners


def pieces_of(gradients, ranks, element_bytes, smallest_piece=4096):
    """What the store does not do: arrays that are too small for a slice per rank are divided among fewer owners."""
    pieces = []
    for g in sorted(gradients, key=lambda g: g.key):
        count = max(1, min(ranks, int(g.bytes / element_bytes / smallest_piece)))
        pieces += [Gradient(g.ready, g.bytes / count, len(pieces) + i) for i in range(count)]
    return sorted(pieces, key=lambda g: (g.ready, -g.key)), owners_of([g.bytes for g in pieces], ranks, math.inf)


def owner(cluster, ranks, owners):
    """Symbind's `dist_sync`, as if it sent directly from the memory of GPUs. All ranks report to rank 0 that they are
    ready, and it answers; they send to the owners, which sum, update (float32, with momentum) and send the results."""
    near = min(ranks, cluster.per_host)
    far = ranks - near
    link = cluster.network if far else cluster.local
    agreement = 2 * link.latency + 2 * (ranks - 1) * cluster.message

    def stages(gradients):
        size, sliced = 0, [g.bytes / ranks for g in gradients if owners[g.key] is None]
        owned, arrays = [sum(sliced)] * ranks, [len(sliced)] * ranks
        for g in gradients:
            size += g.bytes
            if owners[g.key] is not None:
                owned[owners[g.key]] += g.bytes
                arrays[owners[g.key]] += 1
        all_send = max(
            (near - 1) * size / ranks / cluster.local.bandwidth, far * size / ranks / cluster.network.bandwidth
        )
        transfer, update = {}, {}
        for rank in range(ranks):
            inside, outside = (near - 1) * owned[rank], far * owned[rank]
            sent = len(sliced) * (ranks - 1) + len(gradients) - arrays[rank]
            messages = (arrays[rank] * (ranks - 1) + sent) * cluster.message
            seconds = max(inside / cluster.local.bandwidth, outside / cluster.network.bandwidth, messages, all_send)
            transfer[rank] = link.latency + seconds
            update[rank, "memory"] = (ranks + 6) * owned[rank] / cluster.memory
        return [{"agreement": agreement}, transfer, update, transfer]

    return stages


# ---- A step ----------------------------------------------------------------------------------------------------------


def grouped(gradients, least):
    """Gradients are pushed together until they have `least` bytes, when the last of them is ready."""
    groups, group = [], []
    for g in gradients:
        group.append(g)
        if sum(each.bytes for each in group) >= least or g is gradients[-1]:
            groups.append(group)
            group = []
    return groups


def end_of_exchanges(gradients, algorithm, least=1 * MB, most=16 * MB):
    """Returns when the last exchange ends. An exchange begins when a gradient is ready and the links of its first stage
    are free, and takes everything that is ready, up to `most` bytes."""
    groups, free, end, number = grouped(gradients, least), defaultdict(float), 0.0, 0
    events = [(groups[0][-1].ready, 0, None)]  # None: the next exchange may begin
    while events:
        now, _, stages = heapq.heappop(events)
        if stages is None:
            taken = list(groups[0])
            count = 1
            for group in groups[1:]:
                if group[-1].ready > now or sum(g.bytes for g in taken + group) > most:
                    break
                taken, count = taken + group, count + 1
            stages = algorithm(taken)
            available = max(free[link] for link in stages[0])
            number += 1
            if available > now:
                heapq.heappush(events, (available, number, None))
                continue
            groups = groups[count:]
            if groups:
                heapq.heappush(events, (max(now, groups[0][-1].ready), number, None))
        stage, *rest = stages
        for link, seconds in stage.items():
            free[link] = max(now, free[link]) + seconds
        done = max(free[link] for link in stage)
        end, number = max(end, done), number + 1
        if rest:
            heapq.heappush(events, (done, number, rest))
    return end


@dataclass(frozen=True)
class Prediction:
    step: float  # on one GPU
    exchange: float  # if it began after backward
    exposed: float  # what remains after backward if it begins when the first gradient is ready

    @property
    def hidden(self):  # at high latencies, many early exchanges may take longer than a few late ones
        return max(0.0, 1 - self.exposed / self.exchange)

    @property
    def efficiency(self):
        return self.step / (self.step + self.exposed)

    @property
    def efficiency_without_overlap(self):
        return self.step / (self.step + self.exchange)


def predict(gradients, backward, step, algorithm, most):
    exchange = end_of_exchanges([replace(g, ready=0.0) for g in gradients], algorithm, most=most)
    return Prediction(step, exchange, max(0.0, end_of_exchanges(gradients, algorithm, most=most) - backward))


# ---- When gradients are ready ----------------------------------------------------------------------------------------


def resnet_layers(blocks):
    """(elements of the arrays, forward multiply-adds per image) of every layer of ResNet v1.5."""
    layers = []

    def convolution(out, inputs, kernel, pixels):
        weights = out * inputs * kernel**2
        layers.append(([weights, out, out], weights * pixels**2))

    convolution(64, 3, 7, 112)
    channels, pixels = 64, 56
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            convolution(width, channels, 1, pixels)
            if block == 0 and stage > 0:
                pixels //= 2
            convolution(width, width, 3, pixels)
            convolution(4 * width, width, 1, pixels)
            if block == 0:
                convolution(4 * width, channels, 1, pixels)
            channels = 4 * width
    layers.append(([1000 * channels, 1000], 1000 * channels))
    return layers


def gradients_of(layers, backward, element_bytes):
    """The time of a layer is its share of the multiply-adds: as many for the gradient of its weight as for that of its
    data, which the first layer does not need."""
    key, now, gradients = sum(len(arrays) for arrays, _ in layers), 0.0, []
    total = 2 * sum(macs for _, macs in layers) - layers[0][1]
    for number, (arrays, macs) in reversed(list(enumerate(layers))):
        now += (2 if number else 1) * macs / total * backward
        for elements in reversed(arrays):
            key -= 1
            gradients.append(Gradient(now, elements * element_bytes, key))
    return gradients


def bytes_of(text):
    """'1.53M' in a plan table."""
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1])
    return float(text[:-1]) * factor if factor else float(text)


def gradients_of_table(text, step):
    """What backward writes outside of the plan's memory, and the seconds of backward. Times are scaled so that forward
    and backward take as long as the step. The table does not show where outputs after the first are, so BatchNorm's
    gradients are missing."""
    plan = next((p for p in text.split("working memory") if "---- backward" in p), "")
    rows, first = [], 0
    for line in plan.splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if line.startswith("---- backward"):
            first = len(rows)
        elif cells[0].isdigit():
            size = bytes_of(cells[cells.index("outside") - 1]) if "outside" in cells else 0
            rows.append((cells[-2], size))
    if not rows or not all(re.fullmatch(r"\d+\.\d{3}", ms) for ms, _ in rows):
        sys.exit("scaling_model: no training plan with times: write the table by train_step --profile --table FILE")
    scale, now, found = step / sum(float(ms) for ms, _ in rows), 0.0, []
    for ms, size in rows[first:]:
        now += float(ms) * scale
        if size:
            found.append((now, size))
    return [Gradient(ready, size, len(found) - 1 - i) for i, (ready, size) in enumerate(found)], now


# ---- The report ------------------------------------------------------------------------------------------------------


def print_scaling(title, cluster, gradients, backward, step, element_bytes, numbers):
    size = sum(g.bytes for g in gradients)
    print(f"\n{title}: step {step * 1e3:.1f} ms, backward {backward * 1e3:.1f} ms, gradients {size / MB:.1f} MB")
    print(" GPUs  algorithm     exchange ms  exposed ms  hidden  efficiency  without overlap")
    elements = [g.bytes / element_bytes for g in sorted(gradients, key=lambda g: g.key)]
    for ranks in numbers:
        if ranks == 1:
            print(f"    1  none         {0:12.2f}{0:12.2f}{'':8}{1:12.1%}{1:17.1%}")
            continue
        pieces, owners = pieces_of(gradients, ranks, element_bytes)
        for name, parts, algorithm, most in [  # at most: the store's limit, Horovod's default
            ("owners", gradients, owner(cluster, ranks, owners_of(elements, ranks)), 16 * MB),
            ("pieces", pieces, owner(cluster, ranks, owners), 16 * MB),
            ("ring", gradients, ring(cluster, ranks), 64 * MB),
            ("hierarchical", gradients, hierarchical(cluster, ranks), 64 * MB),
        ]:
            p = predict(parts, backward, step, algorithm, most)
            print(
                f"{ranks:5}  {name:<13}{p.exchange * 1e3:12.2f}{p.exposed * 1e3:12.2f}{p.hidden:8.0%}"
                f"{p.efficiency:12.1%}{p.efficiency_without_overlap:17.1%}"
            )


def link_of(text):
    latency, bandwidth = map(float, text.split(","))
    return Link(latency * 1e-6, bandwidth * 1e9)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measurements", type=Path, default=BENCH / "distributed_measurements.json", metavar="FILE")
    parser.add_argument("--measure", action="store_true", help="measure now, and write the file of --measurements")
    parser.add_argument("--programs", type=Path, default=BENCH.parent / "build/release/bench", help="for --measure")
    parser.add_argument("--table", type=Path, help="a plan with times, instead of ResNet-50's FLOPs", metavar="FILE")
    parser.add_argument("--step-ms", type=float, default=17.9, help="on one GPU; 17.9: ResNet-50, float16, 2026-11-17")
    parser.add_argument("--local", type=link_of, default=H200_HOSTS.local, help="in a host", metavar="US,GB/S")
    parser.add_argument("--network", type=link_of, default=H200_HOSTS.network, help="of a GPU", metavar="US,GB/S")
    parser.add_argument("--message-us", type=float, default=1, help="a processor's time per message of dist_sync")
    parser.add_argument("--per-host", type=int, default=H200_HOSTS.per_host, help="GPUs in a host")
    options = parser.parse_args()

    if options.measure:
        options.measurements.write_text(json.dumps(measure(options.programs), indent=1) + "\n")
    measured = json.loads(options.measurements.read_text())
    good = check_shared_memory(measured["exchanges"], measured["cores"])

    links = {"local": options.local, "network": options.network, "message": options.message_us * 1e-6}
    cluster = replace(H200_HOSTS, per_host=options.per_host, **links)
    numbers, step = [2**i for i in range(11)], options.step_ms * 1e-3
    if options.table:
        gradients, backward = gradients_of_table(options.table.read_text(), step)
        print_scaling(options.table.name, cluster, gradients, backward, step, 4, numbers)
    else:
        for bits in (32, 16):
            gradients = gradients_of(resnet_layers((3, 4, 6, 3)), step * 2 / 3, bits // 8)
            title = f"ResNet-50, float{bits} gradients, assumed links"
            print_scaling(title, cluster, gradients, step * 2 / 3, step, bits // 8, numbers)

    step = 64 * 16 / 1656.82  # images/s of 16 GPUs with batches of 64: Horovod's docs/benchmarks.rst
    gradients = gradients_of(resnet_layers((3, 4, 23, 3)), step * 2 / 3, 4)
    print_scaling("ResNet-101 on Horovod's hosts", PASCAL_HOSTS, gradients, step * 2 / 3, step, 4, [512])
    print(f"  512  published by Horovod (Inception V3, ResNet-101){90:17.1f}%")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
