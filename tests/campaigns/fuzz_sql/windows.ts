/**
 * Generates random window function calls. A call that depends on the order of peers is used only
 * with windows that order by every column.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { conditionOf, expressionOf, formOf, type Scope } from "./expressions.ts";
import { list, type Node, node } from "./tree.ts";
import { type Column, SORTS, type Sort } from "./values.ts";

interface CallForm {
  readonly sort: Sort;
  readonly form: string;
}

export const ORDERS: readonly string[] = [
  "",
  " DESC",
  " NULLS FIRST",
  " DESC NULLS LAST",
  " ASC NULLS LAST",
];

/** Window calls whose result is the same for all peers. */
const FREE: readonly CallForm[] = [
  { sort: "int", form: "rank()" },
  { sort: "int", form: "dense_rank()" },
  { sort: "float", form: "percent_rank()" },
  { sort: "float", form: "cume_dist()" },
];

const BOUND: readonly CallForm[] = [
  { sort: "int", form: "row_number()" },
  { sort: "int", form: "ntile(3)" },
  { sort: "int", form: "ntile((abs($int) + 1)::int)" },
  { sort: "int", form: "lag($int)" },
  { sort: "text", form: "lag($text::text, 2)" },
  { sort: "int", form: "lag($int, 1, $int)" },
  { sort: "date", form: "lead($date, 2, $date)" },
  { sort: "decimal", form: "lead($decimal, ($int % 3)::int)" },
  { sort: "text", form: "lead($text::text)" },
  { sort: "int", form: "first_value($int)" },
  { sort: "text", form: "last_value($text::text)" },
  { sort: "timestamp", form: "last_value($timestamp)" },
  { sort: "text", form: "nth_value($text::text, 2)" },
  { sort: "int", form: "nth_value($int, (abs($int) % 4 + 1)::int)" },
];

/** Aggregates used as window calls, which also accept FILTER. */
const AGGREGATES: readonly CallForm[] = [
  { sort: "int", form: "count(*)" },
  { sort: "int", form: "count($text)" },
  { sort: "int", form: "sum($int)" },
  { sort: "decimal", form: "sum($decimal)" },
  { sort: "float", form: "avg($int)" },
  { sort: "decimal", form: "avg($decimal)" },
  { sort: "int", form: "min($int)" },
  { sort: "int", form: "max($int)" },
  { sort: "text", form: "max($text)" },
  { sort: "decimal", form: "min($decimal)" },
  { sort: "date", form: "max($date)" },
  { sort: "bool", form: "bool_or($bool)" },
  { sort: "bool", form: "every($bool)" },
];

const ORDERED_AGGREGATES: readonly CallForm[] = [
  { sort: "text", form: "string_agg($text, '-')" },
  { sort: "text", form: "array_agg($int)" },
];

/** A window call, and the sort of its result. */
export interface WindowCall {
  readonly sort: Sort;
  readonly call: Node;
}

/** Window calls, and the WINDOW clause that they need. */
export interface WindowCalls {
  readonly calls: readonly WindowCall[];
  readonly clause: Node | string;
}

/**
 * Returns one to three window calls.
 *
 * @param isUnique Whether no two rows have the same values in all columns of the scope.
 */
export function windowCallsOf(scope: Scope, { isUnique }: { isUnique: boolean }): WindowCalls {
  const { chance } = scope;
  const named = chance.below(3) === 0;
  const partition = partitionOf(scope);
  // All calls share one order. Under two different orders, the two sides might place equal rows
  // differently.
  const total = isUnique ? totalOrder(scope) : undefined;
  const calls = Array.from({ length: 1 + chance.below(3) }, () =>
    callOver(named ? "w" : partition, scope, total),
  );
  const clause = named ? node("windows", " WINDOW w AS (", partition, ")") : "";
  return { calls, clause };
}

function partitionOf(scope: Scope): Node | string {
  const { chance } = scope;
  if (chance.below(3) === 0) return "";
  const keys = Array.from({ length: 1 + chance.below(2) }, () =>
    expressionOf(chance.pick(SORTS), 1, scope),
  );
  return node("partition", "PARTITION BY ", list("keys", keys));
}

