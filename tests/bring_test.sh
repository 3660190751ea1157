#!/usr/bin/env bash
# What people bring, as they bring it: texts of documents, other vocabularies, checkpoints with more than a model
# has, files that are none; and what a run keeps of it, so that it goes on and speaks without.
# usage: bring_test.sh THINWIRE STAGE_SERVER BPE_FOLDER HF_FOLDER PICTURE_FOLDER
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2 bpe=$3 hf=$4 pictures=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pointer=$'version https://git-lfs.github.com/spec/v1\noid sha256:24\nsize 1115394'

run() { timeout 60 "$thinwire" run --stage_server "$stage_server" "$@" >"$work/out" 2>"$work/log"; }
generate() { timeout 60 "$thinwire" generate --stage_server "$stage_server" "$@" 2>"$work/log"; }
# refused WHAT TEXT ARGUMENTS...: `thinwire run` of these is a usage error that says TEXT
refused() {
  run "${@:3}" --out "$work/refused"
  check "$1 is refused" equals $? 2
  check '  and named' contains "$work/log" "$2"
}
# loss_of RUN: that of its first step
loss_of() { grep -oE '"loss": *[0-9.]+' "$work/$1/metrics.jsonl" | head -1 | grep . || echo "no loss of $1"; }
# resolved FIELD: its value in the run's experiment
resolved() { sed -n "s/^ *$1: //p" "$work/$2/experiment.yaml"; }

cat >"$work/tiny.yaml" <<YAML
name: tiny
model: {name: gpt2, layers: 2, heads: 2, width: 16}
data: {name: text, file: $work/text, tokens: characters, context: 16, windows: 40, batch_size: 20, test_limit: 2}
pipeline: {cuts: [h.0], threads: 1}
optimizer: {name: adamw, lr: 0.01}
epochs: 1
YAML
bpe_run=("$work/tiny.yaml" --set data.tokens=bpe --set "data.vocabulary=$work/bpe" --set data.verify=false
  --set data.file="$work/documents")
cp -rL "$bpe" "$work/bpe"
for i in {1..60}; do printf 'the theatre %s<|endoftext|>' "$i"; done >"$work/documents"
for i in {1..60}; do printf 'To be, or not to be: %s\n' "$i"; done >"$work/text"
cp "$work/text" "$work/whole"

echo '== a text of documents'
run "${bpe_run[@]}" --out "$work/documents_run"
check 'it trains' equals $? 0
tokens=$(resolved train_tokens documents_run)
run "${bpe_run[@]}" --out "$work/characters_run" --set data.end_of_text=characters
check 'spelt out it has many more tokens' test "$(resolved train_tokens characters_run)" -gt $((2 * tokens))
sed -i '/end_of_text/d; /^derived:/,$d' "$work/characters_run/experiment.yaml"
run --resume "$work/characters_run" --set epochs=2
check 'a run recorded before the field goes on with its ids' equals $? 0
rm -r "$work/bpe" "$work/documents"
text=$(generate "$work/documents_run" --tokens 20)
check 'it speaks without its text and its vocabulary' equals $? 0
check '  the same each time' equals "$(generate "$work/documents_run" --tokens 20)" "$text"
"$thinwire" checkpoint export "$work/documents_run" --out "$work/exported" >"$work/out"
check 'its vocabulary is exported with the model, by names that transformers know' test -s "$work/exported/vocab.json" -a -s "$work/exported/merges.txt"

echo '== a published tokenizer'
cp -rL "$hf" "$work/hf"
run "$work/tiny.yaml" --out "$work/hf_run" --set data.tokens=hf --set data.vocabulary="$work/hf"
check 'it trains' equals $? 0
check '  with the ids of the file' contains <(resolved vocabulary hf_run) '^705$'
rm -r "$work/hf"
text=$(generate "$work/hf_run" --prompt 'To be' --tokens 20)
check 'it speaks without its vocabulary' equals $? 0
check '  behind the prompt' equals "${text::5}" 'To be'
run "$work/tiny.yaml" --out "$work/hf_again" --set data.tokens= --set init="$work/hf_run/model"
check 'with init its tokens are those of that folder' equals $? 0
check '  by name' equals "$(resolved tokens hf_again)" hf
run "$work/tiny.yaml" --out "$work/refused" --set init="$work/hf_run/model"
check 'other tokens are refused' contains "$work/log" 'want the tokens that the checkpoint was trained with'
cp -r "$work/hf_run/model" "$work/hf"
rm "$work/hf/vocabulary.json"
check 'its folder alone speaks as the run does' equals "$(generate "$work/hf" --prompt 'To be' --tokens 20)" "$text"
check '  a special token may be spelt, the first one once' equals "$(generate "$work/hf" --prompt '<s>To be' --specials ids --tokens 20)" "<s>$text"
echo "{\"eos_token_id\": [$(seq -s, 0 704)]}" >"$work/hf/generation_config.json"
check '  and ends at tokens that end texts' equals "$(generate "$work/hf" --prompt 'To be' --tokens 20)" 'To be'
rm "$work/hf/generation_config.json"

