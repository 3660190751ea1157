#!/usr/bin/env bash
# What the command line refuses, and what becomes of output that cannot be written. Trains nothing.
# usage: command_line_test.sh THINWIRE QUICKSTART STAGE_SERVER
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 quickstart=$2 stage_server=$3
program=$(realpath -s "$thinwire")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# refused WHAT TEXT ARGUMENTS...: a usage error that says TEXT
refused() {
  local what=$1 text=$2
  shift 2
  timeout 20 "$thinwire" "$@" >"$work/log" 2>&1
  check "$what is a usage error" equals $? 2
  check '  which says why' contains "$work/log" "$text"
}
run() { refused "$1" "$2" run "$quickstart" --out "$work/out" "${@:3}"; }

echo '== numbers'
for number in nan inf -inf -1; do
  run "--metrics_linger $number" "$number, want a finite number" "--metrics_linger=$number"
  refused "--seconds $number" "$number, want a finite number" codecs --measure "--seconds=$number"
  for flag in gflops codec_gbps rtt_ms; do
    refused "--$flag $number" "--$flag: $number, want" plan "$quickstart" "--$flag=$number"
  done
done

for batches in 0 -1 1000000; do
  refused "probe --batches $batches" "--batches: $batches, want 1 to 60, the batches of an epoch" \
    probe "$quickstart" "--batches=$batches"
done

echo '== fields and flags'
line=$(grep -n '^epochs:' "$quickstart" | cut -d: -f1)
sed 's/^epochs:.*/epochs: 0/' "$quickstart" >"$work/zero.yaml"
refused 'a field that cannot be' "^thinwire: $work/zero.yaml:$line: epochs: 0, want at least 1" plan "$work/zero.yaml"
run '--set of nothing' '^thinwire: --set model=: model: met nothing, want a map' --set model=
run '--set of a bad value' '^thinwire: --set optimizer.lr=-1: optimizer.lr: -1, want' --set optimizer.lr=-1
refused 'an empty folder' '--out: "", want a path' run "$quickstart" --out ''
refused 'state in a folder that is not there' 'feedback.dir: /nonexistent: No such file' plan "$quickstart" \
  --gflops 40 --codec_gbps 1 --set 'compression.gradients.feedback={kind: ef, dir: /nonexistent}'
for pair in 'optimizer.learning_rate lr' 'batch data.batch_size' 'num_layers model.layers' 'lr optimizer.lr' \
  'pipeline.micro_batches microbatches' 'data.seq_len context' 'compression.gradients.num_bits bits'; do
  run "${pair% *}" "${pair% *}: unknown field; did you mean ${pair#* }\?" --set "${pair% *}=1"
done
refused 'an unknown command' '^thinwire: runn: unknown command; did you mean run\?' runn "$quickstart"
run 'a field as a flag' '^thinwire: --epochs: unknown flag; did you mean --set epochs=...\?' --epochs 3
run 'a mistyped flag' '^thinwire: --overwite: unknown flag; did you mean --overwrite\?' --overwite
run 'one file too many' '^thinwire: b.yaml: one argument more than wanted' b.yaml
for command in run sweep plan 'tune --link_mbit 50' probe submit; do
  # shellcheck disable=SC2086
  refused "$command of nothing" '(EXPERIMENT|FILE|TARGET): "", want a path' $command ''
done
"$thinwire" run --help >"$work/log"
check '--help shows how stages are listed' contains "$work/log" '--stages HOST:PORT,HOST:PORT,...'

echo '== stages that take turns'
turns() { run "$1" "$2" --set "pipeline={schedule: interleaved$3}"; }
turns 'interleaved without stages' 'pipeline.stages: absent, want how many stages take turns' ''
turns 'more segments than blocks' 'pipeline.cuts: auto: .* blocks' ', stages: 8, cuts: auto'
turns 'a segment for each stage' 'pipeline.stages: stages is 4, but 3 cuts make 4 segments: want twice' \
  ', stages: 4, cuts: [layer1, layer2, layer3]'
turns 'segments that are no multiple of the stages' 'stages is 2, but 2 cuts make 3 segments: want twice' \
  ', stages: 2, cuts: [layer1, layer2]'

