# shellcheck shell=bash disable=SC2034
# The preflight: everything that would go wrong later, found now and reported at once.
# A problem stops init; a warning does not.

PROBLEMS=0

problem() {
  PROBLEMS=$((PROBLEMS + 1))
  printf 'problem: %s\n' "$*"
}
finding() { printf '%s\n' "$*"; }

# The options that check and init share, into CONF and the variables of the consumer.
setup_options() {
  DATABASE='' CONSUMER=main LOAD='' DRY_RUN='' CH_URL='' CH_USER='' PASSWORD_FILE='' ROUTES='' JOBS='' ORACLE=auto
  local source='' slot='' bindir=''
  while [[ $# -gt 0 ]]; do
    local key=$1 value=
    case $key in
      --dry-run) DRY_RUN=yes; shift; continue ;;
      --help | -h) usage; exit 0 ;;
      --*=*) value=${key#*=} key=${key%%=*}; shift ;;
      -*) [[ $# -ge 2 ]] || die 2 "$key needs a value"; value=$2; shift 2 ;;
      *) die 2 "unexpected operand $key; try --help" ;;
    esac
    case $key in
      -d | --dbname) source=$value ;;
      --database) DATABASE=$value ;;
      --consumer) CONSUMER=$value ;;
      --url) CH_URL=$value ;;
      --ch-user) CH_USER=$value ;;
      --password-file) PASSWORD_FILE=$value ;;
      --routes) ROUTES=$value ;;
      --slot) slot=$value ;;
      --bindir) bindir=$value ;;
      --oracle) [[ -n $value ]] || die 2 "--oracle is auto, none or a module"; ORACLE=$value ;;
      --load) [[ $value == copy || $value == none ]] || die 2 "--load is copy or none"; LOAD=$value ;;
      --jobs | -j) [[ $value =~ ^[1-9][0-9]*$ ]] || die 2 "--jobs wants a number"; JOBS=$value ;;
      *) die 2 "unknown option $key; try --help" ;;
    esac
  done
  [[ $CONSUMER =~ ^[A-Za-z0-9_-]{1,40}$ ]] || die 2 "a consumer's name has letters, digits, _ and - only: $CONSUMER"
  conf_of_consumer "$CONSUMER"
  [[ -n $source ]] && CONF[SOURCE]=$source
  [[ -n $slot ]] && CONF[SLOT]=$slot
  [[ -n $bindir ]] && CONF[BINDIR]=$bindir
  : "${CONF[SLOT]:=walshadow}"
  DATABASE=${DATABASE:-${CONF[DATABASE]:-}}
  CH_URL=${CH_URL:-${CONF[WS_EMIT_URL]:-}}
  CH_USER=${CH_USER:-${CONF[WS_EMIT_USER]:-}}
  PASSWORD_FILE=${PASSWORD_FILE:-${CONF[WS_EMIT_PASSWORD_FILE]:-}}
  ROUTES=${ROUTES:-${CONF[WS_EMIT_ROUTES]:-}}
  [[ -n ${CONF[SOURCE]:-} ]] || die 2 "no source: give -d CONNINFO"
  [[ -n $DATABASE ]] || die 2 "no database: give --database NAME"
  [[ -n $CH_URL ]] || die 2 "no destination: give --url URL"
  [[ ${CONF[SOURCE]} =~ password= || ${CONF[SOURCE]} =~ ://[^/@]*:[^/@]*@ ]] &&
    die 2 "the source's connection string holds a password; put it into a password file (PGPASSFILE)"
  [[ -z $ROUTES ]] || ROUTES=$(readlink -m "$ROUTES")
  [[ -z $PASSWORD_FILE ]] || PASSWORD_FILE=$(readlink -m "$PASSWORD_FILE")
}

cmd_check() {
  setup_options "$@"
  check_all
  finding "check: $PROBLEMS problem(s)"
  ((PROBLEMS == 0)) || exit 2
}

check_all() {
  check_programs
  check_source && check_shadow_binaries && check_oracle
  check_destination
  check_routes
}

check_programs() {
  local p
  for p in psql curl setpriv flock; do
    command -v "$p" >/dev/null || problem "$p is not installed"
  done
  for p in ws-receive ws-filter ws-backup ws-walsend ws-catalog ws-decode ws-emit ws-copy ws-archive; do
    [[ -x $BIN/$p ]] || problem "$p is not in $BIN"
  done
}

source_setting() { source_sql "$DATABASE" -c "SHOW $1" 2>/dev/null; }

check_source() {
  local out
  if ! out=$(source_sql "$DATABASE" -c "SELECT current_setting('server_version_num'), pg_is_in_recovery(),
      (SELECT oid FROM pg_database WHERE datname = current_database()),
      pg_encoding_to_char((SELECT encoding FROM pg_database WHERE datname = current_database()))" 2>&1); then
    problem "source, database $DATABASE: $out"
    return 1
  fi
  local num recovery
  IFS='|' read -r num recovery DATABASE_OID ENCODING <<<"$out"
  MAJOR=$((num / 10000))
  finding "source: PostgreSQL $MAJOR ($num), database $DATABASE (oid $DATABASE_OID, $ENCODING)"
  ((MAJOR >= 16 && MAJOR <= 18)) || problem "source is PostgreSQL $MAJOR; 16, 17 and 18 are supported"
  [[ $recovery == f ]] || finding "warning: source is a standby; init needs a primary for the initial load"
  [[ $(source_setting wal_level) == logical ]] || problem "source has wal_level=$(source_setting wal_level); set wal_level=logical and restart it"
  [[ $(source_setting full_page_writes) == on ]] || problem "source has full_page_writes=off; a base backup needs it on"
  case $ENCODING in
  UTF8) ;;
  SQL_ASCII) finding "warning: database encoding is SQL_ASCII; text is passed on as it is" ;;
  MULE_INTERNAL) finding "warning: database encoding is MULE_INTERNAL, which cannot be converted to UTF-8" ;;
  *) finding "database encoding is $ENCODING; text is converted to UTF-8" ;;
  esac
  check_source_resources
  check_source_rights
  check_source_tables
  return 0
}

