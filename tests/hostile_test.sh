#!/usr/bin/env bash
# What strangers and odd files do to the programs: nothing beyond an error and a stated bound of memory.
# usage: hostile_test.sh THINWIRE STAGE_SERVER HOSTILE_PEER QUICKSTART
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2 peer=$3 quickstart=$4
work=$(mktemp -d)
server=
cleanup() {
  end_jobs
  rm -rf "$work"
}
trap cleanup EXIT

# The bound that docs/cluster.md states for what strangers at one address make a server hold.
bound_mb=512

cat >"$work/short.yaml" <<'YAML'
name: short
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 50, limit: 100, test_limit: 50}
pipeline: {cuts: [], threads: 1}
optimizer: {name: sgd, lr: 0.05}
epochs: 1
YAML

start() {
  (ulimit -n 1024 && exec "$stage_server" --listen 127.0.0.1:0 --data "$work") 2>"$work/server.log" &
  server=$!
  within 20 grep -q 'serving on' "$work/server.log" || { echo 'FAILED: no server'; cat "$work/server.log"; exit 1; }
  address=$(grep -oE 'serving on [0-9.:]+' "$work/server.log" | cut -d' ' -f3)
  metrics=$(grep -oE 'http://[0-9.:]+' "$work/server.log" | cut -d/ -f3)
}
# most_mb: the most memory that the server has had
most_mb() { awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$server/status"; }
trains() {
  "$thinwire" run "$work/short.yaml" --stages "$address" --overwrite --out "$work/run" --quiet "$@" >"$work/run.log" 2>&1
}
below() { (( $1 < $2 )) || { echo "  got $1, want less than $2"; return 1; }; }
losses() { grep -oE '"loss": *[0-9.e+-]+' "$work/run/metrics.jsonl"; }

echo '== few descriptors'
for program in "$stage_server" "$thinwire plan $quickstart"; do
  # shellcheck disable=SC2086
  (ulimit -n 20 && timeout 20 $program) >"$work/log" 2>&1
  code=$?
  check "$(basename "${program%% *}") ends with 1" equals "$code" 1
  check '  naming limit and need' contains "$work/log" 'at most 20 files and sockets may be open here, want at least [0-9]+: .*ulimit -n'
done

echo '== files that are none'
mkfifo "$work/fifo"
for odd in /dev/zero "$work/fifo" "$work"; do
  timeout 20 "$thinwire" codecs --measure "$odd" >"$work/log" 2>&1
  check "codecs --measure of $odd is an error" test $? -ne 0 -a $? -ne 124
  check '  that names it' contains "$work/log" "$odd: (is a (device|FIFO), want a regular file|cannot read: Is a directory)"
done
timeout 20 "$thinwire" plan "$quickstart" --set "compression.gradients={codec: plugin, plugin: /dev/ptmx}" >"$work/log" 2>&1
check 'a device as a codec is an error' equals $? 2
check '  that names it' contains "$work/log" '/dev/ptmx: is a device, want a regular file'

echo '== strangers'
start
trains
check 'a run before' equals $? 0
before=$(losses)
resting=$(most_mb)
python3 "$peer" idle "$address" >"$work/log" 2>&1
check '1100 idle connections' equals $? 0
check '  of which most are turned away, which is logged' contains "$work/server.log" 'warning .*there are [0-9]+ connections'
python3 "$peer" halves "$metrics" >"$work/log" 2>&1
check '60 half requests leave /metrics' equals $? 0
check '  within seconds' below "$(cut -d. -f1 "$work/log")" 8
timeout 30 python3 "$peer" resets "$address" >"$work/log" 2>&1
check '400,000 calls that are reset' equals $? 0
echo "  $(cat "$work/log"); the server had at most $(most_mb) MB, $resting before"
check '  stay within the bound' below "$(most_mb)" $((resting + bound_mb))
for calls in imports calls; do
  python3 "$peer" "$calls" "$address" >"$work/log" 2>&1
  check "$calls of 3 MB without a lease, which never end" equals $? 0
  echo "  the server had at most $(most_mb) MB"
  check '  stay within the bound' below "$(most_mb)" $((resting + bound_mb))
done

echo '== what a coordinator may not have'
trains --set "data={name: cifar10, dir: /proc/self}"
check 'data outside of the folder end the run' equals $? 1
check '  naming path and folder' contains "$work/run.log" "data.dir: /proc/self leads to /proc/[0-9]+, want a path below $work"
mkfifo "$work/data_batch_1.bin"
trains --set "data={name: cifar10, dir: $work}"
check 'a FIFO in the place of data ends the run' equals $? 1
check '  naming it' contains "$work/run.log" 'data_batch_1.bin: is a FIFO, want a regular file'
trains --set model.width=65536
check 'a model that does not fit ends the run' equals $? 1
check '  naming its size' contains "$work/run.log" 'takes about [0-9.]+ GB of memory to train, this machine has'

echo '== and then'
trains
check 'a run after' equals $? 0
check 'has the losses of the one before' equals "$(losses)" "$before"
check 'the server is the same' kill -0 "$server"

echo '== what a killed run leaves behind'
mkdir "$work/tmp"
export TMPDIR=$work/tmp
"$thinwire" run "$work/short.yaml" --out "$work/killed" --quiet --set epochs=100000 >"$work/log" 2>&1 &
killed=$!
within 20 test -s "$work/killed/metrics.jsonl"
kill -9 "$killed"
wait "$killed" 2>/dev/null
check 'sockets' equals "$(find "$work/tmp" -name 'thinwire-*' | wc -l)" 1
"$thinwire" run "$work/short.yaml" --out "$work/next" --quiet >"$work/log" 2>&1
check 'is removed by the next' equals "$(find "$work/tmp" -mindepth 1 | wc -l)" 0

echo "$failures failures"
(( failures == 0 ))
