"""symbind-launch -s: servers, which hold the keys of dist_async stores and train nothing."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from launched_jobs import ENDS_WITHIN, LAUNCH, needs_mpirun, run, without_ranks

from symbind.tools._launch import mpirun

pytestmark = needs_mpirun


# ---- processes -------------------------------------------------------------------------------------------------------


def test_servers_know_who_they_are(tmp_path):
    job = run(
        tmp_path,
        """
        role = os.environ["DMLC_ROLE"]
        print(role, os.environ[f"DMLC_{role.upper()}_ID"], os.environ["DMLC_NUM_WORKER"], os.environ["DMLC_NUM_SERVER"])
        print(os.environ["A"], os.environ["B"], sys.stdin.read())
        """,
        *"-n 2 -s 3 --env A:1 --env-worker B=2 --env-server B=3".split(),
    )
    assert (job.code, job.stderr) == (0, "")
    for number in range(2):
        assert without_ranks(job.stdout, number) == [f"worker {number} 2 3", "1 2 "]
    for number in range(3):
        assert without_ranks(job.stdout, f"s{number}") == [f"server {number} 2 3", "1 3 "]


def test_a_server_that_fails_ends_the_job(tmp_path):
    program = """
        if os.environ["DMLC_ROLE"] == "server":
            sys.exit(4)
        time.sleep(1000)
    """
    job = run(tmp_path, program, *"-n 2 -s 1".split(), SYMBIND_PEER_TIMEOUT="1")
    assert job.code == 4
    assert job.last_line == f"symbind-launch: server 0 on {os.uname().nodename} ended with exit code 4"
    assert job.left_over() == []


def test_servers_that_nobody_needs_are_ended(tmp_path):
    program = """
        print("up", flush=True)
        if os.environ["DMLC_ROLE"] == "server":
            if rank == 1:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1000)
    """
    began = time.monotonic()
    job = run(tmp_path, program, *"-n 2 -s 2".split())
    assert time.monotonic() - began < ENDS_WITHIN
    assert (job.code, job.stderr) == (0, "")
    assert job.left_over() == []


# ---- with the library ------------------------------------------------------------------------------------------------

OPTIMIZERS = """
import symbind as mx


class Adding(mx.optimizer.Optimizer):
    def create_state(self, index, weight):
        return mx.nd.zeros(weight.shape)

    def update(self, index, weight, grad, state):
        state += 1
        weight += grad * self.lr
"""

TRAINS = """
import os
import numpy as np
import symbind as mx

assert os.environ["DMLC_ROLE"] == "worker"  # a server does not come to this line
kv = mx.kv.create(KIND)
print("worker", kv.rank, "of", kv.num_workers, flush=True)
random = np.random.RandomState(7)
labels = random.randint(0, 4, 96 * kv.num_workers)
points = random.randn(len(labels), 10) + 3 * np.eye(4, 10)[labels]
data = mx.io.NDArrayIter(points[kv.rank :: kv.num_workers], labels[kv.rank :: kv.num_workers], 8)
net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4)
module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
schedule = mx.lr_scheduler.FactorScheduler(step=40, factor=0.9)
settings = {"learning_rate": 0.05, "lr_scheduler": schedule, "rescale_grad": 1 / 8}
module.fit(data, kvstore=kv, optimizer="adam", optimizer_params=settings, num_epoch=4)
kv.barrier()
accuracy = module.score(data, "acc")[0][1]
assert accuracy > 0.9, accuracy
if kv.rank == 0:
    module.save_checkpoint("net", 4, save_optimizer_states=True)
kv.barrier()
data.reset()
resumed = mx.mod.Module.load("net", 4, load_optimizer_states=True)
resumed.fit(data, kvstore=KIND, optimizer="adam", optimizer_params=settings, begin_epoch=4, num_epoch=5)

if KIND == "dist_async":
    import optimizers  # a module that servers can import

    store = mx.kv.create(KIND)
    store.set_optimizer(optimizers.Adding(learning_rate=2))
    store.init("w", mx.nd.zeros((3, 4)))
    store.push("w", mx.nd.ones((3, 4)))
    store.barrier()
    out = mx.nd.zeros((3, 4))
    store.pull("w", out=out)
    assert (out.asnumpy() == 2 * kv.num_workers).all(), out
    store._send_command_to_servers(7, "hello")
    store.barrier()
