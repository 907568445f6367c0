"""What the peers' scripts share: the command line, the clock and the row they print."""

import argparse
import json
import resource
import statistics
import time


def parse_arguments(description, cases, any_batch=False):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--case", choices=sorted(cases), action="append", help="what to time; may be repeated (all)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (%(default)s)")
    if any_batch:
        parser.add_argument("--batch", type=int, help="samples in a batch (the case's own number)")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long to time each case (%(default)s)")
    arguments = parser.parse_args()
    arguments.case = arguments.case or list(cases)
    return arguments


def median_ms(step, seconds, warm_up=3, at_least=3):
    """Median time of a step in milliseconds, over as many steps as fit into the given seconds."""
    for _ in range(warm_up):
        step()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < at_least:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def report(case, batch, ms, **more):
    rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"case": case, "batch": batch, "ms": round(ms, 4), "rss_mb": rss_mb, **more}), flush=True)
