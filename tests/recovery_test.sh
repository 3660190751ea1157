#!/usr/bin/env bash
# Whole processes on loopback: runs that lose a stage, a link or their coordinator, and end with the
# numbers of a run that lost nothing.
# usage: recovery_test.sh THINWIRE STAGE_SERVER
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2
work=$(mktemp -d)
children=()

cleanup() {
  end_jobs
  mountpoint -q "$work/small" 2>/dev/null && umount "$work/small"
  rm -rf "$work"
}
trap cleanup EXIT

cat >"$work/images.yaml" <<'YAML'
name: images
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 50, test_limit: 100}
pipeline: {cuts: [stem, layer1, layer2], threads: 1, microbatches: 2}
compression: {activations: {codec: topk, ratio: 0.2, feedback: ef21}, gradients: {codec: topk, ratio: 0.2, feedback: ef21}}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
checkpoint: {every_steps: 10}
epochs: 3
YAML
cat >"$work/text.yaml" <<'YAML'
name: text
model: {name: gpt2, width: 32, layers: 3, heads: 2, dropout: 0.1}
data: {name: shakespeare, batch_size: 10, context: 32, windows: 600, test_limit: 20}
pipeline: {cuts: [h.0, h.1], threads: 1, microbatches: 2}
compression: {activations: {codec: topk, ratio: 0.3, feedback: ef21}, gradients: {codec: uniform, bits: 4, feedback: ef}}
optimizer: {name: adamw, lr: 0.003, clip_norm: 1}
checkpoint: {every_steps: 8}
epochs: 3
YAML

sed -e 's/^name: text/name: narrow/' -e 's/^compression:.*/compression: {bottleneck: {kind: learned_subspace, width: 6}, activations: {codec: uniform, bits: 6}}/' \
  -e 's/^optimizer:.*/optimizer: {name: muon, lr: 0.02, adamw_lr: 0.003, clip_norm: 1}/' "$work/text.yaml" >"$work/narrow.yaml"

# Slices of sequences have no dropout and no feedback.
sliced=(--set pipeline.schedule=terapipe --set pipeline.slices=4 --set model.dropout=0
  --set 'compression={activations: {codec: topk, ratio: 0.3, feedback: none}, gradients: {codec: uniform, bits: 4, feedback: none}}')

# same NAME OTHER: both runs left the same parameters and measured the same losses and accuracies
same() { python3 "$(dirname "$0")/same_run.py" "$work/$1" "$work/$2"; }
# events NAME: "restarted 2 dead" a line
events() {
  python3 -c '
import json, sys
for e in json.load(open(sys.argv[1]))["events"]:
    print(e["type"], e["stage"], e["reason"])' "$work/$1/summary.json"
}
# start NAME EXPERIMENT ARGUMENTS...: a run in the background
start() {
  local name=$1 experiment=$2
  shift 2
  "$thinwire" run "$work/$experiment.yaml" --out "$work/$name" "$@" >"$work/$name.log" 2>&1 &
  run=$!
  children+=("$run")
}
# at_step NAME STEP: that step stands in the record
at_step() { grep -q "\"type\":\"step\".*\"step\":$2," "$work/$1/metrics.jsonl" 2>/dev/null; }
stage_pid() { pgrep -P "$1" -f stage_server | sort -n | sed -n "$(($2 + 1))p"; }
finish() { wait "$run" 2>/dev/null; }

for experiment in images text narrow; do
  start "$experiment" "$experiment"
  finish
  check "$experiment: a run that nothing befalls" equals $? 0
done
check 'it keeps its last two checkpoints, and what it knows of its epochs' equals "$(ls "$work/images/checkpoints" | sort)" $'epochs.jsonl\nstep-230\nstep-231'
"$thinwire" checkpoint verify "$work/images" >"$work/verify.log"
check 'which are whole' equals $? 0

for stage in 0 1 3; do
  start "kill$stage" images
  within 30 at_step "kill$stage" $((30 + 7 * stage))
  kill -9 "$(stage_pid "$run" $stage)"
  finish
  check "stage $stage killed: the run ends" equals $? 0
  check 'with the same numbers' same "kill$stage" images
  check 'and tells it' equals "$(events "kill$stage")" "restarted $stage dead"
done
check 'to the user, too' contains "$work/kill3.log" '^going on from step [0-9]+0$'

for experiment in text narrow; do
  name=${experiment}_kill
  start "$name" "$experiment"
  within 30 at_step "$name" 20
  kill -9 "$(stage_pid "$run" 2)"
  within 30 at_step "$name" 40
  kill -9 "$(stage_pid "$run" 0)"
  finish
  check "$experiment, two stages killed: the run ends" equals $? 0
  check 'with the same numbers' same "$name" "$experiment"