echo '== a plan'
given=(--gflops 40 --codec_gbps 1)
plan() { refused "$1" "$2" plan "$quickstart" "${@:3}"; }
plan 'a link of 0 Mbit/s' '--link_mbit: 0, want 1e-06 to' --link_mbit 0
plan 'a link of less' '--link_mbit: -5, want 1e-06 to' --link_mbit=-5
plan 'no core' '--cores: Value 0 not in range' --cores 0
plan 'a codec without a link' '--codec is for a given link: want --link_mbit too' --codec fp16
plan 'a codec that is none' '--codec: .*unknown "topq", nearest is "topk"' --link_mbit 50 --codec 'topq(ratio=0.1)'
plan 'more microbatches than samples' '--microbatches: 100000, want 1 to [0-9]+, the batch size' \
  --link_mbit 50 --microbatches 2,100000
plan 'a schedule that is none' '--schedule: unknown "gpip", nearest is "gpipe"' --link_mbit 50 --schedule gpip
plan 'a schedule that the cuts do not allow' 'pipeline.stages: stages is 4, but 3 cuts make 4 segments' \
  --link_mbit 50 --schedule interleaved
plan 'machines without a link' '--machines is for a given link: want --link_mbit too' --machines 4
plan 'a price without machines' '--price_hour: want --machines too' --link_mbit 50 --price_hour 1
plan 'machines for which there is no layout' '--machines: 1021: left out: 1 x 1021' --link_mbit 50 --machines 1021
plan 'parts without machines' '--parts: want --machines too' --link_mbit 50 --parts 2
plan 'parts that do not divide the machines' '--parts: 3, want divisors of 4, the machines' --link_mbit 50 --machines 4 --parts 1,3
plan 'a schedule of layouts' '--schedule with --machines: want only one of them' --link_mbit 50 --machines 4 --schedule gpipe
plan 'a memory below 0' '--memory_gb: -1, want a finite number of at least 0' --link_mbit 50 --machines 4 --memory_gb=-1
plan 'a place for a layout without machines' '--save: want --machines too' --link_mbit 50 --save "$work/first.yaml"
"$thinwire" plan "$quickstart" "${given[@]}" --link_mbit 50 --machines 2 --save "$work/first.yaml" >"$work/log"
check 'the first layout can be saved' contains "$work/log" \
  "^Saved: thinwire run $work/first.yaml --carriers 2 --stages 'machine-{0..1}:4700'"
check '  as an experiment of these replicas' contains "$work/first.yaml" '^  count: 2'
echo '{model: {name: gpt2, layers: 1, heads: 2, width: 16}, data: {name: shakespeare, context: 16, batch_size: 4},
  optimizer: {lr: 0.1}, epochs: 1}' >"$work/text.yaml"
"$thinwire" plan "$work/text.yaml" "${given[@]}" --link_mbit 50 --machines 2 --parts 2 --save "$work/parts.yaml" >"$work/log"
check 'so can one of parts' contains "$work/log" "^Saved: thinwire run $work/parts.yaml --carriers 2 --stages"
check '  as an experiment of these parts' contains "$work/parts.yaml" '^  parts: 2'
plan 'more carriers than replicas' '--carriers 3: want at most 1, the experiment.s replicas.count' "${given[@]}" --carriers 3
plan 'an interface that is none' '--nic: unknown "mine", nearest is' --nic mine
mkdir "$work/empty"
plan 'a folder that holds no run' "--from: $work/empty: no run is recorded here" --from "$work/empty"
echo '{"compute": [{"steps": 1, "samples": 4, "forward_seconds": 1, "backward_seconds": 2}]}' >"$work/empty/summary.json"
sed -e 's/^pipeline:.*/pipeline: {stages: 1}/' -e '/^model:/s/.*/model: {name: resnet18, width: 8}/' "$quickstart" \
  >"$work/empty/experiment.yaml"
plan 'a run of another model' "--from: $work/empty: trained resnet18 of [0-9]+ parameters .*, want resnet8 of" \
  --from "$work/empty"
"$thinwire" plan "$quickstart" "${given[@]}" --link_mbit 20 --rtt_ms 40 --codec fp16 --codec 'ecsq(step=1)' --codec 'uniform(bits=4) | fp16' \
  --microbatches 1,2 >"$work/log"
