# Source table against destination table: every row, every column, as text that both servers can
# make exactly.  Floating-point numbers are compared by their bits, bytea by hex, and a NULL is
# told apart from every value.  What is compared how depends on both types, see cmp_pair.
# shellcheck shell=bash

# pg_to_ch_compare NAME[/DATABASE] SCHEMA.TABLE CHDATABASE.CHTABLE [DESC [WHERE]]
#
# One test.  The columns are the source's (stored ones; WHERE narrows its rows); the destination is
# read FINAL and without tombstones.  A column that is missing there fails, and so does one too
# many, unless its name begins with an underscore or is listed in CMP_IGNORE.  An array that is
# NULL equals an empty one where the destination has Array, which knows no NULL.
pg_to_ch_compare() {
  local server=$1 table=$2 target=$3 desc=${4:-"$2 equals $3"} where=${5:-true}
  local a=$T/.compare.source b=$T/.compare.destination n
  if ! cmp_plan "$server" "$table" "$target"; then
    fail "$desc" "$CMP_PROBLEM"
    return
  fi
  if ! cmp_pg "$server" "SELECT $CMP_PG FROM $table WHERE $where" >"$a" 2>"$a.err"; then
    fail "$desc" "source: $(cat "$a.err")"
    return
  fi
  if ! ch "SELECT $CMP_CH FROM $CMP_FROM FORMAT TSVRaw" >"$b" 2>"$b.err"; then
    fail "$desc" "destination: $(cat "$b.err")"
    return
  fi
  sort -o "$a" "$a"
  sort -o "$b" "$b"
  n=$(wc -l <"$a")
  if cmp -s "$a" "$b"; then
    pass "$desc ($n rows, md5 $(md5sum <"$a" | cut -c 1-12))"
    return
  fi
  fail "$desc" "rows: source $n, destination $(wc -l <"$b"), only in source" \
    "$(comm -23 "$a" "$b" | wc -l), only in destination $(comm -13 "$a" "$b" | wc -l)" \
    "columns (NULL is N, a value begins with v): ${CMP_NAMES[*]}" \
    "$(diff -U0 --label source --label destination "$a" "$b" | head -n 24 | cut -c 1-600)"
}

