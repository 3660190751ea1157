#!/usr/bin/env python3
"""Reads checkpoints of two small runs by what docs/checkpoints.md says alone, and holds them to it.

usage: checkpoint_test.py THINWIRE STAGE_SERVER CHECKPOINTS_MD
"""
import hashlib
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

IMAGES = """
name: images
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 50, limit: 400, test_limit: 50}
pipeline: {cuts: [stem, layer1, layer2], threads: 1, microbatches: 2}
compression:
  activations: {codec: topk, ratio: 0.2, feedback: ef21}
  gradients: {codec: topk, ratio: 0.2, feedback: {kind: ef21, store: fp16}}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
checkpoint: {every_steps: 5, keep: 3}
epochs: 2
"""
TEXT = """
name: text
model: {name: gpt2, width: 32, layers: 3, heads: 2}
data: {name: shakespeare, batch_size: 10, context: 32, windows: 200, test_limit: 20}
pipeline: {cuts: [h.0, h.1], threads: 1, microbatches: 2}
compression:
  activations: {codec: low_rank, rank: 4}
  gradients: {codec: topk, ratio: 0.5, feedback: ef, level: {target_error: 0.1, min: 0.1, max: 1}}
optimizer: {name: adamw, lr: 0.003, clip_norm: 1}
metrics: {error_every: 3}
epochs: 2
"""
PATIENCE_SECONDS = 120

# What a field of the manifest holds: a type, or the message of that name; in a list any number of these;
# in a tuple one that may be null.
TYPES = {
    "CheckpointManifest": {
        "format": int, "run": str, "step": int, "epoch": int, "steps_per_epoch": int, "written": str,
        "build_id": str, "files": ["CheckpointFile"], "progress": "RunProgress", "experiment": str,
        "train_digest": str, "test_digest": str, "base": ("CheckpointBase",)},
    "CheckpointBase": {"init": str, "at": str, "config_sha256": str, "tensors": ["BaseTensor"]},
    "BaseTensor": {"name": str, "sha256": str},
    "CheckpointFile": {
        "name": str, "bytes": int, "sha256": str, "stage": int, "tensors": str, "cut": str,
        "direction": str, "end": str, "level": ("LevelRecord",), "replica": (int,), "piece": (int,)},
    "LevelRecord": {"level": float, "step": int, "error_sum": float, "measured": int},
    "RunProgress": {
        "epochs": [dict], "sums": "EpochSums", "training_seconds": float, "boundaries": [dict],
        "before_epoch": [dict], "metrics_bytes": int, "events": [dict],
        "traffic_bytes": int, "epochs_kept": "EpochsKept",
        "replicas": (dict,), "replicas_before_epoch": (dict,), "stash": (dict,),
        "swap": (dict,)},
    "EpochsKept": {"epochs": int, "bytes": int, "crc32c": int},
    "EpochSums": {
        "loss": float, "correct": int, "samples": int, "labels": int, "lr": float, "seconds": float,
        "evaluations": [dict]},
}
# Bytes of an element.
WIDTHS = {"F32": 4, "U64": 8, "U8": 1}

failures = []


def check(what, condition, detail=""):
    """Counts and tells a failure."""
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}" + (f": {detail}" if detail else ""))


def documented(page):
    """Message -> fields of the page's tables, in order."""
    messages, message = {}, None
    for line in page.read_text(encoding="utf-8").splitlines():
        heading = re.match(r"#+ (.*)", line)
        if heading:
            message = heading[1] if line.startswith("### ") else None
        row = re.match(r"\| `(\w+)` \|", line)
        if row and message:
            messages.setdefault(message, []).append(row[1])
    return messages


