/**
 * Generates random indexes on columns, expressions, terms and subsets of the rows, and random
 * conditions and orders that such an index may serve. Unless the caller allows an index to refuse
 * rows, each unique index includes the primary key.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { columnsOf, type StoredTable } from "./changes.ts";
import { conditionOf, expressionOf, type Scope } from "./expressions.ts";
import { list, type Node, node, textOf } from "./tree.ts";
import { literalOf, type Sort } from "./values.ts";

/** Creates indexes on all compared systems. Any of the systems may refuse an index. */
export interface IndexPreparer {
  /** Creates an index on all sides, or on none of them. Returns whether it was created. */
  readonly index: (sql: string, name: string) => Promise<boolean>;
}

/** A part of an index, in the form in which other statements repeat it. */
interface MadePart {
  readonly sort: Sort;
  readonly text: string;
  /** The kind of the index's terms if the index is inverted. Such an index has no order. */
  readonly terms?: "document" | "trigrams" | "words";
}

/** An index. Its parts are stored as SQL, because statements repeat them. */
export interface MadeIndex {
  readonly parts: readonly MadePart[];
  /** The condition of a partial index; absent if the index covers all rows. */
  readonly where?: string;
}

/** The sorts of expressions whose values an index can order. */
const INDEXED: readonly Sort[] = [
  "int",
  "decimal",
  "float",
  "text",
  "bool",
  "date",
  "timestamp",
  "timestamptz",
  "time",
  "uuid",
  "bytes",
  "interval",
  "inet",
  "bits",
  "range",
  "ranges",
];

const COMPARISONS = ["=", "=", "=", "<", "<=", ">", ">=", "<>"];
const PATTERNS = ["'a%'", "'ab%'", "'%'", "'x\\_%'", "'A%'"];

let madeCount = 0;

/**
 * Returns a table with one more index; the table itself if a side refuses the index.
 *
 * @param parts.allowsUnique Whether a unique index may refuse rows.
 */
export async function withIndex(
  sides: IndexPreparer,
  table: StoredTable,
  { allowsUnique, chance }: { readonly allowsUnique: boolean; readonly chance: Chance },
): Promise<StoredTable> {
  const scope: Scope = { chance, columns: columnsOf(table) };
  const fitting = scope.columns.filter(({ sort }) => INDEXED.includes(sort));
  const isInverted = chance.below(4) === 0;
  if (isInverted) return withInverted(sides, table, scope);
  const parts: MadePart[] = Array.from({ length: 1 + chance.below(3) }, () => {
    if (chance.below(2) === 0) {
      const { name, sort } = chance.pick(fitting);
      return { sort, text: name };
    }
    const sort = chance.pick(INDEXED);
    return { sort, text: `(${textOf(expressionOf(sort, 1 + chance.below(2), scope))})` };
  });
  const where = chance.below(2) === 0 ? undefined : partOf(table, scope);
  // A unique index that includes the primary key refuses no row.
  const unique = chance.below(4) === 0;
  if (unique && !(allowsUnique && chance.below(2) === 0)) parts.push({ sort: "int", text: "id" });
  madeCount += 1;
  const name = `x${madeCount}`;
  const keys = parts.map(({ text }) => text).join(", ");
  const condition = where === undefined ? "" : ` WHERE ${where}`;
  const sql = `CREATE ${unique ? "UNIQUE " : ""}INDEX ${name} ON ${table.name} (${keys})${condition}`;
  if (!(await sides.index(sql, name))) return table;
  return withMade(table, name, { parts, ...(where === undefined ? {} : { where }) });
}

function withMade(table: StoredTable, name: string, made: MadeIndex): StoredTable {
  const { indexes = [], indexNames = [] } = table;
  return { ...table, indexes: [...indexes, made], indexNames: [...indexNames, name] };
}

/** Returns a table with one more inverted index; the table itself if a side refuses the index. */
async function withInverted(
  sides: IndexPreparer,
  table: StoredTable,
  scope: Scope,
): Promise<StoredTable> {
  const { chance } = scope;
  const texts = scope.columns.filter(({ sort }) => sort === "text");
  const documents = scope.columns.filter(({ sort }) => sort === "jsonb");
  const parts: MadePart[] = [];
  if (texts.length > 0) {
    const { name } = chance.pick(texts);
    const words = `to_tsvector('${chance.pick(["english", "simple"])}', ${name})`;
    if (chance.below(2) === 0) parts.push({ sort: "text", text: words, terms: "words" });
    if (chance.below(2) === 0) parts.push({ sort: "text", text: name, terms: "trigrams" });
  }
  if (documents.length > 0 && (parts.length === 0 || chance.below(2) === 0)) {
    parts.push({ sort: "jsonb", text: chance.pick(documents).name, terms: "document" });
  }
  if (parts.length === 0) return table;
  const where = chance.below(3) === 0 ? partOf(table, scope) : undefined;
  madeCount += 1;
  const name = `x${madeCount}`;
  const keys = parts.map(({ terms, text }) =>
    terms === "trigrams" ? `${text} gin_trgm_ops` : text,
  );
  const condition = where === undefined ? "" : ` WHERE ${where}`;
  const sql = `CREATE INDEX ${name} ON ${table.name} USING gin (${keys.join(", ")})${condition}`;
  if (!(await sides.index(sql, name))) return table;
  return withMade(table, name, { parts, ...(where === undefined ? {} : { where }) });
}

