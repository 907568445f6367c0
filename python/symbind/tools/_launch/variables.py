"""Variables of the environment that follow from those mpirun gives to each of its processes.

The launcher's supervisor sets them before a worker starts; `import symbind` sets what is missing when a script was
started by plain mpirun. Needs the standard library alone and nothing of the package.
"""

import os
import re


def is_rank(environ):
    """Was the process started by Open MPI's mpirun?"""
    return "OMPI_COMM_WORLD_RANK" in environ and "OMPI_COMM_WORLD_SIZE" in environ


def worker_variables(environ, cores):
    """What a worker's environment has in addition to `environ`, as {name: text}; a variable that is set stays.

    `cores` is how many of the host's cores this job may use.
    """
    rank, size = environ["OMPI_COMM_WORLD_RANK"], environ["OMPI_COMM_WORLD_SIZE"]
    local_size = int(environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", size))
    address, port = _root(environ)
    variables = {
        "DMLC_ROLE": "worker",
        "DMLC_NUM_WORKER": size,
        "DMLC_NUM_SERVER": "0",
        "DMLC_RANK": rank,
        "DMLC_WORKER_ID": rank,
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


def set_worker_variables():
    """Completes the environment of this process, where plain mpirun started it.

    mpirun may have bound it to some cores: then it has no more threads than those. How many cores its host has for
    the whole job is read off the parent, mpirun itself, which is not bound.
    """
    own = len(os.sched_getaffinity(0))
    try:
        all_cores = max(own, len(os.sched_getaffinity(os.getppid())))
    except OSError:
        all_cores = own
    variables = worker_variables(os.environ, all_cores)
    if "OMP_NUM_THREADS" in variables:
        variables["OMP_NUM_THREADS"] = str(min(own, int(variables["OMP_NUM_THREADS"])))
    os.environ.update(variables)
