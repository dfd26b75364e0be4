/**
 * Runs loops. Before each iteration, a loop lets other work run, and stops if its request has to
 * end.
 */
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  dimensionsOf,
  INT,
  isArrayValue,
  type Row,
  type RowValue,
  typeName,
  type Value,
} from "../../types/mod.ts";
import { askSource, isTrue } from "./asked.ts";
import { askValue, type ProgramSteps, type RowsAnswer, type Typed } from "./asks.ts";
import { assignTo, storeRow } from "./assignments.ts";
import { assigned, type ProgramFrame } from "./frame.ts";
import type { ListOutcome, ProgramRun } from "./run.ts";
import type {
  ForeachNode,
  IntegerLoopNode,
  LoopNode,
  RowLoopNode,
  StatementNode,
  ValuePiece,
} from "./tree.ts";

interface LoopBody {
  readonly label: string | undefined;
  readonly statements: readonly StatementNode[];
}

/** States whether a loop is over after an iteration and, if so, how it ended. */
type LoopStep =
  | { readonly isOver: false }
  | { readonly isOver: true; readonly outcome: ListOutcome };

const ON: LoopStep = { isOver: false };

function* runStep({ label, statements }: LoopBody, run: ProgramRun): ProgramSteps<LoopStep> {
  yield { kind: "pause" };
  const outcome = yield* run.runStatements(statements, run);
  if (outcome === undefined) return ON;
  if (outcome.kind === "return") return { isOver: true, outcome };
  const isOwn = outcome.label === undefined || outcome.label === label;
  if (!isOwn) return { isOver: true, outcome };
  return outcome.isContinue ? ON : { isOver: true, outcome: undefined };
}

export function* runLoop(node: LoopNode, run: ProgramRun): ProgramSteps<ListOutcome> {
  const { condition } = node;
  for (;;) {
    if (condition !== undefined && !(yield* isTrue(condition, run.frame))) return undefined;
    const step = yield* runStep(node, run);
    if (step.isOver) return step.outcome;
  }
}

export function* runIntegerLoop(node: IntegerLoopNode, run: ProgramRun): ProgramSteps<ListOutcome> {
  const { frame } = run;
  const from = yield* bound(node.from, "lower", frame);
  const to = yield* bound(node.to, "upper", frame);
  const by = node.by === undefined ? 1 : yield* bound(node.by, "BY", frame);
  if (by <= 0) {
    throw new DatabaseError("INVALID_VALUE", "Cannot run the loop: BY must be greater than 0", {
      sqlstate: "22023",
    });
  }
  const step = node.isReverse ? -by : by;
  let isEntered = false;
  for (let at = from; node.isReverse ? at >= to : at <= to; at += step) {
    isEntered = true;
    frame.values[node.slot] = at;
    const result = yield* runStep(node, run);
    if (result.isOver) {
      frame.found = true;
      return result.outcome;
    }
  }
  frame.found = isEntered;
  return undefined;
}

function* bound(piece: ValuePiece, name: string, frame: ProgramFrame): ProgramSteps<number> {
  const value = assigned(yield* askValue(piece, frame), INT);
  if (value !== null) return Number(value);
  throw new DatabaseError("INVALID_VALUE", `Cannot run the loop: its ${name} bound is NULL`, {
    sqlstate: "22004",
  });
}

export function* runRowLoop(node: RowLoopNode, run: ProgramRun): ProgramSteps<ListOutcome> {
  if (node.source.kind === "cursor") return yield* runCursorLoop(node, node.source.slot, run);
  return yield* runLoopOver(node, yield* askSource(node.source, run), run);
}

