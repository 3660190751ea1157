#!/usr/bin/env bash
# What a run makes of `device`, on the emulated GPU.
# usage: device_choice_test.sh THINWIRE STAGE_SERVER PLUGIN EXPERIMENT
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2 plugin=$3 experiment=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

short=(--set epochs=1 --set data.limit=20 --set data.test_limit=20 --set data.batch_size=20
       --set model.width=4 --set pipeline.threads=1 --stage_server "$stage_server")
# run NAME ARGUMENTS...: a short run into that folder; its output in NAME.log
run() {
  local name=$1
  shift
  "$thinwire" run "$experiment" "${short[@]}" --out "$work/$name" "$@" >"$work/$name.log" 2>&1
}

echo '== a GPU'
run gpu --cuda_plugin "$plugin" --set device=cuda
check 'trains' equals $? 0
check 'and the summary names it' contains "$work/gpu/summary.json" '"device": *"cuda:0 emulated GPU"'
check 'and the libraries of each stage' contains "$work/gpu/summary.json" '"libraries": *"CUDA 13'

echo '== auto'
run found --cuda_plugin "$plugin"
check 'takes the GPU' contains "$work/found/summary.json" '"device": *"cuda:0 emulated GPU"'
run fallen --cuda_plugin "$work/absent.so"
check 'falls back to the CPU' contains "$work/fallen/summary.json" '"device": *"cpu"'
check 'and the log says why, in one line' contains "$work/fallen/logs/stage-0.log" \
  ' info    run .*, stage 0: device auto: CPU, because .*absent\.so'

echo '== one device for each stage'
run mixed --cuda_plugin "$plugin" --set 'pipeline={cuts: [layer1], stages: 2}' \
  --set 'device=[cpu, cuda:0]'
check 'train together' equals $? 0
check 'and the summary names both' contains "$work/mixed/summary.json" \
  '"device": *"cpu, cuda:0 emulated GPU"'

echo '== what is not there'
run absent --cuda_plugin "$work/absent.so" --set device=cuda
check 'fails the run' equals $? 1
check 'naming stage, device and file' contains "$work/absent.log" \
  'stage [0-9].*device cuda:0.*absent\.so'
run beyond --cuda_plugin "$plugin" --set device=cuda:1
check 'a second GPU fails the run' equals $? 1
check 'naming those there are' contains "$work/beyond.log" 'device cuda:1: there is 1 CUDA device'
run tf32 --cuda_plugin "$work/absent.so" --set precision=tf32
check 'TF32 on a CPU fails the run' equals $? 1
check 'naming stage and device' contains "$work/tf32.log" 'stage [0-9].*tf32 on device cpu'
run gpus --set device=gpu
check 'another name is a usage error' equals $? 2

exit "$failures"
