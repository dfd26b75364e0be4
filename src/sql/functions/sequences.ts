/**
 * Defines functions that read and set sequences. A sequence is named by a string, as in
 * nextval('app.orders_id_seq'). Since the name may be computed, it is looked up when the function
 * is called:
 *
 *     SELECT setval(pg_get_serial_sequence('app.orders', 'id'), max(id)) FROM app.orders
 */
import { BIGINT, BOOLEAN, TEXT, type Value, type Whole } from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { CallDeps, ScalarFunction } from "./base/function.ts";

export const NEXTVAL = "nextval";

/** Functions whose first argument may be written as 'name'::regclass. */
export const SEQUENCE_FUNCTIONS_BY_NAME: ReadonlySet<string> = new Set([
  NEXTVAL,
  "currval",
  "setval",
  "pg_get_serial_sequence",
]);

/**
 * Functions that draw or set numbers of a sequence. A statement that calls any of them is not
 * executed in parallel by several readers.
 */
export const NUMBERING_FUNCTIONS: ReadonlySet<string> = new Set([
  NEXTVAL,
  "currval",
  "lastval",
  "setval",
]);

const VOLATILE = { volatility: "volatile" } as const;

function setNumber(
  [name = null, value = null, isCalled = true]: readonly Value[],
  call: CallDeps,
): Value {
  return call.sequences.set(name as string, value as Whole, isCalled === true);
}

export const SEQUENCE_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    [NEXTVAL],
    overload(
      [TEXT],
      BIGINT,
      ([name], call) => call.sequences.next(name as string, "caller"),
      VOLATILE,
    ),
  ),
  ...functionsNamed(
    ["currval"],
    overload([TEXT], BIGINT, ([name], call) => call.sequences.current(name as string), VOLATILE),
  ),
  ...functionsNamed(
    ["lastval"],
    overload([], BIGINT, (_, call) => call.sequences.last(), VOLATILE),
  ),
  ...functionsNamed(
    ["setval"],
    overload([TEXT, BIGINT], BIGINT, setNumber, VOLATILE),
    overload([TEXT, BIGINT, BOOLEAN], BIGINT, setNumber, VOLATILE),
  ),
  ...functionsNamed(
    ["pg_get_serial_sequence"],
    overload(
      [TEXT, TEXT],
      TEXT,
      ([table, column], call) => call.sequences.ownedBy(table as string, column as string),
      { volatility: "stable" },
    ),
  ),
];

/**
 * Evaluates NEXTVAL in a DEFAULT with the rights of the user who defined the default, so that the
 * caller needs only the right to write to the table.
 */
export function nextOfDefault([name = null]: readonly Value[], call: CallDeps): Value {
  return call.sequences.next(name as string, "definer");
}
