"""Runs the tests of distributed stores under mpirun: real processes, which are killed and stopped on purpose.

usage: run.py WORKER [--workers N] [--faults] [--elastic FOLDER] [--script FILE]

--elastic FOLDER: jobs that go on without workers that are lost, by the Open MPI 5 that is installed there
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT = 60  # seconds that any of these may take


def mpirun(workers, *command):
    """Runs it and returns its exit code, its output and how long it took."""
    # Containers often forbid one process to read the memory of another, which Open MPI would do.
    environment = dict(os.environ, OMP_NUM_THREADS="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")
    begin = time.monotonic()
    job = subprocess.run(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(workers), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        env=environment,
    )
    return job.returncode, job.stdout, time.monotonic() - begin


def require(condition, what, output):
    if not condition:
        sys.exit(f"distributed test: {what}\n{output}")


def succeeds(workers, *command):
    code, output, seconds = mpirun(workers, *command)
    what = f"{' '.join(command[1:])} with {workers} workers"
    require(code == 0, f"{what} ended with {code}", output)
    require(output.count("well") == workers, f"{what}: not every worker finished", output)
    print(f"{what}: {seconds:.1f} s", flush=True)
    return output


def fails(worker, fault, workers, victim, survivors_say, within):
    code, output, seconds = mpirun(workers, worker, fault, str(victim))
    what = f"{fault} of worker {victim} of {workers}"
    require(code != 0, f"{what} went unnoticed", output)
    require(seconds < within, f"{what} took {seconds:.1f} s to end", output)
    if survivors_say:
        # Not by lines: mpirun may join what several workers write.
        named = re.findall(r"error: \[kvstore\] " + survivors_say, output)
        require(len(named) >= workers - 1, f"{what}: {len(named)} survivors named it", output)
    print(f"{what}: {seconds:.1f} s", flush=True)


def test_faults(worker):
    # Open MPI's own launcher ends a job whose process is killed, and names it.
    code, output, seconds = mpirun(3, worker, "kill", "1")
    require(code != 0 and "rank 1" in output and seconds < 10, "a killed worker went unnoticed", output)
    print(f"kill of worker 1 of 3: {seconds:.1f} s", flush=True)
    lost = r"worker {0} on host \S+ is lost: no sign of life .*? missed at key \w+ at step 4"
    ended = r"worker {0} on host \S+ has ended, and is missed at key \w+ at step 4"
    for victim in (0, 2):
        fails(worker, "stop", 3, victim, lost.format(victim), within=15)
        fails(worker, "throw", 3, victim, ended.format(victim), within=10)
        fails(worker, "early", 3, victim, ended.format(victim), within=10)
    output = succeeds(2, worker, "slow", "1")
    require("alive but slow" in output, "a slow worker was not reported", output)


def test_elastic(worker, folder):
    """By an MPI that tolerates faults: those that are left finish their work."""
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(
        [os.path.join(folder, "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    )
    os.environ["PATH"] = os.path.join(folder, "bin") + os.pathsep + os.environ["PATH"]
    succeeds(2, worker, "bits")
    os.environ["SYMBIND_ELASTIC"] = "1"
    # A process that is stopped is noticed by MPI's own heartbeats.
    options = ["--with-ft", "ulfm", "--mca", "mpi_ft_detector", "1", "--mca", "mpi_ft_detector_timeout", "2"]
    for fault, victim in (("kill", 0), ("kill", 1), ("stop", 1), ("throw", 2), ("early", 0)):
        code, output, seconds = mpirun(3, *options, worker, fault, str(victim))
        what = f"elastic, {fault} of worker {victim} of 3"
        require(output.count("of 2 is left") == 2, f"{what} ended with {code}: not every survivor finished", output)
        require("is lost" in output, f"{what}: nobody named it", output)
        print(f"{what}: {seconds:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("worker")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--elastic", metavar="FOLDER")
    parser.add_argument("--script")
    args = parser.parse_args()
    if not shutil.which("mpirun"):
        sys.exit("distributed test: there is no mpirun; install Debian's openmpi-bin")
    if args.elastic:
        test_elastic(args.worker, args.elastic)
    elif args.faults:
        test_faults(args.worker)
    elif args.script:
        with tempfile.TemporaryDirectory() as folder:
            succeeds(args.workers, args.worker, args.script, folder)
    else:
        for mode in ("bits", "fit", "float16", "others"):
            succeeds(args.workers, args.worker, mode)


if __name__ == "__main__":
    main()
