/**
 * Functions about the session, the server and the types of expressions.
 */
import { DOUBLE, TEXT, typeName, type Value } from "../../types/mod.ts";
import { firstType, functionsNamed, overload } from "./base/define.ts";
import type { CallDeps, ScalarFunction } from "./base/function.ts";

/**
 * The name of the sleep function, which the binder recognises because it requires a separate right.
 */
export const SLEEP = "pg_sleep";

/** The name of a server's only database. */
const DATABASE_NAME = "tidemark";

function stable(names: readonly string[], read: (call: CallDeps) => string): ScalarFunction[] {
  return functionsNamed(
    names,
    overload([], TEXT, (_, call) => read(call), { volatility: "stable" }),
  );
}

export const SESSION_FUNCTIONS: readonly ScalarFunction[] = [
  ...stable(["current_user", "user", "current_user_id"], (call) => call.userId),
  ...stable(["session_user"], (call) => call.sessionUserId),
  ...stable(["current_role"], (call) => call.role),
  ...stable(["current_namespace", "current_schema"], (call) => call.namespace),
  ...stable(["current_database", "current_catalog"], () => DATABASE_NAME),
  ...stable(["version"], (call) => call.version),
  ...functionsNamed(
    ["pg_typeof", "typeof"],
    overload(["any"], TEXT, (_values, _call, types) => typeName(firstType(types)), {
      seesNull: true,
    }),
  ),
  ...functionsNamed([SLEEP], overload([DOUBLE], TEXT, sleep, { volatility: "volatile" })),
];

/** Returns an empty text, as PostgreSQL displays a void result. */
function sleep([seconds = 0]: readonly Value[], call: CallDeps): Value {
  call.sleep(Number(seconds));
  return "";
}
