/**
 * Defines the keywords of Tidemark's SQL, for highlighting and completion. CodeMirror's own
 * dialects highlight common column names such as `id` and `content` as keywords, so this dialect
 * is used instead.
 */
import { SQLDialect } from "@codemirror/lang-sql";

/** The keywords to highlight. Keywords that are usually column names are left out. */
export const KEYWORDS: string =
  "abort add all alter always analyze and any as asc auto_increment before begin between both " +
  "by cascade case cast check collate column commit conflict constraint create cross cube " +
  "current current_date current_role current_time current_timestamp current_user default " +
  "delete desc describe distinct do drop else end escape except exclude execute exists explain " +
  "extract fetch filter flush following for format from full generated group grouping having " +
  "history identity if ilike in inner insert intersect into is isnull isolation join key kill " +
  "lateral leading left like limit live localtime localtimestamp manifest materialized modify " +
  "namespace namespaces natural no not nothing notnull nulls of offset on only options or " +
  "order ordinality outer over overlaps overlay partition password placing policies policy preceding primary " +
  "purge query range recursive rename replace reset restrict returning right rollback rollup " +
  "row rows schema schemas select session session_user set shared show similar some start " +
  "storage stream subscribe symmetric system_time table tables tablesample tblproperties then ties to " +
  "trailing transaction trim unbounded union unknown update use user using values verbose view " +
  "when where window with within without " +
  "xmlattributes xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

export const TYPES: string =
  "bigint bigserial binary bit blob bool boolean box bytea bytes char cidr circle clob date datemultirange daterange datetime dec decimal double " +
  "embedding file float float4 float8 inet int int2 int4 int4multirange int4range int8 int8multirange int8range integer interval json jsonb jsonpath line lseg macaddr macaddr8 mediumint " +
  "money numeric nummultirange numrange nvarchar oid path pg_lsn point polygon precision real regclass regcollation regnamespace regproc regprocedure regrole regtype serial smallint smallserial string text time timestamp " +
  "timestamptz timetz tinyint tsmultirange tsquery tsrange tstzmultirange tstzrange tsvector uuid varbinary varbit varchar vector xid xid8 xml";

export const FUNCTIONS: string =
  "abs age any_value approx_count_distinct approx_percentile array_agg array_append " +
  "array_length array_to_string avg bool_and bool_or btrim cardinality ceil char_length chr claim " +
  "coalesce concat concat_ws corr cosine_distance cosine_similarity count cume_dist " +
  "current_namespace current_setting date_bin date_part date_trunc decode dense_rank div encode " +
  "exp first_value floor gcd gen_random_uuid generate_series greatest hashtext initcap inner_product " +
  "json_agg json_array_length json_build_array json_build_object json_each " +
  "json_extract_path_text json_get json_get_int json_get_str json_object_keys json_typeof " +
  "jsonb_agg jsonb_build_object jsonb_path_exists jsonb_path_query " +
  "jsonb_path_query_array jsonb_pretty jsonb_set jsonb_strip_nulls l1_distance " +
  "l2_distance lag last_value lcm lead least left length ln log lower lpad ltrim make_date " +
  "make_interval make_time make_timestamp max md5 median min mod mode now nth_value ntile " +
  "nullif octet_length percent_rank percentile_cont percentile_disc pg_partition_root pg_partition_tree pg_trigger_depth pg_typeof pi power random " +
  "rank regexp_count regexp_like regexp_match regexp_replace regexp_split_to_array " +
  "regexp_substr repeat reverse round row_number rpad rtrim seq_at seq_time set_config sha256 " +
  "sha512 sign snowflake_id split_part sqrt starts_with stddev string_agg string_to_array " +
  "strpos substr substring sum to_char to_date to_hex to_json to_jsonb to_number to_regclass to_regtype to_timestamp to_tsquery to_tsvector " +
  "translate trunc ts_rank typeof ulid unnest upper uuid_v4 uuid_v7 variance vector_dims vector_norm " +
  "version width_bucket xmlagg xmlcomment xmlconcat xml_is_well_formed xpath xpath_exists";

export const TIDEMARK_SQL: SQLDialect = SQLDialect.define({
  keywords: `${KEYWORDS} true false null`,
  types: TYPES,
  builtin: FUNCTIONS,
  doubleDollarQuotedStrings: true,
  operatorChars: "+-*/<>=~!@#%^&|?:",
  identifierQuotes: '"',
  caseInsensitiveIdentifiers: true,
});

/** Returns a name in SQL notation, quoted if necessary. */
export function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}
