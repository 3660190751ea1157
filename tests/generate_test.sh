#!/usr/bin/env bash
# `thinwire generate` as a user starts it, on a tiny run: what it writes, what it refuses, how it ends.
# usage: generate_test.sh THINWIRE STAGE_SERVER
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2
work=$(mktemp -d)
generating=

cleanup() {
  end_jobs
  rm -rf "$work"
}
trap cleanup EXIT

generate() { timeout 60 "$thinwire" generate "$work/run" --stage_server "$stage_server" "$@" 2>"$work/log"; }
# refused WHAT TEXT ARGUMENTS...: a usage error that says TEXT
refused() {
  generate "${@:3}" >"$work/text"
  check "$1 is a usage error" equals $? 2
  check '  which says why' contains "$work/log" "$2"
  check '  and writes nothing' test ! -s "$work/text"
}

cat >"$work/tiny.yaml" <<'YAML'
name: tiny
model: {name: gpt2, layers: 2, heads: 2, width: 16}
data: {name: shakespeare, context: 16, windows: 200, batch_size: 20, test_limit: 20}
pipeline: {cuts: [h.0, h.1], threads: 1}
compression: {activations: {codec: uniform, bits: 8, scope: token}}
optimizer: {name: adamw, lr: 0.01}
epochs: 1
YAML
"$thinwire" run "$work/tiny.yaml" --quiet --out "$work/run" --stage_server "$stage_server"
check 'the run completes' equals $? 0

echo '== texts'
generate --prompt ROMEO: --tokens 60 >"$work/text"
check 'exits 0' equals $? 0
text=$(<"$work/text")
check 'the prompt begins the text' equals "${text::6}" ROMEO:
check 'the speed is told' contains "$work/log" '^60 tokens in [0-9.]+ s: [0-9.]+ tokens/s, [0-9.]+ wire bytes a token$'
check 'beyond the context of 16 there is as much as was asked for' equals "$(head -c 66 "$work/text" | wc -m)" 66
check 'one stage writes the same' equals "$(generate --prompt ROMEO: --tokens 60 --set pipeline.stages=1)" "$text"
check 'so does a prompt from stdin' equals "$(printf ROMEO: | generate --prompt - --tokens 60)" "$text"
check 'another seed writes something else' test "$(generate --prompt ROMEO: --tokens 60 --seed 2)" != "$text"
greedy=$(generate --tokens 8 --temperature 0)
check 'without a prompt a text begins too' equals "${#greedy}" 8
check 'the greediest draw is the most probable' equals "$(generate --tokens 8 --top_k 1 --seed 9)" "$greedy"
generate --tokens 20 --compression off >/dev/null
check 'uncompressed text takes more bytes' contains "$work/log" ' [23][0-9]{2}(\.[0-9]+)? wire bytes a token'

stop=${text:10:3}
before=$(printf %s "${text%%"$stop"*}")
check 'a text ends before a stop' equals "$(generate --prompt ROMEO: --tokens 60 --stop "$stop")" "$before"
check '  of several before the first' equals "$(generate --prompt ROMEO: --tokens 60 --stop "${text:30}" --stop "$stop")" "$before"
check '  and draws no more' contains "$work/log" '^[0-9] tokens in '

echo '== folders'
generate_of() { timeout 60 "$thinwire" generate "$1" --stage_server "$stage_server" "${@:2}" 2>"$work/log"; }
plain=$(generate --prompt ROMEO: --tokens 60 --compression off)
check 'a model alone writes as its run without codecs' equals "$(generate_of "$work/run/model" --prompt ROMEO: --tokens 60)" "$plain"
check '  in two stages too' equals "$(generate_of "$work/run/model" --prompt ROMEO: --tokens 60 --set pipeline.stages=2)" "$plain"

echo '== bottlenecks'
for bottleneck in '{kind: residual, width: 4}' '{kind: learned_subspace, width: 4}' '{kind: subspace, width: 4}'; do
  timeout 60 "$thinwire" run "$work/tiny.yaml" --quiet --overwrite --out "$work/narrow" --stage_server "$stage_server" \
    --set model.tied=false --set "compression.bottleneck=$bottleneck"
  check "a run with $bottleneck completes" equals $? 0
  narrow() { timeout 60 "$thinwire" generate "$work/narrow" --stage_server "$stage_server" --prompt ROMEO: --tokens 40 "$@" 2>"$work/log"; }
  text=$(narrow)
  check '  generates beyond its context' equals "${#text}" 46
  check '  and the same in one stage' equals "$(narrow --set pipeline.stages=1)" "$text"
done

echo '== refusals'
refused 'a character that nobody has taught it' '^thinwire: --prompt: byte 1: "é" is none of the 65 characters' --prompt 'né'
refused 'a temperature below 0' '^thinwire: --temperature: -1, want' --temperature=-1
refused 'a nucleus of nothing' '^thinwire: --top_p: 0, want a number in' --top_p 0
refused 'a codec over several positions' 'cut h.0: activations: uniform\(bits=8.*scope=sample.*or --compression off' \
  --set compression.activations.scope=sample
refused 'a number of stages that is not the run.s' '^thinwire: --stages: 2 addresses, want 3' \
  --stages a:1,b:1 --set pipeline.stages=3
mv "$work/run/model" "$work/model"
refused 'a run without a model' 'run/model: cannot open: No such file' --prompt A
mkdir "$work/run/model"
cp "$work/model/model-00001-of-00003.safetensors" "$work/run/model/model.safetensors"
refused 'half a model' 'does not fit the model: ' --prompt A
rm -r "$work/run/model"
mv "$work/model" "$work/run/model"
"$thinwire" generate "$work" >"$work/text" 2>"$work/log"
check 'a folder that is no run is a usage error' equals $? 2
check '  which names the file' contains "$work/log" 'experiment.yaml'
check '  and what a model has' contains "$work/log" 'nor is it a model.s folder: it has no config.json'
refused 'an empty stop' '^thinwire: --stop: is empty, want a text' --stop ''
refused 'specials of a tokenizer without' '^thinwire: --specials: ids, want a run with data.tokens: hf, not characters' --specials ids

echo '== ends'
mkfifo "$work/pipe"
"$thinwire" generate "$work/run" --stage_server "$stage_server" --tokens 1000000 >"$work/pipe" 2>"$work/log" &
generating=$!
exec 3<"$work/pipe"
check 'text comes while it is written' read -r -t 30 -n 1 -u 3
stages=$(pgrep -P "$generating")
cat <&3 >/dev/null &
kill -INT "$generating"
wait "$generating"
check 'Ctrl-C exits 130' equals $? 130
generating=
check '  and says how far it was' contains "$work/log" ' tokens in '
check '  and that it was interrupted' contains "$work/log" '^thinwire: interrupted'
# shellcheck disable=SC2086
check '  and leaves no stage' within 10 gone $stages
exec 3<&-

"$thinwire" generate "$work/run" --stage_server "$stage_server" --tokens 1000000 >"$work/pipe" 2>"$work/log" &
generating=$!
exec 3<"$work/pipe"
read -r -t 30 -n 1 -u 3
cat <&3 >/dev/null &
kill -9 "$(pgrep -P "$generating" | tail -1)"
wait "$generating"
check 'a stage that dies ends it with 1' equals $? 1
generating=
check '  and is named' contains "$work/log" '^thinwire: stage 2 .*(signal 9|is gone)'

echo "$failures failures"
(( failures == 0 ))
