"""Runs the tests of distributed stores under mpirun: real processes, which are killed and stopped on purpose.

usage: run.py WORKER [--workers N] [--servers N] [--faults [--repeat N]] [--elastic FOLDER] [--script FILE]

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


def mpirun(workers, *command, servers=0):
    """Runs it and returns its exit code, its output and how long it took."""
    if servers:
        command = [*command, ":", "-n", str(servers), "env", "DMLC_ROLE=server", *command]
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


def succeeds(workers, *command, servers=0):
    code, output, seconds = mpirun(workers, *command, servers=servers)
    what = f"{' '.join(command[1:])} with {workers} workers" + (f" and {servers} servers" if servers else "")
    require(code == 0, f"{what} ended with {code}", output)
    require(output.count("well") == workers, f"{what}: not every worker finished", output)
    print(f"{what}: {seconds:.1f} s", flush=True)
    return output


def print_times(what, times):
    spread = f" to {max(times):.1f} s in {len(times)} jobs" if len(times) > 1 else " s"
    print(f"{what}: {min(times):.1f}{spread}", flush=True)


def fails(worker, fault, workers, victim, says, sayers, within, repeat):
    """At least `sayers` processes write what `says` matches, and the job ends with an error in time."""
    what = f"{fault} of worker {victim} of {workers}"
    times = []
    for _ in range(repeat):
        code, output, seconds = mpirun(workers, worker, fault, str(victim))
        require(code != 0, f"{what} went unnoticed", output)
        require(seconds < within, f"{what} took {seconds:.1f} s to end", output)
        # Not by lines: mpirun may join what several workers write.
        named = len(re.findall(says, output))
        require(named >= sayers, f"{what}: {named} processes named it", output)
        times.append(seconds)
    print_times(what, times)


def test_faults(worker, repeat):
    lost = r"worker {0} on host \S+ is lost: no sign of life .*? missed at key \w+ at step 4"
    ended = r"worker {0} on host \S+ has ended, and is missed at key \w+ at step 4"
    for victim in (0, 2):
        # Open MPI's own launcher ends a job whose process is killed, and names it.
        fails(worker, "kill", 3, victim, f"rank {victim} ", 1, within=10, repeat=repeat)
        for fault, says, within in (("stop", lost, 15), ("throw", ended, 10), ("early", ended, 10)):
            named = r"error: \[kvstore\] " + says.format(victim)
            fails(worker, fault, 3, victim, named, 2, within, repeat)
    output = succeeds(2, worker, "slow", "1")
    require("alive but slow" in output, "a slow worker was not reported", output)


def test_elastic(worker, folder, repeat):
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
        what = f"elastic, {fault} of worker {victim} of 3"
        times = []
        for _ in range(repeat):
            code, output, seconds = mpirun(3, *options, worker, fault, str(victim))
            finished = output.count("of 2 is left")
            require(finished == 2, f"{what} ended with {code}: {finished} survivors finished", output)
            require("is lost" in output, f"{what}: nobody named it", output)
            times.append(seconds)
        print_times(what, times)
    for victim in (0, 1):
        what = f"elastic, replacement of worker {victim} of 3"
        times = []
        for _ in range(repeat):
            code, output, seconds = mpirun(3, *options, worker, "replace", str(victim))
            require("worker 2 of 3 is new" in output, f"{what} ended with {code}: there was none", output)
            ends = re.findall(r"worker (\d) of 3 has (\d+)", output)
            require(sorted(rank for rank, _ in ends) == ["0", "1", "2"], f"{what}: not all finished", output)
            require(len({weights for _, weights in ends}) == 1, f"{what}: the weights differ", output)
            times.append(seconds)
        print_times(what, times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("worker")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--servers", type=int, default=0)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--repeat", type=int, default=1, help="how often each fault is tried")
    parser.add_argument("--elastic", metavar="FOLDER")
    parser.add_argument("--script")
    args = parser.parse_args()
    if not shutil.which("mpirun"):
        sys.exit("distributed test: there is no mpirun; install Debian's openmpi-bin")
    if args.elastic:
        test_elastic(args.worker, args.elastic, args.repeat)
    elif args.faults:
        test_faults(args.worker, args.repeat)
    elif args.script:
        with tempfile.TemporaryDirectory() as folder:
            succeeds(args.workers, args.worker, args.script, folder)
    else:
        for mode in ("bits", "fit", "batch_norm", "float16", "others"):
            succeeds(args.workers, args.worker, mode, servers=args.servers)


if __name__ == "__main__":
    main()
