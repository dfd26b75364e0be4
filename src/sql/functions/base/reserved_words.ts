/**
 * Words that are no plain name in SQL, so that quoted identifiers stay what they are when read.
 */

const WORDS: ReadonlySet<string> = new Set(
  (
    "all analyse analyze and any array as asc asymmetric authorization between binary both case cast check " +
    "collate collation column concurrently constraint create cross current_catalog current_date " +
    "current_role current_schema current_time current_timestamp current_user default deferrable " +
    "desc distinct do else end except exists extract false fetch for foreign freeze from full " +
    "grant group having ilike in initially inner intersect into is isnull join lateral leading " +
    "left like limit localtime localtimestamp natural not notnull null offset on only or order " +
    "outer overlaps overlay placing position primary references returning right row select " +
    "session_user similar some substring symmetric system_user table tablesample then to trailing " +
    "trim true union unique user using values variadic verbose when where window with " +
    "coalesce nullif greatest least interval time timestamp setof"
  ).split(" "),
);

/** Whether a lower-case word needs quotes as a name. */
export function isReservedWord(word: string): boolean {
  return WORDS.has(word);
}
