#!/usr/bin/env bash
# System errors that a restart does not heal: status 3 with a reason, or 2 where the path is an argument.
. "$(dirname "$0")/lib/it.sh"

emit() { ws-emit --consumer c --url http://127.0.0.1:1 "$@" </dev/null; }

mkdir -p "$T/ro" "$T/state/consumer/c"
chmod 500 "$T/ro"
status_is 3 'a state directory that cannot be made' emit --state "$T/ro/state"
like "${ERR##*$'\n'}" "$T/ro/state: .*Permission denied reason=permission_denied" 'names the path and the reason'
status_is 3 'a state directory below a file' emit --state /dev/null/state
like "${ERR##*$'\n'}" 'reason=bad_path' 'with its reason'
mkdir -p "$T/state/pos/ack.c"
status_is 3 'a folder where a position should be' emit --state "$T/state"
like "${ERR##*$'\n'}" 'reason=bad_path' 'with its reason'
rmdir "$T/state/pos/ack.c"
chmod 000 "$T/state/pos"
status_is 3 'a folder that may not be searched' emit --state "$T/state"
like "${ERR##*$'\n'}" 'reason=permission_denied' 'with its reason'
chmod 700 "$T/state/pos" "$T/ro"
status_is 2 'WAL that is not there' ws-filter -q -D "$T/filtered" "$T/none"
status_is 2 'WAL below a file' ws-filter -q -D "$T/filtered" /dev/null/none
not_ok 'and nothing was made' test -e "$T/filtered"
done_testing
