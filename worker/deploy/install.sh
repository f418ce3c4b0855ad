#!/bin/sh
# Installs Sweetspot's worker on this storage server and enrols it. Run as root, on Debian 12 or newer.
#
# This file is a template: the server replaces the names between @ signs. Its page “Add host” shows the command that
# downloads the script, verifies its checksum and runs it:
#
#   SWEETSPOT_TOKEN=<one-time token> sh install.sh --key <fingerprint of the server's key> [--again]
#
# Without a token it only updates the worker to the server's version. It can be run repeatedly.
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

[ "$(id -u)" = 0 ] || die 'run this as root, because the worker opens block devices and changes their settings.'
[ -n "$token" ] || [ -e "$state/worker.json" ] || die 'there is no token and this host is not enrolled. Use the command on the page “Add host”.'
if [ -n "$token" ] && [ -e "$state/worker.json" ] && [ -z "$again" ]; then
  die "this host is already enrolled ($state/worker.json). To enrol it again, use “Enrol again” on its page, Manage."
fi

missing=''
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || missing="$missing python3"
python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
command -v fio >/dev/null || missing="$missing fio"
if [ -n "$missing" ]; then
  command -v apt-get >/dev/null || die "missing packages:$missing. Install them and run the command again."
  say "installing Debian packages:$missing"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q -y update >/dev/null
  # shellcheck disable=SC2086 # several names
  apt-get -q -y install --no-install-recommends $missing >/dev/null
fi
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die 'Python 3.11 or newer is required.'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say "fetching the worker $version"
if command -v curl >/dev/null; then curl -fsS -o "$work/$wheel" "$server/worker/$version/$wheel"
else wget -q -O "$work/$wheel" "$server/worker/$version/$wheel"; fi
printf '%s  %s\n' "$sha256" "$work/$wheel" | sha256sum --check --status || die 'the checksum of the wheel is wrong. Nothing was installed. Get a new command from the page “Add host”.'

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
  say 'the service sweetspot-worker is running and enabled at boot.'
else
  say 'there is no systemd here, so nothing was started. Configure your service manager to run this command as root and to restart it:'
  say "  $home/bin/sweetspot-worker start"
fi
say "next: list targets in $policy; the worker rereads it automatically."
