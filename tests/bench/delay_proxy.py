#!/usr/bin/env python3
"""A longer way to a TCP server: what comes is passed on a fixed time later, both ways, at whatever rate.

usage: delay_proxy.py LISTEN_HOST:PORT TARGET_HOST:PORT MILLISECONDS_ONE_WAY

Pieces are on their way side by side, as on a long line: a delay costs no rate, as long as both ends have windows of
rate x round trip. So much may be in the proxy as the window says; more is not read.
"""
import asyncio
import sys

PIECE_BYTES = 64 << 10
WINDOW_BYTES = 64 << 20


async def carry(reader, writer, delay):
    """One way of one connection, to its end."""
    clock = asyncio.get_running_loop().time
    on_the_way = asyncio.Queue(WINDOW_BYTES // PIECE_BYTES)

    async def arrive():
        while True:
            due, piece = await on_the_way.get()
            await asyncio.sleep(max(0, due - clock()))
            if not piece:
                break
            writer.write(piece)
            await writer.drain()
        writer.write_eof()

    arrival = asyncio.ensure_future(arrive())
    try:
        while True:
            piece = await reader.read(PIECE_BYTES)
            await on_the_way.put((clock() + delay, piece))
            if not piece:
                break
        await arrival
    except OSError:  # one end is gone: so is the way
        arrival.cancel()
        writer.transport.abort()


async def main():
    """Serves until it is terminated."""
    (host, port), (to_host, to_port) = (word.rsplit(":", 1) for word in sys.argv[1:3])
    delay = float(sys.argv[3]) / 1000

    async def pair(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection(to_host, int(to_port))
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(carry(reader, far_writer, delay), carry(far_reader, writer, delay))
        for end in (writer, far_writer):
            end.close()

    server = await asyncio.start_server(pair, host, int(port))
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    asyncio.run(main())