/** Returns the condition of a partial index. */
function partOf(table: StoredTable, scope: Scope): string {
  const { chance } = scope;
  const { name, sort } = chance.pick(columnsOf(table));
  switch (chance.below(5)) {
    case 0:
      return `${name} IS ${chance.pick(["", "NOT "])}NULL`;
    case 1:
      return textOf(conditionOf(1, scope));
    case 2:
      return `${name} IN (${literalOf(sort, chance)}, ${literalOf(sort, chance)})`;
    default:
      return `${name} ${chance.pick(COMPARISONS)} ${literalOf(sort, chance)}`;
  }
}

/**
 * Returns a condition that one of the table's indexes may serve, often combined with other
 * conditions; undefined if the table has no index.
 */
export function indexedCondition(table: StoredTable, chance: Chance): Node | undefined {
  const { indexes = [] } = table;
  if (indexes.length === 0) return undefined;
  const { parts, where } = chance.pick(indexes);
  const scope: Scope = { chance, columns: columnsOf(table) };
  const count = chance.below(6) === 0 ? 0 : 1 + chance.below(parts.length);
  const tests = parts.slice(0, count).map((part) => testOf(part, chance));
  if (where !== undefined && chance.below(5) > 0) tests.push(node("bool", `(${where})`));
  if (chance.below(3) === 0) tests.push(conditionOf(1, scope));
  if (tests.length === 0) tests.push(conditionOf(2, scope));
  const all = node("bool", "(", list("tests", tests, 1, " AND "), ")");
  if (chance.below(4) > 0) return all;
  const other = testOf(chance.pick(chance.pick(indexes).parts), chance);
  return node("bool", "(", all, " OR ", other, ")");
}

const WORD_QUERIES = [
  "plainto_tsquery('simple', $)",
  "phraseto_tsquery('english', $)",
  "websearch_to_tsquery('simple', $)",
  "'a:*'::tsquery",
  "'!ab'::tsquery",
  "'a | b'::tsquery",
  "'ab & !a'::tsquery",
  "to_tsquery('simple', 'x | !y')",
];
const TRIGRAM_TESTS = ["LIKE '%ab%'", "ILIKE '%AB%'", "LIKE '%abc'", "LIKE 'a_c%'", "% $", "%> $"];
const DOCUMENT_TESTS = [
  `@> '{"a": 1}'`,
  `@> '{}'`,
  "@> '[]'",
  "@> '[1]'",
  `@> '{"a": {"b": [2]}}'`,
  "@> $",
  "? 'a'",
  "?| ARRAY['a', 'b']",
  "?& ARRAY['a', 'b']",
];

/** Returns a condition that finds rows by their terms. */
function termTest({ sort, terms, text }: MadePart, chance: Chance): Node {
  const withValue = (form: string): string => form.replace("$", () => asciiLiteral(sort, chance));
  const tests = terms === "document" ? DOCUMENT_TESTS : TRIGRAM_TESTS;
  const test = terms === "words" ? `@@ ${chance.pick(WORD_QUERIES)}` : chance.pick(tests);
  return node("bool", `(${text} ${withValue(test)})`);
}

/**
 * Returns a literal made up of ASCII characters. In the locale C, PostgreSQL considers every other
 * character a letter, but Tidemark does not.
 */
function asciiLiteral(sort: Sort, chance: Chance): string {
  let literal = literalOf(sort, chance);
  while (/[^ -~]/.test(literal)) literal = literalOf(sort, chance);
  return literal;
}

function testOf(part: MadePart, chance: Chance): Node {
  if (part.terms !== undefined) return termTest(part, chance);
  const { sort, text } = part;
  const value = (): string => literalOf(sort, chance);
  switch (chance.below(8)) {
    case 0:
      return node("bool", `(${text} IS NULL)`);
    case 1:
      return node("bool", `(${text} IN (${value()}, ${value()}, ${value()}))`);
    case 2:
      return node("bool", `(${text} BETWEEN ${value()} AND ${value()})`);
    case 3:
      return sort === "text"
        ? node("bool", `(${text} LIKE ${chance.pick(PATTERNS)})`)
        : node("bool", `(${value()} ${chance.pick(COMPARISONS)} ${text})`);
    default:
      return node("bool", `(${text} ${chance.pick(COMPARISONS)} ${value()})`);
  }
}

/**
 * Returns a query that may be read in the order of an index; undefined if the table has no
 * suitable index.
 */
export function indexedQuery(table: StoredTable, chance: Chance): Node | undefined {
  const condition = indexedCondition(table, chance);
  if (condition === undefined) return undefined;
  const { parts } = chance.pick(table.indexes ?? []);
  if (parts.some(({ terms }) => terms !== undefined)) {
    const from = ` FROM ${table.name} WHERE `;
    const found = node("query", "SELECT ", list("outputs", ["id"]), from, condition);
    return node("query", found, node("tail", " ORDER BY id"));
  }
  const outputs = list("outputs", ["id", ...parts.map(({ text }) => text)]);
  const head = node("query", "SELECT ", outputs, ` FROM ${table.name} WHERE `, condition);
  const direction = chance.pick(["", " DESC"]);
  const nulls = chance.pick(["", "", " NULLS FIRST", " NULLS LAST"]);
  const keys = parts.map(({ text }) => `${text}${direction}${nulls}`);
  // The primary key decides the order of rows that are otherwise equal.
  const order = `${[...keys, `id${direction}`].join(", ")} LIMIT ${1 + chance.below(6)}`;
  return node("query", head, node("tail", ` ORDER BY ${order}`));
}
