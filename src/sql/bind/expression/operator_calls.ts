/**
 * Binds calls to the functions that implement operators: `jsonb_exists(doc, 'a')` is `doc ? 'a'`,
 * and `int4pl(a, b)` is `a + b`. Applications call these functions if their driver would mistake
 * `?` for a placeholder.
 */
import type { BinaryOperator, Expr, ExprCall } from "../../parse/ast/ast.ts";

/**
 * An operator, and the types to which its operands are cast. An operand whose type is undefined
 * here keeps its own type.
 */
interface OperatorCall {
  readonly op: BinaryOperator;
  readonly types: readonly [left: string | undefined, right: string | undefined];
}

/**
 * Returns the operator expression that is equivalent to a call; undefined if the function
 * implements no operator.
 */
export function operatorOfCall(call: ExprCall): Expr | undefined {
  const [left, right] = call.args;
  const found = call.args.length === 2 ? NAMED.get(call.function.name) : undefined;
  if (found === undefined || left === undefined || right === undefined) return undefined;
  const { _location } = call;
  const [leftType, rightType] = found.types;
  return {
    type: "binary",
    op: found.op,
    left: castOf(left, leftType),
    right: castOf(right, rightType),
    _location,
  };
}

function castOf(operand: Expr, name: string | undefined): Expr {
  const { _location } = operand;
  return name === undefined
    ? operand
    : { type: "cast", operand, to: { name, _location }, _location };
}

const OF_DOCUMENTS: readonly (readonly [name: string, op: BinaryOperator, right: string])[] = [
  ["jsonb_contains", "@>", "jsonb"],
  ["jsonb_contained", "<@", "jsonb"],
  ["jsonb_exists", "?", "text"],
  ["jsonb_concat", "||", "jsonb"],
];

/** The operators whose meaning depends on the type of the right operand. */
const OF_ARRAYS: readonly (readonly [name: string, op: BinaryOperator, left?: string])[] = [
  ["jsonb_exists_any", "?|", "jsonb"],
  ["jsonb_exists_all", "?&", "jsonb"],
  ["jsonb_delete", "-", "jsonb"],
  ["jsonb_delete_path", "#-", "jsonb"],
  ["arraycontains", "@>"],
  ["arraycontained", "<@"],
  ["arrayoverlap", "&&"],
];

const COMPARISONS: readonly (readonly [suffix: string, op: BinaryOperator])[] = [
  ["eq", "="],
  ["ne", "!="],
  ["lt", "<"],
  ["le", "<="],
  ["gt", ">"],
  ["ge", ">="],
];

const ARITHMETIC: readonly (readonly [suffix: string, op: BinaryOperator])[] = [
  ["pl", "+"],
  ["mi", "-"],
  ["mul", "*"],
  ["div", "/"],
];

const NUMERIC_ARITHMETIC: readonly (readonly [suffix: string, op: BinaryOperator])[] = [
  ["add", "+"],
  ["sub", "-"],
  ["mul", "*"],
  ["div", "/"],
  ["mod", "%"],
];

const OF_RANGES: readonly (readonly [suffix: string, op: BinaryOperator])[] = [
  ["adjacent", "-|-"],
  ["after", ">>"],
  ["before", "<<"],
  ["contained_by", "<@"],
  ["contains", "@>"],
  ["overlaps", "&&"],
  ["overleft", "&<"],
  ["overright", "&>"],
];

const OF_ONE_KIND_OF_RANGE: readonly (readonly [suffix: string, op: BinaryOperator])[] = [
  ["union", "+"],
  ["minus", "-"],
  ["intersect", "*"],
  ["contains_elem", "@>"],
  ...COMPARISONS,
];

/**
 * Yields the functions that implement operators on ranges and multiranges, such as
 * `range_overlaps`.
 */
function* rangeCalls(): Generator<readonly [name: string, op: BinaryOperator], void> {
  for (const kind of ["range", "multirange"]) {
    yield [`elem_contained_by_${kind}`, "<@"];
    for (const [suffix, op] of OF_ONE_KIND_OF_RANGE) yield [`${kind}_${suffix}`, op];
  }
  for (const [suffix, op] of OF_RANGES) {
    yield [`range_${suffix}`, op];
    yield [`range_${suffix}_multirange`, op];
    yield [`multirange_${suffix}_range`, op];
    yield [`multirange_${suffix}_multirange`, op];
  }
}

const NAMED: ReadonlyMap<string, OperatorCall> = new Map<string, OperatorCall>([
  ...OF_DOCUMENTS.map(([name, op, right]) => [name, { op, types: ["jsonb", right] }] as const),
  ...Array.from(
    rangeCalls(),
    ([name, op]) => [name, { op, types: [undefined, undefined] }] as const,
  ),
  ...OF_ARRAYS.map(([name, op, left]) => [name, { op, types: [left, undefined] }] as const),
  ...["bool", "int2", "int4", "int8", "float4", "float8", "text"].flatMap((type) =>
    COMPARISONS.map(([suffix, op]) => [`${type}${suffix}`, { op, types: [type, type] }] as const),
  ),
  ...["numeric", "date", "timestamp", "timestamptz", "interval", "uuid", "jsonb"].flatMap((type) =>
    COMPARISONS.map(([suffix, op]) => [`${type}_${suffix}`, { op, types: [type, type] }] as const),
  ),
  ...NUMERIC_ARITHMETIC.map(
    ([suffix, op]) => [`numeric_${suffix}`, { op, types: ["numeric", "numeric"] }] as const,
  ),
  ["textcat", { op: "||", types: ["text", "text"] }],
  ...["int2", "int4", "int8", "float4", "float8"].flatMap((type) =>
    ARITHMETIC.map(([suffix, op]) => [`${type}${suffix}`, { op, types: [type, type] }] as const),
  ),
]);
