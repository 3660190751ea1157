#!/usr/bin/env python3
"""What a stranger who reaches a stage server's port may send, over bare sockets.

usage: hostile_peer.py WHAT HOST:PORT
  idle     1100 connections that say nothing, closed again after some seconds
  resets   400,000 calls of Boundary/Exchange, each ended as soon as it is begun
  imports  as many calls of ImportParameters as there may be, each with 3 MB, whose last byte is missing
  calls    the same of Acquire, which a server knows nothing of until it is there
  halves   60 half requests to an HTTP server, then one whole /metrics: prints its seconds
"""
import select
import socket
import struct
import sys
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE = 0, 1, 3, 4, 8
END_HEADERS, ACK = 4, 1
CANCEL = 8


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header without indexing or Huffman coding (HPACK, RFC 7541, 6.2.2)."""
    out = b"\0"
    for text in (name, value):
        assert len(text) < 127
        out += bytes([len(text)]) + text.encode()
    return out


def call(path):
    """The headers that begin a call of gRPC."""
    return b"".join(literal(*header) for header in (
        (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
        ("content-type", "application/grpc"), ("te", "trailers")))


def connect(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=20)


def open_http2(address):
    connection = connect(address)
    connection.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0))
    return connection


def idle(address):
    connections = []
    for _ in range(1100):
        connections.append(connect(address))
    time.sleep(2)
    for connection in connections:
        connection.close()


def resets(address):
    """Dials again where it is cut off, until all are sent or ten seconds are over."""
    headers = call("/thinwire.Boundary/Exchange")
    end, sent, cut_off = time.monotonic() + 10, 0, 0
    while sent < 400_000 and time.monotonic() < end:
        try:
            connection = open_http2(address)
            for first in range(1, 100_000, 2000):
                connection.sendall(b"".join(
                    frame(HEADERS, END_HEADERS, stream, headers) +
                    frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL))
                    for stream in range(first, first + 2000, 2)))
                sent += 1000
                while select.select([connection], [], [], 0)[0]:
                    if not connection.recv(1 << 20):
                        raise ConnectionError("closed")
        except OSError:
            cut_off += 1
    print(f"{sent} calls, cut off {cut_off} times")


def half_calls(address, path):
    """On 64 connections 32 calls each, as far as the server lets them."""
    headers, streams = call(path), range(1, 65, 2)
    message = b"\0" + struct.pack(">I", 3_000_000 + 1) + b"x" * 3_000_000
    pieces = [frame(HEADERS, END_HEADERS, stream, headers) for stream in streams]
    for at in range(0, len(message), 16384):
        pieces += [frame(DATA, 0, stream, message[at:at + 16384]) for stream in streams]
    outgoing = memoryview(b"".join(pieces))
    connections = []
    for _ in range(64):
        try:
            connection = open_http2(address)
        except OSError:
            continue
        connection.setblocking(False)
        connections.append([connection, outgoing])
    end = time.monotonic() + 6
    while connections and time.monotonic() < end:
        sockets = [connection for connection, _ in connections]
        readable, writable, _ = select.select(sockets, [c for c, rest in connections if rest], [], 1)
        for entry in list(connections):
            connection, rest = entry
            try:
                if connection in readable and not connection.recv(1 << 20):
                    connections.remove(entry)
                elif connection in writable:
                    entry[1] = rest[connection.send(rest[:1 << 18]):]
            except BlockingIOError:
                pass
            except OSError:
                connections.remove(entry)


def halves(address):
    held = []
    for _ in range(60):
        held.append(connect(address))
        held[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost:")
    time.sleep(0.2)
    start = time.monotonic()
    connection = connect(address)
    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = b""
    while piece := connection.recv(1 << 16):
        answer += piece
    assert answer.startswith(b"HTTP/1.1 200") and b"thinwire_build_info" in answer, answer[:100]
    print(f"{time.monotonic() - start:.1f}")


def imports(address):
    half_calls(address, "/thinwire.Stage/ImportParameters")


def calls(address):
    half_calls(address, "/thinwire.Stage/Acquire")


if __name__ == "__main__":
    {"idle": idle, "resets": resets, "imports": imports, "calls": calls, "halves": halves}[sys.argv[1]](sys.argv[2])
