"""Runs one worker or server of a job. mpirun starts this program once per rank; the launcher tells it what to run.

It ends the worker, and every process the worker started, when the launcher says so and when the connection to the
launcher is lost. The worker's end is reported, and this program stays until the launcher lets it go: mpirun ends the
whole job as soon as a rank fails, and the other workers would have no time to say whom they miss.

The standard library is all it needs: it is started by its path and imports nothing of the package.
"""

import ctypes
import fcntl
import json
import os
import pty
import resource
import secrets
import selectors
import shlex
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import tty

import channel
import variables
from channel import Channel
from lines import LineSplitter

CONNECT_WITHIN = 15  # seconds
TERMINATE_WITHIN = 2  # seconds, between SIGTERM and SIGKILL when nobody is left to decide it
DRAIN_WITHIN = 0.5  # seconds for the output of processes that outlive their worker
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

prctl = ctypes.CDLL(None, use_errno=True).prctl


def connect(addresses, port):
    """A socket to the launcher, by whichever of its addresses answers first."""
    deadline = time.monotonic() + CONNECT_WITHIN
    reasons = {}
    while True:
        for address in addresses:
            try:
                return socket.create_connection((address, port), timeout=2)
            except OSError as error:
                reasons[address] = error.strerror or str(error)
        if time.monotonic() > deadline:
            tried = ", ".join(f"{address} ({reason})" for address, reason in reasons.items())
            sys.exit(
                f"symbind-launch: {socket.gethostname()} cannot reach the launcher's port {port} at {tried}; is there "
                "a firewall between the hosts?"
            )
        time.sleep(0.2)


def join(contact):
    """Introduces itself to the launcher; returns the channel and what is to be run."""
    key, port, *addresses = contact.split()
    joined = Channel(connect(addresses, int(port)))
    nonce = secrets.token_hex(16)
    joined.send(
        channel.HELLO,
        {
            "nonce": nonce,
            "proof": channel.proof(key, "worker", nonce),
            "rank": int(os.environ["OMPI_COMM_WORLD_RANK"]),
            "joins": variables.first_rank(os.environ) > 0,
            "host": socket.gethostname(),
        },
    )
    joined.socket.settimeout(CONNECT_WITHIN)
    messages = []
    try:
        while not messages:
            messages = joined.receive()
    except OSError:
        sys.exit(1)  # the job is over already
    joined.socket.setblocking(False)
    start = json.loads(messages[0][1])
    if not channel.proves(start.get("proof"), key, "launcher", nonce):
        sys.exit("symbind-launch: what answered at the launcher's address is not the launcher")
    joined.lose_after(start["lose_after"])
    return joined, start


def descendants():
    """The processes below this one, which adopts those whose parents have ended."""
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        if state != b"Z":
            children.setdefault(int(parent), []).append(int(name))
    found, queue = [], [os.getpid()]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def signal_all(number):
    for process in descendants():
        try:
            os.kill(process, number)
            if number != signal.SIGKILL:
                os.kill(process, signal.SIGCONT)  # one that is stopped notices no signal
        except ProcessLookupError:
            pass


def kill_all():
    """SIGKILL for everything below, until nothing is left: a process may have been started meanwhile."""
    for _ in range(20):
        if not descendants():
            return
        signal_all(signal.SIGKILL)
        time.sleep(0.01)


