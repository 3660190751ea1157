#!/usr/bin/env bash
# Whole processes on loopback: servers that join a run, leave it in order, die and join again, and
# those that are not taken in; the run ends with the numbers of one pipeline that nothing befell.
# usage: members_test.sh THINWIRE STAGE_SERVER
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

cat >"$work/members.yaml" <<'YAML'
name: members
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 48, test_limit: 100}
pipeline: {cuts: [layer1], threads: 1, microbatches: 2}
compression: {activations: {codec: uniform, bits: 8}, gradients: {codec: uniform, bits: 8}}
replicas: {count: 4, contributions: {codec: ecsq, rate: 2}, average: {codec: uniform, bits: 8}}
membership: {open: true}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
checkpoint: {every_steps: 200}
epochs: 20
YAML
# serve NUMBER FLAGS...: a server at a port of its own, the same each time
serve() {
  local number=$1
  shift
  "$stage_server" --listen "${addresses[$number]:-127.0.0.1:0}" --metrics_listen 127.0.0.1:0 --data / "$@" \
    2>>"$work/server$number.log" &
  servers[number]=$!
  within 20 grep -qs 'serving on' "$work/server$number.log"
  addresses[number]=$(sed -nE 's/.* serving on ([^,]*),.*/\1/p' "$work/server$number.log" | head -1)
}
run() {
  "$thinwire" run "$work/members.yaml" --stages "${addresses[0]},${addresses[1]}" --listen "$listen" "$@" >>"$work/run.log" 2>&1 &
  run=$!
}
at_step() { grep -q "\"type\":\"step\".*\"step\":$1," "$work/run/metrics.jsonl" 2>/dev/null; }
# says TIMES TEXT: the run has said so, so many times
says() { (($(grep -c -- "$2" "$work/run.log") >= $1)); }
scrapes() { (($(grep -o '127.0.0.1:[0-9]*' "$work/run/targets.json" | wc -l) == $1)); }
addresses=()

"$thinwire" run "$work/members.yaml" --out "$work/alone" >"$work/alone.log" 2>&1
check 'four replicas in one pipeline: a run that nothing befalls' equals $? 0

"$thinwire" run "$work/members.yaml" --listen 127.0.0.1:0 >"$work/usage.log" 2>&1
check 'without --stages nobody can join' equals $? 2
check 'and it says why' contains "$work/usage.log" 'without --stages'
"$stage_server" --listen 0.0.0.0:0 --insecure --join 127.0.0.1:1 2>"$work/everywhere.log"
check 'a server that is everywhere has to say where it is' contains "$work/everywhere.log" 'want --advertise host:port'

listen=127.0.0.1:0
serve 0
serve 1
run --out "$work/run"
within 30 says 1 'servers may join'
listen=$(sed -nE 's/.*stage_server --join (.*)/\1/p' "$work/run.log" | head -1)
within 30 at_step 50
serve 2 --join "$listen"
serve 3 --join "$listen"
check 'two servers join, and make another pipeline' within 30 says 1 'as 2 pipelines'
check 'both hear of it' contains "$work/server3.log" 'has taken this server in'
check 'one has the state of its stage from the first of it' contains "$work/server2.log" "has its stage's state from ${addresses[0]}"
check 'and so has the other' contains "$work/server3.log" "has its stage's state from ${addresses[1]}"
check 'Prometheus finds them' within 10 scrapes 5
"$stage_server" --listen 127.0.0.1:0 --metrics_listen '' --join "$listen" --advertise "${addresses[3]}" 2>"$work/claims.log" &
claims=$!
check 'an address of another server is not taken twice' within 10 grep -q "has a server at ${addresses[3]}" "$work/claims.log"
kill "$claims"

