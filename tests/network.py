"""Network namespaces on one bridge, whose lines can be slowed and cut. Wants root, ip and tc."""
import math
import os
import subprocess

PREFIX = f"tw{os.getpid()}"


def call(*command):
    """Runs a command that must succeed."""
    subprocess.run([str(word) for word in command], check=True)


def space(name):
    """The network namespace of "c" (the coordinator), "0", "1", …"""
    return f"{PREFIX}-{name}"


def inside(name, *command):
    """The words that run a command in a namespace."""
    return ["ip", "netns", "exec", space(name), *(str(word) for word in command)]


class Network:
    """Namespaces on one bridge; 10.99.0.1 is the coordinator's, 10.99.0.(10 + i) stage i's."""

    def __init__(self, names):
        self.names = names

    def __enter__(self):
        call("ip", "netns", "add", space("hub"))
        call(*inside("hub", "ip", "link", "add", "bridge", "type", "bridge"))
        call(*inside("hub", "ip", "link", "set", "bridge", "up"))
        for name in self.names:
            call("ip", "netns", "add", space(name))
            call(*inside("hub", "ip", "link", "add", f"to{name}", "type", "veth", "peer", "name", "eth0",
                         "netns", space(name)))
            call(*inside("hub", "ip", "link", "set", f"to{name}", "master", "bridge", "up"))
            call(*inside(name, "ip", "address", "add", f"{address(name)}/24", "dev", "eth0"))
            call(*inside(name, "ip", "link", "set", "eth0", "up"))
            call(*inside(name, "ip", "link", "set", "lo", "up"))
        return self

    def __exit__(self, *_):
        for name in [*self.names, "hub"]:
            subprocess.run(["ip", "netns", "delete", space(name)], check=False)


def address(name):
    """A namespace's IPv4 address."""
    return "10.99.0.1" if name == "c" else f"10.99.0.{10 + int(name)}"


PACKET_SECONDS = 300e-6  # that a line takes for the longest packet, where it is longer than Ethernet's
LATE_SECONDS = 130e-6  # that a timer may be late before a line loses of its rate
LEAST_PACKET, MOST_PACKET = 1514, 65536  # bytes
ETHERNET_MTU, MOST_MTU = 1500, 65535


def slow(name, mbit):
    """Both ways of a namespace's line at a rate, Mbit/s; None: as before; infinity: as fast as it goes.

    A network card cuts what TCP hands it, up to a millisecond's bytes, into packets of Ethernet's size by itself. Here the
    processors would do that and wake up for each, so that fast lines carry what takes them PACKET_SECONDS as one packet.
    The fastest line has no packets of Ethernet's size at all, as the loopback has none.
    """
    is_slow = mbit is not None and math.isfinite(mbit)
    packet = min(max(LEAST_PACKET, int(mbit * 1e6 / 8 * PACKET_SECONDS)), MOST_PACKET) if is_slow else MOST_PACKET
    mtu = MOST_MTU if mbit == math.inf else ETHERNET_MTU
    for where, device in ((name, "eth0"), ("hub", f"to{name}")):
        subprocess.run(inside(where, "tc", "qdisc", "del", "dev", device, "root"), check=False,
                       stderr=subprocess.DEVNULL)
        call(*inside(where, "ip", "link", "set", "dev", device, "mtu", mtu, "gso_max_size", packet))
        if is_slow:
            call(*inside(where, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{mbit}mbit", "burst",
                         int(1.1 * packet + mbit * 1e6 / 8 * LATE_SECONDS), "latency", "200ms"))


def connect(name, up):
    """Plugs a namespace's line in, or out."""
    call(*inside("hub", "ip", "link", "set", f"to{name}", "up" if up else "down"))