done

start zero images --set pipeline.schedule=zero_bubble
within 30 at_step zero 33
kill -9 "$(stage_pid "$run" 1)"
finish
check 'zero_bubble, stage 1 killed: the run ends' equals $? 0
check 'with the numbers of 1f1b' same zero images

start zero_text text --set pipeline.schedule=zero_bubble
within 30 at_step zero_text 30
kill -9 "$run"
finish
"$thinwire" run --resume "$work/zero_text" --set pipeline.schedule=1f1b >"$work/zero_text.log" 2>&1
check 'zero_bubble, the coordinator killed: the run is resumed with 1f1b' equals $? 0
check 'with the numbers of 1f1b' same zero_text text

start turns images --set pipeline.stages=2 --set pipeline.schedule=interleaved
within 30 at_step turns 33
kill -9 "$(stage_pid "$run" 1)"
finish
check 'interleaved, stage 1 killed: the run ends' equals $? 0
check 'with the numbers of 1f1b' same turns images

start turns_text text --set pipeline.cuts='[embedding, h.0, h.1]' --set pipeline.stages=2 --set pipeline.schedule=interleaved
within 30 at_step turns_text 30
kill -9 "$run"
finish
"$thinwire" run --resume "$work/turns_text" --set pipeline.schedule=1f1b --set pipeline.stages=4 >"$work/turns_text.log" 2>&1
check 'interleaved, the coordinator killed: the run is resumed with 1f1b' equals $? 0
start text_again text --set pipeline.cuts='[embedding, h.0, h.1]'
finish
check 'with the numbers of 1f1b' same turns_text text_again

start slices text "${sliced[@]}"
finish
start slices_kill text "${sliced[@]}"
within 30 at_step slices_kill 30
kill -9 "$(stage_pid "$run" 1)"
finish
check 'terapipe, stage 1 killed: the run ends' equals $? 0
check 'with the same numbers' same slices_kill slices
check 'and tells it' equals "$(events slices_kill)" 'restarted 1 dead'

start slices_resumed text "${sliced[@]}"
within 30 at_step slices_resumed 30
kill -9 "$run"
finish
"$thinwire" run --resume "$work/slices_resumed" --set pipeline.stages=1 >"$work/slices_resumed.log" 2>&1
check 'terapipe, the coordinator killed: the run is resumed on one stage' equals $? 0
check 'with the same numbers' same slices_resumed slices

start hang images
within 30 at_step hang 25
kill -STOP "$(stage_pid "$run" 1)"
finish
check 'stage 1 hangs: the run ends' equals $? 0
check 'with the same numbers' same hang images
check 'and tells it' equals "$(events hang)" 'restarted 1 silent'

start early images --set checkpoint.every_steps=0 --set checkpoint.every_epochs=0
within 30 at_step early 12
kill -9 "$(stage_pid "$run" 2)"
finish
check 'without a checkpoint it begins anew' equals $? 0
check 'with the same numbers' same early images
check 'and says so' contains "$work/early.log" '^beginning anew, there is no checkpoint$'

start never images --set restarts.max=0
within 30 at_step never 12
kill -9 "$(stage_pid "$run" 2)"
finish
check 'restarts.max 0: the loss ends the run' equals $? 1

start coordinator images
within 30 at_step coordinator 64
kill -9 "$run"
finish
"$thinwire" run --resume "$work/coordinator" >"$work/coordinator.log" 2>&1
check 'the coordinator killed: the run is resumed' equals $? 0
check 'with the same numbers' same coordinator images
check 'and tells it' equals "$(events coordinator)" 'resumed None None'

start interrupted text
within 30 at_step interrupted 15
kill -INT "$run"
finish
check 'Ctrl-C ends with 130' equals $? 130
last=$(grep '"type":"step"' "$work/interrupted/metrics.jsonl" | tail -n 1 | grep -oE '"step":[0-9]+' | cut -d: -f2)
check 'with a checkpoint of its last step' test -e "$work/interrupted/checkpoints/step-$last/manifest.json"
"$thinwire" run --resume "$work/interrupted" --set pipeline.stages=1 --set epochs=2 >"$work/interrupted.log" 2>&1
check 'resumed in one process' equals $? 0
"$thinwire" run --resume "$work/interrupted" --set pipeline.stages=3 --set epochs=3 >"$work/interrupted.log" 2>&1
check 'and in three, with more epochs' equals $? 0
check 'with the same numbers' same interrupted text

