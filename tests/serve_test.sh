#!/usr/bin/env bash
# A server of experiments: what it takes and refuses, shows, ends, and what survives it.
# usage: serve_test.sh THINWIRE STAGE_SERVER CERTS_SH
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

cat >"$work/short.yaml" <<'YAML'
name: short
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 64, limit: 640, test_limit: 100}
pipeline: {cuts: [layer1, layer2], stages: 2, threads: 1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
checkpoint: {every_steps: 3}
epochs: 4
YAML
# So long that no test sees its end.
sed 's/^name:.*/name: long/; s/^epochs:.*/epochs: 100000/' "$work/short.yaml" >"$work/long.yaml"

# serve NAME ARGUMENTS...: a server of the folder NAME; its address in $server, its pid in $pid
serve() {
  local name=$1
  shift
  : >"$work/$name.log"
  "$thinwire" serve --listen 127.0.0.1:0 --out "$work/$name" --stage_server "$stage_server" "$@" \
    >"$work/$name.log" 2>&1 &
  pid=$!
  pids+=("$pid")
  check "a server of $name" within 20 contains "$work/$name.log" '^serving on '
  server=$(sed -n -E 's/^serving on ([^;]*);.*/\1/p' "$work/$name.log")
  metrics=$(sed -n -E 's/.*metrics at (.*)$/\1/p' "$work/$name.log")
}
# ask COMMAND ARGUMENTS...: output in $work/out, exit code in $code
ask() {
  timeout 120 "$thinwire" "$1" --server "$server" "${@:2}" >"$work/out" 2>&1
  code=$?
}
state() { ask list && awk -v run="$1" '$1 == run {print $2}' "$work/out"; }
is() { [[ $(state "$1") == "$2" ]]; }
shows() { curl -sf "$metrics" | grep -qE "$1"; }
processes() { pgrep -f -- "$work/$1/" || true; }
none_left() { [[ -z $(processes "$1") ]]; }
# losses FOLDER: what training gave, without times
losses() {
  python3 - "$1" <<'PY'
import json, pathlib, sys
for line in pathlib.Path(sys.argv[1], "metrics.jsonl").read_text().splitlines():
    e = json.loads(line)
    print(e["type"], e["epoch"], e.get("step"), e.get("loss"), e.get("test"))
PY
}

echo '== taken, watched, listed'
serve queue
ask submit "$work/short.yaml" "$work/short.yaml" --set epochs=3
check 'two experiments are taken' equals "$code" 0
check '  under names of their own' equals "$(paste -sd' ' "$work/out")" 'short-1 short-2'
ask watch short-1
check 'a watch ends with the exit code of its run' equals "$code" 0
check '  shows what it prints' contains "$work/out" '^epoch 3/3: train loss .* test accuracy'
check '  and how it ended' contains "$work/out" '^short-1: done, test accuracy [0-9.]+ % compressed'
ask watch short-2
check 'the second comes after it' equals "$code" 0
ask list --format json
python3 - "$work/out" "$work/queue/runs" >"$work/listed" 2>&1 <<'PY'
import json, pathlib, sys
for run in json.loads(pathlib.Path(sys.argv[1]).read_text())["runs"]:
    summary = json.loads(pathlib.Path(run["folder"], "summary.json").read_text())
    assert summary["status"] == "completed" and run["state"] == "done" and run["exit_code"] == 0, run
    assert run["test"]["compressed"]["accuracy"] == summary["epochs"][-1]["test"]["compressed"]["accuracy"], run
    assert run["folder"] == f"{sys.argv[2]}/{run['run']}", run
PY
check 'the list has the accuracies of both summaries' equals "$(cat "$work/listed")" ''
"$thinwire" run "$work/short.yaml" --set epochs=3 --out "$work/alone" --stage_server "$stage_server" --quiet
check 'a run in the queue gives what one alone gives' equals "$(losses "$work/queue/runs/short-1")" "$(losses "$work/alone")"

echo '== refused'
refused() { # WHAT CODE TEXT COMMAND...
  ask "${@:4}"
  check "$1" equals "$code" "$2"
  check '  which says why' contains "$work/out" "$3"
}
sed 's/^epochs:/epoch:/' "$work/short.yaml" >"$work/wrong.yaml"
refused 'an unknown field' 2 'wrong.yaml:7: .*did you mean epochs\?' submit "$work/short.yaml" "$work/wrong.yaml"
refused 'an override that cannot be' 2 '--set epochs=0: epochs: 0, want at least 1' submit "$work/short.yaml" --set epochs=0
refused 'a file that is not there' 2 'none.yaml: cannot open' submit "$work/none.yaml"
refused 'an unknown run' 2 'unknown run "shrt-1"; nearest is "short-1"' watch shrt-1
refused '  to cancel too' 2 'unknown run "x"; nearest is' cancel x
ask list
check 'none of these was taken' equals "$(wc -l <"$work/out")" 2
busy=$server
timeout 20 "$thinwire" serve --listen "$busy" --out "$work/other" >"$work/out" 2>&1
check 'a port that is taken' equals $? 1
check '  is named' contains "$work/out" "cannot serve on $busy: Address already in use"
timeout 20 "$thinwire" serve --listen 127.0.0.1:0 --out "$work/queue" >"$work/out" 2>&1
check 'a folder that another server holds' equals $? 2
timeout 20 "$thinwire" serve --listen 0.0.0.0:0 --out "$work/other" >"$work/out" 2>&1
check 'an address that others reach, without certificates' equals $? 2
check '  names what to do' contains "$work/out" '--tls_cert'
server=127.0.0.1:1
refused 'a server that is not there' 1 'server 127.0.0.1:1: .*Connection refused' list
server=$busy

echo '== cancelled'
ask submit "$work/long.yaml"
ask submit "$work/short.yaml"
check 'a long run runs' within 30 shows '^thinwire_step\{run="long-[0-9a-f]+"\} '
check 'the server counts' within 10 shows '^thinwire_queue_runs\{state="waits"\} 1'
ask cancel short-4
check 'a run that waits is cancelled' equals "$code" 0
check '  at once' is short-4 cancelled
(ask watch long-3; echo "$code" >"$work/watched") &
watcher=$!
check 'the long one has a checkpoint' within 60 has_checkpoint "$work/queue/runs/long-3"
ask cancel long-3
check 'one that runs is cancelled' equals "$code" 0
check '  and listed so' is long-3 cancelled
wait "$watcher"
check '  its watch ends with 130' equals "$(cat "$work/watched")" 130
check '  its summary says interrupted' contains "$work/queue/runs/long-3/summary.json" '"status": "interrupted"'
check '  no process stays' within 10 none_left queue/runs
check '  its series are gone' equals "$(shows '^thinwire_step' && echo there)" ''

echo '== a run that fails'
ask submit "$work/short.yaml" --set data.name=cifar10 --set "data.dir=$work/none"
run=$(cat "$work/out")
ask watch "$run"
check 'its exit code is that of the watch' test "$code" -gt 0
ask list
check 'the list says why' contains "$work/out" "^$run +failed .*$work/none"

echo '== a server that is killed'
ask submit "$work/short.yaml" "$work/short.yaml" "$work/short.yaml" --set epochs=12
killed=($(cat "$work/out"))
ask cancel "${killed[2]}"
check 'the first is under way, with a checkpoint' within 60 has_checkpoint "$work/queue/runs/${killed[0]}"
kill -9 "$pid"
wait "$pid" 2>/dev/null
check 'no process outlives it' within 10 none_left queue
check 'the run was broken off' test ! -e "$work/queue/runs/${killed[0]}/summary.json"
serve queue
check 'what was cancelled stays so' is "${killed[2]}" cancelled
check 'what was done stays so' is short-1 done
for run in "${killed[0]}" "${killed[1]}"; do
  ask watch "$run"
  check "$run ends with 0" equals "$code" 0
done
check 'the first went on from its checkpoint' contains "$work/queue/runs/${killed[0]}/summary.json" '"type": "resumed"'
"$thinwire" run "$work/short.yaml" --set epochs=12 --out "$work/whole" --stage_server "$stage_server" --quiet
check '  to the numbers of a run that nothing befell' \
  equals "$(losses "$work/queue/runs/${killed[0]}")" "$(losses "$work/whole")"

echo '== a server that is asked to end'
ask submit "$work/long.yaml"
run=$(cat "$work/out")
check 'a run is under way' within 60 has_checkpoint "$work/queue/runs/$run"
(ask watch "$run"; echo "$code" >"$work/watched"; cp "$work/out" "$work/lost") &
watcher=$!
check '  and is watched' within 30 contains "$work/out" '^epoch '
kill -TERM "$pid"
wait "$pid"
check 'it ends with 0' equals $? 0
wait "$watcher"
check 'who watches is told' equals "$(cat "$work/watched")" 1
check '  that the queue is kept' contains "$work/lost" 'the server ends; the queue is kept'
check 'no process is left' none_left queue
serve queue
check 'the run goes on' within 30 is "$run" runs
ask cancel "$run"
check '  until it is cancelled' is "$run" cancelled
kill -TERM "$pid"
wait "$pid"

echo '== stage servers that run already, certificates'
"$certs_sh" "$work/certs" >/dev/null 2>&1
certificate() { echo "--tls_cert $work/certs/$1.pem --tls_key $work/certs/$1.key --tls_ca $work/certs/ca.pem"; }
addresses=()
for i in 0 1 2 3; do
  "$stage_server" --listen 127.0.0.1:0 --metrics_listen '' $(certificate stage) >"$work/stage$i" 2>&1 &
  pids+=($!)
  listens() { contains "$work/stage$i" 'serving on'; }
  check "stage server $i" within 10 listens
  addresses+=("$(sed -n -E 's/.*[^0-9](127\.0\.0\.1:[0-9]+).*/\1/p' "$work/stage$i" | head -1)")
done
groups=(--stages "${addresses[0]},${addresses[1]}" --stages "${addresses[2]},${addresses[3]}")
serve remote "${groups[@]}" $(certificate coordinator)
ask list
check 'without a certificate nobody is let in' equals "$code" 1
check '  and is told so' contains "$work/out" 'does it want a certificate'
ask list $(certificate stage)
check 'nor with that of a stage' contains "$work/out" "the caller's certificate is for stage.thinwire"
with=$(certificate coordinator)
ask submit "$work/short.yaml" --set pipeline.stages=3 $with
check 'an experiment of more stages than a group has is refused' equals "$code" 2
ask submit "$work/short.yaml" "$work/short.yaml" --set epochs=12 $with
check 'two are taken' equals "$code" 0
both() { has_checkpoint "$work/remote/runs/short-1" && has_checkpoint "$work/remote/runs/short-2"; }
check 'both groups train at once' within 60 both
kill -9 "$pid"
wait "$pid" 2>/dev/null
check 'no run outlives the server' within 10 none_left remote
serve remote "${groups[@]:2}" "${groups[@]:0:2}" $with
for run in short-1 short-2; do
  ask watch "$run" $with
  check "$run goes on, whatever the order of the groups, to its end" equals "$code" 0
  check '  with the numbers of a run that nothing befell' \
    equals "$(losses "$work/remote/runs/$run")" "$(losses "$work/whole")"
done

exit "$failures"
