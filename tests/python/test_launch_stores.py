"""Jobs of symbind-launch whose workers use distributed stores."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from launched_jobs import LAUNCH, Running, needs_mpirun, without_ranks
from network_hosts import NetworkHosts

pytestmark = needs_mpirun

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "distributed.md"


@pytest.fixture(scope="module", autouse=True)
def stores():
    """Builds without MPI have none."""
    command = [*LAUNCH, "-n", "1", sys.executable, "-c", "import symbind; symbind.kv.create('dist_sync')"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if reason := re.search(".*needs MPI.*", made.stderr):
        pytest.skip(reason[0])


EXCHANGES = """
sys.path[:0] = os.environ["PACKAGES"].split(":")
import symbind as mx

store = mx.kv.create("dist_sync")
store.init("weight", mx.nd.zeros((3,)))
value = mx.nd.zeros((3,))
for step in range(100000):
    store.push("weight", mx.nd.ones((3,)))
    store.pull("weight", out=value)
    value.wait_to_read()
    if step == 5:
        print("up", os.getpid(), flush=True)
    time.sleep(0.01)
"""


def start(folder, *options, **settings):
    # Running's workers leave the packages of the environment out, to start fast.
    packages = ":".join(filter(None, sys.path))
    return Running(folder, EXCHANGES, *options, PACKAGES=packages, SYMBIND_PEER_TIMEOUT="3", **settings)


def test_the_program_of_the_documentation_runs(tmp_path):
    (program,) = re.findall(r"```python\n(import logging.*?)```", DOCS.read_text(), re.DOTALL)
    (tmp_path / "data").symlink_to(DOCS.parents[1] / "data")
    (tmp_path / "train.py").write_text(program)
    command = [*LAUNCH, "-n", "2", sys.executable, "train.py"]
    job = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert job.returncode == 0, job.stderr
    for rank in range(2):
        accuracies = re.findall(r"Epoch\[9\] Train-accuracy=([0-9.]+)", "\n".join(without_ranks(job.stderr, rank)))
        assert len(accuracies) == 1 and float(accuracies[0]) > 0.9
    assert (tmp_path / "net-0010.params").exists()


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
def test_survivors_name_the_worker_that_is_missed(fault, tmp_path):
    job = start(tmp_path, "-n", "3")
    lines = [job.wait_for("up").split() for _ in range(3)]
    os.kill(next(int(line[-1]) for line in lines if line[0] == "[1]"), fault)
    job.finish()
    host = os.uname().nodename
    assert job.code == 128 + signal.SIGKILL
    for rank in (0, 2):
        said = "\n".join(without_ranks(job.stderr, rank))
        assert re.search(rf"worker 1 on host {host} .*key weight at step \d+", said), job.stderr
    assert f"worker 1 on {host} was" in job.last_line
    assert job.left_over() == []


@pytest.mark.skipif(bool(NetworkHosts.refusal()), reason=NetworkHosts.refusal())
def test_survivors_name_the_host_that_is_cut_off(tmp_path):
    hosts = NetworkHosts(tmp_path, 2)
    try:
        options = ["-n", "2", "-H", str(hosts.hostfile), "--rsh-agent", str(hosts.agent)]
        job = start(tmp_path, *options, launch=[*hosts.launcher, *LAUNCH])
        job.wait_for("up")
        job.wait_for("up")
        hosts.cut_off(hosts.addresses[1])
        job.finish()
    finally:
        hosts.remove()
    assert job.code != 0
    said = "\n".join(without_ranks(job.stderr, 0))
    assert re.search(r"worker 1 on host host3 .*key weight at step \d+", said), job.stderr
    assert "worker 1 on host3" in job.last_line
