#!/usr/bin/env bash
# Whole processes on loopback: a run as a user starts it, and what happens when something breaks.
# usage: end_to_end_test.sh THINWIRE STAGE_SERVER
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2
work=$(mktemp -d)
children=() stages=()

cleanup() {
  end_jobs
  mountpoint -q "$work/full" 2>/dev/null && umount "$work/full"
  rm -rf "$work"
}
trap cleanup EXIT

started() { [[ -e $work/$1/metrics.jsonl && $(wc -l <"$work/$1/metrics.jsonl") -gt 3 ]]; }

cat >"$work/short.yaml" <<'YAML'
name: short
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 50, limit: 400, test_limit: 200}
pipeline: {cuts: [stem, layer1, layer2], threads: 1}
compression: {activations: {codec: topk, ratio: 0.2}, gradients: {codec: uniform, bits: 8}}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
epochs: 2
YAML
long=(--set epochs=100000 --set evaluation.every=0 --set restarts.max=0)

# start NAME ARGUMENTS...: a long run in the background
start() {
  local name=$1
  shift
  "$thinwire" run "$work/short.yaml" --out "$work/$name" "${long[@]}" "$@" >"$work/$name.log" 2>&1 &
  run=$!
  children+=("$run")
  within 30 started "$name" || { echo "FAILED: $name did not start"; cat "$work/$name.log"; exit 1; }
  mapfile -t stages < <(pgrep -P "$run" -f stage_server)
}
# address LOG: where a server that was started by hand listens
address() {
  within 10 contains "$1" 'serving on' >/dev/null
  grep -oE 'serving on [^ ,]+' "$1" | cut -d' ' -f3
}
# steps_of FILE: the steps that its lines are of
steps_of() { grep -oE '"step": ?[0-9]+' "$1" | grep -oE '[0-9]+' | sort -nu | tr '\n' ' '; }
has_ipv6() { python3 -c 'import socket; socket.create_server(("::1", 0), family=socket.AF_INET6)' 2>/dev/null; }
# stage_pid RUN STAGE: children of the coordinator in order of stages
stage_pid() { pgrep -P "$1" -f stage_server | sort -n | sed -n "$(($2 + 1))p"; }
# in_epoch NAME STAGE: between the stage's words that an epoch begins and those that it is trained
in_epoch() { tail -n 1 "$work/$1/logs/stage-$2.log" | grep -qE 'epoch [0-9]+ begins'; }

echo '== builds'
for program in "$thinwire" "$stage_server"; do
  name=$(basename "$program")
  "$program" --version >"$work/version.log"
  check "$name --version" contains "$work/version.log" "^$name [^ ]+ (gcc|clang) [0-9.]+ "
done

echo '== a run'
"$thinwire" run "$work/short.yaml" --out "$work/short" >"$work/short.log" 2>&1
check 'exits 0' equals $? 0
check 'one line says what runs where' equals "$(grep -cE "^run short-[0-9a-f]{8} in $work/short: 4 stages on cpu; metrics at http://127.0.0.1:[0-9]+/metrics$" "$work/short.log")" 1
check 'a stage logs the run from its lease to its release' equals \
  "$(grep -cE 'info    run short-[0-9a-f]{8}(, stage 2)?: (leased|configured|connected|epoch . (begins|is trained)|evaluated|released)' "$work/short/logs/stage-2.log")" 12
