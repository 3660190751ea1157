#!/usr/bin/env bash
# The way of docs/add_a_codec.md: a codec out of the tree, compiled against one header, checked, measured
# and trained with.
# usage: own_codec_test.sh THINWIRE STAGE_SERVER HEADER SOURCE QUICKSTART
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2 header=$3 source=$4 quickstart=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo '== compiled out of the tree'
mkdir "$work/include"
cp "$header" "$work/include/"
check 'as C' gcc -Wall -Wextra -Werror -O2 -ffp-contract=off -shared -fPIC -I "$work/include" "$source" -o "$work/libsign.so"
check 'the header serves C++' g++ -Wall -Wextra -Werror -fsyntax-only -x c++ "$work/include/codec_plugin.h"
check 'the example has at most 100 lines' test "$(wc -l <"$source")" -le 100

echo '== conformance'
for parameters in '{}' '{"center": false}'; do
  "$thinwire" codecs --conformance "$work/libsign.so" --parameters "$parameters" >"$work/log" 2>&1
  check "passes with $parameters" equals $? 0
  check 'nothing fails' equals "$(grep -c '^FAIL' "$work/log")" 0
done
sed 's/if (bytes != bound(codec, shape))/if (0)/' "$source" >"$work/trusting.c"
gcc -O2 -shared -fPIC -I "$work/include" "$work/trusting.c" -o "$work/libtrusting.so"
"$thinwire" codecs --conformance "$work/libtrusting.so" >"$work/log" 2>&1
check 'a decoder that trusts lengths fails' equals $? 1
check 'in the check of cuts' contains "$work/log" '^FAIL  every cut'
sed 's/  const layout l = layout_of(shape);/  abort();\n&/' "$source" >"$work/crashing.c"
gcc -O2 -shared -fPIC -I "$work/include" "$work/crashing.c" -o "$work/libcrashing.so"
"$thinwire" codecs --conformance "$work/libcrashing.so" >"$work/log" 2>&1
check 'a codec that crashes fails' equals $? 1
check 'which is said' contains "$work/log" '^FAIL .*crashed: Aborted'
"$thinwire" codecs --conformance "$work/libsign.so" --parameters '{"centre": false}' >"$work/log" 2>&1
check 'an unknown parameter is a usage error' equals $? 2
check 'and the nearest is named' contains "$work/log" 'nearest is "center"'
"$thinwire" codecs --conformance "$work/none.so" >"$work/log" 2>&1
check 'a missing library is a usage error' equals $? 2
check 'with its path' contains "$work/log" "$work/none.so: cannot open"

echo '== Ctrl-C while a codec hangs'
# stuck FUNCTION LINE: a library that says so and waits for ever when LINE of FUNCTION is reached
stuck() {
  sed "1i #include <unistd.h>
s/  $2/  if (write(2, \"stuck\\\\n\", 6) == 6) for (;;) pause();\n&/" "$source" >"$work/$1.c"
  gcc -O2 -shared -fPIC -I "$work/include" "$work/$1.c" -o "$work/lib$1.so"
}
# interrupted WHAT COMMAND...: it ends with 130, and so do its children
interrupted() {
  local what=$1
  shift
  : >"$work/log"  # or the last one's is taken for the next one's
  "$thinwire" "$@" >"$work/log" 2>&1 &
  local command=$!
  check "$what hangs" within 20 contains "$work/log" stuck >/dev/null
  local children
  mapfile -t children < <(pgrep -P "$command")
  kill -INT "$command"
  within 20 gone "$command" || kill -9 "$command"
  wait "$command"
  check "$what exits 130" equals $? 130
  check "$what leaves no process" gone "${children[@]}"
  check "$what calls no check failed" equals "$(grep -c '^FAIL' "$work/log")" 0
}
stuck encode '(void)key, (void)capacity;'
interrupted 'conformance' codecs --conformance "$work/libencode.so"
stuck bound '(void)codec;'
interrupted 'plan' plan "$quickstart" --set "compression.activations={codec: plugin, plugin: $work/libbound.so}"

echo '== measuring'
"$thinwire" codecs --measure --codec "$work/libsign.so" --seconds 5 --format json --stage_server "$stage_server" \
  >"$work/log" 2>&1
check 'works on a run of its own' equals $? 0
check 'on an activation' contains "$work/log" '"tensors": "activation"'
check 'at about a bit per element' contains "$work/log" '"wire_bits_per_element": 1\.0'

echo '== several codecs at once, and a probe'
"$thinwire" codecs --measure --codec "$work/libsign.so" --codec fp8 --parameters '{"center": false}' --seconds 5 \
  --stage_server "$stage_server" >"$work/log" 2>&1
check 'are measured' equals $? 0
check 'the library with its parameters' contains "$work/log" 'sign 1.*center.*false'
check 'beside the other' contains "$work/log" 'fp8'
"$thinwire" codecs --measure --codec fp8 --parameters '{}' >"$work/log" 2>&1
check 'parameters without a library are a usage error' equals $? 2
"$thinwire" probe "$quickstart" --batches 1 --codec "$work/libsign.so" --codec "$work/libsign.so | fp16" --format csv \
  --stage_server "$stage_server" >"$work/probe.csv" 2>"$work/log"
check 'a probe takes the library' equals $? 0
# Of the model and four segments: three directions alone, and two of the pair's three.
check 'in each direction, alone and in a pair' equals "$(grep -c 'sign 1' "$work/probe.csv")" 25

echo '== training'
"$thinwire" run "$quickstart" --out "$work/run" --stage_server "$stage_server" \
  --set "compression.activations={codec: plugin, plugin: $work/libsign.so}" \
  --set "compression.gradients={codec: plugin, plugin: $work/libsign.so, parameters: '{\"center\": false}'}" \
  --set epochs=6 --set evaluation.every=0 >"$work/log" 2>&1
check 'with the codec both ways ends well' equals $? 0
check 'the codec has its own name' contains "$work/run/summary.json" '"codec": *"sign 1 '
accuracy=$(grep -oE '"accuracy": *[0-9.]+' "$work/run/summary.json" | tail -2 | head -1 | grep -oE '[0-9.]+$')
check "it learns ($accuracy)" awk "BEGIN { exit !($accuracy > 0.5) }"
"$thinwire" run "$quickstart" --out "$work/crashed" --stage_server "$stage_server" \
  --set "compression.gradients={codec: plugin, plugin: $work/libcrashing.so, feedback: ef}" >"$work/log" 2>&1
check 'a codec that crashes ends its stage and fails the run' equals $? 1
check 'which has a summary' contains "$work/crashed/summary.json" '"status": *"failed"'
"$thinwire" run "$quickstart" --out "$work/missing" --stage_server "$stage_server" \
  --set "compression.activations={codec: plugin, plugin: $work/none.so}" >"$work/log" 2>&1
check 'a missing library is a usage error' equals $? 2
check 'with its path' contains "$work/log" "$work/none.so: cannot open"

echo "$failures failures"
(( failures == 0 ))
