"""One attempt to run a job: starts mpirun, talks to the supervisors, and knows when and why the job is over."""

import enum
import json
import os
import secrets
import select
import selectors
import signal
import socket
import subprocess
import time
from typing import NamedTuple

from . import channel
from .channel import Channel

# Seconds. The sum of those that follow a failure is below ten.
PEER_TIMEOUT = 6  # after which stores miss a worker, if SYMBIND_PEER_TIMEOUT does not say otherwise
GRACE = 1.5  # for workers that have noticed, to say what they were waiting for
LATE_GRACE = 1  # the same, where it took the launcher long to notice: a host that is cut off, a worker that is stopped
INTERRUPTED_GRACE = 5  # for workers after Ctrl-C or SIGTERM
TERMINATE = 1  # between SIGTERM and SIGKILL
ANSWER_WITHIN = 1  # for a supervisor that is asked whether its host is still there
MPIRUN_WITHIN = 1.5  # for mpirun to end when all of its processes have
SERVERS_WITHIN = 3  # for servers to end when all workers have


class Worker:
    """What the launcher knows of one; of a server, too."""

    def __init__(self, rank, title, host, connection):
        self.rank = rank
        self.title = title
        self.host = host
        self.channel = connection
        self.events = selectors.EVENT_READ  # that are waited for; None once the channel is closed
        self.code = None  # of its end; negative: minus the signal
        self.lost = False  # connection closed without a word
        self.stopped = 0  # the signal that stopped it
        self.stopped_at = 0.0
        self.answered = True  # the last ping
        self.dismissed = False  # a server whom no worker needs any more

    @property
    def over(self):
        return self.code is not None or self.lost

    @property
    def failed(self):
        return (self.lost or bool(self.code)) and not self.dismissed

    @property
    def name(self):
        return f"{self.title} on {self.host}"


class Outcome(NamedTuple):
    code: int
    reason: str  # empty: the job did what it should
    started: bool  # did any worker?
    interrupted: bool = False


class Phase(enum.Enum):
    RUNNING = "workers run"
    ENDING = "a worker failed or the user interrupted: the others may still say something"
    TERMINATED = "they were sent SIGTERM"
    KILLED = "they were sent SIGKILL"


def describe(worker):
    """How a worker ended."""
    if not worker.answered:
        return f"{worker.name} does not answer: its host is cut off or down"
    if worker.lost:
        return f"{worker.name} was lost: the connection to its host was closed"
    if worker.stopped:
        return f"{worker.name} was stopped ({signal_name(worker.stopped)}) and did not go on"
    if worker.code < 0:
        return f"{worker.name} was killed by {signal_name(-worker.code)} (signal {-worker.code})"
    return f"{worker.name} ended with exit code {worker.code}"


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def exit_code(worker):
    if worker.code:
        return worker.code if worker.code > 0 else 128 - worker.code
    return 1


def listen(local, workers):
    """A socket for the supervisors: of this host alone, or of all."""
    if not local and socket.has_dualstack_ipv6():
        return socket.create_server(("", 0), family=socket.AF_INET6, backlog=workers, dualstack_ipv6=True)
    return socket.create_server(("127.0.0.1" if local else "", 0), backlog=workers)


