#!/bin/sh
# Installs Sweetspot's worker on this storage server and makes it known to its server. As root, on Debian 12 or newer.
#
# Nobody runs this file as it is: the server fills in the names between @ signs and serves it, and its page
# “Add host” gives the line that fetches it, holds it against its checksum and runs it:
#
#   SWEETSPOT_TOKEN=<one-time token> sh install.sh --key <fingerprint of the server's key> [--again]
#
# Without a token it only brings the worker to the server's version. It may be run any number of times.
set -eu
umask 022

server='@SERVER@'
version='@VERSION@'
wheel='@WHEEL@'
sha256='@SHA256@'
home=/opt/sweetspot-worker
policy=/etc/sweetspot-worker/policy.toml
state=/var/lib/sweetspot-worker
unit=/etc/systemd/system/sweetspot-worker.service

say() { printf 'sweetspot: %s\n' "$*"; }
die() { printf 'sweetspot: %s\n' "$*" >&2; exit 1; }

key='' again=''
while [ $# -gt 0 ]; do
  case $1 in
    --key) [ $# -gt 1 ] || die '--key needs a fingerprint'; key=$2; shift 2 ;;
    --again) again=--replace; shift ;;
    *) die "unknown option $1" ;;
  esac
done
token=${SWEETSPOT_TOKEN:-}
unset SWEETSPOT_TOKEN

[ "$(id -u)" = 0 ] || die 'run this as root: the worker opens block devices and changes their settings.'
[ -n "$token" ] || [ -e "$state/worker.json" ] || die 'no token given and this host is not enrolled. Use the line of the page “Add host”.'
if [ -n "$token" ] && [ -e "$state/worker.json" ] && [ -z "$again" ]; then
  die "this host is enrolled already ($state/worker.json). To enrol it anew, use “Enrol again” on its page, Manage."
fi

missing=''
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || missing="$missing python3"
python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
command -v fio >/dev/null || missing="$missing fio"
if [ -n "$missing" ]; then
  command -v apt-get >/dev/null || die "missing here:$missing. Install them and paste the line again."
  say "installing Debian packages:$missing"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q -y update >/dev/null
  # shellcheck disable=SC2086 # several names
  apt-get -q -y install --no-install-recommends $missing >/dev/null
fi
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die 'Python 3.11 or newer is needed.'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say "fetching the worker $version"
if command -v curl >/dev/null; then curl -fsS -o "$work/$wheel" "$server/worker/$version/$wheel"
else wget -q -O "$work/$wheel" "$server/worker/$version/$wheel"; fi
printf '%s  %s\n' "$sha256" "$work/$wheel" | sha256sum --check --status || die 'the wheel is not the one this line was made for. Nothing was installed.'

say "installing into $home"
[ -x "$home/bin/python" ] || python3 -m venv "$home"
"$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --upgrade --force-reinstall --no-deps "$work/$wheel"
"$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$work/$wheel"

deploy=$("$home/bin/python" -I -c 'import pathlib, worker; print(pathlib.Path(worker.__file__).parent / "deploy")')
install -d -m 0755 "$(dirname "$policy")"
if [ ! -e "$policy" ]; then
  install -m 0644 "$deploy/policy.example.toml" "$policy"
  say "policy: $policy allows nothing yet"
fi

if [ -n "$token" ]; then
  # shellcheck disable=SC2086 # an option or nothing
  printf '%s\n' "$token" | "$home/bin/sweetspot-worker" --log-level WARNING enrol --server "$server" --token - --key "$key" $again
fi

if [ -d /run/systemd/system ]; then
  install -m 0644 "$deploy/sweetspot-worker.service" "$unit"
  systemctl daemon-reload
  systemctl enable --quiet sweetspot-worker
  systemctl restart sweetspot-worker
  say 'the service sweetspot-worker runs, and starts with the machine.'
else
  say 'there is no systemd here, so nothing was started. Have whatever starts services here run, as root, and start again when it ends:'
  say "  $home/bin/sweetspot-worker start"
fi
say "next: say in $policy what may be measured; the worker reads it again by itself."