def own_cores(local_rank, local_size):
    """This rank's share of the cores the job may use on its host, those of a socket together; none if they are fewer
    than ranks."""

    def where(core):
        ids = []
        for name in ("physical_package_id", "core_id"):
            try:
                with open(f"/sys/devices/system/cpu/cpu{core}/topology/{name}") as file:
                    ids.append(int(file.read()))
            except (OSError, ValueError):
                ids.append(0)
        return *ids, core

    cores = sorted(os.sched_getaffinity(0), key=where)
    if local_size > len(cores):
        return []
    return cores[len(cores) * local_rank // local_size : len(cores) * (local_rank + 1) // local_size]


def complete_environment(start):
    """The worker's environment, and the cores it is bound to (none: not bound)."""
    environ = dict(os.environ)
    if start["spawn"]:  # workers in place of lost ones need a supervisor, too, which finds the launcher
        environ["SYMBIND_SPAWN_COMMAND"] = "\n".join(start["spawn"])
    else:
        del environ["SYMBIND_LAUNCHER"]
    for name, text in start["environ"].items():
        if name in ("PATH", "LD_LIBRARY_PATH") and name in environ:
            others = [folder for folder in environ[name].split(":") if folder not in text.split(":")]
            text = ":".join([text, *others])
        environ[name] = text
    chosen_threads = environ.get("OMP_NUM_THREADS")
    environ.update(variables.process_variables(environ, len(os.sched_getaffinity(0))))
    environ.setdefault("PYTHONUNBUFFERED", "1")
    local_size = int(environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", "1"))
    cores = own_cores(int(environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0")), local_size)
    threads = int(chosen_threads) if (chosen_threads or "").isdigit() else 1
    return environ, cores if start["bind"] and threads <= len(cores) else []


def open_output(terminal):
    """Ends to read and to write the worker's output: a terminal where the launcher has one, else a pipe."""
    if not terminal:
        return os.pipe()
    reader, writer = pty.openpty()
    tty.setraw(writer)
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("4H", *terminal, 0, 0))  # rows and columns
    return reader, writer


class Supervisor:
    def __init__(self, joined, start):
        self._channel = joined
        self._start = start
        self._parent = os.getppid()
        self._process = None
        self._worker = None  # its number
        self._status = None  # of waitpid, once the worker has ended
        self._released = False
        self._quietly = False
        self._kill_at = self._drained_at = None
        self._streams = {}
        self._input = None  # to write the worker's standard input to
        self._input_left = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(joined, selectors.EVENT_READ, self._receive)
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer)
        self._selector.register(reader, selectors.EVENT_READ, lambda: self._signalled(os.read(reader, 4096)))
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)

    def run(self):
        """Returns the worker's status, or 0 if the launcher needs nothing of mpirun any more."""
        self._spawn()
        while not self._finished():
            self._listen()
            for key, _ in self._selector.select(self._timeout()):
                if key.data is not None:
                    key.data()
            if self._channel is not None:
                self._guard(self._channel.flush)
            if self._kill_at is not None and time.monotonic() > self._kill_at:
                kill_all()
        kill_all()
        if self._channel is None and os.getppid() == self._parent:
            os.kill(self._parent, signal.SIGTERM)  # mpirun's daemon would wait for its connection for minutes
        return 0 if self._quietly else self._status

    # ---- the worker

    def _spawn(self):
        environ, cores = complete_environment(self._start)
        first = variables.own_rank(environ) == 0
        stdin = self._open_input() if first else subprocess.DEVNULL
        writers = []
        for stream, terminal in enumerate(self._start["terminals"]):
            reader, writer = open_output(terminal)
            os.set_blocking(reader, False)
            self._streams[reader] = (stream, LineSplitter(progress=first))
            writers.append(writer)

        def before_exec():
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if cores:
                os.sched_setaffinity(0, cores)

        command = self._start["command"]
        try:
            os.chdir(self._start["folder"])
            self._process = subprocess.Popen(  # held: letting go of it could take the status away
                command, env=environ, stdin=stdin, stdout=writers[0], stderr=writers[1], preexec_fn=before_exec
            )
            self._worker = self._process.pid
        except OSError as error:
            text = f"cannot run {shlex.join(command)} in {self._start['folder']}: {error.strerror}: {error.filename}"
            self._tell(channel.OUTPUT, b"1L" + text.encode())
            self._worker_ended(127 << 8)
        for end in [*writers, *([stdin] if first else [])]:
            os.close(end)

    def _open_input(self):
        """Worker 0 reads the launcher's standard input."""
        reader, self._input = os.pipe()
        os.set_blocking(self._input, False)
        self._tell(channel.INPUT, b"")
        return reader

    def _write_input(self):
        """Writes what is left of the last piece, then asks for the next."""
        try:
            self._input_left = self._input_left[os.write(self._input, self._input_left) :]
        except BlockingIOError:
            return
        except OSError:  # the worker has closed it
            self._close_input()
            return
        if not self._input_left:
            self._selector.unregister(self._input)
            self._tell(channel.INPUT, b"")

    def _receive_input(self, data):
        if not data:
            os.close(self._input)
            self._input = None
        else:
            self._input_left = data
            self._selector.register(self._input, selectors.EVENT_WRITE, self._write_input)

    def _close_input(self):
        self._selector.unregister(self._input)
        os.close(self._input)
        self._input = None

    def _signalled(self, numbers):
        if set(numbers) & {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}:
            self._terminate()  # mpirun ends the job
        while self._worker is not None:
            try:
                process, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            except ChildProcessError:
                return
            if process == 0:
                return
            if process == self._worker:
                self._worker_changed(status)

    def _worker_changed(self, status):
        if os.WIFSTOPPED(status):
            self._tell(channel.STOPPED, {"signal": os.WSTOPSIG(status)})
        elif os.WIFCONTINUED(status):
            self._tell(channel.STOPPED, {"signal": 0})
        else:
            self._worker_ended(status)

    def _worker_ended(self, status):
        self._status = status
        self._drained_at = time.monotonic() + DRAIN_WITHIN

    def _read(self, reader):
        try:
            data = os.read(reader, 1 << 16)
        except BlockingIOError:
            return
        except OSError:  # a terminal whose other end is closed
            data = b""
        stream, splitter = self._streams[reader]
        for kind, text in splitter.feed(data) if data else splitter.finish():
            self._tell(channel.OUTPUT, f"{stream}{kind}".encode() + text)
        if not data:
            del self._streams[reader]
            if reader in self._selector.get_map():
                self._selector.unregister(reader)
            os.close(reader)

    def _report_end(self):
        """Once all output was sent."""
        for reader in list(self._streams):
            stream, splitter = self._streams.pop(reader)
            for kind, text in splitter.finish():
                self._tell(channel.OUTPUT, f"{stream}{kind}".encode() + text)
        self._tell(channel.ENDED, {"code": os.waitstatus_to_exitcode(self._status)})
        self._drained_at = None

    def _terminate(self):
        if self._kill_at is None:
            signal_all(signal.SIGTERM)
            self._kill_at = time.monotonic() + TERMINATE_WITHIN
        self._released = True

    # ---- the launcher

    def _tell(self, kind, content):
        if self._channel is not None:
            self._guard(lambda: self._channel.send(kind, content))

    def _guard(self, act):
        """Does something with the channel; if that is closed, nobody needs the worker any more."""
        try:
            act()
        except OSError:
            self._selector.unregister(self._channel)
            self._channel.close()
            self._channel = None
            self._terminate()

    def _receive(self):
        self._guard(self._receive_all)

    def _receive_all(self):
        for kind, content in self._channel.receive():
            if kind == channel.SIGNAL:
                number = json.loads(content)["signal"]
                kill_all() if number == signal.SIGKILL else signal_all(number)
            elif kind == channel.INPUT and self._input is not None:
                self._receive_input(content)
            elif kind == channel.PING:
                self._channel.send(channel.PING)
            elif kind == channel.LEAVE:
                self._released = True
                self._quietly = json.loads(content)["quietly"]

    # ---- the loop

    def _listen(self):
        """The worker's output is read only as fast as the launcher takes it."""
        full = self._channel is not None and self._channel.waiting > channel.FULL
        for reader in self._streams:
            if full and reader in self._selector.get_map():
                self._selector.unregister(reader)
            elif not full and reader not in self._selector.get_map():
                self._selector.register(reader, selectors.EVENT_READ, lambda reader=reader: self._read(reader))
        if self._channel is not None:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._channel.waiting else 0)
            self._selector.modify(self._channel, events, self._receive)

    def _timeout(self):
        times = [at for at in (self._kill_at, self._drained_at) if at is not None]
        return max(0.01, min(times) - time.monotonic()) if times else None

    def _finished(self):
        if self._status is None:
            return False
        sent = self._channel is None or not self._channel.waiting
        if self._drained_at is not None and (not self._streams or time.monotonic() > self._drained_at):
            self._report_end()
        return self._drained_at is None and self._released and sent


def leave_like(status):
    """Ends as the worker did: mpirun and the other ranks are to see the same."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)


def main():
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    joined, start = join(os.environ["SYMBIND_LAUNCHER"])
    leave_like(Supervisor(joined, start).run())


if __name__ == "__main__":
    main()
