#!/usr/bin/env bash
# Replicas and tensor-parallel parts on one pipeline, on two and on four, as whole processes: the same numbers and the
# same counted bytes, also when a run goes on with other carriers, or after the loss of one.
# usage: carriers_test.sh THINWIRE STAGE_SERVER
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$(realpath "$1") stage_server=$(realpath "$2")
same_run=$(realpath "$(dirname "$0")/same_run.py")
work=$(mktemp -d)
trap 'end_jobs; rm -rf "$work"' EXIT
cd "$work"

# run NAME ARGUMENTS...: what it says stands in NAME.log
run() {
  local name=$1
  shift
  "$thinwire" run --out "$name" "$@" >"$name.log" 2>&1
  local status=$?
  check "thinwire run --out $name $*" equals $status 0
  (( status == 0 )) || tail -3 "$name.log"
}
same() { python3 "$same_run" "$1" "$2"; }
# refused WORDS ARGUMENTS...: thinwire run says these words and starts nothing
refused() {
  local words=$1
  shift
  "$thinwire" run --out refused "$@" >refused.log 2>&1
  check "refused: $*" equals $? 2
  check "which names it" contains refused.log "$words"
}

# The last batch has 8 of 200 samples: one for each of two microbatches of four replicas.
cat >images.yaml <<'YAML'
name: images
model: {name: resnet8, width: 16}
data: {name: digits, batch_size: 32, limit: 200, test_limit: 100}
pipeline: {cuts: [stem, layer2], threads: 1, microbatches: 2}
compression: {activations: {codec: uniform, bits: 4, feedback: ef21}, gradients: {codec: topk, ratio: 0.3, feedback: ef}}
replicas: {count: 4, contributions: {codec: ecsq, rate: 2, feedback: ef}, average: {codec: uniform, bits: 8}}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
checkpoint: {every_steps: 4, codec_state: full}
epochs: 2
YAML
cat >text.yaml <<'YAML'
name: text
model: {name: gpt2, width: 64, layers: 2, heads: 2, dropout: 0.1}
data: {name: shakespeare, batch_size: 9, context: 16, windows: 60, test_limit: 9}
pipeline: {cuts: [h.0], threads: 1, microbatches: 1}
replicas: {count: 4, contributions: {codec: low_rank, rank: 2, feedback: ef}}
optimizer: {name: adamw, lr: 0.003, clip_norm: 0.5}
checkpoint: {every_steps: 4, codec_state: full}
epochs: 2
YAML
sparse=(--set 'replicas={exchange: gather, contributions: {codec: topk, ratio: 0.05, feedback: ef21}}'
  --set 'compression.gradients={codec: low_rank, rank: 2, feedback: ef}')
selected=(--set 'replicas.stages={layer2: {contributions: {codec: topk, ratio: 0.1}}, head: {contributions: {codec: none}, average: {codec: none}}}')
# Seven steps an epoch: step 4 has sent a fragment whose result is not yet taken.
local=(--set 'replicas={sync: local, every: 4, fragments: 2, overlap: 1}' --set 'optimizer.clip_norm=0.5')

# --- Whoever carries the replicas.
run images images.yaml --set pipeline.stages=2
run images1 images.yaml --set pipeline.stages=1 --carriers 4
run images2 images.yaml --set pipeline.stages=2 --carriers 2 --set pipeline.transport=tcp
run images3 images.yaml --set pipeline.stages=3 --carriers 3
for other in images1 images2 images3; do check "$other is images" same images $other; done
# Stages on different numbers of machines: each has links to all with which it has replicas in common.
run images312 images.yaml --set pipeline.stages=3 --carriers 3,1,2
run images14 images.yaml --set pipeline.stages=2 --carriers 1,4 --set pipeline.schedule=gpipe --set pipeline.transport=tcp
for other in images312 images14; do check "$other is images" same images $other; done
run ring images.yaml --set 'pipeline.cuts=[stem, layer1, layer2]' --set pipeline.stages=1 --set epochs=1
run ring23 images.yaml --set 'pipeline.cuts=[stem, layer1, layer2]' --set pipeline.stages=2 --set epochs=1 \
  --set pipeline.schedule=interleaved --carriers 2,3
