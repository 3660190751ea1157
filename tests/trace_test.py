#!/usr/bin/env python3
"""Reads the trace of a four-stage run as another program would, and holds it to the run's own numbers.

usage: trace_test.py THINWIRE STAGE_SERVER
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

EXPERIMENT = """
name: traced
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 48, limit: 240, test_limit: 60}
pipeline: {cuts: [stem, layer1, layer2], microbatches: 4, threads: 1, schedule: SCHEDULE}
compression: {activations: {codec: topk, ratio: 0.2}, gradients: {codec: uniform, bits: 8}}
optimizer: {name: sgd, lr: 0.05}
epochs: 2
device: cpu
"""
STAGES, MICROBATCHES, STEPS, CUTS = 4, 4, 10, ["stem", "layer1", "layer2"]
NANOSECOND = 1e-3  # times are microseconds, printed to the nanosecond
ROUNDING = 2 * NANOSECOND


def thinwire(*arguments):
    return subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True, check=False)


def run(folder, out, *flags, schedule="1f1b"):
    experiment = folder / "experiment.yaml"
    experiment.write_text(EXPERIMENT.replace("SCHEDULE", schedule), encoding="utf-8")
    return thinwire("run", experiment, "--quiet", "--out", folder / out, "--stage_server", sys.argv[2], *flags)


def end(event):
    return event["ts"] + event["dur"]


def check_threads(slices):
    """Slices of one thread nest or follow one another."""
    threads = collections.defaultdict(list)
    for event in slices:
        threads[event["pid"], event["tid"]].append(event)
    # executor, and the codec workers of one or two neighbours
    assert len(threads) == STAGES + 4 * len(CUTS), sorted(threads)
    for events in threads.values():
        outer = []
        for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
            while outer and end(outer[-1]) <= event["ts"] + ROUNDING:
                outer.pop()
            assert not outer or end(event) <= end(outer[-1]) + ROUNDING, (outer[-1], event)
            outer.append(event)


def check_actions(slices, backwards):
    """Every stage runs every microbatch forward and backward, in these parts, once a step."""
    counts = collections.Counter((e["pid"], e["args"]["step"], e["name"], e["args"].get("microbatch")) for e in slices
                                 if e["name"] in ("forward", *backwards, "optimizer", "step"))
    want = collections.Counter()
    for stage in range(STAGES):
        for step in range(1, STEPS + 1):
            for microbatch in range(MICROBATCHES):
                for action in ("forward", *backwards):
                    want[stage, step, action, microbatch] = 1
            want[stage, step, "optimizer", None] = want[stage, step, "step", None] = 1
    assert counts == want, counts - want or want - counts


def check_messages(slices, events):
    """Every message is encoded, sent, comes, is decoded and used, in this order and by these stages."""
    ways = collections.defaultdict(dict)
    for event in slices:
        args = event["args"]
        # Between processes of one host, and the messages are small or the CPU copies them.
        name = event["name"].removesuffix(" socket").removesuffix(" host_copies")
        if name in ("encode", "send", "decode", "receive_wait"):
            way = ways[args["step"], args["cut"], args["direction"], args["microbatch"]]
            assert name not in way, event
            way[name] = event
        elif event["name"] in ("forward", "backward", "backward input"):
            action = event["name"].split()[0]
            ways[args["step"], event["pid"], action, args["microbatch"]]["action"] = event
    messages = {key: way for key, way in ways.items() if key[2] in ("activation", "gradient")}
    assert len(messages) == STEPS * len(CUTS) * 2 * MICROBATCHES
    for (step, cut, direction, microbatch), way in messages.items():
        before = CUTS.index(cut)
        forward = direction == "activation"
        stages = (before, before + 1) if forward else (before + 1, before)
        encode, send, decode, wait = (way[name] for name in ("encode", "send", "decode", "receive_wait"))
        assert (encode["pid"], send["pid"], decode["pid"], wait["pid"]) == (stages[0],) * 2 + (stages[1],) * 2
        action = "forward" if forward else "backward"
        made, used = (ways[step, stage, action, microbatch]["action"] for stage in stages)
        arrival = decode["args"]["ready"]
        moments = [end(made), encode["args"]["ready"], encode["ts"], end(encode), send["ts"], arrival,
                   decode["ts"], end(decode), end(wait), used["ts"]]
        assert all(a <= b + ROUNDING for a, b in zip(moments, moments[1:])), (step, cut, direction, moments)
        assert send["args"]["wire_bytes"] > 0
    wires = {e["id"]: e for e in events if e["ph"] == "b"}
    ends = {e["id"]: e for e in events if e["ph"] == "e"}
    assert len(wires) == len(messages) and wires.keys() == ends.keys()
    assert all(wires[i]["ts"] <= ends[i]["ts"] and wires[i]["pid"] == STAGES == ends[i]["pid"] for i in wires)
    assert {e["id"] for e in events if e["ph"] == "s"} == {e["id"] for e in events if e["ph"] == "f"} == set(wires)


def seconds(slices, stage, *activities):
    return sum(e["dur"] - e["args"].get("core_wait", 0) for e in slices
               if e["pid"] == stage and e["cat"] in activities) / 1e6


def check_sums(slices, out):
    """Slices are what the run counted: the same readings of one clock."""
    def close(a, b, relative=1e-6):
        return abs(a - b) <= relative * abs(b) + 1e-6
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    for stage, compute in enumerate(summary["compute"]):
        for activity in ("forward", "backward"):
            work = "encode" if activity == "forward" else "decode"
            in_stash = [e for e in slices if e["cat"] == "stash" and work in e["name"]]
            own = seconds(slices, stage, activity) - seconds(in_stash, stage, "stash")
            assert close(own, compute[f"{activity}_seconds"]), (stage, activity, own)
        waited = sum(e["args"].get("core_wait", 0) for e in slices
                     if e["pid"] == stage and e["cat"] in ("forward", "backward", "optimizer")) / 1e6
        assert close(waited, compute["core_wait_seconds"]), stage
    for before, boundary in enumerate(summary["boundaries"]):
        for direction, sender in (("activation", before), ("gradient", before + 1)):
            counted = boundary[f"{direction}s"]
            of_direction = [e for e in slices if e["args"].get("cut") == boundary["name"]
                            and e["args"]["direction"] == direction]
            receiver = 2 * before + 1 - sender
            assert close(seconds(of_direction, sender, "encode"), counted["encode_seconds"])
            assert close(seconds(of_direction, receiver, "decode"), counted["decode_seconds"])
            assert counted["wire_bytes"] == sum(e["args"].get("wire_bytes", 0) for e in of_direction)
    # The run has its steps' seconds from the last stage.
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    steps = {line["step"]: line["seconds"] for line in lines if line["type"] == "step"}
    for event in slices:
        if event["name"] == "step" and event["pid"] == STAGES - 1:
            assert close(event["dur"] / 1e6, steps[event["args"]["step"]])


def check_report(out, slices):
    report = json.loads(thinwire("trace", out, "--format", "json").stdout)
    assert (report["first_step"], report["last_step"], len(report["stages"])) == (1, STEPS, STAGES)
    for stage, row in enumerate(report["stages"]):
        parts = [row[f"{name}_seconds"] for name in ("forward", "backward", "optimizer", "core_wait", "data", "waiting", "other")]
        assert abs(sum(parts) - row["step_seconds"]) < 1e-9 and min(parts) >= 0, row
        steps = sum(e["dur"] for e in slices if e["pid"] == stage and e["name"] == "step") / 1e6
        assert abs(row["step_seconds"] * STEPS - steps) < 1e-6, row
        busy = seconds(slices, stage, "forward", "backward")
        assert abs(row["bubble_ratio"] - (1 - busy / steps)) < 1e-6, row
        assert abs(row["backward_seconds"] * STEPS - seconds(slices, stage, "backward")) < 1e-6
        assert abs(sum(row["waited_for_seconds"].values()) - row["waiting_seconds"]) < 1e-6, row
        assert row["clock_uncertainty_seconds"] == 0 and row["dropped_slices"] == 0
    text = thinwire("trace", out, "--step", 4)
    assert text.returncode == 0 and "step 4" in text.stdout and "https://ui.perfetto.dev" in text.stdout, text


def check_picture(folder, out):
    picture = folder / "step.svg"
    answer = thinwire("trace", out, "--step", 4, "--svg", picture)
    assert answer.returncode == 0, answer
    texts = [e.text for e in xml.etree.ElementTree.parse(picture).iter() if e.tag.endswith("}text")]
    assert [t for t in texts if t.startswith("stage ")] == [f"stage {i}" for i in range(STAGES)]
    assert picture.stat().st_size < 40_000


def check_errors(folder):
    def refused(answer, code, *words):
        assert answer.returncode == code, answer
        assert all(word in answer.stderr for word in words), answer.stderr
    refused(run(folder, "bad", "--trace", "step=3"), 2, "--trace: step=3: want steps=N or steps=N..M")
    refused(run(folder, "bad", "--trace", "steps=4..2"), 2, "want a last step of at least 4")
    refused(run(folder, "bad", "--trace", "steps=1..100000"), 2, "want at most", "a trace holds 100000 slices")
    assert not (folder / "bad").exists()
    refused(run(folder, "late", "--trace", "steps=9..500"), 1, "trace: step 500 never comes, the run has 10 steps")
    refused(thinwire("trace", folder / "late"), 2, "trace.json", "thinwire run --trace steps=N..M writes it")
    refused(thinwire("trace", folder / "nowhere"), 2, "trace.json")
    refused(thinwire("trace", folder / "1f1b", "--step", 11), 2, "step 11: the trace has steps 1 to 10")
    refused(thinwire("trace", folder / "1f1b", "--svg", folder / "no/such/folder.svg"), 2, "folder.svg")
    (folder / "late/trace.json").write_text('{"traceEvents": []}', encoding="utf-8")
    refused(thinwire("trace", folder / "late"), 2, "is no trace of Thinwire: file: otherData")


def check_clocks(folder):
    """Stages whose clocks are thousands of seconds apart, in time namespaces, come on one."""
    apart = 1000  # seconds, from one to the next
    enter = ["unshare", "--time", "--fork", "--kill-child"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode != 0:
        print("skipped: stages with other clocks, as this user or kernel makes no time namespaces")
        return
    servers = []
    try:
        sockets = [f"unix:{folder}/{stage}.sock" for stage in range(STAGES)]
        for stage, socket in enumerate(sockets):
            command = [*enter, "--monotonic", str(stage * apart), "--", sys.argv[2], f"--listen={socket}"]
            servers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        done = run(folder, "clocks", "--stages", ",".join(sockets), "--stages_wait", 30, "--trace", f"steps=1..{STEPS}")
        assert done.returncode == 0, done
    finally:
        for server in servers:
            server.kill()
            server.wait()
    trace = json.loads((folder / "clocks/trace.json").read_text(encoding="utf-8"))
    for stage, clock in enumerate(trace["otherData"]["stages"]):
        error = clock["clock_offset_us"] - stage * apart * 1e6
        # A clock that messages have moved may be as far off as those before it.
        assert abs(error) < 50_000 and 0 < clock["clock_uncertainty_us"] < 50_000, (stage, clock)
    slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    check_threads(slices)
    check_actions(slices, ("backward",))
    check_messages(slices, trace["traceEvents"])
    assert "its clock is known to" in thinwire("trace", folder / "clocks").stdout


def check_resumed(folder):
    """A run that goes on traces what is to come, and says so when that is nothing."""
    out = folder / "1f1b"
    done = thinwire("run", "--resume", out, "--set", "epochs=3", "--quiet", "--stage_server", sys.argv[2],
                    "--trace", "steps=4")
    assert done.returncode == 1 and "step 4 never comes, the run goes on after step 10" in done.stderr, done
    done = thinwire("run", "--resume", out, "--set", "epochs=3", "--quiet", "--stage_server", sys.argv[2],
                    "--trace", "steps=12")
    assert done.returncode == 0, done
    assert "step 12" in thinwire("trace", out).stdout


def main():
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        for schedule in ("gpipe", "1f1b", "zero_bubble"):
            out = folder / schedule
            done = run(folder, schedule, "--trace", f"steps=1..{STEPS}", schedule=schedule)
            assert done.returncode == 0, done
            trace = json.loads((out / "trace.json").read_text(encoding="utf-8"))
            assert trace["otherData"]["schedule"] == schedule and trace["otherData"]["cuts"] == CUTS
            events = trace["traceEvents"]
            slices = [e for e in events if e["ph"] == "X"]
            check_threads(slices)
            splits = schedule == "zero_bubble"
            check_actions(slices, ("backward input", "backward weight") if splits else ("backward",))
            check_messages(slices, events)
            check_sums(slices, out)
            check_report(out, slices)
        check_picture(folder, out)
        check_errors(folder)
        check_resumed(folder)
        check_clocks(folder)


if __name__ == "__main__":
    main()
