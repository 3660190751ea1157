#!/usr/bin/env bash
# Makes an image of the layout of deploy/docker's from a bundle (deploy/bundle.sh), without a
# registry and without a compiler. Wants root, podman and debootstrap; takes the mirror of apt's own
# configuration.
# usage: kubernetes_image.sh BUNDLE.tar.xz NAME
set -euo pipefail
bundle=$(realpath "$1") name=$2

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/root
# shellcheck disable=SC2016  # apt's own variable
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' |
  grep -v security | head -n1)
debootstrap --variant=minbase --include=tini bookworm "$root" "$mirror" >"$folder/log" 2>&1 ||
  { tail -n 5 "$folder/log" >&2; exit 1; }
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,locale,man}
tar -C "$root/opt" -xf "$bundle"
ln -s /opt/thinwire/{thinwire,stage_server} "$root/usr/local/bin/"
cp -r "$root/opt/thinwire/experiments" "$root/experiments"
install -d -o 65532 -g 65532 "$root"/{runs,data}
tar -C "$root" -c . | podman import --quiet \
  --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
  --change 'ENTRYPOINT ["tini","--"]' --change 'CMD ["stage_server"]' --change 'USER 65532:65532' \
  - "$name"
