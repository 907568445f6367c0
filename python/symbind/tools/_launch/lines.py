"""The output of workers: cut into whole lines where it is written, shown with ranks where it is read."""

import os
import queue
import select
import threading

LINE, PROGRESS, LAST_PROGRESS = "LPE"
LONGEST = 1 << 16  # bytes of a line that does not end


class LineSplitter:
    """Cuts a stream of bytes into lines and progress, as (kind, bytes without the end).

    Progress is text that a carriage return asks to overwrite. A line that is drawn over progress is its last state:
    with `progress` off it is left out, too. "\\r\\n" ends a line like "\\n".
    """

    def __init__(self, progress=True):
        self._shows_progress = progress
        self._text = b""  # that is not ended yet
        self._redrawn = False  # is it drawn over progress?
        self._shown = False  # does it end in a carriage return, and was it returned as progress?

    def feed(self, data):
        pieces = []
        text, self._text = self._text + data, b""
        while text:
            ends = [end for end in (text.find(b"\n"), text.find(b"\r")) if end >= 0]
            if not ends:
                break
            end = min(ends)
            if text.startswith((b"\n", b"\r\n"), end):
                self._line(pieces, text[:end])
                text = text[end + (1 if text.startswith(b"\n", end) else 2) :]
                continue
            self._progress(pieces, text[:end])
            if end + 1 == len(text):  # what comes next may be the "\n" of "\r\n"
                self._shown = True
                break
            self._redrawn, self._shown = True, False
            text = text[end + 1 :]
        if len(text) > LONGEST:
            self._line(pieces, text)
            text = b""
        self._text = text
        return pieces

    def finish(self):
        """What was not ended by a newline."""
        pieces = []
        if text := self._text.rstrip(b"\r"):
            self._line(pieces, text)
        self._text = b""
        return pieces

    def _line(self, pieces, text):
        if self._shows_progress:
            pieces.append((LAST_PROGRESS if self._redrawn or self._shown else LINE, text))
        elif not self._redrawn:
            pieces.append((LINE, text))
        self._redrawn = self._shown = False

    def _progress(self, pieces, text):
        if text and self._shows_progress and not self._shown:
            pieces.append((PROGRESS, text))


class Display:
    """Shows the output of all workers, with the rank in front of each line.

    A terminal shows the progress of worker 0 in its last line; files and pipes get whole lines alone. What is shown is
    written by a thread, so that a reader who does not read cannot keep the launcher from ending its job.
    """

    FULL = 4096  # pieces that wait to be written

    def __init__(self, stdout=1, stderr=2):
        self._files = (stdout, stderr)
        self._terminal = next((file for file in (stderr, stdout) if os.isatty(file)), None)
        self._progress = b""
        self._queue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, daemon=True)
        self._thread.start()

    @property
    def full(self):
        return self._queue.qsize() > self.FULL

    def show(self, label, stream, kind, text):
        """A piece of a LineSplitter; `stream` is 0 for standard output and 1 for standard error. `label` is that of the
        worker."""
        text = f"[{label}] ".encode() + text
        if kind == PROGRESS:
            self._draw(text)
            return
        if kind == LAST_PROGRESS:
            self._clear()
            self._progress = b""
        self._write_line(self._files[stream], text)

    def _draw(self, text):
        if self._terminal is None:
            return
        try:
            width = os.get_terminal_size(self._terminal).columns or 80
        except OSError:  # it was closed
            width = 80
        self._progress = text[: width - 1]
        self._queue.put((self._terminal, b"\r\033[K" + self._progress))

    def own(self, text):
        """A line of the launcher itself."""
        self._write_line(self._files[1], text.encode(errors="surrogateescape"))

    def close(self):
        """Writes what is left, for two seconds at most."""
        if self._progress:
            self._queue.put((self._terminal, b"\n"))
        self._queue.put(None)
        self._thread.join(2)

    def _clear(self):
        if self._progress:
            self._queue.put((self._terminal, b"\r\033[K"))

    def _write_line(self, file, text):
        self._clear()
        self._queue.put((file, text + b"\n"))
        if self._progress:
            self._queue.put((self._terminal, self._progress))

    def _write_all(self):
        closed = set()
        while (piece := self._queue.get()) is not None:
            file, data = piece
            while data and file not in closed:
                try:
                    data = data[os.write(file, data) :]
                except BlockingIOError:
                    select.select([], [file], [])
                except OSError:  # the reader is gone: the job goes on without it, as under nohup
                    closed.add(file)