check 'and nothing else but its start and its end' equals "$(wc -l <"$work/short/logs/stage-2.log")" 15
check 'summary says completed' contains "$work/short/summary.json" '"status": *"completed"'
check 'both accuracies stand there' contains "$work/short/summary.json" '"uncompressed"'
check 'a codec error that no step measured is null' contains "$work/short/summary.json" '"codec_relative_error": *null'
"$thinwire" plan "$work/short.yaml" --from "$work/short" --link_mbit 20 --codec fp16 --format json >"$work/plan.json"
check 'a plan takes its speeds' contains "$work/plan.json" "\"compute\": \"as $work/short took it, 4 segments in"
check '  and those of its codecs' contains "$work/plan.json" "\"codecs\": \"those of $work/short as it took them"
check '  and ranks choices by them' contains "$work/plan.json" '"codec": "fp16"'
"$thinwire" plan "$work/short.yaml" --from "$work/short" --stage_server "$work/none" --format json >"$work/plan.json"
check '  without passes where no stage can be started' contains "$work/plan.json" '"layer_us": 0(\.0)?,?$'
two=(--set 'pipeline.cuts=[layer2]' --set pipeline.stages=2 --set pipeline.microbatches=5)
"$thinwire" run "$work/short.yaml" --out "$work/two" "${two[@]}" --quiet >"$work/two.log" 2>&1
"$thinwire" plan "$work/short.yaml" "${two[@]}" --gflops 40 --codec_gbps 1 --memory 1GB --format json >"$work/plan.json"
least=$(grep -oE '"least_bytes": *[0-9]+' "$work/plan.json" | grep -oE '[0-9]+')
"$thinwire" run "$work/short.yaml" --out "$work/least" "${two[@]}" --set "pipeline.memory=${least}B" >"$work/least.log" 2>&1
check 'a run in the least memory exits 0' equals $? 0
check '  says what blocks do' contains "$work/least.log" '^thinwire: memory of [0-9.]+ [KM]iB a stage: recompute '
check '  and trains the same' python3 "$(dirname "$0")/same_run.py" "$work/two" "$work/least"
check 'steps stand in metrics.jsonl' equals "$(grep -c '"type": *"step"' "$work/short/metrics.jsonl")" 16
check 'epochs stand in metrics.jsonl' equals "$(grep -c '"type": *"epoch"' "$work/short/metrics.jsonl")" 2
check 'the bytes of the epochs are those of the summary' python3 - "$work/short" <<'PY'
import json, sys
epochs = [entry for entry in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if entry["type"] == "epoch"]
boundaries = json.load(open(sys.argv[1] + "/summary.json"))["boundaries"]
assert boundaries
for i, boundary in enumerate(boundaries):
    for direction in ("activations", "gradients"):
        for field in ("raw_bytes", "wire_bytes", "messages"):
            parts = [epoch["boundaries"][i][direction][field] for epoch in epochs]
            assert all(parts) and sum(parts) == boundary[direction][field], (boundary["name"], field, parts)
PY
"$thinwire" plan "$work/short/experiment.yaml" >"$work/plan.log" 2>&1
check 'the resolved experiment loads again' equals $? 0
check 'parameters were saved' test -n "$(find "$work/short" -name 'model.safetensors.index.json')"
"$thinwire" run "$work/short.yaml" --out "$work/short" >"$work/again.log" 2>&1
check 'an existing run is not overwritten' equals $? 2
check 'and is named' contains "$work/again.log" "$work/short"

echo '== a repeated run'
"$thinwire" run "$work/short.yaml" --out "$work/repeat" >/dev/null 2>&1
losses() { grep -o '"loss": *[^,]*' "$1/metrics.jsonl" | head -16; }
check 'has the same losses to the last bit' equals "$(losses "$work/repeat")" "$(losses "$work/short")"

echo '== the same cuts in one and in two processes'
for stages in 1 2; do
  "$thinwire" run "$work/short.yaml" --set "pipeline.stages=$stages" --out "$work/in$stages" >/dev/null 2>&1
  check "$stages: the same losses to the last bit" equals "$(losses "$work/in$stages")" "$(losses "$work/short")"
done

echo '== a bottleneck'
"$thinwire" run "$work/short.yaml" --set compression.bottleneck.width=4 --out "$work/narrow" >/dev/null 2>&1
check 'exits 0' equals $? 0
check 'there is no uncompressed accuracy' contains "$work/narrow/summary.json" '"uncompressed": *null'
check 'and it says why' contains "$work/narrow/summary.json" '"uncompressed_reason": *"cut stem has a bottleneck'

