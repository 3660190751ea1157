#!/usr/bin/env bash
# Makes the certificates of a run: an authority of its own, and for each role a key and a
# certificate that it signs. What is there stays, unless it expires within the days of --renew.
#
#   deploy/certs.sh [--days N] [--renew N] DIR
#
# DIR/ca.pem goes everywhere, DIR/coordinator.{pem,key} to the coordinator, DIR/stage.{pem,key} to
# the stage servers. DIR/ca.key signs: keep it where neither runs.
set -euo pipefail

days=365 renew=30
while [[ ${1-} == --* ]]; do
  case $1 in
    --days) days=${2-} ;;
    --renew) renew=${2-} ;;
    *) echo "certs.sh: $1, want --days or --renew" >&2; exit 2 ;;
  esac
  [[ ${2-} =~ ^[0-9]+$ ]] || { echo "certs.sh: $1 ${2-}, want a number of days" >&2; exit 2; }
  shift 2
done
[[ $# == 1 && -n $1 ]] || { echo 'usage: certs.sh [--days N] [--renew N] DIR' >&2; exit 2; }
dir=$1
mkdir -p "$dir"
umask 077

# Whether the certificate $1 is there and lasts, and the authority $2 has signed it.
lasts() {
  [[ -s $dir/$1.pem && -s $dir/$1.key ]] &&
    openssl x509 -in "$dir/$1.pem" -noout -checkend $((renew * 86400)) >/dev/null &&
    openssl verify -CAfile "$dir/$2.pem" "$dir/$1.pem" >/dev/null 2>&1
}

new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }

# Puts a key and its certificate in place; whoever reads meanwhile may meet a pair that does not
# match, and reads again.
place() {
  mv "$dir/.$1.key" "$dir/$1.key"
  mv "$dir/.$1.pem" "$dir/$1.pem"
}

if ! lasts ca ca; then
  new_key "$dir/.ca.key"
  openssl req -x509 -new -key "$dir/.ca.key" -days "$((days * 10))" -subj '/CN=thinwire authority' \
    -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign' \
    -out "$dir/.ca.pem"
  place ca
  echo "certs.sh: new authority $dir/ca.pem"
fi
for role in coordinator stage; do
  lasts "$role" ca && continue
  new_key "$dir/.$role.key"
  openssl req -new -key "$dir/.$role.key" -subj "/CN=$role.thinwire" |
    openssl x509 -req -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -days "$days" -out "$dir/.$role.pem" \
      -set_serial "0x$(openssl rand -hex 16)" -extfile <(
        echo "subjectAltName=DNS:$role.thinwire"
        echo 'basicConstraints=critical,CA:FALSE'
        echo 'keyUsage=critical,digitalSignature'
        echo 'extendedKeyUsage=serverAuth,clientAuth'
      ) 2>/dev/null
  place "$role"
  echo "certs.sh: new certificate $dir/$role.pem, for $days days"
done
chmod 644 "$dir"/*.pem
