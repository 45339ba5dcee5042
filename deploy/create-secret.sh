#!/bin/sh
# Creates the PostgreSQL password that docker-compose.yml mounts as a secret:
#
#   sh deploy/create-secret.sh
#
# It never replaces one: the database keeps the password it was created with.
set -eu

file=${POSTGRES_PASSWORD_FILE:-$(dirname "$0")/secrets/postgres_password}

if [ -e "$file" ]; then
	echo "$file exists and is kept" >&2
	exit 0
fi

mkdir -p "$(dirname "$file")"
# Services read the file as users of their own, so it is readable to all; the
# directory lets nobody else on this machine reach it.
chmod 700 "$(dirname "$file")"

# Written beside and moved: a full disk leaves no half password behind.
umask 077
head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$file.new"
if [ "$(wc -c <"$file.new")" -ne 48 ]; then
	rm -f "$file.new"
	echo "could not read 24 random bytes" >&2
	exit 1
fi
chmod 444 "$file.new"
mv "$file.new" "$file"
echo "created $file"
