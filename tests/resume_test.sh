#!/usr/bin/env bash
# Runs that go on as users have them go on: with more epochs, on other stages, from another folder, without what
# they began from.
# usage: resume_test.sh THINWIRE STAGE_SERVER
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$(realpath "$1")
same_run=$(realpath "$(dirname "$0")/same_run.py")
work=$(mktemp -d)
trap 'end_jobs; rm -rf "$work"' EXIT
cd "$work"

# run NAME ARGUMENTS...: what it says stands in NAME.log
run() {
  local name=$1
  shift
  "$thinwire" run "$@" >"$work/$name.log" 2>&1
  local status=$?
  check "thinwire run $*" equals $status 0
  (( status == 0 )) || tail -3 "$work/$name.log"
}
same() { python3 "$same_run" "$1" "$2"; }
# rates DIR FIRST: the learning rates of the epochs from FIRST on
rates() {
  python3 -c '
import json, sys
print([e["lr"] for e in json.load(open(sys.argv[1] + "/summary.json"))["epochs"] if e["epoch"] >= int(sys.argv[2])])' "$@"
}

cat >cos.yaml <<'YAML'
model: {name: resnet8, width: 16}
data: {name: digits, batch_size: 64, limit: 256, test_limit: 128}
optimizer: {lr: 0.05, momentum: 0.9}
lr_schedule: {name: cosine}
pipeline: {cuts: [layer2], threads: 1}
evaluation: {every_steps: 3}
epochs: 4
YAML

# --- Defaults that follow from other fields follow them in a recorded file, too.
run eight cos.yaml --set epochs=8 --out runs/eight
run cos cos.yaml
cp -r runs/cos runs/with_file
cp -r runs/cos runs/cos_whole
run longer --resume runs/cos --set epochs=8
run with_file cos.yaml --resume runs/with_file --set epochs=8
run recorded runs/cos/experiment.yaml --set epochs=6 --out runs/recorded
run recorded_back runs/recorded/experiment.yaml --set epochs=8 --out runs/recorded_back
check 'added epochs have the rates of a run that was to have as many' equals "$(rates runs/cos 5)" "$(rates runs/eight 5)"
check 'in whichever form' same runs/cos runs/with_file
check 'a recorded file with another number of epochs is the file with it' same runs/recorded_back runs/eight
check 'the past of a resumed run is told' contains longer.log \
  'epochs 1 to 4 had another learning rate schedule; step 17, of epoch 5, trains at 0\.025, the step before trained at 0\.007'
check 'and what changes' contains longer.log 'goes on with lr_schedule\.t_max 8 \(so far 4\), epochs 8 \(so far 4\)'
check 'nothing is told of a run that goes on as it was' \
  bash -c '"$0" run --resume runs/eight 2>&1 | grep -c "so far\|another learning rate" | grep -qx 0' "$thinwire"

# --- From an earlier step: the same numbers again, and nothing of what came later is lost.
cp -r runs/eight runs/again
run again --resume runs/again@28
check 'from an earlier step a run ends as it did' same runs/again runs/eight
check 'its checkpoints are whole' "$thinwire" checkpoint verify runs/again
check 'and a later one stands aside' test -e runs/again/checkpoints/left-28/step-32/manifest.json
check 'the run says where' contains again.log 'later checkpoints stand in .*/checkpoints/left-28 now'
for wrong in 27 soon; do "$thinwire" run --resume runs/again@$wrong >wrong-$wrong.log 2>&1; done
check 'a step without a checkpoint is named' contains wrong-27.log 'has no step-27, but step-28, step-32'
check 'and no step as well' contains wrong-soon.log '"soon" behind the @, want the step of a checkpoint'

# --- The best checkpoint is that of the first evaluation with the least loss, whatever was pruned or begun again.
# best_of DIR MEASURE: the step with the best value in metrics.jsonl
best_of() {
  python3 - "$@" <<'PYTHON'
import json, sys
found, measure = [], sys.argv[2]
for line in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")):
    if line["type"] in ("evaluation", "epoch") and line["test"]:
        value = line["test"]["compressed"][measure]
        found.append((value if measure == "loss" else -value, line.get("step", 4 * line["epoch"])))
print(min(found)[1])
PYTHON
}
for measure in loss accuracy; do
  run best_$measure cos.yaml --set checkpoint.best=$measure --set checkpoint.keep=1 --set optimizer.lr=0.2 --out runs/best_$measure
  check "the best checkpoint by $measure is that of the record" \
    equals "$(readlink runs/best_$measure/checkpoints/best)" "step-$(best_of runs/best_$measure $measure)"
done
cp -r runs/best_loss runs/best_longer
run best_longer --resume runs/best_longer --set epochs=7
check 'and of a longer run' \
  equals "$(readlink runs/best_longer/checkpoints/best)" "step-$(best_of runs/best_longer loss)"
"$thinwire" checkpoint list runs/best_longer >list.log 2>&1
check 'a list says which it is' contains list.log ' best$'
run from_best cos.yaml --set init=runs/best_loss/checkpoints/best --out runs/from_best

