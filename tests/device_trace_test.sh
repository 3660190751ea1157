#!/usr/bin/env bash
# What a trace has of a GPU, on the emulated one with a CUPTI that pretends.
# usage: device_trace_test.sh THINWIRE STAGE_SERVER PLUGIN EXPERIMENT FAKE_CUPTI
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2 plugin=$3 experiment=$4 cupti=$(realpath "$(dirname "$5")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run NAME ARGUMENTS...: three short steps into that folder; its output in NAME.log
run() {
  local name=$1
  shift
  "$thinwire" run "$experiment" --stage_server "$stage_server" --cuda_plugin "$plugin" \
    --set 'pipeline={cuts: [layer1], stages: 2, threads: 1}' --set 'device=[cuda, cpu]' \
    --set epochs=1 --set data.limit=60 --set data.test_limit=20 --set data.batch_size=20 \
    --set model.width=4 --trace steps=2..3 --out "$work/$name" "$@" >"$work/$name.log" 2>&1
}

echo '== with CUPTI'
LD_LIBRARY_PATH=$cupti run traced
check 'the run trains' equals $? 0
trace=$work/traced/trace.json
check 'each stream is a track' contains "$trace" '"name":"GPU stream 7"'
check 'and another' contains "$trace" '"name":"GPU stream 13"'
check 'a kernel has a short name' contains "$trace" '"name":"kernel Softmax<float>","cat":"kernel","pid":0'
check 'and lies in the first step' contains "$trace" '"name":"kernel Softmax<float>".*"step":2'
check 'a copy has its bytes' contains "$trace" '"name":"copy to_host","cat":"copy".*"bytes":4096'
check 'the CPU has no such track' equals "$(grep -c '"name":"GPU stream' "$trace")" 3
"$thinwire" trace "$work/traced" >"$work/table"
check 'the table reads it' equals $? 0
check 'the GPU is in it' contains "$work/table" '^GPU kernels +[0-9.]+ +-$'
# Kernels run for half of the steps, and beside nothing else a copy and a clearing for the rest.
check 'and for how long it was idle' contains "$work/table" '^ +idle +[0-9.]+ % +-$'
check 'what found no room is said' contains "$work/table" '^stage 0: 3 slices found no room'

echo '== without CUPTI'
mkdir "$work/none"
echo 'no library, and found before one that the system has' >"$work/none/libcupti.so.13"
LD_LIBRARY_PATH=$work/none CUDA_HOME=$work/nowhere run untraced
check 'the run trains all the same' equals $? 0
check 'its trace has no such track' equals "$(grep -c '"name":"GPU stream' "$work/untraced/trace.json")" 0
check 'the log says why, and what was looked for' contains "$work/untraced/logs/stage-0.log" \
  "info .*, stage 0: the trace goes without the GPU's work: .*/libcupti.so.13: file too short; no other libcupti.so.13 is in .* $work/nowhere, .*=$work/none"
check 'once' equals "$(grep -c "GPU's work" "$work/untraced/logs/stage-0.log")" 1
check 'a CPU lacks nothing' equals "$(grep -c "GPU's work" "$work/untraced/logs/stage-1.log")" 0

echo '== without a trace'
"$thinwire" run "$experiment" --stage_server "$stage_server" --cuda_plugin "$plugin" --set device=cuda \
  --set epochs=1 --set data.limit=20 --set data.test_limit=20 --set data.batch_size=20 \
  --set model.width=4 --set pipeline.threads=1 --out "$work/plain" >"$work/plain.log" 2>&1
check 'nobody looks for CUPTI' equals "$(cat "$work"/plain/logs/*.log | grep -c "GPU's work")" 0

exit "$failures"
