"""One command: a time limit for it and all its children, its output in the order in which it came,
and how much of that is shown."""
import os
import signal
import subprocess
import threading
import time


class Done:
    """How a command ended."""

    def __init__(self, command):
        self.command = [str(part) for part in command]
        self.name = os.path.basename(self.command[0])
        self.out = ""  # of both streams
        self.status, self.seconds, self.timed_out = None, 0.0, False

    def ending(self):
        """ "exit 3", "SIGSEGV" or "not done after 20 s"."""
        if self.timed_out:
            return f"not done after {self.seconds:.0f} s"
        if self.status < 0:
            return signal.Signals(-self.status).name
        return f"exit {self.status}"

    def reason(self):
        """How it ended, and what it said first and last: a root cause is the one or the other."""
        lines = self._lines()
        told = lines[:2] + ["..."] + lines[-3:] if self.says_more() else lines
        return f"{self.name}: {self.ending()}: " + (" / ".join(told) or "it printed nothing")

    def says_more(self):
        """Than its reason."""
        return len(self._lines()) > 5

    def _lines(self):
        return [line.strip() for line in self.out.splitlines() if line.strip()]


class Stopped(BaseException):
    """What runs was ended by stop()."""


_running = set()
_stopped = False


def stop():
    """Kills what runs, in all threads; run() then raises Stopped, and so at once from now on. It
    raises nothing itself, as a handler of signals may come between any two lines."""
    global _stopped  # pylint: disable=global-statement
    _stopped = True
    for child in list(_running):
        _kill(child, signal.SIGKILL)


def run(command, folder, env, limit, on_timeout=signal.SIGKILL):
    """Runs it in `folder` with `env` besides our own environment. When `limit` seconds are over, it
    and its children get `on_timeout`, and 20 seconds later SIGKILL. OSError if it does not
    start."""
    if _stopped:
        raise Stopped()
    done = Done(command)
    start = time.monotonic()
    # A process group of its own, so that its children end with it. One pipe for both streams: what
    # they say is kept in order.
    child = subprocess.Popen(done.command, cwd=folder, text=True, errors="replace",
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, env={**os.environ, **(env or {})},
                             start_new_session=True)
    _running.add(child)
    if _stopped:  # while it started
        _kill(child, signal.SIGKILL)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(child.stdout), daemon=True)
    reader.start()
    for wait, how in ((limit, on_timeout), (20, signal.SIGKILL)):
        try:
            child.wait(timeout=max(wait, 0.1))
            break
        except subprocess.TimeoutExpired:
            done.timed_out = True
            _kill(child, how)
    done.status = child.wait()
    _running.remove(child)
    _kill(child, signal.SIGKILL)  # what it left behind
    if _stopped:
        raise Stopped()
    reader.join(timeout=5)
    if not reader.is_alive():  # somebody in a session of his own may hold its other end
        child.stdout.close()
    done.out = "".join(lines)
    done.seconds = time.monotonic() - start
    return done


def _kill(child, how):
    try:
        os.killpg(child.pid, how)
    except ProcessLookupError:
        pass


def shown(text, most):
    """Its head and its tail, when it has more than `most` (over 100) characters; of whole lines if
    possible."""
    if len(text) <= most:
        return text
    most -= 40  # for the line between
    head, tail = text[:most * 2 // 3], text[-(most // 3):]
    head = head[:head.rfind("\n") + 1] or head + "\n"
    tail = tail[tail.find("\n") + 1:] or tail
    return f"{head}[... {len(text) - len(head) - len(tail)} characters ...]\n{tail}"
