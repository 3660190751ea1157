#!/usr/bin/env bash
# Random calls and boundary frames, a million by default, to the stage servers of a run that trains
# meanwhile: by holders of certificates without its lease, and by others. At the end the servers have
# neither crashed nor hung, sanitizers have reported nothing, memory has stayed within the bound of
# docs/cluster.md, and every step has the loss of the same run undisturbed, to the last bit.
# usage: million_calls.sh THINWIRE STAGE_SERVER HOSTILE_CALLS CERTS [CALLS [SEED]]
# THINWIRE and STAGE_SERVER are of one build, with --config=asan --config=ubsan or without.
set -uo pipefail
source "$(dirname "$(readlink -f "$0")")/../checks.sh"
thinwire=$1 stage_server=$2 peer=$3 certs=$4 calls=${5:-1000000} seed=${6:-1}
work=$(mktemp -d)
servers=() run=
cleanup() {
  for process in "${servers[@]}" $run; do
    kill -9 "$process" 2>/dev/null && wait "$process" 2>/dev/null
  done
  rm -rf "$work"
}
trap cleanup EXIT

# The bound that docs/cluster.md states for what strangers at one address make a server hold.
bound_mb=512
# Freed memory that the address sanitizer keeps aside would count as held.
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=16}
patience=$((60 + calls / 100))  # seconds: what takes longer hangs

cat >"$work/endless.yaml" <<'YAML'
name: endless
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 50, limit: 1000, test_limit: 50}
pipeline: {cuts: [layer1], threads: 1, microbatches: 2}
compression: {activations: {codec: topk, ratio: 0.2, feedback: ef21}, gradients: {codec: uniform, bits: 8}}
optimizer: {name: sgd, lr: 0.01, momentum: 0.9}
evaluation: {every: 0}
checkpoint: {every_epochs: 0}
epochs: 1000000
YAML
"$certs" "$work/certs" >"$work/certs.log" 2>&1 || { cat "$work/certs.log"; exit 1; }
echo 'what all of them know' >"$work/token"
tls() { printf -- '--tls_cert\n%s/%s.pem\n--tls_key\n%s/%s.key\n--tls_ca\n%s/ca.pem\n--token_file\n%s\n' \
  "$work/certs" "$1" "$work/certs" "$1" "$work/certs" "$work/token"; }
mapfile -t stage_flags < <(tls stage)
mapfile -t coordinator_flags < <(tls coordinator)

# begin NAME: two servers and the run at them; sets `servers`, `addresses`, `run`
begin() {
  local name=$1 i
  servers=() addresses=
  for i in 0 1; do
    "$stage_server" --listen 127.0.0.1:0 --metrics_listen 127.0.0.1:0 --data "$work" --state "$work" \
      "${stage_flags[@]}" 2>"$work/$name-$i.log" &
    servers+=($!)
    within 60 grep -q 'serving on' "$work/$name-$i.log" || { echo 'FAILED: no server'; cat "$work/$name-$i.log"; exit 1; }
    addresses+=${addresses:+,}$(grep -oE 'serving on [0-9.:]+' "$work/$name-$i.log" | cut -d' ' -f3)
  done
  "$thinwire" run "$work/endless.yaml" --stages "$addresses" --out "$work/$name" --quiet \
    "${coordinator_flags[@]}" >"$work/$name.log" 2>&1 &
  run=$!
  within 120 trained "$name" 10 || { echo 'FAILED: the run does not train'; cat "$work/$name.log"; exit 1; }
}
losses() { grep -oE '"step": *[0-9]+, *"loss": *[^,]+, *"accuracy": *[^,]+' "$work/$1/metrics.jsonl" 2>/dev/null; }
trained() { (( $(losses "$1" | wc -l) >= $2 )); }
most_mb() { awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$1/status"; }
# most: the most memory that each of the servers has had
most() { local server; for server in "${servers[@]}"; do most_mb "$server"; done | paste -sd' '; }
# end: interrupts the run and ends the servers, which must go well
end() {
  local server code=0
  kill -INT "$run"
  within 60 gone "$run"
  check '  it ends in order when interrupted' ended "$run" 130
  run=
  for server in "${servers[@]}"; do kill -TERM "$server"; done
  within 60 gone "${servers[@]}"
  for server in "${servers[@]}"; do ended "$server" 0 || code=1; done
  servers=()
  check '  and so do its servers' equals "$code" 0
}
# ended PID CODE: that process is gone, with this code
ended() {
  gone "$1" || { echo "  $1 has not ended"; return 1; }
  wait "$1"
  equals $? "$2"
}
below() { (( $1 < $2 )) || { echo "  got $1, want less than $2"; return 1; }; }
reports() { grep -hE 'Sanitizer|runtime error' "$work"/*.log | head -20; }

echo "== a run under $calls calls"
begin disturbed
run_id=$(sed -nE 's/.* run (endless-[0-9a-f]+): leased to .*/\1/p' "$work/disturbed-0.log" | head -1)
check 'the run has a name for them to claim' test -n "$run_id"
before=$(losses disturbed | wc -l)
timeout "$patience" "$peer" --servers "$addresses" --certs "$work/certs" --token_file "$work/token" \
  --run "$run_id" --calls "$calls" --seed "$seed" >"$work/peer.txt" 2>&1
check 'every call is refused, soon, and the servers stay healthy' equals $? 0
sed 's/^/  /' "$work/peer.txt" | tail -20
check 'the servers are the same' kill -0 "${servers[@]}"
during=$(($(losses disturbed | wc -l) - before))
check 'the run has trained meanwhile' below 0 "$during"
goes_on() { trained disturbed $((before + during + 10)); }
check '  and goes on' within 60 goes_on
disturbed_mb=$(most)
end
steps=$(losses disturbed | wc -l)
echo "  $during steps under them, $steps in all; the servers had at most $disturbed_mb MB"

echo '== the same run undisturbed'
begin undisturbed
far_enough() { trained undisturbed "$steps" || gone "$run"; }
within $((60 + 2 * patience)) far_enough
undisturbed_mb=$(most)
end
echo "  its servers had at most $undisturbed_mb MB"
check 'every step has the same loss and accuracy' \
  cmp <(losses disturbed) <(losses undisturbed | head -n "$steps")
read -ra had <<<"$disturbed_mb"
read -ra alone <<<"$undisturbed_mb"
for i in 0 1; do check 'memory stays within the bound' below "${had[i]}" $((alone[i] + bound_mb)); done
check 'no sanitizer reports anything' equals "$(reports)" ''

echo "$failures failures"
(( failures == 0 ))
