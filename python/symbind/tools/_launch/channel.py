"""Messages between the launcher and its supervisors, over TCP.

A message is one character, its type, followed by its contents: text in JSON, or the bytes of a worker's output. Neither
side ever waits for the other: what cannot be sent yet is kept until the socket takes it. A connection to a host that is
cut off is closed after some seconds, since the kernels ask each other for a sign of life; one to a launcher or a worker
that is stopped is not, its kernel answers for it.
"""

import hashlib
import hmac
import json
import socket
import struct

HELLO, START, INPUT, OUTPUT, ENDED, STOPPED, SIGNAL, PING, LEAVE = "HTIOESGPL"

FULL = 1 << 20  # bytes that wait to be sent: whoever produces them should wait


class Channel:
    """One end. `receive` and `flush` are called when the socket is ready; both raise OSError when it is closed."""

    def __init__(self, connected):
        self.socket = connected
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming = bytearray()
        self._outgoing = bytearray()

    def lose_after(self, seconds):
        """How long a host may be silent, about."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, (seconds - 1) // 3))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * seconds)

    def fileno(self):
        return self.socket.fileno()

    @property
    def waiting(self):
        """Bytes that the socket did not take yet."""
        return len(self._outgoing)

    def send(self, kind, content=b""):
        """Sends text (anything that JSON can hold) or bytes."""
        if not isinstance(content, (bytes, bytearray)):
            content = json.dumps(content).encode()
        self._outgoing += struct.pack("!Ic", len(content), kind.encode()) + content
        self.flush()

    def flush(self):
        while self._outgoing:
            try:
                sent = self.socket.send(self._outgoing)
            except BlockingIOError:
                return
            del self._outgoing[:sent]

    def receive(self):
        """The messages that have arrived, as [(kind, bytes)]."""
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return []
        if not data:
            raise ConnectionResetError("the connection was closed")
        self._incoming += data
        messages = []
        while len(self._incoming) >= 5:
            length, kind = struct.unpack_from("!Ic", self._incoming)
            if length > 64 << 20:
                raise ConnectionAbortedError("received something that is not a launcher's message")
            if len(self._incoming) < 5 + length:
                break
            messages.append((kind.decode("latin-1"), bytes(self._incoming[5 : 5 + length])))
            del self._incoming[: 5 + length]
        return messages

    def close(self):
        self.socket.close()


def proof(key, side, nonce):
    """Shows the other side that this one knows the job's key."""
    return hmac.new(key.encode(), f"{side} {nonce}".encode(), hashlib.sha256).hexdigest()


def proves(text, key, side, nonce):
    return isinstance(text, str) and hmac.compare_digest(text.encode(), proof(key, side, nonce).encode())
