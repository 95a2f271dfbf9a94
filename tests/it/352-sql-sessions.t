#!/usr/bin/env bash
# Sessions side by side, what is stopped at, sequences; see lib/sql.sh.
. "$(dirname "$0")/lib/it.sh"
: "${WS_SQL:=s*}"
. "$IT_LIB/sql.sh"

for_majors all
done_testing
