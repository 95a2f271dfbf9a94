#!/usr/bin/env bash
# Several destinations from one consumer, which advance together: ws-emit --tee.  Here they are two
# databases of one server, one of them by way of a proxy that can be stopped.
. "$(dirname "$0")/lib/it.sh"
. "$IT_LIB/chproxy.sh"

mk() { { printf 'identity\t7000000000000000001\t5\tshop\n'; sed 's/  \+/\t/g'; } | mkchange; }
tee_() { ws-emit --state "$T/$1" --consumer c1 --tee "$T/tee" "${@:2}"; }
count() { ch "SELECT count() FROM $1.public_t FINAL" 2>/dev/null; }
both() { is "$(count one) $(count two)" "$1 $1" "$2"; }
pos() { cat "$T/$1/pos/$2" 2>/dev/null; }
REL='relation  1  16385  public.t  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1'

dests() {
  rm -rf tee
  mkdir tee
  echo 'table * database=one' >routes.one
  echo 'table * database=two unfit=clamp' >routes.two
  printf '# the first\nurl=%s\nroutes=%s\n' "$PROXY_URL" "$T/routes.one" >tee/one
  printf 'url=%s\nroutes=%s\ncompression=lz4\n' "$CH_URL" "$T/routes.two" >tee/two
}

stream() {
  { echo "$REL"; printf 'transactions  1  2000  3  100  1/0  1\nend  9/0\n'; } | mk >st.bin
  status_is 0 'a stream to both' tee_ st <st.bin
  both 6000 'arrives at both'
  like "$(pos st ack.c1) $(pos st sent.c1)" '^1 9/00000000 1 1/[0-9A-F]+$' 'the positions are common'
  is "$(pos st ack.c1.one) $(pos st ack.c1.two)" '1 9/00000000 1 9/00000000' 'and each one has its own'
}

deaths() {
  local child
  ch 'DROP DATABASE one SYNC' && ch 'DROP DATABASE two SYNC'
  rm -f feed
  mkfifo feed
  bg feed bash -c 'exec 3>feed; cat st.bin >&3; exec sleep 60'
  proxy_rule before 'INSERT INTO .one'
  BG_IN=feed bg tee ws-emit --state "$T/d" --consumer c1 --tee "$T/tee"
  proxy_hit
  wait_for_is 6000 count two
  is "$(pos d ack.c1)" '' 'what is at one of them only is not acknowledged'
  child=$(pgrep -P "$(pid_of tee)" | head -n 1)
  kill -KILL "$child"
  wait_exit tee
  is "$STATUS" 1 'one that is killed ends all, for another try'
  proxy_done
  stop feed
  status_is 0 'again' tee_ d <st.bin
  both 6000 'both have everything'
  is "$(pos d ack.c1)" '1 9/00000000' 'which is acknowledged'
}

outage() {
  ch 'DROP DATABASE one SYNC' && ch 'DROP DATABASE two SYNC'
  kill9 proxy
  BG_IN=st.bin bg tee ws-emit --state "$T/o" --consumer c1 --tee "$T/tee"
  wait_for -m 'the outage in its status' grep -q STATE=retrying o/run/ws-emit.c1.one.status
  is "$(pos o ack.c1)" '' 'one is away: nothing is acknowledged'
  bg proxy chproxy -l "${PROXY_URL##*:}" -u "${CH_URL##*:}" "$PROXY_DIR"
  wait_exit tee 60
  is "$STATUS" 0 'it comes back'
  both 6000 'both have everything'
}

loads() {
  ch 'DROP DATABASE one SYNC' && ch 'DROP DATABASE two SYNC'
  { echo "$REL"; printf '%s\n' 'snapshot  1  0/5000' 's  1  1  base' 's  1  2  base' 'endsnapshot  1  0/5000' 'end  0/5000'; } | mk >load.bin
  status_is 0 'a load' tee_ l --load <load.bin
  both 2 'fills both'
  is "$(pos l ack.c1) $(cut -d ' ' -f 1,2 l/consumer/c1/load/16385)" '1 0/00005000 1 0/00005000' 'and makes the positions'
  printf 'url=%s\nroutes=%s\n' "$CH_URL" "$T/routes.three" >tee/three
  echo 'table * database=three' >routes.three
  status_is 3 'a destination that joins later' tee_ l <st.bin
  like "$ERR" 'reason=destination_unloaded' 'has to be loaded'
  rm tee/three
}

bad() {
  echo 'state=/tmp' >tee/bad
  status_is 2 'an option that is not its own' tee_ b <st.bin
  printf 'url=x\n' >tee/bad
  status_is 2 'a bad option' tee_ b <st.bin
  mv tee/bad 'tee/b d'
  status_is 2 'a bad name' tee_ b <st.bin
  rm tee/b*
  status_is 2 'no such directory' ws-emit --state "$T/b" --consumer c1 --tee "$T/none" <st.bin
  status_is 2 '--url beside --tee' tee_ b --url "$CH_URL" <st.bin
}

ch_start ch
proxy_start proxy
dests
for part in stream deaths outage loads bad; do "$part"; done
done_testing
