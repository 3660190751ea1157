#!/usr/bin/env bash
# Four stage servers of one thread each against one with all threads, and both against what the
# pipeline simulator allows on these cores; codec none, Unix sockets. Runs alternate; ratios are
# medians over pairs.
# usage: tests/bench/four_stages.sh [CIFAR10_DIR]     without it GPT-2 only
#   PAIRS=5 CORES=2 MODELS="resnet18-w16 resnet18-w64 nano gpt2-384" MICROBATCHES="4 8" SCHEDULES="1f1b zero_bubble"
#   in the environment. TORCH=PYTHON: ResNets beside four processes of PyTorch and gloo (gloo_pipeline.py), where the
#   microbatches divide 100
set -euo pipefail
cifar10=${1:+$(realpath "$1")}
cd "$(dirname "$0")/../.."
pairs=${PAIRS:-5} cores=${CORES:-$(nproc)}
bin=bazel-bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# settings MODEL: the experiment's file, and assignments that make its epochs short. The simulator
# knows no waits for tied weights and norms, so GPT-2 goes without.
settings() {
  local gpt2='experiments/shakespeare.yaml model.tied=false optimizer.clip_norm=0'
  case $1 in
    resnet18-w16) echo "experiments/cifar10/resnet18-w16.yaml data.dir=$cifar10 data.verify=false data.limit=3000" ;;
    resnet18-w64) echo "experiments/cifar10/resnet18-w16.yaml data.dir=$cifar10 data.verify=false data.limit=600 model.width=64" ;;
    nano) echo "$gpt2 data.windows=1200" ;;
    gpt2-384) echo "$gpt2 data.windows=64 data.batch_size=8 data.context=256 model.layers=6 model.heads=6 model.width=384" ;;
    *) echo "four_stages.sh: no model $1" >&2; exit 2 ;;
  esac
}

# speed NAME EXPERIMENT ASSIGNMENT...: samples per second of the second of two short epochs
speed() {
  local name=$1 experiment=$2
  shift 2
  "$bin/coordinator/thinwire" run "$experiment" --quiet --overwrite --out "$work/run-$name" "${@/#/--set=}" \
    --set epochs=2 --set evaluation.compressed=false --set evaluation.uncompressed=false --set metrics.error_every=0
  grep -o '"samples_per_second": *[0-9.]*' "$work/run-$name/summary.json" | tail -1 | grep -oE '[0-9.]+$'
}
# gloo MODEL MICROBATCHES: samples per second of four processes of PyTorch and gloo; nothing where they have no such model
gloo() {
  local width=${1#resnet18-w} rank ranks=()
  [[ -n ${TORCH:-} && $1 == resnet18-w* ]] && (( 100 % $2 == 0 )) || return 0
  for rank in 3 2 1 0; do
    "$TORCH" tests/bench/gloo_pipeline.py --rank $rank --store 127.0.0.1:$((20000 + $$ % 10000)) --microbatches "$2" \
      --width "$width" --steps 12 >"$work/gloo-$rank" 2>/dev/null &
    ranks+=($!)
  done
  wait "${ranks[@]}"
  python3 -c 'import json, statistics, sys; print(100 / statistics.median(json.load(sys.stdin)["seconds"][4:]))' <"$work/gloo-0"
}
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

echo "$cores cores; codec none; $pairs pairs; commit $(git rev-parse --short HEAD)"
echo '| model | microbatches | schedule | one stage, samples/s | four stages, samples/s | simulator bound, samples/s | four / one | four / bound | four / gloo |'
echo '|---|---|---|---|---|---|---|---|---|'
for model in ${MODELS:-${cifar10:+resnet18-w16 resnet18-w64} nano gpt2-384}; do
  for microbatches in ${MICROBATCHES:-4 8}; do
    read -ra common <<<"$(settings "$model") pipeline.microbatches=$microbatches"
    rm -f "$work"/{one,four,bound,over_one,over_bound,over_gloo}.*
    for (( i = 0; i < pairs; ++i )); do
      one=$(speed one "${common[@]}" pipeline.stages=1 'pipeline.cuts=[]' pipeline.threads="$cores")
      by_gloo=$(gloo "$model" "$microbatches")
      for schedule in ${SCHEDULES:-1f1b}; do
        scheduled=("${common[@]}" pipeline.schedule="$schedule")
        bound=$("$bin/stage_server/stage/stage_bench" "${scheduled[0]}" "$cores" "${scheduled[@]:1}" |
          grep -oE '"samples_per_second":[0-9.]+' | grep -oE '[0-9.]+$')
        four=$(speed four "${scheduled[@]}" pipeline.threads=1)
        echo "$one" >>"$work/one.$schedule"; echo "$four" >>"$work/four.$schedule"; echo "$bound" >>"$work/bound.$schedule"
        awk "BEGIN { print $four / $one }" >>"$work/over_one.$schedule"
        awk "BEGIN { print $four / $bound }" >>"$work/over_bound.$schedule"
        [[ -z $by_gloo ]] || awk "BEGIN { print $four / $by_gloo }" >>"$work/over_gloo.$schedule"
      done
    done
    for schedule in ${SCHEDULES:-1f1b}; do
      of() { median <"$work/$1.$schedule"; }
      over_gloo=-
      [[ ! -e $work/over_gloo.$schedule ]] || over_gloo=$(of over_gloo)
      printf '| %s | %d | %s | %.0f | %.0f | %.0f | %.2f | %.2f | %.4s |\n' "$model" "$microbatches" "$schedule" "$(of one)" \
        "$(of four)" "$(of bound)" "$(of over_one)" "$(of over_bound)" "$over_gloo"
    done
  done
done
