/** Adds casts to expressions. */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type CastMode,
  castBetween,
  castValue,
  commonType,
  comparedTextType,
  comparedType,
  type DataType,
  DOUBLE,
  decimalOf,
  INTERVAL,
  type Interval,
  type IntervalLimit,
  intervalFromText,
  isInteger,
  isNumeric,
  isObjectName,
  isRangeType,
  limitedInterval,
  type ObjectNameType,
  OID,
  type RowField,
  sameType,
  TEXT,
  typeName,
  type Value,
} from "../../../types/mod.ts";
import { objectInText, objectWithName } from "../../functions/objects.ts";
import type { AstNode } from "../../parse/ast/ast.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import type { CellPlace } from "../cell_error.ts";
import { mayFail } from "../walk.ts";

export interface CastTarget {
  readonly to: DataType;
  readonly mode: CastMode;
  /** The syntax node at whose position errors are reported. */
  readonly node: AstNode | undefined;
}

/**
 * Returns the expression cast to another type.
 * @throws {DatabaseError} TYPE_MISMATCH
 */
export function castTo(
  expression: BoundExpression,
  { to, mode, node }: CastTarget,
): BoundExpression {
  const from = expression.type;
  if (sameType(from, to)) return expression;
  if (isObjectName(to)) {
    const found = castToObjectName(expression, { to, mode, node });
    if (found !== undefined) return found;
  }
  const row = castRowValues(expression, { to, mode, node });
  if (row !== undefined) return row;
  const cast = castBetween(from, to, mode);
  if (cast === undefined) {
    const hint = numberAsTimeHint(from, to);
    const details = node === undefined ? { hint } : { position: node._location.start, hint };
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot convert a value of type ${typeName(from)} to ${typeName(to)}`,
      details,
    );
  }
  if (expression.kind === "constant" && expression.value === null) {
    return { kind: "constant", type: to, value: null };
  }
  if (dependsOnNow(from, to)) return castWithNow(expression, { from, to, mode });
  const convert = cast === "same" ? undefined : cast;
  if (convert !== undefined && mode !== "assignment") noteLiteral(expression, convert);
  if (expression.kind === "constant") {
    const folded = tryConvert(expression.value, convert);
    if (folded !== undefined) return { kind: "constant", type: to, value: folded };
  }
  return {
    kind: "cast",
    type: to,
    operand: expression,
    convert: convert ?? sameValue,
    isNumericIdentity: convert === undefined || isNumericIdentity(from, to),
    factor: factorOf(from, to),
    isSameText: convert === undefined && from.kind === "text" && to.kind === "text",
  };
}

/**
 * Casts a name or an OID to a type such as REGCLASS, which looks the object up when the expression
 * is evaluated. Returns undefined for any other expression.
 */
function castToObjectName(
  operand: BoundExpression,
  { mode, node, to }: CastTarget & { readonly to: ObjectNameType },
): BoundExpression | undefined {
  const from = operand.type;
  if (operand.kind === "constant" && operand.value === null) {
    return { kind: "constant", type: to, value: null };
  }
  const isText = from.kind === "text";
  const isName = isText || from.kind === "unknown";
  const isRoutine = isObjectName(from) && isRoutineKind(from.kind) && isRoutineKind(to.kind);
  const isOid = from.kind === "oid" || isInteger(from) || isRoutine;
  if (!isName && !isOid) return undefined;
  if (isText && to.kind !== "regclass" && mode !== "explicit") return undefined;
  const given = isOid ? castTo(operand, { to: OID, mode, node }) : operand;
  const { kind } = to;
  return {
    kind: "call",
    type: to,
    name: `cast to ${kind}`,
    args: [given],
    evaluate: ([value = null], { objects }) => {
      if (value === null) return null;
      if (isOid) return objects.withOid(kind, value as string);
      // As in PostgreSQL, TEXT is read as a name by a cast to REGCLASS, and as a literal by a cast
      // to any other such type.
      return isText && kind === "regclass"
        ? objectWithName(kind, value as string, objects)
        : objectInText(kind, value as string, objects);
    },
    seesNull: false,
    volatility: "stable",
  };
}

function isRoutineKind(kind: string): boolean {
  return kind === "regproc" || kind === "regprocedure";
}

/**
 * Changes the collation of strings or string arrays. The values stay the same.
 *
 * @param type The type of the expression with the new collation.
 */
export function relabelled(expression: BoundExpression, type: DataType): BoundExpression {
  if (expression.type === type) return expression;
  if (expression.kind === "constant") return { kind: "constant", type, value: expression.value };
  return {
    kind: "cast",
    type,
    operand: expression,
    convert: sameValue,
    isNumericIdentity: true,
    isSameText: type.kind === "text",
  };
}

/**
 * Casts each value of ROW(…) separately, so that a literal is read as its field's type. Returns
 * undefined for any other expression.
 */
function castRowValues(
  expression: BoundExpression,
  { mode, node, to }: CastTarget,
): BoundExpression | undefined {
  if (to.kind !== "row" || expression.kind !== "call") return undefined;
  const { args, row } = expression;
  if (row === undefined || row.args !== args || args.length !== to.fields.length) return undefined;
  const values = row.values.map((value, at) =>
    castTo(value, { to: to.fields[at]?.type ?? value.type, mode, node }),
  );
  const source = { args: values, values };
  return { ...expression, type: to, name: rowCallName(to.fields), args: values, row: source };
}

/**
 * Returns the name of the call that constructs a row. It contains the field names, because row
 * types with the same value types but different field names are different types.
 */
export function rowCallName(fields: readonly RowField[]): string {
  return `row ${JSON.stringify(fields.map(({ name }) => name))}`;
}

/**
 * Casts a value to the type of a column. Errors raised while the value is computed name the
 * column.
 */
export function castInColumn(expression: BoundExpression, cell: CellPlace): BoundExpression {
  if (!mayFail(expression)) return expression;
  if (expression.kind === "cast") return { ...expression, cell };
  return {
    kind: "cast",
    type: expression.type,
    operand: expression,
    convert: sameValue,
    isNumericIdentity: true,
    isSameText: true,
    cell,
  };
}

/**
 * Adds an explicit cast to an interval type restricted to some fields, such as INTERVAL DAY TO
 * HOUR.
 *
 * @throws {DatabaseError} TYPE_MISMATCH
 */
export function castToInterval(
  expression: BoundExpression,
  { limit, node }: { limit: IntervalLimit; node: AstNode },
): BoundExpression {
  // In an interval literal, a number without a unit is taken as a value of the type's last field.
  // Any other string is first read as a plain interval.
  const isLiteral = expression.type.kind === "unknown";
  const operand = isLiteral
    ? expression
    : castTo(expression, { to: INTERVAL, mode: "explicit", node });
  const convert = (value: Value): Value =>
    isLiteral
      ? intervalFromText(value as string, limit)
      : limitedInterval(value as Interval, limit);
  noteLiteral(operand, convert);
  if (operand.kind === "constant") {
    const folded = operand.value === null ? null : tryConvert(operand.value, convert);
    if (folded !== undefined) return { kind: "constant", type: INTERVAL, value: folded };
  }
  return {
    kind: "cast",
    type: INTERVAL,
    operand,
    convert,
    isNumericIdentity: false,
    factor: undefined,
    isSameText: false,
  };
}

function sameValue(value: Value): Value {
  return value;
}

/**
 * Whether a cast depends on the current time. It does if it reads literals such as 'now' and
 * 'today', which refer to the time of the statement.
 */
function dependsOnNow(from: DataType, to: DataType): boolean {
  if (isRangeType(to)) return dependsOnNow(from, to.bound);
  if (from.kind !== "unknown" && from.kind !== "text") return false;
  return (
    to.kind === "timestamp" || to.kind === "datetime" || to.kind === "date" || to.kind === "time"
  );
}

function castWithNow(
  operand: BoundExpression,
  { from, to, mode }: { from: DataType; to: DataType; mode: CastMode },
): BoundExpression {
  if (mode !== "assignment") {
    noteLiteral(operand, (value) => castValue(value, { from, to, mode, nowMicros: 0 }));
  }
  return {
    kind: "call",
    type: to,
    name: `cast to ${typeName(to)}`,
    args: [operand],
    evaluate: ([value = null], { nowMicros }) =>
      value === null ? null : castValue(value, { from, to, mode, nowMicros }),
    seesNull: false,
    volatility: "immutable",
    readsTimeWords: true,
  };
}

/**
 * Schedules an untyped literal or parameter to be read before its statement runs, unless it is a
 * constant that can be read now. Assigned literals are converted together with their row instead,
 * so that the first faulty row determines the error.
 */
export function noteLiteral(literal: BoundExpression, read: (value: Value) => Value): void {
  if (literal.kind !== "constant" && literal.kind !== "slot") return;
  const { untyped } = literal;
  if (untyped === undefined) return;
  const { parameter, position, reads } = untyped;
  if (literal.kind === "slot") {
    const ofParameter = parameter === undefined ? {} : { parameter };
    reads.push({ slot: literal.slot, value: null, position, read, ...ofParameter });
  } else if (tryConvert(literal.value, read) === undefined) {
    reads.push({ slot: undefined, value: literal.value, position, read });
  }
}

/**
 * Converts a constant; undefined if the conversion fails. In that case, the constant keeps its
 * cast, which fails only when it is evaluated.
 */
function tryConvert(
  value: Value,
  convert: ((value: Value) => Value) | undefined,
): Value | undefined {
  if (convert === undefined || value === null) return value;
  try {
    return convert(value);
  } catch (error) {
    // Ignoring the error is safe: the cast raises the same error when the statement runs.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}

/**
 * Whether a cast only widens a number within the same representation, so that the stored double or
 * int32 does not change.
 */
function isNumericIdentity(from: DataType, to: DataType): boolean {
  if (isInteger(from)) {
    if (to.kind === "double") return from.kind !== "bigint";
    return isInteger(to) && widthOf(from) <= widthOf(to);
  }
  if (from.kind === "float") return to.kind === "double";
  if (from.kind === "decimal" && to.kind === "decimal") {
    return from.scale === to.scale && from.precision <= to.precision;
  }
  return false;
}

/**
 * Returns the factor by which a cast multiplies a number to add decimal places; undefined unless
 * all resulting values fit.
 */
function factorOf(from: DataType, to: DataType): number | undefined {
  if (to.kind !== "decimal" || (from.kind !== "decimal" && !isInteger(from))) return undefined;
  const { precision, scale } = decimalOf(from);
  const digits = to.scale - scale;
  if (digits < 0 || digits > FACTOR_DIGITS_MAX) return undefined;
  return precision - scale <= to.precision - to.scale ? 10 ** digits : undefined;
}

/**
 * Powers of ten up to this exponent are exact in doubles, and leave enough digits for the number
 * that they multiply.
 */
const FACTOR_DIGITS_MAX = 15;

function widthOf(type: DataType): number {
  return type.kind === "smallint" ? 1 : type.kind === "int" ? 2 : 3;
}

export interface CommonCast {
  readonly type: DataType;
  readonly expressions: BoundExpression[];
}

/**
 * Casts all expressions to their common type.
 *
 * @throws {DatabaseError} TYPE_MISMATCH if there is none.
 */
export function castToCommonType(
  expressions: readonly BoundExpression[],
  nodes: readonly AstNode[],
  what: string,
): CommonCast {
  const common = commonType(expressions.map(writtenType));
  return castAllTo(common && typedFields(common), { expressions, nodes, what });
}

/** Returns a type in which the fields that are untyped in all rows are text. */
function typedFields(type: DataType): DataType {
  if (type.kind === "unknown") return TEXT;
  if (type.kind !== "row") return type;
  const fields = type.fields.map((field) => ({ ...field, type: typedFields(field.type) }));
  return { ...type, fields };
}

/**
 * Returns the type of an expression. A field of ROW(…) that is an untyped literal has no type of
 * its own, so that it adopts the type of the field in another row.
 */
function writtenType(expression: BoundExpression): DataType {
  const { type } = expression;
  if (type.kind !== "row" || expression.kind !== "call") return type;
  const { args, row } = expression;
  if (row === undefined || row.args !== args) return type;
  const fields = type.fields.map((field, at): RowField => {
    return { ...field, type: row.values[at]?.type ?? field.type };
  });
  return { ...type, fields };
}

/**
 * Casts all expressions to the type in which they are compared. For example, a FLOAT and an
 * integer are compared as DOUBLE, which can represent both.
 *
 * @throws {DatabaseError} TYPE_MISMATCH if there is no such type.
 */
export function castToCompare(
  expressions: readonly BoundExpression[],
  nodes: readonly AstNode[],
  what: string,
): CommonCast {
  const common = comparedType(typesOf(expressions));
  const type = common === undefined ? undefined : comparedTextType(common, { isOrder: false });
  if (type?.kind !== "float" || !typesOf(expressions).some(isInteger)) {
    return castAllTo(type, { expressions, nodes, what });
  }
  // When compared with a FLOAT, an integer keeps its digits, whereas a DECIMAL becomes the nearest
  // FLOAT.
  const narrowed = expressions.map((expression, i) =>
    expression.type.kind === "decimal"
      ? castTo(expression, { to: type, mode: "implicit", node: nodes[i] })
      : expression,
  );
  return castAllTo(DOUBLE, { expressions: narrowed, nodes, what });
}

function typesOf(expressions: readonly BoundExpression[]): DataType[] {
  return expressions.map((expression) => expression.type);
}

function castAllTo(
  type: DataType | undefined,
  {
    expressions,
    nodes,
    what,
  }: {
    readonly expressions: readonly BoundExpression[];
    readonly nodes: readonly AstNode[];
    readonly what: string;
  },
): CommonCast {
  if (type === undefined) {
    const types = [...new Set(expressions.map((e) => typeName(e.type)))].join(" and ");
    const [node] = nodes;
    const hint =
      mixedTimesHint(typesOf(expressions)) ??
      "cast all of them to the same type, as in value::text";
    const details = node === undefined ? { hint } : { position: node._location.start, hint };
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot combine the types ${types} in ${what}`,
      details,
    );
  }
  const cast = expressions.map((expression, i) =>
    castTo(expression, { to: type, mode: "implicit", node: nodes[i] }),
  );
  return { type, expressions: cast };
}

const FORMS: Readonly<Partial<Record<DataType["kind"], string>>> = {
  timestamp:
    "send a string such as '2026-01-31T14:30:00Z', or call to_timestamp with a number of seconds",
  datetime:
    "send a string such as '2026-01-31T14:30:00Z', or call to_timestamp with a number of seconds",
  date: "send a string such as '2026-01-31'",
  time: "send a string such as '14:30:00'",
};

/**
 * Returns a hint for numbers mixed with dates or times, which have no common type. Numbers cannot
 * be cast to dates or times, because their unit would have to be guessed. The hint shows what is
 * accepted instead.
 */
function mixedTimesHint(types: readonly DataType[]): string | undefined {
  const number = types.find(isNumeric);
  const time = types.find(({ kind }) => FORMS[kind] !== undefined);
  return number === undefined || time === undefined ? undefined : FORMS[time.kind];
}

/** Returns the hint for a number used as a date or time; undefined for other types. */
export function numberAsTimeHint(number: DataType, time: DataType): string | undefined {
  return isNumeric(number) ? FORMS[time.kind] : undefined;
}
