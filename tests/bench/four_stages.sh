#!/usr/bin/env bash
# Four stage servers of one thread each against one with all threads, and both against what the
# pipeline simulator allows on these cores; codec none, Unix sockets, CIFAR-shaped images. Runs
# alternate; ratios are medians over pairs.
# usage: tests/bench/four_stages.sh DATA_DIR     PAIRS=5 CORES=2 WIDTHS="16 64" in the environment
set -euo pipefail
data=$(realpath "${1:?usage: four_stages.sh DATA_DIR}")
cd "$(dirname "$0")/../.."
pairs=${PAIRS:-5} cores=${CORES:-$(nproc)}
bin=bazel-bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# speed NAME SET...: samples per second of the second of two short epochs
speed() {
  local name=$1
  shift
  "$bin/coordinator/thinwire" run experiments/cifar10/resnet18-w16.yaml --quiet --overwrite --out "$work/run-$name" \
    --set epochs=2 --set evaluation.compressed=false --set evaluation.uncompressed=false \
    --set data.dir="$data" --set data.verify=false --set metrics.error_every=0 "$@"
  grep -o '"samples_per_second": *[0-9.]*' "$work/run-$name/summary.json" | tail -1 | grep -oE '[0-9.]+$'
}
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

echo "$cores cores; codec none; batch 100; $pairs pairs; commit $(git rev-parse --short HEAD)"
echo '| width | microbatches | one stage, samples/s | four stages, samples/s | simulator bound, samples/s | four / one | four / bound |'
echo '|---|---|---|---|---|---|---|'
for width in ${WIDTHS:-16 64}; do
  samples=$(( width >= 64 ? 600 : 3000 ))
  for microbatches in 4 8; do
    common=(--set model.width="$width" --set pipeline.microbatches="$microbatches" --set data.limit="$samples")
    : >"$work/one"; : >"$work/four"; : >"$work/bound"; : >"$work/over_one"; : >"$work/over_bound"
    for (( i = 0; i < pairs; ++i )); do
      bound=$("$bin/stage_server/stage/stage_bench" experiments/cifar10/resnet18-w16.yaml "$cores" data.dir="$data" data.verify=false \
        model.width="$width" pipeline.microbatches="$microbatches" | grep -oE '"samples_per_second":[0-9.]+' | grep -oE '[0-9.]+$')
      four=$(speed four "${common[@]}" --set pipeline.threads=1)
      one=$(speed one "${common[@]}" --set pipeline.stages=1 --set 'pipeline.cuts=[]' --set pipeline.threads="$cores")
      echo "$one" >>"$work/one"; echo "$four" >>"$work/four"; echo "$bound" >>"$work/bound"
      awk "BEGIN { print $four / $one }" >>"$work/over_one"
      awk "BEGIN { print $four / $bound }" >>"$work/over_bound"
    done
    printf '| %d | %d | %.0f | %.0f | %.0f | %.2f | %.2f |\n' "$width" "$microbatches" "$(median <"$work/one")" \
      "$(median <"$work/four")" "$(median <"$work/bound")" "$(median <"$work/over_one")" "$(median <"$work/over_bound")"
  done
done
