#!/usr/bin/env bash
# What crosses three cuts of SmolLM2-135M when it is trained, and what codecs do to it. Captures a step's activations and
# gradients (pretrained_cuts.py), evaluates codecs of activations, and probes codecs of gradients.
# usage: tests/bench/pretrained_cuts.sh FOLDER OUT    the model (tests/parity/smollm2.sh) and a new folder. BATCHES=2 and
#        THINWIRE=bazel-bin/coordinator/thinwire in the environment.
set -euo pipefail
(( $# == 2 )) || { echo "pretrained_cuts.sh: want the model's folder and a folder to write to" >&2; exit 2; }
model=$(realpath "$1") out=$(realpath -m "$2")
cd "$(dirname "$0")/../.."
thinwire=${THINWIRE:-bazel-bin/coordinator/thinwire} batches=${BATCHES:-2}
mkdir -p "$out"
cat > "$out/step.yaml" <<YAML
init: $model
data: {name: shakespeare, context: 256, batch_size: 4}
pipeline: {cuts: [layers.7, layers.15, layers.22], stages: 1}
optimizer: {name: sgd, lr: 0.0001}
epochs: 1
YAML
"$thinwire" run "$out/step.yaml" --set data.limit=4 --set data.test_limit=1 --set 'capture={steps: [1]}' --out "$out/run"
/usr/bin/python3 -B tests/bench/pretrained_cuts.py "$out/run/captures/step-1.safetensors" | tee "$out/cuts.md"

beside='outliers=4, first_position=exact'
activations=()
for codec in 'uniform(bits=4, scope=token)' "uniform(bits=4, scope=token, $beside)" \
    "ecsq(rate=1.6, scope=token)" "ecsq(rate=1.6, scope=token, $beside)" \
    "ecsq(rate=1.6, scope=token, rotation=principal)" "ecsq(rate=1.6, scope=token, rotation=principal, first_position=exact)" \
    "ecsq(rate=1.6, scope=token, rotation=principal, $beside)"; do
  activations+=(--codec "$codec")
done
"$thinwire" evaluate "$model" --data shakespeare --set data.context=256 --samples 8 --calibrate 8 \
  --set 'pipeline.cuts=[layers.7, layers.15, layers.22]' "${activations[@]}" | tee "$out/activations.txt"

gradients=()
for with in '' ', outliers=4' ', first_position=exact' ", $beside"; do
  for codec in 'uniform(bits=4, scope=token, zero=on_grid' 'uniform(bits=2, scope=token, zero=on_grid' \
      'ecsq(rate=2, scope=token, rounding=dither' 'ecsq(rate=1, scope=token, rounding=dither'; do
    gradients+=(--codec "none | $codec$with)")
  done
done
"$thinwire" probe "$out/step.yaml" --batches "$batches" "${gradients[@]}" --out "$out/gradients.md"
