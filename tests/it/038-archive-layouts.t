#!/usr/bin/env bash
# Archives as WAL-G and pgBackRest lay them out, in a directory and in a bucket, and a standby of each
# major that recovers from one.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/s3.sh"

arc() { ws-archive "$1" --store "$A" "${@:2}"; }
get() { rm -f "$T/got"; arc get "$@" "$T/got"; }
reason_is() { like "${ERR##*$'\n'}" "reason=$1\$" "$2"; }

# pack FILE HOW TARGET: compressed; gzip is the program, the others are push's.
pack() {
  case $2 in
  none) cp "$1" "$3" ;;
  gz) gzip -c "$1" >"$3.gz" ;;
  *)
    rm -rf "$T/pack"
    mkdir "$T/pack"
    ws-archive push --store "$T/pack" --compress "$2" "$1" && mv "$T/pack/$(basename "$1").${2}" "$3.$2"
    ;;
  esac
}

# lay_out: $T/plain as $T/walg and as $T/back.
lay_out() {
  local file name how=(none gz lz4 zst) i=0 id=$PG_MAJOR-1 sum
  rm -rf "$T/walg" "$T/back"
  mkdir -p "$T/walg"/{wal_005,basebackups_005} "$T/back/archive/main/$id" "$T/back/backup/main"
  touch "$T/back/archive/main/archive.info"{,.copy} "$T/walg/wal_005/000000010000000000000001.json"
  for file in "$T"/plain/0*; do
    name=$(basename "$file")
    case $name in
    *.history)
      pack "$file" lz4 "$T/walg/wal_005/$name"
      cp "$file" "$T/back/archive/main/$id/$name"
      continue
      ;;
    esac
    mkdir -p "$T/back/archive/main/$id/${name:0:16}"
    sum=$(sha1sum "$file")
    pack "$file" "${how[i % 4]}" "$T/walg/wal_005/$name"
    pack "$file" "${how[(i + 1) % 4]}" "$T/back/archive/main/$id/${name:0:16}/$name-${sum%% *}"
    i=$((i + 1))
  done
}

all_come_back() {
  local file bad=
  for file in "$T"/plain/0*; do
    get "$(basename "$file")" && cmp "$T/got" "$file" || bad+=" $(basename "$file")"
  done
  is "$bad" '' "$1: everything comes back"
  is "$(arc list | cut -d' ' -f 1)" "$(cd "$T/plain" && ls)" "$1: list"
  status_is 0 "$1: check" arc check
  status_is 1 "$1: absent" get 000000010000000900000001
  status_is 1 "$1: an absent history" get 00000009.history
}

# A primary that was promoted once; its archive is $T/plain.
source_of_wal() {
  rm -rf "$T/plain" "$T/base" "$T/p"
  mkdir "$T/plain"
  pg_init p --wal-segsize=1
  pg_start p
  sql p 'CREATE TABLE t (id int PRIMARY KEY, v text)'
  pg_stop p
  cp -a "$T/p" "$T/base"
  pg_conf p archive_mode=on "archive_command='ws-archive push --store $T/plain %p %f'"
  pg_start p
  sql p "INSERT INTO t SELECT g, repeat(md5(g::text), 20) FROM generate_series(1, 4000) g"
  pg_stop p
  touch "$T/p/standby.signal"
  pg_start p
  sql p 'SELECT pg_promote()' >/dev/null
  wait_for_is f sql p 'SELECT pg_is_in_recovery()'
  sql p "INSERT INTO t SELECT g, repeat(md5(g::text), 20) FROM generate_series(4001, 6000) g" 'SELECT pg_switch_wal()' >/dev/null
  DIGEST=$(sql p 'SELECT count(*), md5(string_agg(v, id::text ORDER BY id)) FROM t')
  pg_stop p
  like "$(ls "$T/plain")" '00000002.history.*000000020000' 'there is WAL of two timelines'
}

