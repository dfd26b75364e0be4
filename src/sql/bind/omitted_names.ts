/**
 * Lists PostgreSQL functions that belong to features missing from Tidemark. A call to such a
 * function is refused with an error that names the missing feature instead of reporting an unknown
 * function.
 */

/**
 * Returns why a function does not exist here; undefined if it does not belong to an omitted
 * feature.
 */
export function omittedFeatureOf(name: string): string | undefined {
  return OMITTED.find(([names]) => names.test(name))?.[1];
}

const OMITTED: readonly (readonly [names: RegExp, reason: string])[] = [
  [
    /^(?:(?:table|query|schema|cursor|database)_to_xml\w*|xmlvalidate)$/,
    "XML is created only by expressions, with xmlelement, xmlforest and xmlagg",
  ],
  [/^(?:lo_\w+|loread|lowrite)$/, "large objects are not supported; use BYTES or FILE columns"],
  [
    /^(?:to_)?reg(?:config|dictionary|oper|operator)$/,
    "operators, dictionaries and configurations have no OIDs",
  ],
  [
    /^(?:(?:bool|byteal?|cash|date|float[48]|int[248]|interval|numeric|text|time|timestamp|timestamptz|timetz|uuid|xid8?)_?(?:accum|avg|cmp|combine|dec|deserialize|hash|in|inc|larger|out|recv|regr_accum|regr_combine|send|serialize|smaller|sum|um|up))$/,
    "the name is used only internally, to implement operators, aggregates or types",
  ],
  [
    /^bool(?:and|or)_statefunc$/,
    "the name is used only internally, to implement operators, aggregates or types",
  ],
  [
    /^pg_(?:notify|listening_channels|notification_queue_usage)$/,
    "NOTIFY is not supported; use live queries or topics to receive changes",
  ],
  [
    /^(?:ts_debug|ts_parse|ts_token_type|ts_stat|ts_rewrite)$/,
    "text search functions that inspect the parser, count words or rewrite queries are not " +
      "supported",
  ],
  [
    /^pg_column_(?:size|compression)$/,
    "values are stored in compressed columns, so a single value has no stored size",
  ],
  [
    /^pg_(?:ls_\w+|read_\w*file|stat_file|log_backend_memory_contexts|reload_conf|rotate_logfile|terminate_backend|cancel_backend)$/,
    "SQL statements have no access to the server's files and processes",
  ],
  [
    /^has_(?:database|foreign_data_wrapper|language|parameter|server|tablespace)_privilege$/,
    "no rights exist on databases, languages, servers, parameters and tablespaces; only the role " +
      "of a user decides",
  ],
  [
    /^(?:txid_\w+|pg_current_xact_id\w*|pg_current_snapshot|pg_visible_in_snapshot|pg_snapshot_\w+|pg_xact_status)$/,
    "transactions have no numeric ids; _seq orders the changes of all transactions",
  ],
];