check_source_resources() {
  local slot_known free_slots free_senders
  slot_known=$(source_sql "$DATABASE" -c "SELECT slot_type || ' ' || coalesce(wal_status, '') FROM pg_replication_slots WHERE slot_name = '${CONF[SLOT]//\'/}'")
  case $slot_known in
    '') ;;
    'physical lost') problem "slot ${CONF[SLOT]} is lost (wal_status); drop it and start anew" ;;
    physical*) finding "slot ${CONF[SLOT]} exists" ;;
    *) problem "slot ${CONF[SLOT]} is a logical one; choose another name with --slot" ;;
  esac
  free_slots=$(source_sql "$DATABASE" -c "SELECT current_setting('max_replication_slots')::int - count(*) FROM pg_replication_slots")
  # The physical slot, and a temporary logical one during the initial load.
  ((free_slots >= 1 + (${#slot_known} == 0))) ||
    problem "source has $free_slots free replication slots; $((1 + (${#slot_known} == 0))) are needed (max_replication_slots)"
  free_senders=$(source_sql "$DATABASE" -c "SELECT current_setting('max_wal_senders')::int - count(*) FROM pg_stat_replication")
  ((free_senders >= 3)) || problem "source has $free_senders free WAL senders; 3 are needed during init (max_wal_senders)"
}

check_source_rights() {
  local out
  out=$(source_sql "$DATABASE" -c "SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user")
  if [[ $out != t ]]; then
    problem "the role has no REPLICATION attribute"
  else
    # pg_hba.conf has lines of its own for replication.
    out=$(source_replication 2>&1) || problem "source, replication connection: $out"
  fi
  out=$(source_sql "$DATABASE" -c "SELECT string_agg(c.oid::regclass::text, ', ') FROM pg_class c
    WHERE relkind IN ('r', 'p') AND relpersistence = 'p' AND oid >= 16384 AND NOT has_table_privilege(oid, 'SELECT')")
  [[ -z $out ]] || problem "the role may not SELECT from: $out"
}

source_replication() {
  local source=${CONF[SOURCE]}
  case $source in
    *://*\?*) source+='&replication=true' ;;
    *://*) source+='?replication=true' ;;
    *) source+=' replication=true' ;;
  esac
  PGCONNECT_TIMEOUT=${PGCONNECT_TIMEOUT:-10} psql -wXAtq -d "$source" -c IDENTIFY_SYSTEM
}

# O2: a usable key is a primary key that is not deferrable (also with FULL), or USING INDEX.
check_source_tables() {
  local bad unlogged
  bad=$(source_sql "$DATABASE" -c "SELECT string_agg(c.oid::regclass::text, ', ') FROM pg_class c
    WHERE relkind IN ('r', 'p') AND relpersistence = 'p' AND c.oid >= 16384
      AND NOT (relreplident IN ('d', 'f') AND EXISTS (SELECT FROM pg_index i WHERE indrelid = c.oid AND indisprimary AND indimmediate)
        OR relreplident = 'i' AND EXISTS (SELECT FROM pg_index i WHERE indrelid = c.oid AND indisreplident AND indimmediate))")
  if [[ -n $bad && -z $ROUTES ]]; then
    problem "tables without a usable key (add a primary key, or a rule with keyless= or exclude, ws-routes(5)): $bad"
  elif [[ -n $bad ]]; then
    finding "warning: tables without a usable key, which the routes must cover: $bad"
  fi
  unlogged=$(source_sql "$DATABASE" -c "SELECT string_agg(c.oid::regclass::text, ', ') FROM pg_class c
    WHERE relkind = 'r' AND relpersistence = 'u'")
  [[ -z $unlogged ]] || finding "warning: unlogged tables write no WAL and are not replicated: $unlogged"
}

# The module that renders types which are not decoded, without its suffix, into ORACLE_MODULE; what
# the shadow was configured with stays.
check_oracle() {
  local dir file
  ORACLE_MODULE=
  [[ $ORACLE != none ]] || return 0
  if [[ $ORACLE != auto ]]; then
    file=$(readlink -m "${ORACLE%.so}")
    [[ -e $file.so ]] || problem "no module $ORACLE"
    ORACLE_MODULE=$file
  elif [[ -n ${CONF[ORACLE]:-} ]]; then
    ORACLE_MODULE=${CONF[ORACLE]}
  else
    for dir in "$BIN/../lib/walshadow/pgext/$MAJOR" "$BIN/../pgext/$MAJOR" \
      "$("${CONF[BINDIR]:-/nowhere}/pg_config" --pkglibdir 2>/dev/null)"; do
      [[ ! -e $dir/walshadow_oracle.so ]] || { ORACLE_MODULE=$(readlink -m "$dir")/walshadow_oracle; break; }
    done
  fi
  if [[ -n $ORACLE_MODULE ]]; then
    finding "oracle: $ORACLE_MODULE"
  else
    finding "warning: no oracle for PostgreSQL $MAJOR (ws-pgext(7)): values of types that are not decoded go by unsupported= of their route"
  fi
  return 0
}

check_shadow_binaries() {
  local dir out
  if [[ -z ${CONF[BINDIR]:-} ]]; then
    out=$(type -P postgres) # after the usual places: the one in PATH, if it is of this major
    for dir in "/usr/lib/postgresql/$MAJOR/bin" "/usr/pgsql-$MAJOR/bin" "/usr/local/pgsql/bin" "${out%/*}"; do
      [[ -x $dir/postgres ]] && "$dir/postgres" --version | grep -q " ${MAJOR}[. ]" && CONF[BINDIR]=$dir && break
    done
  fi
  if [[ -z ${CONF[BINDIR]:-} ]]; then
    problem "no programs of PostgreSQL $MAJOR found for the shadow; install them or give --bindir"
    return
  fi
  local pattern=" $MAJOR([. ]|\$)"
  if ! out=$("${CONF[BINDIR]}/postgres" --version 2>&1); then
    problem "shadow: ${CONF[BINDIR]}/postgres does not run: $out"
  elif [[ ! $out =~ $pattern ]]; then
    problem "shadow: ${CONF[BINDIR]}/postgres is \"$out\", the source is PostgreSQL $MAJOR"
  else
    finding "shadow: $out"
  fi
}

ch_query() {
  local args=(-sS --max-time 10)
  if [[ -n $CH_USER ]]; then
    # Headers from a descriptor: nothing secret in the argument list.
    curl "${args[@]}" -H @<(printf 'X-ClickHouse-User: %s\n' "$CH_USER"
      [[ -n $PASSWORD_FILE ]] && printf 'X-ClickHouse-Key: %s\n' "$(head -n 1 "$PASSWORD_FILE")") \
      --data-binary @- "$CH_URL/?wait_end_of_query=1" <<<"$1"
  else
    curl "${args[@]}" --data-binary @- "$CH_URL/?wait_end_of_query=1" <<<"$1"
  fi
}

check_destination() {
  local out
  if ! out=$(ch_query 'SELECT version()' 2>&1); then
    problem "destination $CH_URL: $out"
  elif [[ ! $out =~ ^[0-9]+\.[0-9]+ ]]; then
    problem "destination $CH_URL: $out"
  else
    finding "destination: ClickHouse $out"
    [[ ${out%%.*} -ge 23 && ! $out =~ ^23\.1\. ]] || problem "destination is ClickHouse $out; 23.2 or newer is needed (is_deleted of ReplacingMergeTree)"
  fi
}

check_routes() {
  local out
  [[ -n $ROUTES ]] || return 0
  out=$("$BIN/ws-emit" --check-routes --routes "$ROUTES" 2>&1) || problem "routes: $out"
}
