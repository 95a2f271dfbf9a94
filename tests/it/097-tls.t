#!/usr/bin/env bash
# ws-emit's way to the destination: TLS with its own authorities and a client certificate, a proxy,
# several hosts, secrets from files and the environment, settings of each INSERT.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/chproxy.sh"
. "$IT_LIB/tls.sh"

mk() { { printf 'identity\t7000000000000000001\t5\tshop\n'; sed 's/  \+/\t/g'; } | mkchange; }

emit() {
  local s=$1
  shift
  ws-emit --state "$T/$s" --consumer c1 "$@" <"$T/st.bin"
}

fresh() { ch 'DROP DATABASE IF EXISTS shop SYNC' && rm -rf "$T"/st.?; }
arrived() { is "$(ch 'SELECT count() FROM shop.public_t FINAL' 2>/dev/null)" "$1" "$2"; }

tls() { tls_start "$1" "$2" "${CH_URL##*:}" "${3:-}"; }

certificates() {
  cert ca 'walshadow test authority'
  cert other 'another authority'
  cert server localhost ca
  cert wrongname elsewhere ca
  cert client shadow ca
  cert stranger shadow other
  tls tls server
  status_is 0 'TLS with the authority given' emit st.a --url "$TLS_URL" --cacert ca.pem --compression zstd
  arrived 500 'arrives'
  fresh
  status_is 3 'another authority' emit st.b --url "$TLS_URL" --cacert other.pem
  like "$ERR" 'reason=destination_tls' 'is refused, with a reason'
  status_is 3 "the system's authorities" emit st.b --url "$TLS_URL"
  like "$ERR" 'reason=destination_tls' 'do not know it either: verification is on'
  status_is 3 'a file that is no certificate' emit st.b --url "$TLS_URL" --cacert st.bin
  not_ok 'no position is made by that' test -e st.b/pos/sent.c1 -o -e st.b/pos/ack.c1
  status_is 0 '--insecure-no-verify takes any' emit st.b --url "$TLS_URL" --insecure-no-verify
  arrived 500 'and arrives'
  openssl x509 -req -in wrongname.csr -CA ca.pem -CAkey ca.key -days 2 -out wrongname.pem -extfile <(echo 'subjectAltName=DNS:elsewhere') 2>>openssl.err
  tls wrong wrongname
  fresh
  status_is 3 'a certificate for another host' emit st.c --url "$TLS_URL" --cacert ca.pem
  like "$ERR" 'reason=destination_tls' 'is refused'
  tls mutual server ,verify=1,cafile=ca.pem
  status_is 0 'a client certificate' emit st.d --url "$TLS_URL" --cacert ca.pem --cert client.pem --key client.key
  arrived 500 'is shown'
  fresh
  status_is 1 'one of another authority' emit st.e --url "$TLS_URL" --cacert ca.pem --cert stranger.pem --key stranger.key --no-loop
  status_is 1 'none where one is wanted' emit st.e --url "$TLS_URL" --cacert ca.pem --no-loop
  arrived '' 'nothing arrives'
  status_is 3 'a key of another certificate' emit st.f --url "$TLS_URL" --cacert ca.pem --cert client.pem --key server.key
}

proxies() {
  local px
  fresh
  free_port
  px=http://127.0.0.1:$PORT
  mkdir -p px
  bg px chproxy -p -l "$PORT" -u "${CH_URL##*:}" "$T/px"
  wait_for -m 'the proxy' test -e px/ready
  status_is 0 'an HTTP proxy' emit st.g --url "$CH_URL" --proxy "$px"
  arrived 500 'is gone through'
  like "$(cat px/asked)" "^POST http://127.0.0.1:${CH_URL##*:}/" 'by its rules'
  fresh
  tls tunnel server
  status_is 0 'TLS through a proxy' emit st.h --url "$TLS_URL" --cacert ca.pem --proxy "$px"
  arrived 500 'in a tunnel'
  like "$(cat px/asked)" "^CONNECT localhost:${TLS_URL##*:}" 'by CONNECT'
  stop px
  status_is 1 'a proxy that is not there' emit st.i --url "$CH_URL" --proxy "$px" --no-loop
}

