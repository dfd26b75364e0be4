/**
 * Runs the statements of a function body: blocks, assignments, branches, RETURN and SQL. Other
 * files in this folder run loops, cursors and RAISE.
 *
 * Every error that leaves a statement names the function and the line. A block with handlers is a
 * subtransaction. If a handler catches an error, the changes of the block are undone.
 */
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import { type Row, TEXT } from "../../types/mod.ts";
import { askSource, askText, isTrue } from "./asked.ts";
import { askRows, askValue, type ProgramSteps, type RowsAnswer, type Typed } from "./asks.ts";
import { assignTo, storeInto } from "./assignments.ts";
import { isCondition, meets, passed, sqlstateOf, unknownCondition } from "./conditions.ts";
import { runClose, runFetch, runOpen } from "./cursors.ts";
import { runDiagnostics } from "./diagnostics.ts";
import { assigned, type ProgramFrame, placeOf } from "./frame.ts";
import { runForeach, runIntegerLoop, runLoop, runRowLoop } from "./loops.ts";
import { targetOf } from "./names.ts";
import { ProgramCursors } from "./open_cursors.ts";
import { runAssert, runRaise } from "./raise.ts";
import type { ListOutcome, ProgramRun } from "./run.ts";
import type {
  AssignNode,
  BlockNode,
  CallNode,
  CaseNode,
  DeclarationNode,
  ExecuteNode,
  IfNode,
  ReturnNextNode,
  ReturnNode,
  SqlNode,
  StatementNode,
} from "./tree.ts";

/**
 * Runs a function body to its end.
 *
 * @throws {DatabaseError} the errors of its statements, and the errors that RAISE raises
 */
