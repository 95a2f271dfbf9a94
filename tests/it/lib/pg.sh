# PostgreSQL servers by name.  PG_MAJOR says which major (for_majors sets it; else the last of
# WS_MAJORS).  A server listens on the Unix socket folder $T/s and on a loopback port; superuser
# `postgres`, no password.  Its data is $T/NAME.
# shellcheck shell=bash

: "${WS_MAJORS:=16 17 18}"
: "${PG_MAJOR:=${WS_MAJORS##* }}"
declare -A PG_PORT=() PG_MAJOR_OF=() PG_BIN_CACHE=()

# pg_bin [MAJOR]: sets PGBIN to the folder with the server programs.
pg_bin() {
  local major=${1:-$PG_MAJOR}
  if [ -z "${PG_BIN_CACHE[$major]:-}" ]; then
    PG_BIN_CACHE[$major]=$("$TOP/tests/rig/pg" "$major") || bail_out "no PostgreSQL $major"
  fi
  PGBIN=${PG_BIN_CACHE[$major]}
}

# pg_tool NAME [MAJOR]: sets PGTOOL to a program: the major's own, else that of a newer one,
# which clients allow (psql, pgbench, pg_basebackup, pg_receivewal, pg_recvlogical).
pg_tool() {
  local major PGBIN # that of the test stays
  for major in "${2:-$PG_MAJOR}" 17 18; do
    pg_bin "$major"
    PGTOOL=$PGBIN/$1
    [ ! -x "$PGTOOL" ] || return 0
  done
  bail_out "no $1 for PostgreSQL ${2:-$PG_MAJOR}"
}

# pg_cluster DIR [INITDB-OPTION...]: of initdb.  Where WS_TEMPLATES is, one is made for each major and options,
# and copied; every copy has a system identifier of its own.
pg_cluster() {
  local dir=$1 template=''
  shift
  [[ -z ${WS_TEMPLATES:-} ]] || template=$WS_TEMPLATES/$PG_MAJOR$(printf ' %s' "$@" | tr -c 'a-z0-9=-' _)
  if [[ -z $template ]]; then
    pg_initdb "$dir" "$@"
  else
    [[ -e $template ]] || (
      flock 9
      [[ -e $template ]] || { pg_initdb "$template.new" "$@" && mv "$template.new" "$template"; }
    ) 9>"$template.lock" && cp -a "$template" "$dir" && controledit "$dir" system-id
  fi
}

pg_initdb() {
  local dir=$1
  shift
  "$PGBIN/initdb" -D "$dir" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync "$@"
}

# pg_init NAME [INITDB-OPTION...]: a new cluster; pg_conf changes it before pg_start.
pg_init() {
  local name=$1
  shift
  pg_bin
  mkdir -p "$T/s"
  free_port
  PG_PORT[$name]=$PORT
  PG_MAJOR_OF[$name]=$PG_MAJOR
  rm -rf "${T:?}/$name"
  pg_cluster "$T/$name" "$@" >"$T/$name.initdb" 2>&1 || bail_out "initdb $PG_MAJOR: $(tail -n 3 "$T/$name.initdb")"
  pg_conf "$name" wal_level=logical fsync=off dynamic_shared_memory_type=mmap shared_buffers=32MB jit=off \
    max_wal_senders=20 max_replication_slots=20 "listen_addresses='127.0.0.1'" \
    "unix_socket_directories='$T/s'" "port=$PORT" logging_collector=off \
    log_line_prefix="'%m [%p] %q%a '" "log_timezone='UTC'" "timezone='UTC'"
  # 17 and 18 have a libc of their own, which does not load the system's name services.
  printf 'local all all trust\nhost all all 127.0.0.1/32 trust\n%s\n%s\n' \
    'local replication all trust' 'host replication all 127.0.0.1/32 trust' \
    >"$T/$name/pg_hba.conf"
}

# pg_conf NAME 'KEY=VALUE'...: appended to postgresql.conf; pg_reload or pg_restart makes it count.
pg_conf() {
  local name=$1
  shift
  printf '%s\n' "$@" >>"$T/$name/postgresql.conf"
}

# pg_resetwal NAME OPTION...: the rig's 16 has none of its own.  17's does when the cluster looks like
# one of 17: of pg_control only the version differs, of the segment that it writes the first page's magic.
pg_resetwal() {
  local name=$1 data=$T/$1 new
  shift
  pg_bin "${PG_MAJOR_OF[$name]}"
  if [ -x "$PGBIN/pg_resetwal" ]; then
    "$PGBIN/pg_resetwal" "$@" -D "$data"
    return
  fi
  [ "${PG_MAJOR_OF[$name]}" = 16 ] || return 1
  pg_bin 17
  mkdir "$data/pg_wal/summaries" && echo 17 >"$data/PG_VERSION" && controledit "$data" version 1700 &&
    "$PGBIN/pg_resetwal" "$@" -D "$data" &&
    rmdir "$data/pg_wal/summaries" && echo 16 >"$data/PG_VERSION" && controledit "$data" version 1300 || return
  new=("$data"/pg_wal/????????????????????????)
  printf '\023\321' | dd of="${new[0]}" conv=notrunc status=none
}

