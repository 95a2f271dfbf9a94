#!/usr/bin/env bash
# Columns, rewrites, partitions, identities, names, transactions through everything; see lib/sql.sh.
. "$(dirname "$0")/lib/it.sh"
: "${WS_SQL:=[5-9]*}"
. "$IT_LIB/sql.sh"

for_majors all
done_testing
