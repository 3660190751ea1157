#!/usr/bin/env bash
# run.sh with a thinwire that only notes how it was called.   usage: run_test.sh RUN.SH
set -uo pipefail
run=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=0

# expect WHAT COMMAND...
expect() {
  local what=$1
  shift
  checks=$((checks + 1))
  "$@" && return 0
  echo "FAILED: $what"
  cat "$work/output" "$work/calls" 2> /dev/null
  exit 1
}

mkdir "$work/bin"
cat > "$work/bin/thinwire" <<'FAKE'
#!/usr/bin/env bash
here=$(dirname "$(dirname "$0")")
command=$1 name='' out=''
while (( $# )); do
  case $1 in
    name=*) name=${1#name=} ;;
    --out) out=$2 ;;
    seed=*) seed=${1#seed=} ;;
  esac
  shift
done
if [[ $command == plan ]]; then
  [[ -e $here/refuse && $name =~ $(cut -d: -f1 "$here/refuse") ]] || exit 0
  echo 'unknown feedback "ef"' >&2
  exit "$(cut -d: -f2 "$here/refuse")"
fi
echo "$name $seed" >> "$here/calls"
if [[ -e $here/status && "$name $seed" == $(cut -d: -f1 "$here/status") ]]; then
  exit "$(cut -d: -f2 "$here/status")"
fi
mkdir -p "$out/model"
cat > "$out/summary.json" <<JSON
{"status": "completed", "seed": $seed, "stages": 1, "boundaries": [], "epochs": [
  {"epoch": 1, "train": {"accuracy": 0.5}, "test": {"compressed": {"accuracy": 0.25},
   "uncompressed": {"accuracy": 0.5}, "uncompressed_recalibrated": null}}],
 "provenance": {"commit": "abc", "cpu_model": "", "simd_target": "", "onednn_isa": "", "threads": 2,
  "microbatches": 1, "train_samples": 1, "test_samples": 1, "started": "", "finished": ""}}
JSON
FAKE
cp "$work/bin/thinwire" "$work/bin/stage_server"
chmod +x "$work/bin/"*

suite=paper1/narrow
go() {
  "$run" ${suite:+"$suite"} --bin "$work/bin" --out "$work/runs" --results "$work/results" "$@" \
    > "$work/output" 2>&1
}
says() { grep -q -- "$1" "$work/output"; }
calls() { [[ $(paste -sd, "$work/calls") == "$1" ]]; }
exits() {
  local wanted=$1
  shift
  "$@"
  [[ $? == "$wanted" ]]
}

expect 'unknown options are refused' exits 2 go --nonsense
suite=paper1/wide
expect 'a suite that is none is refused' exits 2 go
suite=
expect 'and none at all' exits 2 go
suite=paper1/narrow
expect 'a name that matches nothing is refused' exits 2 go --only nothing
expect 'help works' exits 0 go --help
expect 'help has examples' says 'examples:'

expect 'two seeds run' exits 0 go --only 'none|topk50' --seeds '1 2'
expect 'all of one seed before the next' calls \
  'narrow-none 1,narrow-topk50 1,narrow-none 2,narrow-topk50 2'
expect 'a result is kept' grep -q '"compressed": 0.25' "$work/results/paper1/narrow/topk50-seed2.json"
expect 'the model is not' test ! -e "$work/runs/paper1/narrow/none-seed1/model"

rm "$work/calls" "$work/results/paper1/narrow/none-seed2.json"
expect 'a second call runs what is missing' exits 0 go --only 'none|topk50' --seeds '1 2'
expect 'and nothing else' calls 'narrow-none 2'

rm "$work/calls"
echo 'ef:2' > "$work/refuse"
expect 'what the build does not know is no failure' exits 0 go --only 'topk10.*' --seeds 1
expect 'and is named' says 'topk10-ef-seed1: left out.*unknown feedback'
expect 'the rest runs' calls 'narrow-topk10 1'

for status in 1 127 134 139; do
  rm "$work/calls" "$work/results/paper1/narrow/topk10-seed1.json"
  echo "ef:$status" > "$work/refuse"
  expect "a plan that ends with $status is a failure" exits 1 go --only 'topk10|topk10-ef' --seeds 1
  expect 'and is named' says "topk10-ef-seed1: plan failed with $status.*unknown feedback"
  expect 'the rest runs' calls 'narrow-topk10 1'
done
rm "$work/refuse"

rm "$work/calls"
echo 'narrow-topk5 3:1' > "$work/status"
expect 'a failure shows in the exit code' exits 1 go --only 'topk5|uniform-2-8' --seeds 3
expect 'the others run' calls 'narrow-topk5 3,narrow-uniform-2-8 3'
expect 'and a failure has no result' test ! -e "$work/results/paper1/narrow/topk5-seed3.json"

rm "$work/calls"
echo 'narrow-topk5 3:130' > "$work/status"
expect 'an interruption ends the script' exits 130 go --only 'topk5|uniform-4-8' --seeds 3
expect 'at once' calls 'narrow-topk5 3'

rm "$work/calls"
suite=paper1/aq_sgd
expect 'AQ-SGD has a table of its own' exits 0 go --only 'none.*' --seeds 1
expect 'with its names' calls 'aq_sgd-none 1,aq_sgd-none-augmented 1'
echo "$checks checks passed"