"$thinwire" drain "${addresses[2]}" >"$work/drain.log" 2>&1
check 'a server is drained' equals $? 0
check 'which says what it leaves' contains "$work/drain.log" "${addresses[2]} leaves run members-"
within 20 gone "${servers[2]}"
check 'it ends when its run has left it' equals $? 0
check 'and the run goes on without' within 30 says 1 'as one pipeline'
"$thinwire" drain "${addresses[2]}" >"$work/drain.log" 2>&1
check 'one that is not there cannot be drained' equals $? 1
check 'which is said' contains "$work/drain.log" "${addresses[2]}: "
serve 2 --join "$listen"
check 'it may join again' within 30 says 2 'as 2 pipelines'
kill -9 "${servers[3]}"
wait "${servers[3]}" 2>/dev/null
check 'one is killed' within 30 says 2 'as one pipeline'
serve 3 --join "$listen"
check 'and joins again' within 30 says 3 'as 2 pipelines'

within 60 at_step 800
kill -9 "$run"
wait "$run" 2>/dev/null
run --resume "$work/run"
check 'the coordinator is killed, and resumed: those that had joined come again' within 60 says 4 'as 2 pipelines'
wait "$run"
check 'the run ends' equals $? 0
check 'who joined hears of it' within 10 grep -q 'its run has ended' "$work/server3.log"
"$thinwire" compare "$work/alone" "$work/run" >"$work/compared.log"
check 'with the same losses' contains "$work/compared.log" 'losses are equal in 1600 steps, all of both'
check 'and the same parameters' equals "$(cat "$work"/run/model/*.safetensors | sha256sum)" \
  "$(cat "$work"/alone/model/*.safetensors | sha256sum)"
check 'the summary counts who came since' python3 -c '
import json, sys
members = json.load(open(sys.argv[1]))["members"]
assert members["joined"] == 2 and members["lost"] == 0, members' "$work/run/summary.json"

# Ctrl-C while they are laid out anew, for a server that leaves and for others that join.
# It is sent as soon as the run says where all are from now on, before they are.
interrupted() {
  local name=$1 text=$2
  timeout 60 sh -c "until grep -q -- '$text' '$work/run.log'; do sleep 0.01; done"
  kill -INT "$run"
  wait "$run"
  check "$name: Ctrl-C ends the run" equals $? 130
  local steps
  steps=$(grep -c '"type":"step"' "$work/$name/metrics.jsonl")
  "$thinwire" run "$work/members.yaml" --set "steps=$steps" --out "$work/$name-alone" >"$work/alone.log" 2>&1
  check 'with the model of its last step' equals "$(cat "$work/$name"/model/*.safetensors | sha256sum)" \
    "$(cat "$work/$name-alone"/model/*.safetensors | sha256sum)"
  check 'and a checkpoint of it' test -d "$work/$name/checkpoints/step-$steps"
}
end_jobs
rm "$work"/server*.log "$work/run.log"
listen=127.0.0.1:0
serve 0
serve 1
run --out "$work/joined"
within 30 says 1 'servers may join'
listen=$(sed -nE 's/.*stage_server --join (.*)/\1/p' "$work/run.log" | head -1)
serve 2 --join "$listen"
serve 3 --join "$listen"
interrupted joined '|.* (2)'
rm "$work/run.log"
"$thinwire" run "$work/members.yaml" --stages "$(IFS=,; echo "${addresses[*]}")" --carriers 2 --out "$work/left" >"$work/run.log" 2>&1 &
run=$!
within 30 grep -qs '"step":20,' "$work/left/metrics.jsonl"
"$thinwire" drain "${addresses[3]}" >"$work/drain.log" 2>&1
interrupted left 'pipelines .* (4)'

