#!/usr/bin/env bash
# Runs whose parameters are frozen in part: what their checkpoints hold, what completes them, and stages that read
# their own copies of a model.
# usage: base_test.sh THINWIRE STAGE_SERVER
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$(realpath "$1") stage_server=$(realpath "$2") same_run=$(realpath "$(dirname "$0")/same_run.py")
work=$(mktemp -d)
trap 'end_jobs; rm -rf "$work"' EXIT
cd "$work" || exit

run() { timeout 60 "$thinwire" run --stage_server "$stage_server" "$@" >out 2>log; }
same() { python3 "$same_run" "$1" "$2"; }
# export RUN FOLDER ARGUMENTS...
export_of() { "$thinwire" checkpoint export "$1" --out "$2" "${@:3}" >out 2>log; }
# evaluated ARGUMENTS...: losses of all rows
evaluated() {
  timeout 60 "$thinwire" evaluate --stage_server "$stage_server" --json "$@" 2>log |
    python3 -c 'import json, sys; print([row["test"]["loss"] for row in json.load(sys.stdin)["rows"]])'
}
# same_model FOLDER FOLDER [PART...]: equal tensors by name, without those with such a part in their names
same_model() {
  python3 - "$@" <<'END'
import json, pathlib, struct, sys
def tensors(folder):
    found = {}
    for path in pathlib.Path(folder).glob("*.safetensors"):
        file = path.read_bytes()
        (size,) = struct.unpack("<Q", file[:8])
        for name, place in json.loads(file[8:8 + size]).items():
            if name == "__metadata__":
                continue
            begin, end = place["data_offsets"]
            found[name] = (place["dtype"], place["shape"], file[8 + size + begin:8 + size + end])
    return found
one, other = map(tensors, sys.argv[1:3])
for part in sys.argv[3:]:
    one, other = ({name: all[name] for name in all if part not in name} for all in (one, other))
assert one and one == other, [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
END
}

for i in {1..60}; do printf 'To be, or not to be: %s\n' "$i"; done >text
cat >tiny.yaml <<YAML
name: tiny
model: {name: llama, layers: 2, heads: 2, width: 16}
data: {name: text, file: $work/text, tokens: characters, context: 16, windows: 40, batch_size: 20, test_limit: 2}
pipeline: {cuts: [layers.0], threads: 1}
optimizer: {name: adamw, lr: 0.01}
epochs: 1
YAML
run tiny.yaml --out base
check 'the base is trained' equals $? 0
cp -r base/model model
adapted=(tiny.yaml --set "init=$work/model" --set 'lora={rank: 2, modules: [q_proj, v_proj]}'
  --set checkpoint.every_steps=1 --set checkpoint.keep=9 --set epochs=2)

echo '== adapters'
run "${adapted[@]}" --out lora
check 'a run trains them' equals $? 0
check 'its checkpoints hold nothing else' equals "$(grep -o 'lora_A\|norm\|mlp' lora/checkpoints/step-3/model.safetensors.index.json | sort -u)" lora_A
check '  and name the base' contains lora/checkpoints/step-3/manifest.json "\"init\": \"$work/model\""
check 'they are whole' "$thinwire" checkpoint verify lora
"$thinwire" checkpoint verify lora >out
check '  with the base' contains out "step-3: whole, .*; base $work/model whole, [0-9]+ frozen tensors"
run "${adapted[@]}" --out again --set epochs=1
run --resume again --set epochs=2
check 'a run that goes on is one that was not interrupted' same again lora
cp -r lora once
run --resume once@1
check 'from a step, too' same once lora
check 'the last step, exported, is the model of the end' export_of lora exported
check '  in all tensors' same_model exported lora/model
export_of lora merged --merge
check 'merged it is a plain model' equals "$? $(grep -c lora_ merged/model.safetensors.index.json)" '0 0'
check '  of the same loss' equals "$(evaluated tiny.yaml --set init=merged | cut -c-8)" "$(evaluated lora | cut -c-8)"
check 'a step is evaluated as the end' equals "$(evaluated lora@4)" "$(evaluated lora)"
text=$(timeout 60 "$thinwire" generate lora@4 --stage_server "$stage_server" --prompt To --tokens 9 2>log)
check '  and speaks as it' equals "$text" "$(timeout 60 "$thinwire" generate lora --stage_server "$stage_server" --prompt To --tokens 9 2>log)"
run "${adapted[@]}" --out next --set init=lora/checkpoints/step-4
check 'another run begins from a step' equals $? 0

echo '== another base'
mv model moved
run --resume lora --set epochs=3
check 'one that is gone ends a resumption' equals $? 2
check '  by name' contains log "its frozen parameters are those of init: $work/model: cannot open"
"$thinwire" checkpoint verify lora >out 2>log
check '  and is told of a checkpoint' contains out "step-4: broken: .*base: $work/model: cannot open"
cp -r lora moved_run
run --resume moved_run --set epochs=3 --set "init=$work/moved"
check 'it may be elsewhere' equals $? 0
cp -r base/model model
python3 - model/model-00001-of-00002.safetensors <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[-1] ^= 1
open(sys.argv[1], "wb").write(data)
END
run --resume lora --set epochs=3
check 'one of other values ends it before a step' equals $? 1
check '  with both digests' contains log 'model/model-0.*safetensors: .* has SHA-256 [0-9a-f]+, want [0-9a-f]+, as the run began'
rm -r model
mv moved model

echo '== frozen blocks'
run tiny.yaml --out frozen --set "init=$work/model" --set 'freeze=[embedding, layers.0]' --set epochs=2
check 'they are trained on without them' equals $? 0
check '  which no checkpoint has' equals "$(grep -c 'embed_tokens\|layers.0' frozen/checkpoints/step-4/model.safetensors.index.json)" 0
run tiny.yaml --out frozen_again --set "init=$work/model" --set 'freeze=[embedding, layers.0]'
run --resume frozen_again --set epochs=2
check '  and they go on' same frozen_again frozen

run tiny.yaml --out parts --set "init=$work/model" --set 'freeze=[layers.0]' --set tensor.parts=2 --set epochs=2
check 'in parts, too' equals $? 0
run tiny.yaml --out parts_again --set "init=$work/model" --set 'freeze=[layers.0]' --set tensor.parts=2
run --resume parts_again --set epochs=2
check '  which go on' same parts_again parts

echo '== a base in few bits'
run "${adapted[@]}" --set base.weights=int8 --out few
check 'adapters are trained on it' equals $? 0
check '  which no checkpoint has' equals "$(grep -o 'lora_A\|norm\|mlp' few/checkpoints/step-3/model.safetensors.index.json | sort -u)" lora_A
run "${adapted[@]}" --set base.weights=int8 --out few_again --set epochs=1
run --resume few_again --set epochs=2
check '  and go on from the folder' same few_again few
check 'a step is evaluated as the end' equals "$(evaluated few@4)" "$(evaluated few)"
check 'a step is exported' export_of few few_exported
check '  with the weights of the folder' same_model few_exported model lora_
same_model few/model model lora_ 2>few_differs
check '  and the end has those that were trained on' contains few_differs 'q_proj.weight'
export_of few few_merged --merge
check 'merged it is a plain model' equals "$? $(grep -c lora_ few_merged/model.safetensors.index.json)" '0 0'
check '  whose other weights are those of the folder' same_model few_merged model q_proj v_proj

echo '== replicas'
local_steps=(--set 'replicas={count: 2, sync: local, every: 3}')
run "${adapted[@]}" "${local_steps[@]}" --out local
check 'they train adapters each for itself' equals $? 0
cp -r local local_again
run --resume local_again@1
check '  and go on within a round' same local_again local
run "${adapted[@]}" --set replicas.count=2 --out replicas
run "${adapted[@]}" --set replicas.count=2 --set init_at=stages --carriers 2 --out carriers
check 'carriers that read the model train the same' same carriers replicas

echo '== stages that read the model'
for i in 0 1; do
  mkdir -p "server$i/models"
  cp -r model "server$i/models/base"
  (cd "server$i" && exec "$stage_server" --listen 127.0.0.1:0 --metrics_listen 127.0.0.1:0 --data "$work" >"../server$i.log" 2>&1) &
done
address() { grep -oE 'serving on [0-9.:]+' "$work/server$1.log" | cut -d' ' -f3; }
for i in 0 1; do within 20 contains "server$i.log" 'serving on' >/dev/null; done
mkdir -p here/models/base
cp model/config.json here/models/base  # no weights
own=("${adapted[@]}" --set init=models/base --set init_at=stages --stages "$(address 0),$(address 1)")
remote() { (cd here && timeout 60 "$thinwire" run "$@" >"$work/out" 2>"$work/log"); }
own[0]=$work/tiny.yaml
remote "${own[@]}" --out "$work/stages"
check 'a run begins from copies of the stages' equals $? 0
check '  as from one that is sent' same stages again
check '  and tells the digest of what they read' contains stages/summary.json '"sha256": "[0-9a-f]{64}"'
check '  of all tensors' python3 -c '
import json
initial = json.load(open("stages/summary.json"))["provenance"]["initial"]
assert initial["folder"] == "models/base" and initial["tensors"] > 15 and initial["bytes"] > 1000, initial'
remote "${own[@]}" --out "$work/stages_again" --set epochs=1
remote --resume "$work/stages_again" --set epochs=2 --stages "$(address 0),$(address 1)"
check '  and goes on from them' same stages_again again
remote "${own[@]}" --set base.weights=int8 --out "$work/stages_few"
check '  in few bits, too' same stages_few few
mv server1/models/base server1/models/away
remote "${own[@]}" --out "$work/refused"
check 'a folder that a stage lacks ends it' equals $? 1
check '  by stage, server and folder' contains log "stage 1 \($(address 1)\): ListInitial: init: $work/server1/models/base: cannot open"
cp -r base/model server1/models/base
printf '{"other": 1}' >server1/models/base/config.json
remote "${own[@]}" --out "$work/refused" --overwrite
check 'so does another model' contains log "init: stage 1 \($(address 1)\), $work/server1/models/base: is another model than that of stage 0"
remote "${own[@]}" --out "$work/refused" --overwrite --set init=/etc
check 'and a path that servers do not allow' contains log 'init: /etc leads to /etc, want a path below'
remote "${own[@]}" --out "$work/refused" --overwrite --set init_at=nodes
check 'a place that is none is refused' contains log 'init_at: .*nodes'

echo "$failures failures"
(( failures == 0 ))