start recut images
within 30 at_step recut 45
kill -INT "$run"
finish
"$thinwire" run --resume "$work/recut" --set pipeline.cuts='[layer1.0, layer2]' --set pipeline.stages=3 >"$work/recut.log" 2>&1
check 'resumed with other cuts' equals $? 0
check 'it names what begins anew' equals "$(grep -c '^warning: cut ' "$work/recut.log")" 6
check 'and what goes on is not named' equals "$(grep -c '^warning: cut layer2' "$work/recut.log")" 0

cp -r "$work/coordinator" "$work/damaged"
newest=$work/damaged/checkpoints/step-231
truncate -s -1 "$newest/model-00002-of-00004.safetensors"
"$thinwire" checkpoint verify "$work/damaged" >"$work/verify.log" 2>&1
check 'a truncated file is found' equals $? 1
"$thinwire" run --resume "$work/damaged" >"$work/damaged.log" 2>&1
check 'the checkpoint before is taken' contains "$work/damaged.log" '^going on from step 230$'
check 'and the broken one is named' contains "$work/damaged.log" 'step-231.*model-00002'
check 'with the same numbers' same damaged images
for file in "$work"/damaged/checkpoints/*/model-00001-of-00004.safetensors; do truncate -s -1 "$file"; done
"$thinwire" run --resume "$work/damaged" >"$work/damaged.log" 2>&1
check 'where none is whole the run does not begin anew' equals $? 1
check 'and each is named' equals "$(grep -c 'model-00001-of-00004.safetensors' "$work/damaged.log")" 2
rm "$work/damaged/experiment.yaml"
"$thinwire" run "$work/images.yaml" --set epochs=1 --resume "$work/damaged" >"$work/damaged.log" 2>&1
check 'what was broken off before it began is begun' equals $? 0

"$thinwire" run --resume "$work/images" --set data.batch_size=10 >"$work/other.log" 2>&1
check 'another batch size is refused' equals $? 2
check 'and named with both' contains "$work/other.log" 'data.batch_size: 50 -> 10'
"$thinwire" run --resume "$work/nothing" >"$work/other.log" 2>&1
check 'a folder without a run is a usage error' equals $? 2

# by_name EPOCHS ARGUMENTS...: the same command each time, as what restarts a coordinator gives it
program=$(realpath -s "$thinwire")
by_name() {
  (cd "$work" && "$program" run images.yaml --set name=by_name --set "epochs=$1" --resume "${@:2}") >"$work/by_name.log" 2>&1
}
start two_epochs images --set epochs=2
finish
by_name 1
check 'without a folder a run begins in that of its name' equals $? 0
by_name 2
check 'and goes on there' equals $? 0
check 'from the last checkpoint' equals "$(events runs/by_name)" 'resumed None None'
check 'with the same numbers' same runs/by_name two_epochs
# state_of FOLDER: the contents and times of its files
state_of() { (cd "$work/$1" && find . -type f ! -name '.thinwire.lock' -printf '%p %T@ ' -exec sha256sum {} \;) | sort; }
ended=$(state_of runs/by_name)
by_name 2
check 'what has ended is no failure' equals $? 0
check 'one line says so, and what would go on' equals "$(cat "$work/by_name.log")" \
  'thinwire: runs/by_name: all 2 epochs are trained, nothing is left to do; --set epochs=4 would train on, --overwrite or another folder anew'
check 'every file is as it was' equals "$(state_of runs/by_name)" "$ended"
rm "$work/runs/by_name/summary.json"
by_name 2
check 'what was killed before its summary is ended' contains "$work/by_name.log" '^summary:  runs/by_name/summary.json'
check 'with the same numbers' same runs/by_name two_epochs
by_name 2 --set seed=2
check 'another run in that folder is refused' equals $? 2
check 'and named' contains "$work/by_name.log" 'cannot go on as another: .*seed'
by_name 2 --out other
check 'two folders are a usage error' equals $? 2
"$thinwire" run --resume >"$work/other.log" 2>&1
check 'so is no folder and no experiment' equals $? 2
check 'which says what is wanted' contains "$work/other.log" 'want EXPERIMENT or --resume DIR'

echo '== servers that are there already'
addresses=()
for i in 0 1 2 3; do
  "$stage_server" --listen 127.0.0.1:0 --metrics_listen 127.0.0.1:0 --data / >"$work/server$i.log" 2>&1 &
  children+=("$!")
  servers[$i]=$!
done
for i in 0 1 2 3; do
  within 10 contains "$work/server$i.log" 'serving on' >/dev/null
  addresses[$i]=$(grep -oE 'serving on [0-9.:]+' "$work/server$i.log" | cut -d' ' -f3)
done
stages=$(IFS=,; echo "${addresses[*]}")
start servers images --stages "$stages"
within 30 at_step servers 23
kill -9 "${servers[2]}"
wait "${servers[2]}" 2>/dev/null
sleep 1
"$stage_server" --listen "${addresses[2]}" --metrics_listen 127.0.0.1:0 --data / >"$work/server2.log" 2>&1 &
children+=("$!")
within 60 at_step servers 64
kill -9 "$run"
finish
"$thinwire" run --resume "$work/servers" --stages "$stages" >"$work/servers_again.log" 2>&1
check 'a server, then the coordinator killed: the run is resumed at once' equals $? 0
check 'with the same numbers' same servers images
check 'the lease is nobody'"'"'s any more' test ! -e "$work/servers/.thinwire.lease"

start leave images --stages "$stages"
within 30 at_step leave 40
kill -TERM "${servers[3]}"
within 20 gone "${servers[3]}"
check 'SIGTERM: a server ends when its run has left it' equals $? 0
"$stage_server" --listen "${addresses[3]}" --metrics_listen 127.0.0.1:0 --data / >"$work/server3.log" 2>&1 &
children+=("$!")
finish
check 'the run goes on when it is back' equals $? 0
check 'with the same numbers' same leave images
check 'and tells it' equals "$(events leave)" 'restarted 3 ends'

start spare images --stages "${addresses[3]},${addresses[0]},${addresses[1]},${addresses[2]},127.0.0.1:1" --set pipeline.stages=3 --set pipeline.cuts='[stem, layer2]'
finish
check 'with spares that nobody needs: the run ends' equals $? 0
start spared images --stages "$stages" --set pipeline.stages=3 --set pipeline.cuts='[stem, layer2]'
within 30 at_step spared 30
kill -9 "${servers[1]}"
finish
check 'a stage is lost, and moves to the spare: the run ends' equals $? 0
check 'with the same numbers' same spared spare
check 'and tells it' equals "$(events spared)" 'restarted 1 silent'

# Replicas whose machines come and go: the others go on with what they have.
cat >"$work/members.yaml" <<'YAML'
name: members
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 48, test_limit: 100}
pipeline: {cuts: [layer1], threads: 1, microbatches: 2}
compression: {activations: {codec: uniform, bits: 8}, gradients: {codec: uniform, bits: 8}}
replicas: {count: 4, contributions: {codec: ecsq, rate: 2}, average: {codec: uniform, bits: 8}}
membership: {open: true}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
checkpoint: {every_epochs: 0}
epochs: 20
YAML
# serve NUMBER: starts that server again
serve() {
  "$stage_server" --listen "${addresses[$1]}" --metrics_listen 127.0.0.1:0 --data / >>"$work/server$1.log" 2>&1 &
  servers[$1]=$!
  children+=("$!")
}
# has_event NAME TEXT: the run has said so
has_event() { grep -q -- "$2" "$work/$1.log"; }
# trained NAME: what the run left of the model
trained() { cat "$work/$1"/model/*.safetensors | sha256sum; }
end_jobs
for i in 0 1 2 3; do serve "$i"; done
start alone members
finish
check 'four replicas in one pipeline: a run that nothing befalls' equals $? 0
start members members --stages "$stages" --carriers 2
within 30 at_step members 100
kill -9 "${servers[1]}"
wait "${servers[1]}" 2>/dev/null
check 'of two pipelines one goes on' within 30 has_event members 'as one pipeline'
serve 1
check 'until the server is back' within 30 has_event members 'as 2 pipelines'
kill -TERM "${servers[2]}"
within 20 gone "${servers[2]}"
check 'SIGTERM: a server ends when its run has left it' equals $? 0
finish
check 'the run ends' equals $? 0
# A step that was done again has sent its bytes twice.
"$thinwire" compare "$work/alone" "$work/members" >"$work/compared.log"
check 'with the same losses' contains "$work/compared.log" 'losses are equal in 1600 steps, all of both'
check 'and the same parameters' equals "$(trained members)" "$(trained alone)"
check 'without a checkpoint' equals "$(events members)" $'went_on 1 silent\njoined None joins\nleft 0 ends'

if (( EUID == 0 )) && mkdir "$work/small" && mount -t tmpfs -o size=3m tmpfs "$work/small" 2>/dev/null; then
  "$thinwire" run "$work/images.yaml" --out "$work/small/run" --set checkpoint.keep=50 >"$work/full.log" 2>&1
  check 'a full disk fails the run' equals $? 1
  check 'and the file is named' contains "$work/full.log" 'checkpoints/step-[0-9]+.tmp/.*No space left'
  check 'what stood before is whole' "$thinwire" checkpoint verify "$work/small/run"
fi

echo "$failures failures"
exit $((failures > 0))
