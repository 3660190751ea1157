#!/usr/bin/env bash
# A run whose stages, in processes of their own, are on one emulated GPU: exact messages and those of
# its codecs stay in its memory, and numbers are those of a run that cannot share it.
# usage: device_slots_test.sh THINWIRE STAGE_SERVER PLUGIN EXPERIMENT
set -uo pipefail
here=$(realpath "$(dirname "$0")")
source "$here/checks.sh"
thinwire=$1 stage_server=$2 plugin=$3 experiment=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Messages of 20 KiB, and one codec whose first step is exact.
settings=(epochs=2 data.limit=80 data.test_limit=20 data.batch_size=40 model.width=4
          'pipeline={cuts: [layer1, layer2], microbatches: 2, threads: 1}' device=cuda
          'compression.activations={codec: none}' 'compression.gradients={codec: topk, ratio: 0.2, feedback: ef}'
          compression.warmup_steps=1)
# train NAME ARGUMENTS...: a run into that folder; its output in NAME.log
train() {
  local name=$1 setting flags=() server=${server:-$stage_server}
  shift
  for setting in "${settings[@]}"; do flags+=(--set "$setting"); done
  "$thinwire" run "$experiment" "${flags[@]}" --out "$work/$name" --stage_server "$server" \
    --cuda_plugin "$plugin" --trace steps=1..2 "$@" >"$work/$name.log" 2>&1
}
same() { python3 "$here/same_run.py" "$work/$1" "$work/$2"; }
lacks() { ! grep -qE -- "$2" "$1"; }

echo '== memory of one GPU in three processes'
train shared
check 'trains' equals $? 0
check 'exact messages stay in it' contains "$work/shared/trace.json" 'send device_slots'
check 'and none is copied to the host by it' lacks "$work/shared/trace.json" 'send device_copies'
check 'and no log complains' lacks "$work/shared/logs/stage-1.log" "through the host's memory"

echo '== a GPU whose memory cannot be shared'
THINWIRE_EMULATED_IPC=0 train apart
check 'trains' equals $? 0
check 'exact messages go through the host' contains "$work/apart/trace.json" 'send device_copies'
check 'and the log names the reason' contains "$work/apart/logs/stage-1.log" \
  "cut layer[12]: messages between GPUs go through the host's memory: cudaIpcGetMemHandle.*operation not supported"
check 'with the same numbers' same shared apart

echo '== servers that are to share none'
printf '#!/bin/sh\nexec "%s" "$@" --no_device_slots\n' "$(realpath "$stage_server")" >"$work/without_slots"
chmod +x "$work/without_slots"
server=$work/without_slots train unwanted
check 'trains' equals $? 0
check 'exact messages go through the host' contains "$work/unwanted/trace.json" 'send device_copies'
check 'none stays in its memory' lacks "$work/unwanted/trace.json" 'send device_slots'
check 'and no log complains' lacks "$work/unwanted/logs/stage-1.log" "through the host's memory"
check 'with the same numbers' same shared unwanted

echo '== TCP'
train tcp --set pipeline.transport=tcp
check 'has the same numbers' same shared tcp

echo '== coded messages of 64 KiB and more'
settings=(epochs=1 data.limit=512 data.test_limit=20 data.batch_size=256 model.width=16
          'pipeline={cuts: [layer1, layer2], microbatches: 2, threads: 1}' device=cuda
          'compression.activations={codec: uniform, bits: 8}'
          'compression.gradients={codec: topk, ratio: 0.4, feedback: ef21}')
train coded
check 'trains' equals $? 0
check 'they stay in its memory' contains "$work/coded/trace.json" 'send device_slots'
check 'and none goes through the host' lacks "$work/coded/trace.json" 'send (host|device)_copies'
THINWIRE_EMULATED_IPC=0 train coded_apart
check 'otherwise the GPU copies them to the host' contains "$work/coded_apart/trace.json" 'send device_copies'
check 'with the same numbers' same coded coded_apart
train coded_tcp --set pipeline.transport=tcp
check 'so has TCP' same coded coded_tcp
train coded_alone --set pipeline.stages=1
check 'and so has one stage' same coded coded_alone

exit "$failures"
