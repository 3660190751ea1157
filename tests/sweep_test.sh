#!/usr/bin/env bash
# Whole sweeps: finished runs are not repeated, whatever ended the sweep, and no process stays behind.
# usage: sweep_test.sh THINWIRE STAGE_SERVER
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2
work=$(mktemp -d)
servers=()
cleanup() {
  end_jobs
  rm -rf "$work"
}
trap cleanup EXIT

cat >"$work/base.yaml" <<'YAML'
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 64, limit: 640, test_limit: 100}
pipeline: {cuts: [layer1, layer2], stages: 2, threads: 1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
checkpoint: {every_steps: 3}
epochs: 4
YAML
cat >"$work/codecs.yaml" <<'YAML'
experiment: base.yaml
rows:
  none: {compression.activations.codec: none}
  topk:
    compression.activations: {codec: topk, ratio: 0.1}
    compression.gradients: {codec: topk, ratio: 0.1}
  uniform:
    compression.activations: {codec: uniform, bits: 4}
    compression.gradients: {codec: uniform, bits: 8}
seeds: [1, 2, 3]
YAML

# sweep NAME ARGUMENTS...: the sweep in folder NAME, exit code in $code, output in NAME.log
sweep() {
  local name=$1
  shift
  timeout 300 "$thinwire" sweep "$work/codecs.yaml" --out "$work/$name" --stage_server "$stage_server" "$@" \
    >"$work/$name.log" 2>&1
  code=$?
}
# finished NAME: the runs that a sweep's folder has finished, and when: a repeated one has another time
finished() {
  python3 - "$work/$1" <<'PY'
import json, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1], "runs").glob("*/summary.json")):
    summary = json.loads(path.read_text())
    if summary["status"] == "completed":
        print(path.parent.name, summary["provenance"]["started"], path.stat().st_mtime_ns, len(summary["events"]))
PY
}
count() { finished "$1" | wc -l; }
# at_least NUMBER NAME
at_least() { (( $(count "$2") >= $1 )); }
# processes NAME: of this sweep, whatever they are
processes() { pgrep -f -- "$work/$1" || true; }
none_left() { [[ -z $(processes "$1") ]]; }
# under_way NAME: a run that is not finished has written a checkpoint
under_way() {
  local run
  for run in "$work/$1"/runs/*; do
    [[ -e $run/summary.json ]] && continue
    has_checkpoint "$run" && return 0
  done
  return 1
}
numbers() {
  python3 - "$work/$1" <<'PY'
import json, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1], "runs").glob("*/metrics.jsonl")):
    for line in path.read_text().splitlines():
        e = json.loads(line)
        print(path.parent.name, e["type"], e["epoch"], e.get("step"), e.get("loss"), e.get("test"))
PY
}

echo '== 3 codecs x 3 seeds, killed in the middle and gone on with'
"$thinwire" sweep "$work/codecs.yaml" --out "$work/killed" --stage_server "$stage_server" >"$work/killed.log" 2>&1 &
pid=$!
check 'some runs finish' within 120 at_least 3 killed
check 'another is under way, with a checkpoint' within 60 under_way killed
kill -9 "$pid"
wait "$pid" 2>/dev/null
check 'no process outlives the sweep' within 10 none_left killed
check 'a run was broken off behind a checkpoint' under_way killed
finished killed >"$work/before"
check 'it was killed before its end' test "$(wc -l <"$work/before")" -lt 9
sweep killed
check 'the same command goes on' equals "$code" 0
finished killed >"$work/after"
check 'every run is finished' equals "$(wc -l <"$work/after")" 9
check 'none of the finished was touched' equals "$(comm -23 "$work/before" "$work/after")" ''
check 'they are said to have been there' equals "$(grep -c ': was there$' "$work/killed.log")" "$(wc -l <"$work/before")"
check 'the run that was broken off went on from its checkpoint' \
  equals "$(awk '$4 > 0' "$work/after" | wc -l)" 1
check 'a third time does nothing' sweep killed
check '  and says so' contains "$work/killed.log" '^9 runs: 0 done, 9 were there, 0 failed'

echo '== the same numbers, whatever happened'
sweep whole --jobs 2
check 'two at once, uninterrupted' equals "$code" 0
numbers whole >"$work/whole.numbers"
numbers killed >"$work/killed.numbers"
check 'give what the killed one gave' cmp "$work/whole.numbers" "$work/killed.numbers"

"$thinwire" compare "$work/whole" "$work/killed" >"$work/compared"
check 'compare says so' equals $? 0
check '  of every step of all nine' equals "$(grep -c '^losses are equal in 40 steps, all of both$' "$work/compared")" 9
check '  of every row, with an interval' \
  equals "$(grep -c 'with codecs: +0.00 \[+0.00, +0.00\] points of accuracy of 3 pairs' "$work/compared")" 3
