/**
 * Lists functions and types of other database systems, each with its equivalent in Tidemark or an
 * example of one.
 */

/**
 * Returns advice on how to replace a function of another database system; undefined if the
 * function is not listed.
 */
export function insteadOfFunction(name: string): string | undefined {
  return FUNCTIONS.get(name);
}

/**
 * Returns the type that replaces a type of another database system; undefined if that type is not
 * listed.
 */
export function insteadOfType(name: string): string | undefined {
  return TYPES.get(name.split(" ")[0] ?? name);
}

/** Returns one entry per name. `names` contains several names, separated by spaces. */
function entries(
  list: readonly (readonly [names: string, instead: string])[],
): ReadonlyMap<string, string> {
  return new Map(
    list.flatMap(([names, instead]) => names.split(" ").map((name) => [name, instead] as const)),
  );
}

const FUNCTIONS = entries([
  ["count", "write count(*), or count(name)"],
  ["ifnull nvl", "write COALESCE(name, 'unknown')"],
  ["isnull", "write name IS NULL, or COALESCE(name, 'unknown')"],
  ["nvl2", "write CASE WHEN name IS NOT NULL THEN name ELSE 'unknown' END"],
  ["if iif", "write CASE WHEN price > 10 THEN 'high' ELSE 'low' END"],
  [
    "decode",
    "write CASE state WHEN 1 THEN 'open' ELSE 'closed' END; to convert hexadecimal text to " +
      "bytes, write decode(text, 'hex')",
  ],
  ["choose elt", "write (ARRAY['low', 'high'])[level]"],
  ["field", "write array_position(ARRAY['low', 'high'], level)"],
  ["group_concat listagg wm_concat", "write string_agg(name, ',' ORDER BY name)"],
  ["json_arrayagg json_group_array", "write json_agg(name)"],
  ["json_objectagg json_group_object", "write json_object_agg(key, value)"],
  ["any_value arbitrary", "write min(name)"],
  ["countif count_if", "write count(*) FILTER (WHERE price > 10)"],
  ["approx_count_distinct approx_distinct", "write count(DISTINCT name)"],
  ["total", "write COALESCE(sum(price), 0)"],
  [
    "datediff timestampdiff julianday",
    "write DATE '2026-02-01' - DATE '2026-01-31', or age(ended_at, started_at)",
  ],
  ["timediff", "write ended_at - started_at"],
  ["date_add dateadd adddate timestampadd addtime", "write sent_at + INTERVAL '1 day'"],
  ["date_sub subdate subtime", "write sent_at - INTERVAL '1 day'"],
  ["add_months", "write sent_at + INTERVAL '1 month'"],
  ["last_day eomonth", "write date_trunc('month', sent_at) + INTERVAL '1 month - 1 day'"],
  ["months_between", "write age(ended_at, started_at)"],
  [
    "strftime date_format time_format format_date",
    "write to_char(sent_at, 'YYYY-MM-DD HH24:MI:SS')",
  ],
  ["str_to_date parse_date", "write to_date('31.01.2026', 'DD.MM.YYYY')"],
  ["datetime", "write sent_at::timestamp, or now()"],
  ["from_unixtime", "write to_timestamp(seconds)"],
  ["unix_timestamp unixepoch epoch", "write EXTRACT(EPOCH FROM now())"],
  ["curdate getdate sysdate sysdatetime getutcdate utc_timestamp", "write now(), or CURRENT_DATE"],
  ["curtime utc_time", "write CURRENT_TIME"],
  ["utc_date", "write CURRENT_DATE"],
  [
    "year month day hour minute second quarter week dayofweek dayofyear weekday",
    "write EXTRACT(YEAR FROM sent_at); other fields are MONTH, DAY, HOUR, DOW, DOY and WEEK",
  ],
  ["datepart datename", "write EXTRACT(YEAR FROM sent_at), or to_char(sent_at, 'Day')"],
  ["datefromparts", "write make_date(2026, 1, 31)"],
  ["convert_tz", "write sent_at AT TIME ZONE 'Europe/Berlin'"],
  ["uuid newid sys_guid generateuuidv4 uuid_string", "write gen_random_uuid()"],
  ["last_insert_id last_insert_rowid scope_identity", "write INSERT INTO … RETURNING id"],
  ["row_count changes rowcount", "read row_count in the response"],
  ["found_rows", "write count(*) OVER ()"],
  ["len datalength lengthb", "write length(name), or octet_length(name) for bytes"],
  ["charindex instr locate", "write position('x' IN name), or strpos(name, 'x')"],
  ["substring_index", "write split_part(name, ',', 1)"],
  ["mid substrb", "write substr(name, 2, 3)"],
  ["ucase", "write upper(name)"],
  ["lcase", "write lower(name)"],
  ["space", "write repeat(' ', n)"],
  ["replicate", "write repeat(name, n)"],
  ["stuff", "write overlay(name PLACING 'x' FROM 2 FOR 1)"],
  ["char nchar unichar", "write chr(65)"],
  ["ord unicode", "write ascii(name)"],
  ["hex rawtohex", "write to_hex(n), or encode(bytes, 'hex')"],
  ["unhex hextoraw", "write decode(text, 'hex')"],
  ["to_base64", "write encode(bytes, 'base64')"],
  ["from_base64", "write decode(text, 'base64')"],
  ["sha1 sha sha2 hashbytes crc32", "write sha256(name::bytea), or md5(name)"],
  ["regexp_extract", "write regexp_substr(name, 'pattern')"],
  ["regexp rlike regexp_matches", "write name ~ 'pattern', or regexp_match(name, 'pattern')"],
  ["find_in_set", "write name = ANY (string_to_array(list, ','))"],
  ["quote quotename", "write quote_literal(text), or quote_ident(name)"],
  ["format", "write format('%s', name) for strings, or to_char(price, '999G999D99') for numbers"],
  ["printf str", "write format('%s', name), or to_char(price, '999D99')"],
  ["shobj_description", "write obj_description(oid)"],
  [
    "pg_get_expr",
    "the columns data_type and column_default of information_schema.columns have this information",
  ],
  [
    "pg_get_userbyid",
    "the column schema_owner of information_schema.schemata has this information",
  ],
  ["sql_variant_property", "write pg_typeof(value)"],
  ["rand randn", "write random()"],
  ["truncate", "write trunc(price, 2)"],
  ["square", "write power(width, 2)"],
  ["log2", "write log(2, size)"],
  ["bin conv", "write to_hex(n)"],
  [
    "json_extract json_value json_query get_json_object",
    "write doc ->> 'city', or doc #>> '{address,city}'",
  ],
  ["json_unquote", "write doc ->> 'city'"],
  ["json_array", "write json_build_array(1, 'x')"],
  ["json_object jsonb_object", "write json_build_object('id', 1, 'name', 'Ada')"],
  [
    "json_set json_insert json_replace json_modify",
    "write jsonb_set(doc::jsonb, '{address,number}', '1')",
  ],
  ["json_remove", "write doc::jsonb - 'city'"],
  ["json_keys", "write SELECT * FROM json_object_keys(doc)"],
  ["json_type", "write json_typeof(doc)"],
  ["json_valid isjson", "not needed: JSON columns accept only valid JSON"],
  ["json_table openjson", "write json_to_recordset(doc) AS t (id INT, name TEXT)"],
  ["json_tree", "write SELECT * FROM json_each(doc)"],
  ["convert try_convert", "write CAST(price AS TEXT), or price::text"],
  ["try_cast safe_cast", "write CAST(code AS INT)"],
  ["top", "write LIMIT n at the end of the query"],
  ["rownum", "write row_number() OVER (ORDER BY id), or LIMIT n"],
  ["database schema db_name", "write CURRENT_NAMESPACE()"],
  [
    "connection_id pg_backend_pid",
    "to list your connections, run SELECT * FROM system.my_connections",
  ],
  [
    "txid_current pg_current_xact_id",
    "read the column _seq: it is the position of the row's last change",
  ],
  [
    "xmin xmax cmin cmax ctid",
    "rows have no such column; to see whether an upsert inserted a row, use MERGE with RETURNING " +
      "merge_action()",
  ],
  [
    "pg_total_relation_size pg_relation_size pg_table_size pg_indexes_size pg_database_size",
    "write SELECT sum(size_bytes) FROM system.segments WHERE table_name = 'articles'",
  ],
  [
    "crypt gen_salt",
    "hash passwords in your application, or let people log in as users of the server: CREATE USER",
  ],
  ["digest", "write sha256(data), or md5(text)"],
  ["gen_random_bytes", "write gen_random_uuid(), or create the bytes in your application"],
  ["auth.uid", "write CURRENT_USER"],
  ["auth.jwt auth.email auth.role", "write CLAIM('email'), or CURRENT_ROLE()"],
  [
    "cron.schedule",
    "the server has no timer; let a program run the statement, with a token of CREATE TOKEN",
  ],
  ["nanoid cuid", "write gen_random_uuid(), uuidv7() or SNOWFLAKE_ID()"],
  ["sleep waitfor", "write pg_sleep(seconds)"],
  ["varchar string text", "write CAST(price AS TEXT), or price::text"],
  ["signed unsigned int integer", "write CAST(code AS INT), or code::int"],
  ["values", "write EXCLUDED.name for the value that was proposed for insertion"],
  ["enum", "write TEXT CHECK (state IN ('open', 'closed'))"],
  ["flatten explode", "write unnest(array), or json_array_elements(doc)"],
]);