def check_type(where, value, wanted, fields):
    """That a value of the manifest is of that type, with all that is in it."""
    if isinstance(wanted, tuple):
        if value is not None:
            check_type(where, value, wanted[0], fields)
    elif isinstance(wanted, list):
        check(f"{where} is a list", isinstance(value, list))
        for i, element in enumerate(value):
            check_type(f"{where}[{i}]", element, wanted[0], fields)
    elif isinstance(wanted, str):
        check(f"{where} has the fields of {wanted} in order", list(value) == fields[wanted], list(value))
        for name, element in value.items():
            check_type(f"{where}.{name}", element, TYPES[wanted].get(name, object), fields)
    elif wanted is float:
        check(f"{where} is a number", isinstance(value, (int, float)) and math.isfinite(value), value)
    else:
        check(f"{where} is of {wanted.__name__}", type(value) is wanted, value)


def read_safetensors(path):
    """Name -> (dtype, shape, bytes), and the strings beside them."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    metadata = header.pop("__metadata__", {})
    tensors, covered = {}, 0
    for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = tensor["data_offsets"]
        size = WIDTHS[tensor["dtype"]] * math.prod(tensor["shape"])
        check(f"{path}: {name} stands behind the one before, in its size",
              (first, last) == (covered, covered + size), tensor)
        covered = last
        tensors[name] = (tensor["dtype"], tensor["shape"], data[begin + first:begin + last])
    check(f"{path}: tensors fill the file", begin + covered == len(data))
    return tensors, metadata


class Checkpoint:
    """A checkpoint's folder, all of it read."""

    def __init__(self, path, fields):
        self.path = path
        self.manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        check_type(path.name, self.manifest, "CheckpointManifest", fields)
        self.parts, self.ends = {}, {}
        for file in self.manifest["files"]:
            tensors, metadata = read_safetensors(path / file["name"])
            if file["tensors"]:
                part = self.parts.setdefault(file["tensors"], {})
                check(f"{file['name']}: no tensor is in another, too", not part.keys() & tensors.keys())
                part.update(tensors)
            else:
                self.ends[file["cut"], file["direction"], file["end"]] = (file, tensors, metadata)

    def check_files(self, beside):
        """Names, sizes and digests, and that nothing else is there."""
        files = self.manifest["files"]
        names = {file["name"] for file in files}
        there = {path.name for path in self.path.iterdir()}
        others = {"manifest.json", "model.safetensors.index.json"} | beside
        check(f"{self.path}: has the manifest's files", there == names | others, there ^ (names | others))
        check(f"{self.path}: files by stage", [f["stage"] for f in files] == sorted(f["stage"] for f in files))
        stages = files[-1]["stage"] + 1
        for file in files:
            data = (self.path / file["name"]).read_bytes()
            check(f"{file['name']}: bytes", len(data) == file["bytes"])
            check(f"{file['name']}: sha256", hashlib.sha256(data).hexdigest() == file["sha256"])
            tail = f"-{file['stage'] + 1:05}-of-{stages:05}"
            name = (file["tensors"] + tail if file["tensors"] else "cut" + tail + r"-\d+") + ".safetensors"
            check(f"{file['name']}: is called {name}", re.fullmatch(name, file["name"]))

    def check_index(self):
        """The index, which has every tensor of the model in its file."""
        index = json.loads((self.path / "model.safetensors.index.json").read_text(encoding="utf-8"))
        places = {}
        for file in self.manifest["files"]:
            if file["tensors"] == "model":
                places.update(dict.fromkeys(read_safetensors(self.path / file["name"])[0], file["name"]))
        check(f"{self.path}: the index is complete", index["weight_map"] == places)
        total = sum(len(data) for _, _, data in self.parts["model"].values())
        check(f"{self.path}: total_size", index["metadata"]["total_size"] == total)

    def check_optimizer(self, names):
        """What the optimizer remembers has the names and shapes of what is trained."""
        check(f"{self.path}: parts", self.parts.keys() == {"model", *names}, self.parts.keys())
        trained = {name: tensor[:2] for name, tensor in self.parts["model"].items()
                   if not name.endswith(("running_mean", "running_var"))}
        for name in names:
            stands = {parameter: tensor[:2] for parameter, tensor in self.parts[name].items()}
            check(f"{self.path}: {name} of every trained parameter", stands == trained)
            check(f"{self.path}: {name} is of F32", {dtype for dtype, _ in stands.values()} == {"F32"})
            is_zero = not any(any(data) for _, _, data in self.parts[name].values())
            check(f"{self.path}: {name} is not zero", not is_zero)

    def end(self, cut, direction, end):
        """Tensors of an end by the last part of their names, and the strings beside them."""
        _, tensors, metadata = self.ends[cut, direction, end]
        prefix = f"{cut}.{direction}.{end}."
        check(f"{self.path}: names of {prefix}", all(name.startswith(prefix) for name in tensors), tensors.keys())
        return {name[len(prefix):]: tensor for name, tensor in tensors.items()}, metadata.get("store")

    def check_progress(self, metrics, traffic):
        """That it says how far metrics.jsonl and traffic.jsonl were."""
        manifest, progress = self.manifest, self.manifest["progress"]
        step, per_epoch = manifest["step"], manifest["steps_per_epoch"]
        check(f"{self.path}: step", self.path.name == f"step-{step}")
        check(f"{self.path}: epoch", manifest["epoch"] == (step - 1) // per_epoch + 1)
        then = metrics[:progress["metrics_bytes"]]
        check(f"{self.path}: metrics_bytes end a line", then.endswith(b"\n"))
        lines = [json.loads(line) for line in then.splitlines()]
        steps = [line for line in lines if line["type"] == "step"]
        check(f"{self.path}: its last line is that of the step", lines[-1] == steps[-1] and
              [line["step"] for line in steps] == list(range(1, step + 1)), lines[-1])
        sent = [json.loads(line)["step"] for line in traffic[:progress["traffic_bytes"]].splitlines()]
        check(f"{self.path}: traffic_bytes end with the step", set(sent) == set(range(1, step + 1)), sent)
        epochs = [line for line in lines if line["type"] == "epoch"]
        kept = progress["epochs_kept"]
        log = (self.path.parent / "epochs.jsonl").read_bytes()[:kept["bytes"]] if kept["bytes"] else b""
        known = [json.loads(line) for line in log.splitlines()]
        check(f"{self.path}: so many epochs are kept", len(known) == kept["epochs"] and not progress["epochs"])
        check(f"{self.path}: epochs are the record's", known ==
              [{key: value for key, value in line.items() if key not in ("type", "time")} for line in epochs])
        check(f"{self.path}: complete epochs, but its own", len(epochs) == manifest["epoch"] - 1)
        sums, under_way = progress["sums"], [s for s in steps if s["epoch"] == manifest["epoch"]]
        check(f"{self.path}: samples of the epoch", sums["samples"] == sum(s["samples"] for s in under_way))
        check(f"{self.path}: loss of the epoch", math.isclose(
            sums["loss"], sum(s["loss"] * s["samples"] for s in under_way), rel_tol=1e-9))
        correct = sum(s["accuracy"] * s["samples"] for s in under_way) * sums["labels"] / sums["samples"]
        check(f"{self.path}: labels of the epoch", math.isclose(sums["correct"], correct, rel_tol=1e-9))
        check(f"{self.path}: lr", sums["lr"] == steps[-1]["lr"])
        before = [sum(epoch["boundaries"][i][direction]["wire_bytes"] for epoch in known)
                  for i in range(len(progress["before_epoch"])) for direction in ("activations", "gradients")]
        check(f"{self.path}: before_epoch is what the epochs sent", before == [
            boundary[direction]["wire_bytes"] for boundary in progress["before_epoch"]
            for direction in ("activations", "gradients")])
        check(f"{self.path}: before_epoch", bool(progress["before_epoch"]) == (manifest["epoch"] > 1))


def thinwire_run(programs, folder, text):
    """Runs the experiment; the run's folder and its checkpoints' folders by step."""
    experiment, out = folder / "experiment.yaml", folder / "run"
    folder.mkdir()
    experiment.write_text(text, encoding="utf-8")
    thinwire, stage_server = programs
    subprocess.run([thinwire, "run", experiment, "--out", out, "--quiet", "--stage_server", stage_server],
                   check=True, timeout=PATIENCE_SECONDS)
    paths = {int(path.name.split("-")[1]): path for path in (out / "checkpoints").glob("step-*")}
    return out, dict(sorted(paths.items()))


def command(thinwire, *arguments):
    """Exit code, stdout, stderr of `thinwire checkpoint`."""
    done = subprocess.run([thinwire, "checkpoint", *arguments], capture_output=True, text=True, check=False,
                          timeout=PATIENCE_SECONDS)
    return done.returncode, done.stdout, done.stderr


def read_model(folder):
    """Name -> tensor of all files of a model's folder."""
    tensors = {}
    for path in folder.glob("model-*.safetensors"):
        tensors.update(read_safetensors(path)[0])
    return tensors


def check_commands(thinwire, run, checkpoints):
    """list, verify and export, and what they say of a byte that is another."""
    newest = checkpoints[-1]
    code, out, _ = command(thinwire, "list", run)
    rows = [line.split() for line in out.splitlines()[1:]]
    want = [[str(c.manifest["step"]), str(c.manifest["epoch"]), c.manifest["written"]] for c in checkpoints]
    check("list names them all", code == 0 and [row[:3] for row in rows] == want, out)
    check("list names the newest", [row[-1] == "newest" for row in rows] == [c is newest for c in checkpoints], out)

    code, out, _ = command(thinwire, "verify", run)
    starts = [f"step-{c.manifest['step']}: whole, {len(c.manifest['files'])} files, " for c in checkpoints]
    check("verify finds them whole", code == 0 and
          all(map(str.startswith, out.splitlines(), starts)) and len(out.splitlines()) == len(starts), out)

    exported = run / f"model-step-{newest.manifest['step']}"
    code, out, error = command(thinwire, "export", run)
    check("export copies the model", code == 0 and read_model(exported) == newest.parts["model"], out + error)
    check("export copies nothing else", not list(exported.glob("manifest.json")) and
          not list(exported.glob("*_*.safetensors")) and not list(exported.glob("cut-*")))

    for file in newest.manifest["files"]:
        path = newest.path / file["name"]
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        kept = path.with_name("kept")
        shutil.copy(path, kept)
        path.write_bytes(data)
        code, out, _ = command(thinwire, "verify", run, "--step", str(newest.manifest["step"]))
        check(f"verify names {file['name']}, of which a byte is another",
              code == 1 and re.match(f"step-\\d+: broken: .*/{file['name']}: ", out), out)
        kept.rename(path)
    check("verify finds what was put back", command(thinwire, "verify", run)[0] == 0)


def check_images(checkpoint):
    """Both ends of every direction remember the same."""
    want = {(cut, direction, end) for cut in ("stem", "layer1", "layer2")
            for direction in ("activation", "gradient") for end in ("sender", "receiver")}
    check("images: every end has a file", checkpoint.ends.keys() == want, checkpoint.ends.keys())
    for cut, direction, end in sorted(want):
        if end == "receiver":
            continue
        sender, store = checkpoint.end(cut, direction, "sender")
        receiver, other = checkpoint.end(cut, direction, "receiver")
        check(f"{cut} {direction}: both ends are equal, bit for bit", sender == receiver and store == other)
        check(f"{cut} {direction}: tensors", sender.keys() == {"keys", "rows"}, sender.keys())
        check(f"{cut} {direction}: storage", store == ("fp32" if direction == "activation" else "fp16"), store)
        keys, rows = sender["keys"], sender["rows"]
        check(f"{cut} {direction}: keys of the slots of a batch", keys[:2] == ("U64", [50]) and sorted(
            int.from_bytes(keys[2][i:i + 8], "little") for i in range(0, 400, 8)) == list(range(50)), keys[:2])
        check(f"{cut} {direction}: rows", rows[0] == ("F32" if store == "fp32" else "U8") and
              rows[1][0] == 50 and any(rows[2]), rows[:2])
        check(f"{cut} {direction}: no level", checkpoint.ends[cut, direction, "sender"][0]["level"] is None)


def check_text(checkpoint):
    """The factors of low_rank, feedback of one end, and levels."""
    want = {(cut, direction, "sender") for cut in ("h.0", "h.1") for direction in ("activation", "gradient")}
    check("text: every end that remembers has a file", checkpoint.ends.keys() == want, checkpoint.ends.keys())
    for cut, direction, end in sorted(want):
        tensors, _ = checkpoint.end(cut, direction, end)
        level = checkpoint.ends[cut, direction, end][0]["level"]
        if direction == "activation":
            check(f"{cut}: a factor alone", {name: t[:2] for name, t in tensors.items()} ==
                  {"warm_start": ("F32", [32, 4])}, tensors.keys())
            check(f"{cut}: no level", level is None)
        else:
            check(f"{cut}: rows of the elements of a sample", tensors["rows"][:2] == ("F32", [10, 32 * 32]))
            check(f"{cut}: a level in its bounds", 0.1 <= level["level"] <= 1 and level["measured"] <= 2 and
                  level["step"] <= checkpoint.manifest["step"], level)
            check(f"{cut}: measured errors", (level["measured"] > 0) == (level["error_sum"] > 0), level)


def check_run(thinwire, run, paths, fields, beside, optimizer):
    """All that holds for every run; its last checkpoint."""
    metrics, traffic = ((run / name).read_bytes() for name in ("metrics.jsonl", "traffic.jsonl"))
    checkpoints = [Checkpoint(path, fields) for path in paths.values()]
    for checkpoint in checkpoints:
        checkpoint.check_files(beside)
        checkpoint.check_index()
        checkpoint.check_optimizer(optimizer)
        checkpoint.check_progress(metrics, traffic)
    last = checkpoints[-1]
    model = read_model(run / "model")
    check(f"{run}: the last checkpoint's parameters are the model's", model and last.parts["model"] == model)
    for name in beside:
        check(f"{run}: {name} is the model's",
              (last.path / name).read_bytes() == (run / "model" / name).read_bytes())
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    sent, then = summary["boundaries"], last.manifest["progress"]["boundaries"]
    check(f"{run}: boundaries are the run's at its end", [
        (b["name"], b[d]["wire_bytes"], b[d]["messages"]) for b in sent for d in ("activations", "gradients")
    ] == [(b["name"], b[d]["wire_bytes"], b[d]["messages"]) for b in then for d in ("activations", "gradients")])
    check(f"{run}: build_id", last.manifest["build_id"] == summary["provenance"]["build_id"])
    check_commands(thinwire, run, checkpoints)
    return last


def main():
    """Runs, reads and compares."""
    thinwire, stage_server, page = sys.argv[1:]
    fields = documented(pathlib.Path(page))
    check("the page's messages are known here",
          {name: list(types) for name, types in TYPES.items()} == fields, fields)
    with tempfile.TemporaryDirectory() as work:
        run, paths = thinwire_run((thinwire, stage_server), pathlib.Path(work, "images"), IMAGES)
        check("images: the last three are kept", list(paths) == [10, 15, 16], paths)
        check_images(check_run(thinwire, run, paths, fields, set(), ["momentum_buffer"]))
        run, paths = thinwire_run((thinwire, stage_server), pathlib.Path(work, "text"), TEXT)
        check("text: one is kept for each epoch", list(paths) == [20, 40], paths)
        check_text(check_run(thinwire, run, paths, fields, {"config.json", "vocabulary.json"}, ["exp_avg", "exp_avg_sq"]))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
