"""Runs the scripts of tests/python/scripts under MXNet and under Symbind, each in its own environment, and compares.

usage: scripts.py [--mxnet PYTHON] [--symbind PYTHON] [--symbind-path DIR] [--record] [NAME ...]

PYTHON is the interpreter of an environment that has the library: MXNet's is $PEER_MXNET where it is not given, and
Symbind's this one. DIR is the folder that holds the package `symbind`, if it is not installed (build/release/python).
--record only writes MXNet's results to recorded/scripts.json, which tests/python/test_scripts.py reads.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from script_runs import RECORDED, RUNS, SCRIPTS, allowed, environment, execute  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mxnet", default=os.environ.get("PEER_MXNET"), help="MXNet's Python; $PEER_MXNET by default")
    parser.add_argument("--symbind", default=sys.executable, help="Symbind's Python; this one by default")
    parser.add_argument("--symbind-path", help="the folder that holds the package symbind, if it is not installed")
    parser.add_argument("--record", action="store_true", help="write MXNet's results, and compare nothing")
    parser.add_argument("names", nargs="*", metavar="NAME", help="some runs; all by default")
    args = parser.parse_args()
    for name in ("mxnet", "symbind"):  # scripts run in folders of their own
        if os.sep in (getattr(args, name) or ""):
            setattr(args, name, os.path.abspath(getattr(args, name)))
    if not args.mxnet:
        parser.error("which Python has MXNet? give --mxnet or set PEER_MXNET")
    unknown = set(args.names) - {run.name for run in RUNS}
    if unknown:
        parser.error(f"no runs named {', '.join(sorted(unknown))}; there are {', '.join(run.name for run in RUNS)}")
    return args


def attempt(command, run, env):
    """Results, or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return execute([*command, SCRIPTS / f"{run.script}.py"], run.arguments, env, folder), None
        except AssertionError as failure:
            return {}, str(failure)


def main():
    args = parse()
    runs = [run for run in RUNS if not args.names or run.name in args.names]
    # Its graph passes for oneDNN are left out: they fail on some processors.
    mxnet_env = environment(MXNET_SUBGRAPH_BACKEND="NONE")
    symbind_env = environment(args.symbind_path and Path(args.symbind_path).resolve())
    known, failures = {}, []
    if not args.record:
        print(f"{'script':22} {'result':20} {'MXNet':>12} {'Symbind':>12} {'differ by':>10} {'allowed':>10}")
    for run in runs:
        theirs, why = attempt([args.mxnet], run, mxnet_env)
        if why:
            failures.append(f"{run.name} under MXNet: {why}")
        known[run.name] = theirs
        if args.record:
            print(run.name, theirs)
            continue
        ours, why = attempt([args.symbind, "-m", "symbind"], run, symbind_env)
        if why:
            failures.append(f"{run.name} under Symbind: {why}")
        for name in sorted(theirs.keys() | ours.keys()):
            a, b = theirs.get(name, float("nan")), ours.get(name, float("nan"))
            bad = not abs(a - b) <= allowed(run, name, a)
            print(
                f"{run.name:22} {name:20} {a:12.6f} {b:12.6f} {abs(a - b):10.2g} {allowed(run, name, a):10.2g}"
                + ("  FAIL" if bad else "")
            )
            if bad:
                failures.append(f"{run.name}: {name}")
    if args.record and not failures:
        if args.names:
            known = json.loads(RECORDED.read_text())["runs"] | known
        RECORDED.write_text(
            json.dumps({"format": "symbind-scripts-1", "mxnet": "1.9.1", "runs": known}, indent=1) + "\n"
        )
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
