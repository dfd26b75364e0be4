/**
 * Defines laws that the results of a single database must satisfy, so that a fault can be found
 * without a second database.
 *
 * - Partition: a condition is true, false or NULL for each row, so a query without the condition
 *   returns the rows of the three queries that ask for one of these values (ternary logic
 *   partitioning, Rigger and Su 2020). The same holds for DISTINCT, for groups, for HAVING and for
 *   aggregates that can be added up.
 * - Projection: the number of rows that pass a filter is the number of rows for which the
 *   condition is true when it is an output instead (NoREC, by the same authors). The second query
 *   uses no index, range or pushed filter.
 * - Join: rows that satisfy a condition in ON also satisfy it in WHERE.
 * - Moment: tables FOR SYSTEM_TIME AS OF now() equal the current tables. The second query uses no
 *   secondary index and no stored order.
 * - Index: a condition that an index may serve finds the same rows as a scan with that condition.
 * - Change: DELETE and UPDATE change as many rows as SELECT finds.
 *
 * A law is a tree with three parts, outputs, FROM and condition, which can be cut down.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { columnsOf, type StoredTable } from "./changes.ts";
import {
  type AggregateForm,
  conditionOf,
  expressionOf,
  formOf,
  type Scope,
} from "./expressions.ts";
import { indexedCondition } from "./indexes.ts";
import { fromOf } from "./queries.ts";
import { type Table, withQueries } from "./subqueries.ts";
import { list, type Node, node, textOf } from "./tree.ts";
import { type Column, SORTS } from "./values.ts";

/** A group of queries that must return the same rows. */
export interface Sameness {
  readonly whole: string;
  /** The queries whose combined rows must equal the rows of `whole`. */
  readonly parts: readonly string[];
  /** Whether duplicate rows count only once. */
  readonly isSet: boolean;
  /**
   * Whether only the parts contain the condition. If so, the whole query is accepted even if the
   * condition is invalid.
   */
  readonly isOfParts?: boolean;
}

export interface Law {
  readonly name: string;
  /** The select list, FROM and condition of the query. */
  readonly root: Node;
  /**
   * Returns the queries that must return the same rows, for a tree that may have been cut down.
   */
  sameness(root: Node): Sameness;
}

interface Parts {
  readonly outputs: string;
  readonly from: string;
  readonly condition: string;
}

type Form = (parts: Parts) => Sameness;

/**
 * Returns a random law over random rows.
 * @param stored The tables that may be changed.
 */
export function lawOf(given: readonly StoredTable[], views: readonly Table[], chance: Chance): Law {
  const stored = given.map((table) => ({ name: table.name, columns: columnsOf(table) }));
  const tables = [...stored, ...views];
  const indexed = chance.below(3) === 0 ? overIndex(chance.pick(given), chance) : undefined;
  if (indexed !== undefined) return indexed;
  switch (chance.below(10)) {
    case 0:
    case 1:
      return overRows("partition", partition(""), tables, chance);
    case 2:
      return overRows("partition of DISTINCT", partition("DISTINCT "), tables, chance);
    case 3:
    case 4:
      return overAggregate(tables, chance);
    case 5:
      return overGroups(tables, chance);
    case 6:
      return overRows("projection", projection, tables, chance);
    case 7:
      return overJoin(tables, chance);
    case 8:
      return overRows("moment", moment, stored, chance);
    default:
      return overChange(stored, chance);
  }
}

/** The second query uses no index, because the planner does not look inside IS TRUE. */
function overIndex(table: StoredTable, chance: Chance): Law | undefined {
  const condition = indexedCondition(table, chance);
  if (condition === undefined) return undefined;
  const form: Form = ({ condition: text, from, outputs }) => ({
    whole: `SELECT ${outputs} FROM ${from} WHERE ${text}`,
    parts: [`SELECT ${outputs} FROM ${from} WHERE (${text}) IS TRUE`],
    isSet: false,
  });
  return lawFrom("index", form, [list("outputs", ["id"]), node("from", table.name), condition]);
}

/** Returns three conditions, exactly one of which is true for each row. */
function cases(condition: string): readonly string[] {
  return [condition, `NOT ${condition}`, `(${condition}) IS NULL`];
}

function partition(distinct: string): Form {
  return ({ condition, from, outputs }) => ({
    whole: `SELECT ${distinct}${outputs} FROM ${from}`,
    parts: cases(condition).map((one) => `SELECT ${distinct}${outputs} FROM ${from} WHERE ${one}`),
    isSet: distinct !== "",
    isOfParts: true,
  });
}

