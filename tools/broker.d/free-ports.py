# SPDX-License-Identifier: Apache-2.0
"""free-ports.py N: prints N ports, one a line, that are free now.

They lie below the range that the system hands to clients: a client that dials a dead broker's
port could else be given that very port, and keep the broker from coming back.
"""
import random
import socket
import sys

EPHEMERAL_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"


def top_port():
    try:
        with open(EPHEMERAL_RANGE) as file:
            return min(int(file.read().split()[0]), 32768) - 1
    except OSError:
        return 32767


def free_ports(count):
    top, chosen = top_port(), {}
    while len(chosen) < count:
        probe = socket.socket()
        port = random.randint(min(15000, top - 2000), top)
        try:
            probe.bind(("127.0.0.1", port))
            chosen.setdefault(port, probe)
        except OSError:
            probe.close()
    return list(chosen)


if __name__ == "__main__":
    print("\n".join(str(port) for port in free_ports(int(sys.argv[1]))))
