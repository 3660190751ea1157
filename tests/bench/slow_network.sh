#!/usr/bin/env bash
# The tables of docs/benchmarks/slow_network.md: steps of a ResNet and of a GPT-2 over lines from 100 Mbit/s to as fast as they
# go, with round trips of up to 100 ms, measured and planned (slow_network.py). Wants root, an hour, and optimised
# binaries in bazel-bin.
# usage: tests/bench/slow_network.sh CIFAR10_DIR
#   LINES="100:0 100:50 ..." (Mbit/s:ms of a round trip), STEPS=24 of which the first three do not count, and TORCH=PYTHON, whose
#   PyTorch and gloo are measured beside ours where a round trip takes nothing, in the environment
set -euo pipefail
cifar10=$(realpath "${1:?usage: slow_network.sh CIFAR10_DIR}")
cd "$(dirname "$0")/../.."
lines=${LINES:-100:0 100:50 100:100 300:0 300:50 1000:0 1000:50 inf:0} steps=${STEPS:-24}
thinwire=bazel-bin/coordinator/thinwire stage_server=bazel-bin/stage_server/stage_server
ecsq='ecsq(step=0.45, rounding=nearest_nonzero) | ecsq(step=1.1, rounding=dither, support=received_nonzero)'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# over LINE DATA ARGUMENTS...: at real-time priority, as all hosts share this machine's cores
over() { chrt -r 1 tests/bench/slow_network.py "$thinwire" "$stage_server" "$2" --rate "${1%:*}" --rtt_ms "${1#*:}" "${@:3}"; }

echo "commit $(git rev-parse --short HEAD); a ResNet-18 after an epoch"
"$thinwire" run experiments/slow_network/images.yaml --quiet --out "$work/trained" --set data.dir="$cifar10" --set epochs=1 \
  --set data.verify=false --set pipeline.stages=1 --set 'pipeline.cuts=[]' --set pipeline.threads=auto
for line in $lines; do
  beside=()
  [[ -z ${TORCH:-} || $line != *:0 ]] || beside=(--torch "$TORCH")
  over "$line" "$cifar10" --steps "$steps" --microbatches 1,4 --schedules 1f1b,zero_bubble --init "$work/trained/model" \
    --codec none --codec 'uniform(bits=4)' --codec "$ecsq" "${beside[@]}"
  [[ $line != *:0 || $line == inf:* ]] || over "$line" shakespeare --steps "$steps" --microbatches 1,4 \
    --schedules 1f1b,terapipe:4,terapipe:auto --codec none --codec 'uniform(bits=8, scope=token)'
done
