# shellcheck shell=bash
# The demo: a PostgreSQL, a ClickHouse, the pipeline between them and a load, all in one folder,
# on loopback and Unix sockets; then what to look at and how to stop it.

demo_free_port() {
  local port
  for ((port = $1; port < $1 + 500; port++)); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { printf '%s' "$port"; return 0; }
  done
  return 1
}

demo_psql() { psql -XAtq -v ON_ERROR_STOP=1 -h "$DEMO/run" -p "$PGPORT_DEMO" -U demo "$@"; }
demo_ch() { curl -sS --fail-with-body --data-binary @- "$CH_URL/?wait_end_of_query=1" <<<"$1"; }

cmd_demo() {
  local once='' stop='' seconds=20 clients=4 scale=5 bindir='' chdb=''
  while [[ $# -gt 0 ]]; do
    case $1 in
      --once) once=yes; shift ;;
      --stop) stop=yes; shift ;;
      --*) [[ $# -ge 2 ]] || die 2 "demo: $1 is unknown or needs a value" ;;&
      --seconds) seconds=$2; shift 2 ;;
      --clients) clients=$2; shift 2 ;;
      --scale) scale=$2; shift 2 ;;
      --bindir) bindir=$2; shift 2 ;;
      --chdb) chdb=$2; shift 2 ;;
      *) die 2 "demo: unknown option $1" ;;
    esac
  done
  DEMO=$STATE.demo
  if [[ -n $stop ]]; then
    [[ -e $DEMO/run ]] || die 2 "demo: no demo at $STATE"
    demo_stop
    return
  fi
  [[ -n $bindir ]] || bindir=$(demo_bindir) || die 2 "demo: no PostgreSQL server programs found; give --bindir"
  [[ -n $chdb ]] || chdb=$(command -v "$BIN/ws-chdb" ws-chdb | head -n 1)
  [[ -n $chdb ]] || die 2 "demo: ws-chdb (contrib/chdb) not found; give --chdb"
  # Only what a demo made is removed.
  [[ ! -e $STATE || -e $DEMO/run ]] || die 2 "demo: $STATE exists and is no demo's; choose another --state"
  [[ -e $DEMO ]] && demo_stop
  mkdir -p "$DEMO/run" || die 1 "cannot make $DEMO"
  trap 'demo_stop; exit 1' INT TERM
  demo_servers "$bindir" "$chdb"
  demo_tables "$scale"
  cmd_init -d "host=$DEMO/run port=$PGPORT_DEMO user=demo" --database demo --url "$CH_URL" --bindir "$bindir"
  demo_load "$seconds" "$clients"
  local result=0
  demo_compare || result=1
  cmd_status
  if [[ -n $once ]]; then
    demo_stop
    if [[ $result -eq 0 ]]; then info "all tables agree"; else warn "tables DIFFER"; fi
    exit $result
  fi
  demo_tour
  exit $result
}

demo_bindir() {
  local dir
  for dir in /usr/lib/postgresql/{18,17,16}/bin; do
    [[ -x $dir/postgres ]] && printf '%s' "$dir" && return 0
  done
  return 1
}

demo_servers() {
  local bindir=$1 chdb=$2
  PGPORT_DEMO=$(demo_free_port 40100)
  info "source: $("$bindir/postgres" --version) in $DEMO/source"
  LC_ALL=C.UTF-8 "$bindir/initdb" -D "$DEMO/source" -U demo -A trust -E UTF8 >"$DEMO/initdb.log" 2>&1 ||
    die 1 "initdb failed, see $DEMO/initdb.log"
  cat >>"$DEMO/source/postgresql.conf" <<EOF
listen_addresses = ''
port = $PGPORT_DEMO
unix_socket_directories = '$DEMO/run'
wal_level = logical
max_wal_size = 4GB
jit = off
EOF
  "$bindir/pg_ctl" -D "$DEMO/source" -l "$DEMO/source.log" -w start >/dev/null ||
    die 1 "the source does not start, see $DEMO/source.log"
  local http
  http=$(demo_free_port 40700)
  mkdir -p "$DEMO/clickhouse"
  "$chdb" --http-port "$http" --tcp-port 0 "$DEMO/clickhouse" </dev/null >"$DEMO/clickhouse.log" 2>&1 9>&- &
  printf '%s\n' $! >"$DEMO/clickhouse.pid"
  CH_URL=http://127.0.0.1:$http
  demo_ch_up() { demo_ch 'SELECT 1' >/dev/null 2>&1; }
  wait_until 60 "ClickHouse (see $DEMO/clickhouse.log)" demo_ch_up
  info "destination: ClickHouse $(demo_ch 'SELECT version()') at $CH_URL"
}

demo_tables() {
  demo_psql -d postgres -c 'CREATE DATABASE demo'
  PGOPTIONS='-c client_min_messages=warning' pgbench -q -i -s "$1" -h "$DEMO/run" -p "$PGPORT_DEMO" -U demo demo >"$DEMO/pgbench-init.log" 2>&1 ||
    die 1 "pgbench -i failed, see $DEMO/pgbench-init.log"
  # pgbench_history has no key: give it one, as a careful user would.
  demo_psql -d demo -c 'ALTER TABLE pgbench_history ADD COLUMN hid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY'
}