# pg_set_xid NAME XID: freezes everything and makes XID, a page's first in pg_xact, the next; not more
# than 2^31 further on.
pg_set_xid() {
  local db
  for db in $(sql "$1" 'SELECT datname FROM pg_database WHERE datallowconn'); do
    PGOPTIONS='-c client_min_messages=error' sql "$1/$db" 'VACUUM (FREEZE)' || return 1
  done
  pg_stop "$1"
  pg_resetwal "$1" -f -x "$2" -u "$2" >"$T/resetwal" 2>&1 || {
    diag "$(cat "$T/resetwal")"
    return 1
  }
  pg_start "$1"
  [ "$(sql "$1" 'SELECT txid_snapshot_xmax(txid_current_snapshot()) % 4294967296')" = "$2" ]
}

# pg_near_wrap NAME: 32768 xids are left before they begin again.
pg_near_wrap() { pg_set_xid "$1" 2099249152 && pg_set_xid "$1" $((4294967296 - 32768)); }

pg_data() { echo "$T/$1"; }

# pg_adopt NAME DIR: a data folder made otherwise (a base backup, a promoted copy) as a server.
pg_adopt() {
  local name=$1 dir=$2
  free_port
  PG_PORT[$name]=$PORT
  PG_MAJOR_OF[$name]=$PG_MAJOR
  if [ ! "$dir" -ef "$T/$name" ]; then
    rm -rf "${T:?}/$name"
    mv "$dir" "$T/$name"
  fi
  chmod 700 "$T/$name"
  pg_conf "$name" "port=$PORT" "unix_socket_directories='$T/s'"
}

# pg_launch NAME: starts it without waiting; pg_start NAME: and waits until it takes queries.
pg_launch() {
  pg_bin "${PG_MAJOR_OF[$1]}"
  # shellcheck disable=SC2034 # proc.sh uses it
  PROC_STOP[$1]=INT
  bg "$1" "$PGBIN/postgres" -D "$T/$1"
}

pg_start() {
  pg_launch "$1"
  wait_for -t 60 -m "PostgreSQL $1" pg_up_or_dead "$1"
  alive "$1" || bail_out "PostgreSQL $1 does not start: $(tail -n 3 "$T/$1.err")"
}

pg_up_or_dead() { ! alive "$1" || sql "$1" 'SELECT 1'; }

# pg_new NAME [INITDB-OPTION...]: pg_init and pg_start.
pg_new() {
  pg_init "$@"
  pg_start "$1"
}

# pg_stop NAME [fast|smart|immediate]; pg_kill NAME: as a crash, every process of it.
pg_stop() {
  case ${2:-fast} in
  fast) stop "$1" INT 60 ;;
  smart) stop "$1" TERM 60 ;;
  immediate) stop "$1" QUIT 60 ;;
  esac
}

pg_kill() {
  kill9 "$1"
  # Its children see that the postmaster is gone; a new one waits for none of them.
  wait_for -m "the processes of $1" pg_no_process "$1"
  rm -f "$T/$1/postmaster.pid"
}

pg_no_process() { [ -z "$(proc_in "$T/$1")" ]; }

# pg_standby NAME OF [BACKUP-OPTION...]: a streaming standby of OF, not started yet.
pg_standby() {
  local name=$1 of=$2 PGTOOL
  shift 2
  PG_MAJOR=${PG_MAJOR_OF[$of]}
  pg_tool pg_basebackup
  rm -rf "${T:?}/$name"
  "$PGTOOL" -D "$T/$name" -d "$(pg_conninfo "$of")" -X none -c fast --no-sync "$@" 2>"$T/$name.basebackup" ||
    bail_out "pg_basebackup of $of: $(tail -n 3 "$T/$name.basebackup")"
  pg_adopt "$name" "$T/$name"
  pg_upstream "$name" "$of"
  touch "$T/$name/standby.signal"
}

# pg_candidate NAME OF SLOT: a standby that runs, has the slot, and has caught up.
pg_candidate() {
  pg_standby "$1" "$2"
  pg_start "$1"
  sql "$1" "SELECT pg_create_physical_replication_slot('$3', true)" >/dev/null
  wait_for -m "$1 to stream" pg_replayed "$1" "$(sql "$2" "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_flush_lsn() END")"
}