class Job:
    """Serves one thread. `start` is what supervisors are told: command, folder, environ, what the roles have in
    addition (environ_of), terminals (of standard output and error; None: no terminal), bind and spawn
    (what runs a worker in place of a lost one).

    An elastic job starts workers in place of lost ones by itself. They get numbers of their own, behind all others."""

    def __init__(self, workers, servers, start, display, *, local, elastic, addresses, peer_timeout=PEER_TIMEOUT):
        self._worker_count = workers
        self._count = workers + servers
        self._start = start
        self._display = display
        self._elastic = elastic
        self._patience = peer_timeout + GRACE  # with workers that may still have to notice a failure
        self._lose_after = peer_timeout + 1  # hosts; the stores should be the first to notice
        self._key = secrets.token_hex(16)
        self._listener = listen(local, self._count)
        self._listener.setblocking(False)
        self._addresses = addresses
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._strangers = []  # connections that have not introduced themselves
        self._workers = {}  # by rank; servers follow the workers
        self._workers_ended_at = None
        self._failures = []  # in the order in which they were noticed
        self._phase = Phase.RUNNING
        self._deadline = None  # of the phase
        self._pinged_at = None
        self._interrupt = 0  # the signal
        self._input_wanted = False  # has worker 0 taken what was sent?
        self._mpirun = None
        self._mpirun_ended_at = None
        self._mpirun_text = bytearray()

    @property
    def port(self):
        return self._listener.getsockname()[1]

    @property
    def contact(self):
        """SYMBIND_LAUNCHER: how supervisors find the launcher."""
        return " ".join([self._key, str(self.port), *self._addresses])

    @property
    def explained(self):
        """Is it known which worker ended the job? While some have not come, mpirun may have terminated the others."""
        all_came = len(self._workers) >= self._count
        return any(all_came or worker.code != -signal.SIGTERM for worker in self._failures)

    def run(self, command):
        """Runs the command of mpirun to its end."""
        restore = self._catch_signals()
        try:
            self._spawn(command)
            while not self._over():
                self._step()
            self._end_mpirun()
        finally:
            self._close()
            restore()
        return self._outcome()

    # ---- processes and signals

    def _spawn(self, command):
        environ = dict(os.environ, SYMBIND_LAUNCHER=self.contact)
        self._mpirun = subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,  # the launcher passes its own to worker 0
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the launcher alone, which tells the workers
        )
        os.set_blocking(self._mpirun.stdout.fileno(), False)
        self._selector.register(self._mpirun.stdout, selectors.EVENT_READ, self._read_mpirun)

    def _catch_signals(self):
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD]
        numbers = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]  # nohup
        before = {number: signal.signal(number, lambda *_: None) for number in numbers}
        wakeup = signal.set_wakeup_fd(writer)
        self._selector.register(reader, selectors.EVENT_READ, lambda: self._signalled(os.read(reader, 4096)))

        def restore():
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(reader)
            os.close(writer)

        return restore

    def _signalled(self, numbers):
        for number in numbers:
            if number == signal.SIGCHLD:
                continue
            if self._interrupt:
                self._enter(Phase.KILLED)  # the user has no patience
            else:
                self._interrupt = number
                self._display.own(f"symbind-launch: {signal_name(number)}: ending all workers")
                self._signal_workers(signal.SIGTERM if number == signal.SIGHUP else number)
                self._enter(Phase.ENDING)

    def _signal_workers(self, number):
        for worker in self._workers.values():
            if not worker.over:
                self._tell(worker, channel.SIGNAL, {"signal": int(number)})

    def _read_mpirun(self):
        try:
            data = os.read(self._mpirun.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if not data and self._mpirun.stdout in self._selector.get_map():
            self._selector.unregister(self._mpirun.stdout)
        self._mpirun_text += data
        del self._mpirun_text[: -(1 << 16)]

    def _end_mpirun(self):
        """Lets the supervisors go and waits for mpirun, which is ended if it does not end by itself: it waits for hosts
        that are cut off."""
        for worker in self._workers.values():
            self._tell(worker, channel.LEAVE, {"quietly": True})
        cut_off = any(worker.lost or not worker.answered for worker in self._workers.values())
        first = 0 if cut_off else MPIRUN_WITHIN
        for end, seconds in ((lambda: None, first), (self._mpirun.terminate, 0.5), (self._kill_mpirun, 1)):
            end()
            deadline = time.monotonic() + seconds
            while self._mpirun.poll() is None and time.monotonic() < deadline:
                self._step()
            if self._mpirun.poll() is not None:
                break
        self._read_mpirun()

    def _kill_mpirun(self):
        try:
            os.killpg(self._mpirun.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def _close(self):
        if self._mpirun is not None:
            if self._mpirun.poll() is None:
                self._kill_mpirun()
                self._mpirun.wait()
            self._mpirun.stdout.close()
        for worker in self._workers.values():
            worker.channel.close()
        for stranger in self._strangers:
            stranger.close()
        self._listener.close()
        self._selector.close()

    # ---- supervisors

    def _accept(self):
        try:
            connected, _ = self._listener.accept()
        except OSError:
            return
        stranger = Channel(connected)
        self._strangers.append(stranger)
        self._selector.register(stranger, selectors.EVENT_READ, lambda: self._introduce(stranger))

    def _introduce(self, stranger):
        try:
            messages = stranger.receive()
            if not messages:
                return
            kind, content = messages[0]
            hello = json.loads(content) if kind == channel.HELLO else {}
            rank, nonce = int(hello["rank"]), hello["nonce"]
            if hello["joins"]:
                rank = max([self._count, *(worker.rank + 1 for worker in self._workers.values())])
            known = channel.proves(hello["proof"], self._key, "worker", nonce) and rank not in self._workers
            known = known and self._phase is Phase.RUNNING  # who comes later is not needed any more
        except (OSError, ValueError, KeyError, TypeError):
            known = False
        self._strangers.remove(stranger)
        if not known:
            self._selector.unregister(stranger)
            stranger.close()
            return
        worker = self._workers[rank] = Worker(rank, self._title(rank), hello["host"], stranger)
        self._selector.modify(stranger, selectors.EVENT_READ, lambda: self._receive(worker))
        stranger.lose_after(self._lose_after)
        start = dict(self._start)
        own = start.pop("environ_of")["worker" if self._is_worker(rank) else "server"]
        start["environ"] = {**start["environ"], **own}
        proof = channel.proof(self._key, "launcher", nonce)
        self._tell(worker, channel.START, {**start, "proof": proof, "lose_after": self._lose_after})

    def _is_worker(self, rank):
        return rank < self._worker_count or rank >= self._count  # who joins later is one

    def _title(self, rank):
        return f"worker {rank}" if self._is_worker(rank) else f"server {rank - self._worker_count}"

    def _tell(self, worker, kind, content=b""):
        if worker.events is not None:
            self._guard(worker, lambda: worker.channel.send(kind, content))

    def _guard(self, worker, act):
        try:
            act()
        except OSError:
            if worker.events is None:
                return
            self._watch(worker, 0)
            worker.events = None
            worker.channel.close()
            if worker.code is None:
                worker.lost = True
                self._worker_over(worker)

    def _label(self, rank):
        """What is in front of its lines: 2, or s0."""
        return str(rank) if self._is_worker(rank) else f"s{rank - self._worker_count}"

    def _receive(self, worker):
        self._guard(worker, lambda: self._receive_all(worker))

    def _receive_all(self, worker):
        for kind, content in worker.channel.receive():
            if kind == channel.OUTPUT:
                stream, piece = int(content[:1]), content[1:2].decode()
                self._display.show(self._label(worker.rank), stream, piece, content[2:])
            elif kind == channel.INPUT:
                self._input_wanted = True
            elif kind == channel.PING:
                worker.answered = True
            elif kind == channel.STOPPED:
                self._worker_stopped(worker, json.loads(content)["signal"])
            elif kind == channel.ENDED:
                worker.code = json.loads(content)["code"]
                self._worker_over(worker)

    def _worker_stopped(self, worker, number):
        worker.stopped, worker.stopped_at = number, time.monotonic()
        how = f"was stopped by {signal_name(number)}" if number else "goes on"
        self._display.own(f"symbind-launch: {worker.name} {how}")

    def _worker_over(self, worker):
        if not worker.failed:
            worker.stopped = 0
            # If one left that never called MPI, mpirun would end servers that wait in MPI_Init, and with them all.
            if self._count == self._worker_count:
                self._tell(worker, channel.LEAVE, {"quietly": True})
        elif self._elastic and self._phase is Phase.RUNNING:
            self._failures.append(worker)
            self._display.own(f"symbind-launch: {describe(worker)}; the others go on")
            self._tell(worker, channel.LEAVE, {"quietly": False})  # MPI tells the others
        elif self._phase in (Phase.RUNNING, Phase.ENDING):  # later it is the launcher that ends workers
            self._failures.append(worker)
            if self._phase is Phase.RUNNING:
                self._enter(Phase.ENDING)

    # ---- the end

    def _enter(self, phase):
        now = time.monotonic()
        self._phase = phase
        if phase is Phase.ENDING:
            late = any(worker.lost or worker.stopped for worker in self._failures)
            self._deadline = now + (INTERRUPTED_GRACE if self._interrupt else LATE_GRACE if late else self._patience)
            self._ping()
        elif phase is Phase.TERMINATED:
            self._deadline = now + TERMINATE
            self._signal_workers(signal.SIGTERM)
        else:
            self._deadline = now + TERMINATE
            self._signal_workers(signal.SIGKILL)

    def _ping(self):
        """Asks who is still there: a worker that fails may be the first to notice that another's host is cut off."""
        self._pinged_at = time.monotonic()
        for worker in self._workers.values():
            if not worker.over:
                worker.answered = False
                self._tell(worker, channel.PING)

    def _over(self):
        now = time.monotonic()
        running = [worker for worker in self._workers.values() if not worker.over]
        if self._phase is Phase.KILLED and now > self._deadline:
            return True  # whoever is left cannot be reached
        if self._mpirun.poll() is not None:
            self._mpirun_ended_at = self._mpirun_ended_at or now
            if running and self._phase is not Phase.KILLED and now > self._mpirun_ended_at + 0.5:
                self._enter(Phase.KILLED)  # mpirun is gone, its processes are not
            return not running
        if self._phase is Phase.RUNNING and len(self._workers) < self._count:
            return False
        # Who does not answer is known a second after the first failure.
        asked = self._pinged_at is not None and now < self._pinged_at + ANSWER_WITHIN
        return not running and (not asked or all(worker.answered for worker in self._workers.values()))

    def _step(self):
        """Waits for something to happen, and sees to it."""
        for worker in self._workers.values():
            if worker.events is not None:
                events = 0 if self._display.full else selectors.EVENT_READ
                events |= selectors.EVENT_WRITE if worker.channel.waiting else 0
                self._watch(worker, events)
        for key, _ in self._selector.select(0.1):
            key.data()
        for worker in self._workers.values():
            if worker.events is not None and worker.channel.waiting:
                self._guard(worker, worker.channel.flush)
        if self._input_wanted and self._workers[0].events is not None:
            self._pass_input()
        self._give_up_stopped()
        self._dismiss_servers()
        if self._phase is Phase.ENDING and self._nobody_speaks():
            self._enter(Phase.KILLED)
        elif self._phase in (Phase.ENDING, Phase.TERMINATED) and time.monotonic() > self._deadline:
            self._enter(Phase.TERMINATED if self._phase is Phase.ENDING else Phase.KILLED)

    def _nobody_speaks(self):
        """Is every worker that has not ended stopped or out of reach?"""
        asked = time.monotonic() < self._pinged_at + ANSWER_WITHIN
        running = [worker for worker in self._workers.values() if not worker.over]
        return bool(running) and all(worker.stopped or not (worker.answered or asked) for worker in running)

    def _pass_input(self):
        """A piece of standard input for worker 0, if there is one; nothing is its end. A terminal is read in the
        foreground alone."""
        try:
            if (os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp()) or not select.select([0], [], [], 0)[0]:
                return
            data = os.read(0, 1 << 16)
        except OSError:  # closed
            data = b""
        self._input_wanted = False
        self._tell(self._workers[0], channel.INPUT, data)

    def _watch(self, worker, events):
        if events == worker.events:
            return
        if worker.events:
            self._selector.unregister(worker.channel)
        if events:
            self._selector.register(worker.channel, events, lambda: self._receive(worker))
        worker.events = events

    def _give_up_stopped(self):
        """A worker that stays stopped is ended when the others must have noticed, unless somebody has stopped them
        all."""
        running = [worker for worker in self._workers.values() if not worker.over]
        if self._phase is not Phase.RUNNING or all(worker.stopped for worker in running):
            return
        for worker in running:
            if worker.stopped and time.monotonic() > worker.stopped_at + self._patience:
                self._tell(worker, channel.SIGNAL, {"signal": int(signal.SIGKILL)})

    def _dismiss_servers(self):
        """Servers end with the workers, unless these have created no distributed store: then they wait in vain."""
        workers = [self._workers.get(rank) for rank in range(self._worker_count)]
        running = [each for rank, each in self._workers.items() if not (self._is_worker(rank) or each.over)]
        if self._phase is not Phase.RUNNING or not running or not all(each and each.over for each in workers):
            return
        now = time.monotonic()
        self._workers_ended_at = self._workers_ended_at or now
        waited = now - self._workers_ended_at
        for server in running:
            if waited > SERVERS_WITHIN and not server.dismissed:
                server.dismissed = True
                self._tell(server, channel.SIGNAL, {"signal": int(signal.SIGTERM)})
            elif waited > SERVERS_WITHIN + TERMINATE:
                self._tell(server, channel.SIGNAL, {"signal": int(signal.SIGKILL)})

    def _outcome(self):
        started = bool(self._workers)
        if self._interrupt:
            reason = f"interrupted by {signal_name(self._interrupt)}; all workers were ended"
            return Outcome(128 + self._interrupt, reason, started, interrupted=True)
        succeeded = [worker for worker in self._workers.values() if worker.over and not worker.failed]
        if self.explained and not (self._elastic and succeeded):
            worker = self._culprit()
            return Outcome(exit_code(worker), describe(worker), started)
        ended = len(succeeded) + len(self._failures)
        if len(self._workers) >= self._count and ended == len(self._workers):
            return Outcome(0, "", started)
        code = self._mpirun.returncode
        absent = [self._title(rank) for rank in range(self._count) if rank not in self._workers]
        who = f"; of {', '.join(absent)} nothing was heard" if started and absent else ""
        return Outcome(code if code > 0 else 1, f"mpirun could not run the job (exit code {code}){who}", started)

    def _culprit(self):
        """The worker whose end was the cause of the others': one that is silent or stopped, else the first to fail."""
        workers = [self._workers[rank] for rank in sorted(self._workers)]
        silent = [worker for worker in workers if not worker.answered]
        stopped = [worker for worker in workers if worker.stopped]
        return (silent or stopped or self._failures)[0]

    def mpirun_text(self):
        """What mpirun itself printed."""
        return self._mpirun_text.decode(errors="replace").strip()
