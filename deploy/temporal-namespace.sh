#!/bin/sh
# Creates what Superstep expects of a Temporal cluster, and ends: the namespace,
# and the search attributes that runs write. Safe to run again; a namespace that
# exists keeps its retention. The workers start once this has succeeded.
set -eu

: "${TEMPORAL_ADDRESS:?is the host:port of the Temporal frontend}"
: "${TEMPORAL_NAMESPACE:?is the namespace of the runs}"

# How long a finished run stays readable: its history is the record of what was
# done and approved. 720h is 30 days.
retention=${SUPERSTEP_RETENTION:-720h}

# patiently COMMAND…: run it until it succeeds, for about a minute. A server that
# has opened its port may not serve yet, and a new namespace takes a few seconds
# to be known everywhere.
patiently() {
	attempt=1
	until output=$("$@" 2>&1); do
		if [ "$attempt" -ge 30 ]; then
			echo "gave up after $attempt attempts: $*" >&2
			echo "$output" >&2
			exit 1
		fi
		attempt=$((attempt + 1))
		sleep 2
	done
}

# operator COMMAND…: an operator command on our server and namespace, by flags
# rather than by environment, so that none of it depends on a CLI profile.
operator() {
	temporal operator "$@" --address "$TEMPORAL_ADDRESS" --namespace "$TEMPORAL_NAMESPACE"
}

# create_namespace succeeds also when somebody else was quicker.
create_namespace() {
	operator namespace describe ||
		operator namespace create --retention "$retention" --description "Runs of Superstep"
}

create_attribute() {
	operator search-attribute create --name "$1" --type "$2"
}

# has_attribute NAME TYPE: creating one that exists with another type is not an
# error to the server, but a run that writes it would be stuck.
has_attribute() {
	operator search-attribute list |
		awk -v name="$1" -v type="$2" '$1 == name && $2 == type { found = 1 } END { exit !found }'
}

attribute() {
	patiently create_attribute "$1" "$2"
	patiently has_attribute "$1" "$2"
	echo "search attribute $1: $2"
}

patiently operator cluster health
patiently create_namespace
patiently operator namespace describe
echo "namespace $TEMPORAL_NAMESPACE"

attribute SuperstepGraph Keyword
attribute SuperstepStatus Keyword
attribute SuperstepNodes KeywordList
attribute SuperstepQuestions Int
attribute SuperstepParent Keyword
attribute SuperstepApprovers KeywordList
attribute SuperstepDue Datetime
attribute SuperstepRisk Keyword