# pg_hosts NAME...: a connection string with all of them.
pg_hosts() {
  local n hosts='' ports=''
  for n; do
    hosts+=,$T/s ports+=,${PG_PORT[$n]}
  done
  echo "host=${hosts#,} port=${ports#,} user=postgres"
}

# pg_upstream NAME OF: where the standby gets its WAL from; OF '' for nowhere.
pg_upstream() {
  pg_conf "$1" "primary_conninfo='${2:+host=$T/s port=${PG_PORT[$2]} user=postgres application_name=$1}'"
}

# pg_promote NAME: and waits until it takes writes.
pg_promote() {
  sql "$1" 'SELECT pg_promote()' >/dev/null && wait_for_is f sql "$1" 'SELECT pg_is_in_recovery()'
}

# pg_replayed NAME LSN: has the standby replayed up to there?
pg_replayed() { lsn_ge "$(sql "$1" 'SELECT pg_last_wal_replay_lsn()')" "$2"; }

pg_restart() { pg_stop "$1" && pg_start "$1"; }
pg_reload() { kill -HUP "${PROC_PID[$1]}"; }

# pg_conninfo NAME [DATABASE]: over the socket; pg_conninfo_tcp: over the port.
pg_conninfo() {
  echo "host=$T/s port=${PG_PORT[$1]} user=postgres dbname=${2:-postgres}"
}

pg_conninfo_tcp() {
  echo "host=127.0.0.1 port=${PG_PORT[$1]} user=postgres dbname=${2:-postgres}"
}

# psql_bounded OPTION...: psql, whose statements the server ends when they take too long, and which is
# ended when the server does not answer at all.
psql_bounded() {
  local limit=${WS_IT_COMMAND_TIMEOUT:-300}
  pg_tool psql
  PGCONNECT_TIMEOUT=${PGCONNECT_TIMEOUT:-60} PGOPTIONS="-c statement_timeout=${limit}s ${PGOPTIONS:-}" \
    timeout --foreground -k 5 $((limit + 10)) "$PGTOOL" "$@"
}

# sql NAME[/DATABASE] [SQL...]: unaligned, tuples only, stops at the first error.  Each SQL is a
# call of its own (psql -c); without any, stdin is read.
sql() {
  local name=${1%%/*} db=postgres args=() s
  [[ $1 != */* ]] || db=${1#*/}
  shift
  for s; do
    args+=(-c "$s")
  done
  psql_bounded -XAtq -v ON_ERROR_STOP=1 -d "host=$T/s port=${PG_PORT[$name]} user=postgres dbname=$db" "${args[@]}"
}

# pg_temp_schemas NAME[/DATABASE]: the schemas of temporary relations, for every slot that a session may get.
# Otherwise the first user of a slot makes them, by a commit that is no temporary relation's alone; and
# which slot a session gets depends on who else is connected.
pg_temp_schemas() {
  local i made=''
  for i in {0..60}; do made+="CREATE SCHEMA pg_temp_$i; CREATE SCHEMA pg_toast_temp_$i; "; done
  sql "$1" 'SET allow_system_table_mods = on' "$made" || die 'the schemas of temporary relations'
}

# pgbench NAME[/DATABASE] OPTION...: in the foreground, output on stdout and stderr.
pgbench() {
  local name=${1%%/*} db=postgres
  [[ $1 != */* ]] || db=${1#*/}
  shift
  pg_tool pgbench
  "$PGTOOL" -h "$T/s" -p "${PG_PORT[$name]}" -U postgres "$@" "$db"
}

# pg_lsn NAME: the end of what it has written.
pg_lsn() { sql "$1" 'SELECT pg_current_wal_lsn()'; }

# lsn_num LSN: as a number.
lsn_num() { echo $(((16#${1%/*} << 32) + 16#${1#*/})); }

lsn_text() { printf '%X/%X\n' $(($1 >> 32)) $(($1 & 0xFFFFFFFF)); }

# lsn_ge A B: is A at or past B?
lsn_ge() {
  [ -n "$1" ] && [ -n "$2" ] &&
    (((16#${1%/*} << 32) + 16#${1#*/} >= (16#${2%/*} << 32) + 16#${2#*/}))
}

# pos_lsn FILE: the LSN of a position file ("TLI LSN"); pos_ge FILE LSN: is it there?
pos_lsn() {
  local tli lsn
  read -r tli lsn 2>/dev/null <"$1" && [ -n "$tli" ] && echo "$lsn"
}

pos_ge() {
  local tli lsn
  read -r tli lsn 2>/dev/null <"$1" && [ -n "$tli" ] && lsn_ge "$lsn" "$2"
}
