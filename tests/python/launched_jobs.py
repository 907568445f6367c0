"""Jobs of symbind-launch for tests: their workers are small programs, their processes carry a mark."""

import os
import signal
import subprocess
import sys
import textwrap
import uuid

import pytest

from symbind.tools._launch import mpirun

LAUNCH = [sys.executable, "-m", "symbind.tools.launch"]
ENDS_WITHIN = 30  # seconds; it is less than ten where processors are not busy with something else

try:
    VERSION, _problem = mpirun.find_mpirun().version, ""
except mpirun.MpirunError as error:
    VERSION, _problem = (0,), str(error)
needs_mpirun = pytest.mark.skipif(bool(_problem), reason=_problem)


# Workers tell each other how far they are by files: where processors are busy, no time says it.
BEGINNING = """
import os, signal, subprocess, sys, time
rank = int(os.environ["DMLC_RANK"])

def say(what):
    open(what, "w").close()

def wait_for(what):
    while not os.path.exists(what):
        time.sleep(0.05)
"""


class Running:
    """A job whose processes are known by a mark in their environment."""

    def __init__(self, folder, program, *options, launch=LAUNCH, stdin=subprocess.DEVNULL, **environ):
        script = folder / "worker.py"
        script.write_text(BEGINNING + program)
        self.mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [*launch, *options, sys.executable, "-S", str(script)],
            env={**os.environ, **environ, "TEST_MARK": self.mark},
            cwd=folder,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests may run in the background
        )

    def wait_for(self, text):
        """Reads standard output up to a line that has this text; returns that line."""
        for line in self.process.stdout:
            if text in line:
                return line
        raise AssertionError(f"no line with {text!r}; {self.process.stderr.read()}")

    def finish(self, within=60):
        try:
            self.stdout, self.stderr = self.process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            self.process.terminate()  # the launcher ends the rest
            raise
        self.code = self.process.returncode
        return self

    @property
    def last_line(self):
        return self.stderr.strip().rpartition("\n")[2]

    def left_over(self):
        found = []
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{number}/environ", "rb") as file:
                    marked = self.mark.encode() in file.read()
                with open(f"/proc/{number}/stat") as file:
                    alive = file.read().rpartition(")")[2].split()[0] != "Z"
            except OSError:
                continue
            if marked and alive:
                found.append(number)
        return found


def run(folder, program, *options, **settings):
    return Running(folder, textwrap.dedent(program), *options, **settings).finish()


def without_ranks(text, rank):
    mark = f"[{rank}] "
    return [line[len(mark) :] for line in text.splitlines() if line.startswith(mark)]
