"""The command line of symbind-launch: MXNet's launch.py and what it did not have."""

import argparse
import os
import textwrap

INSTEAD = {
    "sge": "submit a script that calls symbind-launch --launcher mpi: Open MPI reads the queue's list of hosts",
    "yarn": "start the workers with mpirun, or list the hosts in a file: symbind-launch --launcher ssh -H hosts",
    "slurm": "inside of salloc or sbatch use --launcher mpi: Open MPI reads Slurm's list of hosts",
}


def assignment(text):
    """NAME:VALUE or NAME=VALUE; NAME alone has the value of this environment."""
    ends = [end for end in (text.find(":"), text.find("=")) if end >= 0]
    name = text[: min(ends)] if ends else text
    if not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME:VALUE, NAME=VALUE or NAME")
    return name, text[min(ends) + 1 :] if ends else os.environ.get(name)


def number(lowest):
    def convert(text):
        try:
            value = int(text)
        except ValueError:
            value = lowest - 1
        if value < lowest:
            raise argparse.ArgumentTypeError(f"must be a whole number, at least {lowest}, not {text!r}")
        return value

    return convert


def make_parser():
    parser = argparse.ArgumentParser(
        "symbind-launch",
        usage="%(prog)s -n WORKERS [options] command ...",
        description="Runs a command as the workers of one distributed job, by Open MPI's mpirun.",
        epilog=textwrap.dedent("""\
            examples:
              symbind-launch -n 4 python train.py --kv-store dist_sync
              symbind-launch -n 4 -H hosts --sync-dst-dir /tmp/job python train.py --kv-store dist_sync"""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("-n", "--num-workers", type=number(1), required=True, help="workers")
    add("-s", "--num-servers", type=number(0), default=0, help="processes that hold the keys of dist_async stores")
    add("-H", "--hostfile", metavar="FILE", help="hosts, one per line: name, name:port (of ssh) or name slots=8")
    add(
        "--launcher",
        choices=["local", "ssh", "mpi", *INSTEAD],
        help="local: all workers on this host (without -H the default); ssh: on the hosts of -H (with -H the default); "
        "mpi: where mpirun decides, from -H or a batch system",
    )
    add("--env", type=assignment, action="append", default=[], metavar="NAME[:VALUE]", help="for workers and servers")
    add("--env-worker", type=assignment, action="append", default=[], metavar="NAME:VALUE", help="for every worker")
    add("--env-server", type=assignment, action="append", default=[], metavar="NAME:VALUE", help="for every server")
    add("--sync-dst-dir", metavar="FOLDER", help="copy this folder to FOLDER of every host first and run there (rsync)")
    add("--restarts", type=number(0), default=0, metavar="N", help="start a job that failed again, N times at most")
    add("--no-bind", action="store_true", help="do not bind workers to their share of the host's cores")
    add("--mpirun", metavar="PATH", help="the mpirun to use: by default that beside this Python, then that of PATH")
    add("--mpirun-option", action="append", default=[], metavar="OPTION", help="passed to mpirun (--mpirun-option=-v)")
    add("--rsh-agent", default="ssh", metavar="COMMAND", help="used to reach the hosts instead of ssh")
    add("--p3", action="store_true", help="accepted for MXNet's scripts: gradients of first layers always go first")
    add("-v", "--verbose", action="store_true", help="show the command line of mpirun and all it prints")
    add("command", nargs=argparse.REMAINDER, help="what each worker and server runs")
    return parser


def parse(argv=None):
    parser = make_parser()
    options = parser.parse_args(argv)
    if options.command[:1] == ["--"]:
        del options.command[0]
    if not options.command:
        parser.error("there is no command to run")
    if len(options.command) == 1 and any(mark in options.command[0] for mark in " ;&|<>$"):
        options.command = ["/bin/sh", "-c", options.command[0]]  # MXNet's scripts pass a line for the shell
    if options.launcher in INSTEAD:
        parser.error(f"--launcher {options.launcher} is not supported; {INSTEAD[options.launcher]}")
    options.launcher = options.launcher or ("ssh" if options.hostfile else "local")
    if options.launcher == "ssh" and not options.hostfile:
        parser.error("--launcher ssh needs the hosts: -H FILE; for workers on this host use --launcher local")
    for name, value in options.env + options.env_worker + options.env_server:
        if value is None:
            parser.error(f"--env {name}: the variable is not set here; give its value: --env {name}:VALUE")
    return options