function projection({ condition, from }: Parts): Sameness {
  return {
    whole: `SELECT count(*) FROM ${from} WHERE ${condition}`,
    parts: [`SELECT COALESCE(sum(CASE WHEN ${condition} THEN 1 ELSE 0 END), 0) FROM ${from}`],
    isSet: false,
  };
}

function moment({ condition, from, outputs }: Parts): Sameness {
  const whole = `SELECT ${outputs} FROM ${from} WHERE ${condition}`;
  const past = whole.replaceAll(/\b(t\d+)(?= AS )/g, "$1 FOR SYSTEM_TIME AS OF now()");
  return { whole, parts: [past], isSet: false };
}

function overRows(name: string, form: Form, tables: readonly Table[], chance: Chance): Law {
  const { columns, item } = fromOf(tables, chance, 1);
  const scope: Scope = { chance, columns };
  const outputs = Array.from({ length: 1 + chance.below(3) }, () =>
    expressionOf(chance.pick(SORTS), chance.below(3), scope),
  );
  return lawFrom(name, form, [list("outputs", outputs), item, whereOf(tables, scope)]);
}

/** An aggregate, and the aggregate that combines its values over parts of the rows. */
interface Sum extends AggregateForm {
  readonly sum: "sum" | "min" | "max" | "bool_and" | "bool_or";
}

const SUMS: readonly Sum[] = [
  { sort: "int", form: "count(*)", sum: "sum" },
  { sort: "int", form: "count($int)", sum: "sum" },
  { sort: "int", form: "count($text)", sum: "sum" },
  { sort: "int", form: "sum($int)", sum: "sum" },
  { sort: "decimal", form: "sum($decimal)", sum: "sum" },
  { sort: "int", form: "min($int)", sum: "min" },
  { sort: "int", form: "max($int)", sum: "max" },
  { sort: "decimal", form: "min($decimal)", sum: "min" },
  { sort: "float", form: "max($float)", sum: "max" },
  { sort: "text", form: "min($text)", sum: "min" },
  { sort: "text", form: "max($text)", sum: "max" },
  { sort: "date", form: "min($date)", sum: "min" },
  { sort: "timestamp", form: "max($timestamp)", sum: "max" },
  { sort: "bool", form: "bool_and($bool)", sum: "bool_and" },
  { sort: "bool", form: "bool_or($bool)", sum: "bool_or" },
];

function overAggregate(tables: readonly Table[], chance: Chance): Law {
  const { columns, item } = fromOf(tables, chance, 1);
  const scope: Scope = { chance, columns };
  const { form, sort, sum } = chance.pick(SUMS);
  const call = formOf(sort, form, 2, scope);
  const key = chance.below(3) === 0 ? expressionOf(chance.pick(SORTS), 1, scope) : undefined;
  const outputs = key === undefined ? [call] : [call, key];
  const group = (by: string): string => (key === undefined ? "" : ` GROUP BY ${by}`);
  const law: Form = ({ condition, from, outputs: text }) => {
    const names = key === undefined ? "a" : "a, k";
    // GROUP BY refers to the key by its position, because it would interpret a constant key as a
    // position, too.
    const blocks = cases(condition).map(
      (one) => `SELECT ${text} FROM ${from} WHERE ${one}${group("2")}`,
    );
    const all = `(${blocks.join(" UNION ALL ")}) AS parts(${names})`;
    return {
      whole: `SELECT ${text} FROM ${from}${group("2")}`,
      parts: [`SELECT ${sum}(a)${key === undefined ? "" : ", k"} FROM ${all}${group("k")}`],
      isSet: false,
      isOfParts: true,
    };
  };
  const pieces = [list("outputs", outputs, outputs.length), item, whereOf(tables, scope)] as const;
  return lawFrom(`partition of ${sum}`, law, pieces);
}

