/** Runs RAISE and ASSERT. */
import { DatabaseError, type ErrorCode } from "../../base/errors.ts";
import { BOOLEAN } from "../../types/mod.ts";
import { askValue, type ProgramSteps } from "./asks.ts";
import { ProcedureError, type RaisedDetails, stateOf, unknownCondition } from "./conditions.ts";
import { assigned, type ProgramFrame, shownText } from "./frame.ts";
import type { AssertNode, ConditionNode, RaiseNode, RaiseOption } from "./tree.ts";

/** The SQLSTATE of RAISE EXCEPTION without ERRCODE. */
const RAISED = "P0001";

export function* runRaise(node: RaiseNode, frame: ProgramFrame): ProgramSteps<void> {
  if (node.isAgain) throw frame.caught.at(-1) ?? noError();
  const options = yield* optionsOf(node, frame);
  const state = stateFor(node, options);
  const written = node.format === undefined ? undefined : yield* formatted(node, frame);
  const named = node.condition?.kind === "name" ? node.condition.name : node.condition?.state;
  const message = written ?? options.get("message") ?? named ?? options.get("errcode") ?? state;
  if (node.level !== "exception") {
    yield { kind: "notice", level: node.level, message: withDetail(message, options) };
    return;
  }
  const raised: RaisedDetails = {
    detail: options.get("detail"),
    column: options.get("column"),
    constraint: options.get("constraint"),
    datatype: options.get("datatype"),
    schema: options.get("schema"),
    table: options.get("table"),
  };
  throw new ProcedureError(CODES.get(state) ?? "RAISE_EXCEPTION", message, {
    hint: options.get("hint"),
    raised,
    sqlstate: state,
  });
}

/**
 * The error codes of the server that RAISE with a certain SQLSTATE also produces, keyed by
 * SQLSTATE.
 */
const CODES: ReadonlyMap<string, ErrorCode> = new Map<string, ErrorCode>([
  ["23502", "NOT_NULL_VIOLATION"],
  ["23503", "FOREIGN_KEY_VIOLATION"],
  ["23505", "DUPLICATE_KEY"],
  ["23514", "CHECK_VIOLATION"],
  ["23P01", "EXCLUSION_VIOLATION"],
  ["22012", "DIVISION_BY_ZERO"],
]);

function withDetail(message: string, options: ReadonlyMap<RaiseOption, string>): string {
  const more = [options.get("detail"), options.get("hint")].filter((each) => each !== undefined);
  return [message, ...more].join("; ");
}

function noError(): DatabaseError {
  return new DatabaseError(
    "INVALID_OPERATION",
    "Cannot raise the error again: no error has been caught",
    {
      sqlstate: "0Z002",
    },
  );
}

function* optionsOf(
  { condition, format, options }: RaiseNode,
  frame: ProgramFrame,
): ProgramSteps<Map<RaiseOption, string>> {
  const values = new Map<RaiseOption, string>();
  for (const { name, value } of options) {
    const isTwice =
      values.has(name) ||
      (name === "message" && format !== undefined) ||
      (name === "errcode" && condition !== undefined);
    if (isTwice) {
      throw new DatabaseError(
        "INVALID_SQL",
        `Cannot raise the error: ${name.toUpperCase()} is specified twice`,
        {
          sqlstate: "42601",
        },
      );
    }
    const given = yield* askValue(value, frame);
    if (given.value === null) {
      throw new DatabaseError(
        "INVALID_VALUE",
        `Cannot raise the error: ${name.toUpperCase()} is NULL`,
        {
          sqlstate: "22004",
        },
      );
    }
    values.set(name, shownText(given));
  }
  return values;
}

function stateFor({ condition }: RaiseNode, options: ReadonlyMap<RaiseOption, string>): string {
  if (condition !== undefined) return stateNamed(condition);
  const code = options.get("errcode");
  if (code === undefined) return RAISED;
  if (/^[0-9A-Z]{5}$/.test(code)) return code;
  return stateNamed({ kind: "name", name: code.toLowerCase() });
}

function stateNamed(condition: ConditionNode): string {
  const state = stateOf(condition);
  if (state !== undefined) return state;
  throw unknownCondition(condition.kind === "name" ? condition.name : condition.state);
}

/**
 * Returns the message of RAISE: replaces each % in the format by the next argument, and %% by %.
 */
function* formatted({ args, format = "" }: RaiseNode, frame: ProgramFrame): ProgramSteps<string> {
  const texts: string[] = [];
  for (const piece of args) texts.push(shownText(yield* askValue(piece, frame)));
  let next = 0;
  return format.replaceAll(/%%|%/g, (mark) => {
    if (mark === "%%") return "%";
    next += 1;
    return texts[next - 1] ?? "";
  });
}

export function* runAssert(
  { condition, message }: AssertNode,
  frame: ProgramFrame,
): ProgramSteps<void> {
  const holds = assigned(yield* askValue(condition, frame), BOOLEAN);
  if (holds === true) return;
  const given = message === undefined ? undefined : yield* askValue(message, frame);
  const text = given === undefined || given.value === null ? "assertion failed" : shownText(given);
  throw new ProcedureError("RAISE_EXCEPTION", text, { sqlstate: "P0004" });
}