export function* runBody(
  frame: ProgramFrame,
  cursors: ProgramCursors = new ProgramCursors(),
): ProgramSteps<void> {
  const run: ProgramRun = { cursors, frame, runStatements };
  const { body, result, shown } = frame.compiled;
  const outcome = yield* runStatement(body.block, run);
  if (outcome?.kind === "return" || result.isVoid || result.isSet) return;
  if (result.outputs !== undefined) return;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot finish ${shown}: it reached the end of its body without RETURN`,
    { sqlstate: "2F005" },
  );
}

function* runStatements(
  statements: readonly StatementNode[],
  run: ProgramRun,
): ProgramSteps<ListOutcome> {
  for (const statement of statements) {
    const outcome = yield* runStatement(statement, run);
    if (outcome !== undefined) return outcome;
  }
  return undefined;
}

/**
 * Runs a statement. If an error leaves the statement, the place of the statement is added to the
 * error.
 */
function* runStatement(node: StatementNode, run: ProgramRun): ProgramSteps<ListOutcome> {
  try {
    return yield* runNode(node, run);
  } catch (error) {
    if (!(error instanceof DatabaseError) || isPlaced.has(error)) throw error;
    const placed = passed(error, `${placeOf(run.frame)} line ${node.line} at ${verbOf(node)}`);
    isPlaced.add(placed);
    throw placed;
  }
}

/** The errors that already name their place in the function through which they are passing. */
const isPlaced = new WeakSet<DatabaseError>();

/**
 * Must be called when an error leaves a function, so that the calling statement adds its own
 * place.
 */
export function leaveFunction(error: unknown): void {
  if (error instanceof DatabaseError) isPlaced.delete(error);
}

function verbOf({ kind }: StatementNode): string {
  return VERBS[kind] ?? kind.toUpperCase();
}

const VERBS: Partial<Record<StatementNode["kind"], string>> = {
  assign: "an assignment",
  block: "a block",
  "integer loop": "FOR",
  "row loop": "FOR",
  sql: "an SQL statement",
  diagnostics: "GET DIAGNOSTICS",
};

function* runNode(node: StatementNode, run: ProgramRun): ProgramSteps<ListOutcome> {
  switch (node.kind) {
    case "block":
      return yield* runBlock(node, run);
    case "if":
      return yield* runIf(node, run);
    case "case":
      return yield* runCase(node, run);
    case "loop":
      return yield* runLoop(node, run);
    case "integer loop":
      return yield* runIntegerLoop(node, run);
    case "row loop":
      return yield* runRowLoop(node, run);
    case "foreach":
      return yield* runForeach(node, run);
    case "exit": {
      const isLeft = node.condition === undefined || (yield* isTrue(node.condition, run.frame));
      if (!isLeft) return undefined;
      return { kind: "exit", label: node.label, isContinue: node.isContinue };
    }
    case "return":
      return yield* runReturn(node, run.frame);
    default:
      yield* runSimple(node, run);
      return undefined;
  }
}

type SimpleNode = Exclude<
  StatementNode,
  {
    kind:
      | "block"
      | "case"
      | "exit"
      | "foreach"
      | "if"
      | "integer loop"
      | "loop"
      | "return"
      | "row loop";
  }
>;

/** Runs a statement that never ends the statement list that contains it. */
function* runSimple(node: SimpleNode, run: ProgramRun): ProgramSteps<void> {
  const { frame } = run;
  switch (node.kind) {
    case "null":
      return;
    case "assign":
      return yield* runAssign(node, frame);
    case "return next":
      return yield* runReturnNext(node, frame);
    case "return query": {
      const answer = yield* askSource(node.source, run);
      for (const row of answer.rows) frame.rows.push(resultRow(answer, row, frame));
      frame.found = answer.rowCount > 0;
      frame.rowCount = answer.rowCount;
      return;
    }
    case "raise":
      return yield* runRaise(node, frame);
    case "assert":
      return yield* runAssert(node, frame);
    case "perform": {
      const { rowCount } = yield* askRows({ kind: "rows", piece: node.query, frame });
      frame.found = rowCount > 0;
      frame.rowCount = rowCount;
      return;
    }
    case "sql":
      return yield* runSql(node, frame);
    case "execute":
      return yield* runExecute(node, frame);
    case "call":
      return yield* runCall(node, frame);
    case "diagnostics":
      return yield* runDiagnostics(node, frame);
    case "open":
      return yield* runOpen(node, run);
    case "fetch":
      return yield* runFetch(node, run);
    case "close":
      return runClose(node, run);
  }
}

function* runBlock(node: BlockNode, run: ProgramRun): ProgramSteps<ListOutcome> {
  const { frame } = run;
  const { caught, handlers, label } = node;
  if (handlers === undefined || caught === undefined) {
    return leftBlock(yield* runInner(node, run), label);
  }
  for (const { conditions } of handlers) {
    const unknown = conditions.find((each) => !isCondition(each));
    if (unknown?.kind === "name") throw unknownCondition(unknown.name);
  }
  let outcome: ListOutcome;
  yield { kind: "begin" };
  try {
    outcome = yield* runInner(node, run);
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    const handler = handlers.find(({ conditions }) => meets(error, conditions));
    yield { kind: "end", isKept: false };
    if (handler === undefined) throw error;
    frame.caught.push(error);
    frame.values[caught.state] = sqlstateOf(error);
    frame.values[caught.message] = error.message;
    try {
      outcome = yield* runStatements(handler.statements, run);
    } finally {
      frame.caught.pop();
    }
    return leftBlock(outcome, label);
  }
  yield { kind: "end", isKept: true };
  return leftBlock(outcome, label);
}

/**
 * Returns the outcome of a block for the statements that enclose it. An EXIT from the block itself
 * has no effect on them.
 */
function leftBlock(outcome: ListOutcome, label: string | undefined): ListOutcome {
  const isOwn = outcome?.kind === "exit" && !outcome.isContinue && outcome.label !== undefined;
  return isOwn && outcome.label === label ? undefined : outcome;
}

function* runInner(
  { declarations, statements }: BlockNode,
  run: ProgramRun,
): ProgramSteps<ListOutcome> {
  for (const declaration of declarations) yield* runDeclaration(declaration, run.frame);
  return yield* runStatements(statements, run);
}

function* runDeclaration(
  { initial, slot }: DeclarationNode,
  frame: ProgramFrame,
): ProgramSteps<void> {
  if (initial === undefined) {
    frame.reset(slot);
    return;
  }
  frame.assign(slot, yield* askValue(initial, frame));
}

function* runIf({ branches, otherwise }: IfNode, run: ProgramRun): ProgramSteps<ListOutcome> {
  for (const { condition, statements } of branches) {
    if (yield* isTrue(condition, run.frame)) return yield* runStatements(statements, run);
  }
  return yield* runStatements(otherwise, run);
}

function* runCase(
  { branches, operand, otherwise }: CaseNode,
  run: ProgramRun,
): ProgramSteps<ListOutcome> {
  const { frame } = run;
  if (operand !== undefined) frame.setRecord(operand.slot, yield* askValue(operand.value, frame));
  for (const { conditions, statements } of branches) {
    for (const condition of conditions) {
      if (yield* isTrue(condition, frame)) return yield* runStatements(statements, run);
    }
  }
  if (otherwise !== undefined) return yield* runStatements(otherwise, run);
  throw new DatabaseError(
    "INVALID_OPERATION",
    "Cannot run CASE: no branch matches, and there is no ELSE",
    {
      hint: "add ELSE",
      sqlstate: "20000",
    },
  );
}

function* runReturn({ value }: ReturnNode, frame: ProgramFrame): ProgramSteps<ListOutcome> {
  if (value !== undefined) frame.returned = yield* askValue(value, frame);
  return { kind: "return" };
}

function* runReturnNext({ value }: ReturnNextNode, frame: ProgramFrame): ProgramSteps<void> {
  if (value === undefined) {
    const { outputs = [] } = frame.compiled.result;
    frame.rows.push(outputs.map((slot) => frame.values[slot] ?? null));
    return;
  }
  const { columns, isRow } = frame.compiled.result;
  const given = yield* askValue(value, frame);
  if (!isRow && columns !== undefined) {
    frame.rows.push([assigned(given, columns[0]?.type ?? TEXT)]);
    return;
  }
  frame.rows.push(rowOfValue(given, frame));
}

/**
 * Returns the cells of a row value, converted to the columns that the function's caller expects.
 */
export function rowOfValue(given: Typed, { compiled }: ProgramFrame): Row {
  const { columns } = compiled.result;
  if (given.value === null) return (columns ?? []).map(() => null);
  if (given.type.kind !== "row") {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot return a single value from ${compiled.shown}: it must return a row`,
      { sqlstate: "42804" },
    );
  }
  const { cells } = given.value as { readonly cells: Row };
  if (columns === undefined) return cells;
  const { fields } = given.type;
  requireColumns(fields.length, columns.length, compiled.shown);
  return columns.map(({ type }, i) =>
    assigned({ type: fields[i]?.type ?? TEXT, value: cells[i] ?? null }, type),
  );
}

