/**
 * The one evaluator: turns a bound expression into a function from a batch to a vector.
 *
 * SELECT, DML, the snapshot of a subscription and its live filter all run what is compiled here.
 * Numbers go through the loops of `kernels/`; whatever has no loop is computed value by value with
 * the function that the binder chose. Operands that can fail are evaluated only on rows that reach
 * them (`branches.ts`): the right side of AND where the left is not false, the THEN of a CASE where
 * its WHEN holds.
 */
import { assert, defined } from "../../../base/assert.ts";
import {
  type Batch,
  constVector,
  isTextType,
  physicalKind,
  type Selection,
  textsOf,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { BoundExpression } from "../../bind/bound_expressions.ts";
import { errorInCell } from "../../bind/cell_error.ts";
import { readsColumn } from "../../bind/walk.ts";
import { testLike } from "../kernels/like_bytes.ts";
import { compareNumbers, computeNumbers, rowsWhereTrue, scaleNumbers } from "../kernels/numeric.ts";
import {
  compareDictionary,
  compareText,
  type DictionaryMemo,
  negate,
  truthTest,
} from "../kernels/truth.ts";
import type { Run } from "../run/run.ts";
import { type Compiling, compileCase, compileCoalesce, compileLogic } from "./branches.ts";
import { mapDistinct, mayHoldNull } from "./distinct_values.ts";
import { type Layout, SINGLE_ROW } from "./layout.ts";
import { isMember, type Members, membersAt, membersOf, membersWith } from "./members.ts";
import { compileRowIn } from "./row_members.ts";

/** Computes one value for each row of a batch. @throws {DatabaseError} What a row raises. */
export type Evaluator = (batch: Batch, run: Run) => Vector;

/** Compiles an expression for batches of one layout. */
export function compileExpression(expression: BoundExpression, layout: Layout): Evaluator {
  switch (expression.kind) {
    case "constant": {
      const value = expression.value;
      return (batch) => constVector(value, batch.rowCount);
    }
    case "slot": {
      const slot = expression.slot;
      return (batch, run) => constVector(run.slots[slot] ?? null, batch.rowCount);
    }
    case "column": {
      const position = defined(layout.get(expression.column.id), "a column is in its layout");
      return (batch) => defined(batch.columns[position], "a batch has its columns");
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
      return (batch, run) => negate(operand(batch, run), batch.rowCount);
    }
    case "is": {
      const { test, negated } = expression;
      const operand = compileExpression(expression.operand, layout);
      return (batch, run) => truthTest(operand(batch, run), { test, negated });
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
      return (batch, run) => constVector(run.outer.get(id) ?? null, batch.rowCount);
    }
    case "subquery":
      return compileSubquery(expression, layout);
  }
}

function compilingFor(layout: Layout): Compiling {
  return { layout, compile: (expression) => compileExpression(expression, layout) };
}

type Of<Kind extends BoundExpression["kind"]> = Extract<BoundExpression, { kind: Kind }>;

function compileCast(cast: Of<"cast">, layout: Layout): Evaluator {
  const { cell, isSameText = false, operand } = cast;
  const inner = compileExpression(operand, layout);
  const converted = isSameText ? inner : convertedBy(cast, inner);
  if (cell === undefined) return converted;
  return (batch, run) => {
    try {
      return converted(batch, run);
    } catch (error) {
      throw errorInCell(error, () => cell);
    }
  };
}

function convertedBy(
  { convert, factor, isNumericIdentity, type }: Of<"cast">,
  inner: Evaluator,
): Evaluator {
  return (batch, run) => {
    const vector = inner(batch, run);
    if (vector.kind === "const") {
      const value = vector.value === null ? null : convert(vector.value);
      return constVector(value, vector.length);
    }
    const isNumbers = vector.kind === "i32" || vector.kind === "f64";
    if (isNumericIdentity && isNumbers) return vector;
    const scaled = factor === undefined || !isNumbers ? undefined : scaleNumbers(vector, factor);
    if (scaled !== undefined) return scaled;
    if (vector.kind === "dict") {
      const values = vector.values.map((value) => (value === null ? null : convert(value)));
      return { ...vector, values };
    }
    const byValue = mapDistinct(vector, type, convert);
    if (byValue !== undefined) return byValue;
    const { effort } = run;
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

function compileCall(expression: Of<"call">, layout: Layout): Evaluator {
  const { evaluate, evaluateVector, like, seesNull, type, volatility } = expression;
  const args = expression.args.map((argument) => compileExpression(argument, layout));
  const values: Value[] = args.map(() => null);
  const isText = physicalKind(type) === "any";

  return (batch, run) => {
    const vectors = args.map((argument) => argument(batch, run));
    if (volatility !== "volatile" && vectors.every((vector) => vector.kind === "const")) {
      return constVector(sharedCall(vectors, run), batch.rowCount);
    }
    if (like !== undefined) {
      const tested = testLike(vectors, like);
      if (tested !== undefined) return tested;
    }
    const byValue = callByValue(vectors, run);
    if (byValue !== undefined) return byValue;
    // Strings that a text is cut from may be kept for long, and would keep all of the batch.
    const read = isText ? vectors : vectors.map(decoded);
    const results: Value[] = Array.from({ length: batch.rowCount });
    const { effort } = run;
    for (let row = 0; row < batch.rowCount; row += 1) {
      const value = callAt(read, row, run);
      effort.note(value);
      results[row] = value;
    }
    return vectorFromValues(type, results);
  };

  /** Of arguments that are the same for all rows. */
  function sharedCall(vectors: readonly Vector[], run: Run): Value {
    const value = callAt(vectors, 0, run);
    run.effort.note(value);
    return value;
  }

  /** Once for each value of the one argument that is not the same for all rows. */
  function callByValue(vectors: readonly Vector[], run: Run): Vector | undefined {
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
    const { effort } = run;
    return mapDistinct(vector, type, (value) => {
      values[position] = value;
      for (const each of values) effort.noteRead(each);
      const answer = evaluate(values, run.call);
      effort.note(answer);
      return answer;
    });
  }

  function callAt(vectors: readonly Vector[], row: number, run: Run): Value {
    for (let i = 0; i < vectors.length; i += 1) {
      const value = valueAt(defined(vectors[i], "an argument has its vector"), row);
      if (value === null && !seesNull) return null;
      values[i] = value;
      run.effort.noteRead(value);
    }
    return evaluate(values, run.call);
  }
}

/** Text as strings, all at once. */
function decoded(vector: Vector): Vector {
  if (vector.kind !== "utf8") return vector;
  return { kind: "any", length: vector.length, values: textsOf(vector) };
}

function compileCompare(expression: Of<"compare">, layout: Layout): Evaluator {
  const { operator, evaluate } = expression;
  // Other types are equal by more than their text: JSON by its canonical form, for one.
  const isPlainText = isTextType(expression.left.type);
  const left = compileExpression(expression.left, layout);
  const right = compileExpression(expression.right, layout);
  const values: Value[] = [null, null];
  const memo: DictionaryMemo = { values: undefined, constant: null, truths: [] };
  return (batch, run) => {
    const l = left(batch, run);
    const r = right(batch, run);
    const { rowCount } = batch;
    const fast = compareNumbers({ operator, left: l, right: r }, rowCount);
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
      return evaluate(values, run.call);
    }
  };
}

function compileArithmetic(expression: Of<"arithmetic">, layout: Layout): Evaluator {
  const { operator, evaluate, magnitudeMax, type } = expression;
  const left = compileExpression(expression.left, layout);
  const right = compileExpression(expression.right, layout);
  const asInt32 = type.kind === "int" || type.kind === "smallint";
  const values: Value[] = [null, null];
  return (batch, run) => {
    const l = left(batch, run);
    const r = right(batch, run);
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
      results[row] = values[0] === null || values[1] === null ? null : evaluate(values, run.call);
    }
    if (bothConstant) return constVector(results[0] ?? null, batch.rowCount);
    return vectorFromValues(type, results);
  };
}

function compileSubquery(expression: Of<"subquery">, layout: Layout): Evaluator {
  const { subquery, type } = expression;
  const operands = expression.operands.map((operand) => compileExpression(operand, layout));
  const captures = expression.captures.map((capture) => compileExpression(capture, layout));
  return (batch, run) => {
    if (batch.rowCount === 0) return constVector(null, 0);
    const asked = operands.map((operand) => operand(batch, run));
    const captured = captures.map((capture) => capture(batch, run));
    const answer = (from: readonly Vector[], rowCount: number): Value[] =>
      run.subqueries.valuesOf(subquery, { operands: from, captured, rowCount });
    const isSame = [...asked, ...captured].every(({ kind }) => kind === "const");
    if (isSame && !subquery.isVolatile)
      return constVector(answer(asked, 1)[0] ?? null, batch.rowCount);
    const [only] = asked;
    // NULL is in no empty set, and may be in any other: it has no answer of its own.
    if (only !== undefined && asked.length + captured.length === 1 && !mayHoldNull(only)) {
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

function compileIn(expression: Of<"in">, layout: Layout): Evaluator {
  const operand = compileExpression(expression.operand, layout);
  const items = expression.items.map((item) => compileExpression(item, layout));
  const list = expression.list && compileExpression(expression.list, layout);
  const isConstant = !expression.items.some(readsColumn);
  const operandType = expression.operand.type;
  const constants = membersOf(operandType, expression.constants);
  const membersOfRun = new WeakMap<Run, Members>();

  return (batch, run) => {
    const vector = operand(batch, run);
    let members = isConstant ? membersOfRun.get(run) : undefined;
    if (isConstant && members === undefined) {
      const vectors = items.map((item) => item(SINGLE_ROW, run));
      const listed = list === undefined ? [] : valueAt(list(SINGLE_ROW, run), 0);
      members = membersAt(operandType, vectors, { row: 0, constants });
      if (list !== undefined) members = membersWith(operandType, members, listed);
      membersOfRun.set(run, members);
    }
    if (list !== undefined && members?.keys.size === 0) {
      // Nothing is in an empty array, not even NULL.
      return constVector(members.hasNull ? null : expression.negated, batch.rowCount);
    }
    const fixed = members;
    if (fixed !== undefined) {
      const byValue = mapDistinct(vector, expression.type, (value) =>
        isMember(value, fixed, expression),
      );
      if (byValue !== undefined) return byValue;
    }
    const itemVectors = members === undefined ? items.map((item) => item(batch, run)) : [];
    const results: Value[] = Array.from({ length: batch.rowCount });
    for (let row = 0; row < batch.rowCount; row += 1) {
      const among = members ?? membersAt(operandType, itemVectors, { row, constants });
      results[row] = isMember(valueAt(vector, row), among, expression);
    }
    return vectorFromValues(expression.type, results);
  };
}

/** The rows of a batch on which a condition is true. */
export function selectRows(condition: Vector, rowCount: number): Selection {
  assert(condition.length === rowCount, "a condition has a truth value for each row");
  return rowsWhereTrue(condition, rowCount);
}
