/**
 * The words that the parser knows, and which of them may be names.
 *
 * The classes are PostgreSQL's, so that a text that needs quotes there needs them here. A word that
 * is in no list is an ordinary name and never compared with anything.
 */
import { defined } from "../../../base/assert.ts";
import { WordTable } from "./word_table.ts";

// Names of nothing unless quoted.
const RESERVED = [
  "all analyse analyze and any array as asc asymmetric both case cast check collate column",
  "constraint create current_catalog current_date current_role current_time current_timestamp",
  "current_user default deferrable desc distinct do else end except false fetch for foreign from",
  "grant group having in initially intersect into lateral leading limit localtime localtimestamp",
  "not null offset on only or order placing primary references returning select session_user",
  "some symmetric table then to trailing true union unique user using variadic when where window",
  "with",
] as const;

// Names of functions and types, but not of columns and tables.
const FUNCTION_ONLY = [
  "authorization binary cross current_schema full ilike inner is isnull join left like natural",
  "notnull outer overlaps right similar tablesample verbose",
] as const;

// Names of anything.
const UNRESERVED = [
  "abort access ack add aggregate alter always at auto_increment backup begin between bit by call",
  "cascade char character checkpoint clear close cluster coalesce collation columns comment commit",
  "committed compact conflict connection constraints consume copy cube current currval cursor cycle data",
  "database day deallocate declare delete describe discard domain double drop earliest email escape",
  "event exclude execute exists explain export extended extension external extract filter first",
  "flush following format function generated global grouping groups hash history hour identity if",
  "import increment index inherits insert integer internal interval isolation job json key kill",
  "language last lastval latest level listen live load local lock manifest materialized merge minute",
  "modify month move name namespace namespaces national nchar next nextval nfc nfd nfkc nfkd no",
  "normalize normalized nothing notify nulls oauth of operator options ordinality others over overlay owned",
  "owner partition partitions password policy position preceding precision prepare procedure",
  "publication purge qualify query range read reassign recursive refresh reindex release rename",
  "repeatable replace reset restore restrict revoke role rollback rollup routine row rows rule",
  "savepoint schema schemas search second security seq sequence serializable server session set sets",
  "setval share shared show snapshot source start statistics stats stdin stdout storage storages",
  "stored stream subscribe subscription substring system_time tables tablespace tblproperties temp",
  "temporary text ties time timestamp topic transaction trigger trim truncate type unbounded unknown",
  "unlisten unlogged update upto use vacuum value values varying view virtual within without work write",
  "year zone",
] as const;

type Split<S extends string, Found extends string = never> = S extends `${infer Head} ${infer Tail}`
  ? Split<Tail, Found | Head>
  : Found | S;

/** A word that the parser compares with, in lower case. */
export type Keyword = Split<
  (typeof RESERVED)[number] | (typeof FUNCTION_ONLY)[number] | (typeof UNRESERVED)[number]
>;

// May stand as a column or table name; 0 for words that are in no list.
const Class = { ordinary: 0, functionOnly: 1, reserved: 2 } as const;

const CLASS_OF = new Map<string, number>();

for (const [lists, wordClass] of [
  [RESERVED, Class.reserved],
  [FUNCTION_ONLY, Class.functionOnly],
  [UNRESERVED, Class.ordinary],
] as const) {
  for (const word of lists.join(" ").split(" ")) {
    if (!CLASS_OF.has(word)) CLASS_OF.set(word, wordClass);
  }
}

const WORDS = new WordTable([...CLASS_OF.keys()]);

/** The keyword at [start, end) in lower case, or "" when the word of that hash is none. */
export function keywordAt(text: string, start: number, end: number, hash: number): string {
  const index = WORDS.indexAt(text, start, end, hash);
  return index === -1 ? "" : defined(WORDS.words[index], "an index in the table is one of a word");
}

/** Whether an unquoted word may name a column or a table. */
export function isNameWord(word: string): boolean {
  return word === "" || CLASS_OF.get(word) === Class.ordinary;
}

/** Whether an unquoted word may name a function. */
export function isFunctionWord(word: string): boolean {
  return word === "" || CLASS_OF.get(word) !== Class.reserved;
}

/** The word itself when it is a keyword, else "". */
export function keywordOf(word: string): string {
  return CLASS_OF.has(word) ? word : "";
}