echo '== a cache of the hub'
export HF_HUB_CACHE=$work/hub
commit=$(printf 'c%.0s' {1..40})
cached=$work/hub/models--me--tiny
mkdir -p "$cached/refs" "$cached/blobs" "$cached/snapshots/$commit"
printf %s "$commit" >"$cached/refs/main"
for file in "$work"/hf/*; do
  cp "$file" "$cached/blobs/${file##*/}"
  ln -s "../../blobs/${file##*/}" "$cached/snapshots/$commit/${file##*/}"
done
check 'a name in it is a folder' equals "$(generate hf:me/tiny --prompt 'To be' --tokens 20)" "$text"
run "$work/tiny.yaml" --out "$work/hub_run" --set data.tokens= --set init=hf:me/tiny
check 'a run starts from it' equals $? 0
check '  and keeps the commit' contains "$work/hub_run/experiment.yaml" "^init: .*/snapshots/$commit"
check '  of its tokens too' contains <(resolved vocabulary hub_run) "^\"?hf:me/tiny@$commit"
run --resume "$work/hub_run" --set epochs=2
check '  and goes on' equals $? 0
mv "$work/hub" "$work/pruned"
spoken=$(generate "$work/hub_run" --prompt 'To be' --tokens 5)
check '  and speaks without the cache' equals "${spoken::5}" 'To be'
mv "$work/pruned" "$work/hub"
refused 'a name that is not there' 'init: hf:me/none: is not in the cache .*: hf download me/none$' \
  "$work/tiny.yaml" --set init=hf:me/none
refused 'a vocabulary that is not there' 'data.vocabulary: hf:me/none: is not in the cache' \
  "$work/tiny.yaml" --set data.tokens=hf --set data.vocabulary=hf:me/none
refused 'what is no name' 'init: hf:me/../x: want hf:ORG/NAME' "$work/tiny.yaml" --set init=hf:me/../x
refused 'a checkpoint of other tokens' 'vocab_size is 705, but data.tokens: characters of text makes' \
  "$work/tiny.yaml" --set init="$work/hf"
refused 'a tokenizer with more ids than the model has rows' 'model.classes: 700, want 705' \
  "$work/tiny.yaml" --set data.tokens=hf --set data.vocabulary="$work/hf" --set model.classes=700
echo "$pointer" >"$work/hf/tokenizer.json"
refused 'a pointer of Git LFS for it' 'tokenizer.json: is a pointer of Git LFS to 1115394 bytes' \
  "$work/tiny.yaml" --set data.tokens=hf --set data.vocabulary="$work/hf"

echo '== ids in files'
cp -rL "$hf" "$work/tokenizer"
"$thinwire" data encode "$work/text" --vocabulary "$work/tokenizer" --out "$work/ids_1.bin" >"$work/out"
cp "$work/ids_1.bin" "$work/ids_2.bin"
ids=("$work/tiny.yaml" --set "data={name: tokens, train: '$work/ids_*.bin', test: $work/ids_1.bin, type: uint16,
  context: 16, batch_size: 20, test_limit: 2}")
run "${ids[@]}" --out "$work/ids_run"
check 'it trains' equals $? 0
check '  on the files that match' equals "$(resolved train_tokens ids_run)" $((2 * $(resolved test_tokens ids_run)))
generate "$work/ids_run" --tokens 5 >"$work/out"
check 'nobody knows their text' contains "$work/log" 'data tokens is ids of a tokenizer that is not known'
run "${ids[@]}" --out "$work/ids_hf" --set data.tokens=hf --set data.vocabulary="$work/tokenizer"
check 'with their tokenizer it trains' equals $? 0
text=$(generate "$work/ids_hf" --prompt 'To be' --tokens 5)
check '  and writes a text' equals "${text::5}" 'To be'
refused 'a file without its type' 'ids_1.bin has no header of llm.c: want data.type: uint16 or uint32' \
  "${ids[@]}" --set data.type=header
