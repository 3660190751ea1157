#!/usr/bin/env bash
# One build against another: samples per second with one stage and with four, in alternating pairs, and
# whether both train the same network: losses, accuracies and wire bytes, digit for digit.
# usage: tests/bench/two_builds.sh BIN_BEFORE BIN_AFTER DATA_DIR
#   BIN_x: a folder with coordinator/thinwire and stage_server/stage_server (a copy of bazel-bin)
#   PAIRS=9 SAMPLES=3000 SET="--set compression.activations.codec=topk …" in the environment
set -euo pipefail
before=$(realpath "${1:?usage: two_builds.sh BIN_BEFORE BIN_AFTER DATA_DIR}")
after=$(realpath "${2:?usage: two_builds.sh BIN_BEFORE BIN_AFTER DATA_DIR}")
data=$(realpath "${3:?usage: two_builds.sh BIN_BEFORE BIN_AFTER DATA_DIR}")
cd "$(dirname "$0")/../.."
pairs=${PAIRS:-9} samples=${SAMPLES:-3000} cores=$(nproc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# train BIN NAME SET...: samples per second of the second of two short epochs
train() {
  local bin=$1 name=$2
  shift 2
  # shellcheck disable=SC2086
  "$bin/coordinator/thinwire" run experiments/cifar10/resnet18-w16.yaml --quiet --overwrite --out "$work/$name" \
    --set epochs=2 --set data.limit="$samples" --set data.test_limit=500 --set data.dir="$data" --set data.verify=false \
    --set metrics.error_every=0 "$@" ${SET-}
  grep -o '"samples_per_second": *[0-9.]*' "$work/$name/summary.json" | tail -1 | grep -oE '[0-9.]+$'
}
# What a run computed, without what depends on the clock and what older builds do not write (the
# bytes of each epoch).
numbers() {
  python3 - "$work/$1" <<'PYTHON'
import json, sys
folder = sys.argv[1]


def known(value):
    """Leaves out what is null: fields that the other build may not have."""
    if not isinstance(value, dict):
        return value
    return {key: known(one) for key, one in value.items() if one is not None}


for line in open(f"{folder}/metrics.jsonl"):
    print([known(json.loads(line).get(key)) for key in ("type", "epoch", "step", "loss", "accuracy", "train", "test")])
for boundary in json.load(open(f"{folder}/summary.json"))["boundaries"]:
    for direction in ("activations", "gradients"):
        print([boundary[direction][key] for key in ("raw_bytes", "wire_bytes", "messages")])
PYTHON
}
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

echo "$cores cores, $pairs pairs, $samples samples, ${SET:-codecs of the file}"
echo '| stages | before, samples/s | after, samples/s | after / before | least | most | numbers |'
echo '|---|---|---|---|---|---|---|'
for stages in 1 4; do
  if (( stages == 1 )); then
    common=(--set pipeline.stages=1 --set 'pipeline.cuts=[]' --set pipeline.threads="$cores")
  else
    common=(--set pipeline.threads=1 --set pipeline.microbatches=4)
  fi
  : >"$work/before.txt"; : >"$work/after.txt"; : >"$work/ratio.txt"
  for (( i = 0; i < pairs; ++i )); do
    if (( i % 2 )); then
      new=$(train "$after" new "${common[@]}"); old=$(train "$before" old "${common[@]}")
    else
      old=$(train "$before" old "${common[@]}"); new=$(train "$after" new "${common[@]}")
    fi
    echo "$old" >>"$work/before.txt"; echo "$new" >>"$work/after.txt"
    awk "BEGIN { print $new / $old }" >>"$work/ratio.txt"
  done
  same=different
  cmp -s <(numbers old) <(numbers new) && [[ -n $(numbers new) ]] && same=equal
  printf '| %d | %.0f | %.0f | %.3f | %.3f | %.3f | %s |\n' "$stages" "$(median <"$work/before.txt")" "$(median <"$work/after.txt")" \
    "$(median <"$work/ratio.txt")" "$(sort -g "$work/ratio.txt" | head -1)" "$(sort -g "$work/ratio.txt" | tail -1)" "$same"
done