check 'stages that have two segments each, too' same ring ring23
check 'which the run says' contains images312.log '3 stages of 3, 1, 2 machines on cpu'
run text text.yaml --set pipeline.stages=1
run text32 text.yaml --set pipeline.stages=2 --carriers 3,2
check 'a tied weight and a clipped gradient with three and two machines' same text text32
run text4 text.yaml --set pipeline.stages=2 --carriers 4
check 'a tied weight and a clipped gradient, too' same text text4
run sparse images.yaml "${sparse[@]}" --set pipeline.stages=1
run sparse2 images.yaml "${sparse[@]}" --set pipeline.stages=2 --carriers 2
check 'and where all send to all' same sparse sparse2
run local images.yaml "${local[@]}" --set pipeline.stages=1
run local2 images.yaml "${local[@]}" --set pipeline.stages=2 --carriers 2
check 'and where each trains by itself' same local local2
run local24 images.yaml "${local[@]}" --set pipeline.stages=2 --carriers 2,4
check 'on two and four machines, too' same local local24
run selected images.yaml "${selected[@]}" --set pipeline.stages=1
run selected2 images.yaml "${selected[@]}" --set pipeline.stages=2 --carriers 2
run selected4 images.yaml "${selected[@]}" --set pipeline.stages=3 --carriers 4
for other in selected2 selected4; do check 'and where segments have codecs of their own' same selected $other; done
check 'which a summary spells out' contains selected/summary.json '; layer2: topk.*; head: none'
run auto images.yaml --set replicas.stages=auto --set replicas.link_mbit=100 --set epochs=1 --set pipeline.stages=1
run auto2 images.yaml --set replicas.stages=auto --set replicas.link_mbit=100 --set epochs=1 --carriers 2
check 'which auto chooses for all machines alike' same auto auto2
check 'and the recorded experiment has' contains auto/experiment.yaml '^    stem:'
check 'in place of auto' bash -c '! grep -q "^    auto:\|link_mbit" auto/experiment.yaml'
# adds_up RUN: the lines of traffic.jsonl have in all what the summary says that replicas exchanged
adds_up() {
  python3 - "$1" <<'PYTHON'
import json, sys
exchanged = json.load(open(sys.argv[1] + "/summary.json"))["replicas"]
lines = [line for line in map(json.loads, open(sys.argv[1] + "/traffic.jsonl")) if line["boundary"] == "replicas"]
for way in ("contributions", "average"):
    for field in ("messages", "raw_bytes", "wire_bytes"):
        told, said = sum(line[field] for line in lines if line["direction"] == way), exchanged[way][field]
        assert told == said > 0, (way, field, told, said)
PYTHON
}
for one in images images2 images3 images312 selected selected4; do check "each step of $one says what replicas exchanged" adds_up $one; done
check 'a summary says how many carried' contains images2/summary.json '"carriers": 2'

# --- A run goes on with other carriers, with what its codecs remember.
for way in images text sparse local selected; do
  set -- "$way.yaml"
  [[ $way == selected ]] && set -- images.yaml "${selected[@]}"
  [[ $way == sparse ]] && set -- images.yaml "${sparse[@]}"
  [[ $way == local ]] && set -- images.yaml "${local[@]}"
  run $way-half "$@" --set pipeline.stages=2 --carriers 4,3 --set epochs=1 --quiet
  # Within a round each replica has parameters of its own.
  [[ $way == local ]] && rm -r local-half/checkpoints/step-7
  then=(--set pipeline.stages=1 --carriers 2)
  [[ $way == sparse || $way == local ]] && then=(--set pipeline.stages=2 --carriers 1,3)
  "$thinwire" run --resume $way-half --set epochs=2 "${then[@]}" >$way-half.log 2>&1
  check "thinwire run --resume $way-half ${then[*]}" equals $? 0
  check "$way with four and three machines, then others, is $way" same $way $way-half
  check 'nothing that was remembered is lost' bash -c '! grep -q "begins anew\|dropped" "$0"' $way-half.log
done

# --- Tensor-parallel parts: whoever carries them, through whichever codec, with one replica and with two.
cat >parts.yaml <<'YAML'
name: parts
model: {name: gpt2, width: 64, layers: 2, heads: 2, dropout: 0.1}
data: {name: shakespeare, batch_size: 9, context: 16, windows: 60, test_limit: 9}
pipeline: {cuts: [h.0], threads: 1, microbatches: 2}
tensor: {parts: 2}
compression: {gradients: {codec: topk, ratio: 0.3, feedback: ef}}
optimizer: {name: adamw, lr: 0.003, clip_norm: 0.5}
checkpoint: {every_steps: 4, codec_state: full}
epochs: 2
YAML
two=(--set 'replicas={count: 2, contributions: {codec: ecsq, rate: 2, feedback: ef}}')
rounds=(--set 'replicas={count: 2, sync: local, every: 3, contributions: {codec: ecsq, rate: 2, feedback: ef}}')
for codec in none 'uniform, bits: 4, rounding: stochastic' 'topk, ratio: 0.2' 'ecsq, rate: 2'; do
  sums=(--set "compression.sums={activations: {codec: $codec}, gradients: {codec: $codec}}" --set epochs=1)
  name=parts-${codec%%,*}
  run $name parts.yaml "${sums[@]}" --set pipeline.stages=1
  run ${name}2 parts.yaml "${sums[@]}" --set pipeline.stages=2 --carriers 2 --set pipeline.transport=tcp
  check "two machines that carry the parts are one ($codec)" same $name ${name}2
