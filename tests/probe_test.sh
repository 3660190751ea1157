#!/usr/bin/env bash
# `thinwire probe` as a user starts it, on a tiny run: what it says, and that it changes nothing.
# usage: probe_test.sh THINWIRE STAGE_SERVER
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2
work=$(mktemp -d)
probe=

cleanup() {
  end_jobs
  rm -rf "$work"
}
trap cleanup EXIT

state() { (cd "$work/run" && find . -type f -exec sha256sum {} + | sort); }
probe_run() { "$thinwire" probe "$work/run" --stage_server "$stage_server" "$@"; }

cat >"$work/tiny.yaml" <<'YAML'
name: tiny
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 50, limit: 200, test_limit: 100}
pipeline: {cuts: [stem, layer1, layer2], stages: 2, threads: 1}
compression: {activations: {codec: topk, ratio: 0.2}, gradients: {codec: uniform, bits: 8}, warmup_epochs: 1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
epochs: 1
YAML
"$thinwire" run "$work/tiny.yaml" --quiet --out "$work/run" --stage_server "$stage_server"
check 'the run to be probed completes' equals $? 0
before=$(state)

echo '== no codec'
probe_run --batches 2 --codec none --format csv >"$work/none.csv" 2>"$work/none.log"
check 'exits 0' equals $? 0
# cosine, error and ratio with their deviations: of the whole model and of four segments, three ways
check 'has cosine 1, error 0, ratio 1 exactly, everywhere' \
  equals "$(grep -c ',1,0,0,0,1,0.$' "$work/none.csv")" 15
check 'and nothing else' equals "$(wc -l <"$work/none.csv")" 16

echo '== codecs'
codecs=(--batches 2 --codec 'uniform(bits=2)' --codec 'topk(ratio=0.1, scope=sample) | uniform(bits=8)')
probe_run "${codecs[@]}" --out "$work/one.csv" --out "$work/one.json" --out "$work/one.md" 2>"$work/one.log"
check 'exit 0' equals $? 0
check 'count on stderr' contains "$work/one.log" '^6/6  both  topk'
check 'are tables in markdown' contains "$work/one.md" '^\| 2\.[0-9]+ \| [0-9.]+ \| backward \| `uniform\(bits=2'
check 'and JSON' python3 - "$work/one.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["epochs_trained"] == 1 and report["batches"] == 2 and len(report["rows"]) == 6
for row in report["rows"]:
    assert 0 < row["all"]["cosine"]["mean"] < 1, row
    assert len(row["segments"]) == 4
    assert len(row["boundaries"]) == (6 if row["compressed"] == "both" else 3)
    assert 0 < row["boundary_error"] and 0 < row["bits_per_element"] < 32
# given the forward codec, both differ from it by the backward codec alone
both = [row for row in report["rows"] if row["compressed"] == "both"]
assert all(0 < row["given_forward"]["relative_error"]["mean"] for row in both)
assert all(row["given_forward"] is None for row in report["rows"] if row not in both)
# backward messages reach only what lies before their cut
backward = [row for row in report["rows"] if row["compressed"] == "backward"]
assert all(row["segments"][3]["relative_error"]["mean"] == 0 for row in backward)
PY
probe_run "${codecs[@]}" --out "$work/three.csv" --set pipeline.stages=3 2>/dev/null
check 'are the same in three processes, bit for bit' cmp "$work/one.csv" "$work/three.csv"
"$thinwire" probe "$work/tiny.yaml" --batches 1 --codec 'uniform(bits=2)' --format json \
  --stage_server "$stage_server" >"$work/initial.json" 2>/dev/null
check 'of initial weights too' contains "$work/initial.json" '"epochs_trained": 0'
printf '# levels\nfp16\n' >"$work/levels"
probe_run --levels "$work/levels" --format csv >"$work/levels.csv" 2>/dev/null
check 'from a file' contains "$work/levels.csv" '^forward,"fp16","none","all",16\.'
probe_run --batches 1 --budget 2 --out "$work/shares.yaml" --out "$work/shares.json" \
  --out "$work/shares.md" 2>/dev/null
check 'a budget is shared' equals $? 0
check 'so that all of it is spent, on what hurts most' python3 - "$work/shares.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
budget = report["budget"]
assert [row["cut"] for row in report["rows"]] == [cut for cut in report["cuts"] for _ in range(14)]
assert len(budget["shares"]) == 6 and 0 < budget["relative_error"] <= budget["equal_relative_error"]
rates = {(share["cut"], share["gradient"]): share["rate"] for share in budget["shares"]}
assert len(set(rates.values())) > 1 and all(0.25 <= rate <= 16 for rate in rates.values()), rates
PY
check 'in a table' contains "$work/shares.md" '^\| layer1 \| gradient \| `ecsq\(rate='
check 'as a piece of an experiment file' contains "$work/shares.yaml" '^ +rate: *$'
mkdir "$work/taken.md.tmp"
probe_run --batches 1 --codec fp16 --out "$work/taken.md" --out "$work/after.csv" >"$work/stdout.md" 2>"$work/taken.log"
check 'a file that cannot be written fails the probe' equals $? 1
check 'and is named' contains "$work/taken.log" "thinwire: $work/taken.md.tmp: cannot open: Is a directory"
check 'later files are written' contains "$work/after.csv" '^both,"fp16"'
check 'the tables are on stdout, too' contains "$work/stdout.md" '`fp16`'
check 'leave the run as it was' equals "$(state)" "$before"

echo '== bad input'
probe_run --codec 'topq(ratio=0.1)' >/dev/null 2>"$work/bad.log"
check 'an unknown codec is a usage error' equals $? 2
check 'and its nearest name is offered' contains "$work/bad.log" 'topk'
"$thinwire" probe "$work" >/dev/null 2>"$work/bad.log"
check 'a folder without a run is a usage error' equals $? 2
check 'naming what is missing' contains "$work/bad.log" "$work/experiment.yaml"
probe_run --codec fp16 --set model.width=4 >/dev/null 2>"$work/bad.log"
check 'weights of another model are a usage error' equals $? 2
check 'naming a parameter and both shapes' contains "$work/bad.log" 'conv1.weight is F32 \[8, 1, 3, 3\], want \[4, 1, 3, 3\]'
probe_run --codec fp16 --batches 5 >/dev/null 2>"$work/bad.log"
check 'more batches than an epoch has fail it' contains "$work/bad.log" '--batches: 5, want 1 to 4, the batches of an epoch'

echo '== Ctrl-C'
"$thinwire" probe "$work/tiny.yaml" --set pipeline.stages=2 --stage_server "$stage_server" \
  >/dev/null 2>"$work/interrupted.log" &
probe=$!
check 'a long probe begins' within 30 contains "$work/interrupted.log" '^1/' >/dev/null
mapfile -t stages < <(pgrep -P "$probe" -f stage_server)
kill -INT "$probe"
wait "$probe"
check 'exits 130' equals $? 130
check 'had stages' equals "${#stages[@]}" 2
check 'leaves none' within 5 gone "${stages[@]}"

echo "$failures failures"
(( failures == 0 ))
