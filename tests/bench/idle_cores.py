#!/usr/bin/env python3
"""How long a core idles while a thread that could run waits for another core. Wants root, and perf (Debian's
linux-perf).

usage: idle_cores.py [SECONDS]        while something computes; 2 seconds by default

Records the scheduler's events and prints for how long exactly one core was idle while threads stood in the queues
of others, and what the threads took of the cores that took most.
"""
import collections
import re
import subprocess
import sys
import tempfile

LINE = re.compile(r"\s*.+?\s+\d+\s+\[(\d+)\]\s+([\d.]+):\s+sched:(\w+):\s+(.*)")
SWITCH = re.compile(r"prev_comm=.* prev_pid=(\d+) prev_prio=\S+ prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+)")
WAKEUP = re.compile(r"comm=(.*) pid=(\d+) .*target_cpu=(\d+)")
IDLE = 0  # the thread of a core that has none


def events(seconds):
    """(core, time, event, its fields) of all cores, in order of time."""
    with tempfile.NamedTemporaryFile() as data:
        subprocess.run(["perf", "record", "-q", "-a", "-o", data.name, "-e", "sched:sched_switch,sched:sched_wakeup",
                        "sleep", str(seconds)], check=True)
        script = subprocess.run(["perf", "script", "-i", data.name, "-F", "comm,tid,cpu,time,event,trace"], check=True,
                                capture_output=True, text=True).stdout
    for line in script.splitlines():
        match = LINE.match(line)
        if match:
            yield int(match[1]), float(match[2]), match[3], match[4]


def main():
    """Follows which thread each core runs, and which are ready without one."""
    running, since, ready = {}, {}, {}  # of a core: its thread; from when; of a thread: the core whose queue has it
    names, took = {IDLE: "idle"}, collections.Counter()
    unbalanced = first = last = 0.0
    for core, now, event, fields in events(float(sys.argv[1]) if len(sys.argv) > 1 else 2):
        first = first or now
        idle = [c for c, thread in running.items() if thread == IDLE]
        if last and len(idle) == 1 and any(queue != idle[0] for queue in ready.values()):
            unbalanced += now - last
        last = now
        if event == "sched_switch":
            before, state, name, after = SWITCH.match(fields).groups()
            before, after = int(before), int(after)
            if core in running:
                took[running[core]] += now - since[core]
            if before != IDLE:
                ready.pop(before, None)
                if state.startswith("R"):
                    ready[before] = core
            ready.pop(after, None)
            running[core], since[core] = after, now
            names.setdefault(after, name)
        elif (match := WAKEUP.match(fields)) and int(match[2]) not in running.values():
            ready[int(match[2])] = int(match[3])
    print(f"{last - first:.2f} s; one core idle while a thread waited for another: {unbalanced:.2f} s")
    for thread, seconds in took.most_common(12):
        print(f"{names[thread]:20} {thread:8} {seconds:.3f} s")


if __name__ == "__main__":
    sys.exit(main())
