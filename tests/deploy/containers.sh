#!/usr/bin/env bash
# The image and the Compose file as users get them: builds deploy/docker from a clean checkout, starts
# deploy/compose without Grafana, whose image only a registry has, and holds what it trains to a run
# outside of Compose and to the README. Then containers are killed, and bad input. Minutes; not part of
# tests/run.sh.
# usage: tests/deploy/containers.sh [--bundle TARBALL|FOLDER] [--work FOLDER]      as root
#   --bundle  no compilation: the programs of this tarball of deploy/bundle.sh, or of the folder of its --into,
#             which are those that a build from source packs
#   --work    where images lie, which is kept: the same commit is not built again. Default: one of its own, removed
# Wants the Debian packages: podman buildah runc netavark aardvark-dns iptables podman-compose
#   debootstrap git curl python3.   The base image and Prometheus' are made from Debian packages, too.
set -uo pipefail
here=$(realpath "$(dirname "$0")")
source "$here/../checks.sh"
root=$(realpath "$here/../..")
bundle='' work=''
while (( $# )); do
  case $1 in
    --bundle) bundle=$(realpath "$2") ;;
    --work) work=$(realpath -m "$2") ;;
    *) echo "containers.sh: unknown argument '$1', want --bundle or --work" >&2; exit 2 ;;
  esac
  shift 2
done
for tool in podman buildah runc iptables podman-compose debootstrap git curl python3; do
  command -v "$tool" >/dev/null || { echo "containers.sh: $tool is missing; the packages stand in this file" >&2; exit 2; }
done
(( EUID == 0 )) || { echo 'containers.sh: user is not root, want root' >&2; exit 2; }

kept=$work
[[ -n $work ]] || work=$(mktemp -d /var/tmp/thinwire-containers.XXXXXX)
mkdir -p "$work"
# A name of its own for everything that a run makes.
project=thinwire_test_$$
scratch=$work/scratch
rm -rf "$scratch"
mkdir -p "$scratch"

# Container tools with folders, networks and limits of their own, which run without systemd.
cat >"$work/containers.conf" <<END
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=20000:20000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "$work/tmp"
[network]
network_config_dir = "$work/networks"
END
cat >"$work/storage.conf" <<END
[storage]
driver = "vfs"
graphroot = "$work/storage"
runroot = "$work/run"
END
export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf
readonly image=localhost/thinwire:local checkout=$scratch/checkout

tidy() {
  podman ps -aq | xargs -r podman rm -f -t 2 >/dev/null
  podman network ls -q --filter "name=$project" | xargs -r podman network rm -f >/dev/null
  podman volume ls -q --filter "name=$project" | xargs -r podman volume rm -f >/dev/null
  podman volume prune -f >/dev/null
  ! mountpoint -q "$scratch/full" || umount "$scratch/full"
  rm -rf "$scratch"
  [[ -n $kept ]] || { podman system reset --force >/dev/null 2>&1; rm -rf "$work"; }
}
trap tidy EXIT
trap 'exit 130' INT TERM

minutes() { awk "BEGIN { printf \"%.1f minutes\", ($SECONDS - $1) / 60 }"; }
megabytes() { podman image inspect --format '{{.Size}}' "$1" | awk '{ printf "%.1f MB", $1 / 1e6 }'; }
compose() { podman-compose -p "$project" -f "$checkout/deploy/compose/compose.yaml" "$@"; }
container() { echo "${project}_$1_1"; }
exit_code() { podman inspect --format '{{.State.ExitCode}}' "$(container "$1")"; }
volume() { podman volume inspect --format '{{.Mountpoint}}' "${project}_$1"; }
log() { podman logs "$(container "$1")" 2>&1; }
logged() { log "$1" | grep -qE -- "$2"; }

# --- Images ---------------------------------------------------------------------------------------