echo '== bad input'
"$thinwire" run "$work/short.yaml" --set model.widht=3 --out "$work/bad" >"$work/bad.log" 2>&1
check 'an unknown field is a usage error' equals $? 2
check 'and its nearest name is offered' contains "$work/bad.log" 'width'
"$thinwire" run "$work/short.yaml" --set pipeline.cuts=layer9 --out "$work/bad" >"$work/bad.log" 2>&1
check 'an impossible cut is a usage error' equals $? 2
"$thinwire" run "$work/short.yaml" --set data.name=cifar10 --set "data.dir=$work/none" --out "$work/nodata" >"$work/bad.log" 2>&1
check 'absent data fails the run' equals $? 1
check 'and the file is named' contains "$work/bad.log" "$work/none"
"$thinwire" run "$work/short.yaml" --set optimizer.lr=1e30 --set compression.activations.codec=none \
  --set compression.gradients.codec=none --out "$work/nan" >"$work/bad.log" 2>&1
check 'a loss that is no number fails the run' equals $? 1
check 'naming stage and step' contains "$work/bad.log" 'stage 3.*(nan|inf).*step [0-9]+'
check 'and traffic.jsonl has every step that metrics.jsonl has' equals "$(steps_of "$work/nan/traffic.jsonl")" "$(steps_of "$work/nan/metrics.jsonl")"
"$thinwire" run "$work/short.yaml" --stages '127.0.0.1:{1..4}' --stages_wait 1 --out "$work/unreachable" >"$work/bad.log" 2>&1
check 'unreachable stages fail the run' equals $? 1
check 'naming one' contains "$work/bad.log" 'stage 0.*127\.0\.0\.1:1'

echo '== a stage dies'
start dies --set model.width=64 --set data.limit=3800  # epochs take seconds: the kill falls into one
check 'while it trains' within 10 in_epoch dies 1
kill -9 "$(stage_pid "$run" 2)"
wait "$run"
check 'the run fails' equals $? 1
check 'naming the stage' contains "$work/dies.log" 'stage 2'
check 'and its last words' contains "$work/dies.log" '^    .* info    run short-[0-9a-f]{8}, stage 2: epoch [0-9]+ begins: 3800 samples'
check 'its neighbour says why it failed' contains "$work/dies/logs/stage-1.log" ' error   run short-[0-9a-f]{8}, stage 1: Train failed \(peer_gone\): cut layer1, from stage 2'
check 'the record says failed' contains "$work/dies/summary.json" '"status": *"failed"'
check 'no stage is left' within 5 gone "${stages[@]}"

echo '== a stage hangs'
start hangs
hung=$(stage_pid "$run" 1)
kill -STOP "$hung"
since=$SECONDS
wait "$run"
check 'the run fails' equals $? 1
check 'within 30 seconds' test $((SECONDS - since)) -lt 30
check 'naming the stage' contains "$work/hangs.log" 'stage 1'
check 'no stage is left, stopped or not' within 5 gone "${stages[@]}"

echo '== the coordinator is paused'
start paused
kill -STOP "$run"
sleep 17  # longer than a silence, and than a lease of stages that are not its children
kill -CONT "$run"
sleep 3
kill -INT "$run"
wait "$run"
check 'the run goes on' equals $? 130
check 'and none is blamed' contains "$work/paused/summary.json" '"status": *"interrupted"'

echo '== a lost terminal'
start hangup
kill -HUP "$run"
wait "$run"
check 'exits 130' equals $? 130
check 'the record says interrupted' contains "$work/hangup/summary.json" '"status": *"interrupted"'
check 'no stage is left' gone "${stages[@]}"

echo '== Ctrl-C'
start interrupted
kill -INT "$run"
wait "$run"
check 'exits 130' equals $? 130
check 'the record says interrupted' contains "$work/interrupted/summary.json" '"status": *"interrupted"'

echo '== the coordinator is killed'
start killed
kill -9 "$run"
wait "$run" 2>/dev/null
check 'its stages end' within 8 gone "${stages[@]}"

echo '== metrics while training'
start metrics
for page in $(grep -oE '127\.0\.0\.1:[0-9]+' "$work/metrics/targets.json"); do
  curl -sf "http://$page/metrics" >"$work/page"
  check "promtool finds nothing at $page" promtool check metrics <"$work/page"
  check 'the page has our series' contains "$work/page" '^thinwire_'
