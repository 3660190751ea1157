"""A TCP relay in front of a stage server, whose link can be stalled while control goes on."""

import socket
import threading

BULK_BYTES = 200_000  # no control channel carries that much


class LinkProxy:
    """Relays connections to `target`, "host:port"; itself at `address`."""

    def __init__(self, target):
        host, port = target.rsplit(":", 1)
        self._target = (host, int(port))
        self._flowing = threading.Event()
        self._flowing.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self):
        """From now on nothing passes on connections that carry tensors."""
        self._flowing.clear()

    def flow(self):
        """Ends the stall."""
        self._flowing.set()

    def close(self):
        """Takes no more connections; those there are end with their peers."""
        self.flow()
        self._listener.close()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target)
            except OSError:  # refused, as by the target itself
                near.close()
                continue
            carried = [0]  # by both directions
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._relay, args=(source, sink, carried),
                                 daemon=True).start()

    def _relay(self, source, sink, carried):
        try:
            while data := source.recv(65536):
                carried[0] += len(data)
                if carried[0] > BULK_BYTES:
                    self._flowing.wait()
                sink.sendall(data)
        except OSError:
            pass  # the other end is gone
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
