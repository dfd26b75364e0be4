/** Assigns values to variables and to parts of variables, and stores rows in variables. */
import { DatabaseError } from "../../base/errors.ts";
import { type DataType, INT, type Row, TEXT, UNKNOWN_NULL } from "../../types/mod.ts";
import { withElement, withSlice } from "../functions/array_assign.ts";
import { withJsonPart } from "../functions/json/json_assign.ts";
import { askValue, type ProgramSteps, type RowsAnswer, type Typed } from "./asks.ts";
import { assigned, noField, type ProgramFrame, rowTyped } from "./frame.ts";
import type { IntoNode, TargetNode, TargetStep, ValuePiece } from "./tree.ts";

/** Assigns a value to a variable or to a part of a variable. */
export function* assignTo(
  target: TargetNode,
  given: Typed,
  frame: ProgramFrame,
): ProgramSteps<void> {
  const { slot, steps } = target;
  if (steps.length === 0) {
    frame.assign(slot, given);
    return;
  }
  const whole = frame.typed(slot);
  const value = yield* withPart(whole, { steps, given, name: frame.nameOf(slot) }, frame);
  if (frame.isRecord(slot)) frame.setRecord(slot, { type: whole.type, value: value.value });
  else frame.values[slot] = value.value;
}

interface PartGiven {
  readonly steps: readonly TargetStep[];
  readonly given: Typed;
  /** The name of the variable or field, for error messages. */
  readonly name: string;
}

/** Returns a copy of a value in which one field, element or slice has been replaced. */
function* withPart(
  { type, value }: Typed,
  { given, name, steps }: PartGiven,
  frame: ProgramFrame,
): ProgramSteps<Typed> {
  const [step, ...others] = steps;
  if (step === undefined) return { type, value: assigned(given, type) };
  if (step.kind === "field") {
    const at = type.kind === "row" ? type.fields.findIndex((each) => each.name === step.name) : -1;
    const field = type.kind === "row" ? type.fields[at] : undefined;
    if (field === undefined || type.kind !== "row") throw noField(name, step.name, type);
    const cells =
      value === null ? type.fields.map(() => null) : [...(value as { cells: Row }).cells];
    const before = { type: field.type, value: cells[at] ?? null };
    const part = { steps: others, given, name: `${name}.${step.name}` };
    cells[at] = (yield* withPart(before, part, frame)).value;
    return { type, value: { cells } };
  }
  if (type.kind === "json" && type.binary)
    return yield* withMember({ type, value }, { given, steps }, frame);
  if (type.kind !== "array") {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot assign to an element of "${name}": the variable is not an array`,
      { sqlstate: "42804" },
    );
  }
  return yield* withElements({ type, value }, { given, name, steps }, frame);
}

function* withMember(
  { type, value }: Typed,
  { given, steps }: Pick<PartGiven, "given" | "steps">,
  frame: ProgramFrame,
): ProgramSteps<Typed> {
  const path = [];
  for (const step of steps) {
    if (step.kind === "element") {
      const at = yield* askValue(step.at, frame);
      path.push(
        at.type.kind === "text" ? at.value : assigned(at, at.type.kind === "unknown" ? TEXT : INT),
      );
    }
  }
  return { type, value: withJsonPart(value, path, assigned(given, type)) };
}

function* withElements(
  { type, value }: Typed & { readonly type: Extract<DataType, { kind: "array" }> },
  { given, steps }: PartGiven,
  frame: ProgramFrame,
): ProgramSteps<Typed> {
  const isSlice = steps.some(({ kind }) => kind === "slice");
  if (!isSlice) {
    const at: Row[number][] = [];
    for (const step of steps) {
      if (step.kind === "element") at.push((yield* positionOf(step.at, frame)) ?? null);
    }
    return { type, value: withElement(value, at, assigned(given, type.element)) };
  }
  const bounds = [];
  for (const step of steps) {
    if (step.kind === "element")
      bounds.push({ from: 1, to: (yield* positionOf(step.at, frame)) ?? null });
    if (step.kind === "slice") {
      bounds.push({
        from: yield* positionOf(step.from, frame),
        to: yield* positionOf(step.to, frame),
      });
    }
  }
  return { type, value: withSlice(value, bounds, assigned(given, type)) };
}

/** Evaluates an array subscript; undefined if a slice leaves out this bound. */
function* positionOf(
  piece: ValuePiece | undefined,
  frame: ProgramFrame,
): ProgramSteps<Row[number] | undefined> {
  return piece === undefined ? undefined : assigned(yield* askValue(piece, frame), INT);
}

interface Stored {
  readonly answer: RowsAnswer;
  /** Whether a result of more than one row is an error. */
  readonly isSingle: boolean;
}

/** Stores the first row of a result in the target variables, or NULL if there is no row. */
export function* storeInto(
  { isStrict, targets }: IntoNode,
  { answer, isSingle }: Stored,
  frame: ProgramFrame,
): ProgramSteps<void> {
  const { columns, rows } = answer;
  if (columns === undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot use INTO: the statement does not return rows",
      { hint: "add RETURNING to a change", sqlstate: "42601" },
    );
  }
  if (isStrict && rows.length === 0) {
    throw new DatabaseError(
      "CARDINALITY_VIOLATION",
      "Cannot store a row INTO STRICT: the query returned none",
      {
        sqlstate: "P0002",
      },
    );
  }
  if (isSingle && rows.length > 1) {
    throw new DatabaseError(
      "CARDINALITY_VIOLATION",
      "Cannot store a single row: the query returned more than one",
      { hint: "make sure that the query returns a single row, or add LIMIT 1", sqlstate: "P0003" },
    );
  }
  yield* storeRow(targets, { columns, row: rows[0] }, frame);
}

/**
 * Stores a row in variables: the whole row in a single row variable, or its columns in several
 * variables.
 */
export function* storeRow(
  targets: readonly TargetNode[],
  { columns, row }: { columns: NonNullable<RowsAnswer["columns"]>; row: Row | undefined },
  frame: ProgramFrame,
): ProgramSteps<void> {
  const [only] = targets;
  if (only !== undefined && targets.length === 1 && only.steps.length === 0) {
    const { type } = frame.typed(only.slot);
    if (frame.isRecord(only.slot) || type.kind === "row") {
      const whole = rowTyped(columns, row ?? columns.map(() => null));
      // If there is no row, the variable gets a row with NULL in every field.
      frame.assign(only.slot, whole);
      return;
    }
  }
  for (const [i, target] of targets.entries()) {
    const type = columns[i]?.type ?? UNKNOWN_NULL;
    yield* assignTo(target, { type, value: row?.[i] ?? null }, frame);
  }
}