done
check 'five pages' equals "$(grep -oE '127\.0\.0\.1:[0-9]+' "$work/metrics/targets.json" | wc -l)" 5
page=$(grep -oE '127\.0\.0\.1:[0-9]+' "$work/metrics/targets.json" | head -1)
"$thinwire" run "$work/short.yaml" --out "$work/taken" --metrics_listen "$page" >"$work/taken.log" 2>&1
check 'a taken port fails another run' equals $? 1
check 'and is named' contains "$work/taken.log" "${page#*:}"
kill -INT "$run"; wait "$run"

echo '== servers started by hand'
targets=()
for i in 0 1 2 3; do
  "$stage_server" --listen 127.0.0.1:0 --metrics_listen 0.0.0.0:0 2>"$work/server$i.log" &
  children+=($!)
done
for i in 0 1 2 3; do
  targets+=("$(address "$work/server$i.log")")
done
list=$(IFS=,; echo "${targets[*]}")
"$thinwire" run "$work/short.yaml" --set pipeline.threads=1 --stages "$list" --out "$work/byhand" >"$work/byhand.log" 2>&1
check 'train' equals $? 0
check 'and are named to Prometheus' equals "$(grep -cE '"127\.0\.0\.1:[0-9]+"' "$work/byhand/targets.json")" 5
check 'to the same losses over TCP' equals "$(losses "$work/byhand")" "$(losses "$work/short")"
"$thinwire" run "$work/short.yaml" --stages "$list" --out "$work/byhand2" >"$work/byhand.log" 2>&1
check 'and serve the next run' equals $? 0
page=$(grep -oE 'metrics on http://[0-9.:]+' "$work/server0.log" | cut -d/ -f3)
check 'are healthy' equals "$(curl -sf "http://127.0.0.1:${page#*:}/healthz")" ok
check 'are free' equals "$(curl -sf "http://127.0.0.1:${page#*:}/metrics" | grep ^thinwire_stage_busy)" 'thinwire_stage_busy 0'
"$thinwire" run "$work/short.yaml" --stages "${targets[0]},${targets[0]}" --out "$work/twice" >"$work/twice.log" 2>&1
check 'are one stage each' equals $? 2
check 'and one that is named twice is named' contains "$work/twice.log" "\"${targets[0]}\" comes twice"
"$thinwire" run "$work/short.yaml" --stages "${targets[1]},localhost:${targets[1]#*:}" --set pipeline.stages=2 --out "$work/twice" >"$work/twice.log" 2>&1
check 'also by two names' contains "$work/twice.log" 'a stage of run short-[0-9a-f]+ generation 1 already; is it named by two addresses'
kill "${children[-1]}"
check 'say why they end' within 5 contains "$work/server3.log" 'info    the server ends: SIGTERM' >/dev/null
"$stage_server" --listen 127.0.0.1:0 --log_format json 2>"$work/json.log" &
children+=($!)
within 10 contains "$work/json.log" serving >/dev/null
"$thinwire" run "$work/short.yaml" --set pipeline.stages=1 --out "$work/json" \
  --stages "$(grep -oE '"listen":"[0-9.:]+"' "$work/json.log" | cut -d'"' -f4)" >/dev/null 2>&1
check 'log JSON where they are asked to' equals "$(python3 -c '
import json, sys
print(*[json.loads(line)["event"] for line in sys.stdin])' <"$work/json.log")" \
  'serving lease_taken device configured connected epoch_begin epoch_end evaluation evaluation epoch_begin epoch_end evaluation evaluation lease_released'
"$stage_server" --log_level loud 2>"$work/loud.log"
check 'take no other level' equals $? 2
check 'and say which there are' contains "$work/loud.log" 'want debug, info, warning, error or off'