/** Runs a loop over the rows of a bound cursor, which is open while the loop runs. */
function* runCursorLoop(
  node: RowLoopNode,
  slot: number,
  run: ProgramRun,
): ProgramSteps<ListOutcome> {
  const { cursors, frame } = run;
  const answer = yield* askSource(node.source, run);
  const { columns = [], keyed, rows } = answer;
  const given = frame.values[slot] ?? null;
  const name = typeof given === "string" ? given : cursors.newName();
  const cursor = { columns, rows, keyed, isForward: false, position: 0 };
  cursors.open(name, cursor);
  frame.values[slot] = name;
  try {
    return yield* runLoopOver(node, answer, run, () => {
      cursor.position += 1;
    });
  } finally {
    if (cursors.has(name)) cursors.close(name);
    frame.values[slot] = given;
  }
}

/** @param onRow Called before the loop runs for a row. */
function* runLoopOver(
  node: RowLoopNode,
  { columns = [], rows }: RowsAnswer,
  run: ProgramRun,
  onRow?: () => void,
): ProgramSteps<ListOutcome> {
  const { frame } = run;
  for (const row of rows) {
    onRow?.();
    yield* storeRow(node.targets, { columns, row }, frame);
    const step = yield* runStep(node, run);
    if (step.isOver) {
      frame.found = true;
      return step.outcome;
    }
  }
  if (rows.length === 0) yield* storeRow(node.targets, { columns, row: undefined }, frame);
  frame.found = rows.length > 0;
  return undefined;
}

export function* runForeach(node: ForeachNode, run: ProgramRun): ProgramSteps<ListOutcome> {
  const { frame } = run;
  const { type, value } = yield* askValue(node.array, frame);
  if (value === null) {
    throw new DatabaseError("INVALID_VALUE", "Cannot run FOREACH: the array is NULL", {
      sqlstate: "22004",
    });
  }
  if (type.kind !== "array" || !isArrayValue(value)) {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot run FOREACH over a value of type ${typeName(type)}: it loops only over arrays`,
      { sqlstate: "42804" },
    );
  }
  const depth = dimensionsOf(value).length;
  if (node.slice > depth) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot run FOREACH with SLICE ${node.slice}: the array has only ` +
        counted(depth, "dimension"),
      { sqlstate: "2202E" },
    );
  }
  const isSliced = node.slice > 0;
  const [only, ...others] = node.targets;
  if (only !== undefined && only.steps.length === 0 && !frame.isRecord(only.slot)) {
    requireArrayTarget(frame.typed(only.slot).type.kind === "array", isSliced);
  }
  let isEntered = false;
  for (const part of partsOf(value, depth - node.slice)) {
    isEntered = true;
    const given = { type: isSliced ? type : type.element, value: part };
    if (only !== undefined && others.length === 0) yield* assignTo(only, given, frame);
    else yield* storeRow(node.targets, fieldsOfRow(given), frame);
    const step = yield* runStep(node, run);
    if (step.isOver) {
      frame.found = true;
      return step.outcome;
    }
  }
  frame.found = isEntered;
  return undefined;
}

/** Returns the fields of an array element that is a row. @throws {DatabaseError} TYPE_MISMATCH */
function fieldsOfRow({ type, value }: Typed): Parameters<typeof storeRow>[1] {
  if (type.kind === "row") {
    return { columns: type.fields, row: (value as RowValue | null)?.cells };
  }
  throw new DatabaseError(
    "TYPE_MISMATCH",
    "Cannot run FOREACH with several variables: the array's elements are not rows",
    {
      hint: "use a single variable",
      sqlstate: "42804",
    },
  );
}

function requireArrayTarget(isArray: boolean, isSliced: boolean): void {
  if (isArray === isSliced) return;
  const message = isSliced
    ? "Cannot run FOREACH with SLICE: the loop variable must be an array"
    : "Cannot run FOREACH: the loop variable is an array, but the elements are not";
  throw new DatabaseError("TYPE_MISMATCH", message, {
    hint: isSliced ? "declare the loop variable as an array, or omit SLICE" : "write SLICE 1",
    sqlstate: "42804",
  });
}

/** Yields the slices or elements of an array that are nested `depth` dimensions deep in it. */
function* partsOf(array: Value, depth: number): Generator<Value> {
  if (depth === 0) {
    yield array;
    return;
  }
  for (const part of array as Row) yield* partsOf(part, depth - 1);
}
