#!/usr/bin/env bash
# ws-archive on S3 and HTTP: every failure of a server has its exit status, and none is absence.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/s3.sh"
. "$IT_LIB/tls.sh"

R= # options of the archive at hand
# shellcheck disable=SC2086
arc() { ws-archive "$1" $R "${@:2}"; }
get() { rm -f "$T/got"; arc get "$@" "$T/got"; }
reason_is() { like "${ERR##*$'\n'}" "reason=$1\$" "$2"; }

# Some segments of a server, $A, named in SEGS.
segments() {
  A=$T/a
  mkdir "$A"
  pg_new p --wal-segsize=1
  pg_conf p archive_mode=on "archive_command='ws-archive push --store $A %p %f'"
  pg_restart p
  sql p "CREATE TABLE t AS SELECT g, repeat(md5(g::text), 20) FROM generate_series(1, 8000) g" 'SELECT pg_switch_wal()' >/dev/null
  pg_stop p
  mapfile -t SEGS < <(ls "$A")
  cmp_is ${#SEGS[@]} -gt 5 'there are segments'
}

sound() {
  local how i=0 seg
  for how in none gz lz4 zst; do
    seg=${SEGS[i]}
    status_is 0 "push, $how" arc push --compress "$how" "$A/$seg"
    status_is 0 'again, as another compression' arc push --compress gz "$A/$seg"
    status_is 0 'get' get "$seg"
    same_file "$T/got" "$A/$seg" 'what was pushed comes back'
    status_is 1 'another one is absent' get "${SEGS[4]}"
    is "$ERR" '' 'without a word'
    cp "$A/$seg" "$T/other"
    printf XXXXXXXXXXXXXXXX | dd of="$T/other" bs=1 seek=500000 conv=notrunc status=none
    status_is 3 'other content' arc push "$T/other" "$seg"
    reason_is archive_conflict 'is refused'
    i=$((i + 1))
  done
  printf '1\t0/100\tx\n' >"$T/history"
  status_is 0 'a history' arc push --compress zst "$T/history" 00000002.history
  status_is 0 'comes back' get 00000002.history
  same_file "$T/got" "$T/history" 'as it was'
}

# outages FOLDER STATUS: of a server whose rules count for requests to it; what a bare 404 means there.
outages() {
  local seg=${SEGS[0]} late=${SEGS[4]} status
  for status in 500 502 503 429; do
    s3_rule $status 2 "GET /$1/$seg"
    status_is 0 "$status twice" get "$seg"
    like "$ERR" 'trying again' 'is waited out, and said'
  done
  s3_rule 503 99 .
  status_is 253 '503 without end is no absence' get --retry 500ms "$seg"
  status_is 253 'of an absent one either' get --retry 500ms "$late"
  status_is 1 'push comes again later' arc push --retry 0 "$A/$late"
  s3_rule 404 1 "GET /$1/$seg"
  status_is "$2" '404 is what the store means by it' get "$seg"
  s3_rule 400 1 "GET /$1/$seg"
  status_is 254 'a request that is refused' get "$seg"
  reason_is archive_refused 'is for an operator'
  s3_rule hang 9 "GET /$1/$seg"
  status_is 253 'no answer in time' get --timeout 500ms --retry 0 "$seg"
  s3_rule cut 1 "GET /$1/$seg"
  status_is 0 'half an answer' get "$seg"
  same_file "$T/got" "$A/$seg" 'is made whole by another'
  s3_rule cut 99 "GET /$1/$seg"
  status_is 253 'half an answer each time' get --retry 500ms "$seg"
  not_ok 'leaves nothing' test -e "$T/got" -o -e "$T/got.wstmp"
  s3_rule garble 1 "GET /$1/$seg"
  status_is 254 'a byte changed on the way' get "$seg"
  reason_is archive_corrupt 'is seen'
  s3_rule garble 1 "GET /$1/${SEGS[3]}"
  status_is 254 'in what is compressed as well' get "${SEGS[3]}"
  s3_rule lost 1 "PUT /$1/$late"
  status_is 0 'stored, but the answer was lost: the same content is success' arc push "$A/$late"
  like "$ERR" 'trying again' 'at the second try'
  status_is 0 'it is there' get "$late"
  s3_rule 500 1 "PUT /$1/${SEGS[5]}"
  status_is 0 'a push that failed once' arc push "$A/${SEGS[5]}"
  rm -f "$S3_DIR/rule"
}

# A server that is shut down ends its restore_command by a signal, and wants to see that.
signals() {
  : >"$S3_DIR/log"
  s3_rule hang 9 "GET .*${SEGS[0]}"
  # shellcheck disable=SC2086
  bg get ws-archive get $R "${SEGS[0]}" "$T/got"
  wait_for grep -q '^0 GET' "$S3_DIR/log"
  stop get TERM 5
  is "$STATUS" 143 'a get that is ended says so'
  s3_rule 503 99 .
  # shellcheck disable=SC2086
  bg get ws-archive get $R "${SEGS[0]}" "$T/got"
  wait_for log_has get 'trying again'
  stop get TERM 5
  is "$STATUS" 143 'also while it waits'
  rm -f "$S3_DIR/rule"
}

keys() {
  local seg=${SEGS[0]} file=$T/credentials
  run env AWS_SECRET_ACCESS_KEY=wrong ws-archive get $S3/x "$seg" "$T/got"
  is "$STATUS" 254 'a wrong secret'
  reason_is archive_denied 'is denied'
  status_is 3 'to push as well' env AWS_ACCESS_KEY_ID=other ws-archive push $S3/x "$A/$seg"
  status_is 254 'a wrong session token' env AWS_SESSION_TOKEN=old ws-archive get $S3/x "$seg" "$T/got"
  status_is 254 'another region' ws-archive get $S3/x --region other-2 "$seg" "$T/got"
  status_is 254 'no such bucket is not absence' ws-archive get --region test-1 --endpoint "$S3_URL" --store s3://none/x "$seg" "$T/got"
  reason_is archive_missing 'and has its reason'
  printf '[default]\naws_access_key_id=none\naws_secret_access_key=none\n# x\n [ other ] \n aws_access_key_id = %s\naws_secret_access_key\t=%s\r\naws_session_token=%s' \
    "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" "$AWS_SESSION_TOKEN" >"$file"
  chmod 600 "$file"
  status_is 0 'keys from a file' ws-archive get -v $S3/x --credentials "$file" --profile other "$seg" "$T/got"
  unlike "$ERR" 'cr\+et|ke\+n' 'no secret is in the log'
  status_is 254 'before the environment' ws-archive get $S3/x --credentials "$file" "$seg" "$T/got"
  status_is 0 'or from where the environment says' env -u AWS_ACCESS_KEY_ID AWS_PROFILE=other AWS_SHARED_CREDENTIALS_FILE="$file" \
    ws-archive get $S3/x "$seg" "$T/got"
  mkdir -p "$T/.aws"
  cp -p "$file" "$T/.aws/credentials"
  status_is 0 'or from home' env -u AWS_ACCESS_KEY_ID ws-archive get $S3/x --profile other "$seg" "$T/got"
  status_is 126 'a profile that is not there' ws-archive get $S3/x --credentials "$file" --profile third "$seg" "$T/got"
  chmod 640 "$file"
  status_is 126 'a file that others can read' ws-archive get $S3/x --credentials "$file" "$seg" "$T/got"
  status_is 126 'a file that is not there' ws-archive get $S3/x --credentials "$T/none" "$seg" "$T/got"
  status_is 126 'no keys at all' env -u AWS_ACCESS_KEY_ID HOME=/nonexistent ws-archive get $S3/x "$seg" "$T/got"
  status_is 0 "the bucket in the host's name" ws-archive get --virtual-host --region test-1 --endpoint "http://localhost:$S3_PORT" \
    --store s3://bucket/x/ "$seg" "$T/got"
}

ahead() { find "$T/spool" -name '0*' -printf '%f\n' | sort | tr '\n' ' '; }
spool_is_idle() { unlocked "$T/spool/.lock"; }

# Segments 0 to 5 are there.
prefetch() {
  local opts=(--prefetch 3 --spool "$T/spool" --timeout 500ms) want
  want="${SEGS[1]} ${SEGS[2]} ${SEGS[3]} "
  status_is 0 'a segment, with a look ahead' get "${opts[@]}" "${SEGS[0]}"
  ok 'the next are fetched' wait_for_is "$want" ahead
  wait_for spool_is_idle
  : >"$S3_DIR/log"
  touch "$T/spool/${SEGS[0]}" "$T/spool/${SEGS[0]}.wstmp" "$T/spool/000000020000000000000001"
  status_is 0 'the next one' get "${opts[@]}" "${SEGS[1]}"
  same_file "$T/got" "$A/${SEGS[1]}" 'is whole'
  is "$(cat "$S3_DIR/log")" '' 'and asks the store nothing'
  is "$(ahead)" "${SEGS[2]} ${SEGS[3]} " 'it is gone from the spool, and so is what nobody wants'
  status_is 0 'the next one' get "${opts[@]}" "${SEGS[2]}"
  want="${SEGS[3]} ${SEGS[4]} ${SEGS[5]} "
  ok 'when half of them are used up it looks ahead again' wait_for_is "$want" ahead
  wait_for spool_is_idle
  status_is 0 'one from the middle' get "${opts[@]}" "${SEGS[4]}"
  same_file "$T/got" "$A/${SEGS[4]}" 'is the right one'
  wait_for spool_is_idle
  is "$(ahead)" "${SEGS[5]} " 'and the store has no more'
  status_is 1 'what is absent is absent' get "${opts[@]}" "${SEGS[4]%???}FFF"
  rm -r "$T/spool"

  # Left by a crash, and half an answer.
  get "${opts[@]}" "${SEGS[0]}"
  wait_for spool_is_idle
  rm "$T/spool/${SEGS[1]}" "$T/spool/${SEGS[3]}"
  head -c 5000 "$A/${SEGS[2]}" >"$T/spool/${SEGS[1]}.wstmp"
  s3_rule garble 1 "GET /.*/${SEGS[1]}[.]gz"
  : >"$S3_DIR/log"
  get "${opts[@]}" "${SEGS[0]}"
  wait_for grep -q "/${SEGS[1]}[.]gz" "$S3_DIR/log"
  wait_for spool_is_idle
  is "$(ahead)" "${SEGS[2]} ${SEGS[3]} " 'what is damaged does not get into the spool'
  status_is 0 'it is fetched when it is asked for' get "${opts[@]}" "${SEGS[1]}"
  same_file "$T/got" "$A/${SEGS[1]}" 'and whole then'
  rm -r "$T/spool"

  # A get waits for who is at it already, and does it itself when that comes to nothing.
  s3_rule hang 3 "GET /bucket/x/(${SEGS[1]}|${SEGS[2]}|${SEGS[3]})"
  : >"$S3_DIR/log"
  get "${opts[@]}" "${SEGS[0]}"
  wait_for_is 3 grep -c '^0 ' "$S3_DIR/log"
  kill -KILL "$(cat "$T/spool/.lock")"
  status_is 0 'the one ahead was killed' get "${opts[@]}" "${SEGS[1]}"
  same_file "$T/got" "$A/${SEGS[1]}" 'the segment comes'
  rm -f "$S3_DIR/rule"
  wait_for spool_is_idle
  stop s3
  status_is 253 'a store that is not there is no absence' get --retry 0 "${opts[@]}" "${SEGS[5]}"
  s3_again
  status_is 126 "another archive's spool" ws-archive get --store "$A" "${opts[@]}" "${SEGS[1]}" "$T/got"
  status_is 126 'no spool' get --prefetch 3 "${SEGS[1]}"
  status_is 126 'no number' get --spool "$T/spool" "${SEGS[1]}"
  status_is 126 'none' get --prefetch 0 --spool "$T/spool" "${SEGS[1]}"
  status_is 126 'too many' get --prefetch 65 --spool "$T/spool" "${SEGS[1]}"
}

s3() {
  s3_start s3 -p 3
  R=$S3/x
  sound
  # Without a code that says so it is no answer of S3.
  outages bucket/x 254
  signals
  prefetch
  keys
  # Pages of three.
  is "$(arc list | cut -d' ' -f 1 | tr '\n' ' ')" "$(printf '%s ' "${SEGS[@]:0:6}" 00000002.history)" 'a listing of several pages'
  status_is 0 'check' arc check --timeline 1
  mv "$S3_DIR/o/bucket/x/${SEGS[1]}.gz" "$T/hole"
  status_is 3 'a hole' arc check --timeline 1
  like "$ERR" "${SEGS[1]} is missing.*reason=archive_gap" 'is named'
  mv "$T/hole" "$S3_DIR/o/bucket/x/${SEGS[1]}.gz"
  s3_rule nocond 2 PUT
  R=$S3/plain
  status_is 0 'a server that does not know conditions' arc push "$A/${SEGS[0]}"
  status_is 0 'has it nevertheless' get "${SEGS[0]}"
  stop s3
  status_is 253 'a server that is not there is no absence' get --retry 300ms "${SEGS[0]}"
  status_is 1 'and no push' arc push --retry 0 "$A/${SEGS[0]}"
  s3_again
}

http() {
  http_start http
  R="--store $HTTP_URL/w/x"
  S3_DIR=$HTTP_DIR
  sound
  outages w/x 1
  signals
  status_is 2 'HTTP cannot list' arc list
  like "$ERR" 'HTTP has no way to list' 'and says so'
  status_is 2 'nor check' arc check
  status_is 126 'nor find names with checksums' get --layout pgbackrest "${SEGS[0]}"
  mkdir -p "$HTTP_DIR/o/g/wal_005"
  gzip -c "$A/${SEGS[0]}" >"$HTTP_DIR/o/g/wal_005/${SEGS[0]}.gz"
  R="--store $HTTP_URL/g/ --layout wal-g"
  status_is 0 'but it knows the names of WAL-G' get "${SEGS[0]}"
  same_file "$T/got" "$A/${SEGS[0]}" 'and reads them'
  status_is 126 'secrets in a URL' ws-archive get --store "http://me:secret@127.0.0.1/x" "${SEGS[0]}" "$T/got"
  status_is 126 'parameters in a URL' ws-archive get --store "$HTTP_URL/x?y" "${SEGS[0]}" "$T/got"
  status_is 126 'no host' ws-archive get --store http:///x "${SEGS[0]}" "$T/got"
  status_is 253 'a host that is not there' ws-archive get --retry 0 --store http://walshadow.invalid/x "${SEGS[0]}" "$T/got"
}

passwords() {
  # me:secret
  http_start guarded -b 'Basic bWU6c2VjcmV0'
  R="--store $HTTP_URL/x"
  status_is 254 'a server that wants a password' get "${SEGS[0]}"
  reason_is archive_denied 'denies'
  echo "machine 127.0.0.1 login me password secret" >"$T/netrc"
  chmod 600 "$T/netrc"
  status_is 0 'and takes the one of the file' arc push --netrc "$T/netrc" "$A/${SEGS[0]}"
  status_is 0 'to get as well' get -v --netrc "$T/netrc" "${SEGS[0]}"
  unlike "$ERR" secret 'which is not in the log'
  chmod 644 "$T/netrc"
  status_is 126 'a file that others can read' get --netrc "$T/netrc" "${SEGS[0]}"
  status_is 126 'one that is not there' get --netrc "$T/none" "${SEGS[0]}"
}

tls() {
  cert ca 'an authority' && cert server localhost ca && cert other 'another authority' || die 'openssl'
  tls_start tls server "$S3_PORT"
  R="--store s3://bucket/x --region test-1 --endpoint $TLS_URL"
  status_is 0 'S3 over TLS' get --cacert ca.pem "${SEGS[0]}"
  status_is 0 'push' arc push --cacert ca.pem "$A/${SEGS[0]}"
  status_is 254 'another authority' get --cacert other.pem "${SEGS[0]}"
  reason_is archive_tls 'has its reason'
  status_is 254 "the system's authorities do not know it: verification is on" get "${SEGS[0]}"
  status_is 126 'a file of authorities that is none' get --cacert "$A/${SEGS[0]}" "${SEGS[0]}"
  status_is 3 'push says so too' arc push --cacert other.pem "$A/${SEGS[0]}"
}

segments
s3
http
passwords
tls
R="--region test-1 --store s3://bucket/x"
status_is 126 'a bad endpoint' get --endpoint 127.0.0.1 "${SEGS[0]}"
status_is 126 'an endpoint with a path' get --endpoint http://127.0.0.1/x "${SEGS[0]}"
status_is 126 'a bad region' get --region a:b "${SEGS[0]}"
status_is 126 'no bucket' ws-archive get --store s3:///x "${SEGS[0]}" "$T/got"
status_is 126 'a bad time to connect' get --connect-timeout soon "${SEGS[0]}"
status_is 126 'a bad time' get --timeout -1 "${SEGS[0]}"
status_is 126 'a bad time to retry' get --retry x "${SEGS[0]}"
done_testing