/** HAVING partitions groups just as WHERE partitions rows. */
function overGroups(tables: readonly Table[], chance: Chance): Law {
  const { columns, item } = fromOf(tables, chance, 1);
  const scope: Scope = { chance, columns };
  const key = chance.pick(columns);
  const calls = [chance.pick(SUMS), chance.pick(SUMS)].map(({ form, sort }, i) => ({
    sort,
    name: `((${textOf(formOf(sort, form, 1, scope))}))`,
    number: i,
  }));
  const groups: Scope = { chance, columns: [key, ...calls] };
  const outputs = list("outputs", [node(key.sort, key.name), ...calls.map(({ name }) => name)]);
  const law: Form = ({ condition, from, outputs: text }) => {
    const block = `SELECT ${text} FROM ${from} GROUP BY ${key.name}`;
    const parts = cases(condition).map((one) => `${block} HAVING ${one}`);
    return { whole: block, parts, isSet: false, isOfParts: true };
  };
  return lawFrom("partition by HAVING", law, [outputs, item, conditionOf(2, groups)]);
}

function overJoin(tables: readonly Table[], chance: Chance): Law {
  const left = columnsAs(chance.pick(tables), "q1");
  const right = columnsAs(chance.pick(tables), "q2");
  const scope: Scope = { chance, columns: [...left.columns, ...right.columns] };
  const outputs = Array.from({ length: 1 + chance.below(3) }, () =>
    expressionOf(chance.pick(SORTS), 1, scope),
  );
  const same = left.columns.flatMap((one) =>
    right.columns.filter(({ sort }) => sort === one.sort).map((two) => [one.name, two.name]),
  );
  const [one = "1", two = "1"] = chance.pick(same);
  const equality = node("bool", `(${one} = ${two})`);
  const rest = conditionOf(2, scope);
  const condition = chance.below(3) === 0 ? rest : node("bool", "(", equality, " AND ", rest, ")");
  const item = node("from", left.text, ", ", right.text);
  const isOuter = chance.below(2) === 0;
  const law: Form = ({ condition: on, outputs: text }) => {
    if (!isOuter) {
      const join = `${left.text} JOIN ${right.text} ON ${on}`;
      const whole = `SELECT ${text} FROM ${left.text}, ${right.text} WHERE ${on}`;
      return { whole, parts: [`SELECT ${text} FROM ${join}`], isSet: false };
    }
    // Each row of the left side appears once with each of its matches, or alone if it has no
    // match.
    const inner = `SELECT q1.id, q2.id FROM ${left.text} JOIN ${right.text} ON ${on}`;
    const none = `NOT EXISTS (SELECT 1 FROM ${right.text} WHERE ${on})`;
    const lonely = `SELECT q1.id, NULL::int FROM ${left.text} WHERE ${none}`;
    const outer = `SELECT q1.id, q2.id FROM ${left.text} LEFT JOIN ${right.text} ON ${on}`;
    return { whole: outer, parts: [inner, lonely], isSet: false };
  };
  const name = isOuter ? "outer join" : "join";
  return lawFrom(name, law, [list("outputs", outputs), item, condition]);
}

function overChange(tables: readonly Table[], chance: Chance): Law {
  const { columns, text } = columnsAs(chance.pick(tables), "q1");
  const scope: Scope = { chance, columns };
  const column = columns[1 + chance.below(Math.max(columns.length - 1, 1))];
  const name = column?.name.slice("q1.".length) ?? "id";
  const isDelete = column === undefined || chance.below(2) === 0;
  const law: Form = ({ condition }) => ({
    whole: `SELECT count(*) FROM ${text} WHERE ${condition}`,
    parts: [
      isDelete
        ? `BEGIN; DELETE FROM ${text} WHERE ${condition}; ROLLBACK`
        : `BEGIN; UPDATE ${text} SET ${name} = ${name} WHERE ${condition}; ROLLBACK`,
    ],
    isSet: false,
  });
  const pieces = [list("outputs", ["1"]), node("from", text), whereOf(tables, scope)] as const;
  return lawFrom(isDelete ? "DELETE" : "UPDATE", law, pieces);
}

function columnsAs(table: Table, alias: string): { text: string; columns: readonly Column[] } {
  const columns = table.columns.map(({ name, sort }) => ({ name: `${alias}.${name}`, sort }));
  return { text: `${table.name} AS ${alias}`, columns };
}

function whereOf(tables: readonly Table[], scope: Scope): Node {
  const isPlain = scope.chance.below(2) === 0;
  return conditionOf(2 + scope.chance.below(2), isPlain ? scope : withQueries(tables, scope));
}

function lawFrom(name: string, form: Form, pieces: readonly [Node, Node, Node]): Law {
  return {
    name,
    root: node("law", ...pieces),
    sameness(root) {
      const [outputs = "", from = "", condition = ""] = root.pieces.map(textOf);
      return form({ outputs, from, condition });
    },
  };
}
