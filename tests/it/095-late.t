#!/usr/bin/env bash
# INSERTs that outlive their ws-emit: the server goes on with what a dead client sent.  The next
# ws-emit neither loses nor doubles anything, with a key, without one, and in a history; and a
# TRUNCATE or a replacement behind such an INSERT is not undone by it.
. "$(dirname "$0")/lib/it.sh"

mk() { { printf 'identity\t7000000000000000001\t5\tshop\n'; sed 's/  \+/\t/g'; } | mkchange; }
emit() { ws-emit --state "$T/st" --consumer c1 --url "$CH_URL" --routes "$T/routes" "$@"; }
RELS='relation  1  1  public.t  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1
relation  2  2  public.a  n  0/100  id:1:int8:n:20:-1  v:2:text::25:-1
relation  3  3  public.h  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1'

running() { ch "SELECT count() FROM system.processes WHERE query LIKE 'INSERT INTO%public_$1%' AND query_id LIKE 'walshadow/%'"; }
is_running() { [ "$(running "$1")" -gt 0 ]; }
counts() { ch 'SELECT (SELECT count() FROM shop.public_t FINAL WHERE _is_deleted = 0), (SELECT count() FROM shop.public_a FINAL), (SELECT count() FROM shop.public_h)'; }

# slow TABLE: each INSERT takes seconds from now on; fast TABLE.
slow() { ch "CREATE MATERIALIZED VIEW shop.slow_$1 ENGINE = Null AS SELECT sleepEachRow(0.04) AS s FROM shop.public_$1"; }
fast() { ch "DROP TABLE shop.slow_$1 SYNC"; }

# dies TABLE: ws-emit reads st.bin and is killed while its INSERT into TABLE executes.
dies() {
  slow "$1"
  BG_IN=st.bin bg "emit$1" ws-emit --state "$T/st" --consumer c1 --url "$CH_URL" --routes "$T/routes" -j 3
  wait_for -m "the INSERT into $1" is_running "$1"
  kill9 "emit$1"
  ok "the INSERT into $1 goes on without its client" is_running "$1"
}

inserts() {
  local h t n=0
  for t in t a h; do
    n=$((n + 1))
    h=$n
    { echo "$RELS"; printf 'transactions  %s  1  60  %s  %s/0  %s\nend  %s/0\n' "$h" $((100 * n)) $((n + 1)) $((1000 * n)) $((n + 2)); } | mk >st.bin
    dies $t
    status_is 0 "the next ws-emit ($t)" emit <st.bin
    fast $t
    is "$(running $t)" 0 'and nothing is left running'
  done
  is "$(counts)" $'61\t61\t61' 'every row is there once'
  is "$(ch 'SELECT count(), uniqExact(_version) FROM shop.public_h')" $'61\t61' 'in the history, too'
}

statements() {
  { echo "$RELS"; printf 'transactions  1  1  60  900  8/0  9000\nbegin  950  8/1000000  8/1000040\nT  1\nI  1  1  live\ncommit\nend  9/0\n'; } | mk >st.bin
  dies t
  status_is 0 'a TRUNCATE behind a late INSERT' emit <st.bin
  fast t
  is "$(ch 'SELECT id, v FROM shop.public_t FINAL WHERE _is_deleted = 0')" $'1\tlive' 'is not undone by it'
  { echo "$RELS"; printf 'transactions  1  1  60  1000  A/0  9000\nbegin  1050  A/1000000  A/1000040\nP  1\nI  1  2  new\np  1\ncommit\nend  B/0\n'; } | mk >st.bin
  dies t
  status_is 0 'nor is a replacement' emit <st.bin
  is "$(ch 'SELECT id, v FROM shop.public_t FINAL WHERE _is_deleted = 0')" $'2\tnew' 'by what came late'
}

ch_start ch
printf 'table public.a keyless=append\ntable public.h deletes=history\ntable *\n' >routes
{ echo "$RELS"; printf '%s\n' 'begin  1  1/0  1/40' 'I  1  1  x' 'I  2  1  x' 'I  3  1  x' commit 'end  1/1000'; } | mk >st.bin
status_is 0 'tables are made' emit <st.bin
inserts
statements
done_testing
