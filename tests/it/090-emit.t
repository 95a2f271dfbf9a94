#!/usr/bin/env bash
# ws-emit against ClickHouse, fed with made-up change streams: types and policies, row changes,
# statements and their replays, deaths on both sides, loads, routes.
. "$(dirname "$0")/lib/it.sh"

SYS=7000000000000000001

# mk: a script for mkchange, where two blanks and more are a tab, behind an identity.
mk() { { printf 'identity\t%s\t5\tshop\n' $SYS; sed 's/  \+/\t/g'; } | mkchange; }

# emit STATE [OPTION...]: the stream on stdin.
emit() {
  local s=$1
  shift
  ws-emit --state "$T/$s" --consumer c1 --url "$CH_URL" "$@"
}

# fresh: no databases of an earlier part.
fresh() { ch 'DROP DATABASE IF EXISTS shop SYNC' && rm -rf "$T"/st*; }

# rows TABLE COLUMNS: what a reader sees.
rows() { ch "SELECT $2 FROM shop.$1 FINAL WHERE _is_deleted = 0 ORDER BY 1 FORMAT TSV" | tr '\n' ';'; }

pos() { cat "$T/$1/pos/$2.c1"; }

REL='relation  1  16385  public.t  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1'

ch_start ch

types() {
  fresh
  mk >st.bin <<'EOF'
relation  1  16385  public.ty  d  0/100  id:1:int4:nkp:23:-1  b:2:bool::16:-1  s:3:int2::21:-1  l:4:int8::20:-1  o:5:oid::26:-1  f:6:float4::700:-1  d:7:float8::701:-1  da:8:date::1082:-1  ti:9:time::1083:-1  ts:10:timestamp::1114:-1  tz:11:timestamptz::1184:-1  u:12:uuid::2950:-1  n:13:numeric::1700:655366  nn:14:numeric::1700:-1  big:15:numeric::1700:4980752  t:16:text::25:-1  y:17:bytes::17:-1  j:18:json::3802:-1  a:19:array/int4:n:1007:-1  an:20:array/text::1009:-1  e:21:other::99999:-1
begin  700  0/1000  0/1040
I  1  1  t  -32768  9223372036854775807  4294967295  1.5  -1e+300  0001-01-01  24:00:00  1970-01-01 00:00:00.000001  9999-12-31 23:59:59.999999+00  00112233-4455-6677-8899-aabbccddeeff  -12345678.90  1234567890123456789012345678901234567890.000000001  9999999999999999999999999999999999999999999999999999999999999999.000000000001  héé  \x00ff0a  {"a": [1, null]}  {1,NULL,-3}  {x,NULL,"a,b"}  1 day 02:03:04
I  1  2  f  \N  \N  \N  NaN  Infinity  9999-12-31  00:00:00  2024-02-29 12:00:00  2024-02-29 12:00:00.5+00  \N  0.00  NaN  \N  \E  \x  []  {}  \N  \N
I  1  3  \N  \N  \N  \N  \N  \N  \N  \N  \N  \N  \N  \N  \N  \N  \N  \N  \N  {}  \N  \N
commit
end  0/2000
EOF
  status_is 0 'every type is taken' emit st.a <st.bin
  is "$(ch "SELECT arrayStringConcat(groupArray(name || ' ' || type), ',') FROM (SELECT * FROM system.columns
      WHERE database = 'shop' AND table = 'public_ty' AND name NOT LIKE '\\\\_%' ORDER BY position) FORMAT TSVRaw")" \
    "id Int32,b Nullable(Bool),s Nullable(Int16),l Nullable(Int64),o Nullable(UInt32),f Nullable(Float32),d Nullable(Float64),da Nullable(Date32),ti Nullable(Time64(6)),ts Nullable(DateTime64(6, 'UTC')),tz Nullable(DateTime64(6, 'UTC')),u Nullable(UUID),n Nullable(Decimal(10, 2)),nn Nullable(String),big Nullable(Decimal(76, 12)),t Nullable(String),y Nullable(String),j Nullable(String),a Array(Nullable(Int32)),an Nullable(String),e Nullable(String)" \
    'types of a created table'
  values
}

numeric_types() {
  fresh
  mk >st.bin <<'EOF'
relation  1  16385  public.ty  d  0/100  id:1:int4:nkp:23:-1  p4:2:numeric:n:1700:262150  p18:3:numeric:n:1700:1179652  p38:4:numeric:n:1700:2490384  p76:5:numeric:n:1700:4980752  neg:6:numeric:n:1700:133121
begin  700  0/1000  0/1040
I  1  1  99.99  999999999999999999  -99999999999999999999999999.999999999999  12345678901234567890123456789012345678901234567890.123456789012  99000
I  1  2  -0.01  -1  0.000000000001  -0.000000000001  -1000
commit
end  0/2000
EOF
  status_is 0 'numeric of every width' emit st.a <st.bin
  is "$(rows public_ty 'id, p4, p18, p38, p76, neg')" \
    $'1\t99.99\t999999999999999999\t-99999999999999999999999999.999999999999\t12345678901234567890123456789012345678901234567890.123456789012\t99000;2\t-0.01\t-1\t0.000000000001\t-0.000000000001\t-1000;' \
    'numbers come out as they went in'
}

