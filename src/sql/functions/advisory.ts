/**
 * Defines functions that take and release advisory locks. A key is a BIGINT, or a pair of INTs.
 * The two kinds of keys are separate, so a pair never equals a single number.
 *
 * A function that returns void in PostgreSQL returns an empty string here, which is how PostgreSQL
 * displays void.
 */
import {
  BIGINT,
  BOOLEAN,
  type DataType,
  INT,
  TEXT,
  type Value,
  type Whole,
} from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { AdvisoryForm, CallDeps, ScalarFunction } from "./base/function.ts";

/** The functions that wait for a lock, keyed by name. */
const WAITING: ReadonlyMap<string, AdvisoryForm> = new Map([
  ["pg_advisory_lock", { mode: "exclusive", isOfSession: true }],
  ["pg_advisory_lock_shared", { mode: "shared", isOfSession: true }],
  ["pg_advisory_xact_lock", { mode: "exclusive", isOfSession: false }],
  ["pg_advisory_xact_lock_shared", { mode: "shared", isOfSession: false }],
]);

/** The functions that take a lock only if it is free, keyed by name. */
const TRYING: ReadonlyMap<string, AdvisoryForm> = new Map([
  ["pg_try_advisory_lock", { mode: "exclusive", isOfSession: true }],
  ["pg_try_advisory_lock_shared", { mode: "shared", isOfSession: true }],
  ["pg_try_advisory_xact_lock", { mode: "exclusive", isOfSession: false }],
  ["pg_try_advisory_xact_lock_shared", { mode: "shared", isOfSession: false }],
]);

const ADVISORY_NAME = /^pg_(?:try_)?advisory_/;

/** Whether a function takes or releases advisory locks. */
export function isAdvisoryFunction(name: string): boolean {
  return ADVISORY_NAME.test(name);
}

/** Whether a function waits for a lock that is not free. */
export function waitsForLock(name: string): boolean {
  return WAITING.has(name);
}

export const ADVISORY_FUNCTIONS: readonly ScalarFunction[] = [
  ...[...WAITING].flatMap(([name, form]) =>
    keyed(name, TEXT, (key, { advisory }) => {
      advisory.lock(key, form);
      return "";
    }),
  ),
  ...[...TRYING].flatMap(([name, form]) =>
    keyed(name, BOOLEAN, (key, { advisory }) => advisory.tryLock(key, form)),
  ),
  ...keyed("pg_advisory_unlock", BOOLEAN, (key, { advisory }) => advisory.unlock(key, "exclusive")),
  ...keyed("pg_advisory_unlock_shared", BOOLEAN, (key, { advisory }) =>
    advisory.unlock(key, "shared"),
  ),
  ...functionsNamed(
    ["pg_advisory_unlock_all"],
    overload([], TEXT, unlockAll, { volatility: "volatile" }),
  ),
];

function keyed(
  name: string,
  result: DataType,
  call: (key: string, deps: CallDeps) => Value,
): ScalarFunction[] {
  const evaluate = (values: readonly Value[], deps: CallDeps): Value => call(keyOf(values), deps);
  return functionsNamed(
    [name],
    overload([BIGINT], result, evaluate, { volatility: "volatile" }),
    overload([INT, INT], result, evaluate, { volatility: "volatile" }),
  );
}

function keyOf(values: readonly Value[]): string {
  const text = (values as readonly Whole[]).join(", ");
  return values.length === 1 ? text : `(${text})`;
}

function unlockAll(_: readonly Value[], { advisory }: CallDeps): Value {
  advisory.unlockAll();
  return "";
}