# A stage's state is large: who joins follows the others first, while they train.
end_jobs
cat >"$work/large.yaml" <<'YAML'
name: large
model: {name: gpt2, layers: 4, heads: 4, width: 256}
data: {name: shakespeare, context: 32, batch_size: 4, test_limit: 4}
pipeline: {stages: 2, cuts: auto, threads: 1}
replicas: {count: 2, contributions: {codec: ecsq, rate: 2}, average: {codec: uniform, bits: 8}}
membership: {open: true}
optimizer: {name: adamw, lr: 0.001, clip_norm: 1}
checkpoint: {every_epochs: 0}
steps: 100
evaluation: {every_steps: 30}
YAML
"$thinwire" run "$work/large.yaml" --out "$work/large-alone" >"$work/alone.log" 2>&1
check 'a larger model that nothing befalls' equals $? 0
rm "$work"/server*.log
listen=127.0.0.1:0
serve 0
serve 1
"$thinwire" run "$work/large.yaml" --stages "${addresses[0]},${addresses[1]}" --listen "$listen" --out "$work/large" >"$work/run.log" 2>&1 &
run=$!
within 30 says 1 'servers may join'
listen=$(sed -nE 's/.*stage_server --join (.*)/\1/p' "$work/run.log" | head -1)
serve 2 --join "$listen"
serve 3 --join "$listen"
check 'two servers join, and follow' within 30 says 1 'as 2 pipelines of 2, 0 replicas'
check 'they catch up' within 30 says 1 'pipelines that followed have caught up'
check 'and carry replicas' within 30 says 1 'as 2 pipelines of 1, 1 replicas'
check 'with the state of their stages' contains "$work/server3.log" "has its stage's state from 127.0.0.1"
wait "$run"
check 'the run ends' equals $? 0
"$thinwire" compare "$work/large-alone" "$work/large" >"$work/compared.log"
check 'with the same losses' contains "$work/compared.log" 'losses are equal in 100 steps, all of both'
check 'and the same parameters' equals "$(cat "$work"/large/model/*.safetensors | sha256sum)" \
  "$(cat "$work"/large-alone/model/*.safetensors | sha256sum)"

# Replicas that train by themselves: what a machine alone has is in checkpoints.
end_jobs
sed -e 's/^name: .*/name: rounds/; s/count: 4,/count: 2, sync: local, every: 10,/; s/every_steps: .*/every_steps: 100}/; s/^epochs: .*/epochs: 1000/' \
  "$work/members.yaml" >"$work/rounds.yaml"
rm "$work"/server*.log
listen=127.0.0.1:0
serve 0
serve 1
"$thinwire" run "$work/rounds.yaml" --stages "${addresses[0]},${addresses[1]}" --listen "$listen" --out "$work/rounds" >"$work/run.log" 2>&1 &
run=$!
within 30 says 1 'servers may join'
listen=$(sed -nE 's/.*stage_server --join (.*)/\1/p' "$work/run.log" | head -1)
serve 2 --join "$listen"
serve 3 --join "$listen"
check 'replicas that train by themselves: two servers join' within 60 says 1 ' | '
kill -9 "${servers[3]}"
check 'one is killed, and the run goes on without' within 60 says 1 'standing by'
serve 3 --join "$listen"
check 'it joins again' within 60 says 2 ' | '
kill -INT "$run"
wait "$run"
check 'the run is interrupted' equals $? 130
check 'it has gone back to a checkpoint and on' contains "$work/rounds/summary.json" '"type": "restarted"'
epochs=$(($(grep -c '"type":"step"' "$work/rounds/metrics.jsonl") / 80 + 1))
"$thinwire" run --resume "$work/rounds" --set "epochs=$epochs" >"$work/resumed.log" 2>&1
check 'it ends with one pipeline' equals $? 0
"$thinwire" run "$work/rounds.yaml" --set "epochs=$epochs" --out "$work/rounds-alone" >"$work/alone.log" 2>&1
check 'a run that nothing befalls comes as far' equals $? 0
check 'with the same parameters' equals "$(cat "$work"/rounds/model/*.safetensors | sha256sum)" \
  "$(cat "$work"/rounds-alone/model/*.safetensors | sha256sum)"

# Who has no token is not let in, and does not try again.
listen=127.0.0.1:0
echo 'a token of more than sixteen bytes' >"$work/token"
end_jobs
rm "$work"/server[01].log
serve 0 --token_file "$work/token"
serve 1 --token_file "$work/token"
run --out "$work/secret" --token_file "$work/token"
within 30 says 2 'servers may join'
listen=$(sed -nE 's/.*stage_server --join (.*)/\1/p' "$work/run.log" | tail -1)
timeout 20 "$stage_server" --listen 127.0.0.1:0 --metrics_listen '' --join "$listen" 2>"$work/stranger.log"
check 'a server without the token ends' equals $? 1
check 'and says why' contains "$work/stranger.log" 'not taken in: .*token'

echo "$failures failures"
exit $((failures > 0))
