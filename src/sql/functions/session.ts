/** Defines functions about the session, the server and the types of expressions. */
import { DatabaseError } from "../../base/errors.ts";
import {
  BOOLEAN,
  bareTypeName,
  type DataType,
  DOUBLE,
  excerpt,
  INT,
  TEXT,
  type Value,
} from "../../types/mod.ts";
import { firstType, functionsNamed, overload } from "./base/define.ts";
import type { CallDeps, ScalarFunction } from "./base/function.ts";

/**
 * The name of the sleep function. The binder recognises it, because calling it requires a separate
 * right.
 */
export const SLEEP = "pg_sleep";

/** The result of current_database(). A server has a single database. */
const DATABASE_NAME = "tidemark";

const NAMES: DataType = { kind: "array", element: TEXT };

/** Functions that read or change the settings of the request. */
export const SETTING_FUNCTIONS: ReadonlySet<string> = new Set(["current_setting", "set_config"]);

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
  ...functionsNamed(["claim"], overload([TEXT], TEXT, claim, { volatility: "stable" })),
  ...stable(["current_namespace", "current_schema"], (call) => call.namespace),
  ...stable(["current_database", "current_catalog"], () => DATABASE_NAME),
  ...stable(["pg_client_encoding", "getdatabaseencoding"], () => "UTF8"),
  ...functionsNamed(
    ["current_schemas"],
    overload([BOOLEAN], NAMES, currentSchemas, { volatility: "stable" }),
  ),
  // These functions always return false: a server answers no requests during recovery, and there
  // are no standby servers.
  ...functionsNamed(
    ["pg_is_in_recovery"],
    overload([], BOOLEAN, () => false, { volatility: "stable" }),
  ),
  ...stable(["version"], (call) => `Tidemark ${call.version}`),
  ...functionsNamed(
    ["pg_trigger_depth"],
    overload([], INT, (_, call) => call.triggerDepth ?? 0, { volatility: "volatile" }),
  ),
  ...functionsNamed(
    ["pg_typeof", "typeof"],
    overload(["any"], TEXT, (_values, _call, types) => bareTypeName(firstType(types)), {
      seesNull: true,
    }),
  ),
  ...functionsNamed(
    ["current_setting"],
    overload([TEXT, BOOLEAN], TEXT, currentSetting, { optionalCount: 1, volatility: "stable" }),
  ),
  ...functionsNamed(
    ["set_config"],
    overload([TEXT, TEXT, BOOLEAN], TEXT, setConfig, { seesNull: true, volatility: "volatile" }),
  ),
  ...functionsNamed([SLEEP], overload([DOUBLE], TEXT, sleep, { volatility: "volatile" })),
];

/** Returns a claim of the caller's token, or NULL if the token does not have the claim. */
function claim([name = null]: readonly Value[], { claims = {} }: CallDeps): Value {
  const key = name as string;
  return Object.hasOwn(claims, key) ? (claims[key] ?? null) : null;
}

/**
 * Lists the schemas of the search path. If the argument is TRUE, the list begins with the schema
 * in which unqualified function names are looked up first.
 */
function currentSchemas([withImplicit = null]: readonly Value[], call: CallDeps): Value {
  return withImplicit === true ? ["pg_catalog", call.namespace] : [call.namespace];
}

function currentSetting(
  [name = null, isMissingOk = false]: readonly Value[],
  call: CallDeps,
): Value {
  const isPath = (name as string).toLowerCase() === "search_path";
  const value = isPath ? call.namespace : call.settings.current(name as string);
  if (value !== undefined || isMissingOk === true) return value ?? null;
  throw new DatabaseError(
    "OBJECT_NOT_FOUND",
    `Cannot find the setting "${excerpt(name as string)}"`,
    {
      hint:
        "to list the settings, run SHOW ALL; to get NULL for a missing setting, pass TRUE as the " +
        "second argument",
    },
  );
}

/** Implements set_config, which changes a setting. NULL resets the setting to its default. */
function setConfig(
  [name = null, value = null, isLocal = null]: readonly Value[],
  call: CallDeps,
): Value {
  if (name === null) {
    throw new DatabaseError("INVALID_VALUE", "Cannot set a setting: its name is NULL");
  }
  return call.settings.set(
    name as string,
    (value ?? undefined) as string | undefined,
    isLocal === true,
  );
}

/**
 * Implements pg_sleep, which sleeps for the given number of seconds. It returns an empty string,
 * as PostgreSQL displays a void result.
 */
function sleep([seconds = 0]: readonly Value[], call: CallDeps): Value {
  call.sleep(Number(seconds));
  return "";
}
