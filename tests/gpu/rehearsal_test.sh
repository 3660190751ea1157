#!/usr/bin/env bash
# Every part of run.sh that needs neither PyTorch nor data, on the emulated GPU with tiny sizes.
# usage: rehearsal_test.sh RUN_SH PLUGIN CHECKS
set -uo pipefail
run=$1 plugin=$2
source "$3"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$run" --out "$work/out" --rehearse --plugin "$plugin" --work "$work/runs" --only '^(?!step|codecs_in)' >"$work/log"
check 'all parts pass' equals $? 0
(( failures == 0 )) || cat "$work/log"
for part in device twins device_tests parity n_stages mixed quickstart codecs four_stages; do
  check "$part is in the table" contains "$work/out/table.md" "^\| $part \| passed \|"
done
"$run" --out "$work/again" --rehearse --plugin "$plugin" --resume "$work/out/results.json" --seconds 0 >"$work/log"
check 'what another call left is named' equals $? 3
check 'and what has passed is kept' contains "$work/again/table.md" '^\| n_stages \| passed \|'

exit "$failures"
