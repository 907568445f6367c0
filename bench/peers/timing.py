"""What the peers' scripts share: the command line, the clock and the row they print."""

import argparse
import json
import resource
import statistics
import sys
import time

DTYPES = ("float32", "float16", "bfloat16")


def parse_arguments(description, cases, any_batch=False, on_device=False, variants=()):
    """The command line; `on_device`: of a script for a GPU, which may be tried on a CPU."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--case", choices=sorted(cases), action="append", help="what to time; may be repeated (all)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (%(default)s)")
    if any_batch:
        parser.add_argument("--batch", type=int, help="samples in a batch (the case's own number)")
    if on_device:
        parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="where it runs (%(default)s)")
        parser.add_argument("--dtype", choices=DTYPES, default="float32", help="16 bits: mixed precision (%(default)s)")
    if variants:
        parser.add_argument("--variant", choices=variants, action="append", help="how; the fastest of them counts")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long to time each case (%(default)s)")
    arguments = parser.parse_args()
    arguments.case = arguments.case or list(cases)
    return arguments


def median_ms(step, seconds, warm_up=3, at_least=3, group=1, wait=lambda: None):
    """Median time of a step in milliseconds, over as many groups of steps as fit into the given seconds. Each group is
    waited for; within one, the next step is queued while a GPU still runs the last."""
    for _ in range(warm_up):
        step()
    wait()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < at_least:
        start = time.perf_counter()
        for _ in range(group):
            step()
        wait()
        times.append((time.perf_counter() - start) / group)
    return statistics.median(times) * 1e3


def report(case, batch, ms, **more):
    rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"case": case, "batch": batch, "ms": round(ms, 4), "rss_mb": rss_mb, **more}), flush=True)


def skip(package):
    """Ends a script whose library is missing: the row says so."""
    print(json.dumps({"skipped": f"{package} is not installed in {sys.executable}"}), flush=True)
    sys.exit(0)
