#!/usr/bin/env bash
# Rules that change: a commit that was sent once is sent by the same rules when it comes again, whatever
# dies in between, and the next one by the new ones.
. "$(dirname "$0")/lib/it.sh"

SYS=7000000000000000001

mk() { { printf 'identity\t%s\t5\tshop\n' $SYS; sed 's/  \+/\t/g'; } | mkchange; }
rows() { ch "SELECT id, v FROM shop.public_t FINAL ORDER BY 1 FORMAT TSV" | tr '\t\n' ' ;'; }
pos() { cut -d ' ' -f 2 "$T/st/pos/$1.c1" 2>/dev/null; }
versions() { (cd "$T/st/consumer/c1/routes" && echo *); }
fresh() { ch 'DROP DATABASE IF EXISTS shop SYNC' && rm -rf "$T/st"; }
emit() { ws-emit --state "$T/st" --consumer c1 --url "$CH_URL" --routes "$T/routes" "$@"; }

# stream N: N transactions with a row each, of a type that is not decoded; END: whole.
head_() { echo 'relation  1  16385  public.t  d  0/100  id:1:int8:nkp:20:-1  v:2:unsupported::600:-1'; }
tx() { printf '%s\n' "begin  70$1  0/${1}000  0/${1}040" "I  1  $1  abc" commit; }
stream() {
  local i
  { head_; for i in $(seq "$1"); do tx "$i"; done; echo "${2:-end  0/${1}100}"; } | mk
}

# feed N: two transactions, of which the second is new, so that the table is known; behind a frozen
# destination the others, up to N, without an end.
feed() {
  rm -f "$T/fifo" "$T/go"
  mkfifo "$T/fifo"
  { head_; tx 1; tx 2; } | mk >"$T/one"
  stream "$1" "progress  0/${1}100" | tail -c +$(($(stat -c %s "$T/one") + 1)) >"$T/rest"
  bg feed bash -c "exec 3>'$T/fifo'; cat '$T/one' >&3; while [ ! -e '$T/go' ]; do sleep 0.05; done; cat '$T/rest' >&3; exec sleep 600"
  BG_IN=$T/fifo bg emit ws-emit --state "$T/st" --consumer c1 --url "$CH_URL" --routes "$T/routes"
  wait_for -m 'ws-emit to begin' log_has emit 'destination: ClickHouse'
  wait_for_is 0/00002040 pos ack
  freeze STOP
  touch "$T/go"
}
freeze() { kill -"$1" "$(pid_of ch)" $(pgrep -P "$(pid_of ch)"); }

ch_start ch

# The change of rules comes while nobody runs; what was sent, perhaps, comes again.
at_rest() {
  fresh
  echo 'table * unsupported=hex' >routes
  stream 1 >st.bin
  status_is 0 'a first commit' emit <st.bin
  is "$(versions)" 0000000000000000 'its rules are kept'
  feed 3
  wait_for_is 0/00003040 pos sent
  isnt "$(pos ack)" 0/00003040 'a commit is sent, and not acknowledged'
  kill9 emit
  kill9 feed
  freeze CONT
  echo 'table * unsupported=bytes' >routes
  stream 4 >st.bin
  status_is 0 'other rules, and it comes again' emit <st.bin
  is "$(rows)" '1 \\x616263;2 \\x616263;3 \\x616263;4 abc;' 'what was sent keeps its rules, the next has the new ones'
  stream 5 >st.bin
  status_is 0 'once more' emit <st.bin
  is "$(rows)" '1 \\x616263;2 \\x616263;3 \\x616263;4 abc;5 abc;' 'nothing changes'
  like "$(versions)" '^0000000000003040$' 'the old rules are gone'
}

# A reload, and a death before the destination has anything.
reload() {
  fresh
  echo 'table * unsupported=hex' >routes
  stream 1 >st.bin
  status_is 0 'a first commit' emit <st.bin
  feed 3
  wait_for_is 0/00003040 pos sent
  echo 'tabel *' >routes
  kill -HUP "$(pid_of emit)"
  wait_for -m 'the refusal' log_has emit 'the routes stay as they were: .*routes:1'
  is "$(versions)" 0000000000000000 'a bad file keeps the old rules, and says so'
  echo 'table * unsupported=bytes' >routes
  kill -HUP "$(pid_of emit)"
  wait_for -m 'the reload' log_has emit 'routes reloaded'
  is "$(versions)" '0000000000000000 0000000000003100' 'the new ones are durable before anything uses them'
  kill9 emit
  kill9 feed
  freeze CONT
  stream 4 >st.bin
  status_is 0 'all comes again' emit <st.bin
  is "$(rows)" '1 \\x616263;2 \\x616263;3 \\x616263;4 abc;' 'each by its rules'
}

# What stopped for the operator is what the operator changes the rules for.
stopped() {
  fresh
  echo 'table *' >routes
  { head_; printf '%s\n' 'begin  701  0/1000  0/1040' 'I  1  1  \N' commit 'begin  702  0/2000  0/2040' 'I  1  2  \N' \
    'T  1' 'I  1  3  abc' commit 'end  0/9000'; } | mk >st.bin
  status_is 3 'a value that the rules refuse' emit <st.bin
  is "$(pos sent)" 0/00002040 'part of its transaction was sent'
  status_is 3 'the same rules refuse it again' emit <st.bin
  echo 'table * unsupported=hex' >routes
  status_is 0 'other rules take it' emit <st.bin
  is "$(rows)" '3 \\x616263;' 'with all of its transaction'
}

at_rest
reload
stopped
done_testing