refused 'answers without a mask' 'ids_1.bin has no .*ids_1.mask beside it: want one with data.loss_on: answers' \
  "${ids[@]}" --set data.loss_on=answers
python3 -c 'import sys; sys.stdout.buffer.write(b"\x0F" * -(-int(sys.argv[1]) // 8))' \
  $(($(stat -c %s "$work/ids_1.bin") / 2)) >"$work/ids_1.mask"
cp "$work/ids_1.mask" "$work/ids_2.mask"
run "${ids[@]}" --out "$work/ids_masked"
check 'with masks it trains' equals $? 0
check '  on what they name' test "$(loss_of ids_masked)" != "$(loss_of ids_run)"
run "${ids[@]}" --out "$work/ids_all" --set data.loss_on=all
check '  or on all' equals "$(loss_of ids_all)" "$(loss_of ids_run)"
printf x >>"$work/ids_2.mask"
refused 'a mask of another length' 'ids_2.mask has [0-9]+ bytes, want [0-9]+, a bit for each' "${ids[@]}"
rm "$work"/ids_*.mask
printf '\377\377' >>"$work/ids_2.bin"
run "${ids[@]}" --out "$work/ids_broken" --set data.tokens=hf --set data.vocabulary="$work/tokenizer"
check 'an id that the tokenizer lacks ends it' equals $? 1
check '  by file and place' contains "$work/log" 'ids_2.bin: number [0-9]+ is 65535, want 0 to 704'

echo '== lines of examples'
for i in {1..40}; do
  printf '{"messages": [{"role": "user", "content": "To be %s?"}, {"role": "assistant", "content": "Or not: %s"}]}\n' "$i" "$i"
done >"$work/lines"
lines=("$work/tiny.yaml" --set "data={name: jsonl, file: $work/lines, chat: zephyr, tokens: hf, vocabulary: $work/tokenizer,
  context: 64, batch_size: 12, test_limit: 2}")
run "${lines[@]}" --out "$work/lines_run"
check 'it trains' equals $? 0
check '  on a sample a line' equals "$(resolved train_samples lines_run)" 36
run "${lines[@]}" --out "$work/lines_parts" --set pipeline.microbatches=5
check 'microbatches with unequally many answers do not change its loss' equals "$(loss_of lines_parts)" "$(loss_of lines_run)"
run "${lines[@]}" --out "$work/lines_packed" --set data.packing=best_fit --set data.context=256 --set data.test_limit=1
check 'packed it trains on fewer samples' test "$(resolved train_samples lines_packed)" -lt 36

