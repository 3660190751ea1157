#!/usr/bin/env bash
# deploy/slurm/thinwire.sbatch under Debian's Slurm, in a fresh Debian 12 or 13 with the package: two
# nodes, both of them this machine. Wants root, debootstrap and apt's mirror; takes some minutes.
# usage: tests/deploy/slurm.sh [FILE.deb]     default: deploy/debian/package.sh makes one
set -uo pipefail
cd "$(dirname "$0")/../.."
source tests/checks.sh
source tests/deploy/machine.sh
(( EUID == 0 )) || { echo 'slurm.sh: want root' >&2; exit 2; }
work=$(mktemp -d)
trap 'shut_down; rm -rf --one-file-system "$work"' EXIT

if (( $# == 0 )); then deploy/debian/package.sh "$work" || exit 1; fi
deb=$(realpath -e -- "${1-$(echo "$work"/thinwire_*.deb)}") || exit 2
case $(dpkg-deb -f "$deb" Version) in *+deb12) suite=bookworm ;; *) suite=trixie ;; esac
root=$work/root quickstart=/usr/share/thinwire/experiments/quickstart.yaml

echo "== Slurm on $suite"
new_root "$suite" "$root" systemd-sysv,dbus,procps || exit 1
cp "$deb" "$root/root/thinwire.deb"
in_root "$root" 'apt-get update -q && apt-get install -y -q --no-install-recommends /root/thinwire.deb \
  slurmctld slurmd slurm-client munge' >"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
cat >"$root/etc/slurm/slurm.conf" <<'CONF'
ClusterName=test
SlurmctldHost=machine
AuthType=auth/munge
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd-%n
SlurmdPidFile=/run/slurmd-%n.pid
SlurmdLogFile=/var/log/slurm/slurmd-%n.log
SlurmctldLogFile=/var/log/slurm/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=5
MpiDefault=none
NodeName=n[1-2] NodeHostname=machine NodeAddr=machine Port=[17001-17002] CPUs=4
PartitionName=all Nodes=n[1-2] Default=YES MaxTime=10 State=UP
CONF
# More processors than this machine may have, which Slurm is to believe.
sed -i '$ a SlurmdParameters=config_overrides' "$root/etc/slurm/slurm.conf"
# No control group is Slurm's here; version 22.05 cannot be told so, but lets those of version 1 alone.
case $suite in bookworm) plugin=cgroup/v1 ;; *) plugin=disabled ;; esac
echo "CgroupPlugin=$plugin" >"$root/etc/slurm/cgroup.conf"
mkdir -p "$root/work" "$root"/var/lib/slurm/slurmctld "$root"/var/lib/slurm/slurmd-n{1,2}
cp deploy/slurm/thinwire.sbatch "$root/work/"
in_root "$root" 'useradd --create-home user && chown user: /work && chown -R slurm: /var/lib/slurm
  systemctl disable slurmd slurmctld' >/dev/null 2>&1
boot "$root" || exit 1
on_machine 'systemctl start munge slurmctld; for n in n1 n2; do slurmd -N $n; done' >"$work/log" 2>&1
idle() { [[ $(on_machine "sinfo -h -o '%D %t'" 2>/dev/null) == '2 idle' ]]; }
check 'two nodes are idle' within 60 idle
(( failures == 0 )) || { on_machine 'systemctl status munge slurmctld; tail -n 20 /var/log/slurm/*.log'; exit 1; }

# as_user COMMAND: in /work
as_user() { on_machine "cd /work && exec setpriv --reuid=user --regid=user --clear-groups env HOME=/home/user bash -c '$1'"; }
# job ARGUMENTS...: waits for it and says how it ended; its log is job.log
job() { as_user "sbatch --wait --quiet --output=job.log $*"; }
log=$root/work/job.log
processes() { on_machine 'pgrep -lf "thinwire|stage_server"'; }
silent() { [[ -z $(processes) ]]; }

echo '== the quickstart'
as_user "thinwire run $quickstart --out local" >"$work/local" 2>&1
check 'is trained without Slurm' equals $? 0
numbers() { grep -E '^(epoch|layer)' "$1" | sed -E 's/; [0-9]+ samples.*//'; }
parameters() { (cd "$root/work/$1" && find . -name '*.safetensors' | sort | xargs sha256sum); }
job --ntasks=4 thinwire.sbatch "$quickstart" --out one
check 'by four tasks' equals $? 0
check '  to the same numbers' diff <(numbers "$log") <(numbers "$work/local")
check '  and parameters' equals "$(parameters one)" "$(parameters local)"
grep -E '^thinwire.sbatch|^epoch 12' "$log"
job --nodes=2 --ntasks-per-node=2 --distribution=cyclic --export=ALL,THINWIRE_PORT=4700 thinwire.sbatch "$quickstart"
check 'by four tasks on two nodes, dealt out in turn' equals $? 0
check '  at the ports that were asked for' contains "$log" 'stages machine:4700,machine:4701,machine:4702,machine:4703$'
check '  to the same parameters' equals "$(parameters "runs/$(sed -n 's/.*: job \([0-9]*\),.*/\1/p' "$log")")" \
  "$(parameters local)"
