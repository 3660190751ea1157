#!/usr/bin/env bash
# Parts of run.sh on the emulated GPU with tiny sizes: what needs neither PyTorch nor data.
# usage: rehearsal_test.sh PLUGIN CHECKS
set -uo pipefail
run=tests/gpu/run.sh plugin=$1
source "$2"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

parts=(device twins device_tests parity n_stages language mixed messages codecs step_bf16_512 step_gpt2 four_stages memory quickstart)
"$run" --out "$work/out" --rehearse --plugin "$plugin" --work "$work/runs" \
  --only "^($(IFS='|'; echo "${parts[*]}"))\$" >"$work/log"
check 'all parts pass' equals $? 0
(( failures == 0 )) || cat "$work/log"
for part in "${parts[@]}"; do
  check "$part is in the table" contains "$work/out/table.md" "^\| $part \| passed \|"
done
"$run" --out "$work/again" --rehearse --plugin "$plugin" --resume "$work/out/results.json" --seconds 0 >"$work/log"
check 'what another call left is named' equals $? 3
check 'and what has passed is kept' contains "$work/again/table.md" '^\| n_stages \| passed \|'

exit "$failures"
