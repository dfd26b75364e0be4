/**
 * Generates the FROM clauses of random queries, and conditions and outputs over their columns.
 *
 * Every table in FROM has an alias, so that `queryAsOf` finds it.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { conditionOf, expressionOf, type Scope } from "../fuzz_sql/expressions.ts";
import type { Table } from "../fuzz_sql/subqueries.ts";
import { textOf } from "../fuzz_sql/tree.ts";
import { type Column, SORTS } from "../fuzz_sql/values.ts";

export interface FuzzQuery {
  readonly sql: string;
  /**
   * The query with one more column at the end: the seq of the newest table row from which each row
   * is derived. Absent for queries whose first rows have another `_seq`.
   */
  readonly seqSql?: string | undefined;
  /**
   * The values of the parameters, one list for each of several queries that differ only in these
   * values. The server follows such queries together.
   */
  readonly parameters: readonly (readonly (string | number | null)[])[];
}

/** The tables and views that a query may read. */
export interface Sources {
  readonly chance: Chance;
  readonly tables: readonly Table[];
  readonly views: readonly Table[];
}

export const INNER_JOINS = [" JOIN ", " INNER JOIN "];
export const ALL_JOINS = [" JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN "];

export interface From {
  readonly text: string;
  readonly columns: readonly Column[];
  /** The key columns of all tables, which together identify a row. */
  readonly ids: readonly string[];
}

/** Returns two or three tables, joined on equal keys. */
export function joined(
  { chance, tables, views }: Sources,
  words: readonly string[],
  countMax = 3,
): From {
  let from = itemOf(chance.below(6) === 0 ? [...tables, ...views] : tables, chance, "a");
  const count = countMax === 1 ? 1 : 2 + (chance.below(3) === 0 ? countMax - 2 : 0);
  for (const alias of ["b", "c"].slice(0, count - 1)) {
    const right = itemOf(tables, chance, alias);
    const word = chance.pick(words);
    const columns = [...from.columns, ...right.columns];
    const isUnequal = word !== " FULL JOIN " && chance.below(6) === 0;
    const conditions = [
      isUnequal ? inequality(from, right, chance) : equality(from, right, chance),
    ];
    if (chance.below(4) === 0 && !isUnequal) conditions.push(equality(from, right, chance));
    // PostgreSQL supports FULL JOIN only with equalities, so the generated full joins use no other
    // conditions.
    if (chance.below(3) === 0 && word !== " FULL JOIN ") {
      conditions.push(textOf(conditionOf(1, { chance, columns })));
    }
    const text = `${from.text}${word}${right.text} ON ${conditions.join(" AND ")}`;
    from = { text, columns, ids: [...from.ids, ...right.ids] };
  }
  return from;
}

/**
 * Returns the seq of the newest table row in a row of FROM, as an expression. Returns undefined if
 * FROM contains a view, because the rows of a view have no seq.
 */
export function newestSeqIn({ ids, text }: From): string | undefined {
  if (/\bvw\d/.test(text)) return undefined;
  return `greatest(${ids.map((id) => id.replace(/\.id$/, "._seq")).join(", ")})`;
}

export function itemOf(tables: readonly Table[], chance: Chance, alias: string): From {
  const { columns, name } = chance.pick(tables);
  return {
    text: `${name} AS ${alias}`,
    columns: columns.map(({ name: column, sort }) => ({ name: `${alias}.${column}`, sort })),
    ids: [`${alias}.id`],
  };
}

/** Returns an equality of two columns. They are usually keys that an index can serve. */
export function equality(left: From, right: From, chance: Chance): string {
  if (chance.below(4) > 0) {
    const of = ({ ids }: From): string => {
      const alias = chance.pick(ids).split(".")[0] ?? "";
      return `${alias}.${chance.pick(["id", "i", "j"])}`;
    };
    return `${of(left)} = ${of(right)}`;
  }
  const sort = chance.pick(["text", "bool", "int"] as const);
  const of = (from: From): readonly Column[] => from.columns.filter((each) => each.sort === sort);
  const [ours, theirs] = [of(left), of(right)];
  if (ours.length === 0 || theirs.length === 0) return `${left.ids.at(-1)} = ${right.ids[0]}`;
  return `${chance.pick(ours).name} = ${chance.pick(theirs).name}`;
}

/** Returns a comparison that neither a key nor an index can serve. */
function inequality(left: From, right: From, chance: Chance): string {
  const alias = chance.pick(left.ids).split(".")[0] ?? "";
  const [ours, theirs] = [chance.pick(["id", "i", "j"]), chance.pick(["id", "i", "j"])];
  return `${alias}.${ours} ${chance.pick(["<", ">=", "<>"])} ${right.ids[0]?.split(".")[0]}.${theirs}`;
}

export function scopeOf({ columns }: From, chance: Chance): Scope {
  return { chance, columns };
}

export function where(from: From, chance: Chance): string {
  if (chance.below(2) === 0) return "";
  return ` WHERE ${textOf(conditionOf(1 + chance.below(2), scopeOf(from, chance)))}`;
}

/** Returns columns and expressions for a select list, with or without the keys. */
export function outputs(from: From, chance: Chance): string[] {
  const list = Array.from({ length: 1 + chance.below(3) }, () =>
    chance.below(3) > 0
      ? chance.pick(from.columns).name
      : textOf(expressionOf(chance.pick(SORTS), 2, scopeOf(from, chance))),
  );
  return chance.below(2) === 0 ? [...from.ids, ...list] : list;
}