job --ntasks=2 thinwire.sbatch "$quickstart" --out two --set epochs=1
check 'in two stages by two tasks' equals $? 0
check '  where Prometheus finds them' equals "$(grep -c '"machine:' "$root/work/two/targets.json")" 3
replicas="--set replicas.count=2 --set pipeline.cuts=[layer2]"
as_user "thinwire run $quickstart --out carried_local $replicas" >"$work/carried" 2>&1
job --ntasks=4 thinwire.sbatch "$quickstart" --out carried --carriers 2 "$replicas"
check 'by two pipelines of two tasks, which carry two replicas' equals $? 0
check '  to the parameters of one pipeline' equals "$(parameters carried)" "$(parameters carried_local)"
check 'no process is left' within 20 silent

echo '== how a job fails'
# fails WITH TEXT ARGUMENTS...
fails() {
  local status
  job "${@:3}"
  status=$?
  equals "$status" "$1" && contains "$log" "$2"
}
check 'without an experiment' fails 2 'no experiment, want' thinwire.sbatch
check 'of an experiment that is not there' fails 2 'none.yaml: cannot be read in /work' thinwire.sbatch none.yaml
check 'of a field that is wrong' fails 2 'epochs: 0, want' --ntasks=4 thinwire.sbatch "$quickstart" --set epochs=0
check 'of data that is not there' fails 1 'data/cifar10' --ntasks=4 thinwire.sbatch \
  /usr/share/thinwire/experiments/cifar10/resnet18-w16.yaml --out none
check 'of a run that diverges' fails 1 'not finite|nan|inf' --ntasks=4 thinwire.sbatch "$quickstart" --out nan \
  --set optimizer.lr=1e30
check 'with fewer tasks than the experiment has stages' fails 2 'want 4' --ntasks=3 thinwire.sbatch "$quickstart" \
  --out three --set pipeline.stages=4
on_machine 'mv /usr/bin/stage_server /root/'
check 'without programs' fails 2 'stage_server is not on PATH on machine' thinwire.sbatch "$quickstart"
check '  but of a folder that is named' fails 0 '^epoch 1/1' --ntasks=4 --export=ALL,THINWIRE_BIN=/usr/lib/thinwire \
  thinwire.sbatch "$quickstart" --out named --set epochs=1
on_machine 'mv /root/stage_server /usr/bin/'
check 'with a port that is none' fails 2 'ports 65534' --ntasks=4 --export=ALL,THINWIRE_PORT=65534 thinwire.sbatch "$quickstart"
on_machine 'stage_server --listen 0.0.0.0:4702 --insecure --metrics_listen ""' 2>/dev/null &
check 'with a port that is taken' fails 1 '4702' --ntasks=4 --export=ALL,THINWIRE_PORT=4700 \
  thinwire.sbatch "$quickstart" --out taken --stages_wait=5
on_machine 'pkill stage_server'
check 'no process is left' within 20 silent

# long NAME: a job that runs until it is told to end; $id is its number
long() {
  rm -f "$log"
  id=$(as_user "sbatch --parsable --output=job.log --ntasks=4 thinwire.sbatch $quickstart --out $1 --set epochs=100000")
  within 60 grep -qs '^epoch 2/' "$log"
}
interrupted() { contains "$root/work/$1/summary.json" '"interrupted"'; }

echo '== a job that is cancelled'
check 'runs' long cancelled
commands() { on_machine 'ps -C stage_server,thinwire -o args=' ; }
check '  with a token in every program' equals "$(commands | grep -c -- --token_file)" 5
check '  and none that anybody may use' equals "$(commands | grep -c -- --insecure)" 0
# A stage that is killed as it starts may leave a file that it has not written to.
tokens() { on_machine 'find /tmp -maxdepth 1 -name "tmp.*" -size +0 -printf "%m %u\n"'; }
check '  in one file, which its user alone may read' equals "$(tokens)" '600 user'
check '  another run is refused' contains <(as_user "timeout 60 thinwire run $quickstart --out other --stages_wait 2 \
  --stages $(grep -oE 'stages machine:.*' "$log" | cut -d' ' -f2)" 2>&1) 'the call shows no token'
as_user "scancel $id"
check 'leaves no process' within 20 silent
check 'leaves no token' within 20 equals "$(tokens)" ''
check 'leaves a summary of what there was' interrupted cancelled

echo '== a job whose time is nearly up'
check 'runs' long late
as_user "scancel --batch --signal=USR1 $id"
check 'leaves no process' within 20 silent
check 'leaves a summary of what there was' interrupted late
ended() { [[ $(on_machine "scontrol show job $id") == *ExitCode=130:0* ]]; }
check 'ends with 130' within 20 ended

echo "$((SECONDS / 60)) minutes, $failures failures"
(( failures == 0 ))
