#!/usr/bin/env bash
# ws-archive as archive_command of a primary and as restore_command of standbys that have nothing but
# the archive, across a promotion; what it does when things go wrong.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/s3.sh"

MB=$((1 << 20))
A= # the archive at hand

rows() { sql "$1" 'SELECT count(*) FROM t' 2>/dev/null; }
digest() { sql "$1" "SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM t"; }
archived() { [ "$(sql "$1" "SELECT last_archived_wal >= '$2' FROM pg_stat_archiver")" = t ]; }
name_of() { sql "$1" 'SELECT pg_walfile_name(pg_current_wal_insert_lsn())'; }
arc() { ws-archive "$1" --store "$A" "${@:2}"; }
get() { rm -f "$T/got"; arc get "$@" "$T/got"; }
# as_archive NAME HOW: NAME archives by push, compressed like this.
as_archive() {
  pg_conf "$1" "archive_mode=on" "archive_command='ws-archive push --store $A --compress $2 %p %f'"
}

# A copy of a stopped cluster that recovers from the archive and nothing else.
standby() {
  cp -a "$T/base" "$T/$1.new"
  pg_adopt "$1" "$T/$1.new"
  touch "$T/$1/standby.signal"
  pg_conf "$1" "restore_command='ws-archive get --store $A %f %p'" wal_retrieve_retry_interval=100ms hot_standby=on \
    archive_mode=off "${@:2}"
  pg_start "$1"
}

# switch NAME [ROWS]: some rows, the segment they end in is archived.
switch() {
  sql "$1" "INSERT INTO t (v) SELECT repeat(md5(g::text), 20) FROM generate_series(1, ${2:-100}) g" \
    >/dev/null
  local seg
  seg=$(name_of "$1")
  sql "$1" 'SELECT pg_switch_wal()' >/dev/null
  wait_for -m "$seg archived" archived "$1" "$seg" || diag "$(tail -n 5 "$T/$1.err")"
}

# Nothing is fetched any more.
spool_is_idle() { unlocked "$1/.lock"; }

servers() {
  local how seg fork ddl after all
  A=$T/a.$PG_MAJOR
  mkdir "$A"
  s3_start
  pg_init p --wal-segsize=1
  as_archive p none
  pg_start p
  sql p 'CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text)'
  pg_stop p
  rm -rf "$T/base"
  cp -a "$T/p" "$T/base"
  pg_start p
  SYSTEM_ID=$(sql p 'SELECT system_identifier FROM pg_control_system()')
  standby one
  for how in none gz:9 lz4 zst:1; do
    pg_conf p "archive_command='ws-archive push --store $A --compress $how %p %f'"
    pg_reload p
    pgbench p -n -c 2 -t 60 -f <(echo "INSERT INTO t (v) SELECT repeat(md5(random()::text), 40) FROM generate_series(1, 20);") \
      >"$T/pgbench" 2>&1 || diag "$(tail -n 3 "$T/pgbench")"
    switch p
  done
  is "$(arc list | sed -n 's/.* //p' | sort -u | tr '\n' ' ')" 'gz lz4 none zst ' 'every compression is in the archive'
  wait_for_is "$(rows p)" rows one
  is "$(digest one)" "$(digest p)" 'a standby has all rows from the archive alone'
  status_is 0 'the archive is whole' arc check
  is "$(cut -d' ' -f 1-3 <<<"$OUT")" "there 1 $(arc list | head -n 1 | cut -d' ' -f 1)" 'and says from where on'

  switch p
  ddl=$(pg_lsn p)
  sql p 'CREATE TABLE boundary ()'
  after=$(pg_lsn p)
  switch p
  # The standby becomes the primary of the next timeline, in the middle of a segment, and archives to
  # the same place.
  sql p "INSERT INTO t (v) SELECT 'last' FROM generate_series(1, 50)"
  seg=$(name_of p)
  all=$(rows p)
  pg_stop p immediate
  # Also to a bucket, which gets what there is.
  mkdir -p "$S3_DIR/o/bucket/$PG_MAJOR"
  cp "$A"/0* "$S3_DIR/o/bucket/$PG_MAJOR/"
  as_archive one zst
  pg_conf one "archive_command='ws-archive push --store $A --compress zst %p %f && ws-archive push $S3/$PG_MAJOR --compress lz4 %p %f'"
  wait_for_is $((all - 50)) rows one
  pg_stop one
  cp "$T/p/pg_wal/$seg" "$T/one/pg_wal/"
  pg_start one
  wait_for_is "$all" rows one
  sql one 'SELECT pg_promote()' >/dev/null
  wait_for_is f sql one 'SELECT pg_is_in_recovery()'
  switch one 500
  switch one
  like "$(arc list)" '00000002.history 2 [0-9]+ zst' 'the history is archived'
  like "$(arc list)" "$seg.partial 1 [0-9]+ zst" "and the ancestor's segment as partial"
  standby two recovery_target_timeline=latest
  wait_for_is "$(rows one)" rows two
  is "$(digest two)" "$(digest one)" 'a standby recovers across the promotion from the archive alone'
  status_is 0 'the archive is whole across the switch' arc check
  like "$OUT" 'there 1 .*there 2 ' 'by both timelines'
  pg_stop two
  standby three "restore_command='ws-archive get $S3/$PG_MAJOR --prefetch 4 --spool pg_wal/ahead %f %p'"
  wait_for_is "$(rows one)" rows three
  is "$(digest three)" "$(digest one)" 'so does one from a bucket'
  status_is 0 'and it is whole, too' ws-archive check $S3/"$PG_MAJOR"
  pg_stop three
  wait_for spool_is_idle "$T/three/pg_wal/ahead"
  cmp_is "$(find "$T/three/pg_wal/ahead" -name '0*' | wc -l)" -le 4 'which was fetched ahead, and no more than it should'
  pg_stop one
  # One that is full of records.
  failures "$(arc list | awk '$4 == "none" { print $1 }' | sed -n 4p)"
  arc get 00000002.history "$T/history"
  fork=$(number "$(cut -f 2 "$T/history")")
  is "$(name 1 "$fork")" "$seg" 'the fork is in the middle of that segment'
  gate "$ddl" "$after" "$fork"
  gaps "$fork"
}