# pgbench with a column added in the middle, and a line a second of what both sides say.
demo_load() {
  local seconds=$1 clients=$2 now start altered='' bench tps
  info "pgbench for $seconds s with $clients clients"
  pgbench -n -T "$seconds" -c "$clients" -h "$DEMO/run" -p "$PGPORT_DEMO" -U demo demo >"$DEMO/pgbench.log" 2>&1 &
  bench=$!
  printf '%8s %22s %22s %14s\n' second 'history rows (source)' 'history rows (CH)' 'lag (bytes)' >&2
  start=$SECONDS
  while kill -0 $bench 2>/dev/null; do
    sleep 1
    now=$((SECONDS - start))
    if [[ -z $altered && $now -ge $((seconds / 2)) ]]; then
      demo_psql -d demo -c "ALTER TABLE pgbench_accounts ADD COLUMN note text NOT NULL DEFAULT 'added under load'"
      info "added the column note to pgbench_accounts, with a default"
      altered=yes
    fi
    printf '%8s %22s %22s %14s\n' $now "$(demo_psql -d demo -c 'SELECT count(*) FROM pgbench_history')" \
      "$(demo_ch 'SELECT count() FROM demo.public_pgbench_history FINAL WHERE _is_deleted = 0')" \
      "$(lag_bytes "$(demo_psql -d demo -c 'SELECT pg_current_wal_lsn()')" "$(pos_lsn ack.main)")" >&2
  done
  wait $bench || die 1 "pgbench failed, see $DEMO/pgbench.log"
  tps=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$DEMO/pgbench.log")
  info "pgbench: $tps transactions a second"
}

demo_drained() {
  local ack
  ack=$(pos_lsn ack.main)
  [[ -n $ack && $(lsn_number "$ack") -ge $DEMO_TARGET ]]
}

# Counts, and a checksum over every column of every row, on both sides.
demo_compare() {
  local table source ch columns bad=0
  DEMO_TARGET=$(lsn_number "$(demo_psql -d demo -c 'SELECT pg_current_wal_flush_lsn()')")
  wait_until 120 "everything written to be acknowledged by ClickHouse" demo_drained
  printf '%-20s %12s %12s  %s\n' table 'source rows' 'CH rows' 'checksum of all columns' >&2
  for table in pgbench_accounts pgbench_branches pgbench_history pgbench_tellers; do
    columns=$(demo_psql -d demo -c "SELECT string_agg(format(CASE WHEN atttypid = 'timestamp'::regtype
        THEN 'coalesce(to_char(%1\$I, ''YYYY-MM-DD HH24:MI:SS.US''), ''~'')' ELSE 'CASE WHEN %1\$I IS NULL THEN ''~'' ELSE format(''%%s'', %1\$I) END' END, attname),
        ' || ''|'' || ' ORDER BY attnum)
      FROM pg_attribute WHERE attrelid = '$table'::regclass AND attnum > 0 AND NOT attisdropped")
    source=$(demo_psql -d demo -c "SELECT count(*), coalesce(sum(('x' || left(md5($columns), 15))::bit(60)::bigint), 0) FROM $table")
    columns=$(demo_psql -d demo -c "SELECT string_agg(format('ifNull(toString(\`%s\`), ''~'')', attname), ' || ''|'' || ' ORDER BY attnum)
      FROM pg_attribute WHERE attrelid = '$table'::regclass AND attnum > 0 AND NOT attisdropped")
    ch=$(demo_ch "SELECT count() || '|' || toString(sum(toInt128(reinterpretAsUInt64(reverse(unhex('0' || left(lower(hex(MD5($columns))), 15)))))))
      FROM demo.public_$table FINAL WHERE _is_deleted = 0")
    if [[ $source == "$ch" ]]; then
      printf '%-20s %12s %12s  %s equal\n' "$table" "${source%|*}" "${ch%|*}" "${source#*|}" >&2
    else
      printf '%-20s %12s %12s  %s DIFFERS FROM %s\n' "$table" "${source%|*}" "${ch%|*}" "${source#*|}" "${ch#*|}" >&2
      bad=1
    fi
  done
  return $bad
}

demo_tour() {
  cat >&2 <<EOF

Everything keeps running.  Look around:
  psql -h $DEMO/run -p $PGPORT_DEMO -U demo demo
  curl '$CH_URL' --data-binary 'SELECT count() FROM demo.public_pgbench_history FINAL'
  $BIN/walshadow --state $STATE status
  $BIN/walshadow --state $STATE logs -f
  $BIN/ws-catalog list --state $STATE
  ls $STATE/raw $STATE/filtered
Stop it and remove it:
  ${DEMO_STOP:-$BIN/walshadow --state $STATE demo --stop}
EOF
}

demo_stop() {
  local pid
  cmd_stop
  if read -r pid 2>/dev/null <"$DEMO/clickhouse.pid"; then
    kill -TERM "$pid" 2>/dev/null
    wait_gone "$pid" 30 || kill -KILL "$pid" 2>/dev/null
  fi
  if read -r pid 2>/dev/null <"$DEMO/source/postmaster.pid"; then
    kill -INT "$pid" 2>/dev/null
    wait_gone "$pid" 60
  fi
  rm -rf "$DEMO" "$STATE"
}