const TYPES = entries([
  ["n", "the string without the N"],
  ["number", "DECIMAL(10, 2), or BIGINT for whole numbers"],
  ["smallmoney", "DECIMAL(19, 4)"],
  ["varchar2 nvarchar2 ntext tinytext mediumtext longtext citext long", "TEXT"],
  ["tinyblob mediumblob longblob image raw rowversion", "BYTES"],
  ["datetime2 smalldatetime", "TIMESTAMP"],
  ["datetimeoffset", "TIMESTAMP WITH TIME ZONE"],
  ["time", "TIME"],
  ["uniqueidentifier guid", "UUID"],
  ["year", "SMALLINT"],
  ["signed unsigned uint uint64 int64", "BIGINT"],
  ["int32 uint32 int16 uint16 middleint", "INT"],
  ["float32 binary_float single", "REAL"],
  ["float64 binary_double", "DOUBLE"],
  ["object map struct variant hstore record super", "JSON or JSONB"],
  ["list", "INT[] for an array of integers"],
  ["enum set", "TEXT CHECK (state IN ('open', 'closed'))"],
  ["geometry geography", "POINT, PATH or POLYGON, or two DOUBLE columns"],
  ["regoper regoperator regdictionary", "TEXT with the name"],
  ["pg_snapshot txid_snapshot", "BIGINT for a _seq, which orders the changes of all transactions"],
]);
