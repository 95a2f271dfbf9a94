#!/usr/bin/env bash
# Two tables with one destination; a key that changes while the destination is empty.
. "$(dirname "$0")/lib/it.sh"

SYS=7000000000000000001

mk() { { printf 'identity\t%s\t5\tshop\n' $SYS; sed 's/  \+/\t/g'; } | mkchange; }
emit() { ws-emit --state "$T/st" --consumer c1 --url "$CH_URL" "$@"; }
fresh() { ch 'DROP DATABASE IF EXISTS shop SYNC' && rm -rf "$T/st"; }

ch_start ch

# By the default template: schema a_b, table c, and schema a, table b_c.
two() {
  fresh
  printf '%s\n' 'relation  1  501  a_b.c  d  0/100  id:1:int8:nkp:20:-1' 'relation  2  502  a.b_c  d  0/100  id:1:int8:nkp:20:-1' \
    'begin  700  0/1000  0/1040' 'I  1  1' 'commit' 'begin  701  0/2000  0/2040' 'I  2  2' 'commit' 'end  0/3000' | mk >st.bin
  status_is 3 'the second table of one name' emit <st.bin
  like "${ERR##*$'\n'}" 'a_b\.c and a\.b_c are both routed to shop\.a_b_c.*reason=destination_taken' 'both are named'
  is "$(ch 'SELECT count() FROM shop.a_b_c WHERE id = 2')" 0 'no row of it went out'
  is "$(ch "SELECT count() FROM system.tables WHERE database = 'shop'")" 1 'and no table was moved'
  status_is 3 'nor after a restart' emit <st.bin
  echo 'table a.b_c name=other
table *' >routes
  status_is 0 'with a rule' emit --routes routes <st.bin
  is "$(ch 'SELECT id FROM shop.a_b_c FINAL') $(ch 'SELECT id FROM shop.other FINAL')" '1 2' 'each has its rows'
  printf '%s\n' 'table public.a name=x' 'table public.b name={schema}' 'table public.c name=x' 'table *' >routes
  status_is 2 '--check-routes sees it where the rules tell' ws-emit --check-routes --routes routes
  like "$ERR" 'routes:3: public\.c goes to \{database\}\.x, as public\.a does by line 1' 'with the lines'
  printf '%s\n' 'exclude public.c' 'table public.a name=x' 'table public.c name=x' 'table public.a name=x' >routes
  status_is 0 'and no more than that' ws-emit --check-routes --routes routes
}

# REPLICA IDENTITY USING INDEX in a later transaction than CREATE TABLE.
identity() {
  local i
  for i in empty filled; do
    fresh
    {
      printf '%s\n' 'relation  1  501  public.t  d  0/100  id:1:int8:nkp:20:-1  k:2:int8:n:20:-1' 'begin  700  0/1000  0/1040' 'S  C  501  0  1'
      [ $i = empty ] || echo 'I  1  1  10'
      printf '%s\n' 'commit' 'relation  2  501  public.t  i  0/2040  id:1:int8:np:20:-1  k:2:int8:nk:20:-1' 'begin  701  0/2000  0/2040' \
        'S  A  501  1  2' 'commit' 'begin  702  0/3000  0/3040' 'I  2  2  20' 'I  2  3  30' 'D  2  \A  30' 'commit' 'end  0/4000'
    } | mk >st.bin
    if [ $i = filled ]; then
      status_is 3 'another key for a table that has rows' emit <st.bin
      like "$ERR" 'reason=sort_key' 'stops'
      continue
    fi
    status_is 0 'another key for an empty table' emit <st.bin
    is "$(ch "SELECT sorting_key FROM system.tables WHERE database = 'shop' AND name = 'public_t'")" '(k)' 'it is made again'
    is "$(ch 'SELECT id, k FROM shop.public_t FINAL WHERE _is_deleted = 0')" $'2\t20' 'and has the rows'
    status_is 0 'all once more' emit <st.bin
  done
}

# A column that was NOT NULL is an Array; NULL has no place in it.
null_array() {
  fresh
  printf '%s\n' 'relation  1  501  public.t  d  0/100  id:1:int8:nkp:20:-1  a:2:array/int4:n:1007:-1' 'begin  700  0/1000  0/1040' 'I  1  1  {1,2}' 'commit' \
    'relation  2  501  public.t  d  0/2040  id:1:int8:nkp:20:-1  a:2:array/int4::1007:-1' 'begin  701  0/2000  0/2040' 'S  A  501  1  2' 'commit' \
    'begin  702  0/3000  0/3040' 'I  2  2  \N' 'commit' 'end  0/4000' | mk >st.bin
  status_is 3 'NULL where an array was NOT NULL' emit <st.bin
  like "$ERR" 'NULL does not fit.*null-array=empty.*reason=value_unfit' 'stops, and says what helps'
  echo 'table * null-array=empty' >routes
  status_is 0 'a rule for it' emit --routes routes <st.bin
  is "$(ch 'SELECT id, a FROM shop.public_t FINAL ORDER BY id' | tr '\t\n' ' ;')" '1 [1,2];2 [];' 'takes it as an empty one'
}

# A consumer that has lost its acknowledged position.
ack_lost() {
  fresh
  printf '%s\n' 'relation  1  501  public.t  d  0/100  id:1:int8:nkp:20:-1' 'begin  700  0/1000  0/1040' 'I  1  1' 'commit' 'end  0/3000' | mk >st.bin
  status_is 0 'a commit' emit <st.bin
  echo '1 0/800' >st/pos/floor.c1
  rm st/pos/ack.c1
  status_is 3 'the acknowledged position is lost' emit <st.bin
  like "$ERR" 'reason=ack_missing' 'which is told'
  not_ok 'and not made up' test -e st/pos/ack.c1
}

two
identity
ack_lost
null_array
done_testing
