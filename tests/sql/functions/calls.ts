/**
 * Calls functions, operators and aggregates as the executor does: resolves, casts and evaluates
 * them.
 */
import { seqFromUnixMs, unixMsFromSeq } from "../../../src/base/seq.ts";
import { resolveAggregate } from "../../../src/sql/functions/aggregate/aggregates.ts";
import type { CallDeps, SequenceCalls } from "../../../src/sql/functions/base/function.ts";
import { resolveBinary, resolvePrefix } from "../../../src/sql/functions/operator/operators.ts";
import { resolveFunction } from "../../../src/sql/functions/registry.ts";
import {
  BYTES,
  castValue,
  DATE,
  DATETIME,
  type DataType,
  DOUBLE,
  INT,
  INTERVAL,
  JSON_TEXT,
  JSONB,
  JSONPATH,
  TEXT,
  TIMESTAMP,
  TSQUERY,
  TSVECTOR,
  textFromValue,
  typeName,
  UNKNOWN,
  type Value,
  valueFromNumberText,
  valueFromText,
} from "../../../src/types/mod.ts";

export interface Argument {
  readonly type: DataType;
  readonly value: Value;
}

/** The time of the statement in microseconds: 2025-01-02 03:04:05.678901 UTC. */
const NOW_MICROS = 1_735_787_045_678_901;

let snowflake = 1000;

/** Stands in for sequences, which no function under test uses. */
const NO_SEQUENCES: SequenceCalls = {
  next: () => 0,
  current: () => 0,
  last: () => 0,
  set: (_, value) => value,
  giveBack: () => undefined,
  ownedBy: () => null,
};

export const CALL: CallDeps = {
  sequences: NO_SEQUENCES,
  objects: {
    named: () => null,
    withOid: (_, oid) => `${oid}-`,
    partitions: () => [],
    privilege: () => null,
    text: () => null,
  },
  settings: { current: () => undefined, set: (_, value) => value ?? "" },
  advisory: {
    lock: () => undefined,
    tryLock: () => true,
    unlock: () => true,
    unlockAll: () => undefined,
  },
  programs: { call: () => null },
  nowMicros: NOW_MICROS,
  userId: "alice",
  sessionUserId: "root",
  role: "user",
  claims: { sub: "alice" },
  namespace: "app",
  version: "0.1.0",
  clockMicros: () => NOW_MICROS + 1,
  commitMs: unixMsFromSeq,
  lastSeqUpTo: (unixMs) => seqFromUnixMs(unixMs + 1) - 1,
  snowflakeId: () => {
    snowflake += 1;
    return snowflake;
  },
  randomBytes: (count) => new Uint8Array(count).fill(0xab),
  randomUnit: () => 0.25,
  sleep: () => undefined,
};

/** Returns a numeric literal as a statement would contain it, with its sign. */
export function num(digits: string): Argument {
  const literal = valueFromNumberText(digits);
  if (literal === undefined) throw new Error(`no number: ${digits}`);
  return literal;
}

export function of(type: DataType, written: string): Argument {
  return { type, value: valueFromText(type, written) };
}

export const INTS: DataType = { kind: "array", element: INT };
export const TEXTS: DataType = { kind: "array", element: TEXT };
export const VECTOR: DataType = { kind: "embedding", dimensions: 3 };

export function ts(written: string): Argument {
  return of(TIMESTAMP, written);
}
export function tz(written: string): Argument {
  return of(DATETIME, written);
}
export function day(written: string): Argument {
  return of(DATE, written);
}
export function span(written: string): Argument {
  return of(INTERVAL, written);
}
export function js(written: string): Argument {
  return of(JSON_TEXT, written);
}
export function jsb(written: string): Argument {
  return of(JSONB, written);
}
export function path(written: string): Argument {
  return of(JSONPATH, written);
}
export function words(written: string): Argument {
  return of(TSVECTOR, written);
}
export function query(written: string): Argument {
  return of(TSQUERY, written);
}
export function ints(written: string): Argument {
  return of(INTS, written);
}
export function texts(written: string): Argument {
  return of(TEXTS, written);
}
export function vec(written: string): Argument {
  return of(VECTOR, written);
}

