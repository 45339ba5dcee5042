# Read by the other scripts with '.'. Sets postgres_password from the secret
# file, so that the password is in no image, no compose file and no output of
# 'docker inspect'.

postgres_password_file=${POSTGRES_PASSWORD_FILE:-/run/secrets/postgres_password}

if [ ! -r "$postgres_password_file" ]; then
	echo "cannot read the secret $postgres_password_file as uid $(id -u);" \
		"make it with: sh deploy/create-secret.sh" >&2
	exit 1
fi

postgres_password=$(cat "$postgres_password_file")

# The server puts the password between quotes in a YAML file it makes. Anything
# that could end those quotes is refused here, where it can be explained.
case $postgres_password in
'')
	echo "the secret $postgres_password_file is empty" >&2
	exit 1
	;;
*[!A-Za-z0-9._~-]*)
	echo "the secret $postgres_password_file may hold only letters, digits and . _ ~ -" >&2
	exit 1
	;;
esac
