"""Environment variables derived from those that mpirun sets for each of its processes.

The launcher's supervisor sets them before a worker or a server starts; `import symbind` sets what is missing when a
script was started by plain mpirun. Needs the standard library alone and nothing of the package.
"""

import os
import re


def is_rank(environ):
    """Was the process started by Open MPI's mpirun?"""
    return "OMPI_COMM_WORLD_RANK" in environ and "OMPI_COMM_WORLD_SIZE" in environ


def first_rank(environ):
    """The first rank of the processes that mpirun started with this one: 0, unless they join a running job to replace
    lost workers."""
    text = environ.get("SYMBIND_JOIN_RANK", "")
    return int(text) if text.isdigit() else 0


def own_rank(environ):
    return first_rank(environ) + int(environ["OMPI_COMM_WORLD_RANK"])


def count_roles(environ):
    """How many ranks are workers, and how many servers. Without servers, all are workers, whatever DMLC_NUM_SERVER says
    to programs that read it: the launcher sets both numbers where there are servers."""
    size = first_rank(environ) + int(environ["OMPI_COMM_WORLD_SIZE"])
    workers, servers = (environ.get(name, "") for name in ("DMLC_NUM_WORKER", "DMLC_NUM_SERVER"))
    if workers.isdigit() and servers.isdigit() and int(workers) + int(servers) == size:
        return int(workers), int(servers)
    return size, 0


def process_variables(environ, cores):
    """What the environment of a worker or a server has in addition to `environ`, as {name: text}; a variable that is
    set stays. The first ranks are workers.

    `cores` is how many of the host's cores this job may use.
    """
    rank = own_rank(environ)
    local_size = int(environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", environ["OMPI_COMM_WORLD_SIZE"]))
    workers, servers = count_roles(environ)
    role, number = ("worker", rank) if rank < workers else ("server", rank - workers)
    address, port = _root(environ)
    variables = {
        "DMLC_ROLE": role,
        "DMLC_NUM_WORKER": str(workers),
        "DMLC_NUM_SERVER": str(servers),
        "DMLC_RANK": str(number),
        f"DMLC_{role.upper()}_ID": str(number),
        "DMLC_PS_ROOT_URI": address,
        "DMLC_PS_ROOT_PORT": port,
        "OMP_NUM_THREADS": str(max(1, cores // local_size)),
    }
    if local_size > cores:
        # A rank that waits for the others must not spin on a core that one of them needs.
        variables["OMPI_MCA_mpi_yield_when_idle"] = "1"
    return {name: text for name, text in variables.items() if name not in environ}


def _root(environ):
    """The address and the port of mpirun or its daemon on this host."""
    for name in ("OMPI_MCA_orte_hnp_uri", "PMIX_SERVER_URI4", "PMIX_SERVER_URI2"):
        found = re.search(r"tcp4?://([0-9.]+):([0-9]+)", environ.get(name, ""))
        if found:
            return found.groups()
    return "127.0.0.1", "0"


def set_process_variables():
    """Completes the environment of this process, where plain mpirun started it.

    mpirun may have bound it to some cores: then it has no more threads than those. How many cores its host has for
    the whole job is read off the parent, mpirun itself, which is not bound.
    """
    own = len(os.sched_getaffinity(0))
    try:
        all_cores = max(own, len(os.sched_getaffinity(os.getppid())))
    except OSError:
        all_cores = own
    variables = process_variables(os.environ, all_cores)
    if "OMP_NUM_THREADS" in variables:
        variables["OMP_NUM_THREADS"] = str(min(own, int(variables["OMP_NUM_THREADS"])))
    os.environ.update(variables)
