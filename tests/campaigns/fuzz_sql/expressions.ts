/**
 * Generates random expressions over the columns in scope.
 *
 * No divisor can be zero, and products stay small. Otherwise, a different evaluation order could
 * cause an error on only one side without any fault.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { list, type Node, node } from "./tree.ts";
import { type Column, literalOf, SORTS, type Sort, typeNameOf } from "./values.ts";

export interface Scope {
  readonly chance: Chance;
  /** Columns, with their names as they appear in a query. */
  readonly columns: readonly Column[];
  /** Creates an expression that contains a subquery; absent if no subquery is allowed. */
  readonly inner?: (sort: Sort) => Node;
}

const COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "!="];
const PATTERNS = ["'a%'", "'%b'", "'_'", "'%'", "'a\\%'", "'x\\_y'", "'%a%'", "''", "'__%'"];

/**
 * Returns an expression of a given sort.
 * @param depth The maximum nesting depth.
 */
export function expressionOf(sort: Sort, depth: number, scope: Scope): Node {
  const { chance } = scope;
  if (depth <= 0 || chance.below(4) === 0) return leafOf(sort, scope);
  if (scope.inner !== undefined && chance.below(8) === 0) return scope.inner(sort);
  const kind = chance.below(10);
  if (kind === 0) return caseOf(sort, depth, scope);
  if (kind === 1) {
    const items = Array.from({ length: 1 + chance.below(3) }, () =>
      expressionOf(sort, depth - 1, scope),
    );
    return node(sort, "COALESCE(", list("items", items), ")");
  }
  if (kind === 2 && sort !== "jsonb") {
    return node(
      sort,
      "NULLIF(",
      expressionOf(sort, depth - 1, scope),
      ", ",
      leafOf(sort, scope),
      ")",
    );
  }
  return sort === "bool" ? conditionOf(depth, scope) : operationOf(sort, depth - 1, scope);
}

function leafOf(sort: Sort, { chance, columns }: Scope): Node {
  const fitting = columns.filter((column) => column.sort === sort);
  if (fitting.length > 0 && chance.below(4) > 0) return node(sort, chance.pick(fitting).name);
  if (chance.below(8) === 0) return node(sort, `NULL::${typeNameOf(sort)}`);
  return node(sort, literalOf(sort, chance));
}

function caseOf(sort: Sort, depth: number, scope: Scope): Node {
  const { chance } = scope;
  const below = (of: Sort): Node => expressionOf(of, depth - 1, scope);
  const otherwise = chance.below(3) === 0 ? "" : node("else", " ELSE ", below(sort));
  if (chance.below(3) === 0) {
    const tested = chance.pick<Sort>(["int", "text", "bool", "date"]);
    const whens = Array.from({ length: 1 + chance.below(2) }, () =>
      node("when", " WHEN ", below(tested), " THEN ", below(sort)),
    );
    return node(sort, "CASE ", below(tested), list("whens", whens, 1, ""), otherwise, " END");
  }
  const whens = Array.from({ length: 1 + chance.below(2) }, () =>
    node("when", " WHEN ", below("bool"), " THEN ", below(sort)),
  );
  return node(sort, "CASE", list("whens", whens, 1, ""), otherwise, " END");
}

/**
 * The forms of operations, keyed by the sort of their result. `$sort` represents an operand of
 * that sort, and `$1sort` represents the same operand wherever it appears.
 */
