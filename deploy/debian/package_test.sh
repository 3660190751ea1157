#!/usr/bin/env bash
# What is in the Debian package that package.sh makes of given programs; installs nothing.
# Wants the packages dpkg-dev, lintian, man-db and systemd (systemd-analyze).
# usage: package_test.sh THINWIRE STAGE_SERVER
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../tests/checks.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work"/{programs,out,again,root,other}
cp -L "$1" "$work/programs/thinwire"
cp -L "$2" "$work/programs/stage_server"
export SOURCE_DATE_EPOCH=1700000000 LC_ALL=C.UTF-8

# package OUTPUT ARGUMENTS...: its output is in the log
package() { "$here/package.sh" "${@:2}" "$1" >"$work/log" 2>&1; }
root=$work/root thinwire=$work/root/usr/bin/thinwire

echo '== the package'
check 'is made' package "$work/out" --programs "$work/programs"
deb=$(echo "$work"/out/*.deb)
read -r _ commit _ < <("$work/programs/thinwire" --version)
release=$(. /etc/os-release && echo "deb$VERSION_ID")
check 'its name says release, time, commit and Debian' equals "${deb##*/}" \
  "thinwire_0.1~git202311142213.$commit+${release}_amd64.deb"
check 'is made again' package "$work/again" --programs "$work/programs"
check '  to the last byte' cmp "$deb" "$work"/again/*.deb
dpkg-deb -f "$deb" Depends >"$work/depends"
check 'depends on what the programs are linked with' contains "$work/depends" 'libgrpc.*libprotobuf'
lintian --fail-on error --display-level '>=warning' --no-tag-display-limit "$deb" >"$work/lintian" 2>&1
check 'lintian sees no error' equals $? 0
cat "$work/lintian"

echo '== refusals'
printf '#!/bin/sh\necho "stage_server another gcc"\n' >"$work/other/stage_server"
cp "$work/programs/thinwire" "$work/other/"
chmod +x "$work/other/stage_server"
refused() { ! package "$work/out" --programs "$1" && contains "$work/log" "$2"; }
check 'programs of two builds' refused "$work/other" "stage_server of another, want one build"
check 'a folder without programs' refused "$work/out" 'out/thinwire --version fails'
check 'a folder that is not there' refused "$work/none" "none', want a folder"

echo '== what it installs'
dpkg-deb -x "$deb" "$root"
(cd "$root" && dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./md5sums | md5sum --check --quiet) >"$work/log" 2>&1
check 'the checksums are right' equals $? 0
(cd "$work" && "$thinwire" run "$root/usr/share/thinwire/experiments/quickstart.yaml" --out run \
  --set epochs=1) >"$work/log" 2>&1
check 'trains with the stages beside it' contains "$work/log" '^epoch 1/1'

"$root/usr/share/thinwire/certs.sh" "$work/certs" >"$work/log" 2>&1
check 'makes certificates' test -s "$work/certs/stage.pem"

echo '== man pages'
# flags_of COMMAND...: the flags that its --help has
flags_of() { "$@" --help | grep -oE '^  (-[a-z],)?--[a-z_]+' | grep -oE -- '--[a-z_]+'; }
subcommands() { "$thinwire" --help | sed -n '/^Subcommands:/I,$ s/^  \([a-z]*\) .*/\1/p'; }
# page_of COMMAND...: has every flag and nothing that man warns of
page_of() {
  local name=${1##*/} flag
  name+=${2:+-$2}
  man --warnings=w --local-file "$root/usr/share/man/man1/$name.1.gz" 2>"$work/warnings" |
    col -b >"$work/page" || return 1
  [[ ! -s $work/warnings ]] || { cat "$work/warnings"; return 1; }
  for flag in $(flags_of "$@"); do contains "$work/page" "^ +(-[a-z], )?$flag( |\$)" || return 1; done
  if "$@" --help | grep -q '^Exit codes:'; then contains "$work/page" '^EXIT STATUS' || return 1; fi
  contains "$work/page" "$name - [a-z]"
}
check 'of thinwire' page_of "$thinwire"
for command in $(subcommands); do check "of thinwire $command" page_of "$thinwire" "$command"; done
check 'of stage_server' page_of "$root/usr/bin/stage_server"
check 'there are no others' equals "$(find "$root/usr/share/man" -type f | wc -l)" $(($(subcommands | wc -l) + 2))

echo '== completion'
source "$root/usr/share/bash-completion/completions/thinwire"
# completed WORD...: what the last word may become, in one line
completed() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _thinwire
  echo "${COMPREPLY[*]}"
}
in_line() { tr '\n' ' ' | sed 's/ $//'; }
check 'of subcommands' equals "$(completed "$thinwire" '')" "$(subcommands | in_line)"
check 'of the start of two' equals "$(completed "$thinwire" co)" 'codecs compare'
check 'of flags before one' equals "$(completed "$thinwire" --)" "$(flags_of "$thinwire" | in_line)"
for command in $(subcommands); do
  check "of the flags of $command" equals "$(completed "$thinwire" "$command" --)" \
    "$(flags_of "$thinwire" "$command" | in_line)"
done
check 'of the flags of stage_server' equals "$(completed "$root/usr/bin/stage_server" --)" \
  "$(flags_of "$root/usr/bin/stage_server" | in_line)"
check 'of the words that a flag takes' equals "$(completed "$thinwire" probe runs/a --format '')" 'md csv json yaml'
check '  behind an equals sign' equals "$(completed "$thinwire" codecs --format = j)" json
check '  leaves files to readline' equals "$(completed "$thinwire" run --out '')" ''
check 'leaves experiments to readline' equals "$(completed "$thinwire" run exp)" ''
check 'knows both programs, and files' contains <(complete -p thinwire stage_server | sort -u) '-o default.*stage_server'
check 'of a program that is not there is nothing' equals "$(completed "$work/none" --)" ''

echo '== the unit'
# systemd looks for the unit's program on this machine; only where it lies differs.
mkdir "$work/units"
sed "s|/usr/lib/thinwire/|$root&|" "$root/usr/lib/systemd/system/thinwire-stage@.service" \
  >"$work/units/thinwire-stage@.service"
systemd-analyze verify --man=no "$work/units/thinwire-stage@.service" >"$work/log" 2>&1
check 'is one to systemd' equals "$? $(cat "$work/log")" '0 '
systemd-analyze security --offline=true --threshold=20 "$work/units/thinwire-stage@.service" >"$work/log" 2>&1
check 'exposes little' equals $? 0
grep 'exposure level' "$work/log"

echo "$failures failures"
(( failures == 0 ))
