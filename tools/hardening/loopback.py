"""The loopback interface of a network namespace, up and down."""

from __future__ import annotations

import fcntl
import socket
import struct

SIOCSIFFLAGS = 0x8914  # of linux/sockios.h
IFF_UP = 0x1


def set_loopback(up: bool) -> None:
    """Bring it up or down; for that the process must own the network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh", b"lo", IFF_UP if up else 0)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)