check 'choices are ranked' contains "$work/log" '^> .* the file.s$'
check '  none among them' contains "$work/log" ' none$'
check '  and pairs' contains "$work/log" ' uniform.bits=4. .$'
check '    on two lines where they are wide' contains "$work/log" '^ {60,}fp16$'
"$thinwire" plan "$quickstart" "${given[@]}" --link_mbit 20 --format json >"$work/log"
check 'the same as JSON' contains "$work/log" '"step_seconds": [0-9.e-]+,'
"$thinwire" plan "$quickstart" "${given[@]}" --link_mbit 20 --machines 4 --price_hour 1 >"$work/log"
check 'layouts are ranked' contains "$work/log" '^ 2 x 2 .* 64 (compute|cuts|exchange) +none$'
check '  the experiment as it stands among them' contains "$work/log" '^>1 x 4 '
"$thinwire" plan "$quickstart" "${given[@]}" --link_mbit 20 --machines 4 --format json >"$work/log"
check '  the same as JSON' contains "$work/log" '"machine_wire_bytes": [0-9]+,'
plan 'a memory that is no size' '--set pipeline.memory=lots: pipeline.memory: "lots", want a number of bytes' --memory lots
plan 'a memory of layouts' '--memory with --machines: want --memory_gb' --link_mbit 50 --machines 4 --memory 1GB
plan 'a memory that is too small' 'pipeline.memory: 100KiB: stage 0 needs at least .*; want that much, more stages' \
  "${given[@]}" --memory 100KiB
plan 'a swap at no rate' '--swap_gbps: 0, want 1e-09 to' --swap_gbps 0
run 'a memory that is too small' 'pipeline.memory: 100KiB: stage 0 needs at least ' --set pipeline.memory=100KiB
"$thinwire" plan "$quickstart" "${given[@]}" --memory 1GB >"$work/log"
check 'a plan says what blocks keep' contains "$work/log" '^stem +0  keep '
check '  and the least memory' contains <(tr '\n' ' ' <"$work/log") 'The least possible is [0-9.]+ [MK]iB'
"$thinwire" plan "$quickstart" "${given[@]}" --memory 1GB --format json >"$work/log"
check '  the same as JSON' contains "$work/log" '"least_bytes": [0-9]+'
"$thinwire" plan "$quickstart" --codec_gbps 1 --stage_server "$work/none" >"$work/log" 2>&1
check 'compute that cannot be measured is a failure' equals $? 1
check '  which says what to do' contains "$work/log" 'give --gflops, or --from'
"$thinwire" plan "$quickstart" --stage_server "$stage_server" >"$work/log" 2>&1
check 'speeds are measured otherwise' contains "$work/log" 'Compute: [0-9.]+ GFLOP/s, as'
check '  and ends of messages' contains <(tr '\n' ' ' <"$work/log") 'Each end of a message takes [0-9]+ us and [0-9.e-]+ ns a byte'

echo '== a tune'
tune() { refused "$1" "$2" tune "$quickstart" --out "$work/tuned" "${@:3}"; }
tune 'no link' '--link_mbit is required'
tune 'a link of 0 Mbit/s' '--link_mbit: 0, want 1e-06 to' --link_mbit 0
tune 'a loss below 0' '--max_loss: -1, want at least 0 points of accuracy' --link_mbit 50 --max_loss=-1
tune 'a target beyond all' '--target: 101, want per cent of accuracy, up to 100' --link_mbit 50 --target 101
tune 'a codec that is none' '--codec: .*unknown "topq", nearest is "topk"' --link_mbit 50 --codec topq
tune 'no candidate' '--candidates: Value 0 not in range' --link_mbit 50 --candidates 0
tune 'more microbatches than samples' '--microbatches: 100000, want 1 to [0-9]+, the batch size' --link_mbit 50 \
  --microbatches 100000
tune 'one process' 'pipeline.stages: 1: nothing would cross the link' --link_mbit 50 --set pipeline.stages=1

echo '== addresses'
for address in 9107 :9108 foo 127.0.0.1:99999; do
  run "--metrics_listen $address" "--metrics_listen: \"$address\", want host:port" --metrics_listen "$address"
done
refused 'a range of stages without its end' '--stages: "s{0..3:4700", want one range like {0..3}' \
  run --stages 's{0..3:4700' "$quickstart" --quiet --out "$work/out"
