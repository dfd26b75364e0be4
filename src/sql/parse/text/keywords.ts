/**
 * Lists the parser's keywords, classified by whether they may be used as names.
 *
 * The classes are PostgreSQL's, so a name that needs quotes there also needs them here. A word in
 * none of the lists is an ordinary name.
 */
import { defined } from "../../../base/assert.ts";
import { WordTable } from "./word_table.ts";

// Words that have to be quoted when used as names.
const RESERVED = [
  "all analyse analyze and any array as asc asymmetric both case cast check collate column",
  "constraint create current_catalog current_date current_role current_time current_timestamp",
  "current_user default deferrable desc distinct do else end except false fetch for foreign from",
  "grant group having in initially intersect into lateral leading limit localtime localtimestamp",
  "not null offset on only or order placing primary references returning select session_user",
  "some symmetric table then to trailing true union unique user using variadic when where window",
  "with",
] as const;

// Words that can be names of functions and types, but not of columns and tables.
const FUNCTION_ONLY = [
  "authorization binary cross current_schema full ilike inner is isnull join left like natural",
  "notnull outer overlaps right similar tablesample verbose",
] as const;

// Words that can be the name of any object.
const UNRESERVED = [
  "abort absolute access ack action add after aggregate alter always at atomic attach auto_increment backup asensitive backward before begin between bit breadth by call called",
  "cache cascade cascaded char character characteristics checkpoint clear close cluster coalesce collation columns comment comments commit",
  "committed compact compression concurrently conflict connection constraints consume consumer content continue copy cost cube current currval cursor cycle data",
  "database day deallocate declare defaults deferred definer delete depth describe detach disable discard document domain double drop each earliest email enable enum escape",
  "event exclude excluding execute exists expires explain export expression extended extension external extract filter finalize first",
  "flush following format forward function functions generated global grouping groups hash history hold hour identity if",
  "immediate immutable import include including increment index indexes inherit inherits inout input insensitive insert instead integer internal interval invitation invitations invoker isolation job json key kill",
  "language last lastval latest leakproof level list listen live load local lock locked manifest match matched materialized maxvalue merge metadata minute minvalue",
  "modify modulus month move name namespace namespaces national nchar never new next nextval nfc nfd nfkc nfkd no none",
  "normalize normalized nothing notify nowait nulls oauth of offsets oids old operator option options ordinality others out over overlay overriding owned",
  "owner parallel partial partition partitions passing password path permissive policies policy position preceding precision prepare preserve prior procedure",
  "publication purge qualify query range read reassign recursive ref referencing refresh reindex relative release remainder rename",
  "repeatable replace replica reset restart restore restrict restrictive return returns revoke role rollback rollup routine row rows rule",
  "savepoint schema schemas scopes scroll search second secret security seq sequence serializable server session set setof sets skip standalone",
  "setval share shared show simple snapshot source stable start statement statistics stats stdin stdout storage storages",
  "stored stream strict strip subscribe subscription substring support system system_time tables tablespace tblproperties temp",
  "temporary text ties time timestamp token tokens topic topics transaction trigger trim truncate type unbounded unknown",
  "unlisten unlogged update upto url use uses vacuum valid validate value values varying version view virtual volatile webhook webhooks whitespace within without work write",
  "xml xmlattributes xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable year yes zone",
] as const;

type Split<S extends string, Found extends string = never> = S extends `${infer Head} ${infer Tail}`
  ? Split<Tail, Found | Head>
  : Found | S;

/** An SQL keyword, in lower case. */
export type Keyword = Split<
  (typeof RESERVED)[number] | (typeof FUNCTION_ONLY)[number] | (typeof UNRESERVED)[number]
>;

// The classes of words. A word in none of the lists has class 0.
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

/**
 * Returns the keyword at [start, end) in lower case, or "" if the word there is not a keyword.
 *
 * @param hash The word's hash, as `foldIntoHash` computes it.
 */
export function keywordAt(text: string, start: number, end: number, hash: number): string {
  const index = WORDS.indexAt(text, start, end, hash);
  return index === -1 ? "" : defined(WORDS.words[index], "keyword table: index has no keyword");
}

/** Returns the words of a class, in alphabetical order. */
export function wordsOfClass(wordClass: Exclude<keyof typeof Class, "ordinary">): string[] {
  return [...CLASS_OF]
    .flatMap(([word, its]) => (its === Class[wordClass] ? [word] : []))
    .toSorted();
}

/** Whether an unquoted word may be the name of a column or a table. */
export function isNameWord(word: string): boolean {
  return word === "" || CLASS_OF.get(word) === Class.ordinary;
}

/** Whether an unquoted word may be the name of a function. */
export function isFunctionWord(word: string): boolean {
  return word === "" || CLASS_OF.get(word) !== Class.reserved;
}

/** Returns the word itself if it is a keyword, or "" otherwise. */
export function keywordOf(word: string): string {
  return CLASS_OF.has(word) ? word : "";
}
