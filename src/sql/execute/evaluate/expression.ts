/**
 * Compiles a bound expression into a function from a batch to a vector. All evaluation goes
 * through such functions.
 *
 * SELECT, DML, a subscription's snapshot and its live filter all run the code compiled here.
 * Numbers use the loops in `kernels/`; all other values are computed one by one with the function
 * chosen by the binder. Operands that may fail are evaluated only for rows that reach them
 * (`branches.ts`). For example, the right side of AND is evaluated if the left side is not false,
 * and a THEN is evaluated if its WHEN is true.
 */
import { assert, defined } from "../../../base/assert.ts";
import {
  type Batch,
  constVector,
  type DataType,
  type DictionaryVector,
  elementsOf,
  groupKeyMakerFor,
  groupKeyOf,
  isArrayValue,
  isNullAt,
  isTextType,
  mayHoldNan,
  physicalKind,
  type Selection,
  textsOf,
  typeOrder,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { BoundExpression, ExpressionOf } from "../../bind/bound_expressions.ts";
import { errorInCell } from "../../bind/cell_error.ts";
import { readsColumn } from "../../bind/walk.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { testLike } from "../kernels/like_bytes.ts";
import { compareNumbers, computeNumbers, rowsWhereTrue, scaleNumbers } from "../kernels/numeric.ts";
import {
  compareDictionary,
  compareText,
  type DictionaryMemo,
  negate,
  truthTest,
} from "../kernels/truth.ts";
import { type Compiling, compileCase, compileCoalesce, compileLogic } from "./branches.ts";
import { compileChecked } from "./checked_values.ts";
import { mapDistinct, mayHoldNull } from "./distinct_values.ts";
import { type BatchLayout, SINGLE_ROW } from "./layout.ts";
import { compileRowIn } from "./row_members.ts";

/**
 * Computes one value per row of a batch.
 *
 * @throws {DatabaseError} The errors raised when a row is evaluated.
 */
export type Evaluator = (batch: Batch, context: ExecutionContext) => Vector;

/** Compiles an expression for batches with a given layout. */
export function compileExpression(expression: BoundExpression, layout: BatchLayout): Evaluator {
  switch (expression.kind) {
    case "constant": {
      const value = expression.value;
      return (batch) => constVector(value, batch.rowCount);
    }
    case "slot": {
      const slot = expression.slot;
      return (batch, context) => constVector(context.slots[slot] ?? null, batch.rowCount);
    }
    case "column": {
      const position = defined(
        layout.get(expression.column.id),
        "expression compiler: column is missing from the layout",
      );
      return (batch) =>
        defined(
          batch.columns[position],
          "expression evaluation: batch lacks a column of its layout",
        );
    }
    case "cast":
      return compileCast(expression, layout);
    case "call":
      return compileCall(expression, layout);
    case "compare":
      return compileCompare(expression, layout);
    case "arithmetic":
      return compileArithmetic(expression, layout);
    case "and":
    case "or":
      return compileLogic(expression, compilingFor(layout));
    case "not": {
      const operand = compileExpression(expression.operand, layout);
      return (batch, context) => negate(operand(batch, context), batch.rowCount);
    }
    case "is": {
      const { test, negated } = expression;
      const operand = compileExpression(expression.operand, layout);
      return (batch, context) => truthTest(operand(batch, context), { test, negated });
    }
    case "case":
      return compileCase(expression, compilingFor(layout));
    case "coalesce":
      return compileCoalesce(expression, compilingFor(layout));
    case "in":
      return compileIn(expression, layout);
    case "row in":
      return compileRowIn(expression, compilingFor(layout));
    case "outer": {
      const { id } = expression;
      return (batch, context) => constVector(context.outer.get(id) ?? null, batch.rowCount);
    }
    case "subquery":
      return compileSubquery(expression, layout);
  }
}

function compilingFor(layout: BatchLayout): Compiling {
  return { layout, compile: (expression) => compileExpression(expression, layout) };
}

function compileCast(cast: ExpressionOf<"cast">, layout: BatchLayout): Evaluator {
  const { cell, isSameText = false, operand } = cast;
  const inner = compileExpression(operand, layout);
  const converted = isSameText ? inner : convertedBy(cast, inner);
  if (cell === undefined) return converted;
  return (batch, context) => {
    try {
      return converted(batch, context);
    } catch (error) {
      throw errorInCell(error, () => cell);
    }
  };
}

function convertedBy(
  { convert, factor, isNumericIdentity, type }: ExpressionOf<"cast">,
  inner: Evaluator,
): Evaluator {
  return (batch, context) => {
    const vector = inner(batch, context);
    if (vector.kind === "const") {
      const value = vector.value === null ? null : convert(vector.value);
      return constVector(value, vector.length);
    }
    const isNumbers = vector.kind === "i32" || vector.kind === "f64";
    if (isNumericIdentity && isNumbers) return vector;
    const scaled = factor === undefined || !isNumbers ? undefined : scaleNumbers(vector, factor);
    if (scaled !== undefined) return scaled;
    if (vector.kind === "dict") return convertedDictionary(vector, convert);
    const byValue = mapDistinct(vector, type, convert);
    if (byValue !== undefined) return byValue;
    const { effort } = context;
    const values: Value[] = Array.from({ length: vector.length });
    for (let row = 0; row < vector.length; row += 1) {
      const value = valueAt(vector, row);
      effort.noteRead(value);
      const converted = value === null ? null : convert(value);
      effort.note(converted);
      values[row] = converted;
    }
    return vectorFromValues(type, values);
  };
}

/**
 * Converts only the dictionary values that occur in rows. Converting any other value may fail, for
 * example if a condition has dropped its rows.
 */
function convertedDictionary(
  vector: DictionaryVector,
  convert: (value: Value) => Value,
): DictionaryVector {
  const { codes, length, nulls } = vector;
  const values: Value[] = vector.values.map(() => null);
  const isConverted = new Uint8Array(values.length);
  for (let row = 0; row < length; row += 1) {
    const code = codes[row] ?? 0;
    if (isConverted[code] === 1 || nulls?.[row] === 1) continue;
    isConverted[code] = 1;
    const value = vector.values[code] ?? null;
    values[code] = value === null ? null : convert(value);
  }
  return { ...vector, values };
}

function compileCall(expression: ExpressionOf<"call">, layout: BatchLayout): Evaluator {
  const { checks } = expression;
  if (checks !== undefined) {
    return compileChecked(expression.args, checks, { layout, compile: compileExpression });
  }
  const { evaluate, evaluateVector, like, seesNull, type, volatility } = expression;
  const args = expression.args.map((argument) => compileExpression(argument, layout));
  const values: Value[] = args.map(() => null);
  const isText = physicalKind(type) === "any";

  return (batch, context) => {
    const vectors = args.map((argument) => argument(batch, context));
    if (volatility !== "volatile" && vectors.every((vector) => vector.kind === "const")) {
      return constVector(sharedCall(vectors, context), batch.rowCount);
    }
    if (like !== undefined) {
      const tested = testLike(vectors, like);
      if (tested !== undefined) return tested;
    }
    const byValue = callByValue(vectors, context);
    if (byValue !== undefined) return byValue;
    // For a text result, each string is decoded separately: a substring of a shared string may be
    // stored for a long time, and would keep the text of the whole batch in memory.
    const read = isText ? vectors : vectors.map(decoded);
    const results: Value[] = Array.from({ length: batch.rowCount });
    const { effort } = context;
    for (let row = 0; row < batch.rowCount; row += 1) {
      const value = callAt(read, row, context);
      effort.note(value);
      results[row] = value;
    }
    return vectorFromValues(type, results);
  };

  /** Evaluates a call whose arguments are the same for all rows. */
  function sharedCall(vectors: readonly Vector[], context: ExecutionContext): Value {
    const value = callAt(vectors, 0, context);
    context.effort.note(value);
    return value;
  }

  /**
   * Evaluates a call in which all arguments but one are the same for all rows. The function is
   * called once per value of the remaining argument. Returns undefined if that is not possible.
   */
  function callByValue(vectors: readonly Vector[], context: ExecutionContext): Vector | undefined {
    if (seesNull || volatility === "volatile") return undefined;
    const position = vectors.findIndex(({ kind }) => kind !== "const");
    const vector = vectors[position];
    if (vector === undefined) return undefined;
    for (const [i, other] of vectors.entries()) {
      if (i === position) continue;
      if (other.kind !== "const" || other.value === null) return undefined;
      values[i] = other.value;
    }
    const all = evaluateVector?.(vector, values, position);
    if (all !== undefined) return all;
    const { effort } = context;
    return mapDistinct(vector, type, (value) => {
      values[position] = value;
      for (const each of values) effort.noteRead(each);
      const answer = evaluate(values, context.call);
      effort.note(answer);
      return answer;
    });
  }

  function callAt(vectors: readonly Vector[], row: number, context: ExecutionContext): Value {
    for (let i = 0; i < vectors.length; i += 1) {
      const value = valueAt(
        defined(vectors[i], "expression evaluation: function argument has no vector"),
        row,
      );
      if (value === null && !seesNull) return null;
      values[i] = value;
      context.effort.noteRead(value);
    }
    return evaluate(values, context.call);
  }
}

/** Decodes all text of a vector into strings at once. Any other vector is returned unchanged. */
function decoded(vector: Vector): Vector {
  if (vector.kind !== "utf8") return vector;
  return { kind: "any", length: vector.length, values: textsOf(vector) };
}

function compileCompare(expression: ExpressionOf<"compare">, layout: BatchLayout): Evaluator {
  const { operator, evaluate } = expression;
  // Only plain strings may be compared by their bytes. For example, JSON values are equal if their
  // canonical forms are equal.
  const isPlainText = isTextType(expression.left.type);
  const isDouble = typeOrder(expression.left.type) === "double";
  const left = compileExpression(expression.left, layout);
  const right = compileExpression(expression.right, layout);
  const values: Value[] = [null, null];
  const memo: DictionaryMemo = {
    values: undefined,
    constant: null,
    truths: [],
    table: undefined,
  };
  return (batch, context) => {
    const l = left(batch, context);
    const r = right(batch, context);
    const { rowCount } = batch;
    const areNumbers = !isDouble || !(mayHoldNan(l) || mayHoldNan(r));
    const fast = areNumbers ? compareNumbers({ operator, left: l, right: r }, rowCount) : undefined;
    if (fast !== undefined) return fast;
    const byCode = compareDictionary(l, r, compareValuesOf, memo);
    if (byCode !== undefined) return byCode;
    const byText = isPlainText ? compareText(operator, l, r) : undefined;
    if (byText !== undefined) return byText;
    const results: Value[] = Array.from({ length: rowCount });
    for (let row = 0; row < rowCount; row += 1) {
      results[row] = compareValuesOf(valueAt(l, row), valueAt(r, row));
    }
    return vectorFromValues(expression.type, results);

    function compareValuesOf(leftValue: Value, rightValue: Value): Value {
      if (leftValue === null || rightValue === null) return null;
      values[0] = leftValue;
      values[1] = rightValue;
      return evaluate(values, context.call);
    }
  };
}

function compileArithmetic(expression: ExpressionOf<"arithmetic">, layout: BatchLayout): Evaluator {
  const { operator, evaluate, magnitudeMax, type } = expression;
  const left = compileExpression(expression.left, layout);
  const right = compileExpression(expression.right, layout);
  const asInt32 = type.kind === "int" || type.kind === "smallint";
  const values: Value[] = [null, null];
  return (batch, context) => {
    const l = left(batch, context);
    const r = right(batch, context);
    const bothConstant = l.kind === "const" && r.kind === "const";
    if (!bothConstant) {
      const operation = { operator, left: l, right: r, magnitudeMax, asInt32 };
      const fast = computeNumbers(operation, batch.rowCount);
      if (fast !== undefined) return fast;
    }
    const rowCount = bothConstant ? 1 : batch.rowCount;
    const results: Value[] = Array.from({ length: rowCount });
    for (let row = 0; row < rowCount; row += 1) {
      values[0] = valueAt(l, row);
      values[1] = valueAt(r, row);
      results[row] =
        values[0] === null || values[1] === null ? null : evaluate(values, context.call);
    }
    if (bothConstant) return constVector(results[0] ?? null, batch.rowCount);
    return vectorFromValues(type, results);
  };
}

function compileSubquery(expression: ExpressionOf<"subquery">, layout: BatchLayout): Evaluator {
  const { subquery, type } = expression;
  const operands = expression.operands.map((operand) => compileExpression(operand, layout));
  const outerReferences = expression.outerReferences.map((reference) =>
    compileExpression(reference, layout),
  );
  return (batch, context) => {
    if (batch.rowCount === 0) return constVector(null, 0);
    const asked = operands.map((operand) => operand(batch, context));
    const outerValues = outerReferences.map((reference) => reference(batch, context));
    const answer = (from: readonly Vector[], rowCount: number): Value[] =>
      context.subqueries.valuesOf(subquery, { operands: from, outerValues, rowCount });
    const isSame = [...asked, ...outerValues].every(({ kind }) => kind === "const");
    if (isSame && !subquery.isVolatile)
      return constVector(answer(asked, 1)[0] ?? null, batch.rowCount);
    const [only] = asked;
    // NULL IN (…) is false for an empty list and NULL for any other list, so the result for NULL
    // may vary.
    if (only !== undefined && asked.length + outerValues.length === 1 && !mayHoldNull(only)) {
      const byValue = mapDistinct(
        only,
        type,
        (value) => answer([constVector(value, 1)], 1)[0] ?? null,
      );
      if (byValue !== undefined) return byValue;
    }
    return vectorFromValues(type, answer(asked, batch.rowCount));
  };
}

function compileIn(expression: ExpressionOf<"in">, layout: BatchLayout): Evaluator {
  const operand = compileExpression(expression.operand, layout);
  const items = expression.items.map((item) => compileExpression(item, layout));
  const list = expression.list && compileExpression(expression.list, layout);
  const isConstant = !expression.items.some(readsColumn);
  const operandType = expression.operand.type;
  const constants = membersOf(operandType, expression.constants);
  const membersOfContext = new WeakMap<ExecutionContext, ListMembers>();

  return (batch, context) => {
    const vector = operand(batch, context);
    let members = isConstant ? membersOfContext.get(context) : undefined;
    if (isConstant && members === undefined) {
      const vectors = items.map((item) => item(SINGLE_ROW, context));
      const listed = list === undefined ? [] : valueAt(list(SINGLE_ROW, context), 0);
      members = membersAt(operandType, vectors, { row: 0, constants });
      if (list !== undefined) members = membersWith(operandType, members, listed);
      membersOfContext.set(context, members);
    }
    if (list !== undefined && members?.keys.size === 0) {
      // An empty array has no elements, not even NULL.
      return constVector(members.hasNull ? null : expression.negated, batch.rowCount);
    }
    const fixed = members;
    if (fixed !== undefined) {
      const byValue = mapDistinct(vector, expression.type, (value) =>
        isMember(value, fixed, expression),
      );
      if (byValue !== undefined) return byValue;
    }
    const itemVectors = members === undefined ? items.map((item) => item(batch, context)) : [];
    const results: Value[] = Array.from({ length: batch.rowCount });
    for (let row = 0; row < batch.rowCount; row += 1) {
      const among = members ?? membersAt(operandType, itemVectors, { row, constants });
      results[row] = isMember(valueAt(vector, row), among, expression);
    }
    return vectorFromValues(expression.type, results);
  };
}

/** Returns the rows of a batch for which a condition is true. */
export function selectRows(condition: Vector, rowCount: number): Selection {
  assert(
    condition.length === rowCount,
    "expression evaluation: condition result count differs from the row count",
  );
  return rowsWhereTrue(condition, rowCount);
}

type MemberKey = string | number | bigint | boolean;

interface ListMembers {
  readonly keys: ReadonlySet<MemberKey>;
  readonly hasNull: boolean;
}

/** Returns the items of a list that are the same in every run. */
function membersOf(type: DataType, constants: readonly Value[]): ListMembers {
  const keyOf = groupKeyMakerFor(type);
  const keys = new Set<MemberKey>();
  let hasNull = false;
  for (const value of constants) {
    if (value === null) hasNull = true;
    else keys.add(keyOf === undefined ? (value as MemberKey) : keyOf(value));
  }
  return { keys, hasNull };
}

/** Adds the list items that are computed from a row to the constant items. */
function membersAt(
  type: DataType,
  vectors: readonly Vector[],
  { constants, row }: { row: number; constants: ListMembers },
): ListMembers {
  if (vectors.length === 0) return constants;
  const keys = new Set<MemberKey>(constants.keys);
  let { hasNull } = constants;
  for (const vector of vectors) {
    if (isNullAt(vector, row)) hasNull = true;
    else keys.add(groupKeyOf(type, valueAt(vector, row)));
  }
  return { keys, hasNull };
}

/**
 * Adds the elements of an array to the members of a list. A NULL array counts as a single NULL.
 */
function membersWith(type: DataType, members: ListMembers, array: Value): ListMembers {
  if (!isArrayValue(array)) return { ...members, hasNull: true };
  const listed = membersOf(type, elementsOf(array));
  const keys = new Set([...members.keys, ...listed.keys]);
  return { keys, hasNull: members.hasNull || listed.hasNull };
}

/** Returns whether a value is among the members of a list; NULL if that is unknown. */
function isMember(
  value: Value,
  { hasNull, keys }: ListMembers,
  { negated, operand }: { negated: boolean; operand: { readonly type: DataType } },
): Value {
  if (value === null) return null;
  if (keys.has(groupKeyOf(operand.type, value))) return !negated;
  return hasNull ? null : negated;
}