# What restore_command and archive_command are told.
failures() {
  local seg=$1
  status_is 1 'absent is 1' get 000000010000000F00000FFF
  is "$ERR" '' 'without a word'
  status_is 1 'an absent history too' get 00000007.history
  status_is 0 'a segment' get "$seg"
  status_is 0 'the same content again' arc push "$T/got" "$seg"
  cp "$T/got" "$T/other"
  printf X | dd of="$T/other" bs=1 seek=500000 conv=notrunc status=none
  status_is 3 'other content' arc push "$T/other" "$seg"
  like "${ERR##*$'\n'}" 'reason=archive_conflict$' 'is refused with its reason'
  get "$seg" && same_file "$T/got" "$A/$seg" 'what was there stays'
  ok 'no temporary file is left' test -z "$(ls "$A/.tmp")" -a ! -e "$T/got.wstmp"
  status_is 3 'a segment of another name is not pushed' arc push "$T/got" 000000010000000000000FFF
  head -c 500000 "$T/got" >"$T/short"
  status_is 3 'nor one that is too short' arc push "$T/short" 000000010000000000000FFF
  like "${ERR##*$'\n'}" 'reason=wal_corrupt$' 'with the reason'
  status_is 0 'but a partial one is' arc push "$T/short" "$seg.partial"
  status_is 0 'and comes back' get "$seg.partial"
  same_file "$T/got" "$T/short" 'as it was'

  mv "$A" "$A.away"
  status_is 254 'an archive that is not there is not absence' get "$seg"
  status_is 3 'and nothing is pushed' arc push "$T/short" "$seg.partial"
  mv "$A.away" "$A"
  chmod 000 "$A/$seg"
  status_is 254 'neither is a file that cannot be read' get "$seg"
  chmod 600 "$A/$seg"

  damaged "$seg"
  status_is 126 'a wrong option is not absence either' ws-archive get --no-such "$seg" "$T/got"
  status_is 126 'nor is a missing operand' ws-archive get --store "$A" "$seg"
  status_is 126 'nor a target that cannot be made' arc get "$seg" "$T/none/x"
  full_disk "$seg"
}