function text(value: string): Argument {
  return { type: TEXT, value };
}

/** Returns an untyped literal. */
export function untyped(value: string): Argument {
  return { type: UNKNOWN, value };
}

export function nullOf(type: DataType): Argument {
  return { type, value: null };
}

/** An argument in short form. A string stands for a TEXT value, and a number for a literal. */
export type Given = Argument | string | number | boolean | null;

function argument(given: Given): Argument {
  if (given === null) return nullOf(UNKNOWN);
  if (typeof given === "string") return text(given);
  if (typeof given === "number") return num(given.toString());
  if (typeof given === "boolean") return { type: { kind: "boolean" }, value: given };
  return given;
}

function castTo({ type, value }: Argument, to: DataType): Value {
  return value === null ? null : castValue(value, { from: type, to, mode: "implicit" });
}

/** The result of a call: its value as text, and the name of its type. */
export interface Outcome {
  readonly text: string | null;
  readonly type: string;
  readonly value: Value;
}

function outcome(type: DataType, value: Value): Outcome {
  return { type: typeName(type), value, text: value === null ? null : textFromValue(type, value) };
}

export function callFunction(name: string, ...given: readonly Given[]): Outcome {
  const args = given.map(argument);
  const resolved = resolveFunction(
    name,
    args.map(({ type }) => type),
    args.map(({ value }) => value),
  );
  if (resolved === undefined) throw new Error(`FUNCTION_NOT_FOUND ${name}`);
  const values = args.map((arg, index) => castTo(arg, resolved.argumentTypes[index] ?? TEXT));
  const isUncalled = resolved.overload.seesNull !== true && values.includes(null);
  const value = isUncalled
    ? null
    : resolved.overload.evaluate(values, CALL, resolved.argumentTypes);
  return outcome(resolved.result, value);
}

export function operate(left: Given, op: string, right: Given): Outcome {
  const args = [argument(left), argument(right)] as const;
  const form = resolveBinary(op, args[0].type, args[1].type);
  if (form === undefined) throw new Error(`TYPE_MISMATCH ${op}`);
  const values = args.map((arg, index) => castTo(arg, form.operands[index] ?? TEXT));
  const isUncalled = form.seesNull !== true && values.includes(null);
  return outcome(form.result, isUncalled ? null : form.evaluate(values));
}

export function prefix(op: string, operand: Given): Outcome {
  const arg = argument(operand);
  const form = resolvePrefix(op, arg.type);
  if (form === undefined) throw new Error(`TYPE_MISMATCH ${op}`);
  const value = castTo(arg, form.operands[0] ?? TEXT);
  return outcome(form.result, value === null ? null : form.evaluate([value]));
}

/** Aggregates a single group over rows of arguments. */
export function aggregate(
  name: string,
  types: readonly DataType[],
  rows: readonly (readonly Given[])[],
): Outcome {
  const form = resolveAggregate(name, types);
  if (form === undefined) throw new Error(`FUNCTION_NOT_FOUND ${name}`);
  const state = form.create();
  for (const row of rows) {
    const values = row.map((given, index) =>
      castTo(argument(given), form.argumentTypes[index] ?? TEXT),
    );
    state.add(0, ...values);
  }
  return outcome(form.result, state.finish(0));
}

/** Returns the code of the error that a call raises, or the message if it has no code. */
export function errorCodeOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return code ?? message;
  }
  return "no error";
}

export function dbl(value: string): Given {
  return of(DOUBLE, value);
}

export function bytes(value: string): Given {
  return of(BYTES, value);
}

/**
 * A test case: the function, its arguments, the result as text (null means NULL), and the result
 * type if it matters.
 */
export type Case = readonly [string, readonly Given[], string | null, string?];