echo '== conversations'
chat() { timeout 60 "$thinwire" chat --stage_server "$stage_server" --temperature 0 --tokens 12 "$@" 2>"$work/log"; }
answers=$(printf 'To be 3?\n\nTo be 5?\n' | chat "$work/lines_run")
check 'each line has an answer' equals $? 0
check '  one stage gives the same' equals "$(printf 'To be 3?\nTo be 5?' | chat "$work/lines_run" --set pipeline.stages=1)" "$answers"
prompt=$'<|user|>\nTo be 3?</s>\n<|assistant|>\n'
text=$(generate "$work/lines_run" --specials ids --temperature 0 --tokens 12 --stop '</s>' --prompt "$prompt")
answer=$(printf 'To be 3?\n' | chat "$work/lines_run")
check 'it is what the model writes behind the line, as training spells it' equals "${text#"$prompt"}" "$answer"
prompt+="$answer"$'</s>\n<|user|>\nTo be 5?</s>\n<|assistant|>\n'
text=$(generate "$work/lines_run" --specials ids --temperature 0 --tokens 12 --stop '</s>' --prompt "$prompt")
check 'the next one is that behind all before' equals "${text#"$prompt"}" "${answers#"$answer"$'\n'}"
for i in {1..6}; do echo "To be $i?"; done | chat "$work/lines_run" >"$work/out"
check 'of a long one the beginning is forgotten' equals "$? $(wc -l <"$work/out")" '0 6'
check '  and said to be' contains "$work/log" '^The context is full: the first [0-9]+ messages are forgotten'
echo To | chat "$work/hf_run"
check 'a run of no conversations wants a format' equals $? 2
check '  by its flag' contains "$work/log" '^thinwire: --chat: want the name of a format, as .*hf_run has none .*has no chat template'
echo To | chat "$work/lines_run" --chat gemma --system 'Be.'
check 'a role that a format lacks is refused' equals $? 2
check '  by its flag' contains "$work/log" '^thinwire: --system: .*which format gemma does not have'
printf 'To be %s?' {1..40} | chat "$work/lines_run"
check 'so is a message that leaves no room' equals $? 2
check '  with both lengths' contains "$work/log" 'the message makes [0-9]+ tokens, want at most 52 in front of an answer'
mkfifo "$work/said"
rm "$work/out"  # is there again when an answer is
"$thinwire" chat "$work/lines_run" --stage_server "$stage_server" <"$work/said" >"$work/out" 2>"$work/log" &
chatting=$!
exec 4>"$work/said"
echo 'To be 3?' >&4
within 30 test -s "$work/out"
kill -INT "$chatting"
wait "$chatting"
check 'Ctrl-C ends it while it waits' equals $? 130
exec 4>&-
printf '{"messages": [{"role": "user", "content": 3}]}\n' >>"$work/lines"
refused 'a line that is none' 'lines:41: messages\[0\].content is a number, want a text' "${lines[@]}"
run "${lines[@]}" --out "$work/lines_skipped" --set data.on_error=skip
check 'skipped it is no sample' equals "$(resolved train_samples lines_skipped)" 36
check '  and told' contains "$work/log" '1 line was skipped .*, the first is lines:41: messages\[0\].content is a number'
check '  and kept' equals "$(resolved skipped_lines lines_skipped)" 1
sed -i '$d; s/"messages"/"turns"/' "$work/lines"
run "${lines[@]}" --out "$work/lines_turns" --set data.fields.messages=turns
check 'a key of another name may be read' equals "$(loss_of lines_turns)" "$(loss_of lines_run)"

echo '== folders of pictures'
for part in train val; do
  for class in cat dog; do
    mkdir -p "$work/pictures/$part/$class"
    cp -L "$pictures"/{rgb.png,halved.jpg,palette.png} "$work/pictures/$part/$class"
  done
done
pictures_run=(--set "data={name: images, dir: $work/pictures, size: 16, resize: 20, batch_size: 4}"
  --set 'model={name: resnet8, width: 4}' --set 'pipeline.cuts=[layer2]')
run "$work/tiny.yaml" "${pictures_run[@]}" --out "$work/pictures_run"
check 'it trains' equals $? 0
check '  on two classes' equals "$(resolved classes pictures_run | sort -u)" 2
head -c 900 "$pictures/halved.jpg" >"$work/pictures/train/cat/halved.jpg"
run "$work/tiny.yaml" "${pictures_run[@]}" --out "$work/pictures_broken"
check 'a broken picture ends it' equals $? 1
check '  by name' contains "$work/log" 'train/cat/halved.jpg: JPEG: '

echo '== official images'
python3 - "$work/mnist" <<'END'
import gzip, pathlib, struct, sys
folder = pathlib.Path(sys.argv[1])
folder.mkdir()
for part, count in ("train", 40), ("t10k", 20):
    pixels = bytes(i * 7 % 256 for i in range(784 * count))
    images = gzip.open(folder / f"{part}-images-idx3-ubyte.gz", "wb")
    images.write(struct.pack(">4I", 0x803, count, 28, 28) + pixels)
    images.close()
    labels = struct.pack(">2I", 0x801, count) + bytes(i % 10 for i in range(count))
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(labels)
END
mnist_run=("$work/tiny.yaml" --set "data={name: mnist, dir: $work/mnist, limit: 40, test_limit: 20, batch_size: 20}"
  --set 'model={name: resnet8, width: 4}' --set 'pipeline.cuts=[layer2]')
run "${mnist_run[@]}" --out "$work/mnist_run" --set data.verify=false
check 'images of one colour are trained on' equals $? 0
run "${mnist_run[@]}" --out "$work/mnist_verified"
check 'others than the official ones end it' equals $? 1
check '  by file' contains "$work/log" 'mnist/train-images-idx3-ubyte.gz has SHA-256 [0-9a-f]+ .*, want 440fcabf'

