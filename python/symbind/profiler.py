"""The profiler: the time of each operator, the memory in use, and user-defined tasks.

    mx.profiler.set_config(profile_all=True, filename="profile.json")
    mx.profiler.set_state("run")
    ...
    mx.profiler.set_state("stop")
    print(mx.profiler.dumps())   # a table
    mx.profiler.dump()           # a trace for chrome://tracing or Perfetto

While it runs, the steps of a network run one after the other and a GPU is waited for around each, so the whole takes
longer than without. A step may be several layers that were fused: it has the name of what runs.
"""

import json as _json
import os as _os
import threading as _threading

from . import _symbind

__all__ = ["set_config", "set_state", "dump", "dumps", "pause", "resume", "Domain", "Task", "Frame", "Event", "Counter"]

_SETTINGS = {
    "aggregate_stats": False,
    "continuous_dump": False,
    "dump_period": 1.0,
    "filename": "profile.json",
    "gpu_memory_profile_filename_prefix": "gpu_memory_profile",
    "mode": "symbolic",
    "profile_all": False,
    "profile_api": False,
    "profile_imperative": False,
    "profile_memory": False,
    "profile_process": "worker",
    "profile_symbolic": False,
}

_lock = _threading.Lock()
_config = dict(_SETTINGS)
_running = False
_paused = False
_durations = {}  # (category, name) → [count, total, least, most] in milliseconds
_values = {}  # (category, name) → [count, least, most, total]: of counters, and of memory in kB
_trace = []
_finished = False  # dump has written the trace: the next one begins with the next run


def set_config(**kwargs):
    """What is recorded, and where `dump` writes.

    Parameters
    ----------
    filename : str
        The file of `dump`.
    profile_symbolic, profile_imperative, profile_memory : bool
        Operators of networks, operators on arrays, and the memory of each context. Operators of both kinds are recorded
        where none of the three is asked for.
    profile_all : bool
        All of these.
    aggregate_stats, profile_api, continuous_dump, dump_period, profile_process : accepted
        There is always a table; there are no calls of a C interface and no servers.
    """
    unknown = [name for name in kwargs if name not in _SETTINGS]
    if unknown:
        known = ", ".join(sorted(_SETTINGS))
        raise _symbind.MXNetValueError(f"the profiler has no setting {', '.join(unknown)}; there are {known}")
    _config.update(kwargs)
    _apply()


def profiler_set_config(mode="symbolic", filename="profile.json"):
    """The older name of set_config: mode is "symbolic" or "all"."""
    set_config(mode=mode, profile_all=mode == "all", profile_symbolic=True, filename=filename)


def _apply():
    """Starts or stops the recording of operators, according to the state and the settings."""
    if not _running or _paused:
        _symbind._profiler_stop()
        return
    kinds = [_config["profile_symbolic"], _config["profile_imperative"], _config["profile_memory"]]
    if _config["profile_all"]:
        kinds = [True, True, True]
    elif not any(kinds):
        kinds = [True, True, False]
    _symbind._profiler_start(*map(bool, kinds))


def set_state(state="stop", profile_process="worker"):
    """Starts ("run") or stops ("stop") recording."""
    global _running, _finished
    if state not in ("run", "stop"):
        raise _symbind.MXNetValueError(f"a state is 'run' or 'stop', not {state!r}")
    if state == "run" and _finished:
        with _lock:
            _collect()
            _trace.clear()
        _finished = False
    _running = state == "run"
    _apply()


def profiler_set_state(state="stop"):
    """The older name of set_state."""
    set_state(state)


def pause(profile_process="worker"):
    """Leaves out what happens until resume."""
    global _paused
    _paused = True
    _apply()


def resume(profile_process="worker"):
    """Goes on after pause."""
    global _paused
    _paused = False
    _apply()


def set_kvstore_handle(handle):
    """Accepted: profiling of servers is MXNet's."""


def _now():
    return _symbind._profiler_now()


def _add(table, key, value):
    entry = table.setdefault(key, [0, 0.0, value, value])
    entry[0] += 1
    entry[1] += value
    entry[2] = min(entry[2], value)
    entry[3] = max(entry[3], value)


def _add_duration(category, name, begin, seconds, process, thread, details=None):
    """With the lock held."""
    _add(_durations, (category, name), seconds * 1e3)
    event = {"name": name, "cat": category, "ph": "X", "ts": begin * 1e6, "dur": seconds * 1e6}
    event |= {"pid": process, "tid": thread}
    if details:
        event["args"] = details
    _trace.append(event)


def _add_value(category, name, value, time, process):
    """With the lock held."""
    _add(_values, (category, name), value)
    _trace.append({"name": name, "cat": category, "ph": "C", "ts": time * 1e6, "pid": process, "args": {name: value}})