print("trained", flush=True)
"""


def launch(folder, script, *options):
    (folder / "optimizers.py").write_text(OPTIMIZERS)
    (folder / "train.py").write_text(script)
    environ = {**os.environ, "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
    command = [*LAUNCH, *options, sys.executable, "train.py"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, env=environ)


@pytest.mark.parametrize("kind, workers, servers", [("dist_async", 1, 1), ("dist_async", 3, 2), ("dist_sync", 2, 1)])
def test_workers_train_with_servers(kind, workers, servers, tmp_path):
    options = ["-n", str(workers), "-s", str(servers)]
    job = launch(tmp_path, f"KIND = '{kind}'\n{TRAINS}", *options)
    assert job.returncode == 0, job.stderr
    for rank in range(workers):
        assert without_ranks(job.stdout, rank) == [f"worker {rank} of {workers}", "trained"]
    for number in range(servers):
        assert without_ranks(job.stdout, f"s{number}") == []
        logged = without_ranks(job.stderr, f"s{number}")
        assert len(logged) == (workers if kind == "dist_async" else 0), logged
        assert all(f"command 7 arrived, but server {number} has no handler" in line for line in logged)


def test_plain_mpirun_has_servers_where_the_numbers_say_so(tmp_path):
    # Into files: what several processes print may be mixed.
    script = f"""
        import pathlib
        import symbind as mx

        kv = mx.kv.create("dist_async")
        kv.set_optimizer(mx.optimizer.Test())
        kv.init(3, mx.nd.zeros((2,)))
        kv.push(3, mx.nd.ones((2,)))
        kv.barrier()
        out = mx.nd.zeros((2,))
        kv.pull(3, out=out)
        pathlib.Path({str(tmp_path)!r}, str(kv.rank)).write_text(str([kv.num_workers, out.asnumpy().tolist()]))
    """
    line = mpirun.command_line(mpirun.find_mpirun(), 4, [sys.executable, "-c", textwrap.dedent(script)], local=True)
    line = [word for word in line if word not in ("-x", "SYMBIND_LAUNCHER")]
    environ = {**os.environ, "DMLC_NUM_WORKER": "3", "DMLC_NUM_SERVER": "1"}
    result = subprocess.run(line, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environ)
    assert result.returncode == 0, result.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys("012", "[3, [3.0, 3.0]]")


def test_servers_of_a_job_without_distributed_stores_are_ended(tmp_path):
    began = time.monotonic()
    script = """
import os, time
import symbind as mx

mx.kv.create("local")
time.sleep(2 * int(os.environ["DMLC_RANK"]))
print("done", flush=True)
"""
    job = launch(tmp_path, script, *"-n 2 -s 1".split())
    assert time.monotonic() - began < 2 * ENDS_WITHIN
    assert (job.returncode, sorted(job.stdout.splitlines())) == (0, ["[0] done", "[1] done"]), job.stderr


def test_an_optimizer_of_the_script_is_refused(tmp_path):
    script = """
import symbind as mx

class Own(mx.optimizer.Optimizer):
    def update(self, index, weight, grad, state):
        weight -= grad

mx.kv.create("dist_async").set_optimizer(Own())
"""
    job = launch(tmp_path, script, *"-n 1 -s 1".split())
    assert job.returncode != 0
    assert "server 0 on host" in job.stderr and "its class must be in a module that servers can import" in job.stderr


def test_a_server_that_is_stopped_is_named(tmp_path):
    script = """
import symbind as mx

kv = mx.kv.create("dist_async")
kv.set_optimizer(mx.optimizer.Test())
kv.init("w", mx.nd.zeros((2,)))
kv.barrier()
print("ready", flush=True)
while True:
    kv.pushpull("w", mx.nd.ones((2,)), mx.nd.ones((2,)))
"""
    (tmp_path / "train.py").write_text(script)
    shell = ["sh", "-c", 'echo pid $$; exec "$@"', "sh"]
    process = subprocess.Popen(
        [*LAUNCH, "-n", "2", "-s", "1", *shell, sys.executable, "train.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "SYMBIND_PEER_TIMEOUT": "2"},
    )
    server, ready = None, 0
    while server is None or ready < 2:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        server = int(line.split()[-1]) if line.startswith("[s0] pid") else server
        ready += "ready" in line
    os.kill(server, signal.SIGSTOP)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    for rank in range(2):
        said = "\n".join(without_ranks(errors, rank))
        assert "server 0 on host" in said and "is lost: no sign of life" in said
    assert "server 0 on" in errors.strip().rpartition("\n")[2]