# damaged SEGMENT: each way of damage has a status above 125, and nothing appears.
damaged() {
  local seg=$1 packed
  cp "$A/$seg" "$T/keep"
  printf XXXXXXXXXXXXXXXX | dd of="$A/$seg" bs=1 seek=500000 conv=notrunc status=none
  status_is 254 'a flipped byte' get "$seg"
  like "${ERR##*$'\n'}" '(CRC|record).*reason=archive_corrupt$' 'is seen by the records'
  not_ok 'nothing is handed out' test -e "$T/got" -o -e "$T/got.wstmp"
  status_is 0 '--no-verify hands it out' get --no-verify "$seg"
  head -c 700000 "$T/keep" >"$A/$seg"
  status_is 254 'a short segment' get "$seg"
  { cat "$T/keep" && echo; } >"$A/$seg"
  status_is 254 'a long one' get --no-verify "$seg"
  head -c $MB /dev/zero >"$A/$seg"
  status_is 254 'zeros' get "$seg"
  : >"$A/$seg"
  status_is 254 'an empty file' get "$seg"
  cp "$T/keep" "$A/$seg"
  for packed in gz lz4 zst; do
    seg=$(arc list | awk -v how=$packed '$4 == how && length($1) == 24 { print $1; exit }')
    cp "$A/$seg.$packed" "$T/keep"
    head -c $(($(stat -c %s "$T/keep") - 5)) "$T/keep" >"$A/$seg.$packed"
    status_is 254 "a short $packed" get "$seg"
    cp "$T/keep" "$A/$seg.$packed"
    printf XXX | dd of="$A/$seg.$packed" bs=1 seek=20000 conv=notrunc status=none
    status_is 254 "a damaged $packed" get --no-verify "$seg"
    cp "$T/keep" "$A/$seg.$packed"
    status_is 0 "a sound $packed" get "$seg"
  done
}

full_disk() {
  local full=$TOP/build/prog/nospace.so
  mkdir -p "$T/full"
  get "$1" && cp "$T/got" "$T/whole"
  LD_PRELOAD=$full NO_SPACE=$T/full/:500000 run ws-archive push --store "$T/full" "$T/whole" "$1"
  is "$STATUS" 1 'push onto a full disk is temporary'
  like "$ERR" 'No space left' 'and says so'
  is "$(find "$T/full" -type f)" '' 'and leaves nothing'
  LD_PRELOAD=$full NO_SPACE=$T/full/:500000 run ws-archive get --store "$A" "$1" "$T/full/x"
  is "$STATUS" 253 'get onto a full disk is not absence'
  is "$(find "$T/full" -type f)" '' 'and leaves nothing'
}

# name TLI NUMBER: of a segment of 1 MB.
name() { printf '%08X%08X%08X' "$1" $(($2 / 4096)) $(($2 % 4096)); }
number() { echo $(($(lsn_num "$1") / MB)); }

gate() {
  local st=$T/st ddl=$1 after=$2 fork=$3 i
  serve() { get --gate "$st" "$@"; }
  captured() { echo "1 $1" >"$st/pos/captured.5"; }
  rm -rf "$st"
  mkdir -p "$st"/{pos,raw}
  status_is 126 'a gate that is none' serve "$(name 1 "$fork")"
  printf 'SYSTEM_ID=%s\nMAJOR=%s\nSEGMENT_SIZE=%s\n' "$SYSTEM_ID" "$PG_MAJOR" $MB >"$st/cluster"
  for ((i = $(number "$ddl") - 2; i < fork; i++)); do
    arc get "$(name 1 $i)" "$st/raw/$(name 1 $i)"
  done
  i=$(number "$ddl")
  status_is 1 'before the backup nothing is served' serve "$(name 1 $((i - 1)))"
  echo "1 $(lsn_text $((i * MB)))" >"$st/pos/backup"
  status_is 0 'up to its end all is' serve "$(name 1 $((i - 1)))"
  status_is 1 'and no more' serve "$(name 1 "$i")"
  captured "$(lsn_text $((i * MB - 100)))"
  status_is 0 'below the first boundary all is served' serve "$(name 1 $((i - 1)))"
  status_is 1 'the segment that holds it is not' serve "$(name 1 "$i")"
  like "$ERR" 'not served, the gate stands at ' 'and the log says where the gate is'
  captured "$ddl"
  status_is 1 'not with the boundary just ahead' serve "$(name 1 "$i")"
  captured "$after"
  status_is 0 'when it is captured it is' serve "$(name 1 "$i")"
  status_is 0 'and what follows, as far as raw/ goes' serve "$(name 1 $((fork - 1)))"
  status_is 1 'and no further' serve "$(name 2 "$fork")"
  status_is 1 'a history neither before its switch' serve 00000002.history
  # As from a primary that went on alone past the fork: this says nothing of the other branch.
  arc get --no-verify "$(name 1 "$fork").partial" "$st/raw/$(name 1 "$fork")"
  captured "$(lsn_text $(((fork + 1) * MB)))"
  status_is 0 'while raw/ follows the ancestor, its segments are served' serve "$(name 1 $((fork - 1)))"
  status_is 1 "but not the descendant's" serve "$(name 2 "$fork")"
  like "$ERR" 'not on the branch that raw/ follows' 'and the log says why'
  status_is 1 'nor its history' serve 00000002.history
  captured "$after"
  arc get 00000002.history "$st/raw/00000002.history"
  arc get "$(name 2 "$fork")" "$st/raw/$(name 2 "$fork")"
  status_is 0 'behind it, it is' serve 00000002.history
  status_is 0 'and so is the segment of the fork' serve "$(name 2 "$fork")"
  status_is 1 "not the ancestor's of the same place" serve "$(name 1 "$fork")"
  like "$ERR" 'not on the branch' 'by the gate'
  status_is 1 'and no partial one' serve "$(name 1 "$fork").partial"
  sed -i 's/^SYSTEM_ID=.*/SYSTEM_ID=7/' "$st/cluster"
  status_is 254 'the WAL of another cluster is not served' serve "$(name 1 "$i")"
  like "${ERR##*$'\n'}" 'reason=system_id_changed$' 'with the reason'
}