def _collect():
    """Takes over what the library has recorded. With the lock held."""
    events, memory = _symbind._profiler_take()
    for name, category, node, context, thread, begin, seconds in events:
        _add_duration(category, name, begin, seconds, str(context), thread, {"node": node} if node else None)
    for context, time, size in memory:
        name = f"Memory: {context.device_type}/{context.device_id}"
        _add_value("Device Storage", name, size / 1000, time, str(context))


def _record(kind, name, begin, end):
    if not _running or _paused:
        return
    with _lock:
        _add_duration(kind, name, begin, end - begin, _os.getpid(), _threading.get_ident())


def dump(finished=True, profile_process="worker"):
    """Writes what was recorded to the configured file, as the events that chrome://tracing and Perfetto show; with
    `finished` recording stops, and the next run begins a new trace."""
    global _finished
    with _lock:
        _collect()
        with open(_config["filename"], "w", encoding="utf-8") as file:
            _json.dump({"traceEvents": _trace, "displayTimeUnit": "ms"}, file)
    if finished:
        _finished = True
        set_state("stop")


def dump_profile():
    """The older name of dump."""
    dump()


_COLUMNS = {
    "avg": lambda entry: entry[1] / entry[0],
    "count": lambda entry: entry[0],
    "max": lambda entry: entry[3],
    "min": lambda entry: entry[2],
    "total": lambda entry: entry[1],
}


def _grouped(table, sort_by, ascending):
    """category → [(name, entry)], sorted."""
    groups = {}
    for (category, name), entry in table.items():
        groups.setdefault(category, []).append((name, entry))
    for rows in groups.values():
        rows.sort(key=lambda row: _COLUMNS[sort_by](row[1]), reverse=not ascending)
    return dict(sorted(groups.items()))


def dumps(reset=False, format="table", sort_by="total", ascending=False):
    """What was recorded, added up by name: a table for each category, or JSON. `sort_by` is total, avg, min, max or
    count; `reset` begins the sums anew, and leaves the trace of `dump` as it is."""
    if sort_by not in _COLUMNS:
        raise _symbind.MXNetValueError(f"sort_by is one of {', '.join(_COLUMNS)}, not {sort_by!r}")
    if format not in ("table", "json"):
        raise _symbind.MXNetValueError(f"format is 'table' or 'json', not {format!r}")
    with _lock:
        _collect()
        times, values = _grouped(_durations, sort_by, ascending), _grouped(_values, sort_by, ascending)
        if reset:
            _durations.clear()
            _values.clear()
    return _as_json(times, values) if format == "json" else _as_table(times, values)


def _as_json(times, values):
    def described(rows, keys):
        return {name: {key.capitalize(): _COLUMNS[key](entry) for key in keys} for name, entry in rows}

    return _json.dumps(
        {
            "Time": {kind: described(rows, ("count", "total", "min", "max", "avg")) for kind, rows in times.items()},
            "Memory": {kind: described(rows, ("count", "min", "max", "avg")) for kind, rows in values.items()},
            "Unit": {"Time": "ms", "Memory": "kB"},
        },
        indent=4,
    )


def _as_table(times, values):
    lines = ["", "Profile Statistics:", "\tNote the difference in units for different entries."]
    for kind, rows in times.items():
        lines += [kind, "================="]
        columns = ("Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)")
        lines.append(f"{'Name':28}{'Total Count':>13}" + "".join(f"{column:>17}" for column in columns))
        for name, (count, total, least, most) in rows:
            lines.append(f"{name:28}{count:13}{total:17.4f}{least:17.4f}{most:17.4f}{total / count:17.4f}")
        lines.append("")
    for kind, rows in values.items():
        unit = " (kB)" if kind == "Device Storage" else ""
        lines += [kind, "================="]
        lines.append(f"{'Name':28}{'Total Count':>13}{'Min' + unit:>17}{'Max' + unit:>17}{'Avg' + unit:>17}")
        for name, (count, total, least, most) in rows:
            lines.append(f"{name:28}{count:13}{least:17.4f}{most:17.4f}{total / count:17.4f}")
        lines.append("")
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
    domain = None

    def __init__(self, name):
        self.name = name
        self._begin = None

    def _category(self):
        return self._kind if self.domain is None else str(self.domain)

    def start(self):
        """From here on time counts."""
        self._begin = _now()

    def stop(self):
        """Time counts to here."""
        if self._begin is not None:
            _record(self._category(), self.name, self._begin, _now())
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
                _add_value(str(self.domain), self.name, value, _now(), _os.getpid())

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
                event = {"name": self.name, "cat": f"{self.domain},instant_marker", "ph": "i", "ts": _now() * 1e6}
                _trace.append(event | {"pid": _os.getpid(), "tid": _threading.get_ident(), "s": scope[0]})
