"""The profiler's interface. Symbind has no profiler of its own yet: settings are accepted and kept, durations of the
user's own tasks, frames and events are measured, and nothing is reported that was not."""

import json as _json
import os as _os
import threading as _threading
import time as _time

__all__ = ["set_config", "set_state", "dump", "dumps", "pause", "resume", "Domain", "Task", "Frame", "Event", "Counter"]

_NO_OPERATORS = (
    "Symbind does not time single operators yet; what follows are tasks, frames, events and counters of your own."
)

_lock = _threading.Lock()
_config = {"filename": "profile.json"}
_running = False
_paused = False
_durations = {}  # name → [count, total, least, most] in milliseconds
_trace = []


def set_config(**kwargs):
    """Keeps MXNet's settings; `filename` is where dump writes."""
    _config.update(kwargs)


def profiler_set_config(mode="symbolic", filename="profile.json"):
    """The older name of set_config."""
    set_config(mode=mode, filename=filename)


def set_state(state="stop", profile_process="worker"):
    """Starts ("run") or stops ("stop") recording."""
    global _running
    if state not in ("run", "stop"):
        raise ValueError(f"a state is 'run' or 'stop', not {state!r}")
    _running = state == "run"


def profiler_set_state(state="stop"):
    """The older name of set_state."""
    set_state(state)


def pause(profile_process="worker"):
    """Leaves out what happens until resume."""
    global _paused
    _paused = True


def resume(profile_process="worker"):
    """Goes on after pause."""
    global _paused
    _paused = False


def set_kvstore_handle(handle):
    """Accepted: profiling of servers is MXNet's."""


def _record(kind, name, begin, end):
    if not _running or _paused:
        return
    milliseconds = (end - begin) * 1e3
    with _lock:
        entry = _durations.setdefault(name, [0, 0.0, milliseconds, milliseconds])
        entry[0] += 1
        entry[1] += milliseconds
        entry[2] = min(entry[2], milliseconds)
        entry[3] = max(entry[3], milliseconds)
        _trace.append(
            {
                "name": name,
                "cat": kind,
                "ph": "X",
                "ts": begin * 1e6,
                "dur": (end - begin) * 1e6,
                "pid": _os.getpid(),
                "tid": 0,
            }
        )


def dump(finished=True, profile_process="worker"):
    """Writes what was recorded to the configured file, in the format browsers' trace viewers read."""
    with _lock, open(_config["filename"], "w", encoding="utf-8") as file:
        _json.dump({"traceEvents": _trace, "otherData": {"note": _NO_OPERATORS}}, file)
    if finished:
        set_state("stop")


def dump_profile():
    """The older name of dump."""
    dump()


def dumps(reset=False, format="table", sort_by="total", ascending=False):
    """A table (or JSON) of what was recorded."""
    columns = {"avg": lambda entry: entry[1] / entry[0], "count": lambda entry: entry[0]}
    columns |= {"total": lambda entry: entry[1], "min": lambda entry: entry[2], "max": lambda entry: entry[3]}
    if sort_by not in columns:
        raise ValueError(f"sort_by is one of {', '.join(columns)}, not {sort_by!r}")
    if format not in ("table", "json"):
        raise ValueError(f"format is 'table' or 'json', not {format!r}")
    with _lock:
        rows = sorted(_durations.items(), key=lambda row: columns[sort_by](row[1]), reverse=not ascending)
        if reset:
            _durations.clear()
            _trace.clear()
    if format == "json":
        order = ("count", "total", "min", "max", "avg")
        return _json.dumps(
            {
                "note": _NO_OPERATORS,
                "time_ms": {name: {key: columns[key](entry) for key in order} for name, entry in rows},
            }
        )
    lines = [_NO_OPERATORS]
    if rows:
        lines.append(f"{'Name':40}{'Count':>8}{'Total ms':>14}{'Min ms':>14}{'Max ms':>14}{'Avg ms':>14}")
    for name, (count, total, least, most) in rows:
        lines.append(f"{name:40}{count:8}{total:14.4f}{least:14.4f}{most:14.4f}{total / count:14.4f}")
    return "\n".join(lines) + "\n"


class Domain:
    """A name under which tasks, frames, counters and markers are gathered."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name

    def new_task(self, name):
        """A task of this domain."""
        return Task(self, name)

    def new_frame(self, name):
        """A frame of this domain."""
        return Frame(self, name)

    def new_counter(self, name, value=None):
        """A counter of this domain."""
        return Counter(self, name, value)

    def new_marker(self, name):
        """A marker of this domain."""
        return Marker(self, name)


class _Duration:
    _kind = ""

    def __init__(self, name):
        self.name = name
        self._begin = None

    def start(self):
        """From here on time counts."""
        self._begin = _time.perf_counter()

    def stop(self):
        """Time counts to here."""
        if self._begin is not None:
            _record(self._kind, self.name, self._begin, _time.perf_counter())
            self._begin = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.stop()

    def __str__(self):
        return self.name


class Task(_Duration):
    """Work that may overlap with other work."""

    _kind = "task"

    def __init__(self, domain, name):
        super().__init__(name)
        self.domain = domain


class Frame(_Duration):
    """One of many like it, such as a batch."""

    _kind = "frame"

    def __init__(self, domain, name):
        super().__init__(name)
        self.domain = domain


class Event(_Duration):
    """Work of one thread."""

    _kind = "event"


class Counter:
    """A number that changes over time."""

    def __init__(self, domain, name, value=None):
        self.domain = domain
        self.name = name
        self._value = 0
        if value is not None:
            self.set_value(value)

    def set_value(self, value):
        """Sets the number."""
        self._value = value
        if _running and not _paused:
            with _lock:
                now = _time.perf_counter() * 1e6
                arguments = {self.name: value}
                _trace.append({"name": self.name, "ph": "C", "ts": now, "pid": _os.getpid(), "args": arguments})

    def increment(self, delta=1):
        """Adds to the number."""
        self.set_value(self._value + delta)

    def decrement(self, delta=1):
        """Takes from the number."""
        self.set_value(self._value - delta)

    def __iadd__(self, delta):
        self.increment(delta)
        return self

    def __isub__(self, delta):
        self.decrement(delta)
        return self

    def __str__(self):
        return self.name


class Marker:
    """A moment."""

    def __init__(self, domain, name):
        self.domain = domain
        self.name = name

    def mark(self, scope="process"):
        """Notes the moment."""
        if _running and not _paused:
            with _lock:
                now = _time.perf_counter() * 1e6
                _trace.append({"name": self.name, "ph": "i", "ts": now, "pid": _os.getpid(), "tid": 0, "s": scope[0]})
