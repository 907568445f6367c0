"""symbind-launch, whole: options, hosts, attempts."""

import contextlib
import fnmatch
import os
import shlex
import sys
import tempfile

from . import hosts, mpirun, options
from .job import PEER_TIMEOUT, Job
from .lines import Display

# Variables that a process on another host gets as they are here.
FORWARDED = [
    *("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHON*"),
    *("MXNET_*", "SYMBIND_*", "OMP_*", "GOMP_*", "NCCL_*", "CUDA_VISIBLE_DEVICES"),
]
SUPERVISOR = [
    *(sys.executable, "-E", "-s", "-S"),
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "supervisor.py"),
]


def terminal_size(file):
    """(rows, columns) of a terminal; None if it is none."""
    if not os.isatty(file):
        return None
    size = os.get_terminal_size(file)
    return size.lines, size.columns


def is_elastic(environ):
    return environ.get("SYMBIND_ELASTIC", "0").lower() not in ("", "0", "false", "off", "no")


def peer_timeout(environ):
    """Seconds after which the stores miss a worker."""
    text = environ.get("SYMBIND_PEER_TIMEOUT", "")
    return int(text) if text.isdigit() and int(text) > 0 else PEER_TIMEOUT


class Launcher:
    """All attempts to run the job of a command line."""

    def __init__(self, chosen, display):
        self._options = chosen
        self._display = display
        self._mpirun = mpirun.find_mpirun(chosen.mpirun)
        self._environ = self._common_environ()
        self._elastic = is_elastic(self._environ)
        if self._elastic:
            mpirun.elastic_options(self._mpirun)  # refuses what cannot work
            if chosen.num_servers:
                raise hosts.HostError("an elastic job (SYMBIND_ELASTIC=1) has no servers: start it without -s")
        self._placement = self._agent = None
        self._addresses = ["127.0.0.1"]
        if chosen.launcher != "local":
            self._prepare_hosts()

    def run(self):
        """Runs the job, again if it failed and may be; returns the exit code."""
        restarts = self._options.restarts
        for attempt in range(restarts + 1):
            outcome = self._attempt(attempt)
            again = outcome.code != 0 and outcome.started and not outcome.interrupted and attempt < restarts
            if outcome.reason and not again:
                self._display.own(f"symbind-launch: {outcome.reason}")
            if not again:
                return outcome.code
            self._display.own(f"symbind-launch: {outcome.reason}; restart {attempt + 1} of {restarts}")

    def _attempt(self, attempt):
        chosen = self._options
        local = chosen.launcher == "local"
        start = {
            "command": chosen.command,
            "folder": chosen.sync_dst_dir if chosen.sync_dst_dir and not local else os.getcwd(),
            "environ": {**self._environ, "SYMBIND_RESTART": str(attempt)},
            "environ_of": {"worker": dict(chosen.env_worker), "server": dict(chosen.env_server)},
            "terminals": [terminal_size(1), terminal_size(2)],
            "bind": not chosen.no_bind,
            "spawn": SUPERVISOR if self._elastic else None,
        }
        job = Job(
            chosen.num_workers,
            chosen.num_servers,
            start,
            self._display,
            local=local,
            elastic=self._elastic,
            addresses=self._addresses,
            peer_timeout=peer_timeout(self._environ),
        )
        start["environ"]["DMLC_PS_ROOT_URI"] = self._addresses[0]
        start["environ"]["DMLC_PS_ROOT_PORT"] = str(job.port)
        with self._hostfile() as hostfile:
            line = mpirun.command_line(
                self._mpirun,
                chosen.num_workers + chosen.num_servers,
                [*chosen.mpirun_option, *SUPERVISOR],
                hostfile=hostfile,
                in_turns=self._placement is None or self._placement.in_turns,
                local=local,
                agent=self._agent,
                elastic=self._elastic,
            )
            if chosen.verbose:
                self._display.own(f"symbind-launch: {shlex.join(line)}")
            outcome = job.run(line)
        if text := job.mpirun_text():
            unexplained = outcome.code != 0 and not outcome.interrupted and not job.explained
            if chosen.verbose or unexplained:
                self._display.own(text)
        return outcome

    def _prepare_hosts(self):
        chosen = self._options
        names = []
        if chosen.hostfile:
            listed = hosts.read_hosts(chosen.hostfile)
            self._placement = hosts.place(listed, chosen.num_workers + chosen.num_servers)
            names = list(self._placement.counts)
            agent = hosts.agent_command(chosen.rsh_agent, hosts.ssh_port(listed))
            if chosen.launcher == "ssh":
                self._agent = agent
            if chosen.sync_dst_dir:
                hosts.synchronize(names, chosen.sync_dst_dir, agent)
        self._addresses = hosts.own_addresses(names)

    @contextlib.contextmanager
    def _hostfile(self):
        """The path of a file of hosts for mpirun; None if it needs none."""
        if self._placement is None:
            yield None
            return
        with tempfile.NamedTemporaryFile("w", prefix="symbind-hosts-") as file:
            file.write(self._placement.hostfile())
            file.flush()
            yield file.name

    def _common_environ(self):
        chosen = self._options
        environ = {
            name: text
            for name, text in os.environ.items()
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in FORWARDED)
        }
        environ.update(chosen.env)
        environ["DMLC_NUM_WORKER"] = str(chosen.num_workers)
        environ["DMLC_NUM_SERVER"] = str(chosen.num_servers)
        return environ


def main(argv=None):
    chosen = options.parse(argv)
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        print("symbind-launch: this process is a rank of mpirun already; call one of them, not both", file=sys.stderr)
        return 2
    display = Display()
    try:
        return Launcher(chosen, display).run()
    except (hosts.HostError, mpirun.MpirunError) as error:
        display.own(f"symbind-launch: {error}")
        return 2
    except KeyboardInterrupt:  # before the job has started
        return 130
    finally:
        display.close()
