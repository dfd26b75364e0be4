/**
 * Functions and types of other systems, and what to write for them here, with an example.
 */

/** What does here what a function of another system does; undefined where nothing is known. */
export function insteadOfFunction(name: string): string | undefined {
  return FUNCTIONS.get(name);
}

/** What holds here what a type of another system holds; undefined where nothing is known. */
export function insteadOfType(name: string): string | undefined {
  return TYPES.get(name.split(" ")[0] ?? name);
}

/** One entry for each of several names. */
function entries(
  list: readonly (readonly [names: string, instead: string])[],
): ReadonlyMap<string, string> {
  return new Map(
    list.flatMap(([names, instead]) => names.split(" ").map((name) => [name, instead] as const)),
  );
}

const FUNCTIONS = entries([
  ["ifnull nvl", "write COALESCE(a, 'other')"],
  ["isnull", "write a IS NULL, or COALESCE(a, 'other')"],
  ["nvl2", "write CASE WHEN a IS NOT NULL THEN b ELSE c END"],
  ["if iif", "write CASE WHEN a > 1 THEN 'x' ELSE 'y' END"],
  ["decode", "write CASE a WHEN 1 THEN 'x' ELSE 'y' END; decode(text, 'hex') reads bytes"],
  ["choose elt", "write (ARRAY['x', 'y'])[n]"],
  ["field", "write array_position(ARRAY['x', 'y'], a)"],
  ["group_concat listagg wm_concat", "write string_agg(a, ',' ORDER BY a)"],
  ["json_arrayagg json_group_array", "write json_agg(a)"],
  ["json_objectagg json_group_object", "write json_object_agg(key, value)"],
  ["any_value arbitrary", "write min(a)"],
  ["countif count_if", "write count(*) FILTER (WHERE a > 1)"],
  ["approx_count_distinct approx_distinct", "write count(DISTINCT a)"],
  ["total", "write COALESCE(sum(a), 0)"],
  ["datediff timestampdiff julianday", "write DATE '2026-02-01' - DATE '2026-01-31', or age(a, b)"],
  ["date", "write a::date"],
  ["timediff", "write a - b"],
  ["date_add dateadd adddate timestampadd addtime", "write a + INTERVAL '1 day'"],
  ["date_sub subdate subtime", "write a - INTERVAL '1 day'"],
  ["add_months", "write a + INTERVAL '1 month'"],
  ["last_day eomonth", "write date_trunc('month', a) + INTERVAL '1 month - 1 day'"],
  ["months_between", "write age(a, b)"],
  ["strftime date_format time_format format_date", "write to_char(a, 'YYYY-MM-DD HH24:MI:SS')"],
  ["str_to_date parse_date", "write to_date('31.01.2026', 'DD.MM.YYYY')"],
  ["datetime", "write a::timestamp, or now()"],
  ["from_unixtime", "write to_timestamp(seconds)"],
  ["unix_timestamp unixepoch epoch", "write EXTRACT(EPOCH FROM now())"],
  ["curdate getdate sysdate sysdatetime getutcdate utc_timestamp", "write now(), or CURRENT_DATE"],
  ["curtime utc_time", "write CURRENT_TIME"],
  ["utc_date", "write CURRENT_DATE"],
  [
    "year month day hour minute second quarter week dayofweek dayofyear weekday",
    "write EXTRACT(YEAR FROM a); further fields are MONTH, DAY, HOUR, DOW, DOY, WEEK",
  ],
  ["datepart datename", "write EXTRACT(YEAR FROM a), or to_char(a, 'Day')"],
  ["datefromparts", "write make_date(2026, 1, 31)"],
  ["convert_tz", "write a AT TIME ZONE 'Europe/Berlin'"],
  ["uuid newid sys_guid generateuuidv4 uuid_generate_v4 uuid_string", "write gen_random_uuid()"],
  ["last_insert_id last_insert_rowid scope_identity lastval", "write INSERT INTO t … RETURNING id"],
  ["row_count changes rowcount", "the answer to a statement has its row_count"],
  ["found_rows", "write count(*) OVER ()"],
  ["len datalength lengthb", "write length(a), or octet_length(a) for bytes"],
  ["charindex instr locate", "write position('b' IN a), or strpos(a, 'b')"],
  ["substring_index", "write split_part(a, ',', 1)"],
  ["mid substrb", "write substr(a, 2, 3)"],
  ["ucase", "write upper(a)"],
  ["lcase", "write lower(a)"],
  ["space", "write repeat(' ', n)"],
  ["replicate", "write repeat(a, n)"],
  ["stuff", "write overlay(a PLACING 'x' FROM 2 FOR 1)"],
  ["char nchar unichar", "write chr(65)"],
  ["ord unicode", "write ascii(a)"],
  ["hex rawtohex", "write to_hex(n), or encode(bytes, 'hex')"],
  ["unhex hextoraw", "write decode(a, 'hex')"],
  ["to_base64", "write encode(bytes, 'base64')"],
  ["from_base64", "write decode(a, 'base64')"],
  ["sha1 sha sha2 hashbytes crc32", "write sha256(a::bytea), or md5(a)"],
  ["regexp_extract", "write regexp_substr(a, 'pattern')"],
  ["regexp rlike regexp_matches", "write a ~ 'pattern', or regexp_match(a, 'pattern')"],
  ["find_in_set", "write a = ANY (string_to_array(list, ','))"],
  ["quote quotename", "write quote_literal(a), or quote_ident(a)"],
  ["format", "format('%s', a) takes a text first; numbers: to_char(a, '999G999D99')"],
  ["printf str", "write format('%s', a), or to_char(a, '999D99')"],
  ["sql_variant_property", "write pg_typeof(a)"],
  ["rand randn", "write random()"],
  ["truncate", "write trunc(a, 2)"],
  ["square", "write power(a, 2)"],
  ["log2", "write log(2, a)"],
  ["bin conv", "write to_hex(n)"],
  [
    "json_extract json_value json_query get_json_object",
    "write doc ->> 'field', or doc #>> '{a,b}'",
  ],
  ["json_unquote", "write doc ->> 'field'"],
  ["json_array", "write json_build_array(1, 'x')"],
  ["json_set json_insert json_replace json_modify", "write jsonb_set(doc::jsonb, '{a,b}', '1')"],
  ["json_remove", "write doc::jsonb - 'field'"],
  ["json_keys", "write SELECT * FROM json_object_keys(doc)"],
  ["json_type", "write json_typeof(doc)"],
  ["json_valid isjson", "a column of type JSON holds nothing else"],
  ["json_table openjson", "write json_to_recordset(doc) AS t (a INT, b TEXT)"],
  ["json_tree", "write SELECT * FROM json_each(doc)"],
  ["convert try_convert", "write CAST(a AS TEXT), or a::text"],
  ["try_cast safe_cast", "write CAST(a AS INT)"],
  ["top", "write LIMIT n at the end of the query"],
  ["rownum", "write row_number() OVER (ORDER BY a), or LIMIT n"],
  ["database schema db_name", "write CURRENT_NAMESPACE()"],
  ["connection_id", "SELECT * FROM system.my_connections lists them"],
  ["sleep waitfor", "write pg_sleep(seconds)"],
  ["varchar string text", "write CAST(a AS TEXT), or a::text"],
  ["signed unsigned int integer", "write CAST(a AS INT), or a::int"],
  ["values", "write EXCLUDED.a for the row that was to be inserted"],
  ["enum", "write TEXT CHECK (a IN ('x', 'y'))"],
  ["flatten explode", "write unnest(array), or json_array_elements(doc)"],
  ["currval nextval setval", "write SNOWFLAKE_ID()"],
]);

