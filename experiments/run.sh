#!/usr/bin/env bash
# Runs the configurations of one suite, seed by seed, and keeps a compact result of each run.
# Whatever has its result already is left out, so a second call goes on where the first one stopped.
set -uo pipefail

usage() {
  cat <<'USAGE'
usage: experiments/run.sh SUITE [options]

SUITE is a folder of experiments/ with an experiment.yaml; ../configurations, seen from there, names
what is trained:
  paper1/narrow         arXiv 2401.07788 at width 16, 5 epochs
  paper1/full           the same at width 64, 100 epochs
  paper1/aq_sgd         AQ-SGD: width 16, 10,000 images, 20 epochs
  paper2/narrow         the operators of arXiv 2301.02654 at equal bytes, width 16, 5 epochs
  language/shakespeare  a small GPT-2 on Tiny Shakespeare, 2000 steps
  language/fine_tune    the same from a WikiText-2 checkpoint and from scratch, 1000 steps
  language/subspaces    the same by Muon, through learned layers and ecsq at equal bytes, 1000 steps
  frontier/held_out     candidates of few bits: width 16, 10,000 images, 5 epochs; --seeds 0
  frontier/narrow       few bits in paper1/narrow's setting

  --seeds "1 2 3"       seeds, all configurations of one before the next (default: "1 2 3")
  --only REGEX          configurations whose name matches as a whole (default: all)
  --data DIR            where the data lie, of a suite that reads files (default: the experiment's)
  --out DIR             folder of the runs (default: runs)
  --results DIR         folder of the compact results (default: docs/results)
  --bin DIR             where thinwire and stage_server are (default: bazel-bin's)
  --list                print what stands and what is missing, run nothing

Results: RESULTS/SUITE/CONFIGURATION-seedN.json. A configuration that this build does not know, so
that its `thinwire plan` exits with 2, is left out and named. Exit codes: 0 all done, 1 a run or a
plan failed, 2 wrong usage, 130 interrupted.

examples:
  experiments/run.sh paper1/narrow --data ~/cifar-10-batches-bin
  experiments/run.sh paper1/narrow --seeds 1 --only 'none|topk.*' --bin /opt/thinwire
  experiments/run.sh paper1/aq_sgd --seeds "1 2 3"
  experiments/run.sh paper1/full --seeds 1 --list
USAGE
}

refuse() { echo "run.sh: $*; see --help" >&2; exit 2; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)
suite='' seeds='1 2 3' only='.*' data='' bin='' list=''
out="$root/runs" results="$root/docs/results"

while (( $# )); do
  case $1 in
    --help|-h) usage; exit 0 ;;
    --list) list=1; shift; continue ;;
    --seeds|--only|--data|--out|--results|--bin) (( $# > 1 )) || refuse "$1 wants a value" ;;
    -*) refuse "unknown option $1" ;;
    *) [[ -z $suite ]] || refuse "two suites, $suite and $1"; suite=${1%/}; shift; continue ;;
  esac
  case $1 in
    --seeds) seeds=$2 ;;
    --only) only=$2 ;;
    --data) data=$2 ;;
    --out) out=$2 ;;
    --results) results=$2 ;;
    --bin) bin=$2 ;;
  esac
  shift 2
done
[[ -n $suite ]] || refuse 'no suite'
[[ -r $here/$suite/experiment.yaml ]] || refuse "no suite $suite: $here/$suite/experiment.yaml is not there"
kind=${suite##*/} table=$here/$(dirname "$suite")/configurations
for seed in $seeds; do [[ $seed =~ ^[0-9]+$ ]] || refuse "--seeds: $seed, want whole numbers"; done
[[ -z $data ]] || data=$(realpath -m "$data")

thinwire=${bin:+$bin/thinwire} stage_server=${bin:+$bin/stage_server}
thinwire=${thinwire:-$root/bazel-bin/coordinator/thinwire}
stage_server=${stage_server:-$root/bazel-bin/stage_server/stage_server}
experiment=$here/$suite/experiment.yaml
for file in "$thinwire" "$stage_server"; do
  [[ -x $file ]] || refuse "$file is not there: build it, or give --bin"
done

trim() { local text=$1; text=${text#"${text%%[![:space:]]*}"}; echo "${text%"${text##*[![:space:]]}"}"; }

# Rows of this suite into names, settings (a --set list per name).
names=() activations=() gradients=() further=()
while IFS='|' read -r suites name a g more; do
  [[ $suites == '#'* || -z $suites ]] && continue
  [[ " $suites " == *" $kind "* ]] || continue
  name=$(trim "$name")
  [[ $name =~ ^($only)$ ]] || continue
  names+=("$name") activations+=("$(trim "$a")") gradients+=("$(trim "$g")")
  further+=("$(trim "$more")")
done < "$table"
(( ${#names[@]} )) || refuse "--only $only matches no configuration of $suite"

failed=0 done_now=0 kept=0 unknown=0

# run_one INDEX SEED
run_one() {
  local name=${names[$1]} seed=$2 setting
  local id=$name-seed$seed
  local result=$results/$suite/$id.json run=$out/$suite/$id
  if [[ -e $result ]]; then
    kept=$((kept + 1))
    [[ -n $list ]] && echo "$id: $result"
    return 0
  fi
  if [[ -n $list ]]; then echo "$id: missing"; return 0; fi

  local settings=(--set "name=$kind-$name" --set "seed=$seed" ${data:+--set "data.dir=$data"}
                  --set "compression.activations=${activations[$1]}"
                  --set "compression.gradients=${gradients[$1]}")
  for setting in ${further[$1]}; do settings+=(--set "$setting"); done
  # What it refuses does not depend on speeds, which would have to be measured.
  "$thinwire" plan "$experiment" "${settings[@]}" --gflops 1 --codec_gbps 1 > /dev/null 2> "$run.refused"
  local status=$? reason
  reason=$(head -1 "$run.refused")
  rm -f "$run.refused"
  if (( status == 2 )); then
    echo "$id: left out, this build refuses it: $reason"
    unknown=$((unknown + 1))
    return 0
  fi
  if (( status != 0 )); then
    echo "$id: plan failed with $status, want 0 or, of a build that refuses it, 2: $reason"
    failed=$((failed + 1))
    return 0
  fi
  echo "$id: started $(date -u +%FT%TZ)"
  "$thinwire" run "$experiment" "${settings[@]}" --out "$run" --overwrite \
    --stage_server "$stage_server" > "$run.log" 2>&1 < /dev/null
  status=$?
  if (( status == 130 )); then echo "$id: interrupted"; exit 130; fi
  if (( status != 0 )); then
    echo "$id: failed with $status, see $run.log: $(tail -1 "$run.log")"
    failed=$((failed + 1))
    return 0
  fi
  if ! python3 "$here/compact.py" "$run/summary.json" --suite "$kind" --configuration "$name" \
      --output "$result"; then
    failed=$((failed + 1))
    return 0
  fi
  rm -rf "$run/model"
  done_now=$((done_now + 1))
  echo "$id: $(grep -E '^epoch [0-9]+/[0-9]+: ' "$run.log" | tail -1)"
}

[[ -n $list ]] || mkdir -p "$out/$suite" "$results/$suite" || exit 1
trap 'exit 130' INT TERM
for seed in $seeds; do
  for i in "${!names[@]}"; do run_one "$i" "$seed"; done
done
echo "$suite: $done_now done, $kept were there, $unknown unknown to this build, $failed failed"
(( failed == 0 ))
