#!/usr/bin/env bash
# Who is let in: certificates, roles and tokens between whole processes.
# usage: security_test.sh THINWIRE STAGE_SERVER CERTS
set -uo pipefail
source "$(dirname "$0")/checks.sh"
thinwire=$1 stage_server=$2 certs=$3
work=$(mktemp -d)
servers=()
cleanup() {
  end_jobs
  rm -rf "$work"
}
trap cleanup EXIT

cat >"$work/short.yaml" <<'YAML'
name: short
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 50, limit: 100, test_limit: 50}
pipeline: {cuts: [layer1], threads: 1}
optimizer: {name: sgd, lr: 0.05}
epochs: 1
YAML

# make DIR: an authority of its own, and what it has signed
make() { "$certs" "$@" >"$work/certs.log" 2>&1 || { cat "$work/certs.log"; exit 1; }; }
make "$work/ours"
make "$work/theirs"
mkdir "$work/late"
cp "$work"/ours/ca.* "$work/late"
make --days 0 --renew 0 "$work/late"
tls() { printf -- '--tls_cert\n%s/%s.pem\n--tls_key\n%s/%s.key\n--tls_ca\n%s/ca.pem\n' "$1" "$2" "$1" "$2" "$1"; }

# start NAME FLAGS...: two servers with these flags; sets `stages`
start() {
  local name=$1 i
  shift
  stages=
  for i in 0 1; do
    "$stage_server" --listen 127.0.0.1:0 --metrics_listen '' "$@" 2>"$work/$name-$i.log" &
    servers+=($!)
    within 20 grep -q 'serving on' "$work/$name-$i.log" || { echo "FAILED: $name"; cat "$work/$name-$i.log"; exit 1; }
    stages+=${stages:+,}$(grep -oE 'serving on [0-9.:]+' "$work/$name-$i.log" | cut -d' ' -f3)
  done
}
trains() {
  timeout -k 10 60 "$thinwire" run "$work/short.yaml" --overwrite --out "$work/run" --quiet "$@" >"$work/run.log" 2>&1
}
losses() { grep -oE '"loss": *[0-9.e+-]+' "$work/run/metrics.jsonl"; }
# refused WHAT CLIENT SERVER FLAGS...: a run with these flags is, soon, in words of both sides
refused() {
  local what=$1 client=$2 server=$3 since=$SECONDS
  shift 3
  trains --stages "$stages" "$@"
  check "$what is refused" equals $? 1
  check '  soon' test $((SECONDS - since)) -le 8
  check '  and told' contains "$work/run.log" "$client"
  [[ -z $server ]] || check '  and logged' within 5 contains "$work/$servers_name-0.log" "$server"
}

trains
check 'a run of its own stages' equals $? 0
plain=$(losses)

echo '== mutual TLS'
mapfile -t ours < <(tls "$work/ours" coordinator)
mapfile -t stage_flags < <(tls "$work/ours" stage)
servers_name=mutual
start mutual "${stage_flags[@]}"
trains --stages "$stages" "${ours[@]}"
check 'a run with certificates' equals $? 0
check 'has the losses of one without' equals "$(losses)" "$plain"
cat >>"$work/short.yaml" <<YAML
security: {tls_cert: $work/ours/coordinator.pem, tls_key: $work/ours/coordinator.key, tls_ca: $work/ours/ca.pem}
YAML
trains --stages "$stages"
check 'the experiment may name them' equals $? 0
replicas=(--set 'replicas={count: 2, contributions: {codec: uniform, bits: 8}}' --set pipeline.stages=1)
trains --stages "$stages" --carriers 2 "${replicas[@]}"
check 'carriers of replicas exchange with certificates' equals $? 0
carried=$(losses)
sed -i '/^security:/d' "$work/short.yaml"
trains "${replicas[@]}"
check '  as one without does' equals "$(losses)" "$carried"
mapfile -t theirs < <(tls "$work/theirs" coordinator)
mapfile -t late < <(tls "$work/late" coordinator)
foreign=("${theirs[@]:0:4}" --tls_ca "$work/ours/ca.pem")
refused 'no certificate' 'does it want a certificate \(--tls_cert' '' --stages_wait 2
refused 'a server of another authority' 'andshake failed|certificate' '' "${theirs[@]}"
refused 'a certificate of another authority' 'does it take this program.s certificate' 'gRPC: .*andshake' "${foreign[@]}"
refused 'an expired certificate' 'does it take this program.s certificate' 'gRPC: .*andshake' "${late[@]}"
refused 'a certificate of another role' 'certificate is for stage.thinwire, this call wants coordinator.thinwire' \
  'certificate is for stage.thinwire, this call wants coordinator.thinwire' "${stage_flags[@]}"
trains --stages "$stages" "${ours[@]:0:4}"
check 'half of the flags is an error' contains "$work/run.log" 'tls_ca is missing: tls_cert, tls_key and tls_ca belong together'

echo '== a new authority under running servers'
make "$work/next"
for file in stage.key stage.pem ca.pem; do cp "$work/next/$file" "$work/ours/$file.new"; done
for file in stage.key stage.pem ca.pem; do mv "$work/ours/$file.new" "$work/ours/$file"; done
mapfile -t next < <(tls "$work/next" coordinator)
renewed() { trains --stages "$stages" "${next[@]}"; }
check 'is taken' within 20 renewed
old=(--tls_cert "$work/ours/coordinator.pem" --tls_key "$work/ours/coordinator.key" --tls_ca "$work/ours/ca.pem")
refused 'what the old one has signed' 'does it take this program.s certificate' '' "${old[@]}"

echo '== a server that is no stage'
mapfile -t posing < <(tls "$work/next" coordinator)
start posing "${posing[@]}"
trains --stages "$stages" "${next[@]}"
check 'is refused' equals $? 1
check '  and named' contains "$work/run.log" "server's certificate is for coordinator.thinwire, want stage.thinwire|andshake failed"

echo '== a token'
echo 'what all of them know' >"$work/token"
echo 'what nobody else knows' >"$work/other"
echo 'short' >"$work/short_token"
servers_name=token
start token --token_file "$work/token"
trains --stages "$stages" --token_file "$work/token"
check 'lets in' equals $? 0
check 'to the same losses' equals "$(losses)" "$plain"
refused 'no token' 'the call shows no token \(--token_file\)' 'the call shows no token'
refused 'another token' "token is not this server's" "token is not this server's" --token_file "$work/other"
check 'neither of which is logged' equals "$(cat "$work"/token-*.log "$work"/run*.log | grep -cE 'of them know|nobody else')" 0
"$stage_server" --listen 127.0.0.1:0 --token_file "$work/short_token" 2>"$work/short.log"
check 'a short one is an error' equals $? 1
check '  that says how long' contains "$work/short.log" 'has 5 bytes, want at least 16'

echo '== an address that others reach'
timeout 20 "$stage_server" --listen 0.0.0.0:0 2>"$work/open.log"
check 'is refused without any of these' equals $? 1
check '  saying what to do' contains "$work/open.log" '--tls_cert.*--token_file.*--insecure'
"$stage_server" --listen 0.0.0.0:0 --metrics_listen '' --insecure 2>"$work/insecure.log" &
servers+=($!)
check 'and served at with --insecure' within 20 contains "$work/insecure.log" 'serving on 0.0.0.0'

echo "$failures failures"
(( failures == 0 ))
