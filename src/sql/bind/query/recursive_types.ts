/**
 * Determines the column types of a recursive query. Its initial side and its recursive side share
 * them.
 *
 * Each step computes its values from the previous step, so it may need more digits or a longer
 * string than the initial side has. A column keeps its base type, but is widened to fit the
 * recursive side. A DECIMAL, even as an array element, becomes a NUMERIC without a precision,
 * which can hold the digits of every step. The recursive side is then bound again. This is
 * repeated until no column needs to be wider.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  castBetween,
  collationName,
  collationOf,
  columnTypeOf,
  commonType,
  type DataType,
  isExactDecimal,
  isInteger,
  sameType,
  typeName,
  unbounded,
  withDerivedCollation,
} from "../../../types/mod.ts";
import type { AstNode } from "../../parse/ast/ast.ts";
import type { BoundSelect } from "../bound.ts";
import { castTo } from "../expression/casts.ts";

/**
 * The number of rounds in which a column is widened only as much as necessary. After that, every
 * column that is still growing immediately gets the maximum size.
 */
const PATIENT_ROUNDS = 3;

/**
 * Widens the columns of a recursive query to fit its recursive side. Returns the same array if
 * they already fit.
 */
export function widened(
  columns: readonly DataType[],
  given: readonly DataType[],
  round: number,
): readonly DataType[] {
  const next = columns.map((column, i) => widerColumn(column, given[i] ?? column, round));
  return next.every((column, i) => column === columns[i]) ? columns : next;
}

function widerColumn(type: DataType, given: DataType, round: number): DataType {
  if (type.kind === "decimal") {
    const isExact = isExactDecimal(given) || isInteger(given);
    return isExact && !sameType(type, given) ? unbounded(type) : type;
  }
  if (type.kind !== given.kind) return type;
  if (type.kind === "array" && given.kind === "array") {
    const element = widerColumn(type.element, given.element, round);
    return element === type.element ? type : { kind: "array", element };
  }
  const common = commonType([type, given]);
  if (common === undefined || sameType(common, type)) return type;
  return round < PATIENT_ROUNDS ? common : unbounded(common);
}

/** The name, columns and position of the recursive query, for messages. */
interface RecursivePlace {
  readonly name: string;
  readonly columnNames: readonly string[];
  readonly node: AstNode;
}

/**
 * Casts the outputs of one side of a recursive query to the query's column types.
 *
 * @throws {DatabaseError} TYPE_MISMATCH
 */
export function recursiveOutputs(
  { outputs }: BoundSelect,
  types: readonly DataType[],
  place: RecursivePlace,
): BoundSelect["outputs"] {
  return outputs.map(({ expression, name }, i) => {
    const to = types[i] ?? expression.type;
    const from = expression.type;
    if (castBetween(from, to, "implicit") === undefined) throw otherType(from, to, { i, place });
    requireCollation(from, to, { i, place });
    return { name, expression: castTo(expression, { to, mode: "implicit", node: place.node }) };
  });
}

/**
 * Requires that the recursive side leaves the collation of each column unchanged.
 *
 * @throws {DatabaseError} TYPE_MISMATCH
 */
function requireCollation(
  from: DataType,
  to: DataType,
  { i, place: { columnNames, name, node } }: { i: number; place: RecursivePlace },
): void {
  const column = columnTypeOf(to);
  const common = collationOf(withDerivedCollation(column, [column, from]));
  const own = collationOf(column);
  if (common === own || common === undefined) return;
  if (own !== undefined && collationName(common) === collationName(own)) return;
  throw new DatabaseError(
    "TYPE_MISMATCH",
    `Cannot run recursive query "${name}": the collations of column "${columnNames[i] ?? ""}" ` +
      "differ between its first part and its recursive part",
    { position: node._location.start, hint: "add the same COLLATE in both parts" },
  );
}

function otherType(
  from: DataType,
  to: DataType,
  { i, place }: { i: number; place: RecursivePlace },
): DatabaseError {
  const { columnNames, name, node } = place;
  return new DatabaseError(
    "TYPE_MISMATCH",
    `Cannot run recursive query "${name}": the type of column "${columnNames[i] ?? ""}" is ` +
      `${nameOf(to)} in its first part, but ${nameOf(from)} in its recursive part`,
    {
      position: node._location.start,
      hint:
        `in the first part, cast the column to ${nameOf(from)}, or in the recursive part, to ` +
        nameOf(to),
    },
  );
}

/**
 * Returns the name of a type without its size. Sizes would only distract, because the types in the
 * message differ in more than size.
 */
function nameOf(type: DataType): string {
  if (type.kind === "array") return `${nameOf(type.element)}[]`;
  return isExactDecimal(type) ? "numeric" : typeName(type);
}