# debian:12-slim as its makers do it: a minimal system without documentation and translations.
base_image() {
  local mirror system=$scratch/system
  mirror=$(apt-cache policy base-files | grep -oE 'https?://[^ ]+/debian( |$)' | head -n1)
  debootstrap --variant=minbase bookworm "$system" "${mirror:-http://deb.debian.org/debian}" >"$scratch/log" 2>&1 ||
    { tail -3 "$scratch/log"; return 1; }
  rm -rf "$system"/usr/share/{doc,info,locale,man,lintian}/* "$system"/var/{cache/apt,lib/apt/lists,log}/*
  printf 'path-exclude /usr/share/%s/*\n' doc info locale man lintian >"$system/etc/dpkg/dpkg.cfg.d/docker"
  cp -a /etc/apt/apt.conf.d/. "$system/etc/apt/apt.conf.d/"  # the mirror and proxy of this machine
  tar -C "$system" -c . | podman import -q --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    - docker.io/library/debian:12-slim >/dev/null
  rm -rf "$system"
}

prometheus_image() {
  local tag
  tag=$(grep -oE 'prom/prometheus:[^ ]+' "$checkout/deploy/compose/compose.yaml")
  mkdir -p "$scratch/prometheus"
  cat >"$scratch/prometheus/Dockerfile" <<'END'
FROM debian:12-slim
RUN apt-get update -q && apt-get install -y -q --no-install-recommends prometheus && rm -rf /var/lib/apt/lists/* && \
    install -d -o 65534 -g 65534 /prometheus
USER 65534
ENTRYPOINT ["prometheus"]
END
  buildah bud -q --isolation chroot --layers=false -t "docker.io/$tag" "$scratch/prometheus" >"$scratch/log" 2>&1
}

thinwire_image() {
  local dockerfile=deploy/docker/Dockerfile
  if [[ -n $bundle ]]; then  # the stages that compile give way to the tarball
    if [[ -d $bundle ]]; then
      cp -r "$bundle" "$checkout/thinwire"
    else
      tar -C "$checkout" -xf "$bundle"
      rm -rf "$checkout"/thinwire/{tests,experiments,README.md,lib/lib{gcc_s,stdc++,z,zstd,crypto,ssl}.so.*}
    fi
    sed '/^FROM .* AS tools$/,/^FROM .* AS system$/ { /^FROM .* AS system$/!d }; s|--from=build /thinwire/|thinwire/|' \
      "$checkout/$dockerfile" >"$checkout/$dockerfile.bundle"
    dockerfile+=.bundle
  fi
  (cd "$checkout" && buildah bud --format docker --isolation chroot --layers=false --target cpu -t "$image" \
    --build-arg "COMMIT=$commit" -f "$dockerfile" .) >"$scratch/build.log" 2>&1
}

echo '== images'
git clone -q "$root" "$checkout" || exit 1
commit=$(git -C "$checkout" rev-parse --short=12 HEAD)
started=$SECONDS
podman image exists docker.io/library/debian:12-slim || base_image || exit 1
echo "base: $(megabytes docker.io/library/debian:12-slim), $(minutes "$started")"
started=$SECONDS
label=org.opencontainers.image.revision
labelled() { podman image inspect --format "{{index .Labels \"$label\"}}" "$image" 2>/dev/null; }
if [[ $(labelled) != "$commit" ]]; then
  thinwire_image || { tail -20 "$scratch/build.log"; exit 1; }
  echo "thinwire: built in $(minutes "$started")"
fi
grep -q prom/prometheus <(podman images) || prometheus_image || { tail -5 "$scratch/log"; exit 1; }
in_image() { podman run --rm --read-only --no-healthcheck --network none "$image" "$@"; }
# As docker counts: the bytes of the files. podman counts the layers' tarballs.
bytes=$(podman run --rm --user 0 --no-healthcheck --network none "$image" du -sbx / | cut -f1)
echo "thinwire: $(awk "BEGIN { print $bytes / 1e6 }") MB of files, $(megabytes "$image") of layers"

check 'the image has at most 150 MB' test "$bytes" -le 150000000
check 'its user is a number other than 0' equals "$(in_image id)" \
  'uid=65532(thinwire) gid=65532(thinwire) groups=65532(thinwire)'
check 'its label names the commit' equals "$(labelled)" "$commit"
[[ -n $bundle ]] || check 'so does --version' contains <(in_image thinwire --version) "^thinwire $commit "
check 'it has a health check' contains <(podman image inspect "$image") '"healthy"'

# --- The quickstart by Compose --------------------------------------------------------------------

# same_numbers A B: two folders of runs hold the same numbers and the same parameters; times may differ.
# same_but_means A B: nor need means over messages, which a run that goes on sums up in two parts, in their
# last digits.
same_numbers() {
  python3 - "$1" "$2" "${3-}" <<'END'
import json, math, pathlib, sys
TIMES = {"time", "seconds", "samples_per_second", "evaluation_seconds"}
SENT = ("name", "codec", "parameters", "raw_bytes", "payload_bytes", "wire_bytes", "messages", "relative_error")
MEANS = {"relative_error"} if sys.argv[3] == "means" else set()
def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(part) for key, part in value.items() if key not in TIMES}
    return [without_times(part) for part in value] if isinstance(value, list) else value
def numbers(folder):
    folder = pathlib.Path(folder)
    lines = [without_times(json.loads(line)) for line in (folder / "metrics.jsonl").open()]
    summary = json.load((folder / "summary.json").open())
    boundaries = [{end: {field: boundary[end].get(field) for field in SENT} for end in ("activations", "gradients")}
                  for boundary in summary["boundaries"]]
    model = {path.name: path.read_bytes() for path in (folder / "model").iterdir()}
    return [summary["status"], summary["stages"], without_times(summary["epochs"]), boundaries, lines, model]
def equal(one, other, key=None):
    if key in MEANS and one is not None and other is not None:
        return math.isclose(one, other, rel_tol=1e-9)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name], name) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other
one, other = map(numbers, sys.argv[1:3])
assert one[0] == "completed" and len(one[4]) > 100 and len(one[5]) > 1, one[:2]
sys.exit(not equal(one, other))
END
}
same_but_means() { same_numbers "$1" "$2" means; }

# prometheus_says QUERY: the values of its series
prometheus_says() {
  curl -sf --data-urlencode "query=$1" "http://127.0.0.1:$PROMETHEUS_PORT/api/v1/query" |
    python3 -c 'import json, sys; print(*[series["value"][1] for series in json.load(sys.stdin)["data"]["result"]])'
}
says() { equals "$(prometheus_says "$1")" "$2" >/dev/null; }
# podman-compose 1.0.3 leaves the network of a project; one that is used could not be removed.
down() { compose down -v >"$scratch/log" 2>&1; podman network rm "${project}_default" >>"$scratch/log" 2>&1; }
nothing_left() {
  equals "$(podman ps -aq; podman network ls -q --filter "name=$project"; podman volume ls -q --filter "name=$project")" ''
}
free_port() { python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# up SERVICES...: `compose up` in a process group of its own, as a shell starts it; $! is its leader.
up() { set -m; compose up --no-build "$@" >"$scratch/up.log" 2>&1 & set +m; }
interrupt() { kill -INT -- "-$1"; within 20 gone "$1"; }
all_ended() { equals "$(podman ps -q)" ''; }

echo '== the quickstart by Compose'
install -d -o 65532 -g 65532 "$scratch/local"
podman run --rm --read-only --no-healthcheck --network none -v "$scratch/local:/runs" "$image" \
  thinwire run /experiments/quickstart.yaml --quiet
check 'it trains outside of Compose' equals $? 0

PROMETHEUS_PORT=$(free_port)
export PROMETHEUS_PORT
started=$SECONDS
up coordinator prometheus
leader=$!
check 'it trains' within 120 logged coordinator '^epoch 12/12'
echo "up to the last epoch: $(minutes "$started")"
check 'Prometheus sees four stages and the coordinator' within 15 says 'count(up == 1)' 5
check '  and its own accuracy is the last' within 15 says 'thinwire_test_accuracy{inference="compressed"}' \
  "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["epochs"][-1]["test"]["compressed"]["accuracy"])' \
    "$scratch/local/quickstart/summary.json")"
for service in stage-0 coordinator; do
  check "$service is healthy" podman healthcheck run "$(container "$service")"
done
as_stage() { podman exec "$(container stage-0)" bash -c "$1" 2>&1; }
check 'the root file system is read-only' contains <(as_stage 'touch /runs/x || touch /x') 'Read-only file system'
check 'nobody is root' equals "$(as_stage 'id -u; grep -E "^(CapEff|NoNewPrivs)" /proc/1/status' | tr -s '\n\t' ' ')" \
  '65532 CapEff: 0000000000000000 NoNewPrivs: 1 '
check 'no program runs without certificates' equals "$(podman ps --format '{{.Command}}' --no-trunc | grep -c -- --insecure)" 0
in_certs() { podman exec "$(container "$1")" ls /certs | xargs; }
check 'a stage sees its own key alone' equals "$(in_certs stage-0)" 'ca.pem stage.key stage.pem'
check '  which it cannot replace' contains <(as_stage 'rm -f /certs/stage.key') 'Read-only file system'
check 'the coordinator sees its own key alone' equals "$(in_certs coordinator)" 'ca.pem coordinator.key coordinator.pem'
check 'the coordinator ends' within 60 equals "$(podman wait "$(container coordinator)")" 0
check '  with 0' equals "$(exit_code coordinator)" 0
check 'its numbers are those of the run outside' same_numbers "$(volume runs)/quickstart" "$scratch/local/quickstart"
log coordinator >"$scratch/log"
grep -E '^epoch [0-9]+/12: ' "$root/README.md" | sed 's/; [0-9]* samples.*//' >"$scratch/readme"
check 'the README shows some of them' test -s "$scratch/readme"
while read -r line; do
  check "  $line" grep -qF "$line;" "$scratch/log"
done <"$scratch/readme"
started=$SECONDS
check 'Ctrl-C ends the rest' interrupt "$leader"
check '  all of it' within 10 all_ended
check '  stages with 0' equals "$(for k in 0 1 2 3; do exit_code "stage-$k"; done | xargs)" '0 0 0 0'
down
check 'down -v leaves nothing' nothing_left
echo "from Ctrl-C to nothing: $((SECONDS - started)) seconds"

echo '== Ctrl-C in the middle'
up coordinator prometheus
leader=$!
check 'it trains' within 120 logged coordinator '^epoch 2/12'
check 'Ctrl-C ends it' interrupt "$leader"
check '  all of it' within 15 all_ended
sleep 3
check '  for good, as nobody takes it for lost' all_ended
# The terminal's signal reaches the stages as soon as the coordinator; they wait for it to leave them.
check '  the coordinator with 0' equals "$(exit_code coordinator)" 0
check '  which its summary tells from an end' contains "$(volume runs)/quickstart/summary.json" '"status": "interrupted"'
down
check 'down -v leaves nothing' nothing_left

echo '== containers that are killed'
mkdir -p "$scratch/killed"
sed 's/^epochs: .*/epochs: 40/' "$root/experiments/quickstart.yaml" >"$scratch/killed/quickstart.yaml"
podman run --rm --read-only --no-healthcheck --network none -v "$scratch/local:/runs" -v "$scratch/killed:/experiments:ro" \
  "$image" thinwire run /experiments/quickstart.yaml --quiet --out /runs/undisturbed
check 'a run that nothing befalls ends' equals $? 0
export THINWIRE_EXPERIMENTS=$scratch/killed
state() { podman inspect --format "{{.State.$2}}" "$(container "$1")"; }
restarts() { podman inspect --format '{{.RestartCount}}' "$(container "$1")"; }
# kill_processes SERVICE...: these containers at once, from outside: to the engine they are lost, and not stopped
declare -A restarts_before
kill_processes() {
  local service
  local -a first=()
  for service in "$@"; do
    first+=("$(state "$service" Pid)")
    restarts_before[$service]=$(restarts "$service")
  done
  kill -KILL "${first[@]}"
  killed_at=${EPOCHREALTIME/,/.}
  within 10 gone "${first[@]}"
}
# is_back SERVICE...: the engine has started them again, by the policies of the Compose file
is_back() {
  local service
  for service in "$@"; do
    [[ $(state "$service" Running) == true ]] && (( $(restarts "$service") > restarts_before[$service] )) || return 1
  done
}
metrics() { cat "$(volume runs)/quickstart/metrics.jsonl" 2>/dev/null; }
epoch_is_over() { metrics | grep -q "\"type\":\"epoch\".*\"epoch\":$1,"; }
# The seconds from the last kill to the first step of what came after it.
seconds_to_go_on() {
  metrics | python3 -c '
import datetime, json, sys
killed_at = float(sys.argv[1])
for line in map(json.loads, sys.stdin):
    at = datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00")).timestamp()
    if line["type"] == "step" and at > killed_at:
        print(f"{at - killed_at:.1f}")
        break
' "$killed_at"
}
goes_on() { [[ -n $(seconds_to_go_on) ]]; }
events() {
  python3 -c 'import json, sys
print(*[" ".join(str(event[field]) for field in ("type", "stage")) for event in json.load(open(sys.argv[1]))["events"]], sep="\n")' \
    "$(volume runs)/quickstart/summary.json"
}
# The seconds from the loss of a stage, as the coordinator saw it, to the first step behind the checkpoint.
seconds_without_stage() {
  python3 -c 'import json, sys
print(*[round(event["seconds"], 1) for event in json.load(open(sys.argv[1]))["events"] if event["type"] == "restarted"])' \
    "$(volume runs)/quickstart/summary.json"
}

started=$SECONDS
compose up -d --no-build coordinator prometheus >"$scratch/log" 2>&1
check 'it trains' within 120 epoch_is_over 4
check 'a stage is killed' kill_processes stage-2
check '  and comes back' within 30 is_back stage-2
check '  and the run goes on' within 60 epoch_is_over 9
check 'the coordinator is killed' kill_processes coordinator
check '  and comes back' within 30 is_back coordinator
check '  and the run goes on' within 60 goes_on
echo "  from the coordinator's loss to the first step: $(seconds_to_go_on) s"
check '  further than it was' within 60 epoch_is_over 14
check 'all are killed at once, before it has ended' kill_processes coordinator stage-0 stage-1 stage-2 stage-3
check '  and come back' within 60 is_back coordinator stage-0 stage-1 stage-2 stage-3
check '  and the run goes on' within 60 goes_on
echo "  from the loss of all to the first step: $(seconds_to_go_on) s"
check 'it ends' within 180 logged coordinator '^epoch 40/40'
check '  with 0' within 60 equals "$(podman wait "$(container coordinator)")" 0
check '  with the numbers of a run that nothing befell' same_but_means "$(volume runs)/quickstart" "$scratch/local/undisturbed"
check '  telling what happened' equals "$(events)" $'restarted 2\nresumed None\nresumed None'
echo "  from the stage's loss to the first step: $(seconds_without_stage) s"
echo "40 epochs and three losses: $(minutes "$started")"

# again: `compose up` once more, and waits for the coordinator's end; its log is that of this time
again() {
  local since
  since=$(date +%s)
  compose up -d --no-build coordinator >"$scratch/log" 2>&1
  timeout 90 podman wait "$(container coordinator)" >/dev/null
  podman logs --since "$since" "$(container coordinator)" >"$scratch/log" 2>&1
}
again
check 'up once more leaves it as it is' equals "$(exit_code coordinator)" 0
check '  saying so' contains "$scratch/log" 'all 40 epochs are trained'
check '  with the same numbers' same_but_means "$(volume runs)/quickstart" "$scratch/local/undisturbed"
sed -i 's/^seed: .*/seed: 2/' "$scratch/killed/quickstart.yaml"
again
has_given_up() { [[ $(state coordinator Running) == false && $(restarts coordinator) == 3 ]]; }
check 'an experiment that is another is tried three times more' within 30 has_given_up
sleep 2
check '  and then no more' has_given_up
check '  ends with 2' equals "$(exit_code coordinator)" 2
log coordinator >"$scratch/log"
check '  and is named' contains "$scratch/log" 'cannot go on as another: .*seed: 1 -> 2'
unset THINWIRE_EXPERIMENTS
down
check 'down -v leaves nothing' nothing_left

# --- Other experiments, bad input -----------------------------------------------------------------

# coordinate ARGUMENTS...: `compose run coordinator`, whose exit code podman-compose prints, not returns
coordinate() {
  timeout 150 podman-compose -p "$project" -f "$checkout/deploy/compose/compose.yaml" \
    run -T --rm --no-deps coordinator "$@" >"$scratch/log" 2>&1 </dev/null
  return "$(grep -oP '^exit code: \K\d+' "$scratch/log" | tail -n1)"
}
# fails WHAT CODE TEXT COMMAND...: the command ends with CODE and says TEXT
fails() {
  local what=$1 code=$2 text=$3
  shift 3
  "$@"
  check "$what ends with $code" equals $? "$code"
  check '  and is named' contains "$scratch/log" "$text"
}
# bare ARGUMENTS...: podman run, without Compose
bare() { timeout 100 podman run --rm --read-only --no-healthcheck "$@" >"$scratch/log" 2>&1; }
network=${project}_default
# A coordinator beside Compose's: where the stages are, the coordinator's certificates, and flags for both.
as_coordinator=(--network "$network" -v "${project}_certs_coordinator:/certs:ro")
stages=('--stages=stage-{0..}:4700' --tls_cert=/certs/coordinator.pem --tls_key=/certs/coordinator.key --tls_ca=/certs/ca.pem)

echo '== experiments of a mounted folder'
mkdir -p "$scratch"/{experiments,cifar10/cifar10,empty}
export THINWIRE_EXPERIMENTS=$scratch/experiments
sed 's/cuts: .*\], micro/cuts: [layer2], micro/; s/^epochs: .*/epochs: 1/; s/^name: .*/name: two/' \
  "$root/experiments/quickstart.yaml" >"$scratch/experiments/two.yaml"
sed 's/^epochs: .*/epochs: 1000/; s/^name: .*/name: long/' \
  "$root/experiments/quickstart.yaml" >"$scratch/experiments/long.yaml"
sed 's|^data: .*|data: {name: cifar10, dir: /data/cifar10, batch_size: 2, limit: 20, test_limit: 4}|; s/^name: .*/name: cifar10/' \
  "$scratch/experiments/two.yaml" >"$scratch/experiments/cifar10.yaml"
python3 - "$scratch/cifar10/cifar10" <<'END'
import pathlib, sys
for name in ["test_batch"] + [f"data_batch_{k}" for k in range(1, 6)]:
    (pathlib.Path(sys.argv[1]) / f"{name}.bin").write_bytes(bytes(3073 * 4))
END
THINWIRE_DATA=$scratch/cifar10 compose up -d --no-build stage-0 stage-2 stage-3 >"$scratch/log" 2>&1
THINWIRE_DATA=$scratch/empty compose up -d --no-build stage-1 >"$scratch/log" 2>&1
check 'the first stages of four train one of two stages' coordinate /experiments/two.yaml --set seed=2
check '  and results lie in their volume' contains "$(volume runs)/two/summary.json" '"stages": 2'

in_volume() { podman run --rm --no-healthcheck --network none -v "${project}_$1" "${@:2}"; }
check 'data is brought into its volume' in_volume data:/data -v "$scratch/cifar10/cifar10:/from:ro" "$image" \
  cp -r /from /data/cifar10
podman volume rm "${project}_data" >/dev/null  # podman-compose removes the volumes that it made
check '  and results out of theirs' contains <(in_volume runs:/runs:ro "$image" tar -C /runs -c two | tar -t) '^two/summary.json$'

echo '== stop in the middle'
coordinate /experiments/long.yaml &
run=$!
running() { podman ps -q --filter "name=${project}_coordinator" | grep .; }
trains() { [[ -s $(volume runs)/long/metrics.jsonl ]]; }
check 'a long run trains' within 60 trains
started=$SECONDS
podman stop -t 30 "$(running)" >/dev/null 2>&1
wait "$run"
check 'stopped, it ends with 0' equals $? 0
check '  within seconds' test $((SECONDS - started)) -le 10
check '  and its summary tells it from an end' contains "$(volume runs)/long/summary.json" '"status": "interrupted"'

echo '== bad input'
fails 'an experiment that is not mounted' 2 '/experiments/none.yaml: .*No such file' coordinate /experiments/none.yaml
fails 'data that is missing at the last stage' 1 'stage 1 .*cannot read /data/cifar10/' coordinate /experiments/cifar10.yaml
podman rm -f -t 2 "$(container stage-1)" >/dev/null
fails 'a stage whose name does not resolve' 1 'stage 1 \(stage-1:4700\)' bare "${as_coordinator[@]}" --tmpfs /tmp \
  "$image" thinwire run /experiments/quickstart.yaml "${stages[@]}" --stages_wait 5 --out /tmp/run
compose up -d --no-build stage-1 >"$scratch/log" 2>&1
fails 'a coordinator without certificates' 1 'does it want a certificate' bare --network "$network" --tmpfs /tmp \
  "$image" thinwire run /experiments/quickstart.yaml "${stages[0]}" --stages_wait 2 --out /tmp/run
fails 'a coordinator with a certificate of a stage' 1 'this call wants coordinator.thinwire' bare --network "$network" \
  --tmpfs /tmp -v "${project}_certs_stage:/certs:ro" "$image" thinwire run /experiments/quickstart.yaml "${stages[0]}" \
  --tls_cert=/certs/stage.pem --tls_key=/certs/stage.key --tls_ca=/certs/ca.pem --stages_wait 2 --out /tmp/run
THINWIRE_RUNS=$scratch/empty
export THINWIRE_RUNS
fails 'a results folder of somebody else' 2 'runs/two: .*Permission denied' coordinate /experiments/two.yaml
fails 'a results volume that is read-only' 1 'runs/quickstart: .*Read-only file system' bare "${as_coordinator[@]}" \
  -v "${project}_runs:/runs:ro" "$image" thinwire run /experiments/quickstart.yaml "${stages[@]}"
mkdir "$scratch/full"
mount -t tmpfs -o size=1m,uid=65532 tmpfs "$scratch/full"
head -c 900k /dev/zero >"$scratch/full/of_others"
THINWIRE_RUNS=$scratch/full
fails 'a results volume that is full' 1 'runs/two/.*No space left on device' coordinate /experiments/two.yaml
umount "$scratch/full"
unset THINWIRE_RUNS
fails 'a port of the container that is busy' 1 'cannot serve metrics at 0.0.0.0:9700' \
  bare --network "container:$(container stage-0)" "$image" stage_server --metrics_listen 0.0.0.0:9700
fails 'a server of its own that anybody may use' 1 '--listen 0.0.0.0:4700: whoever reaches that address' \
  bare --network none "$image"
coproc python3 -c 'import socket, sys
taken = socket.create_server(("127.0.0.1", 0)); print(taken.getsockname()[1], flush=True); sys.stdin.read()'
read -r port <&"${COPROC[0]}"
fails 'a port of the machine that is busy' 126 "127.0.0.1:$port: .*address already in use" \
  bare --network "$network" -p "127.0.0.1:$port:9090" "$image"
kill "$COPROC_PID"

echo '== SIGTERM'
started=$SECONDS
podman stop -t 10 "$(container stage-0)" >/dev/null
check 'ends a stage with 0' equals "$(exit_code stage-0)" 0
check '  within seconds' test $((SECONDS - started)) -le 4
down
check 'down -v leaves nothing' nothing_left

echo '== a server of experiments'
serving() { podman-compose -p "$project" -f "$checkout/deploy/compose/compose.yaml" -f "$checkout/deploy/compose/compose.serve.yaml" "$@"; }
THINWIRE_SERVER_PORT=$(free_port)
export THINWIRE_SERVER_PORT
serving up -d --no-build server >"$scratch/log" 2>&1
# ask ARGUMENTS...: a command of another machine, which reaches the published port alone
ask() {
  timeout 150 podman run --rm --read-only --no-healthcheck --network host -v "${project}_certs_coordinator:/certs:ro" "$image" thinwire "$@" \
    --server "127.0.0.1:$THINWIRE_SERVER_PORT" --tls_cert=/certs/coordinator.pem --tls_key=/certs/coordinator.key \
    --tls_ca=/certs/ca.pem >"$scratch/log" 2>&1 </dev/null
}
is() { ask list; [[ $(awk -v run="$1" '$1 == run { print $2 }' "$scratch/log") == "$2" ]]; }
check 'it answers another machine' within 60 ask list
# submit NAME EPOCHS
submit() { check "  takes an experiment, $1" ask submit /experiments/quickstart.yaml --set "name=$1" --set "epochs=$2"; }
submit first 150
submit second 5
submit third 5
check 'the first is under way, with a checkpoint' within 60 has_checkpoint "$(volume runs)/queue/runs/first-1"
check '  and the second waits' is second-2 waits
check '  and the third is cancelled' ask cancel third-3
check 'the server is killed in the middle' kill_processes server
check '  and comes back' within 30 is_back server
check '  what was cancelled stays so' within 30 is third-3 cancelled
check 'the first is watched to its end' ask watch first-1
check '  it went on from its checkpoint' contains "$(volume runs)/queue/runs/first-1/summary.json" '"type": "resumed"'
check 'the second follows' within 120 is second-2 done
fails 'a caller without a certificate' 1 'does it want a certificate' bare --network host "$image" \
  thinwire list --server "127.0.0.1:$THINWIRE_SERVER_PORT"
serving down -v >"$scratch/log" 2>&1
down
check 'down -v leaves nothing' nothing_left

echo "$failures failures, $(minutes 0)"
(( failures == 0 ))
