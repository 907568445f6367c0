"""Hosts for tests: network namespaces of this machine, connected by a bridge, with names and addresses of their own.

Needs root and the right to create namespaces; `NetworkHosts.refusal()` says why there can be none.
"""

import contextlib
import os
import shlex
import subprocess
import uuid


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


class NetworkHosts:
    """`count` hosts 10.99.0.2, 10.99.0.3, … named host2, host3, …, and 10.99.0.1, from which jobs are launched."""

    def __init__(self, folder, count):
        self.addresses = [f"10.99.0.{2 + i}" for i in range(count)]
        self._mark = "symbind-" + uuid.uuid4().hex[:8]
        self._made = []
        try:
            self._make(folder)
        except OSError:
            self.remove()
            raise

    @staticmethod
    def refusal():
        """Why this machine refuses namespaces; empty if it does not."""
        if os.geteuid() != 0:
            return "network namespaces need root"
        try:
            NetworkHosts(None, 1).remove()
        except OSError as error:
            return f"this machine refuses network namespaces: {error}"
        return ""

    def _make(self, folder):
        launcher = self._namespace(1)
        ip("-n", launcher, "link", "add", "bridge", "type", "bridge")
        ip("-n", launcher, "address", "add", "10.99.0.1/24", "dev", "bridge")
        ip("-n", launcher, "link", "set", "bridge", "up")
        for i, address in enumerate(self.addresses, 2):
            host = self._namespace(i)
            ip("-n", launcher, "link", "add", f"to{i}", "type", "veth", "peer", "name", "eth0", "netns", host)
            ip("-n", launcher, "link", "set", f"to{i}", "master", "bridge", "up")
            ip("-n", host, "address", "add", f"{address}/24", "dev", "eth0")
            ip("-n", host, "link", "set", "eth0", "up")
        if folder is not None:
            self.agent = self._write_agent(folder)
            self.hostfile = folder / "hosts"
            self.hostfile.write_text("".join(f"{address}\n" for address in self.addresses))

    def _namespace(self, number):
        name = f"{self._mark}-{number}"
        ip("netns", "add", name)
        self._made.append(name)
        ip("-n", name, "link", "set", "lo", "up")
        return name

    def _write_agent(self, folder):
        """A program that is called like ssh: agent address command ..."""
        agent = folder / "agent"
        agent.write_text(
            "#!/bin/sh\n"
            "address=$1; shift\n"
            f"exec {self._enter('${address##*.}')} unshare --uts "
            "sh -c 'hostname \"$0\" && eval \"$1\"' \"host${address##*.}\" \"$*\"\n"
        )
        agent.chmod(0o755)
        return agent

    def _enter(self, number):
        return f"nsenter --net=/run/netns/{self._mark}-{number}"

    @property
    def launcher(self):
        """Words that run a command on the launcher's host."""
        return shlex.split(self._enter(1))

    def cut_off(self, address):
        ip("-n", f"{self._mark}-1", "link", "set", f"to{address.rpartition('.')[2]}", "down")

    def remove(self):
        for name in self._made:
            with contextlib.suppress(OSError):
                ip("netns", "delete", name)
