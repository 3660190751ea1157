#!/usr/bin/env bash
# Makes three checkpoints of one training run, after 0, 1 and 4 of 5 epochs, and probes each.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: experiments/probe.sh [options]

ResNet-18 of width 16 on CIFAR-10 as in cifar10/resnet18-w16.yaml, uncompressed, rate annealed over
five epochs. A checkpoint that stands in OUT is not made again.

  --data DIR      CIFAR-10's binary version (default: data/cifar10)
  --out DIR       folder of the runs (default: runs/probe)
  --results DIR   folder of the tables (default: docs/results/probe)
  --bin DIR       where thinwire and stage_server are (default: bazel-bin's)
  --batches N     batches to compare (default: 4)

Results: RESULTS/epoch0.md, epoch0.json, and so on for epochs 1 and 4.
USAGE
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
experiment=$root/experiments/cifar10/resnet18-w16.yaml
data=data/cifar10 out=runs/probe results=$root/docs/results/probe bin='' batches=4
while (( $# > 0 )); do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --data | --out | --results | --bin | --batches)
      (( $# > 1 )) || { echo "probe.sh: $1: wants a value; see --help" >&2; exit 2; }
      declare "${1#--}=$2"
      shift 2 ;;
    *) echo "probe.sh: $1: unknown option; see --help" >&2; exit 2 ;;
  esac
done
thinwire=${bin:-$root/bazel-bin/coordinator}/thinwire

mkdir -p "$out" "$results"
for epochs in 0 1 4; do
  target=$out/epoch$epochs
  if (( epochs == 0 )); then
    target=$experiment
  elif [[ ! -e $target/model ]]; then
    "$thinwire" run "$experiment" --set data.dir="$data" --set epochs=$epochs \
      --set lr_schedule.t_max=5 --set pipeline.stages=1 --overwrite --out "$target"
  fi
  "$thinwire" probe "$target" --set data.dir="$data" --batches "$batches" \
    --out "$results/epoch$epochs.md" --out "$results/epoch$epochs.json"
done
