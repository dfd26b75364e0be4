/**
 * Stores the rows that a subquery returned for a set of outer values, and computes the value of
 * its expression.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import {
  type Batch,
  type DataType,
  gatheredArray,
  groupKeyOf,
  haveSameGroupKey,
  type Row,
  type Value,
  valueAt,
} from "../../../types/mod.ts";
import type { BoundSubquery, SubqueryForm } from "../../bind/bound_expressions.ts";
import type { CallDeps } from "../../functions/base/function.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { bytesOf, type MemoryBudget } from "../materialised/memory_budget.ts";

type QuantifiedForm = Extract<SubqueryForm, { kind: "any" | "all" }>;

/** The memory, in bytes, that a subquery result takes up in addition to its values. */
const ANSWER_BYTES = 96;

/**
 * Returns the number of rows that suffice to determine the value of a subquery. Further rows need
 * not be read.
 */
function rowsWanted({ kind }: SubqueryForm): number {
  switch (kind) {
    case "exists":
      return 1;
    case "scalar":
      // A second row is read only to report that the subquery returns more than one row.
      return 2;
    default:
      return Number.POSITIVE_INFINITY;
  }
}

export class SubqueryAnswer {
  readonly #form: SubqueryForm;
  readonly #rows: Row[] = [];
  #rowCount = 0;
  #members: AnswerMembers | undefined;

  constructor(form: SubqueryForm, memory: MemoryBudget) {
    this.#form = form;
    memory.take(ANSWER_BYTES);
  }

  get isDecided(): boolean {
    return this.#rowCount >= rowsWanted(this.#form);
  }

  /**
   * Adds a row to the result.
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  add(row: Row, memory: MemoryBudget): void {
    this.#rowCount += 1;
    if (this.#form.kind === "exists") return;
    let bytes = 16;
    for (const value of row) bytes += bytesOf(value);
    memory.take(bytes);
    this.#rows.push(row);
  }

  #values(): Value[] {
    return this.#rows.map(([value = null]) => value);
  }

  /**
   * Returns the value of the subquery expression for the given operands.
   * @throws {DatabaseError} CARDINALITY_VIOLATION, and the errors of a comparison.
   */
  valueFor(operands: readonly Value[], { position }: BoundSubquery, call: CallDeps): Value {
    const form = this.#form;
    switch (form.kind) {
      case "exists":
        return this.#rowCount > 0;
      case "array":
        return form.ofArrays ? gatheredArray(this.#values()) : this.#values();
      case "scalar":
        if (this.#rowCount <= 1) return this.#rows[0]?.[0] ?? null;
        throw new DatabaseError(
          "CARDINALITY_VIOLATION",
          "Cannot use a subquery as a value: it returns more than one row",
          { position, hint: "add LIMIT 1, or use an aggregate function" },
        );
      default:
        return this.#quantified(form, operands, call);
    }
  }

  #quantified(form: QuantifiedForm, operands: readonly Value[], call: CallDeps): Value {
    const { kind, operator } = form;
    if (kind === "any" && operator === "=") return this.#isMember(form, operands);
    if (kind === "all" && operator === "<>") {
      const isMember = this.#isMember(form, operands);
      return isMember === null ? null : !isMember;
    }
    const settles = kind === "any";
    let hasUnknown = false;
    for (const row of this.#rows) {
      const answer = compared(form, { operands, row, call });
      if (answer === settles) return settles;
      if (answer === null) hasUnknown = true;
    }
    return hasUnknown ? null : !settles;
  }

  #isMember({ types }: QuantifiedForm, operands: readonly Value[]): boolean | null {
    if (this.#rows.length === 0) return false;
    this.#members ??= membersOf(this.#rows, types);
    const { keys, withNull } = this.#members;
    const hasNull = operands.includes(null);
    if (!hasNull && keys.has(keyOf(operands, types))) return true;
    if (operands.length === 1) return hasNull || withNull.length > 0 ? null : false;
    // Two rows may be equal if, in each pair of values, the values are equal or one of them is
    // NULL.
    const candidates = hasNull ? this.#rows : withNull;
    return candidates.some((row) => mayEqual(row, operands, types)) ? null : false;
  }
}

interface Pairs {
  readonly operands: readonly Value[];
  readonly row: Row;
  readonly call: CallDeps;
}

/**
 * Compares two rows lexicographically. The first unequal pair of values decides; if an earlier
 * pair contains NULL, the result is unknown.
 */
function ordered({ evaluates, types }: QuantifiedForm, { call, operands, row }: Pairs): Value {
  let last: Value = null;
  for (const [i, type] of types.entries()) {
    const left = operands[i] ?? null;
    const right = row[i] ?? null;
    if (left === null || right === null) return null;
    last = evaluates[i]?.([left, right], call) ?? null;
    if (!haveSameGroupKey(type, left, right)) return last;
  }
  return last;
}

/**
 * Compares two rows, either lexicographically, or pair by pair with the results combined by AND or
 * OR.
 */
function compared(form: QuantifiedForm, pairs: Pairs): Value {
  const { evaluates, operator } = form;
  const { call, operands, row } = pairs;
  const isOrdered = operator !== "=" && operator !== "<>";
  if (isOrdered && operands.length > 1) return ordered(form, pairs);
  const settles = operator === "<>";
  let hasUnknown = false;
  for (const [i, operand] of operands.entries()) {
    const value = row[i] ?? null;
    const answer =
      operand === null || value === null ? null : evaluates[i]?.([operand, value], call);
    if (answer === settles) return settles;
    if (answer === null) hasUnknown = true;
  }
  return hasUnknown ? null : !settles;
}

interface AnswerMembers {
  /** The keys of the subquery's rows, except for rows that contain NULL. */
  readonly keys: ReadonlySet<string | number | bigint | boolean>;
  readonly withNull: readonly Row[];
}

function membersOf(rows: readonly Row[], types: readonly DataType[]): AnswerMembers {
  const keys = new Set<string | number | bigint | boolean>();
  const withNull: Row[] = [];
  for (const row of rows) {
    if (row.includes(null)) withNull.push(row);
    else keys.add(keyOf(row, types));
  }
  return { keys, withNull };
}

/** Returns the key of a row that contains no NULL. */
function keyOf(
  values: readonly Value[],
  types: readonly DataType[],
): string | number | bigint | boolean {
  const [first = null] = values;
  const [type] = types;
  if (types.length === 1 && type !== undefined && first !== null) return groupKeyOf(type, first);
  return keyTextOf(types, values);
}

function mayEqual(row: Row, operands: readonly Value[], types: readonly DataType[]): boolean {
  return types.every((type, i) => {
    const left = operands[i] ?? null;
    const right = row[i] ?? null;
    if (left === null || right === null) return true;
    return haveSameGroupKey(type, left, right);
  });
}

/**
 * Returns the values of a row in the columns that the query yields. These columns come first in
 * the batch.
 */
export function rowOf({ columns }: Batch, row: number, columnCount: number): Row {
  const values: Value[] = [];
  for (let i = 0; i < columnCount; i += 1) {
    values.push(valueAt(defined(columns[i], "subquery: result lacks an expected column"), row));
  }
  return values;
}