/** Converts a row of RETURN QUERY to the result types of the function. */
function resultRow(answer: RowsAnswer, row: Row, { compiled }: ProgramFrame): Row {
  const { columns: given = [] } = answer;
  const { columns } = compiled.result;
  if (columns === undefined) return row;
  requireColumns(given.length, columns.length, compiled.shown);
  return columns.map(({ type }, i) =>
    assigned({ type: given[i]?.type ?? TEXT, value: row[i] ?? null }, type),
  );
}

function requireColumns(count: number, wanted: number, shown: string): void {
  if (count === wanted) return;
  throw new DatabaseError(
    "TYPE_MISMATCH",
    `Cannot return a row of ${counted(count, "column")} from ${shown}: its declared result has ` +
      wanted,
    { sqlstate: "42804" },
  );
}

function* runAssign({ target, value }: AssignNode, frame: ProgramFrame): ProgramSteps<void> {
  yield* assignTo(target, yield* askValue(value, frame), frame);
}

function* runSql({ into, statement }: SqlNode, frame: ProgramFrame): ProgramSteps<void> {
  const answer = yield* askRows({ kind: "rows", piece: statement, frame });
  if (answer.isUtility === true) return;
  frame.rowCount = answer.rowCount;
  frame.found = answer.rowCount > 0;
  if (into === undefined) {
    if (answer.columns !== undefined && answer.rows.length > 0) throw noDestination();
    return;
  }
  const isChange = statement.node.type !== "select";
  yield* storeInto(
    into,
    { answer, isSingle: into.isStrict || isChangeOf(isChange, answer) },
    frame,
  );
}

/**
 * Whether a result of several rows is an error even without STRICT. As in PostgreSQL, this is the
 * case for a change with RETURNING.
 */
function isChangeOf(isChange: boolean, { columns }: RowsAnswer): boolean {
  return isChange && columns !== undefined;
}

function noDestination(): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    "Cannot run the statement: it returns rows, but the function does not use them",
    {
      hint: "store the rows in variables with INTO, or discard them with PERFORM",
      sqlstate: "42601",
    },
  );
}

function* runExecute({ into, text, using }: ExecuteNode, frame: ProgramFrame): ProgramSteps<void> {
  const answer = yield* askText(text, using, frame);
  frame.rowCount = answer.rowCount;
  if (into === undefined) return;
  yield* storeInto(into, { answer, isSingle: into.isStrict }, frame);
}

function* runCall({ statement }: CallNode, frame: ProgramFrame): ProgramSteps<void> {
  const answer = yield* askRows({ kind: "rows", piece: statement, frame });
  const { columns = [], outputArguments = [], rows } = answer;
  const args = statement.node.type === "call procedure" ? statement.node.call.args : [];
  for (const [i, argument] of outputArguments.entries()) {
    const node = args[argument];
    const target = node === undefined ? undefined : targetOf(node, statement.names);
    if (target === undefined) {
      throw new DatabaseError(
        "INVALID_OPERATION",
        `Cannot call the procedure: argument ${argument + 1} receives an output, so it must be ` +
          "a variable",
        { sqlstate: "42601" },
      );
    }
    const type = columns[i]?.type ?? TEXT;
    yield* assignTo(target, { type, value: rows[0]?.[i] ?? null }, frame);
  }
}
