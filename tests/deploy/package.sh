#!/usr/bin/env bash
# The Debian package on a machine of its own: a fresh Debian with systemd, booted, where the package is
# installed by apt, its stages are services, an experiment is trained on them, the package is upgraded,
# removed and purged. Then the same package on the other Debian. Wants root, debootstrap and apt's
# mirror; takes some minutes and 1 GB in $TMPDIR.
# usage: tests/deploy/package.sh [FILE.deb]     default: deploy/debian/package.sh makes one. The Debian
#        is the one that the file's version names (…+deb12, …+deb13)
set -uo pipefail
cd "$(dirname "$0")/../.."
source tests/checks.sh
source tests/deploy/machine.sh
(( EUID == 0 )) || { echo 'package.sh: want root' >&2; exit 2; }
work=$(mktemp -d)
trap 'shut_down; rm -rf --one-file-system "$work"' EXIT

if (( $# == 0 )); then deploy/debian/package.sh "$work" || exit 1; fi
deb=$(realpath -e -- "${1-$(echo "$work"/thinwire_*.deb)}") || exit 2
version=$(dpkg-deb -f "$deb" Version)
case $version in
  *+deb12) suite=bookworm other=trixie ;;
  *+deb13) suite=trixie other=bookworm ;;
  *) echo "package.sh: $deb is of version $version, want one that ends in +deb12 or +deb13" >&2; exit 2 ;;
esac
root=$work/$suite
quickstart=/usr/share/thinwire/experiments/quickstart.yaml
ports=(4700 4701 4702 4703)
units=("${ports[@]/#/thinwire-stage@}")
stages=$(printf ',127.0.0.1:%s' "${ports[@]}")
stages=${stages:1}

echo "== $version on $suite"
new_root "$suite" "$root" systemd-sysv,dbus,procps || exit 1
# What systemd and apt write when they run is not the package's; .updated is systemd's stamp of a boot.
files() {
  (cd "$root" && find etc usr var opt srv home root -xdev |
    grep -vE '^(var/(lib/(apt|dpkg|systemd)|cache|log)/|(etc|var)/\.updated$)' | sort)
}
# systemd makes folders for all services like ours and for its own.
since() {
  files | diff "$1" - | grep '^[<>]' |
    grep -vE ' (var/lib/private$|var/tmp/systemd-private-.*systemd-logind|etc/(ld\.so\.cache|machine-id|\.pwd\.lock)$)'
}
in_root "$root" 'apt-get update -q' >"$work/log" 2>&1
in_root "$root" 'apt-get install -y -q --no-install-recommends curl openssl' >"$work/log" 2>&1
files >"$work/before"
cp "$deb" "$root/root/thinwire.deb"
in_root "$root" 'apt-get install -y -q --no-install-recommends /root/thinwire.deb && apt-get clean' >"$work/log" 2>&1
check 'apt installs it' equals $? 0
tail -n3 "$work/log"
rm "$root/root/thinwire.deb"
check 'a second Debian package of it is at hand' dpkg-deb -R "$deb" "$work/unpacked"
sed -i "s/^Version: .*/Version: $version.1/" "$work/unpacked/DEBIAN/control"
dpkg-deb --root-owner-group --build "$work/unpacked" "$root/root/newer.deb" >/dev/null

echo '== a machine with four stages as services'
boot "$root" || exit 1
check 'nothing was started by itself' equals "$(on_machine 'pgrep -c stage_server')" 0
on_machine "systemctl enable --now ${units[*]}" >"$work/log" 2>&1
check 'the stages start' equals $? 0
serving() { on_machine 'curl -fs http://127.0.0.1:9700/healthz http://127.0.0.1:9703/healthz' >/dev/null; }
check '  and serve' within 20 serving
# A number of those that systemd gives away; the name wants libnss-systemd.
owner=$(on_machine 'ps -o uid= -C stage_server | sort -u | xargs')
check '  as one user of their own' test "$owner" -ge 61184 -a "$owner" -le 65519
on_machine 'systemd-analyze security thinwire-stage@4700' | tail -n1
on_machine "cd /root && thinwire run $quickstart --out services --stages $stages" >"$work/services" 2>&1
check 'the quickstart is trained' equals $? 0
on_machine "cd /root && thinwire run $quickstart --out local" >"$work/local" 2>&1
check '  and by stages that thinwire starts' equals $? 0
numbers() { grep -E '^(epoch|layer)' "$1" | sed -E 's/; [0-9]+ samples.*//'; }
numbers "$work/services" | tail -n7
check '  to the same numbers' diff <(numbers "$work/services") <(numbers "$work/local")
parameters() { on_machine "cd /root/$1 && find . -name '*.safetensors' | sort | xargs sha256sum"; }
check '  and parameters, those of checkpoints too' equals "$(parameters services)" "$(parameters local)"
check '  which there are' equals "$(parameters local | grep -c ' \./model/.*\.safetensors$')" 4

echo '== what goes wrong is said'
on_machine 'systemctl start thinwire-stage@47x0' >"$work/log" 2>&1
journal() { on_machine "journalctl -o cat -u '$1'" | grep -qE "$2"; }
check 'an instance that is no port' within 10 journal thinwire-stage@47x0 'thinwire-stage@47x0, want a port'
check '  is not started again' within 10 on_machine 'systemctl is-failed -q thinwire-stage@47x0'
on_machine 'systemctl start thinwire-stage@9700'
check 'a port that is taken' within 10 journal thinwire-stage@9700 '9700.*(in use|bind)'
on_machine 'systemctl stop thinwire-stage@9700'
on_machine "cd /root && thinwire run /usr/share/thinwire/experiments/cifar10/resnet18-w16.yaml --out none --stages $stages" \
  >"$work/log" 2>&1