gaps() {
  local fork=$1 hole history
  hole=$(ls "$A"/"$(name 1 $((fork - 2)))"*)
  mv "$hole" "$T/hole"
  status_is 3 'a hole before the switch' arc check
  like "${ERR##*$'\n'}" "$(name 1 $((fork - 2))) is missing, and 0 more.*reason=archive_gap\$" 'is named'
  like "$OUT" "missing 1 $(name 1 $((fork - 2))) $(name 1 $((fork - 2))) 1" 'and listed'
  status_is 0 'it does not matter from behind it' arc check --from "$(lsn_text $(((fork - 1) * MB)))"
  mv "$T/hole" "$hole"
  hole=$(ls "$A"/"$(name 2 "$fork")"*)
  mv "$hole" "$T/hole"
  status_is 3 "the fork's segment is wanted of the descendant" arc check -F json
  like "$OUT" "\"what\":\"missing\",\"timeline\":2,\"first\":\"$(name 2 "$fork")\"" 'by its name'
  status_is 0 'the ancestor alone goes on without it' arc check --timeline 1
  mv "$T/hole" "$hole"
  history=$(ls "$A"/00000002.history*)
  mv "$history" "$T/hole"
  status_is 3 'without the history nobody can tell' arc check
  like "${ERR##*$'\n'}" 'reason=history_missing$' 'which is said'
  mv "$T/hole" "$history"
  mkdir -p "$T/empty"
  status_is 3 'an empty archive' ws-archive check --store "$T/empty"
  like "${ERR##*$'\n'}" 'reason=archive_empty$' 'is not called whole'
}

for_majors servers
status_is 2 'no store' ws-archive list
status_is 2 'a bad layout' ws-archive list --store "$T" --layout tar
status_is 2 'a bad format' ws-archive list --store "$T" -F xml
status_is 2 'a bad timeline' ws-archive check --store "$T" --timeline 0
status_is 2 'a bad start' arc check --from 17
status_is 2 'a bad compression' arc push --compress rar "$T/whole" 000000010000000000000001
status_is 2 'a bad level' arc push --compress zst:99 "$T/whole" 000000010000000000000001
status_is 2 'a level of nothing' arc push --compress none:1 "$T/whole" 000000010000000000000001
status_is 2 'a bad name' arc push "$T/whole"
status_is 126 'a bad name' get postgresql.conf
status_is 2 'a file that is not there' arc push "$T/nowhere" 000000010000000000000001
status_is 2 'an unknown scheme' ws-archive list --store ftp://127.0.0.1/x
status_is 2 'half a path' ws-archive list --store file://x
status_is 0 'a whole one' ws-archive list --store "file://$A"
done_testing