# pg_to_ch_compare_all NAME/DATABASE CHDATABASE: many tables in two queries; stdin has a line for
# each: SCHEMA.TABLE, CHDATABASE.CHTABLE, DESC, WHERE, with tabs between.  One test for each, as
# pg_to_ch_compare makes it, which says what differs.
pg_to_ch_compare_all() {
  local server=$1 table target desc where i=0 queries=() chq='' tables=() problem='' list=''
  local a=$T/.compare.source b=$T/.compare.destination
  while IFS=$'\t' read -r table target desc where; do
    tables+=("$table"$'\t'"$target"$'\t'"$desc"$'\t'"${where:-true}")
    list+="${list:+, }'${table//\'/\'\'}'::regclass"
  done
  [ ${#tables[@]} -gt 0 ] || return 0
  cmp_load "$server" "$list" "$2"
  for ((i = 0; i < ${#tables[@]}; i++)); do
    IFS=$'\t' read -r table target desc where <<<"${tables[i]}"
    cmp_plan "$server" "$table" "$target" || problem=1
    [ -z "$problem" ] || break
    queries+=("SELECT '$i:' || $CMP_PG FROM $table WHERE $where")
    chq+="${chq:+ UNION ALL }SELECT concat('$i:', $CMP_CH) FROM $CMP_FROM"
  done
  if [ -z "$problem" ] && cmp_pg "$server" "${queries[@]}" >"$a" 2>"$a.err" && ch "$chq FORMAT TSVRaw" >"$b" 2>"$b.err" &&
    sort -o "$a" "$a" && sort -o "$b" "$b" && cmp -s "$a" "$b"; then
    local -A rows=()
    while read -r table i; do rows[$i]=$table; done < <(cut -d : -f 1 "$a" | uniq -c)
    for ((i = 0; i < ${#tables[@]}; i++)); do
      IFS=$'\t' read -r table target desc where <<<"${tables[i]}"
      pass "$desc (${rows[$i]:-0} rows)"
    done
    cmp_forget
    return 0
  fi
  cmp_forget
  problem=$TAP_FAILED
  for ((i = 0; i < ${#tables[@]}; i++)); do
    IFS=$'\t' read -r table target desc where <<<"${tables[i]}"
    pg_to_ch_compare "$server" "$table" "$target" "$desc" "$where"
  done
  # What cannot be compared at once must differ one by one.
  [ "$TAP_FAILED" != "$problem" ] || fail 'what differs at once is equal table by table' "$(head -n 3 "$a.err" "$b.err" 2>&1)"
  return 1
}

# cmp_pg SERVER SQL...: with the settings under which both sides print the same.
cmp_pg() {
  local server=$1
  shift
  sql "$server" "SET TimeZone = 'UTC'" "SET DateStyle = 'ISO'" "SET IntervalStyle = 'postgres'" \
    "SET client_encoding = 'UTF8'" "SET lc_monetary = 'C'" "$@"
}

# Makes the two lists of expressions, CMP_PG and CMP_CH, and CMP_FROM; or says CMP_PROBLEM.
cmp_plan() {
  local server=$1 table=$2 target=$3 name type array rest kind cht quoted
  local db=${3%%.*} tab=${3#*.} final='' where='' tabq tabi
  tabq=${tab//\\/\\\\} tabi=${tab//\\/\\\\}
  tabq=${tabq//\'/\\\'} tabi=${tabi//\`/\\\`}
  local -A chtype=()
  CMP_PG='' CMP_CH='' CMP_NAMES=() CMP_PROBLEM=''
  local theirs=${CMP_DESTINATION[$db.$tab]:-} ours=${CMP_SOURCE[$server $table]:-} plan
  [ -n "$theirs" ] || theirs=$(cmp_destination "database = '$db' AND table = '$tabq'" | cut -f 2-)
  [ -n "$ours" ] || ours=$(cmp_source "$server" "'${table//\'/\'\'}'::regclass" | cut -f 2-)
  plan="$target"$'\n'"$theirs"$'\n'"$ours${CMP_IGNORE:-}"
  if [ -n "${CMP_PLAN_PG[$plan]:-}" ]; then
    CMP_PG=${CMP_PLAN_PG[$plan]} CMP_CH=${CMP_PLAN_CH[$plan]} CMP_FROM=${CMP_PLAN_FROM[$plan]}
    CMP_NAMES=("${CMP_PLAN_NAMES[$plan]}")
    return 0
  fi
  while IFS=$'\t' read -r kind name cht; do
    case $kind in
    engine) [[ $cht != Replacing* ]] || final=' FINAL' ;;
    column) chtype[$name]=$cht ;;
    esac
  done <<<"$theirs"
  if [ ${#chtype[@]} = 0 ]; then
    CMP_PROBLEM="the destination has no table $target"
    return 1
  fi
  while IFS=$'\t' read -r name type array rest; do
    [ -n "$name" ] || continue
    CMP_NAMES+=("$name")
    if [ -z "${chtype[$name]:-}" ]; then
      CMP_PROBLEM+="the destination lacks column $name; "
      continue
    fi
    quoted=${name//\\/\\\\}
    cmp_pair "\"${name//\"/\"\"}\"" "$type" "$array" "\`${quoted//\`/\\\`}\`" "${chtype[$name]}"
    CMP_PG+="${CMP_PG:+ || E'\\t' || }$PAIR_PG"
    CMP_CH+="${CMP_CH:+, '\\t', }$PAIR_CH"
    unset 'chtype[$name]'
  done <<<"$ours"
  for name in "${!chtype[@]}"; do
    [[ $name == _* || " ${CMP_IGNORE:-} " == *" $name "* ]] ||
      CMP_PROBLEM+="the destination has column $name, the source has not; "
  done
  [ -n "$CMP_PG" ] || CMP_PROBLEM+="the source has no table $table, or it has no columns; "
  [ -z "$CMP_PROBLEM" ] || return 1
  CMP_CH="concat($CMP_CH, '')"
  [ -z "${chtype[_is_deleted]:-}" ] || where=' WHERE _is_deleted = 0'
  CMP_FROM="\`$db\`.\`$tabi\`$final$where"
  CMP_PLAN_PG[$plan]=$CMP_PG CMP_PLAN_CH[$plan]=$CMP_CH CMP_PLAN_FROM[$plan]=$CMP_FROM
  CMP_PLAN_NAMES[$plan]=${CMP_NAMES[*]}
}

# What was planned for the same columns of both.
declare -A CMP_PLAN_PG=() CMP_PLAN_CH=() CMP_PLAN_FROM=() CMP_PLAN_NAMES=()

# cmp_load NAME/DATABASE REGCLASSES CHDATABASE: asks for the columns of many tables at once, for the
# comparisons until cmp_forget.
cmp_load() {
  local table rest
  cmp_forget
  cmp_source "$1" "$2" >"$T/.compare.load"
  while IFS=$'\t' read -r table rest; do
    CMP_SOURCE[$1 $table]+=$rest$'\n'
  done <"$T/.compare.load"
  cmp_destination "database = '$3'" >"$T/.compare.load"
  while IFS=$'\t' read -r table rest; do
    CMP_DESTINATION[$3.$table]+=$rest$'\n'
  done <"$T/.compare.load"
}

declare -A CMP_SOURCE=() CMP_DESTINATION=()
cmp_forget() { CMP_SOURCE=() CMP_DESTINATION=(); }

# Table, name, type (a domain's base type, an array's element type) and whether it is an array.
cmp_source() {
  sql "$1" "SET client_encoding = 'UTF8'" "
    WITH RECURSIVE c AS (
      SELECT attrelid, attname, attnum, atttypid AS typ FROM pg_attribute
      WHERE attrelid IN ($2) AND attnum > 0 AND NOT attisdropped AND attgenerated <> 'v'
      UNION ALL
      SELECT attrelid, attname, attnum, typbasetype FROM c JOIN pg_type ON pg_type.oid = typ WHERE typtype = 'd')
    SELECT format(E'%I.%I\t%s\t%s\t%s', nspname, relname, attname, coalesce(e.typname, t.typname), (e.oid IS NOT NULL)::int)
    FROM c JOIN pg_type t ON t.oid = typ
      LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typsubscript = 'array_subscript_handler'::regproc
      JOIN pg_class ON pg_class.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace
    WHERE t.typtype <> 'd' ORDER BY attrelid, attnum"
}

# Table, then the engine or name and type of a column.
cmp_destination() {
  ch "SELECT name AS table, 'engine', '-', engine FROM system.tables WHERE $1 UNION ALL
    SELECT table, 'column', name, type FROM system.columns WHERE $1 AND default_kind != 'ALIAS' FORMAT TSVRaw"
}

# cmp_pair PGCOLUMN PGTYPE ISARRAY CHCOLUMN CHTYPE: sets PAIR_PG and PAIR_CH.
cmp_pair() {
  local pg=$1 type=$2 array=$3 ch=$4 cht=$5
  if [[ $cht == Array\(* ]] && [ "$array" = 1 ]; then
    cht=${cht#Array(}
    cmp_value e "$type" e "${cht%)}"
    PAIR_PG="'[' || coalesce((SELECT string_agg(coalesce($VALUE_PG, 'N'), ',' ORDER BY o)
      FROM generate_subscripts($pg, 1) AS o, LATERAL (SELECT ($pg)[o] AS e) AS u), '') || ']'"
    PAIR_CH="'[', arrayStringConcat(arrayMap(e -> $VALUE_CH, $ch), ','), ']'"
    return
  fi
  # An array of regclass or its like has oids at the destination.
  [ "$array" = 0 ] || { [[ $type != reg* ]] || pg="$pg::oid[]"; type=array; }
  cmp_value "$pg" "$type" "$ch" "$cht"
  PAIR_PG="coalesce($VALUE_PG, 'N')"
  PAIR_CH=$VALUE_CH
}

# cmp_value: the same for one value: 'v' and its text, or NULL in VALUE_PG, 'N' in VALUE_CH.
cmp_value() {
  local pg=$1 type=$2 ch=$3 cht=$4 p c
  local bare=$cht v="assumeNotNull($3)"
  bare=${bare#LowCardinality(}
  bare=${bare#Nullable(}
  case $type:$bare in
  float[48]:Float*)
    p="encode(${type}send($pg), 'hex')"
    c="lower(hex(reverse(reinterpretAsFixedString($v))))"
    ;;
  numeric:Decimal*)
    p="trim_scale($pg)::text"
    c="toString($v)"
    ;;
  timestamp:DateTime*)
    p="to_char($pg, 'YYYY-MM-DD HH24:MI:SS.US')"
    c="toString(toDateTime64($v, 6, 'UTC'))"
    ;;
  timestamptz:DateTime*)
    p="to_char($pg AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"
    c="toString(toDateTime64($v, 6, 'UTC'))"
    ;;
  time:Time*)
    p="to_char($pg::interval, 'HH24:MI:SS.US')"
    c="toString($v)"
    ;;
  bytea:String* | bytea:FixedString*)
    p="encode($pg, 'hex')"
    c="lower(hex($v))"
    ;;
  money:Decimal*)
    p="trim_scale($pg::numeric)::text"
    c="toString($v)"
    ;;
  reg*:UInt*)
    p="$pg::oid::text"
    c="toString($v)"
    ;;
  hstore:Map*)
    # As PostgreSQL prints it; keys are in its order.
    p="format('%s', $pg)"
    c="arrayStringConcat(arrayMap((k, x) -> concat('\"', replaceAll(replaceAll(k, '\\\\', '\\\\\\\\'), '\"', '\\\\\"'),
      '\"=>', if(isNull(x), 'NULL', concat('\"', replaceAll(replaceAll(assumeNotNull(x), '\\\\', '\\\\\\\\'), '\"', '\\\\\"'), '\"'))),
      mapKeys($ch), mapValues($ch)), ', ')"
    ;;
  bool:Bool*)
    p="$pg::text"
    c="toString($v)"
    ;;
  bool:*)
    p="($pg::int)::text"
    c="toString($v)"
    ;;
  *)
    # The output function: a cast to text would cut the blanks of a bpchar.
    p="format('%s', $pg)"
    c="toString($v)"
    ;;
  esac
  # A composite of nothing but NULLs is NULL for IS NULL, and a value.
  VALUE_PG="CASE WHEN NOT $pg IS DISTINCT FROM NULL THEN NULL ELSE 'v' || replace(replace(replace(replace($p,
    '\\', '\\\\'), E'\\n', '\\n'), E'\\t', '\\t'), E'\\r', '\\r') END"
  VALUE_CH="if(isNull($ch), 'N', concat('v', replaceAll(replaceAll(replaceAll(replaceAll($c,
    '\\\\', '\\\\\\\\'), '\\n', '\\\\n'), '\\t', '\\\\t'), '\\r', '\\\\r')))"
}