echo '== a padded vocabulary'
run "$work/tiny.yaml" --out "$work/run" --set model.classes=5000
check 'it trains' equals $? 0
rm "$work/text"
text=$(generate "$work/run" --prompt To --temperature 1000 --tokens 100)
check 'only what has a text is drawn, the run knows which, and its text may be gone' equals $? 0
check '  as much as was asked for' equals "${#text}" 102
printf '\xEF\xBB\xBF' | cat - "$work/whole" >"$work/text"
run "$work/tiny.yaml" --out "$work/marked"
check 'a byte order mark is no character' equals "$(resolved vocabulary marked)" "$(resolved vocabulary run)"
printf '\xEF\xBB\xBFTo' | generate "$work/run" --prompt - --tokens 1 >/dev/null
check '  of a prompt neither' equals $? 0

echo '== adapters and frozen blocks'
cp "$work/whole" "$work/text"
llama=("$work/tiny.yaml" --set 'model={name: llama, layers: 2, heads: 2, width: 16}' --set 'pipeline.cuts=[layers.0]')
run "${llama[@]}" --out "$work/base"
run "${llama[@]}" --set model.width=32 --out "$work/wide"
run "${llama[@]}" --out "$work/lora" --set init="$work/base/model" --set 'lora={rank: 2, modules: [q_proj, v_proj]}'
check 'adapters are trained' equals $? 0
check '  and stand in a folder for peft' test -s "$work/lora/adapter/adapter_model.safetensors" \
  -a -s "$work/lora/adapter/adapter_config.json"
run --resume "$work/lora" --set epochs=3
check '  and go on' equals $? 0
check '  for all epochs' equals "$(grep -c '"step"' "$work/lora/metrics.jsonl")" 6
"$thinwire" checkpoint export "$work/lora" --merge --out "$work/merged" >"$work/out"
check 'they are merged' equals $? 0
# evaluated ARGUMENTS...: the loss to 4 digits
evaluated() {
  timeout 60 "$thinwire" evaluate --stage_server "$stage_server" --json "$@" 2>"$work/log" |
    python3 -c 'import json, sys; print("%.4g" % json.load(sys.stdin)["rows"][0]["test"]["loss"])'
}
loss=$(evaluated "$work/lora")
check '  from a run with a loss' test -n "$loss"
check '  into a model of the same loss' equals "$(evaluated "${llama[@]}" --set init="$work/merged")" "$loss"
check '  which is not that of the base' test "$(evaluated "${llama[@]}" --set init="$work/base/model")" != "$loss"
over=("${llama[@]}" --set init="$work/base/model" --set "lora={init: $work/lora/adapter}")
check '  and stand over their base with the same loss' equals "$(evaluated "${over[@]}")" "$loss"
run "${over[@]}" --out "$work/onward"
check 'another run goes on with them' equals $? 0
check '  of their rank' equals "$(resolved rank onward)" 2
text=$(generate "$work/lora" --prompt To --temperature 0 --tokens 5)
check '  and write the same over the folder alone' equals \
  "$(generate "$work/base/model" --set lora.init="$work/lora/adapter" --prompt To --temperature 0 --tokens 5)" "$text"
cp -r "$work/base/model" "$work/copied"
run "${over[@]}" --set init="$work/copied" --out "$work/warned"
check 'a base of another name is told' contains "$work/log" 'warning: lora.init: .* is an adapter of .*/base/model, and init is'
mv "$work/lora/adapter" "$work/elsewhere"
run --resume "$work/onward" --set epochs=2
check '  and is resumed without their folder' equals "$? $(grep -c '"step"' "$work/onward/metrics.jsonl")" '0 4'
mv "$work/elsewhere" "$work/lora/adapter"
refused 'another rank than theirs' 'lora.rank: 4, but lora.init: .*adapter_config.json has r 2' "${over[@]}" --set lora.rank=4
refused 'another model than theirs' 'lora_A.weight is F32 \[2, 16\], want \[2, 32\]' "${over[@]}" \
  --set model.width=32 --set init="$work/wide/model"
refused 'a model with adapters where none are wanted' "lora_A.weight is no parameter of the model, an adapter's: want .lora." \
  "${llama[@]}" --set init="$work/lora/model"
