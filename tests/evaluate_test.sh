#!/usr/bin/env bash
# `thinwire evaluate` as a user starts it, on a tiny run: that it says what the run said of itself, by whichever name
# the weights go, what it refuses, and that it changes nothing.
# usage: evaluate_test.sh THINWIRE STAGE_SERVER
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2
work=$(mktemp -d)
trap 'end_jobs; rm -rf "$work"' EXIT

evaluate() { timeout 120 "$thinwire" evaluate "$@" --stage_server "$stage_server" 2>"$work/log"; }
state() { (cd "$work/run" && find . -type f -exec sha256sum {} + | sort); }
# of FILE ROW FIELD: "loss" of row "none" of a report
of() {
  python3 - "$@" <<'PYTHON'
import json, sys
row = next(row for row in json.load(open(sys.argv[1]))["rows"] if row["codec"].startswith(sys.argv[2]))
print(row["test"].get(sys.argv[3], row.get(sys.argv[3])))
PYTHON
}
# told WAY FIELD: the last evaluation of the run's summary
told() {
  python3 -c '
import json, sys
print(json.load(open(sys.argv[1]))["epochs"][-1]["test"][sys.argv[2]][sys.argv[3]])' "$work/run/summary.json" "$@"
}
refused() {
  evaluate "${@:3}" >"$work/text"
  check "$1 is a usage error" equals $? 2
  check '  which says why' contains "$work/log" "$2"
}

cat >"$work/tiny.yaml" <<'YAML'
name: tiny
model: {name: gpt2, layers: 2, heads: 2, width: 16}
data: {name: shakespeare, context: 16, windows: 200, batch_size: 20, test_limit: 50}
pipeline: {cuts: [h.0, h.1], threads: 1}
compression: {activations: {codec: uniform, bits: 4, scope: token}}
checkpoint: {every_steps: 5, keep: 10, best: loss}
optimizer: {name: adamw, lr: 0.01}
epochs: 2
YAML
"$thinwire" run "$work/tiny.yaml" --quiet --out "$work/run" --stage_server "$stage_server"
check 'the run completes' equals $? 0
before=$(state)

echo '== a run'
evaluate "$work/run" --json --codec 'uniform(bits=4, scope=token)' --codec 'topk(ratio=0.1, scope=token)' >"$work/run.json"
check 'exits 0' equals $? 0
check 'it is as the run said, without codecs' equals "$(of "$work/run.json" none loss)" "$(told uncompressed loss)"
check '  and with them' equals "$(of "$work/run.json" 'as trained' perplexity)" "$(told compressed perplexity)"
check 'the same codec gives the same again' equals "$(of "$work/run.json" uniform loss)" "$(told compressed loss)"
check '  and sends as much' equals "$(of "$work/run.json" uniform wire_bytes)" "$(of "$work/run.json" 'as trained' wire_bytes)"
check 'bits are counted, of 32 and of 4' python3 - "$work/run.json" <<'PYTHON'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert 32 < rows[0]["bits_per_element"] < 33, rows[0]
assert 4 < rows[2]["bits_per_element"] < 9, rows[2]
assert rows[0]["loss_above_none"] == 0 and rows[3]["loss_above_none"] != 0, rows
PYTHON
check 'progress is told' contains "$work/log" '^topk.*: loss [0-9.]+, [0-9.]+ s$'
evaluate "$work/run" --set pipeline.stages=3 --json >"$work/three.json"
check 'three stages give the same' equals "$(of "$work/three.json" 'as trained' loss)" "$(told compressed loss)"
evaluate "$work/run" --samples 7 >"$work/table"
check 'a table is for people' contains "$work/table" '^ +32\.[0-9]+ +[0-9.]+ +\+0\.0000 +[0-9.]+ +[0-9.]+ % +none$'
check '  and says of what' contains "$work/table" '7 samples of'

echo '== other names'
evaluate "$work/run@20" --json >"$work/step.json"
check 'the last checkpoint is the end' equals "$(of "$work/step.json" none loss)" "$(told uncompressed loss)"
evaluate "$work/run@5" --json >"$work/step.json"
check 'an earlier one is not' test "$(of "$work/step.json" none loss)" != "$(told uncompressed loss)"
evaluate "$work/run@best" --json >"$work/best.json"
check 'the best one has a name' equals $? 0
evaluate "$work/tiny.yaml" --set init="$work/run/model" --json >"$work/init.json"
check 'an experiment with init has its weights' equals "$(of "$work/init.json" 'as trained' loss)" "$(told compressed loss)"
evaluate "$work/run/model" --data shakespeare --samples 50 --json >"$work/folder.json"
check 'so has a folder, with data by name' python3 - "$(of "$work/folder.json" none loss)" "$(told uncompressed loss)" <<'PYTHON'
import sys
assert abs(float(sys.argv[1]) - float(sys.argv[2])) < 1e-5, sys.argv
PYTHON
for i in {1..60}; do printf 'To be, or not to be: %s\n' "that is the question"; done >"$work/text.txt"
evaluate "$work/run/model" --data "$work/text.txt" --codec 'uniform(bits=2, scope=token)' >"$work/table"
check 'other characters than it was trained with are refused' equals $? 2
check '  by the first that differs' contains "$work/log" 'not the checkpoint.s'
check 'random weights are told' contains <(evaluate "$work/tiny.yaml") 'random initial weights'

echo '== refusals'
refused 'a folder without data' 'is a model.s folder, want --data' "$work/run/model"
refused 'data for a run' '^thinwire: --data: shakespeare, want it for a model.s folder only' "$work/run" --data shakespeare
refused 'what is not there' 'no run is recorded here.*nor is it a model' "$work/none"
refused 'a step that is not there' 'has no step-7' "$work/run@7"
refused 'a codec that is none' '^thinwire: --codec: ' "$work/run" --codec 'unifrom(bits=4)'
refused 'a codec without a cut' 'but the model is not cut' "$work/run" --codec fp16 --set pipeline.cuts=
check 'the run is as it was' equals "$(state)" "$before"

echo "$failures failures"
(( failures == 0 ))
