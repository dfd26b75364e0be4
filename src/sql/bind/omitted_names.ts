/**
 * Lists functions of PostgreSQL that belong to something that Tidemark leaves out. A call of one is
 * refused as a missing feature, by the name of that feature, rather than as an unknown function.
 */

/** The reason why there is no such function; undefined if the name belongs to no feature. */
export function omittedFeatureOf(name: string): string | undefined {
  return OMITTED.find(([names]) => names.test(name))?.[1];
}

const OMITTED: readonly (readonly [names: RegExp, reason: string])[] = [
  [
    /^(?:(?:int4|int8|num|ts|tstz|date)(?:multi)?range|multirange|range_\w+|isempty|(?:lower|upper)_in[cf])$/,
    "there are no ranges",
  ],
  [
    /^(?:point|box|lseg|line|path|polygon|circle|center|diameter|radius|height|width|area|npoints|pclose|popen|isclosed|isopen|isvertical|ishorizontal|slope|bound_box|diagonal)$/,
    "there are no geometric types",
  ],
  [
    /^(?:xml\w*|xpath|xpath_exists|(?:table|query|schema|cursor|database)_to_xml\w*)$/,
    "there is no XML",
  ],
  [/^(?:lo_\w+|loread|lowrite)$/, "there are no large objects; BYTES and FILE hold bytes"],
  [
    /^(?:txid_\w+|pg_current_xact_id\w*|pg_current_snapshot|pg_visible_in_snapshot|pg_snapshot_\w+|pg_xact_status)$/,
    "transactions have no numbers; _seq orders their changes",
  ],
];