# The first host dies on the way; the second one is another way to the same server.
hosts() {
  local i
  fresh
  proxy_start one
  mkfifo feed.fifo
  { printf '%s\n' 'relation  1  16385  public.t  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1'
    printf 'transactions  1  20  10  100  1/0  1\n'; for i in 1 2 3 4 5 6 7 8; do printf 'sleep  200\ntransactions  1  20  10  %s00  %s/0  %s000\n' $((i + 1)) $((i + 1)) "$i"; done
    echo 'end  20/0'; } >hosts.txt
  bg feed bash -c "{ printf 'identity\t7000000000000000001\t5\tshop\n'; sed 's/  \+/\t/g' hosts.txt; } | mkchange >feed.fifo"
  BG_IN=feed.fifo bg emit ws-emit --state "$T/st.j" --consumer c1 --url "$PROXY_URL" --url "$CH_URL"
  wait_for -m 'the first rows' test -s st.j/pos/ack.c1
  kill9 one
  wait_exit emit 60
  is "$STATUS" 0 'a host dies, the next one is taken'
  arrived 1800 'nothing is lost or double'
  ok 'which the log tells' log_has emit 'going to the next server'
  free_port
  fresh
  status_is 0 'the first of two hosts is dead from the start' emit st.k --url "http://127.0.0.1:$PORT" --url "$CH_URL"
  arrived 500 'the second one does'
}

secrets() {
  fresh
  ch "CREATE USER IF NOT EXISTS shadow IDENTIFIED BY 'se cret'" 2>/dev/null
  if ! ch "GRANT ALL ON *.* TO shadow" 2>grant.err; then
    note "the server has no user management: $(head -c 100 grant.err)"
    status_is 3 'a user that is not there' emit st.l --url "$CH_URL" --user shadow
    return
  fi
  printf 'se cret\n' >pw
  status_is 0 'a password from a file' emit st.l --url "$CH_URL" --user shadow --password-file pw
  arrived 500 'lets in'
  fresh
  CLICKHOUSE_USER=shadow CLICKHOUSE_PASSWORD='se cret' status_is 0 'user and password from the environment' emit st.m --url "$CH_URL"
  echo wrong >pw
  status_is 3 'a wrong password' emit st.n --url "$CH_URL" --user shadow --password-file pw
  like "$ERR" 'reason=destination_auth' 'is told apart'
  not_like "$ERR" 'wrong' 'and not shown'
  not_ok 'and makes no position' test -e st.n/pos/sent.c1
}

settings() {
  local w
  fresh
  proxy_start two
  proxy_rule before 'INSERT INTO .shop'
  BG_IN=st.bin bg emit ws-emit --state "$T/st.o" --consumer c1 --url "$PROXY_URL" --setting insert_quorum=0 --setting log_comment=walshadow-test
  proxy_hit
  for w in async_insert=0 insert_quorum=0 log_comment=walshadow-test input_format_skip_unknown_fields=0 \
    input_format_null_as_default=0 input_format_native_allow_types_conversion=0 deduplicate_insert=disable distributed_foreground_insert=1; do
    like "$(cat "$PROXY_DIR/line")" "[?&]${w}[& ]" "each INSERT is sent $w"
  done
  proxy_go
  wait_exit emit
  is "$STATUS" 0 'and done'
  status_is 3 'a setting that is none' emit st.p --url "$CH_URL" --setting no_such_setting=1
  like "$ERR" 'reason=destination_setting' 'is told'
}

ch_start ch
mk >st.bin <<'IN'
relation  1  16385  public.t  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1
transactions  1  50  10  100  1/0  1
end  2/0
IN
fresh
for part in certificates proxies hosts secrets settings; do "$part"; done
done_testing