const OPERATIONS: Readonly<Record<Exclude<Sort, "bool">, readonly string[]>> = {
  int: [
    "($int + $int)",
    "($int - $int)",
    "($int * 2)",
    "(- $int)",
    "($int / 3)",
    "($int % 4)",
    "abs($int)",
    "length($text)",
    "mod($int, 5)",
    "sign($int)::int",
    "greatest($int, $int)",
    "least($int, $int, 3)",
    "($date - $date)",
    "position('a' in $text)",
    "extract(year from $date)::int",
    "octet_length($text)",
    "($jsonb ->> 'a')::numeric::int",
    "cardinality($ints)",
    "array_length($ints, 1)",
    "array_position(($ints)[1:1], ($int)::int)",
    "($ints)[1]",
    "masklen($inet)",
    "length($bits)",
    "extract(day FROM $interval)::int",
    "$bool::int",
    "$decimal::int",
    "strpos($text, $text)",
    "ascii($text)",
  ],
  decimal: [
    "($decimal + $decimal)",
    "($decimal - $int)",
    "($decimal * 1.5)",
    "round($decimal, 1)",
    "abs($decimal)",
    "(- $decimal)",
    "$int::numeric(20,2)",
    "trunc($decimal, 1)",
    "greatest($decimal, $decimal)",
    "ceil($decimal)",
    "floor($decimal)",
    "($decimal % 3)",
    "lower($range)",
    "upper($ranges)",
  ],
  float: [
    "($float + $float)",
    "($float - $int)",
    "($float * 2)",
    "abs($float)",
    "(- $float)",
    "$int::float8",
    "floor($float::float8)",
    "$decimal::float8",
    "($float / 4)",
    "least($float, $float)",
    "sqrt(abs($int)::float8)",
  ],
  text: [
    "($text || $text)",
    "($text || $int)",
    "upper($text)",
    "lower($text)",
    "substr($text, 1, 2)",
    "substring($text from 2)",
    "replace($text, 'a', 'bb')",
    "trim($text)",
    "concat($text, $int, $bool)",
    "left($text, 1)",
    "right($text, 2)",
    "reverse($text)",
    "lpad($text, 4, '*')",
    "($int)::text",
    "$date::text",
    "$bool::text",
    "$timestamp::text",
    "$uuid::text",
    "($jsonb ->> 'a')",
    "greatest($text, $text)",
    "split_part($text, 'b', 1)",
    "$text::varchar(2)",
    "concat_ws('-', $text, $text, $int)",
    "repeat($text, 2)",
    "md5($text)",
    "$time::text",
    "initcap($text)",
    "$interval::text",
    "array_to_string($ints, ',', '*')",
    "host($inet)",
    "$bits::text",
    "$range::text",
    "$ranges::text",
  ],
  date: [
    "($date + 1)",
    "($date - 40)",
    "$timestamp::date",
    "greatest($date, $date)",
    "date_trunc('month', $timestamp)::date",
  ],
  timestamp: [
    "($timestamp + $interval)",
    "($timestamp + INTERVAL '1 day')",
    "date_trunc('hour', $timestamp)",
    "$date::timestamp",
    "($timestamp - INTERVAL '1 month')",
    "($date + $time)",
  ],
  timestamptz: ["($timestamptz + INTERVAL '90 minutes')", "$timestamp::timestamptz"],
  time: ["$timestamp::time", "least($time, $time)"],
  uuid: ["greatest($uuid, $uuid)"],
  bytes: ["($bytes || $bytes)", "convert_to($text, 'UTF8')"],
  jsonb: ["($jsonb -> 'b')", "($jsonb -> 1)", "($jsonb || $jsonb)", "to_jsonb($int)"],
  interval: [
    "($interval + $interval)",
    "(- $interval)",
    "($interval * 2)",
    "($timestamp - $timestamp + '0'::interval)",
    "justify_hours($interval)",
    "make_interval(days => 3)",
    "greatest($interval, $interval)",
  ],
  ints: [
    "($ints || $ints)",
    "array_remove($ints, ($int)::int)",
    "ARRAY[($int)::int, ($int)::int]",
    "($ints)[1:2]",
    "array_replace($ints, 1, ($int)::int)",
  ],
  inet: [
    "network($inet)::inet",
    "set_masklen($inet, 16)",
    "greatest($inet, $inet)",
    "host($inet)::inet",
  ],
  bits: ["($bits || $bits)", "(~ $bits)", "substring($bits from 2)", "($bits << 1)"],
  range: ["($range * $range)", "range_merge($range, $range)", "range_merge($ranges)"],
  ranges: [
    "($ranges + $ranges)",
    "($ranges * $ranges)",
    "($ranges - $ranges)",
    "multirange($range)",
    "nummultirange($range, numrange(1, 2))",
  ],
};

function operationOf(sort: Exclude<Sort, "bool">, depth: number, scope: Scope): Node {
  return formOf(sort, scope.chance.pick(OPERATIONS[sort]), depth, scope);
}