check 'data that is not there fails the run' equals $? 1
check '  which names it' contains "$work/log" 'data/cifar10'
# with_state_in FOLDER: an epoch whose stages keep their state of feedback there
with_state_in() {
  on_machine "cd /root && thinwire run $quickstart --out state --overwrite --stages $stages --set epochs=1 \
    --set compression.gradients.feedback='{kind: ef, dir: $1}'" >"$work/log" 2>&1
}
with_state_in /usr
check 'state outside of /var/lib/thinwire fails the run' equals $? 1
check '  naming the flag that allows no other folder' contains "$work/log" \
  'feedback.dir: /usr .*want a path below /var/lib/(private/)?thinwire, .*--state'
# Nor may a stage write elsewhere where its flag would let it: systemd holds it to that folder.
on_machine "sed -i 's|^FLAGS=.*|FLAGS=\"--state /\"|' /etc/default/thinwire-stage; systemctl restart ${units[*]}"
check 'with --state / the stages serve' within 20 serving
with_state_in /usr
check '  and may not write outside of it either' equals $? 1
check '  which is said' contains "$work/log" '/usr.*Read-only file system'
on_machine "sed -i 's|^FLAGS=.*|FLAGS=|' /etc/default/thinwire-stage; systemctl restart ${units[*]}"
check 'with the flags as they come they serve again' within 20 serving
on_machine 'mkdir -p /var/lib/thinwire/state; chown --reference=/var/lib/thinwire/. /var/lib/thinwire/state'
with_state_in state
check 'state in /var/lib/thinwire does not fail it' equals $? 0

echo '== certificates'
on_machine "sed -i 's/^ADDRESS=.*/ADDRESS=192.0.2.1/' /etc/default/thinwire-stage; systemctl restart thinwire-stage@4700"
check 'without them no stage listens where others are' within 10 journal thinwire-stage@4700 \
  'listen 192.0.2.1:4700: whoever reaches that address'
on_machine '/usr/share/thinwire/certs.sh /root/certs && cp /root/certs/{ca.pem,stage.pem,stage.key} /etc/thinwire/tls/' \
  >"$work/log" 2>&1
on_machine 'systemctl reset-failed; systemctl restart "thinwire-stage@*"'
open() { on_machine 'curl -fs http://192.0.2.1:9700/healthz http://192.0.2.1:9703/healthz' >/dev/null; }
check 'with them they do' within 20 open
far=${stages//127.0.0.1/192.0.2.1}
on_machine "cd /root && thinwire run $quickstart --out tls --stages $far --tls_cert certs/coordinator.pem \
  --tls_key certs/coordinator.key --tls_ca certs/ca.pem" >"$work/tls" 2>&1
check '  and train' equals $? 0
check '  to the same numbers' diff <(numbers "$work/tls") <(numbers "$work/local")
on_machine "cd /root && thinwire run $quickstart --out plain --stages $far --stages_wait 2" >"$work/log" 2>&1
check '  but for nobody else' contains "$work/log" 'does it want a certificate'
on_machine 'rm -rf /root/certs /root/tls /root/plain; rm /etc/thinwire/tls/*
  sed -i "s/^ADDRESS=.*/ADDRESS=127.0.0.1/" /etc/default/thinwire-stage; systemctl restart "thinwire-stage@*"'

echo '== an upgrade'
on_machine "sed -i 's/^FLAGS=.*/FLAGS=\"--log_format json\"/' /etc/default/thinwire-stage"
before=$(on_machine 'pgrep -d, stage_server')
on_machine 'apt-get install -y -q --no-install-recommends /root/newer.deb; rm /root/newer.deb' >"$work/log" 2>&1
check 'is installed' equals "$(on_machine 'dpkg-query -W -f "\${Version}" thinwire')" "$version.1"
check 'starts the stages again' on_machine "! pgrep stage_server | grep -qxE '${before//,/|}'"
check '  and they serve' within 20 serving
check 'leaves the settings as they were edited' journal thinwire-stage@4700 '^\{.*"serving"'

echo '== removed and purged'
on_machine 'cd /root && rm -r services local state none; apt-get remove -y -q thinwire' >"$work/log" 2>&1
check 'removed, no stage is left' equals "$(on_machine 'pgrep -c stage_server')" 0
check '  nor a unit that failed for it' equals "$(on_machine 'systemctl list-units --no-legend --state=active "thinwire-stage@*"')" ''
check '  but the settings' test -e "$root/etc/default/thinwire-stage"
on_machine 'apt-get purge -y -q --autoremove thinwire' >"$work/log" 2>&1
check 'purged' equals $? 0
check '  nothing is left' equals "$(since "$work/before")" ''
shut_down

echo '== lintian of this Debian'
cp "$deb" "$root/root/${deb##*/}"
in_root "$root" 'apt-get install -y -q --no-install-recommends lintian' >"$work/log" 2>&1
in_root "$root" "lintian --allow-root --fail-on error /root/*.deb" >"$work/log" 2>&1
check 'has no error' equals $? 0
cat "$work/log"

echo "== on $other"
new_root "$other" "$work/$other" ca-certificates || exit 1
cp "$deb" "$work/$other/root/thinwire.deb"
in_root "$work/$other" 'apt-get update -q && apt-get install -y -q /root/thinwire.deb' >"$work/log" 2>&1
check 'apt refuses it' test $? -ne 0
check '  naming the libraries' contains "$work/log" 'thinwire : Depends: lib.* but it is not installable'
grep -A3 'thinwire : Depends' "$work/log"

echo "$((SECONDS / 60)) minutes, $failures failures"
(( failures == 0 ))