values() {
  is "$(rows public_ty 'id, b, s, l, o, f, d')" \
    $'1\ttrue\t-32768\t9223372036854775807\t4294967295\t1.5\t-1e300;2\tfalse\t\\N\t\\N\t\\N\tnan\tinf;3\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N;' 'numbers'
  is "$(rows public_ty 'id, da, ti, ts, tz, u')" \
    $'1\t0001-01-01\t24:00:00.000000\t1970-01-01 00:00:00.000001\t9999-12-31 23:59:59.999999\t00112233-4455-6677-8899-aabbccddeeff;2\t9999-12-31\t00:00:00.000000\t2024-02-29 12:00:00.000000\t2024-02-29 12:00:00.500000\t\\N;3\t\\N\t\\N\t\\N\t\\N\t\\N;' 'times'
  is "$(rows public_ty 'id, n, nn, big')" \
    $'1\t-12345678.9\t1234567890123456789012345678901234567890.000000001\t9999999999999999999999999999999999999999999999999999999999999999.000000000001;2\t0\tNaN\t\\N;3\t\\N\t\\N\t\\N;' 'numerics'
  is "$(rows public_ty 'id, t, hex(y), j, a, an, e')" \
    $'1\théé\t00FF0A\t{"a": [1, null]}\t[1,NULL,-3]\t{x,NULL,"a,b"}\t1 day 02:03:04;2\t\t\t[]\t[]\t\\N\t\\N;3\t\\N\t\\N\t\\N\t[]\t\\N\t\\N;' 'texts'
  is "$(ch 'SELECT _version = bitShiftLeft(toUInt128(4096), 64) + 1, _lsn, _xid, _commit_ts FROM shop.public_ty WHERE id = 1')" \
    $'1\t4096\t700\t2026-01-01 00:11:40.000000' 'extra columns'
}

# policy ROUTES KIND VALUE: a table with one such column; prints status, reason or what arrived.
policy() {
  fresh
  printf '%s\n' "$1" >routes
  printf '%s\n' "relation  1  16385  public.p  d  0/100  id:1:int8:nkp:20:-1  v:2:$2::$3:-1" \
    'begin  700  0/1000  0/1040' "I  1  1  $4" 'commit' 'end  0/2000' | mk >st.bin
  if emit st.a --routes routes <st.bin 2>err; then
    rows public_p 'v'
  else
    echo "$? $(grep -o 'reason=[a-z_]*' err | tail -n 1) $(cat st.a/pos/ack.c1 2>/dev/null)"
  fi
}

policies() {
  is "$(policy 'table *' date 1082 infinity)" '3 reason=value_unfit ' 'an infinite date stops by default'
  is "$(policy 'table * unfit=clamp' date 1082 infinity)" '9999-12-31;' 'or is clamped'
  is "$(policy 'table * unfit=null' date 1082 -infinity)" '\N;' 'or becomes NULL'
  is "$(policy 'table * unfit=text' date 1082 '0044-03-15 BC')" '0044-03-15 BC;' 'or the column is made for text'
  is "$(policy 'table *' timestamp 1114 '0044-03-15 12:00:00 BC')" '3 reason=value_unfit ' 'so does a time before Christ'
  is "$(policy 'table * unfit=clamp' timestamptz 1184 infinity)" '9999-12-31 23:59:59.999999;' 'an endless time is clamped'
  is "$(policy 'column public.p.v type=Nullable(Int16)' int4 23 40000)" '3 reason=value_unfit ' 'an integer out of range stops'
  is "$(policy $'table * unfit=clamp\ncolumn public.p.v type=Nullable(Int16)' int4 23 40000)" '32767;' 'or is clamped'
  is "$(policy $'column public.p.v type=Nullable(UInt32)' int4 23 -1)" '3 reason=value_unfit ' 'a negative one does not wrap'
  is "$(policy $'column public.p.v type=Nullable(Int64)' numeric 1700 9223372036854775807)" '9223372036854775807;' 'numeric to Int64 in full'
  is "$(policy $'column public.p.v type=Nullable(Int64)' numeric 1700 9223372036854775808)" '3 reason=value_unfit ' 'and not beyond'
  is "$(policy 'column public.p.v type="Nullable(Decimal(9, 2))"' numeric 1700 1.234)" '3 reason=value_unfit ' 'digits beyond the scale stop'
  is "$(policy 'column public.p.v type="Nullable(Decimal(9, 2))"' numeric 1700 1.2300)" '1.23;' 'zeros beyond it do not'
  is "$(policy 'column public.p.v type="Nullable(DateTime64(3))"' timestamp 1114 '2024-01-01 00:00:00.0005')" '3 reason=value_unfit ' 'microseconds do not go into milliseconds'
  is "$(policy 'column public.p.v type="Nullable(Enum8('\''a'\'' = 1, '\''b'\'' = 2))"' other 99999 c)" '3 reason=value_unfit ' 'an unknown label stops'
  is "$(policy 'column public.p.v type="Nullable(Enum8('\''a'\'' = 1, '\''b'\'' = 2))"' other 99999 b)" 'b;' 'a known one goes'
  is "$(policy 'column public.p.v type=Nullable(IPv4)' other 869 10.0.0.1)" '10.0.0.1;' 'an address as one'
  is "$(policy 'column public.p.v type=LowCardinality(Nullable(String))' text 25 x)" 'x;' 'LowCardinality'
  is "$(policy 'column public.p.v type=JSON' json 3802 '{"a": 1}')" '{"a":1};' 'JSON where a rule says so'
  is "$(policy 'column public.p.v type=Nullable(Date)' text 25 x)" '3 reason=type_mismatch ' 'a type that the kind cannot go into'
  is "$(policy 'table *' unsupported 600 abc)" '3 reason=type_unsupported ' 'an undecoded type stops'
  is "$(policy 'table * unsupported=hex' unsupported 600 abc)" '\\x616263;' 'or comes as hex'
  is "$(policy 'table * unsupported=bytes' unsupported 600 abc)" 'abc;' 'or as its bytes'
  is "$(policy 'table * unsupported=null' unsupported 600 abc)" '\N;' 'or as NULL'
  is "$(policy 'table * null-array=empty' array/int4 1007 '\N')" '[];' 'a NULL array as an empty one, by rule'
  is "$(policy 'table * null-array=empty' array/int4 1007 '{{1,2},{3,4}}')" '3 reason=value_unfit ' 'two dimensions do not go into one'
  is "$(policy 'column public.p.v type=Array(Array(Nullable(Int32)))' array/int4 1007 '{{1,2},{3,NULL}}')" '[[1,2],[3,NULL]];' 'but into two'
  is "$(policy 'table * keyless=append' int4 23 5)" '5;' 'a policy that does not apply'
}