/** Returns an operation or call with its operands filled in. */
export function formOf(sort: Sort, form: string, depth: number, scope: Scope): Node {
  const same = new Map<string, Node>();
  const pieces = form.split(/(\$\d?[a-z]+)/).map((piece) => {
    if (!piece.startsWith("$")) return piece;
    const operand =
      same.get(piece) ?? expressionOf(piece.replace(/^\$\d?/, "") as Sort, depth, scope);
    if (/\d/.test(piece)) same.set(piece, operand);
    return operand;
  });
  return node(sort, ...pieces);
}

/** Literals that take their type from the other operand. */
const UNTYPED: readonly { readonly of: Sort; readonly literals: readonly string[] }[] = [
  { of: "int", literals: ["'1'", "'-5'", "' 3 '"] },
  { of: "decimal", literals: ["'1.5'", "'1.505'", "'-0.014'", "'99.99'", "'1e40'"] },
  { of: "float", literals: ["'0.5'", "'-2.25'", "'1e3'"] },
  { of: "text", literals: ["'a'", "'longer than five'", "''"] },
  { of: "bool", literals: ["'t'", "'no'"] },
  { of: "date", literals: ["'2024-02-29'", "'1970-01-01'"] },
  { of: "timestamp", literals: ["'2024-02-29 12:30:00'", "'2023-01-31 08:00:00.25'"] },
  { of: "timestamptz", literals: ["'2024-02-29 12:30:00+02'", "'2024-02-29T10:30:00Z'"] },
  { of: "uuid", literals: ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"] },
  { of: "jsonb", literals: ["'null'", "'{\"a\":1}'"] },
];

const RANGE_TESTS: readonly string[] = [
  ...["&&", "@>", "<@", "<<", ">>", "&<", "&>", "-|-"].flatMap((op) => [
    `($range ${op} $range)`,
    `($range ${op} $ranges)`,
    `($ranges ${op} $range)`,
    `($ranges ${op} $ranges)`,
  ]),
  "($range @> ($decimal)::numeric)",
  "(($decimal)::numeric <@ $ranges)",
  "isempty($range)",
  "lower_inc($ranges)",
  "upper_inf($range)",
];

const NUMBERS: readonly Sort[] = ["int", "decimal", "float"];

/** Returns a condition. */
export function conditionOf(depth: number, scope: Scope): Node {
  const { chance } = scope;
  const below = (sort: Sort): Node => expressionOf(sort, depth - 1, scope);
  const sort = chance.pick(SORTS);
  if (scope.inner !== undefined && chance.below(4) === 0) return scope.inner("bool");
  switch (chance.below(15)) {
    case 14:
      return formOf("bool", chance.pick(RANGE_TESTS), depth - 1, scope);
    case 13: {
      const { literals, of } = chance.pick(UNTYPED);
      const op = chance.pick([...COMPARISONS, "IS DISTINCT FROM"]);
      const literal = chance.pick(literals);
      if (chance.below(3) === 0) return node("bool", `(${literal} ${op} `, below(of), ")");
      if (chance.below(3) === 0) {
        return node("bool", "(", below(of), ` IN (${literal}, `, below(of), "))");
      }
      return node("bool", "(", below(of), ` ${op} ${literal})`);
    }
    case 0:
    case 1:
      return node("bool", "(", below("bool"), chance.pick([" AND ", " OR "]), below("bool"), ")");
    case 2:
      return node("bool", "(NOT ", below("bool"), ")");
    case 3:
      return node("bool", "(", below(sort), chance.pick([" IS NULL)", " IS NOT NULL)"]));
    case 4:
      return node(
        "bool",
        "(",
        below("bool"),
        chance.pick([" IS TRUE)", " IS NOT TRUE)", " IS FALSE)", " IS NOT UNKNOWN)"]),
      );
    case 5: {
      const between = chance.pick([" BETWEEN ", " NOT BETWEEN ", " BETWEEN SYMMETRIC "]);
      return node("bool", "(", below(sort), between, below(sort), " AND ", below(sort), ")");
    }
    case 6: {
      const items = Array.from({ length: 1 + chance.below(4) }, () => below(sort));
      return node(
        "bool",
        "(",
        below(sort),
        chance.pick([" IN (", " NOT IN ("]),
        list("items", items),
        "))",
      );
    }
    case 7: {
      const like = chance.pick([" LIKE ", " NOT LIKE ", " ILIKE "]);
      return node("bool", "(", below("text"), like, chance.pick(PATTERNS), ")");
    }
    case 8: {
      const distinct = chance.pick([" IS DISTINCT FROM ", " IS NOT DISTINCT FROM "]);
      return node("bool", "(", below(sort), distinct, below(sort), ")");
    }
    case 9: {
      const [left, right] = [chance.pick(NUMBERS), chance.pick(NUMBERS)];
      return node("bool", "(", below(left), ` ${chance.pick(COMPARISONS)} `, below(right), ")");
    }
    case 10: {
      const op = chance.pick(["=", "<", ">=", "<>"]);
      const pair = (): Node => node("pair", "(", below("int"), ", ", below("text"), ")");
      return node("bool", "(", pair(), ` ${op} `, pair(), ")");
    }
    default:
      return node("bool", "(", below(sort), ` ${chance.pick(COMPARISONS)} `, below(sort), ")");
  }
}

/** An aggregate call as SQL, and the sort of its result. */
export interface AggregateForm {
  readonly sort: Sort;
  readonly form: string;
}

const AGGREGATES: readonly AggregateForm[] = [
  { sort: "int", form: "count(*)" },
  { sort: "int", form: "count($int)" },
  { sort: "int", form: "count(DISTINCT $int)" },
  { sort: "int", form: "count(DISTINCT $text)" },
  { sort: "int", form: "count(DISTINCT $float)" },
  { sort: "int", form: "count($jsonb)" },
  { sort: "int", form: "sum($int)" },
  { sort: "int", form: "sum(DISTINCT $int)" },
  { sort: "decimal", form: "sum($decimal)" },
  { sort: "float", form: "avg($int)" },
  { sort: "decimal", form: "avg($decimal)" },
  { sort: "float", form: "avg($float)" },
  { sort: "float", form: "sum($float)" },
  { sort: "int", form: "min($int)" },
  { sort: "int", form: "max($int)" },
  { sort: "text", form: "min($text)" },
  { sort: "text", form: "max($text)" },
  { sort: "date", form: "max($date)" },
  { sort: "timestamp", form: "min($timestamp)" },
  { sort: "decimal", form: "max($decimal)" },
  { sort: "float", form: "min($float)" },
  { sort: "bool", form: "bool_and($bool)" },
  { sort: "ranges", form: "range_agg($range)" },
  { sort: "ranges", form: "range_intersect_agg($ranges)" },
  { sort: "bool", form: "bool_or($bool)" },
  { sort: "text", form: "string_agg($1text, ',' ORDER BY $text, $1text)" },
  { sort: "text", form: "string_agg(DISTINCT $1text, ',' ORDER BY $1text)" },
  { sort: "text", form: "(array_agg(DISTINCT $int))::text" },
  { sort: "text", form: "string_agg(DISTINCT $text, '+')" },
  { sort: "float", form: "percentile_cont(0.5) WITHIN GROUP (ORDER BY $float)" },
  { sort: "float", form: "percentile_cont(0.3) WITHIN GROUP (ORDER BY $int DESC)" },
  { sort: "int", form: "percentile_disc(0.75) WITHIN GROUP (ORDER BY $int)" },
  { sort: "text", form: "percentile_disc(0.4) WITHIN GROUP (ORDER BY ($text)::text DESC)" },
  { sort: "text", form: "percentile_disc(ARRAY[0, 0.5, 1]) WITHIN GROUP (ORDER BY $int)::text" },
  { sort: "date", form: "mode() WITHIN GROUP (ORDER BY $date)" },
  { sort: "text", form: "mode() WITHIN GROUP (ORDER BY ($text)::text DESC)" },
  { sort: "text", form: "(array_agg($1int ORDER BY $1int DESC))::text" },
  { sort: "text", form: "array_agg($1text ORDER BY $int NULLS FIRST, $1text)::text" },
];

/** Returns an aggregate call, sometimes with FILTER. */
export function aggregateOf(scope: Scope): { readonly sort: Sort; readonly call: Node } {
  const { chance } = scope;
  const { form, sort } = chance.pick(AGGREGATES);
  const call = formOf(sort, form, 1, scope);
  if (chance.below(4) > 0 || form.includes("::text")) return { sort, call };
  const filter = node("filter", call, " FILTER (WHERE ", conditionOf(1, scope), ")");
  return { sort, call: node(sort, filter) };
}
