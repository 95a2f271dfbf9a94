#!/usr/bin/env bash
# ws-filter --rewind: back from a branch that was left, and on with the descendant; not a byte differs
# from a filter that never saw the branch.
. "$(dirname "$0")/lib/it.sh"

# receive SERVER: all that it has written, promotions on the way.
receive() {
  local end
  end=$(sql "$1" 'SELECT pg_current_wal_flush_lsn()')
  ws-receive -q --state "$S" -d "$(pg_conninfo "$1")" -n -E "$end" 2>"$T/rcv.err" ||
    die "ws-receive: $(tail -n 1 "$T/rcv.err")"
}

catalogs() { # SERVER NAME: catalog files that are born and die, and what is no catalog's
  sql "$1" "CREATE TABLE $2 (id int PRIMARY KEY, v text)" 'VACUUM FULL pg_class' \
    "INSERT INTO $2 SELECT g, repeat('x', 100) FROM generate_series(1, ${3:-500}) g" \
    "CREATE INDEX ON $2 (v)" 'REINDEX TABLE pg_type' "DROP TABLE $2"
}

# branch SERVER COPY: the copy has all of it; the server goes on.
branch() {
  pg_stop "$1" immediate
  cp -a "$T/$1" "$T/copy"
  rm -f "$T/copy/postmaster.pid"
  pg_adopt "$2" "$T/copy"
  touch "$T/$2/standby.signal"
  pg_start "$1"
}

# promote SERVER: sets FORK and TLI.
promote() {
  pg_start "$1"
  pg_promote "$1"
  TLI=$(sql "$1" "SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int")
  FORK=$(tail -n 1 "$T/$1/pg_wal/$(printf %08X "$TLI").history" | cut -f 2)
}

position() { sed -n 's/^position [0-9]* //p' "$1/state"; }
at_least() { lsn_ge "$(position "$1")" "$2"; }
moved() { (cd "$S" && find filtered pos -type f ! -name .lock -exec sha1sum {} + | sort); }
segment() { printf '%08X%08X%08X' "$1" 0 $(($(lsn_num "$2") / 1048576)); }

# What a reader could take for WAL of a timeline past its end.
past_fork() { # TLI FORK
  (cd "$S/filtered" && printf '%s\n' 0* | grep -v abandoned |
    awk -v tli="$(printf %08X "$1")" -v fork="$(segment "$1" "$2")" 'index($0, tli) == 1 && substr($0, 1, 24) >= fork')
}

# same DIR DESC: what a filter makes of raw/ that never saw anything else is there, and, in the state
# directory's own, nothing else.
same() {
  local only='^$'
  [ "$1" = "$S/filtered" ] || only="^Only in $1"
  is "$(diff -rq -x .lock -x '*.abandoned' "$T/ref" "$1" 2>&1 | grep -v "$only")" '' "$2"
}

reference() {
  rm -rf "$T/ref"
  ws-filter -q --kept "$S/kept" -D "$T/ref" "$S/raw" || die 'the reference'
}

# refused REASON DESC: and nothing moves.
refused() {
  local before
  before=$(moved)
  status_is 3 "$2" ws-filter -q --state "$S" --rewind
  like "${ERR##*$'\n'}" "reason=$1\$" "$2: the reason"
  is "$(moved)" "$before" "$2: nothing moved"
}

refusals() { # OLD-TLI
  local old=$1 segment before
  echo "$old $(position "$S/filtered")" >"$S/pos/sent.x"
  refused published_past_fork 'published past the fork'
  echo "$old $FORK" >"$S/pos/sent.x"
  bg lock flock --no-fork "$S/filtered/.lock" sleep 600
  wait_for not_free "$S/filtered/.lock"
  status_is 1 'while a filter runs' ws-filter -q --state "$S" --rewind
  stop lock
  mv "$S/filtered/states" "$T/states"
  refused filter_state_missing 'no state'
  rmdir "$S/filtered/states"
  mv "$T/states" "$S/filtered/states"
  segment=$(segment "$old" "$(lsn_text $(($(lsn_num "$FORK") - 1048576)))")
  for before in raw filtered; do
    mv "$S/$before/$segment" "$T/away"
    refused wal_missing "$before/ does not go back as far"
    mv "$T/away" "$S/$before/$segment"
  done
  printf '%s\t0/1000\tx\n' 1234 >"$S/raw/00001235.history"
  refused timeline_not_descendant 'another branch'
  rm "$S/raw/00001235.history"
}

not_free() { ! unlocked "$1"; }