run 'a stage without a port' '--stages: "b", want host:port' --stages a:1,b,c:1,d:1
refused 'an experiment behind --stages is one, and so a wrong number of stages' '--stages: 2 addresses, want 4' \
  run --stages a:1,b:1 "$quickstart" --set pipeline.stages=4 --quiet --out "$work/out"
check 'nothing was written' test ! -e "$work/out"

echo '== data'
"$thinwire" data list >"$work/log"
for name in cifar10 cifar100 mnist fashion_mnist wikitext2 gpt2-bpe; do check "$name can be fetched" contains "$work/log" "^$name +.* MB$"; done
for name in digits shakespeare; do check "$name need not be" contains "$work/log" "^$name +part of the program"; done
check 'what is embedded is not fetched' equals "$("$thinwire" data fetch shakespeare)" \
  'shakespeare is part of the program: nothing to fetch'
refused 'an unknown data set' 'data fetch: unknown "cifar", nearest is "cifar10"' data fetch cifar
refused 'a fetch of nothing' 'data fetch: want a name' data fetch
refused 'an action that is none' 'get not in' data get cifar10
refused 'one folder for two data sets' '--dir is for one name' data fetch cifar10 wikitext2 --dir "$work/data"
refused 'a list with names' 'data list takes no names' data list cifar10
"$thinwire" data fetch gpt2-bpe --dir "$work/data" --from "$work/none" 2>"$work/log"
check 'a mirror that is not there is a failure' equals $? 1
check '  which is named' contains "$work/log" "$work/none/encoder.json: is no file"
check '  and leaves nothing behind' equals "$(ls -A "$work/data")" ''
printf 'to be or not to be' >"$work/text"
check 'a vocabulary is learned from a text' equals \
  "$("$thinwire" data vocabulary "$work/text" --dir "$work/pieces")" "$work/pieces/vocab.txt: 19 tokens"
check '  with what occurs twice' contains "$work/pieces/vocab.txt" '^be$'
refused 'a vocabulary of nothing' 'want paths of texts' data vocabulary
small=data/hf_testdata/bytes
printf 'the art <s>' >"$work/art"
check 'a text becomes ids' contains <("$thinwire" data encode "$work/art" --vocabulary $small --out "$work/ids") 'ids of 16 bits'
check '  and comes back' equals "$("$thinwire" data decode "$work/ids" --vocabulary $small)" 'the art <s>'
check 'a tokenizer is described' contains <("$thinwire" data list --vocabulary $small) '^rules of GPT-2, merges of bytes$'
refused 'ids without a tokenizer' 'data encode: want the path of a text, --vocabulary and --out' data encode "$work/art"
refused 'a tokenizer of a fetch' '--vocabulary is for data list, encode and decode' data fetch cifar10 --vocabulary $small
refused 'a file of a list' '--out and --specials are for data encode and decode' data list --out "$work/ids"
refused 'a size of what has none' '--size and --cased are for data vocabulary' data list --size 9

echo '== folders'
mkdir -p "$work/project/model"
echo 'class Net' >"$work/project/model/net.py"
refused 'a folder that is no run' 'project: has model but no .thinwire' \
  run "$quickstart" --out "$work/project" --overwrite
check 'it is left as it was' equals "$(cat "$work/project/model/net.py") $(ls "$work/project")" 'class Net model'
refused 'a probe into a folder that is not there' "$work/none/p.md: cannot write: No such file" \
  probe "$quickstart" --out "$work/p.json" --out "$work/none/p.md"
refused 'a probe into a device' '^thinwire: /dev/full: is no regular file, want' probe "$quickstart" --out /dev/full
check 'which stays one' test -c /dev/full
refused 'a probe into a folder' "$work: is a folder, want the path of a file" probe "$quickstart" --out "$work"
refused 'a probe into a file as a folder' 'Not a directory' probe "$quickstart" --out "$work/log/p.md"
for command in "probe $quickstart" 'codecs --measure'; do
  # shellcheck disable=SC2086
  TMPDIR=/nonexistent "$thinwire" $command >"$work/log" 2>&1
  check "$command without a temporary folder fails" equals $? 1
  check '  naming it' contains "$work/log" '^thinwire: /nonexistent/thinwire-.*No such file or directory'
done