echo '== a lease that nobody renews'
start unrenewed --set pipeline.stages=1 --stages "${targets[0]}"
kill -9 "$run"
wait "$run" 2>/dev/null
"$thinwire" run "$work/short.yaml" --set pipeline.stages=1 --stages "${targets[0]}" --stages_wait 0 --out "$work/refused" >"$work/refused.log" 2>&1
check 'refuses who does not wait' equals $? 1
check 'and says until when' contains "$work/refused.log" 'leased to another run until [0-9:]+ UTC, [0-9]+ s from now, unless it is renewed'
"$thinwire" run "$work/short.yaml" --set pipeline.stages=1 --stages "${targets[0]}" --stages_wait 60 --out "$work/waits" >"$work/waits.log" 2>&1 &
waits=$!

if has_ipv6; then
  echo '== IPv6 alone'
  six=()
  for i in 0 1; do
    "$stage_server" --listen '[::1]:0' --metrics_listen '[::1]:0' 2>"$work/six$i.log" &
    children+=($!)
  done
  for i in 0 1; do six+=("$(address "$work/six$i.log")"); done
  "$thinwire" run "$work/short.yaml" --set pipeline.stages=2 --stages "${six[0]},${six[1]}" --metrics_listen '[::1]:0' \
    --metrics_linger 60 --out "$work/six" >"$work/six.log" 2>&1 &
  run=$!
  check 'trains' within 30 test -e "$work/six/summary.json"
  check 'to the same losses' equals "$(losses "$work/six")" "$(losses "$work/short")"
  mapfile -t pages < <(grep -oE '"\[::1\]:[0-9]+"' "$work/six/targets.json" | tr -d '"')
  check 'names each page' equals "${#pages[@]}" 3
  for page in "${pages[@]}"; do check "$page answers" equals "$(curl -gsf "http://$page/healthz")" ok; done
  kill -INT "$run"; wait "$run"
else
  echo 'skipped: IPv6 alone, as this machine has no ::1'
fi

echo '== a state file that may not grow'
mkdir "$work/state"
(ulimit -f 64; exec "$stage_server" --listen 127.0.0.1:0 --state "$work" 2>"$work/limited.log") &
children+=($!)
"$thinwire" run "$work/short.yaml" --set pipeline.stages=1 \
  --set "compression.activations.feedback={kind: ef, dir: $work/state}" \
  --stages "$(address "$work/limited.log")" --out "$work/limited" >"$work/limited_run.log" 2>&1
check 'fails the run' equals $? 1
check 'naming the file' contains "$work/limited_run.log" "state file $work/state/thinwire-state-.*File too large"

echo '== a record that may not grow'
# Of many steps an epoch, so that metrics.jsonl or traffic.jsonl outgrows the limit well before the summary.
(ulimit -f 32; exec "$thinwire" run "$work/short.yaml" --set model.width=2 --set data.batch_size=10 --out "$work/grown" "${long[@]}" --set checkpoint.every_epochs=0 --quiet >"$work/grown.log" 2>&1)
check 'fails the run' equals $? 1
check 'naming the file' contains "$work/grown.log" "$work/grown/[a-z]*.jsonl: cannot write: File too large"
check 'the summary says it' contains "$work/grown/summary.json" '[a-z]*.jsonl: cannot write: File too large'

echo '== a model that may not grow'
(ulimit -f 32; exec "$thinwire" run "$work/short.yaml" --out "$work/heavy" --quiet >"$work/heavy.log" 2>&1)
check 'fails the run' equals $? 1
check 'naming the file' contains "$work/heavy.log" "$work/heavy/model.tmp/model-0000.-of-00004.safetensors: cannot write: File too large"

if (( EUID == 0 )) && mkdir "$work/full" && mount -t tmpfs -o size=256k tmpfs "$work/full" 2>/dev/null; then
  echo '== a full disk'
  "$thinwire" run "$work/short.yaml" --out "$work/full/run" "${long[@]}" >"$work/full.log" 2>&1
  check 'fails the run' equals $? 1
  check 'saying why' contains "$work/full.log" 'No space left'
fi

wait "$waits"
check 'a lease that nobody renewed is waited for' equals $? 0
check 'which is told' contains "$work/waits.log" 'waiting for 1 of 1 stages: stage 0 .*: this server is leased to another run until [0-9:]+ UTC'

echo "$failures failures"
(( failures == 0 ))
