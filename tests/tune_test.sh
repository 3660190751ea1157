#!/usr/bin/env bash
# A whole tune on digits: cut, halved, killed in the middle and gone on with; what it refuses.
# usage: tune_test.sh THINWIRE STAGE_SERVER
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2
work=$(mktemp -d)
cleanup() {
  end_jobs
  rm -rf "$work"
}
trap cleanup EXIT

cat >"$work/base.yaml" <<'YAML'
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 64, limit: 1280, test_limit: 200}
pipeline: {cuts: [layer1, layer2], threads: 1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
lr_schedule: {name: cosine}
epochs: 8
YAML
given=(--gflops 5 --codec_gbps 0.5 --stage_server "$stage_server")
codecs=(--codec 'uniform(bits=8)' --codec 'uniform(bits=4) | uniform(bits=8, zero=on_grid)'
  --codec 'topk(ratio=0.02, scope=sample)' --codec 'low_rank(rank=4)')

# tune NAME ARGUMENTS...: exit code in $code, result in NAME.log, progress in NAME.err
tune() {
  local name=$1
  shift
  timeout 120 "$thinwire" tune "$work/base.yaml" --link_mbit "${link:-10}" "${given[@]}" "${codecs[@]}" --seeds 2 \
    --out "$work/$name" "$@" >"$work/$name.log" 2>"$work/$name.err"
  code=$?
}
finished() { grep -l '"status": "completed"' "$work/$1"/rung-*/runs/*/summary.json 2>/dev/null | sort; }
at_least() { (( $(finished "$2" | wc -l) >= $1 )); }
none_left() { [[ -z $(pgrep -f -- "$work/$1" || true) ]]; }
# says NAME PYTHON: an expression over tune.json, as `t`, and its candidates by name, `c`
says() {
  python3 - "$work/$1/tune.json" "$2" <<'PY'
import json, sys
t = json.load(open(sys.argv[1]))
c = {one["name"]: one for one in t["candidates"]}
sys.exit(not eval(sys.argv[2]))
PY
}
# without what a clock has measured
numbers() { grep -vE '"(spent_seconds|finished)"' "$work/$1/tune.json"; }

echo '== from end to end, killed on the way'
"$thinwire" tune "$work/base.yaml" --link_mbit 10 "${given[@]}" "${codecs[@]}" --seeds 2 --out "$work/killed" \
  >/dev/null 2>&1 &
pid=$!
check 'some runs finish' within 60 at_least 3 killed
kill -9 "$pid"
wait "$pid" 2>/dev/null
check 'no process outlives the tune' within 10 none_left killed
finished killed >"$work/before"
check 'it was killed before its end' test ! -e "$work/killed/tuned.yaml"
tune killed
check 'the same command goes on' equals "$code" 0
while read -r path; do basename "$(dirname "$path")"; done <"$work/before" | sort -u >"$work/names"
missing=0
while read -r name; do grep -q "^$name: was there$" "$work/killed.err" || missing=1; done <"$work/names"
check 'and repeats no run' equals "$missing" 0
tune whole
check 'an uninterrupted one' equals "$code" 0
numbers killed >"$work/killed.numbers"
numbers whole >"$work/whole.numbers"
check '  says the same' cmp "$work/killed.numbers" "$work/whole.numbers"

echo '== what it says'
check 'the budget comes first' contains "$work/whole.err" '^budget: [0-9]+ steps of at most [0-9]+, which are 20 %'
check 'no more is spent' says whole '0 < t["spent_steps"] <= t["budget_steps"] <= 0.2 * t["exhaustive_steps"]'
check 'what the model refuses is named' contains "$work/whole.log" '^left out: given-4: .*low_rank: rank 4'
check 'every candidate stands or says why not' says whole 'all(o["rung"] == 2 or o["fell"] for o in c.values())'
check 'two percent of the values do not win' says whole 't["choice"] != "given-3"'
check 'rungs grow' says whole 't["rungs"][0]["steps"] < t["rungs"][1]["steps"] and len(t["rungs"][1]["seeds"]) == 2'
check 'times are steps by their seconds' says whole \
  'all(abs(o["ratio_to_none"] - o["steps_ratio"] * o["step_seconds"] / c["none"]["step_seconds"]) < 1e-9
       for o in c.values() if o["steps_ratio"])'
check 'wire bytes are those of the runs' says whole \
  'c["given-1"]["wire_bytes"] < 0.27 * c["none"]["wire_bytes"]'
choice=$(sed -n -E 's/^Choice: ([a-z0-9-]+).*/\1/p' "$work/whole.log")
check 'the choice is a codec' contains "$work/whole.log" '^Choice: given-[12], uniform'
check '  and tuned.yaml has it' contains "$work/whole/tuned.yaml" "^# $choice, which thinwire tune chose for 10 Mbit/s"
"$thinwire" plan "$work/whole/tuned.yaml" --gflops 5 --codec_gbps 1 >"$work/log"
check '  which is an experiment' contains "$work/log" 'uniform'
check '  of as many epochs' contains "$work/whole/tuned.yaml" '^epochs: 8$'
tune whole --format json
check 'as JSON, at once' equals "$code $(python3 -c 'import json,sys; print(json.load(sys.stdin)["choice"])' <"$work/whole.log")" "0 $choice"

echo '== Ctrl-C'
"$thinwire" tune "$work/base.yaml" --link_mbit 10 "${given[@]}" "${codecs[@]}" --out "$work/stopped" \
  >"$work/log" 2>&1 &
pid=$!
check 'a run finishes' within 60 at_least 1 stopped
kill -TERM "$pid"
wait "$pid"
check 'a signal ends it with 130' equals $? 130
check 'and every run' none_left stopped
check 'it says how to go on' contains "$work/log" 'the same command goes on'

echo '== none'
link=1000000 tune none
check 'a link that is no hindrance wants no codec' contains "$work/none.log" '^Choice: none'
check '  and trains nothing' contains "$work/none.log" 'no candidate makes a step faster'
tune unreached --target 100
check 'a target that nobody reaches' contains "$work/unreached.log" 'nobody reaches the target of 100'
check '  leaves none' contains "$work/unreached.log" '^Choice: none'

echo '== refusals'
# refused WHAT TEXT ARGUMENTS...
refused() {
  "$thinwire" tune "$work/base.yaml" "${given[@]}" "${@:3}" >"$work/log" 2>&1
  check "$1 is a usage error" equals $? 2
  check '  which says why' contains "$work/log" "$2"
}
refused 'another tune in the folder' 'another tune stands here: --codecs is' --link_mbit 10 --seeds 2 --out "$work/whole"
refused 'another experiment there' 'another tune stands here: lr_schedule.t_max is 8, want 9' --link_mbit 10 "${codecs[@]}" \
  --seeds 2 --out "$work/whole" --set epochs=9
mkdir "$work/project"
echo 'class Net' >"$work/project/net.py"
refused 'a folder of something else' 'holds something else than a tune' --link_mbit 10 --out "$work/project"

echo "$failures failures"
(( failures == 0 ))