const TYPES = entries([
  ["number", "DECIMAL(10, 2), or BIGINT for whole numbers"],
  ["money smallmoney", "DECIMAL(19, 4)"],
  ["varchar2 nvarchar2 ntext tinytext mediumtext longtext citext name long xml", "TEXT"],
  ["inet cidr macaddr", "TEXT"],
  ["tinyblob mediumblob longblob image raw rowversion", "BYTES"],
  ["datetime2 smalldatetime", "TIMESTAMP"],
  ["datetimeoffset", "TIMESTAMP WITH TIME ZONE"],
  ["timetz time", "TIME"],
  ["uniqueidentifier guid", "UUID"],
  ["bit", "BOOLEAN"],
  ["varbit", "BYTES"],
  ["year", "SMALLINT"],
  ["signed unsigned uint uint64 int64", "BIGINT"],
  ["int32 uint32 int16 uint16 middleint", "INT"],
  ["float32 binary_float single", "REAL"],
  ["float64 binary_double", "DOUBLE"],
  ["object map struct variant hstore record array super", "JSON or JSONB"],
  ["list", "JSONB, which holds arrays"],
  ["enum set", "TEXT CHECK (a IN ('x', 'y'))"],
  ["point geometry geography", "two DOUBLE columns"],
  [
    "regclass regtype regproc regnamespace regrole oid",
    "TEXT: tables are named by their text, and DESCRIBE t or information_schema.tables tells of one",
  ],
  ["tsvector tsquery", "TEXT: a ~* 'word' looks for words"],
  ["int4range int8range numrange tsrange tstzrange daterange", "two columns, of its ends"],
]);
