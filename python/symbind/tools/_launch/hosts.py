"""The hosts of a job."""

import concurrent.futures
import fcntl
import os
import shlex
import socket
import struct
import subprocess
from typing import NamedTuple

SSH_OPTIONS = ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=accept-new", "-o", "ConnectTimeout=8"]
SIOCGIFADDR = 0x8915


class HostError(Exception):
    """Says what is wrong with the hosts."""


class Host(NamedTuple):
    name: str
    slots: int = 0  # 0: not given
    port: int = 0  # of ssh; 0: not given


class Placement(NamedTuple):
    """How many workers run on which host; in turns (rank 0 here, 1 there), or host after host."""

    counts: dict
    in_turns: bool

    def hostfile(self):
        return "".join(f"{name} slots={count}\n" for name, count in self.counts.items())


def read_hosts(path):
    try:
        with open(path) as file:
            lines = [line.partition("#")[0].split() for line in file]
    except OSError as error:
        raise HostError(f"cannot read the file of hosts {path}: {error.strerror}") from None
    hosts = [_host(path, number, words) for number, words in enumerate(lines, 1) if words]
    if not hosts:
        raise HostError(f"there are no hosts in {path}")
    return hosts


def _host(path, number, words):
    name, port = words[0], ""
    if name.count(":") == 1:
        name, _, port = name.partition(":")
    settings = dict(word.partition("=")[::2] for word in words[1:])
    slots = settings.get("slots", "0")
    if not name or not (port or "0").isdigit() or not slots.isdigit() or not all(settings.values()):
        raise HostError(f"{path}, line {number}: {' '.join(words)!r} is not name, name:port or name slots=4")
    return Host(name, int(slots), int(port or 0))


def place(hosts, workers):
    """Workers go to the hosts in turns, as MXNet's do; where slots are given, host after host. Those for whom there is
    no slot go to the hosts in turns."""
    counts = dict.fromkeys((host.name for host in hosts), 0)
    in_turns = not any(host.slots for host in hosts)
    left = workers
    for host in hosts:
        taken = min(left, host.slots)
        counts[host.name] += taken
        left -= taken
    for i in range(left):
        counts[hosts[i % len(hosts)].name] += 1
    return Placement({name: count for name, count in counts.items() if count}, in_turns)


def ssh_port(hosts):
    ports = {host.port for host in hosts}
    if len(ports) > 1:
        raise HostError("hosts have different ports of ssh: write them to ~/.ssh/config instead (Host, Port)")
    return ports.pop() if ports else 0


def agent_command(agent, port):
    """The command that runs a command on a host: agent arguments host command."""
    words = shlex.split(agent)
    if os.path.basename(words[0]) == "ssh":
        words += SSH_OPTIONS + (["-p", str(port)] if port else [])
    return words


def synchronize(names, folder, agent):
    """Copies the working directory to a folder of every host."""

    def copy(name):
        # Hosts may share a file system, where rsync fails if another creates the folder at the same moment.
        create = f"mkdir -p {shlex.quote(folder)} && rsync"
        target = f"{name}:{folder.rstrip('/')}/"
        command = ["rsync", "-az", "--rsh", shlex.join(agent), "--rsync-path", create, "./", target]
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    try:
        with concurrent.futures.ThreadPoolExecutor(16) as threads:
            copies = list(threads.map(copy, names))
    except FileNotFoundError:
        raise HostError("--sync-dst-dir needs rsync, here and on every host: apt-get install rsync") from None
    for name, copied in zip(names, copies):
        if copied.returncode != 0:
            text = copied.stdout.decode(errors="replace").strip()
            raise HostError(f"cannot copy the working directory to {name}:{folder}: {text}")


def own_addresses(names):
    """Addresses under which the hosts may reach this one: first those of the routes to them."""
    found = []
    for name in names:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(name, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.connect(address)  # of a datagram socket: chooses a route and sends nothing
                found.append(probe.getsockname()[0])
        except OSError:
            pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, interface in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
            except OSError:
                continue
            found.append(socket.inet_ntoa(answer[20:24]))
    others = [address for address in dict.fromkeys(found) if not address.startswith("127.")]
    return [*others, "127.0.0.1"]
