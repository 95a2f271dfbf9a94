# shellcheck shell=bash
# What the parts of walshadow share: messages, configuration, positions, SQL on the source.

say() { printf '%s: %s: %s\n' "$PROG" "$1" "$2" >&2; }
info() { say info "$*"; }
warn() { say warning "$*"; }
die() {
  local status=$1
  shift
  say error "$*"
  exit "$status"
}

# PostgreSQL refuses root, and nothing here needs it: started as root, go on as --user, else as the
# owner of the state directory.
become_user() {
  [[ $(id -u) -eq 0 ]] || return 0
  [[ -n $RUN_USER || ! -d $STATE ]] || RUN_USER=$(stat -c %U "$STATE")
  [[ -n $RUN_USER && $RUN_USER != root ]] || die 2 "started as root: name an unprivileged user with --user"
  id -u "$RUN_USER" >/dev/null 2>&1 || die 2 "no such user: $RUN_USER"
  exec setpriv --reuid="$RUN_USER" --regid="$(id -g "$RUN_USER")" --init-groups \
    env HOME="$(getent passwd "$RUN_USER" | cut -d: -f6)" "$BIN/walshadow" "$@"
}

# ---- configuration: KEY=value lines, never run as code ----
declare -A CONF

conf_load() {
  local file=$1 line n=0
  [[ -e $file ]] || return 0
  while IFS= read -r line || [[ -n $line ]]; do
    n=$((n + 1))
    [[ $line =~ ^[[:space:]]*(#|$) ]] && continue
    [[ $line =~ ^([A-Z][A-Z0-9_]*)=(.*)$ ]] || die 2 "$file line $n: not KEY=value"
    CONF[${BASH_REMATCH[1]}]=${BASH_REMATCH[2]}
  done <"$file"
}

# Sets KEY in a file of KEY=value lines, atomically; other lines stay as they are.
conf_set() {
  local file=$1 key=$2 value=$3
  {
    if [[ -e $file ]]; then grep -v "^$key=" "$file"; fi
    printf '%s=%s\n' "$key" "$value"
  } >"$file.tmp"
  sync "$file.tmp" && mv "$file.tmp" "$file"
}

# WS_FILTER_STATS_INTERVAL=5 of the configuration -> --stats-interval=5; =yes -> a flag.
tool_options() {
  local prefix=${1^^} key opt
  prefix=${prefix//-/_}_
  OPTS=()
  for key in "${!CONF[@]}"; do
    [[ $key == "$prefix"* ]] || continue
    opt=${key#"$prefix"}
    opt=${opt,,}
    if [[ ${CONF[$key]} == yes ]]; then
      OPTS+=("--${opt//_/-}")
    else
      OPTS+=("--${opt//_/-}=${CONF[$key]}")
    fi
  done
}

# What ws-receive follows holds a consumer back, unless its own key says otherwise; an empty one: not at all.
hold_back_options() {
  local value=${CONF[WS_DECODE_HOLD_BACK]-${CONF[WS_RECEIVE_HOLD_BACK]:-}}
  [[ -z $value ]] || OPTS+=(--hold-back "$value")
}

# consumers: sets CONSUMERS to their names.  The supervisor asks often: without a process.
consumers() {
  local file
  CONSUMERS=()
  for file in "$STATE"/consumer/*/config; do
    file=${file%/config}
    [[ ! -e $file/config ]] || CONSUMERS+=("${file##*/}")
  done
}

conf_of_consumer() {
  CONF=()
  conf_load "$STATE/walshadow.conf"
  conf_load "$STATE/consumer/$1/config"
}

# ---- positions ----
# Prints the LSN of a position file, nothing when there is none.
pos_lsn() {
  local _tli lsn
  [[ -r $STATE/pos/$1 ]] && read -r _tli lsn <"$STATE/pos/$1" && printf '%s' "$lsn"
}

lsn_number() {
  [[ $1 =~ ^([0-9A-Fa-f]+)/([0-9A-Fa-f]+)$ ]] || return 1
  printf '%d' $((16#${BASH_REMATCH[1]} << 32 | 16#${BASH_REMATCH[2]}))
}

# ---- SQL on the source ----
# source_conninfo DATABASE: SOURCE, keywords or a URI, with that database and no other: of two libpq takes
# the last.
source_conninfo() {
  local db=$1 i c encoded='' LC_ALL=C
  if [[ ${CONF[SOURCE]} == *://* ]]; then
    for ((i = 0; i < ${#db}; i++)); do
      c=${db:i:1}
      if [[ $c != [A-Za-z0-9_.-] ]]; then
        printf -v c '%02X' "'$c"
        c=%${c: -2}
      fi
      encoded+=$c
    done
    [[ ${CONF[SOURCE]} == *\?* ]] && c='&' || c='?'
    printf '%s%sdbname=%s' "${CONF[SOURCE]}" "$c" "$encoded"
  else
    db=${db//\\/\\\\}
    [[ ${CONF[SOURCE]} != *=* ]] || printf '%s ' "${CONF[SOURCE]}" # else the name of a database
    printf "dbname='%s'" "${db//\'/\\\'}"
  fi
}

source_sql() {
  local db=$1
  shift
  PGCONNECT_TIMEOUT=${PGCONNECT_TIMEOUT:-10} PGAPPNAME=walshadow \
    psql -wXAtq -v ON_ERROR_STOP=1 -d "$(source_conninfo "$db")" "$@"
}

# Prints the pid of the supervisor of this state, if one is alive.
running_supervisor() {
  local pid
  [[ -r $STATE/run/supervisor.pid ]] || return 1
  read -r pid <"$STATE/run/supervisor.pid" || return 1
  # The lock tells a live supervisor from a reused pid.
  if flock -n "$STATE/run/supervisor.lock" true 2>/dev/null; then return 1; fi
  printf '%s' "$pid"
}

# wait_until SECONDS WHAT COMMAND...: polls; dies with WHAT when the time is over, or at once when a
# tool has stopped for an operator; a consumer that is not CONSUMER holds nothing up.
wait_until() {
  local limit=$1 what=$2 start=$SECONDS file status
  shift 2
  until "$@"; do
    for file in "$STATE"/run/*.exit; do
      [[ $file != */consumer.* || $file == */consumer.${CONSUMER:-}.exit ]] || continue
      read -r status _ 2>/dev/null <"$file" || continue
      [[ $status != 2 && $status != 3 ]] ||
        die "$status" "waiting for $what: $(basename "$file" .exit) has stopped: $(svc_last_error "$(basename "$file" .exit)")"
    done
    if ((SECONDS - start >= limit)); then
      die 1 "gave up after ${limit}s waiting for $what; see: walshadow --state $STATE status"
    fi
    sleep 0.05
  done
}

wait_gone() {
  local end=$((SECONDS + $2))
  while kill -0 "$1" 2>/dev/null; do
    ((SECONDS <= end)) || return 1
    sleep 0.03
  done
}
