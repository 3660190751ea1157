"""What TensorBoard's own reader finds of runs, in the environment that tensorboard_test.sh makes."""

import json
import pathlib
import tempfile
import unittest

import thinwire
from tensorboard.backend.event_processing.event_accumulator import TENSORS, EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

DIRECTION = {"codec": "topk", "wire_bytes": 7, "relative_error": None}


def write_run(folder: pathlib.Path, losses):
    folder.mkdir(parents=True)
    (folder / "experiment.yaml").write_text("name: a\n")
    (folder / "summary.json").write_text(json.dumps({
        "status": "completed", "seed": 1, "epochs": [],
        "boundaries": [{"name": "layer1", "activations": DIRECTION, "gradients": DIRECTION}]}))
    lines = [{"type": "step", "time": "t", "epoch": 1, "step": i + 1, "loss": loss, "lr": None}
             for i, loss in enumerate(losses)]
    lines.append({"type": "evaluation", "time": "t", "epoch": 1, "step": 1, "seconds": 0.5,
                  "test": {"compressed": {"loss": 1.25}, "uncompressed": None}})
    lines.append({"type": "epoch", "time": "t", "epoch": 1, "train": {"loss": 2.5}, "test": None, "boundaries": [
        {"name": "layer1", "activations": {"wire_bytes": 3}, "gradients": {"wire_bytes": 4}}]})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


class TensorBoardTest(unittest.TestCase):

    def test_each_run_has_its_scalars(self):
        with tempfile.TemporaryDirectory() as work:
            write_run(pathlib.Path(work, "runs", "a-seed1"), [2.0, 1.5])
            write_run(pathlib.Path(work, "runs", "b-seed1"), [3.0])
            logs = thinwire.to_tensorboard(work, pathlib.Path(work, "logs"))
            found = {}
            for run in ("a-seed1", "b-seed1"):
                events = EventAccumulator(str(logs / run), size_guidance={TENSORS: 0})
                events.Reload()
                found[run] = {tag: [(e.step, float(make_ndarray(e.tensor_proto))) for e in events.Tensors(tag)]
                              for tag in events.Tags()["tensors"]}
        rest = {"evaluation/test_compressed_loss": [(1, 1.25)], "evaluation/seconds": [(1, 0.5)],
                "epoch/train_loss": [(1, 2.5)], "boundary/layer1/activations/wire_bytes": [(1, 3.0)],
                "boundary/layer1/gradients/wire_bytes": [(1, 4.0)]}
        self.assertEqual(found["a-seed1"], {"step/loss": [(1, 2.0), (2, 1.5)], **rest})
        self.assertEqual(found["b-seed1"], {"step/loss": [(1, 3.0)], **rest})


if __name__ == "__main__":
    unittest.main()
