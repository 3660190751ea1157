#!/usr/bin/env bash
# Stage servers and their links, examined: what is measured, and what is said to be wrong.
# usage: doctor_test.sh THINWIRE STAGE_SERVER CERTS_SH
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2 certs_sh=$3
work=$(mktemp -d)
pids=()
cleanup() {
  end_jobs
  rm -rf "$work"
}
trap cleanup EXIT

# doctor ARGUMENTS...: stdout in $work/out, stderr in $work/err, exit code in $code
doctor() {
  timeout 120 "$thinwire" doctor "$@" >"$work/out" 2>"$work/err"
  code=$?
}
# holds EXPRESSION: of the diagnosis `d`
holds() {
  python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$work/out" "$1"
}

echo '== stages of its own'
doctor --stage_server "$stage_server" --format json
check 'nothing is wrong here' equals "$code" 0
check '  in two stages' holds 'len(d["stages"]) == 2 and d["problems"] == []'
check '  that say what they are' holds 'all(s["cores"] >= 1 and s["memory_bytes"] > 1e6 and s["simd_target"] and s["build_id"] for s in d["stages"])'
check '  with this clock, within what the calls leave open' \
  holds 'all(abs(s["clock_offset_seconds"]) <= s["clock_uncertainty_seconds"] + 1e-3 for s in d["stages"])'
check 'the link is measured both ways' \
  holds 'len(d["links"]) == 1 and min(d["links"][0][way + "_bits_per_second"] for way in ("down", "up")) > 1e8'
check '  and its round trip' holds '0 < d["links"][0]["round_trip_seconds"] < 0.1'
check 'codecs have their break-even rate' \
  holds 'all(abs(c["break_even_bits_per_second"] * c["codec_seconds_per_byte"] - 8 * (1 - c["payload_per_byte"])) < 1e-6 for c in d["codecs"])'
check '  in both directions' holds '{c["gradient"] for c in d["codecs"] if c["codec"] == "topk(ratio=0.1)"} == {False, True}'
check 'no process stays' equals "$(pgrep -f "thinwire-doctor" || true)" ''

echo '== servers that run already, with certificates'
"$certs_sh" "$work/certs" >/dev/null 2>&1
certificate() { echo "--tls_cert $work/certs/$1.pem --tls_key $work/certs/$1.key --tls_ca $work/certs/ca.pem"; }
addresses=()
for i in 0 1 2; do
  "$stage_server" --listen 127.0.0.1:0 --metrics_listen '' $(certificate stage) >"$work/stage$i" 2>&1 &
  pids+=($!)
  listens() { [[ -e $work/stage$i ]] && contains "$work/stage$i" 'serving on'; }
  check "stage server $i" within 10 listens
  addresses+=("$(sed -n -E 's/.*[^0-9](127\.0\.0\.1:[0-9]+).*/\1/p' "$work/stage$i" | head -1)")
done
all=$(IFS=,; echo "${addresses[*]}")
doctor --stages "$all" $(certificate coordinator)
check 'three servers are well' equals "$code" 0
check '  both links are there' equals "$(grep -cE '^[01] -> [12] +[0-9.]+ +[0-9.]+ +[0-9.]+ ' "$work/out")" 2
check '  and that is said' contains "$work/out" '^nothing is wrong$'
doctor --stages "$all" --min_mbit 1e9 $(certificate coordinator)
check 'a slow link is a problem' equals "$code" 1
check '  for each way of each' equals "$(grep -cE '^problem: link from stage [01] to stage [12]: .* Mbit/s (up|down), want at least 1e\+09' "$work/out")" 4
doctor --stages "$all"
check 'without a certificate nothing is told' equals "$code" 1
check '  and why' contains "$work/out" '^problem: stage 0 .*does it want a certificate'

echo '== pipelines that carry replicas'
doctor --carriers 2 --stage_server "$stage_server" --format json
check 'two of two stages are well' equals "$code" 0
check '  in all links that a run uses' holds '[(l["from_carrier"], l["from"], l["to_carrier"], l["to"]) for l in d["links"]] == [
  (0, 0, 0, 1), (1, 0, 1, 1), (0, 0, 1, 0), (0, 1, 1, 1)]'
check '  both ways' holds 'all(min(l["down_bits_per_second"], l["up_bits_per_second"]) > 1e7 for l in d["links"])'
doctor --stages "${addresses[0]},${addresses[1]}" --carriers 2 --min_mbit 1e9 $(certificate coordinator)
check 'a slow link between carriers is a problem' contains "$work/out" \
  '^problem: link from stage 0 of carrier 0 to stage 0 of carrier 1: .* Mbit/s down, want at least'
doctor --stages "$all" --carriers 2 $(certificate coordinator)
check 'three servers are no two pipelines' equals "$code" 2
check '  in words' contains "$work/err" '--stages: 3 addresses, want 2, .* for each of 2 carriers'

echo '== one that is not there, and one that a run has'
kill "${pids[2]}"
wait "${pids[2]}" 2>/dev/null
cat >"$work/long.yaml" <<YAML
name: long
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 64, limit: 640, test_limit: 100}
pipeline: {cuts: none, stages: 1, threads: 1}
optimizer: {name: sgd, lr: 0.05}
epochs: 100000
YAML
"$thinwire" run "$work/long.yaml" --out "$work/long" --stages "${addresses[0]}" $(certificate coordinator) >"$work/run" 2>&1 &
run=$!
pids+=("$run")
trains() { [[ -e $work/run ]] && contains "$work/run" '^epoch 1/'; }
check 'a run has the first' within 30 trains
doctor --stages "$all" --stages_wait 1 $(certificate coordinator)
check 'both are problems' equals "$code" 1
check '  the one that is leased' contains "$work/out" "^problem: stage 0 \(${addresses[0]}\): Acquire: "
check '  the one that is not there' contains "$work/out" "^problem: stage 2 \(${addresses[2]}\): .*Connection refused"
check '  and their links are not blamed' equals "$(grep -c '^problem: ' "$work/out")" 2
check 'the run trains on' kill -0 "$run"
kill -INT "$run"
wait "$run"
doctor --stages "${addresses[0]}" $(certificate coordinator)
check 'a server that is free again is well, alone' equals "$code" 0

echo '== usage'
doctor --stages 'a{0..}:1'
check 'an open range is refused' equals "$code" 2
check '  in words' contains "$work/err" 'an open range, want one that says how many'
doctor --stages nowhere
check 'an address that is none' equals "$code" 2

exit "$failures"
