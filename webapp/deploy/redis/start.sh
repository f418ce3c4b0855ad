#!/bin/sh
# Write the two users that are not hosts, keep the hosts' as Redis has written them, and start.
set -eu
: "${SWEETSPOT_REDIS_PASSWORD:?is not set: make compose-env writes one}"
umask 077
users=/data/users.acl
hash=$(printf %s "$SWEETSPOT_REDIS_PASSWORD" | sha256sum | cut -d ' ' -f 1)
{
  echo "user default off"
  echo "user sweetspot on #$hash ~* &* +@all -@admin +acl"
  if [ -f "$users" ]; then grep '^user host\.' "$users" || true; fi
} > "$users.new"
mv "$users.new" "$users"
unset SWEETSPOT_REDIS_PASSWORD
# Redis reads its certificate only at its start: end it when there is a new one, so that the container starts again.
before=$(sha256sum /tls/server.crt)
(while sleep 60; do [ "$(sha256sum /tls/server.crt)" = "$before" ] || kill -TERM $$; done) &
exec redis-server --bind 0.0.0.0 --protected-mode no --port 0 --tls-port 6379 \
  --tls-cert-file /tls/server.crt --tls-key-file /tls/server.key --tls-ca-cert-file /tls/ca.crt --tls-auth-clients no \
  --aclfile "$users" --dir /data --save '' --appendonly no --maxmemory-policy noeviction