run "$work/tiny.yaml" --out "$work/tied"
run "$work/tiny.yaml" --out "$work/frozen" --set init="$work/tied/model" --set 'freeze=[embedding]'
check 'a frozen embedding leaves the rest to train' equals $? 0
check '  trained, its gradients cross' contains "$work/tied/summary.json" '"name": "tied"'
check '  not where it is frozen' equals "$(grep -c '"name": "tied"' "$work/frozen/summary.json")" 0
python3 - "$work/tied/model" "$work/frozen/model" <<'END'
import json, pathlib, struct, sys
def tensor(folder, name):
    for path in pathlib.Path(folder).glob("*.safetensors"):
        file = path.read_bytes()
        (size,) = struct.unpack("<Q", file[:8])
        place = json.loads(file[8 : 8 + size]).get(name)
        if place:
            begin, end = place["data_offsets"]
            return file[8 + size + begin : 8 + size + end]
same = [tensor(sys.argv[1], name) == tensor(sys.argv[2], name)
        for name in ("transformer.wte.weight", "transformer.ln_f.weight")]
assert same == [True, False], same
END
check '  and keeps its bits' equals $? 0

echo '== the data that a run began with'
cp "$work/whole" "$work/text"
run "$work/tiny.yaml" --out "$work/began"
sed 's/or not/or tno/' "$work/whole" >"$work/text"
run --resume "$work/began" --set epochs=2
check 'other data of the same name end it before a step' equals $? 1
check '  which says so' contains "$work/log" 'the training data are others than those that the run began with \(digest'
check '  and trains nothing' equals "$(grep -c '"step"' "$work/began/metrics.jsonl")" 2
run --resume "$work/began" --set epochs=2
check '  the second time too' equals $? 1
mv "$work/text" "$work/other"
run --resume "$work/began" --set epochs=2 --set data.file="$work/other"
check 'other data by name are trained on' equals $? 0
check '  and told' contains "$work/out" 'the training data are others'
cp "$work/whole" "$work/text"
run "$work/tiny.yaml" --out "$work/began" --overwrite
sed 's/"train_digest": "[0-9a-f]*"/"train_digest": ""/' -i "$work"/began/checkpoints/*/manifest.json
sed 's/or not/or tno/' "$work/whole" >"$work/text"
run --resume "$work/began" --set epochs=2
check 'of a checkpoint without digests the summary tells' contains "$work/log" 'the training data are others'
cp "$work/whole" "$work/text"
run --resume "$work/began" --set epochs=2
check 'with its own data it goes on' equals $? 0

echo '== a checkpoint of another vocabulary'
refused 'a text of other characters' 'the data.s vocabulary is not the checkpoint.s: it has 957 tokens' \
  "$work/tiny.yaml" --set init="$work/exported" --set data.tokens=bpe --set "data.vocabulary=$bpe" \
  --set data.verify=false --set data.file="$work/text" --set init="$work/run/model"
refused 'characters in the place of byte pairs' 'it has [0-9]+ tokens, but 957 by .*/exported/vocabulary.json' \
  "$work/tiny.yaml" --set init="$work/exported"
rm "$work/exported"/{vocabulary.json,vocab.json,merges.txt}
refused 'a size that is no padding' 'vocab_size is 957, but data.tokens: characters of text makes .* model.classes: 957' \
  "$work/tiny.yaml" --set init="$work/exported"

echo '== files that are none'
rm "$work/text"
echo "$pointer" >"$work/text"
refused 'a pointer of Git LFS for a text' 'text: is a pointer of Git LFS to 1115394 bytes' "$work/tiny.yaml"
cp "$work/whole" "$work/text"
cp -r "$work/began/model" "$work/model"
echo "$pointer" >"$work/model/model.safetensors"
refused 'for weights' 'model.safetensors: is a pointer of Git LFS to 1115394 bytes' "$work/tiny.yaml" \
  --set init="$work/model"
echo '<!DOCTYPE html><html>' >"$work/model/model.safetensors"
refused 'a page for weights' 'model.safetensors: is an HTML page' "$work/tiny.yaml" --set init="$work/model"
echo '<!DOCTYPE html><html>' >"$work/model/config.json"
refused 'a page for a configuration' 'config.json: is an HTML page' "$work/tiny.yaml" --set init="$work/model"

echo "$failures failures"
(( failures == 0 ))
