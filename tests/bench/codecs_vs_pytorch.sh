#!/usr/bin/env bash
# Codecs beside what PyTorch users write instead, on the same captured tensors, one thread each. Runs
# of the two alternate; figures are medians over pairs. PyTorch's operators pack nothing.
# usage: tests/bench/codecs_vs_pytorch.sh FILE.safetensors...    captures of a run; see
#        docs/experiment_file.md. PAIRS=5 and THINWIRE=bazel-bin/coordinator/thinwire in the
#        environment.
set -euo pipefail
cd "$(dirname "$0")/../.."
thinwire=${THINWIRE:-bazel-bin/coordinator/thinwire} pairs=${PAIRS:-5}
(( $# > 0 )) || { echo "codecs_vs_pytorch.sh: want captured tensors, FILE.safetensors..." >&2; exit 2; }
[[ -x $thinwire ]] || { echo "codecs_vs_pytorch.sh: no $thinwire: bazel build --config=opt //coordinator:thinwire" >&2; exit 1; }
/usr/bin/python3 -c 'import torch' || { echo "codecs_vs_pytorch.sh: deploy/setup.sh --bench first" >&2; exit 1; }

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for (( pair = 0; pair < pairs; ++pair )); do
  for ratio in 0.05 0.1 0.3; do
    printf '{"operator": "topk %d %%", "ours": %s}\n' "$(/usr/bin/python3 -c "print(round(100 * $ratio))")" \
      "$("$thinwire" codecs --measure --codec "topk(ratio=$ratio)" --format json "$@" | tr -d '\n')" >> "$lines"
  done
  printf '{"operator": "uniform 8 bits", "ours": %s}\n' \
    "$("$thinwire" codecs --measure --codec 'uniform(bits=8)' --format json "$@" | tr -d '\n')" >> "$lines"
  printf '{"theirs": %s}\n' "$(/usr/bin/python3 -B tests/bench/codecs_in_pytorch.py "$@")" >> "$lines"
done

/usr/bin/python3 - "$lines" <<'PY'
import collections, json, statistics, sys

ours, theirs = collections.defaultdict(list), collections.defaultdict(list)  # bytes per second
for line in map(json.loads, open(sys.argv[1])):
    for row in line.get("ours", {"rows": []})["rows"]:
        for direction in ("encode", "decode"):
            ours[row["tensors"], line["operator"], direction].append(
                row[f"{direction}_bytes_per_second"])
    totals = collections.defaultdict(lambda: [0, 0.0])
    for row in line.get("theirs", []):
        kind = "gradient" if "gradient" in row["tensor"] else "activation"
        total = totals[kind, row["operator"], row["direction"]]
        total[0] += row["bytes"]
        total[1] += row["seconds"]
    for key, (size, seconds) in totals.items():
        theirs[key].append(size / seconds)

PAIRS = [(f"topk {p} %", f"{name} {p} %") for p in (5, 10, 30) for name in ("kthvalue", "topk")]
PAIRS.append(("uniform 8 bits", "quantize_per_tensor"))
print("| tensors | codec | PyTorch | encode, ours, GB/s | encode, PyTorch | ratio "
      "| decode, ours, GB/s | decode, PyTorch | ratio |")
print("|---|---|---|---|---|---|---|---|---|")
for kind in ("activation", "gradient"):
    for codec, operator in PAIRS:
        cells = []
        for direction in ("encode", "decode"):
            a, b = ours[kind, codec, direction], theirs[kind, operator, direction]
            if a and b:
                a, b = statistics.median(a), statistics.median(b)
                cells += [f"{a / 1e9:.2f}", f"{b / 1e9:.3f}", f"**{a / b:.1f}**"]
            elif a:
                cells += [f"{statistics.median(a) / 1e9:.2f}", "", ""]
            else:
                cells += ["", "", ""]
        print(f"| {kind} | {codec} | {operator} | " + " | ".join(cells) + " |")
PY
