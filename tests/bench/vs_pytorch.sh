#!/usr/bin/env bash
# One stage on this machine beside PyTorch (channels-last, the same oneDNN): CIFAR ResNet-18, batch
# 100, forward, backward and SGD. Runs of the two alternate, so that what else the machine does
# meets both; ratios are medians over pairs of PyTorch's step to ours, above 1 is faster: of wall
# time, and of the processor time of all threads, which a busy machine disturbs less.
# usage: tests/bench/vs_pytorch.sh [STEP_BENCH]    default bazel-bin/tests/step_bench
#        PAIRS=5 THREADS=2 CONFIGS="16:fp32 64:fp32 16:bf16 64:bf16" in the environment, and
#        OMP_WAIT_POLICY=passive where other processes use the cores too
set -euo pipefail
cd "$(dirname "$0")/../.."
bench=${1:-bazel-bin/tests/step_bench}
pairs=${PAIRS:-5} threads=${THREADS:-$(nproc)}
[[ -x $bench ]] || { echo "vs_pytorch.sh: no $bench: bazel build --config=opt //tests:step_bench" >&2; exit 1; }
/usr/bin/python3 -c 'import torch' || { echo "vs_pytorch.sh: deploy/setup.sh --bench first" >&2; exit 1; }

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for config in ${CONFIGS:-16:fp32 64:fp32 16:bf16 64:bf16}; do
  width=${config%:*} precision=${config#*:}
  steps=$(( width >= 64 ? 3 : 15 ))
  options=(--width "$width" --precision "$precision" --threads "$threads" --batch 100 --steps "$steps")
  for (( pair = 0; pair < pairs; ++pair )); do
    ours=$("$bench" "${options[@]}")
    theirs=$(/usr/bin/python3 -B tests/bench/torch_step.py "${options[@]}")
    printf '{"ours": %s, "theirs": %s}\n' "$ours" "$theirs" >> "$lines"
  done
done

/usr/bin/python3 - "$lines" <<'PY'
import collections, json, statistics, sys

groups = collections.defaultdict(list)
for line in open(sys.argv[1]):
    pair = json.loads(line)
    groups[pair["ours"]["width"], pair["ours"]["precision"]].append(pair)
first = next(iter(groups.values()))[0]
print(f'threads: {first["ours"]["threads"]} ours, {first["theirs"]["threads"]} PyTorch '
      f'{first["theirs"]["torch"]}; oneDNN uses {first["ours"]["isa"]}')
print("| width | type | pairs | ours, images/s | PyTorch, images/s | ratio (least to greatest) "
      "| ratio of processor time |")
print("|---|---|---|---|---|---|---|")
for (width, precision), all_pairs in groups.items():
    speed = {side: statistics.median(p[side]["images_per_second"] for p in all_pairs)
             for side in ("ours", "theirs")}
    wall, cpu = (sorted(p["theirs"][key] / p["ours"][key] for p in all_pairs)
                 for key in ("step_seconds", "step_cpu_seconds"))
    print(f'| {width} | {precision} | {len(wall)} | {speed["ours"]:.0f} | {speed["theirs"]:.0f} '
          f'| **{statistics.median(wall):.2f}** ({wall[0]:.2f} to {wall[-1]:.2f}) '
          f'| {statistics.median(cpu):.2f} ({cpu[0]:.2f} to {cpu[-1]:.2f}) |')
PY