# --- A run that gets no better ends, with the numbers that it had so far, and goes on if asked to.
# losses DIR LAST: those of the first steps
losses() {
  python3 -c '
import json, sys
print([e["loss"] for e in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if e["type"] == "step" and e["step"] <= int(sys.argv[2])])' "$@"
}
run stopped cos.yaml --set early_stop.patience=2 --set early_stop.min_delta=100 --out runs/stopped
check 'an early stop is told' contains stopped.log 'stopped after step 6: loss was no better than the .* after step 3 by more than 100 in 2 evaluations'
check 'up to there nothing was otherwise' equals "$(losses runs/stopped 99)" "$(losses runs/cos_whole 6)"
check 'it has a checkpoint of its end' test -e runs/stopped/checkpoints/step-6/manifest.json
# outcomes DIR: what its epochs came to
outcomes() {
  python3 -c '
import json, sys
print([(e["epoch"], e["lr"], e["train"], e["test"]) for e in json.load(open(sys.argv[1] + "/summary.json"))["epochs"]])' "$@"
}
run stopped_flat cos.yaml --set lr_schedule.name=constant --set early_stop.patience=2 --set early_stop.min_delta=100 --out runs/stopped_flat
run six cos.yaml --set lr_schedule.name=constant --set steps=6 --out runs/six
check 'it is a run of as many steps' equals "$(outcomes runs/stopped_flat)" "$(outcomes runs/six)"
run stopped_on --resume runs/stopped --set early_stop.patience=3
check 'with more patience it goes on' contains stopped_on.log 'stopped after step 8: '

# --- Steps in place of epochs: a schedule falls up to the last of them, and more of them go on within an epoch.
run seven cos.yaml --set steps=7 --out runs/seven
check 'a run of steps ends with the last of them' equals "$(losses runs/seven 99 | tr -cd , | wc -c)" 6
check '  and says what would train on' contains <("$thinwire" run --resume runs/seven 2>&1) 'all 7 steps are trained, .*--set steps=14'
run ten cos.yaml --set steps=10 --set lr_schedule.name=constant --out runs/ten
run six_on --resume runs/six --set steps=10
check 'more steps go on within the epoch' equals "$(outcomes runs/six)" "$(outcomes runs/ten)"

# --- Cuts are the experiment's, machines are not: those that the program chose stay.
sed -e '/^pipeline/d' cos.yaml >auto.yaml
coded=(--set 'compression.activations={codec: topk, ratio: 0.2}' --set pipeline.threads=1)
run auto auto.yaml "${coded[@]}" --out runs/auto
run half auto.yaml "${coded[@]}" --set epochs=2 --set lr_schedule.t_max=4 --out runs/half
run half_on --resume runs/half --set epochs=4 --set pipeline.stages=2
check 'fewer stages keep the cuts, and with them the numbers' same runs/half runs/auto

# --- A run needs its own folder and the data, nothing else.
cat >text.yaml <<'YAML'
name: text
model: {name: gpt2, width: 16, layers: 2, heads: 2}
data: {name: text, file: ./corpus.txt, tokens: characters, context: 16, windows: 80, batch_size: 10, test_limit: 4}
pipeline: {cuts: [h.0], threads: 1}
optimizer: {name: adamw, lr: 0.003}
checkpoint: {every_steps: 3}
epochs: 2
YAML
seq 1 2000 | tr '\n' ' ' >corpus.txt
run base text.yaml --set epochs=1 --out runs/base
mkdir begin && cp -r runs/base/model begin/
python3 - <<'PY'  # as many checkpoints have it: what says the default says nothing
import json
config = json.load(open("begin/model/config.json"))
config["n_inner"] = None
json.dump(config, open("begin/model/config.json", "w"))
open("begin/model/special_tokens_map.json", "w").write("{}")
PY
begin=(--set init=begin/model)
run whole text.yaml "${begin[@]}" --out runs/whole
run broken text.yaml "${begin[@]}" --set epochs=1 --out runs/broken
cp -r begin/model kept
rm -r begin
mkdir -p elsewhere && mv runs/broken elsewhere/moved && cd elsewhere
run resumed --resume moved --set epochs=2
check 'without the folder that it began from, elsewhere, it ends with the same numbers' same moved "$work/runs/whole"
check "its model has that folder's files" equals "$(cat moved/model/special_tokens_map.json)" '{}'
count=0
for init in '' null "$work/kept" "$work/elsewhere/moved/model" /nowhere; do
  run "init$((count++))" --resume moved --set "init=$init"
done
cd "$work"

# --- A tilde is the home folder, in files and in flags.
sed -e 's|\./corpus\.txt|~/corpus.txt|' -e 's/^epochs: 2/epochs: 1/' text.yaml >home.yaml
HOME=$work run home home.yaml --out='~/runs/at_home'
check 'the folder of --out' test -f runs/at_home/summary.json

echo "$failures failures"
(( failures == 0 ))
