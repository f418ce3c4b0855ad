#!/bin/sh
# Installs Sweetspot's worker on this storage server and enrols it. Run as root.
#
# This file is a template: the server replaces the names between @ signs. Its page “Add host” shows the command that
# downloads the script, verifies its checksum and runs it:
#
#   SWEETSPOT_TOKEN=<one-time token> sh install.sh --key <fingerprint of the server's key> [--again]
#
# Without a token it only updates the worker to the server's version. It can be run repeatedly.
# Each version is installed into a directory of its own, beside the running one; the link `current` is changed last.
set -eu
umask 022

server='@SERVER@'
version='@VERSION@'
wheel='@WHEEL@'
sha256='@SHA256@'
wheels='@WHEELS@' # '' if the server has no wheelhouse
wheels_sha256='@WHEELS_SHA256@'
authority='@AUTHORITY@' # '' if the system's authorities are enough
home=/opt/sweetspot-worker
command=/usr/local/bin/sweetspot-worker
policy=/etc/sweetspot-worker/policy.toml
ca=/etc/sweetspot-worker/ca.crt
state=/var/lib/sweetspot-worker
unit=/etc/systemd/system/sweetspot-worker.service
systemd=/run/systemd/system
os_release=/etc/os-release

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

# Delete a directory, unless something is mounted in it: the files there would be deleted too.
delete() {
  [ -d "$1" ] || return 0
  real=$(cd "$1" && pwd -P)
  while read -r _ _ _ _ point _; do
    case $point in
      "$real" | "$real"/*) say "$point is a mount point, so $1 was not deleted. Unmount it, then delete $1."; return 0 ;;
    esac
  done </proc/self/mountinfo
  rm -rf "$real"
}

work=$(mktemp -d)
new=''
clean_up() {
  delete "$work"
  [ -z "$new" ] || [ "$(readlink "$home/current")" = "$new" ] || delete "$new"
}
trap clean_up EXIT
cd "$work" # Python finds no modules in a directory of other users

# ---- the system's packages

# pip is in the wheelhouse; without it, Python must bring its own.
modules=venv
[ -n "$wheels" ] || modules='venv, ensurepip'
find_python() {
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    if "$name" -I -c "import $modules, sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))" 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  return 1
}

install_debian_packages() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q -y update >/dev/null || say 'apt-get update failed; the package lists of this host are used as they are'
  packages=''
  if ! find_python >/dev/null; then
    for name in python3.14 python3.13 python3.12 python3.11; do
      apt-cache show "$name" >/dev/null 2>&1 && break
    done
    packages=$name
    [ -n "$wheels" ] || packages="$name $name-venv"
  fi
  command -v fio >/dev/null || packages="$packages fio"
  say "installing packages: $packages"
  # shellcheck disable=SC2086 # several names
  apt-get -q -y install --no-install-recommends $packages >/dev/null || die "apt-get could not install $packages. Install Python 3.11 to 3.14 and fio, and run the command again."
}

if ! find_python >/dev/null || ! command -v fio >/dev/null; then
  missing=''
  find_python >/dev/null || missing='Python 3.11 to 3.14'
  command -v fio >/dev/null || missing="${missing:+$missing and }fio"
  family=''
  # shellcheck disable=SC1090 # the system's description of itself
  [ ! -r "$os_release" ] || family=$(. "$os_release" && printf ' %s %s ' "${ID:-}" "${ID_LIKE:-}")
  case $family in
    *' debian '*|*' ubuntu '*) install_debian_packages ;;
    *' rhel '*|*' fedora '*|*' centos '*) die "missing: $missing. Run “dnf install python3.11 fio” and this command again." ;;
    *' suse '*|*' opensuse '*) die "missing: $missing. Run “zypper install python311 fio” and this command again." ;;
    *) die "missing: $missing. Install it with this system's package manager and run this command again." ;;
  esac
fi
python=$(find_python) || die 'Python 3.11 to 3.14 is required. Install it and run the command again; python3.11 beside an older python3 is found.'

# ---- the worker's files

fetch() { # name, sha256
  if command -v curl >/dev/null; then curl -fsS ${authority:+--cacert "$work/ca.crt"} -o "$work/$1" "$server/worker/$version/$1"
  else wget -q ${authority:+--ca-certificate="$work/ca.crt"} -O "$work/$1" "$server/worker/$version/$1"; fi || die "$server/worker/$version/$1 could not be fetched. Nothing was installed."
  printf '%s  %s\n' "$2" "$work/$1" | sha256sum --check --status 2>/dev/null ||
    die "the checksum of $1 is wrong: the file was changed on its way, or the server's version has changed. Nothing was installed. Get a new command from the page “Add host”."
}
printf '%s\n' "$authority" >"$work/ca.crt"
say "fetching the worker $version"
mkdir "$work/wheels"
fetch "$wheel" "$sha256"
mv "$work/$wheel" "$work/wheels"
if [ -n "$wheels" ]; then
  fetch "$wheels" "$wheels_sha256"
  "$python" -I -m zipfile -e "$work/$wheels" "$work/wheels"
else
  say 'this server has no wheelhouse (to build it, run there: @BUILD@). Fetching the same packages from the package index of this host.'
fi
cat >"$work/requirements.txt" <<'END'
sweetspot-worker==@VERSION@ --hash=sha256:@SHA256@
@REQUIREMENTS@
END

# ---- the new version, beside the old one

before=$(readlink "$home/current" || true)
install -d -o root -g root -m 0755 "$home"
new=$(mktemp -d "$home/$version-XXXXXX")
chmod 755 "$new"
say "installing into $new"
kept='Nothing was installed.'
[ -z "$before" ] || kept="The installed version, $before, was kept."
options='install --quiet --disable-pip-version-check --no-input --no-deps --only-binary=:all: --require-hashes --find-links wheels --requirement requirements.txt'
# shellcheck disable=SC2086 # several options
if [ -n "$wheels" ]; then
  "$python" -I -m venv --without-pip "$new" || die "the virtual environment could not be created. $kept"
  "$new/bin/python" -I "$(echo wheels/pip-*.whl)/pip" $options --isolated --no-index
else
  "$python" -I -m venv "$new" || die "the virtual environment could not be created. $kept"
  "$new/bin/python" -I -m pip $options
fi || die "pip could not install the worker's packages, see above. If it says that hashes differ, the files are not those of this server. $kept"
"$new/bin/sweetspot-worker" --version >/dev/null || die "the new version does not start. $kept"

deploy=$("$new/bin/python" -I -c 'import pathlib, worker; print(pathlib.Path(worker.__file__).parent / "deploy")')
install -d -m 0755 "$(dirname "$policy")"
if [ ! -e "$policy" ]; then
  install -m 0644 "$deploy/policy.example.toml" "$policy"
  say "policy: $policy allows nothing yet"
fi
[ -z "$authority" ] || install -m 0644 "$work/ca.crt" "$ca" # the service reads it
if [ -n "$token" ]; then
  # shellcheck disable=SC2086 # an option or nothing
  printf '%s\n' "$token" | "$new/bin/sweetspot-worker" --log-level WARNING enrol --server "$server" --token - --key "$key" $again ${authority:+--ca "$ca"} || die "the host was not enrolled. $kept"
fi

use_version() { # its directory
  ln -sfn "$1" "$home/current.new" && mv -T "$home/current.new" "$home/current" || return 1
  [ -d "$systemd" ] || return 0
  install -m 0644 "$1"/lib/python3*/site-packages/worker/deploy/sweetspot-worker.service "$unit" || return 1
  "$1/bin/sweetspot-worker" sandbox --no-restart >/dev/null || say 'the directories of the policy were not added to the sandbox of the service. Correct the policy and run: sweetspot-worker sandbox'
  systemctl daemon-reload && systemctl enable --quiet sweetspot-worker && systemctl restart sweetspot-worker && stays_up
}
main_pid() { systemctl show --property=MainPID --value sweetspot-worker; }
stays_up() {
  sleep 2
  first=$(main_pid)
  sleep 4
  [ "$first" != 0 ] && [ "$(main_pid)" = "$first" ]
}
trap '' HUP INT TERM # a lost SSH connection must not end the script between two versions
if ! use_version "$new"; then
  [ -z "$before" ] || use_version "$before" || say "the installed version, $before, does not start either."
  [ -n "$before" ] || new='' # kept, so that the cause can be found
  die "the service did not start with the new version. $kept See: journalctl -u sweetspot-worker"
fi

# ---- done: the previous version is kept, older ones are deleted

installed=$new
new=''
for other in "$home"/*-??????; do
  [ "$other" = "$installed" ] || [ "$other" = "$before" ] || delete "$other"
done
mkdir -p "$(dirname "$command")"
if [ -L "$command" ] || [ ! -e "$command" ]; then ln -sfn "$home/current/bin/sweetspot-worker" "$command"
else say "$command exists and is not a link, so it was not replaced. The worker's command is $home/current/bin/sweetspot-worker"; fi

if [ -d "$systemd" ]; then
  say 'the service sweetspot-worker is running and enabled at boot.'
else
  say 'there is no systemd here, so nothing was started. Configure your service manager to run this command as root and to restart it:'
  say "  $command start"
fi
say "next: list targets in $policy; the worker rereads it automatically. For directories, then run: sweetspot-worker sandbox"