# Killed at each step, and from an older state; both on copies.
copies() { # OLD-TLI
  local at own=$S
  cp -a "$S" "$T/killed"
  cp -a "$S" "$T/older"
  for at in linkat:history rename:abandoned rename:abandoned:2 rename:filtered/state rename:pos/filtered; do
    LD_PRELOAD=$BUILD/prog/dieat.so DIE_AT=$at run ws-filter -q --state "$T/killed" --rewind
    is "$STATUS" 137 "killed at $at"
  done 2>/dev/null
  S=$T/killed
  status_is 0 'after kills at each step' ws-filter --state "$S" --rewind
  like "$ERR" 'nothing to go back from' 'only the position is left to do'
  status_is 0 'the filter goes on after them' ws-filter -q --state "$S"
  same "$S/filtered" 'the same bytes after kills at each step'
  S=$T/older
  rm "$S/filtered/states/$(segment "$1" "$FORK")"
  status_is 0 'from an older state' ws-filter -q --state "$S" --rewind
  ok 'which is of an earlier segment' lsn_ge "$(lsn_text $(($(lsn_num "$FORK") - 1048576)))" "$(position "$S/filtered")"
  status_is 0 'the filter goes on from there' ws-filter -q --state "$S"
  same "$S/filtered" 'the same bytes from an older state'
  S=$own
  rm -rf "$T/killed" "$T/older"
}

# left_and_back OLD NEW WHAT: OLD has gone on past the fork and is stopped, NEW is not promoted yet.
left_and_back() {
  local old=$1 new=$2 what=$3 old_tli second
  read -r old_tli _ <"$S/pos/received"
  receive "$old"
  pg_kill "$old"
  status_is 0 'past the fork' ws-filter -q --state "$S"
  if [ "$what" = long ]; then
    ok 'another one, that runs' wait_for at_least "$T/live" "$(position "$S/filtered")"
    ok 'and one that will be killed on its way back' wait_for at_least "$T/dying" "$(position "$S/filtered")"
  fi
  status_is 0 'not known yet' ws-filter --state "$S" --rewind
  like "$ERR" 'nothing to go back from' 'and says so'
  promote "$new"
  if [ "$what" = several ]; then
    pg_stop "$new"
    touch "$T/$new/standby.signal"
    promote "$new"
    second=$FORK
    FORK=$(awk -v tli="$old_tli" '$1 == tli {print $2}' "$T/$new/pg_wal/$(printf %08X "$TLI").history")
    is "$(segment 0 "$second")" "$(segment 0 "$FORK")" 'two forks in one segment'
  fi
  catalogs "$new" made 10000
  receive "$new"
  not_ok 'what is filtered lies past it' lsn_ge "$FORK" "$(position "$S/filtered")"
  status_is 3 'a filter stops' ws-filter -q --state "$S"
  like "$ERR" 'reason=past_fork$' 'with the reason'
  reference
  if [ "$what" = long ]; then
    refusals "$old_tli"
    copies "$old_tli"
  fi
  status_is 0 'goes back' ws-filter --state "$S" --rewind
  like "$ERR" "went back: timeline=$old_tli .* fork=${FORK%/*}/0*${FORK#*/} new_timeline=$TLI " 'and says so'
  is "$(past_fork "$old_tli" "$FORK")" '' 'no reader finds WAL past the fork'
  is "$(cat "$S/pos/filtered")" "$(sed -n 's/^position //p' "$S/filtered/state")" 'the position is that of the state'
  ok 'not past the fork' lsn_ge "$FORK" "$(position "$S/filtered")"
  status_is 0 'a filter goes on' ws-filter -q --state "$S"
  same "$S/filtered" 'the same bytes'
  is "$(position "$S/filtered")" "$(position "$T/ref")" 'to the end'
  # One that was stopped in the fork's segment, before the fork.
  status_is 0 'a filter that was not past it goes on' ws-filter -q -D "$T/before" "$S/raw"
  same "$T/before" 'the same bytes there'
}

