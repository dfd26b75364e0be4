/**
 * Random indexes over columns, expressions and parts of the rows, and random conditions and orders
 * that such an index may serve. If the caller does not let an index refuse rows, each unique index
 * includes the primary key.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { columnsOf, type StoredTable } from "./changes.ts";
import { conditionOf, expressionOf, type Scope } from "./expressions.ts";
import { list, type Node, node, textOf } from "./tree.ts";
import { literalOf, type Sort } from "./values.ts";

/** Creates indexes. Any side may refuse one. */
export interface IndexPreparer {
  /** Creates an index on all sides, or on none. */
  readonly index: (sql: string, name: string) => Promise<boolean>;
}

/** An index. Its parts are stored as text, because statements repeat them. */
export interface MadeIndex {
  readonly parts: readonly { readonly sort: Sort; readonly text: string }[];
  /** The condition; absent for all rows. */
  readonly where?: string;
}

/** The sorts whose values have an order in an index. */
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
];

const COMPARISONS = ["=", "=", "=", "<", "<=", ">", ">=", "<>"];
const PATTERNS = ["'a%'", "'ab%'", "'%'", "'x\\_%'", "'A%'"];

let madeCount = 0;

/**
 * Returns a table with one more index, or the table itself if a side refuses the index.
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
  const parts = Array.from({ length: 1 + chance.below(3) }, () => {
    if (chance.below(2) === 0) {
      const { name, sort } = chance.pick(fitting);
      return { sort, text: name };
    }
    const sort = chance.pick(INDEXED);
    return { sort, text: `(${textOf(expressionOf(sort, 1 + chance.below(2), scope))})` };
  });
  const where = chance.below(2) === 0 ? undefined : partOf(table, scope);
  // With the key among its parts, a unique index refuses no row.
  const unique = chance.below(4) === 0;
  if (unique && !(allowsUnique && chance.below(2) === 0)) parts.push({ sort: "int", text: "id" });
  madeCount += 1;
  const name = `x${madeCount}`;
  const keys = parts.map(({ text }) => text).join(", ");
  const condition = where === undefined ? "" : ` WHERE ${where}`;
  const sql = `CREATE ${unique ? "UNIQUE " : ""}INDEX ${name} ON ${table.name} (${keys})${condition}`;
  if (!(await sides.index(sql, name))) return table;
  const { indexes = [], indexNames = [] } = table;
  const made: MadeIndex = { parts, ...(where === undefined ? {} : { where }) };
  return { ...table, indexes: [...indexes, made], indexNames: [...indexNames, name] };
}

/** Returns the condition of an index. */
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
 * Returns a condition that one of the table's indexes may serve, often together with others;
 * undefined if the table has no index.
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

function testOf({ sort, text }: MadeIndex["parts"][number], chance: Chance): Node {
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

/** Returns a query that may read in the order of an index; undefined if there is none. */
export function indexedQuery(table: StoredTable, chance: Chance): Node | undefined {
  const condition = indexedCondition(table, chance);
  if (condition === undefined) return undefined;
  const { parts } = chance.pick(table.indexes ?? []);
  const outputs = list("outputs", ["id", ...parts.map(({ text }) => text)]);
  const head = node("query", "SELECT ", outputs, ` FROM ${table.name} WHERE `, condition);
  const direction = chance.pick(["", " DESC"]);
  const nulls = chance.pick(["", "", " NULLS FIRST", " NULLS LAST"]);
  const keys = parts.map(({ text }) => `${text}${direction}${nulls}`);
  // The primary key determines the order of equal rows.
  const order = `${[...keys, `id${direction}`].join(", ")} LIMIT ${1 + chance.below(6)}`;
  return node("query", head, node("tail", ` ORDER BY ${order}`));
}