mkdir "$work/empty-folder"
echo text >"$work/a-file"
for command in 'run --resume' generate probe; do
  # shellcheck disable=SC2086
  refused "$command of a folder without a run" "^thinwire: $work/empty-folder: no run is recorded here: " $command "$work/empty-folder"
done
refused 'a report on a file' "$work/a-file: is no folder, want that of a run or of runs" report "$work/a-file"
refused 'codecs of a folder' "^thinwire: $work/empty-folder: cannot read: Is a directory" codecs --measure "$work/empty-folder"
refused 'levels in a folder' "^thinwire: $work/empty-folder: cannot read: Is a directory" probe "$quickstart" --levels "$work/empty-folder"
refused 'levels that are not there' "^thinwire: $work/none: cannot open: No such file" probe "$quickstart" --levels "$work/none"
refused 'a run in a file' "^thinwire: $work/a-file: cannot make the folder: Not a directory" run "$quickstart" --out "$work/a-file"
refused 'a sweep in a file' "^thinwire: $work/a-file/runs: cannot make the folder: Not a directory" \
  sweep "$quickstart" --seeds 1 --out "$work/a-file"
for file in none empty-folder a-file; do
  run "the token of $file" "^thinwire: token_file: $work/$file" --stages a:1,b:1,c:1,d:1 --token_file "$work/$file"
done
run 'a token without --stages' "^thinwire: --token_file is $work/a-file without --stages: " --token_file "$work/a-file"
check '  before anything is written' test ! -e "$work/out"
refused 'a server without a port' '^thinwire: --stages: "foo", want host:port' serve --out "$work/queue" --stages foo
for file in 'my exp (2)' 日; do grep -v '^name:' "$quickstart" >"$work/$file.yaml"; done
(cd "$work" && "$program" run 'my exp (2).yaml' --stage_server "$work/none" --quiet) 2>"$work/log"
check 'a file whose name is no name of a run' contains "$work/runs/my-exp-2/experiment.yaml" '^name: "?my-exp-2"?$'
(cd "$work" && "$program" sweep 'my exp (2).yaml' --list) >/dev/null 2>"$work/log"
check '  nor of a sweep' equals "$? $(cat "$work/log")" '0 '
printf '{name: ../up, experiment: %s, seeds: [1]}\n' "$(realpath "$quickstart")" >"$work/up.yaml"
refused 'a sweep that is named after another folder' 'up.yaml: name: "../up", want 1 to 128 letters' sweep "$work/up.yaml" --list
refused 'a file without a letter that a name may have' "name: absent, .* want name, or --set name=..." run "$work/日.yaml" --quiet

echo '== a limit on files'
overwrite() { "$thinwire" run "$quickstart" --out "$work/limited" --overwrite --stage_server "$work/none" 2>&1; }
# breaks_off FILE: a run that may write nothing fails at FILE
breaks_off() {
  (ulimit -f 0; overwrite) | cat >"$work/log"
  equals "${PIPESTATUS[0]}" 1 && contains "$work/log" "$work/limited/$1.*File too large"
}
# replaced: the next run, which finds no stage server, writes its summary there
replaced() { overwrite >"$work/log"; contains "$work/limited/summary.json" 'cannot execute'; }
check 'a run that cannot mark its folder breaks off' breaks_off .thinwire
check '  and is replaced' replaced
check 'a run that cannot write its experiment breaks off' breaks_off experiment.yaml
check '  leaving no summary' test ! -e "$work/limited/summary.json"
check '  and is replaced' replaced

echo '== names that are not UTF-8'
"$thinwire" run "$quickstart" --out "$work"/$'a\xff' --stage_server "$work"/$'\xff' >"$work/log" 2>&1
check 'are no reason to crash' equals $? 1
check 'the error is printed' contains "$work/log" 'cannot execute'
check 'the summary says it' contains "$work"/$'a\xff/summary.json' 'cannot execute'

echo '== a full disk'
for command in --help 'run --help' "plan $quickstart --gflops 40 --codec_gbps 1" codecs 'codecs --conformance fp16'; do
  # shellcheck disable=SC2086
  "$thinwire" $command >/dev/full 2>"$work/log"
  check "$command fails" equals $? 1
  check '  saying why' contains "$work/log" 'stdout: cannot write: No space left on device'
done

echo "$failures failures"
(( failures == 0 ))