"$thinwire" compare "$work/whole/runs/none-seed1" "$work/whole/runs/topk-seed1" >"$work/compared"
check 'and of two rows where they part' contains "$work/compared" '^first diverging step: 1 of epoch 1, loss'
check '  and by which field' contains "$work/compared" '^  compression.gradients.codec: none . topk$'
"$thinwire" compare "$work/whole" "$work/nothing" >"$work/compared" 2>&1
check 'a folder without runs is a usage error' equals $? 2
check '  which says why' contains "$work/compared" 'nothing: no run with a summary'

echo '== Ctrl-C'
"$thinwire" sweep "$work/codecs.yaml" --out "$work/stopped" --stage_server "$stage_server" --jobs 2 \
  >"$work/stopped.log" 2>&1 &
pid=$!
check 'a run is under way' within 60 under_way stopped
kill -TERM "$pid"
wait "$pid"
check 'a signal ends it with 130' equals $? 130
check 'and every run' none_left stopped
check 'it says how to go on' contains "$work/stopped.log" 'the same command goes on'
sweep stopped --list
check '--list says what is missing' contains "$work/stopped.log" '^uniform-seed3: missing'
check '  and what is begun' contains "$work/stopped.log" ': unfinished'

echo '== rows that differ, rows that fail'
sed -i 's/bits: 4/bits: 5/' "$work/codecs.yaml"
sweep killed
check 'a row that has changed is refused' equals "$code" 2
check '  with the field' contains "$work/killed.log" 'uniform-seed1.*compression.activations.bits is 4, want 5'
sed -i -e 's/bits: 5/bits: 4/' -e 's/^seeds/  fp16: {compression.activations.codec: fp16}\nseeds/' "$work/codecs.yaml"
sweep killed --seeds 1
check 'a row that is new is run' equals "$code" 0
check '  and nothing else' contains "$work/killed.log" '^4 runs: 1 done, 3 were there, 0 failed'
cat >"$work/codecs.yaml" <<'YAML'
experiment: base.yaml
rows:
  bad: {optimizer.lr: 1e30}
  good: {}
YAML
sweep failing --seeds 1
check 'a run that fails shows in the exit code' equals "$code" 1
check '  the rest runs' contains "$work/failing.log" '^good-seed1: done'
check '  and it is named at the end' contains "$work/failing.log" '^failed: bad-seed1: .*its log is'

echo '== refusals before anything starts'
# refused WHAT TEXT ARGUMENTS...
refused() {
  "$thinwire" sweep "${@:3}" --out "$work/refused" >"$work/log" 2>&1
  check "$1 is a usage error" equals $? 2
  check '  which says why' contains "$work/log" "$2"
  check '  and starts nothing' test ! -e "$work/refused/runs"
}
refused 'an axis that names no field' 'axes|optimizer.lrr: unknown field; did you mean lr' "$work/base.yaml" --grid optimizer.lrr=1
refused 'an empty axis' 'axis epochs: want a list of at least one value' "$work/base.yaml" --grid epochs=
refused 'a last row that cannot be' 'row epochs-0: .*epochs: 0, want at least 1' "$work/base.yaml" --grid epochs=1,0
refused 'a seed that stands twice' '2 stands twice' "$work/base.yaml" --seeds 2,2

echo '== stage servers that run already'
for i in 0 1 2 3; do
  "$stage_server" --listen 127.0.0.1:0 --metrics_listen '' >"$work/server$i" 2>&1 &
  servers+=($!)
done
address() { sed -n -E 's/.*[^0-9](127\.0\.0\.1:[0-9]+).*/\1/p' "$work/server$1" | head -1; }
listens() { [[ -n $(address "$1") ]]; }
for i in 0 1 2 3; do check "server $i listens" within 10 listens "$i"; done
# remote GROUP GROUP SEEDS
remote() {
  exec "$thinwire" sweep "$work/base.yaml" --out "$work/remote" --seeds "$3" --set epochs=12 \
    --stages "$1" --stages "$2"
}
first=$(address 0),$(address 1) second=$(address 2),$(address 3)
both_under_way() {
  local seed
  for seed in 1 2; do
    has_checkpoint "$work/remote/runs/base-seed$seed" || return 1
  done
}
remote "$first" "$second" 1,2 >"$work/remote.log" 2>&1 &
pid=$!
check 'two groups train two seeds at once' within 60 both_under_way
kill -9 "$pid"
wait "$pid" 2>/dev/null
check 'no process outlives the sweep' within 10 none_left remote
check 'both are unfinished' equals "$(count remote)" 0
(remote "$first" "$second" 2) >"$work/remote.log" 2>&1
check 'the second goes on at the second group, alone' equals $? 0
check '  to its end' equals "$(count remote)" 1
(remote "$second" "$first" 1,2) >"$work/remote.log" 2>&1
check 'and the first at the group that has its lease, whatever their order' equals $? 0
check '  both' equals "$(count remote)" 2

exit "$failures"