function callOver(partition: Node | string, scope: Scope, total: Order | undefined): WindowCall {
  const { chance } = scope;
  const whole = chance.below(2) === 0 ? total : undefined;
  const isTotal = whole !== undefined;
  const forms = isTotal
    ? chance.pick([BOUND, BOUND, AGGREGATES, ORDERED_AGGREGATES, FREE])
    : chance.pick([AGGREGATES, FREE]);
  const { form, sort } = chance.pick(forms);
  const isAggregate = forms === AGGREGATES || forms === ORDERED_AGGREGATES;
  const made = formOf(sort, form, 1, scope);
  const filter =
    isAggregate && chance.below(4) === 0
      ? node("filter", " FILTER (WHERE ", conditionOf(1, scope), ")")
      : "";
  const order = whole ?? partialOrder(scope);
  const frame = frameOf(order, { chance, isTotal });
  const over = [made, filter, " OVER (", partition, order.node, frame, ")"];
  // Arrays are compared as text.
  if (form.startsWith("array_agg")) return { sort, call: node(sort, "(", ...over, ")::text") };
  return { sort, call: node(sort, ...over) };
}

interface Order {
  readonly node: Node | string;
  readonly isEmpty: boolean;
  /** The sort of the only key of the order; undefined if the order has several keys. */
  readonly sort: Sort | undefined;
}

/**
 * Returns an order by some key and then by all other columns. Shrinking must preserve the whole
 * order.
 */
function totalOrder(scope: Scope): Order {
  const { chance, columns } = scope;
  const key = expressionOf(chance.pick(SORTS), 1, scope);
  const names = columns.map(({ name }) => name).join(", ");
  const pieces = [" ORDER BY ", key, chance.pick(ORDERS), `, ${names}`];
  return { node: node("order", ...pieces), isEmpty: false, sort: undefined };
}

function partialOrder(scope: Scope): Order {
  const { chance } = scope;
  if (chance.below(5) === 0) return { node: "", isEmpty: true, sort: undefined };
  const sorts = Array.from({ length: chance.below(4) === 0 ? 2 : 1 }, () => chance.pick(SORTS));
  const keys = sorts.map((sort) => node("key", expressionOf(sort, 1, scope), chance.pick(ORDERS)));
  return {
    node: node("order", " ORDER BY ", list("keys", keys)),
    isEmpty: false,
    sort: sorts.length === 1 ? sorts[0] : undefined,
  };
}

const OFFSETS: Readonly<Partial<Record<Sort, readonly string[]>>> = {
  int: ["0", "1", "3", "100"],
  decimal: ["0.5", "1.505", "10"],
  float: ["0.5", "2.25"],
  date: ["INTERVAL '1 month'", "INTERVAL '40 days'"],
  timestamp: ["INTERVAL '1 day'", "INTERVAL '400 days 2 hours'"],
  timestamptz: ["INTERVAL '3 hours'"],
  time: ["INTERVAL '90 minutes'", "INTERVAL '14 hours'"],
};

function frameOf(
  order: Order,
  { chance, isTotal }: { chance: Chance; isTotal: boolean },
): Node | string {
  if (chance.below(3) === 0) return "";
  const modes = [
    ...(isTotal ? ["ROWS", "ROWS"] : []),
    "RANGE",
    ...(order.isEmpty ? [] : ["GROUPS"]),
  ];
  const mode = chance.pick(modes);
  const offsets =
    mode === "RANGE" ? ((order.sort && OFFSETS[order.sort]) ?? []) : ["0", "1", "2", "5"];
  const bounds = [
    "UNBOUNDED PRECEDING",
    ...(offsets.length === 0 ? [] : [`${chance.pick(offsets)} PRECEDING`]),
    "CURRENT ROW",
    ...(offsets.length === 0 ? [] : [`${chance.pick(offsets)} FOLLOWING`]),
    "UNBOUNDED FOLLOWING",
  ];
  // The excluded rows must not depend on an order that the window does not define.
  const excluded = isTotal ? [" CURRENT ROW", " GROUP", " TIES"] : [" GROUP", " NO OTHERS"];
  const exclude = chance.below(3) === 0 ? ` EXCLUDE${chance.pick(excluded)}` : "";
  const from = chance.below(bounds.length - 1);
  if (chance.below(3) === 0 && bounds[from] !== undefined && !bounds[from].includes("FOLLOWING")) {
    return node("frame", ` ${mode} ${bounds[from]}${exclude}`);
  }
  const to = Math.max(1, from) + chance.below(bounds.length - Math.max(1, from));
  return node("frame", ` ${mode} BETWEEN ${bounds[from] ?? ""} AND ${bounds[to] ?? ""}${exclude}`);
}

/** Returns a query's expressions as columns, for calls over grouped rows. */
export function columnsOfNodes(
  nodes: readonly { readonly sort: Sort; readonly text: string }[],
): Column[] {
  return nodes.map(({ sort, text }) => ({ sort, name: text }));
}