rewinds() {
  local what old=a new
  S=$T/st
  rm -rf "$S" "$T"/{before,ref}
  mkdir "$S"
  pg_init a --wal-segsize=1
  pg_conf a autovacuum=off wal_keep_size=256MB max_wal_size=4GB checkpoint_timeout=1h
  pg_start a
  receive a
  ws-catalog kept -d "$(pg_conninfo a)" -o "$S/kept" || die 'kept'
  catalogs a first 10000
  receive a
  status_is 0 'filtered' ws-filter -q --state "$S" --kept "$S/kept"
  # The fork in a segment and whole segments past it; at a segment boundary; two of them in a segment, and a few
  # bytes past the first.
  for what in long boundary several; do
    # shellcheck disable=SC2034 # tap.sh uses it
    TAP_PREFIX="[$PG_MAJOR] $what: "
    new=$what
    # With room for all of it in one segment; but for long, where a record leads into that.
    [ $what = long ] || sql "$old" 'SELECT pg_switch_wal()' >/dev/null
    sql "$old" 'CREATE TABLE before_it ()' 'DROP TABLE before_it'
    receive "$old"
    ws-filter -q --kept "$S/kept" -D "$T/before" "$S/raw" || die 'the one before'
    [ $what != boundary ] || sql "$old" 'SELECT pg_switch_wal()' >/dev/null
    branch "$old" "$new"
    case $what in
    several) sql "$old" "SELECT pg_logical_emit_message(true, 'x', 'y')" >/dev/null ;;
    long)
      bg live ws-filter -q --kept "$S/kept" -D "$T/live" --follow "$S/raw"
      LD_PRELOAD=$BUILD/prog/dieat.so DIE_AT=pwrite:dying/00000002 \
        bg dying ws-filter -q --kept "$S/kept" -D "$T/dying" --follow "$S/raw"
      ;;&
    *) catalogs "$old" gone 30000 ;;
    esac
    left_and_back "$old" "$new" "$what"
    [ $what != boundary ] || is "$(($(lsn_num "$FORK") % 1048576))" 0 'the fork is at a segment boundary'
    if [ $what = long ]; then
      ok 'one that ran all the time goes back by itself' wait_for at_least "$T/live" "$(position "$T/ref")"
      stop live
      is "$STATUS" 0 'it ends in order'
      same "$T/live" 'the same bytes there, too'
      ok 'the one that is killed' wait_for not_alive dying
      status_is 0 'goes on when it is started again' ws-filter -q -D "$T/dying" "$S/raw"
      same "$T/dying" 'the same bytes after a kill on the way'
      rm -rf "$T"/{live,dying}
    fi
    old=$new
  done
  pg_stop "$old"
  pruned
}

# What is needed to go back once more stays: the WAL from where the state of the position's segment ends;
# what was set aside goes as the rest does.
pruned() {
  local state first f low=0
  cp "$S/pos/filtered" "$S/pos/captured.5"
  state=$(find "$S/filtered/states" -name "*$(segment 0 "$(position "$S/filtered")" | cut -c 9-)" | tail -n 1)
  first=$(segment 0 "$(sed -n 's/^position [0-9]* //p' "$state")")
  for f in "$S"/raw/*.abandoned; do
    f=${f##*/}
    [[ ${f:8:16} < ${first:8} ]] && low=$((low + 1))
  done
  cmp_is "$low" -ge 2 'WAL of branches that were left is there'
  status_is 0 'pruned' ws-archive prune -q --state "$S"
  is "$(cd "$S/raw" && printf '%s\n' 0* | grep -v '[dy]$' | cut -c 9-24 | sort | head -n 1)" "${first:8}" \
    'what a fork would make needed stays'
  is "$(cd "$S/raw" && printf '%s\n' *.abandoned | awk -v first="${first:8}" 'substr($0, 9, 16) < first')" '' \
    'nothing of those branches below it'
  begins_late
}

# A shadow that starts on a later timeline asks for its history, even when no switch to it was filtered.
begins_late() {
  local first
  mkdir "$T/in"
  cp "$S/raw/$(printf %08X "$TLI")"* "$T/in"
  first=$(cd "$T/in" && printf '%s\n' 0*.history)
  cmp_is "$TLI" -gt 1 "the WAL begins on timeline $TLI"
  status_is 0 'is filtered' ws-filter -q -D "$T/late" "$T/in"
  is "$(cmp "$T/late/$first" "$T/in/$first" 2>&1)" '' 'its history is there'
  rm -rf "$T"/{in,late}
}

for_majors rewinds
status_is 2 'no going back while following' ws-filter --rewind --follow -D "$T/o" "$T"
status_is 2 'nor without output' ws-filter --rewind -n "$T"
status_is 2 'nor of a stream' ws-filter --rewind -D - "$T"
status_is 2 'nor of what is not there' ws-filter --rewind -D "$T/o" "$T/none"
status_is 3 'a directory without WAL' ws-filter --rewind -D "$T/o" "$T"
done_testing
