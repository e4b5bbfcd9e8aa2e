#!/bin/sh
# Installs iggy-edge on a gateway with systemd: executable, unit, tuning, and a configuration where there is none.
#
#   sudo hardware/install.sh [EXECUTABLE]       default: the one in dist/ for this machine
#
# DESTDIR=/some/root stages the files for an image and starts nothing. Run it again to update: the configuration and the
# data stay as they are.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
destination=${DESTDIR:-}

fail() {
  echo "install: $*" >&2
  exit 1
}

architecture() {
  case $(uname -m) in
    x86_64) echo x64 ;;
    aarch64) echo arm64 ;;
    *) fail "no executable for $(uname -m), only for x86_64 and aarch64" ;;
  esac
}

# stage MODE SOURCE TARGET: copied beside the target and synced.
stage() {
  mkdir -p "$(dirname "$destination$3")"
  cp "$2" "$destination$3.new"
  chmod "$1" "$destination$3.new"
  sync "$destination$3.new"
}

# settle TARGET: renamed, so that a running executable can be replaced and a power cut leaves the old file or the new one.
settle() {
  mv "$destination$1.new" "$destination$1"
  echo "installed $destination$1"
}

put() {
  stage "$1" "$2" "$3"
  settle "$3"
}

executable=${1:-$here/../dist/iggy-edge-linux-$(architecture)}
[ -f "$executable" ] || fail "no executable at $executable: build it with 'npm run build', or name one"
if [ -z "$destination" ]; then
  [ "$(id -u)" -eq 0 ] || fail "run as root, or set DESTDIR"
  ldconfig -p | grep -q 'libatomic\.so\.1' || fail "libatomic is missing: apt-get install libatomic1"
fi

# Before the first start the service has no data folder, and no users in it.
is_first=false
[ -d "$destination/var/lib/iggy-edge" ] || is_first=true

program=/usr/local/bin/iggy-edge
stage 0755 "$executable" $program
# Before anything is replaced: what does not work here must not stand where the next boot looks for it.
if [ -z "$destination" ] && ! $program.new self-test; then
  rm $program.new
  fail "the self-test of $executable failed: nothing was changed"
fi
settle $program
put 0644 "$here/iggy-edge.service" /etc/systemd/system/iggy-edge.service
put 0644 "$here/sysctl.conf" /etc/sysctl.d/60-iggy-edge.conf
put 0644 "$here/journald.conf" /etc/systemd/journald.conf.d/60-iggy-edge.conf
put 0644 "$here/README.md" /usr/share/doc/iggy-edge/README.md
put 0644 "$here/../LICENSE" /usr/share/doc/iggy-edge/LICENSE
put 0644 "$here/../NOTICE" /usr/share/doc/iggy-edge/NOTICE
# The build puts the licences of others beside the executable; an update must not fail for want of them.
licences=$(dirname "$executable")/THIRD-PARTY.txt
if [ -f "$licences" ]; then
  put 0644 "$licences" /usr/share/doc/iggy-edge/THIRD-PARTY.txt
else
  echo "install: $licences is missing: hand the licences in it on with the executable" >&2
fi
if [ -e "$destination/etc/iggy-edge/edge.toml" ]; then
  echo "kept $destination/etc/iggy-edge/edge.toml"
  if [ -n "$(find "$destination/etc/iggy-edge/edge.toml" -perm -004)" ]; then
    echo "install: everybody can read $destination/etc/iggy-edge/edge.toml; the unit needs it no more: chmod 600 it" >&2
  fi
else
  # For root alone: passwords may be written into it. systemd hands the service a copy.
  stage 0600 "$here/../config/edge.toml" /etc/iggy-edge/edge.toml
  # So that check and dump, which read this file, look where the service keeps its data.
  sed -i 's|^# path = "local_data"$|path = "/var/lib/iggy-edge"|' "$destination/etc/iggy-edge/edge.toml.new"
  settle /etc/iggy-edge/edge.toml
fi
[ -n "$destination" ] && exit 0

# A container may not set all of them: it goes without.
sysctl --quiet --load=/etc/sysctl.d/60-iggy-edge.conf ||
  echo "install: not all settings of /etc/sysctl.d/60-iggy-edge.conf could be set here" >&2
systemctl daemon-reload
systemctl restart systemd-journald
systemctl enable iggy-edge
systemctl restart iggy-edge
systemctl --no-pager --lines=0 status iggy-edge
if $is_first; then
  echo "unless /etc/iggy-edge/environment names one, a root password was generated: journalctl -u iggy-edge shows it once"
fi
