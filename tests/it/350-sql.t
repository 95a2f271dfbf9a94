#!/usr/bin/env bash
# Types, keys, TOAST, truncates and savepoints through everything; see lib/sql.sh.
. "$(dirname "$0")/lib/it.sh"
: "${WS_SQL:=[1-4]*}"
. "$IT_LIB/sql.sh"

for_majors all
done_testing
