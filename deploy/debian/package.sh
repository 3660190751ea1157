#!/usr/bin/env bash
# Makes thinwire_VERSION_ARCHITECTURE.deb for the Debian that it runs on: both programs linked with
# that Debian's libraries, a systemd unit, man pages, bash completion, experiments, documentation.
# Wants dpkg-dev, binutils and python3 besides what the build does.
# usage: deploy/debian/package.sh [--programs FOLDER] [OUTPUT_FOLDER]
#   --programs   the folder of a thinwire and a stage_server to pack instead of building them
set -euo pipefail

# The one place of the release's number. What stands behind it in a package's version is the commit that
# the programs name and its time, so that later commits make later packages: deb12 < deb13.
readonly release=0.1

fail() { echo "package.sh: $*" >&2; exit 1; }

programs=
if [[ ${1-} == --programs ]]; then
  programs=$(realpath -e -- "${2-}") || fail "--programs: '${2-}', want a folder"
  shift 2
fi
(( $# <= 1 )) || fail "unexpected argument '$2', want [--programs FOLDER] [OUTPUT_FOLDER]"
output=$(realpath -e -- "${1-.}") || fail "'$1', want a folder that is there"
for tool in dpkg-deb dpkg-shlibdeps dpkg-gencontrol strip python3; do
  command -v "$tool" >/dev/null || fail "$tool is not here, want the packages dpkg-dev, binutils and python3"
done
cd "$(dirname "$0")/../.."
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [[ -z $programs ]]; then
  deploy/setup.sh
  bazel build --config=opt //coordinator:thinwire //stage_server
  programs=$work/programs
  mkdir "$programs"
  cp bazel-bin/coordinator/thinwire bazel-bin/stage_server/stage_server "$programs"
fi

# commit_of PROGRAM: the second word of "thinwire 3f2a91c0d4e5 gcc 12.2.0 opt"
commit_of() { local words; read -ra words < <("$programs/$1" --version) && echo "${words[1]}"; }
commit=$(commit_of thinwire) || fail "$programs/thinwire --version fails"
other=$(commit_of stage_server) || fail "$programs/stage_server --version fails"
[[ $commit == "$other" ]] || fail "thinwire is of $commit and stage_server of $other, want one build"
if [[ -z ${SOURCE_DATE_EPOCH-} ]]; then
  SOURCE_DATE_EPOCH=$(git show --no-patch --format=%ct "${commit%+}" 2>/dev/null) ||
    fail "when $commit was made is not known here, want SOURCE_DATE_EPOCH"
fi
export SOURCE_DATE_EPOCH
system=$(. /etc/os-release && echo "$ID ${VERSION_ID-}")
[[ $system == debian\ [0-9]* ]] || fail "this is '$system', want Debian, whose packages this one depends on"
version="$release~git$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M).$commit+deb${system#debian }"

root=$work/root own=deploy/debian
put() { install -D -m "$1" "$2" "$root/$3"; }

# The programs find each other in one folder, and the CUDA backend, which is none of this package's,
# would lie there too. In /usr/bin are links.
for program in thinwire stage_server; do
  put 755 "$programs/$program" "usr/lib/thinwire/$program"
  strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root/usr/lib/thinwire/$program"
  mkdir -p "$root/usr/bin"
  ln -s "../lib/thinwire/$program" "$root/usr/bin/$program"
  put 644 $own/completion.bash "usr/share/bash-completion/completions/$program"
done
while IFS= read -r experiment; do
  put 644 "$experiment" "usr/share/thinwire/$experiment"
done < <(find experiments -name '*.yaml')
put 644 $own/thinwire-stage@.service usr/lib/systemd/system/thinwire-stage@.service
put 644 $own/thinwire-stage.default etc/default/thinwire-stage
mkdir -p "$root/etc/thinwire/tls"
put 755 deploy/certs.sh usr/share/thinwire/certs.sh
for page in docs/*.md; do put 644 "$page" "usr/share/doc/thinwire/${page##*/}"; done
put 644 $own/copyright usr/share/doc/thinwire/copyright

mkdir -p "$root/usr/share/man/man1"
$own/man_pages.py "$release" "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%d)" "$root/usr/share/man/man1" \
  "$root"/usr/lib/thinwire/{thinwire,stage_server}

mkdir -p "$work/debian" "$root/DEBIAN"
cp $own/control "$work/debian/control"
maintainer=$(sed -n 's/^Maintainer: //p' $own/control)
cat >"$work/debian/changelog" <<CHANGELOG
thinwire ($version) unstable; urgency=medium

  * Built from commit $commit.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
CHANGELOG
put 644 "$work/debian/changelog" usr/share/doc/thinwire/changelog
find "$root/usr/share/man" "$root/usr/share/doc/thinwire/changelog" -type f -exec gzip -9n {} +

for script in postinst prerm postrm; do put 755 "$own/$script" "DEBIAN/$script"; done
echo /etc/default/thinwire-stage >"$root/DEBIAN/conffiles"
(
  cd "$work"
  dpkg-shlibdeps -Tdebian/substvars -eroot/usr/lib/thinwire/thinwire -eroot/usr/lib/thinwire/stage_server
  dpkg-gencontrol -Tdebian/substvars -fdebian/files -Proot
)
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group --build "$root" "$output" >/dev/null
deb=$output/thinwire_${version}_$(dpkg --print-architecture).deb
echo "package.sh: $deb, $(stat -c %s "$deb") bytes"
