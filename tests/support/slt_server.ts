/** Runs SQL case files against a real server process. */
import type { ServerProcess, SqlAnswer } from "./server_process.ts";
import { runSlt, type SltAnswer, type SltReport, type SltRequest, type SltResult } from "./slt.ts";
import { withArrayTexts } from "./slt_arrays.ts";
import { HIDDEN_COLUMNS } from "./slt_tables.ts";

/** The reasons that the wire may report for each error code that has no wire code of its own. */
const REASONS: Readonly<Record<string, readonly string[]>> = {
  UNSUPPORTED_FEATURE: ["not_implemented"],
  INVALID_QUERY: ["INVALID_SQL"],
  AMBIGUOUS_COLUMN: ["INVALID_SQL"],
  COLUMN_NOT_FOUND: ["INVALID_SQL"],
  FUNCTION_NOT_FOUND: ["INVALID_SQL"],
  INVALID_VALUE: ["type"],
  VALUE_TOO_LONG: ["type"],
  TYPE_MISMATCH: ["type"],
  UNSUPPORTED_TYPE: ["type"],
  DIMENSION_MISMATCH: ["type"],
  VALUE_OUT_OF_RANGE: ["numeric_range"],
  NOT_NULL_VIOLATION: ["not_null"],
  CHECK_VIOLATION: ["check"],
  DUPLICATE_KEY: ["duplicate_key"],
  CARDINALITY_VIOLATION: ["other"],
  INVALID_OPERATION: [
    "invalid_operation",
    "read_only",
    "system_column",
    "shared_impersonation",
    "managed_by_config",
  ],
  INVALID_TRANSACTION_STATE: [
    "invalid_transaction_state",
    "transaction_open",
    "transaction_required",
  ],
  SERIALIZATION_FAILURE: ["conflict"],
};

/**
 * Runs a corpus file on a server.
 *
 * @param name The name of a namespace that does not exist yet.
 */
export async function runSltOn(
  server: ServerProcess,
  name: string,
  text: string,
  { queryOneOf = 1 }: { queryOneOf?: number } = {},
): Promise<SltReport> {
  await server.rows(`CREATE NAMESPACE ${name}`);
  const execute = async (request: SltRequest): Promise<SltAnswer> => {
    const { body } = await server.sql(request.sql, { namespace: name });
    return answerFrom(body, withoutHiddenColumns);
  };
  return await runSlt(text, { execute, queryOneOf });
}

/**
 * Returns a function that sends each request to a server, as the request's user and with its
 * parts.
 */
export function senderTo(server: ServerProcess): (request: SltRequest) => Promise<SltAnswer> {
  const tokens = new Map<string, string>();
  const tokenOf = async ({ name, password }: SltUser): Promise<string> => {
    const key = JSON.stringify([name, password]);
    const token = tokens.get(key) ?? (await server.login(name, password)).access_token;
    tokens.set(key, token);
    return token;
  };
  return async ({ sql, user, ...parts }) => {
    const token = user === undefined ? {} : { token: await tokenOf(user) };
    const { body } = await server.sql(sql, { ...parts, ...token });
    return answerFrom(body, (result) => result);
  };
}

type SltUser = NonNullable<SltRequest["user"]>;

function answerFrom(body: SqlAnswer["body"], shown: (result: SltResult) => SltResult): SltAnswer {
  const { error, results, status } = body;
  if (status === "success")
    return { ok: true, results: results.map((entry) => shown(resultFrom(entry))) };
  const { code = "", message = "no message", reason = "", statement } = error ?? {};
  const found = code === "SQL_EXECUTION_ERROR" ? reason : code;
  const codes = Object.keys(REASONS).filter((name) => REASONS[name]?.includes(found) === true);
  return {
    ok: false,
    isUnsupported: reason === "not_implemented",
    message: `${code} (${reason}): ${message}`,
    codes: [...codes, found, found.toUpperCase()],
    ...(statement === undefined ? {} : { statement: statement + 1 }),
  };
}

function resultFrom(entry: SqlAnswer["body"]["results"][number]): SltResult {
  return {
    columns: (entry.schema ?? []).map(({ name }) => name),
    rows: withArrayTexts(entry.rows ?? [], entry.schema ?? []),
    count: entry.row_count,
    text: JSON.stringify(entry),
  };
}

/** Returns a result without the server's additional columns, which no case in the corpus uses. */
export function withoutHiddenColumns(result: SltResult): SltResult {
  const shown = result.columns.flatMap((name, index) => (HIDDEN_COLUMNS.has(name) ? [] : [index]));
  return { ...result, rows: result.rows.map((row) => shown.map((index) => row[index])) };
}