done
sums=(--set 'compression.sums={activations: {codec: ecsq, rate: 2}, from_layer: half}')
for way in two rounds; do
  declare -n more=$way
  run $way parts.yaml "${sums[@]}" "${more[@]}" --set pipeline.stages=1
  run ${way}4 parts.yaml "${sums[@]}" "${more[@]}" --set pipeline.stages=2 --carriers 4 --set epochs=1
  "$thinwire" run --resume ${way}4 --set epochs=2 --set pipeline.stages=1 --carriers 2 >${way}4.log 2>&1
  check "eight processes, then two, are one ($way)" same $way ${way}4
  check 'and nothing that was remembered is lost' bash -c '! grep -q "begins anew\|dropped" "$0"' ${way}4.log
done
run codes parts.yaml --set 'compression.sums.bottleneck={kind: linear, width: 8}' --set pipeline.stages=1
run codes2 parts.yaml --set 'compression.sums.bottleneck={kind: linear, width: 8}' --set pipeline.stages=2 --carriers 2 --set epochs=1
"$thinwire" run --resume codes2 --set epochs=2 --carriers 2 >codes2.log 2>&1
check 'learned codes of sums, resumed by two carriers' same codes codes2
# Slices of positions between the parts: 17 positions are 8 and 9.
sliced=(--set tensor.sequence=true --set data.context=17)
for codec in none 'ecsq, rate: 2'; do
  sums=(--set "compression.sums={activations: {codec: $codec}, gradients: {codec: $codec}}" --set epochs=1)
  name=sliced-${codec%%,*}
  run $name parts.yaml "${sliced[@]}" "${sums[@]}" --set pipeline.stages=1
  run ${name}2 parts.yaml "${sliced[@]}" "${sums[@]}" --set pipeline.stages=2 --carriers 2
  check "two machines that carry slices of positions are one ($codec)" same $name ${name}2
  run ${name}-two parts.yaml "${sliced[@]}" "${sums[@]}" "${two[@]}" --set pipeline.stages=1
  run ${name}-two4 parts.yaml "${sliced[@]}" "${sums[@]}" "${two[@]}" --set pipeline.stages=2 --carriers 4
  check "and four, of two replicas ($codec)" same ${name}-two ${name}-two4
done
"$thinwire" generate sliced-ecsq2 --prompt A --tokens 3 --seed 1 --compression off >generated-sliced.log 2>&1
check 'a text is generated by parts with slices' equals $? 0
"$thinwire" run --resume sliced-none2 --set tensor.sequence=false --set epochs=2 --quiet >unsliced.log 2>&1
check 'a run goes on without slices' equals $? 0
"$thinwire" generate two4 --prompt A --tokens 3 --seed 1 --compression off >generated.log 2>&1
check 'a text is generated by parts' equals $? 0
check 'files have whole parameters' contains two4/model/model.safetensors.index.json 'transformer.h.0.attn.c_attn.weight'
check 'and no parts' bash -c '! grep -q "part[01]" two4/model/model.safetensors.index.json'
"$thinwire" run --resume two4 --set tensor.parts=1 --set epochs=3 --quiet >whole.log 2>&1
check 'a run goes on with another number of parts' equals $? 0
check 'and says what that drops' contains whole.log 'the parts are others, and with them the pieces'

# --- One carrier's stage is killed: the run goes on from its checkpoint.
"$thinwire" run images.yaml --out lost --set pipeline.stages=2 --carriers 2,3 --set epochs=2 >lost.log 2>&1 &
run=$!
check 'a checkpoint is written' within 60 has_checkpoint lost
pkill -9 -P $run -f stage_server -n
wait $run
check 'a run that lost a carrier ends' equals $? 0
check 'with the numbers of one that lost nothing' same images lost
check 'and says what it lost' contains lost/summary.json '"reason": "dead"'

# --- What a user may get wrong.
refused '--carriers 5: want at most 4, the experiment.s replicas.count' images.yaml --carriers 5
refused '--carriers 3: want at most 2, the experiment.s replicas.count, or a multiple of them up to 4' parts.yaml "${two[@]}" --carriers 3
refused 'transformer.h.0.attn has 2 heads, want a multiple of the parts' parts.yaml --set tensor.parts=4
refused 'tensor.sequence: block h.0 has 1 positions, want at least 2, one for each part' parts.yaml \
  --set tensor.sequence=true --set data.context=1
refused '--carriers 3: --stages names those of 2, want one number' images.yaml --carriers 3 --stages 'r{0..1}s{0..2}:4700'
refused '4 addresses, want 6, the experiment.s pipeline.stages for each of 2 carriers' images.yaml --carriers 2 \
  --set pipeline.stages=3 --stages 'a{0..3}:4700'
refused 'two ranges in the first address only' images.yaml --stages 'a:1,r{0..1}s{0..2}:4700'
refused '--carriers 2 with capture.steps' images.yaml --carriers 2 --set 'capture={steps: [1]}'

(( failures == 0 ))