changes() {
  fresh
  { echo "$REL"; cat <<'EOF'; } | mk >st.bin
begin  700  0/1000  0/1040
I  1  1  one
I  1  2  two
I  1  3  three
commit
begin  701  0/1100  0/1140
U  1  1  uno
U  1  20  twenty  |  2  \A
D  1  3  \A
commit
begin  702  0/1200  0/1240
I  1  3  again
U  1  3  and again
D  1  1  \A
I  1  1  back
U  1  4  moved  |  3  \A
U  1  3  and back  |  4  \A
commit
end  0/2000
EOF
  status_is 0 'changes' emit st.a <st.bin
  is "$(rows public_t id,v)" $'1\tback;3\tand back;20\ttwenty;' 'inserts, updates, deletes, moved keys'
  is "$(pos st.a ack) $(pos st.a sent)" '1 0/00002000 1 0/00001240' 'ack reaches the end, sent the last transaction'
  # What is in hand when a promotion leaves the timeline.
  echo '1 0/00002010' >st.a/pos/fence
  { echo "$REL"; printf '%s\n' 'begin  709  0/2000  0/2040' 'I  1  99  left' commit 'end  0/2100'; } | mk >cut.bin
  status_is 1 'a commit past the fence' emit st.a <cut.bin
  like "$ERR" 'timeline 1 was left at 0/00002010' 'is not sent'
  is "$(pos st.a ack) $(pos st.a sent) $(rows public_t 'countIf(id = 99)')" '1 0/00002000 1 0/00001240 0;' 'nor any of it'
  rm st.a/pos/*
  status_is 0 'the same once more' emit st.a <st.bin
  ch 'OPTIMIZE TABLE shop.public_t FINAL'
  is "$(rows public_t id,v)" $'1\tback;3\tand back;20\ttwenty;' 'makes no difference'
  is "$(ch 'SELECT count() FROM shop.public_t')" 5 'tombstones stay'

  fresh
  mk >st.bin <<'EOF'
relation  1  16385  public.t  f  0/100  id:1:int8:np:20:-1  v:2:text::25:-1  w:3:int4::23:-1
begin  700  0/1000  0/1040
I  1  1  long  1
UF  1  1  \A  2  |  1  long  1
commit
begin  701  0/1100  0/1140
U  1  1  \A  3
commit
end  0/2000
EOF
  status_is 3 'an unknown unchanged value stops' emit st.a <st.bin
  like "$ERR" 'reason=toast_missing' 'with its reason'
  is "$(rows public_t '*' | cut -f 1-3)" '' 'what was not sent is not there'
  is "$(cat st.a/pos/ack.c1 2>/dev/null)" '' 'nor acknowledged'
}

delete_modes() {
  fresh
  cat >routes <<'EOF'
table public.soft deletes=soft
table public.gone deletes=discard deleted-column=none
table public.hist deletes=history xid-column=none
table public.app keyless=append
table public.all keyless=all
EOF
  mk >st.bin <<'EOF'
relation  1  1  public.soft  f  0/100  id:1:int8:np:20:-1  v:2:text::25:-1
relation  2  2  public.gone  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1
relation  3  3  public.hist  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1
relation  4  4  public.app  n  0/100  id:1:int8:n:20:-1  v:2:text::25:-1
relation  5  5  public.all  f  0/100  id:1:int8:n:20:-1  v:2:text::25:-1
relation  6  6  public.none  n  0/100  id:1:int8:n:20:-1
begin  700  0/1000  0/1040
I  1  1  a
I  2  1  a
I  3  1  a
I  4  1  a
I  4  1  a
I  5  1  a
I  5  2  \N
I  6  1
DF  1  1  a
D  2  1  \A
U  3  1  b
U  3  2  c  |  1  \A
D  3  2  \A
UF  5  1  b  |  1  a
DF  5  2  \N
T  3
commit
end  0/2000
EOF
  status_is 0 'all modes' emit st.a --routes routes <st.bin
  is "$(ch 'SELECT id, v, _is_deleted FROM shop.public_soft FINAL')" $'1\ta\t1' 'soft: kept with its values'
  is "$(ch 'SELECT id, v FROM shop.public_gone FINAL')" $'1\ta' 'discard: kept'
  is "$(ch 'SELECT id, v, _op FROM shop.public_hist ORDER BY _version, _op' | tr '\n' ';')" \
    $'1\ta\tI;1\tb\tU;2\tc\tU;1\t\\N\tD;2\t\\N\tD;0\t\\N\tT;' 'history: each change'
  is "$(rows public_app id,v)" $'1\ta;1\ta;' 'append: equal rows stay two'
  is "$(rows public_all id,v)" $'1\tb;' 'keyed on all columns'
  is "$(ch "SELECT count() FROM system.tables WHERE database = 'shop' AND name = 'public_none'")" 0 'no rule, no table'
  rm st.a/pos/*
  status_is 0 'again' emit st.a --routes routes <st.bin
  is "$(ch 'SELECT count() FROM shop.public_hist')" 6 'a history comes once'
  is "$(rows public_app id,v)" $'1\ta;1\ta;' 'so do rows without a key'

  fresh
  mk >st.bin <<'EOF'
relation  1  1  public.k  d  0/100  id:1:int8:n:20:-1
begin  700  0/1000  0/1040
I  1  1
commit
end  0/2000
EOF
  status_is 3 'a table without a key is refused' emit st.a <st.bin
  like "$ERR" 'reason=keyless' 'with its reason'
}

# What the server has is respected, or refused.
existing() {
  fresh
  ch 'CREATE DATABASE shop'
  ch "CREATE TABLE shop.public_t (id Int64, v LowCardinality(String), extra String DEFAULT 'd', _version UInt128, _is_deleted UInt8)
    ENGINE = ReplacingMergeTree(_version, _is_deleted) ORDER BY id COMMENT 'mine'"
  { echo "$REL"; printf '%s\n' 'begin  700  0/1000  0/1040' 'I  1  1  x' commit 'end  0/2000'; } | mk >st.bin
  status_is 0 'a table that is there' emit st.a <st.bin
  is "$(ch 'SELECT id, v, extra FROM shop.public_t')" $'1\tx\td' 'is used as it is'
  like "$(ch "SELECT comment FROM system.tables WHERE database = 'shop'")" '^mine.nwalshadow=1' 'and keeps its comment'
  { echo "$REL"; printf '%s\n' 'begin  700  0/3000  0/3040' 'I  1  1  \N' commit 'end  0/4000'; } | mk >st.bin
  status_is 3 'NULL into a column that is not Nullable' emit st.a <st.bin
  like "$ERR" 'reason=value_unfit' 'stops'
  local sql
  for sql in 'ReplacingMergeTree(_version) ORDER BY id:engine_mismatch' 'MergeTree ORDER BY id:engine_mismatch' \
    'ReplacingMergeTree(_version, _is_deleted) ORDER BY v:sort_key' 'ReplacingMergeTree(_version, _is_deleted) ORDER BY (id, v):sort_key' \
    'ReplacingMergeTree(_version, _is_deleted) ORDER BY (id, _version):sort_key' 'ReplacingMergeTree(_version, _is_deleted) ORDER BY intDiv(id, 10):sort_key'; do
    fresh
    ch 'CREATE DATABASE shop'
    ch "CREATE TABLE shop.public_t (id Int64, v String, _version UInt128, _is_deleted UInt8) ENGINE = ${sql%:*}"
    { echo "$REL"; printf '%s\n' 'begin  700  0/1000  0/1040' 'I  1  1  x' commit 'end  0/2000'; } | mk >st.bin
    status_is 3 "refused: ${sql%:*}" emit st.a <st.bin
    like "$ERR" "reason=${sql#*:}" "with its reason"
  done
}

statements() {
  fresh
  { echo "$REL"; cat <<'EOF'; } | mk >st.bin
begin  700  0/1000  0/1040
I  1  1  old
I  1  2  old
commit
begin  701  0/1100  0/1140
I  1  3  dead
T  1
I  1  4  live
commit
begin  702  0/1200  0/1240
I  1  5  live
commit
end  0/2000
EOF
  status_is 0 'TRUNCATE' emit st.a <st.bin
  is "$(rows public_t id,v)" $'4\tlive;5\tlive;' 'removes what was before it'
  echo '1 0/00001040' >st.a/pos/ack.c1
  status_is 0 'and its replay' emit st.a <st.bin
  is "$(rows public_t id,v)" $'4\tlive;5\tlive;' 'does the same'
  { echo "$REL"; printf '%s\n' 'begin  703  0/2100  0/2140' 'T  1'; } | mk >cut.bin
  status_is 1 'TRUNCATE of a transaction whose end does not come' emit st.a <cut.bin
  is "$(pos st.a ack) $(pos st.a sent)" '1 0/00002000 1 0/00002140' 'is sent, and not acknowledged'

  { echo "$REL"; cat <<'EOF'; } | mk >st.bin
begin  703  0/3000  0/3040
I  1  6  dead
P  1
I  1  1  new
I  1  4  new
p  1
I  1  7  after
commit
begin  704  0/3100  0/3140
U  1  4  later
commit
end  0/4000
EOF
  status_is 0 'a replaced table' emit st.a <st.bin
  is "$(rows public_t id,v)" $'1\tnew;4\tlater;7\tafter;' 'has its new content'
  echo '1 0/00002000' >st.a/pos/ack.c1
  status_is 0 'and its replay' emit st.a <st.bin
  is "$(rows public_t id,v)" $'1\tnew;4\tlater;7\tafter;' 'has it, too'
  is "$(ch "SELECT count() FROM system.tables WHERE database = 'shop'")" 1 'no staging table is left'
}

shape() { printf 'relation  %s  16385  public.t  d  %s' "$1" "$2"; shift 2; printf '  %s' "$@"; echo; }

columns() {
  ch "SELECT arrayStringConcat(groupArray(name || ' ' || type), ',') FROM (SELECT * FROM system.columns WHERE database = 'shop'
    AND table = 'public_t' AND NOT startsWith(name, '_') ORDER BY position) FORMAT TSVRaw"
}

schema() {
  fresh
  {
    shape 1 0/100 id:1:int8:nkp:20:-1 a:2:int4:n:23:-1 b:3:text::25:-1
    printf '%s\n' 'begin  700  0/1000  0/1040' 'I  1  1  10  x' 'I  1  2  20  y' commit
    shape 2 0/1140 id:1:int8:nkp:20:-1 a:2:int4:n:23:-1 b:3:text::25:-1 "c:4:int4:n:23:-1=7" "d:5:numeric::1700:655366=1.50" \
      "e:6:text::25:-1=it's" "f:7:timestamptz::1184:-1=0099-01-01 00:00:00+00" "g:8:date::1082:-1=9999-12-31" "h:9:float8::701:-1=NaN" \
      "i:10:array/text:n:1009:-1={a,NULL,\"b'c\"}" "k:11:bool::16:-1=t" "l:12:uuid::2950:-1=00112233-4455-6677-8899-aabbccddeeff"
  } >add
  { cat add; printf '%s\n' 'begin  701  0/1100  0/1140' 'S  A  16385  1  2' 'I  2  3  30  z  8  2.5  n  2024-01-01 00:00:00+00  2024-01-01  1.5  {}  f  \N' commit 'end  0/2000'; } | mk >st.bin
  status_is 0 'ADD COLUMN with defaults' emit st.a <st.bin
  is "$(rows public_t 'id, a, b, c, d, e')" $'1\t10\tx\t7\t1.5\tit\\\'s;2\t20\ty\t7\t1.5\tit\\\'s;3\t30\tz\t8\t2.5\tn;' 'gives older rows their value'
  is "$(rows public_t 'id, f, g, h, i, k, l')" \
    $'1\t0099-01-01 00:00:00.000000\t9999-12-31\tnan\t[\'a\',NULL,\'b\\\'c\']\ttrue\t00112233-4455-6677-8899-aabbccddeeff;2\t0099-01-01 00:00:00.000000\t9999-12-31\tnan\t[\'a\',NULL,\'b\\\'c\']\ttrue\t00112233-4455-6677-8899-aabbccddeeff;3\t2024-01-01 00:00:00.000000\t2024-01-01\t1.5\t[]\tfalse\t\\N;' 'of any type'
  {
    shape 1 0/1140 id:1:int8:nkp:20:-1 a:2:int4:n:23:-1 b:3:text::25:-1 c:4:int4:n:23:-1
    shape 2 0/3140 id:1:int8:nkp:20:-1 b:2:int4:n:23:-1 a:3:text::25:-1 c:4:int4:n:23:-1
    shape 3 0/3240 id:1:int8:nkp:20:-1 b:2:int8::20:-1 c:14:text::25:-1
    printf '%s\n' 'begin  702  0/3100  0/3140' 'S  A  16385  1  2' 'I  2  4  40  w  1' commit
    printf '%s\n' 'begin  703  0/3200  0/3240' 'S  A  16385  2  3' 'I  3  5  5000000000  new' 'I  3  6  \N  new' commit 'end  0/4000'
  } | mk >st.bin
  status_is 0 'columns swap names, are dropped, replaced, widened' emit st.a <st.bin
  is "$(columns)" 'id Int64,b Nullable(Int64),c Nullable(String)' 'the destination follows'
  is "$(rows public_t 'id, b, c')" $'1\t10\t\\N;2\t20\t\\N;3\t30\t\\N;4\t40\t\\N;5\t5000000000\tnew;6\t\\N\tnew;' 'and rows keep their values'
  echo '1 0/00002000' >st.a/pos/ack.c1
  status_is 0 'a replay' emit st.a <st.bin
  is "$(rows public_t 'id, b, c')" $'1\t10\t\\N;2\t20\t\\N;3\t30\t\\N;4\t40\t\\N;5\t5000000000\tnew;6\t\\N\tnew;' 'changes nothing'
  {
    shape 1 0/3240 id:1:int8:nkp:20:-1 b:2:int8::20:-1 c:14:text::25:-1
    shape 2 0/5140 id:1:int8:nkp:20:-1 b:2:text::25:-1 c:14:text::25:-1
    shape 3 0/5240 id:1:int8:nkp:20:-1 b:2:int2::21:-1 c:14:text::25:-1
    printf '%s\n' 'begin  704  0/5100  0/5140' 'S  A  16385  1  2' 'P  2' 'I  2  1  ten  x' 'p  2' commit
    printf '%s\n' 'begin  705  0/5200  0/5240' 'S  A  16385  2  3' 'P  3' 'I  3  1  10  x' 'p  3' commit 'end  0/6000'
  } | mk >st.bin
  status_is 0 'a rewriting change of a type' emit st.a <st.bin
  is "$(columns) $(rows public_t 'id, b, c')" $'id Int64,b Nullable(Int16),c Nullable(String) 1\t10\tx;' 'comes with its rows'
  printf '%s\n' 'relation  1  16385  public.t  d  0/5240  id:1:int8:nkp:20:-1  b:2:int2::21:-1' \
    'relation  2  16385  sales.t2  d  0/7140  id:1:int8:nkp:20:-1  b:2:int2::21:-1' \
    'begin  706  0/7100  0/7140' 'S  A  16385  1  2' 'I  2  9  9' commit \
    'begin  707  0/7200  0/7240' 'S  D  16385  2  0' commit \
    'relation  3  16400  sales.t2  d  0/7340  id:1:int8:nkp:20:-1' \
    'begin  708  0/7300  0/7340' 'S  C  16400  0  3' 'I  3  1' commit 'end  0/8000' | mk >st.bin
  status_is 0 'a table is renamed, dropped, and made anew' emit st.a <st.bin
  is "$(rows sales_t2 id)" '1;' 'the new one has its rows only'
  is "$(rows sales_t2_dropped_16385 id,b)" $'1\t10;9\t9;' 'the old one stays under another name'
  printf '%s\n' 'relation  1  16400  sales.t2  d  0/7340  id:1:int8:nkp:20:-1' 'begin  709  0/9000  0/9040' 'S  D  16400  1  0' commit 'end  0/A000' | mk >st.bin
  echo 'table * drop-table=drop' >routes
  status_is 0 'DROP TABLE by rule' emit st.a --routes routes <st.bin
  is "$(ch "SELECT name FROM system.tables WHERE database = 'shop' ORDER BY name" | tr '\n' ' ')" 'sales_t2_dropped_16385 ' 'drops it'
}

# ws-emit dies at its Nth statement, before or after the server runs it; then all comes again.
ddl_deaths() {
  local n line seen pid
  {
    shape 1 0/100 id:1:int8:nkp:20:-1 a:2:int4:n:23:-1 b:3:text::25:-1 c:4:int4:n:23:-1
    printf '%s\n' 'begin  700  0/1000  0/1040' 'I  1  1  10  x  1' 'I  1  2  20  y  1' commit
    shape 2 0/1140 id:1:int8:nkp:20:-1 b:2:int4:n:23:-1 a:3:text::25:-1 d:5:int4:n:23:-1=7
    printf '%s\n' 'begin  701  0/1100  0/1140' 'S  A  16385  1  2' 'I  2  3  30  z  8' commit
    shape 3 0/1240 id:1:int8:nkp:20:-1 b:2:int8::20:-1 c:6:text::25:-1
    printf '%s\n' 'begin  702  0/1200  0/1240' 'S  A  16385  2  3' 'I  3  4  \N  w' commit 'begin  703  0/1300  0/1340' \
      'U  3  1  11  u' 'P  3' 'I  3  5  50  new' 'I  3  6  60  new' 'p  3' commit 'begin  704  0/1400  0/1440' 'I  3  7  70  n' commit 'end  0/2000'
  } | mk >ddl.bin
  for n in 1 2 3 4 5 6 7 8 9 10; do
    fresh
    rm -f fifo
    mkfifo fifo
    BG_IN=ddl.bin BG_OUT=/dev/null bg "ddl$n" bash -c 'exec ws-emit "$@" 2>fifo' - --state "$T/st.a" --consumer c1 --url "$CH_URL"
    pid=$(pid_of "ddl$n")
    seen=0
    while read -r line; do
      [[ $line == *statement:* ]] && seen=$((seen + 1))
      if [ $seen = $n ]; then
        [ $((n % 2)) = 0 ] || sleep 0.005
        kill -KILL "$pid"
      fi
    done <fifo
    wait_exit "ddl$n" 2>/dev/null
    emit st.a <ddl.bin 2>again.err || fail "statement $n: the second run" "$(tail -n 3 again.err)"
    is "$(columns) $(rows public_t id,b,c)" $'id Int64,b Nullable(Int64),c Nullable(String) 5\t50\tnew;6\t60\tnew;7\t70\tn;' "killed at statement $n, then again"
  done
}

# many FIRST: small transactions on two tables, for the deaths.
many() {
  {
    echo "$REL"
    printf '%s\n' 'relation  2  16386  public.u  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1' 'begin  1  0/1000  0/1040' 'I  2  0  x' commit \
      'transactions  1  20000  3  100  1/0  1' 'transactions  2  20000  2  30000  2/0  1' 'begin  60000  3/0  3/40' 'T  1' 'bulk  1  5000  100000' commit \
      'transactions  1  10000  1  70000  4/0  200000' 'end  5/0'
  } | mk
}

expect_many() {
  is "$(ch 'SELECT count(), uniqExact(id), min(id), max(id) FROM shop.public_t FINAL')" $'15000\t15000\t100000\t209999' "$1: first table"
  is "$(ch 'SELECT count(), uniqExact(id), min(id), max(id) FROM shop.public_u FINAL')" $'40001\t40001\t0\t40000' "$1: second table"
}

deaths() {
  local i n seed=${WS_IT_SEED:-$RANDOM}
  RANDOM=$seed
  note "WS_IT_SEED=$seed"
  fresh
  many >many.bin
  status_is 0 'undisturbed' emit st.a --batch-rows 4000 <many.bin
  expect_many 'undisturbed'
  fresh
  for ((i = 1; i <= 6; i++)); do
    rm -f fifo
    mkfifo fifo
    bg feed bash -c 'exec cat many.bin >fifo'
    BG_IN=fifo bg emit ws-emit --state "$T/st.a" --consumer c1 --url "$CH_URL" --batch-rows 3000
    sleep 0.$((RANDOM % 4))$((RANDOM % 10))
    kill9 emit
    stop feed
    if [ -e st.a/pos/ack.c1 ]; then
      [[ ! $(pos st.a ack) > $(pos st.a sent) ]] || fail 'ack is not beyond sent' "$(pos st.a ack) $(pos st.a sent)"
    fi
  done
  status_is 0 'killed six times, then on to the end' emit st.a <many.bin
  expect_many 'ws-emit killed'
  fresh
  rm -f fifo
  mkfifo fifo
  bg feed bash -c '{ head -c 2000000 many.bin; sleep 2; tail -c +2000001 many.bin; } >fifo'
  BG_IN=fifo bg emit ws-emit --state "$T/st.a" --consumer c1 --url "$CH_URL" --batch-rows 2000
  for i in 1 2; do
    sleep 0.3
    ch_kill ch
    wait_for -m 'the outage in the status' grep -q STATE=retrying st.a/run/ws-emit.c1.status
    ch_start ch
  done
  wait_exit emit 60
  is "$STATUS" 0 'the server killed twice meanwhile'
  wait_exit feed
  expect_many 'server killed'
}

errors() {
  fresh
  { echo "$REL"; printf '%s\n' 'begin  700  0/1000  0/1040' 'I  1  1  x' commit; } | mk >st.bin
  status_is 1 'an end without an end mark' emit st.a <st.bin
  like "$ERR" 'producer died' 'is the death of the producer'
  { echo "$REL"; printf '%s\n' 'begin  700  0/1000  0/1040' 'I  1  1  x' commit 'end  0/2000'; } | mk >st.bin
  status_is 3 'a wrong user' emit st.b --user nobody <st.bin
  like "$ERR" 'reason=destination_auth' 'is told apart'
  not_ok 'and changes no position' test -e st.b/pos/ack.c1 -o -e st.b/pos/sent.c1
  free_port
  status_is 1 '--no-loop: a server that is not there' ws-emit --state "$T/st.b" --consumer c1 --url "http://127.0.0.1:$PORT" --no-loop <st.bin
  status_is 0 'another server after one that is not there' ws-emit --state "$T/st.b" --consumer c1 \
    --url "http://127.0.0.1:$PORT" --url "$CH_URL" --setting max_threads=1 <st.bin
  head -c 60 st.bin >cut.bin
  status_is 1 'a cut stream' emit st.c <cut.bin
  echo 'SYSTEM_ID=1
MAJOR=17
SEGMENT_SIZE=16777216' >st.b/cluster
  status_is 3 'a stream of another cluster' emit st.b <st.bin
  like "$ERR" 'reason=system_id_changed' 'is refused'
  status_is 2 'no URL' ws-emit --state "$T/st.b" --consumer c1
  status_is 2 'a URL with a password' ws-emit --state "$T/st.b" --consumer c1 --url http://u:p@h:1
  status_is 2 'a bad consumer' ws-emit --state "$T/st.b" --consumer a/b --url "$CH_URL"
  status_is 2 'a bad time' emit st.b --flush-interval x
  status_is 2 'a bad size' emit st.b --batch-bytes 1
  status_is 2 'a bad method' emit st.b --compression rar
  status_is 2 'a bad setting' emit st.b --setting x
}

loads() {
  fresh
  echo 'table *' >routes
  mk >st.bin <<'EOF'
relation  1  16385  public.t  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1
relation  2  16386  public.k  n  0/100  id:1:int8:n:20:-1
relation  3  16387  public.later  d  0/100  id:1:int8:nkp:20:-1
snapshot  1  0/5000
s  1  1  base
s  1  2  base
endsnapshot  1  0/5000
snapshot  2  0/5000
s  2  7
s  2  7
endsnapshot  2  0/5000
snapshot  3  0/5000  0
endsnapshot  3  0/5000  0
end  0/5000
EOF
  echo 'table public.k keyless=append' >routes
  echo 'table *' >>routes
  head -c 300 st.bin >cut.bin
  status_is 1 'a load that dies' emit st.a --load --routes routes <cut.bin
  not_ok 'acknowledges nothing' test -e st.a/pos/ack.c1
  status_is 0 'the load' emit st.a --load --routes routes <st.bin
  is "$(pos st.a ack) $(pos st.a sent)" '1 0/00005000 1 0/00005000' 'makes the positions'
  is "$(cat st.a/consumer/c1/load/16385)" '1 0/00005000 `shop`.`public_t`' 'and says where each table begins'
  is "$(rows public_t id,v)" $'1\tbase;2\tbase;' 'rows'
  is "$(rows public_k id)" '7;7;' 'rows without a key'
  is "$(ch "SELECT count() FROM system.tables WHERE database = 'shop'")" 3 'no staging table is left'
  { cat <<'EOF'; } | mk >st.bin
relation  1  16385  public.t  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1
relation  2  16386  public.k  n  0/100  id:1:int8:n:20:-1
begin  700  0/4000  0/4FF0
I  1  9  in the load
commit
begin  701  0/5000  0/5040
U  1  1  streamed
I  2  7
commit
end  0/6000
EOF
  status_is 0 'the stream behind it' emit st.a --routes routes <st.bin
  is "$(rows public_t id,v)" $'1\tstreamed;2\tbase;' 'only what came after'
  is "$(rows public_k id)" '7;7;7;' 'also without a key'
  mk >again.bin <<'EOF'
relation  1  16385  public.t  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1
snapshot  1  0/7000
s  1  1  reloaded
endsnapshot  1  0/7000
end  0/7000
EOF
  status_is 0 'a table loaded again' emit st.a --load --routes routes <again.bin
  is "$(rows public_t id,v) $(pos st.a ack)" $'1\treloaded; 1 0/00006000' 'has the new rows; ack stays'
  sed -i '1i table public.h deletes=history' routes
  mk >h.bin <<'EOF'
relation  1  16388  public.h  d  0/100  id:1:int8:nkp:20:-1
snapshot  1  0/7000
s  1  1
s  1  2
endsnapshot  1  0/7000
end  0/7000
EOF
  status_is 0 'a history loaded above ack' emit st.a --load --routes routes <h.bin
  mk >st.bin <<'EOF'
relation  1  16388  public.h  d  0/100  id:1:int8:nkp:20:-1
begin  702  0/6F00  0/6F40
I  1  2
commit
begin  703  0/7100  0/7140
I  1  3
commit
end  0/8000
EOF
  status_is 0 'and its stream' emit st.a --routes routes <st.bin
  is "$(ch 'SELECT id, _op FROM shop.public_h ORDER BY id' | tr '\n' ';')" $'1\tS;2\tS;3\tI;' 'keep every row once'
  echo '1 0/00006000' >st.a/pos/ack.c1
  status_is 0 'and its replay' emit st.a --routes routes <st.bin
  is "$(ch 'SELECT id, _op FROM shop.public_h ORDER BY id' | tr '\n' ';')" $'1\tS;2\tS;3\tI;' 'adds none'
  fresh
  ch 'CREATE DATABASE shop'
  ch 'CREATE TABLE shop.public_t (id Int64, v String, _version UInt128, _is_deleted UInt8) ENGINE = ReplacingMergeTree(_version, _is_deleted) ORDER BY id'
  ch "INSERT INTO shop.public_t VALUES (1, 'precious', 0, 0)"
  status_is 3 'a load over rows of somebody else' emit st.a --load <again.bin
  like "$ERR" 'reason=destination_not_empty' 'is refused'
}

wire() {
  local m
  for m in none lz4 zstd gzip; do
    fresh
    many >many.bin
    status_is 0 "compression $m" emit st.a --compression $m --metrics "$T/prom" <many.bin
    is "$(ch 'SELECT count(), uniqExact(v) FROM shop.public_t FINAL')" $'15000\t15000' 'all rows'
  done
  like "$(cat prom)" 'walshadow_emit_rows_total 115001' 'rows are counted'
  like "$(cat prom)" 'walshadow_emit_lag_seconds 0' 'no lag at the end'
  cmp_is "$(ch "SELECT count() FROM system.parts WHERE database = 'shop' AND active")" -lt 12 'few parts'
}

routes_file() {
  cat >routes <<'EOF'
# comment
table public.*  deletes=never
tabel x
table nodot
column a.b type=Int32
table a.b version-column=none
table "unfinished
table ~( deletes=soft
table a.b name={nope}
EOF
  status_is 2 'a bad file' ws-emit --check-routes --routes routes
  is "$(grep -oE 'routes:[0-9]+' <<<"$ERR" | cut -d: -f2 | tr '\n' ' ')" '2 3 4 5 6 7 8 9 ' 'every problem with its line'
  cat >routes <<'EOF'
exclude *.tmp*
table ~^public\.(a|b)$ database=x name={table}
table public.c order-by="id, v" deletes=tombstone
column public.a.v exclude
column public.b.v name=w
table sales.*
EOF
  status_is 0 'a good file' ws-emit --check-routes --routes routes
  fresh
  ch 'DROP DATABASE IF EXISTS x SYNC'
  cat >st.txt <<'EOF'
relation  1  1  public.a  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1
relation  2  2  public.b  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1
relation  3  3  public.tmp1  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1
relation  4  4  sales.s  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1
relation  5  5  other.o  d  0/100  id:1:int8:nkp:20:-1  v:2:text::25:-1
begin  700  0/1000  0/1040
I  1  1  v
I  2  1  v
I  3  1  v
I  4  1  v
I  5  1  v
commit
end  0/2000
EOF
  mk <st.txt >st.bin
  status_is 0 'routed' emit st.a --routes routes <st.bin
  is "$(ch "SELECT database || '.' || name FROM system.tables WHERE database IN ('shop', 'x') ORDER BY 1" | tr '\n' ' ')" 'shop.sales_s x.a x.b ' 'to their tables'
  is "$(ch 'SELECT id FROM x.a FORMAT TSVWithNames' | tr '\n' ' ')$(ch 'SELECT id, w FROM x.b')" $'id 1 1\tv' 'columns left out and renamed'

  rm -f fifo
  mkfifo fifo
  bg feed bash -c 'exec 3>fifo; cat >&3 one; while [ ! -e go ]; do sleep 0.05; done; cat >&3 two'
  { printf 'identity  %s  5  shop\n' $SYS; echo "${REL/public/hup}"; printf '%s\n' 'begin  1  0/3000  0/3040' 'I  1  1  a' commit 'progress  0/3100'; } | sed 's/  \+/\t/g' | mkchange >one
  { printf 'identity  %s  5  shop\n' $SYS; echo "${REL/public/hup}"; printf '%s\n' 'begin  1  0/3000  0/3040' 'I  1  1  a' commit 'progress  0/3100' \
    'begin  2  0/4000  0/4040' 'I  1  2  b' commit 'end  0/5000'; } | sed 's/  \+/\t/g' | mkchange | tail -c +$(($(stat -c %s one) + 1)) >two
  echo 'table hup.t' >routes
  BG_IN=fifo bg emit ws-emit --state "$T/st.a" --consumer c1 --url "$CH_URL" --routes "$T/routes"
  wait_for_is '1 0/00003100' pos st.a ack
  echo 'tabel' >routes
  kill -HUP "$(pid_of emit)"
  wait_for -m 'the refusal' log_has emit 'stay as they were'
  echo 'table hup.t name=other' >routes
  kill -HUP "$(pid_of emit)"
  wait_for -m 'the reload' log_has emit 'routes reloaded'
  touch go
  wait_exit emit
  is "$STATUS" 0 'HUP: a bad file keeps the old rules, a good one counts from the next transaction'
  is "$(rows other id,v)" $'1\ta;2\tb;' 'the table has its new name'
}

# Parts may be named, to run these alone.
[ $# -gt 0 ] || set -- types numeric_types policies changes delete_modes existing statements schema ddl_deaths deaths errors loads wire routes_file
for part; do
  "$part"
done
done_testing
