# What ws-catalog should know, asked of the source by other means: one line of JSON a relation and a
# type, without the position.
# shellcheck shell=bash

# shapes_of_history DIR DATABASE-OID [@LSN]
shapes_of_history() {
  {
    ws-catalog list -a -F json -D "$1" --database "$2" ${3:+"$3"} &&
      ws-catalog types -a -F json -D "$1" --database "$2" ${3:+"$3"}
  } | sed 's|"lsn":"[0-9A-F/]*",||'
}

# shapes_of_source NAME[/DATABASE]
shapes_of_source() {
  sql "$1" 'SET search_path = pg_catalog' "SET timezone = 'UTC'" "SET datestyle = 'ISO'" \
    "SET intervalstyle = 'postgres'" "SET bytea_output = 'hex'" 'SET extra_float_digits = 1' \
    "$SHAPES_RELATIONS" "$SHAPES_TYPES"
}

# The missing value: PostgreSQL parses its own array, unless the element's delimiter is another one.
# Identity: what the server itself takes for the replica identity's index.
SHAPES_RELATIONS="
WITH att AS (
  SELECT a.attrelid, a.attnum, format('{\"attnum\":%s,\"name\":%s,\"typid\":%s,\"typmod\":%s,\"type\":%s,\"len\":%s',
      attnum, to_json(attname::text), atttypid, atttypmod,
      to_json(CASE WHEN attisdropped THEN '' ELSE format_type(atttypid, atttypmod) END), attlen)
    || format(',\"align\":\"%s\",\"storage\":\"%s\"', attalign, attstorage)
    || CASE WHEN attisdropped THEN ',\"dropped\":true' ELSE '' END
    || CASE WHEN attnotnull AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = attrelid AND contype = 'n'
        AND conkey = ARRAY[attnum] AND NOT convalidated) THEN ',\"not_null\":true' ELSE '' END
    || CASE WHEN attbyval THEN ',\"by_value\":true' ELSE '' END
    || CASE attgenerated WHEN 's' THEN ',\"stored\":true' WHEN 'v' THEN ',\"virtual\":true' ELSE '' END AS head,
    coalesce(',\"missing\":' || to_json(CASE WHEN NOT atthasmissing THEN NULL
      WHEN (SELECT typdelim FROM pg_type WHERE pg_type.oid = atttypid) = ',' THEN (attmissingval::text::text[])[1]
      ELSE trim(BOTH '{}' FROM attmissingval::text) END)::text, '') || '}' AS tail
  FROM pg_attribute a WHERE attnum > 0),
rel AS (
  SELECT c.*, nspname,
    coalesce(CASE WHEN relkind IN ('r', 'p', 'm') THEN (SELECT array_agg(indkey[s] ORDER BY s) FROM pg_index,
      generate_series(0, indnkeyatts - 1) s WHERE indexrelid = pg_get_replica_identity_index(c.oid)) END, '{}') AS ident,
    CASE relkind WHEN 't' THEN '{1,2}' ELSE coalesce((SELECT conkey FROM pg_constraint
      WHERE conrelid = c.oid AND contype = 'p' AND NOT condeferrable), '{}') END AS pkey,
    CASE WHEN relkind <> 'i' THEN ARRAY(SELECT p::oid FROM pg_partition_ancestors(c.oid) WITH ORDINALITY AS x (p, o)
      WHERE o > 1 ORDER BY o) END AS up
  FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
  WHERE relkind IN ('r', 'i', 'S', 't', 'm', 'p', 'c') AND relpersistence <> 't' AND (relkind <> 'i' OR c.oid >= 16384))
SELECT format('{\"relation\":%s,\"database\":%s,\"namespace\":%s,\"schema\":%s,\"name\":%s', oid,
    (SELECT oid FROM pg_database WHERE datname = current_database()), relnamespace, to_json(nspname::text),
    to_json(relname::text))
  || format(',\"kind\":\"%s\",\"persistence\":\"%s\",\"replident\":\"%s\"', relkind, relpersistence, relreplident)
  || format(',\"filenode\":%s,\"tablespace\":%s,\"toast\":%s,\"toast_of\":%s,\"parent\":%s,\"root\":%s,\"rowtype\":%s',
    coalesce(pg_relation_filenode(oid), 0), reltablespace, reltoastrelid,
    coalesce((SELECT o.oid FROM pg_class o WHERE o.reltoastrelid = rel.oid), 0),
    coalesce(up[1], 0), coalesce(up[array_length(up, 1)], 0), reltype)
  || format(',\"identity\":%s,\"primary_key\":%s,\"columns\":[', array_to_json(ident), array_to_json(pkey))
  || CASE WHEN relkind = 'i' THEN '' ELSE coalesce((SELECT string_agg(head
      || CASE WHEN attnum = ANY (ident) THEN ',\"identity\":true' ELSE '' END
      || CASE WHEN attnum = ANY (pkey) THEN ',\"primary_key\":true' ELSE '' END || tail, ',' ORDER BY attnum)
      FROM att WHERE attrelid = rel.oid), '') END || ']}'
FROM rel ORDER BY oid"

# A true array is one of varying length with an element.
SHAPES_TYPES="
SELECT format('{\"type\":%s,\"database\":%s,\"schema\":%s,\"name\":%s,\"typtype\":\"%s\",\"category\":\"%s\"', t.oid,
    (SELECT oid FROM pg_database WHERE datname = current_database()), to_json(nspname::text), to_json(typname::text),
    typtype, typcategory)
  || format(',\"len\":%s,\"by_value\":%s,\"align\":\"%s\",\"storage\":\"%s\",\"delimiter\":\"%s\"', typlen,
    typbyval::text, typalign, typstorage, typdelim)
  || format(',\"element\":%s,\"base\":%s,\"base_typmod\":%s,\"relation\":%s,\"subtype\":%s',
    CASE WHEN typlen = -1 THEN typelem ELSE 0 END, typbasetype, typtypmod, typrelid,
    coalesce((SELECT rngsubtype FROM pg_range WHERE rngtypid = t.oid),
      (SELECT rngtypid FROM pg_range WHERE rngmultitypid = t.oid), 0))
  || format(',\"output_library\":%s,\"output_symbol\":%s', to_json(coalesce(probin, '')), to_json(prosrc))
  || ',\"labels\":[' || coalesce((SELECT string_agg(format('{\"oid\":%s,\"label\":%s}', oid, to_json(enumlabel::text)),
    ',' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid), '') || ']}'
FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace JOIN pg_proc p ON p.oid = typoutput
WHERE NOT EXISTS (SELECT FROM pg_class WHERE relpersistence = 't' AND reltype IN (t.oid, t.typelem) AND reltype <> 0)
  OR EXISTS (SELECT FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    WHERE atttypid IN (t.oid, t.typarray) AND atttypid <> 0 AND relpersistence <> 't' AND attnum > 0) ORDER BY t.oid"