# recovers WHAT: a standby from $A alone.
recovers() {
  cp -a "$T/base" "$T/q.new"
  pg_adopt q "$T/q.new"
  touch "$T/q/standby.signal"
  pg_conf q "restore_command='ws-archive get --store $A %f %p'" wal_retrieve_retry_interval=100ms hot_standby=on
  pg_start q
  wait_for_is "$DIGEST" sql q 'SELECT count(*), md5(string_agg(v, id::text ORDER BY id)) FROM t'
  is "$(sql q 'SELECT count(*), md5(string_agg(v, id::text ORDER BY id)) FROM t')" "$DIGEST" "$1"
  pg_stop q
}

layouts() {
  source_of_wal
  lay_out
  A=$T/walg
  all_come_back WAL-G
  recovers 'a standby recovers from an archive of WAL-G'
  A=$T/back
  all_come_back pgBackRest
  recovers 'a standby recovers from an archive of pgBackRest'
}

refused() {
  local seg dir file
  A=$T/walg
  seg=$(arc list | awk '$4 == "gz" { print $1; exit }')
  mv "$A/wal_005/$seg.gz" "$A/wal_005/$seg.br"
  status_is 254 'a compression of WAL-G that cannot be read is no absence' get "$seg"
  reason_is compression_unsupported 'and has its reason'
  like "$(arc list)" "$seg 1 [0-9]+ other" 'it is listed'
  mv "$A/wal_005/$seg.br" "$A/wal_005/$seg.gz"
  status_is 2 'nothing is pushed there' arc push "$T/plain/$seg"
  status_is 1 'as a plain archive it is empty' get --layout plain "$seg"

  A=$T/back
  dir=$A/archive/main/$PG_MAJOR-1/${seg:0:16}
  file=$(ls "$dir"/"$seg"-*)
  status_is 2 'nothing is pushed there either' arc push "$T/plain/$seg"
  cp "$file" "$T/keep"
  mv "$file" "$dir/$seg-0123456789012345678901234567890123456789${file##*"$seg"-????????????????????????????????????????}"
  status_is 254 'another checksum' get "$seg"
  reason_is archive_corrupt 'is damage'
  like "$ERR" 'its SHA-1 is [0-9a-f]{40} ' 'and says which it is'
  cp "$T/keep" "$file"
  status_is 254 'the same segment twice' get "$seg"
  reason_is archive_conflict 'is a conflict'
  rm "$dir/$seg-0123456789012345678901234567890123456789"*
  status_is 0 'once' get "$seg"
  cp -r "$A/archive/main/$PG_MAJOR-1" "$A/archive/main/$PG_MAJOR-2"
  status_is 126 'several versions' get "$seg"
  like "$ERR" "choose one by --archive-id: .*$PG_MAJOR-" 'are named'
  status_is 0 'one of them' get --archive-id "$PG_MAJOR-2" "$seg"
  cp -r "$A/archive/main" "$A/archive/other"
  status_is 126 'several stanzas' get --archive-id "$PG_MAJOR-2" "$seg"
  like "$ERR" 'choose one by --stanza' 'are, too'
  status_is 0 'one of these' get --stanza other --archive-id "$PG_MAJOR-1" "$seg"
  rm -r "$A/archive/other" "$A/archive/main/$PG_MAJOR-2"
  mkdir -p "$T/none/archive"
  status_is 254 'nothing in it is no absence' ws-archive get --store "$T/none" "$seg" "$T/got"
  reason_is archive_missing 'and has its reason'
}

bucket() {
  local seg
  s3_start s3 -p 2
  cp -r "$T/walg" "$S3_DIR/o/bucket/g"
  cp -r "$T/back" "$S3_DIR/o/bucket/b"
  export AWS_REGION=test-1 AWS_ENDPOINT_URL=$S3_URL
  A=s3://bucket/g
  all_come_back 'WAL-G in a bucket'
  A=s3://bucket/b
  all_come_back 'pgBackRest in a bucket'
  seg=$(arc list | sed -n 2p | cut -d' ' -f 1)
  : >"$S3_DIR/log"
  status_is 0 'given the layout' get --layout pgbackrest --stanza main --archive-id "$PG_MAJOR-1" "$seg"
  is "$(wc -l <"$S3_DIR/log")" 2 'a look and a request are enough'
}

for_majors layouts
refused
bucket
done_testing
