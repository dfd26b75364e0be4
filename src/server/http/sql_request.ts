/**
 * Turns the body of `POST /v1/api/sql`, either JSON or a form, into an `SqlRequest`. A body with
 * the wrong size or shape is refused.
 */
import { DatabaseError } from "../../base/errors.ts";
import type {
  AnswerReader,
  ResultFormat,
  ServerAddress,
  SqlParameter,
  SqlRequest,
} from "../../sql/mod.ts";
import type { ServerConfig } from "../contract/options.ts";
import { type FieldNames, kindOf, refuseNearMisses, unknownFieldOf } from "./field_names.ts";
import { jsonFault } from "./json_fault.ts";
import { type MultipartForm, parseMultipart } from "./multipart.ts";
import { parametersFromJson } from "./parameters.ts";
import { invalidInput, objectOf, parseJson, textFromUtf8 } from "./request_body.ts";
import { parseSqlBody } from "./sql_body.ts";

type RequestLimits = Pick<ServerConfig, "limits" | "files">;

/** The path to the parameters within a JSON body. */
const PATH_TO_PARAMS: readonly string[] = ["params"];

/** The body formats that the SQL endpoint accepts. */
export const SQL_BODIES =
  'application/json, as {"sql": "SELECT 1"}, or multipart/form-data with a part "sql"';

/** The members of a request, each with the names that other servers use for it. */
export const SQL_FIELDS: FieldNames = {
  sql: ["query", "queries", "q", "statement", "statements", "stmt", "text", "command", "code"],
  params: [
    "parameters",
    "parameter",
    "args",
    "arguments",
    "values",
    "bindings",
    "binds",
    "variables",
    "vars",
  ],
  namespace_id: ["namespace", "ns", "schema", "database", "db"],
  timeout_ms: ["timeout", "timeout_s", "timeout_seconds", "deadline", "max_time_ms"],
  check: ["dry_run", "dryrun", "validate", "validate_only"],
  idempotency_key: ["idempotency", "idempotent_key"],
};

/** The properties of a request's sender that statements may need. */
type RequestSender = AnswerReader & ServerAddress & NonNullable<SqlRequest["origin"]>;

export interface SqlRequestOptions {
  readonly config: RequestLimits;
  readonly sender?: RequestSender;
  /** The format in which the response is sent. */
  readonly format?: ResultFormat;
}

/**
 * Reads an SQL request from a JSON body.
 * @throws {DatabaseError} INVALID_INPUT, INVALID_PARAMETER, INVALID_SQL
 */
export function sqlRequestFromJson(
  body: Uint8Array,
  { config: { limits }, format, sender }: SqlRequestOptions,
): SqlRequest {
  const text = textFromUtf8(body);
  if (text === undefined) throw unreadable("it is not valid UTF-8");
  const { sqlUtf8, value } = parseSqlBody(text, body);
  if (value === undefined) throw unreadable(jsonFault(text));
  const fields = objectOf(value);
  if (fields === undefined) throw unreadable(`it is ${kindOf(value)}, but must be a JSON object`);
  refuseNearMisses(fields, SQL_FIELDS);
  const { sql, params, namespace_id, timeout_ms, check, idempotency_key } = fields;
  requireSql(sql, limits.max_sql_bytes);
  if (check !== undefined && check !== null && typeof check !== "boolean") {
    throw wrongField("check", "true or false");
  }
  const key = keyOf(idempotency_key);
  return {
    sql,
    sqlUtf8,
    params: parametersFromJson(params, text, { pathToParams: PATH_TO_PARAMS, limits }),
    namespace: namespaceOf(namespace_id),
    timeoutMs: timeoutOf(timeout_ms, limits.max_timeout_ms),
    check: check === true ? true : undefined,
    idempotency: key === undefined ? undefined : { key, digest: digestOf(body) },
    reader: sender,
    format,
    server: sender,
    origin: sender,
  };
}

/**
 * Reads an SQL request from a multipart form, whose parts may contain files.
 * @throws {DatabaseError} INVALID_INPUT, INVALID_PARAMETER, INVALID_SQL, FILE_TOO_LARGE,
 *   TOO_MANY_FILES, INVALID_MIME_TYPE
 */
export function sqlRequestFromForm(
  body: Uint8Array,
  contentType: string,
  { config: { files, limits }, format, sender }: SqlRequestOptions,
): SqlRequest {
  const form = parseMultipart(body, contentType, files);
  refuseNearMisses(Object.fromEntries(form.fields), SQL_FIELDS);
  const sql: unknown = form.fields.get("sql");
  requireSql(sql, limits.max_sql_bytes);
  const key = keyOf(form.fields.get("idempotency_key"));
  const timeoutText = form.fields.get("timeout_ms");
  if (timeoutText !== undefined && !/^\d{1,12}$/.test(timeoutText)) {
    throw wrongField("timeout_ms", "a whole number");
  }
  const timeout = timeoutText === undefined ? undefined : Number(timeoutText);
  return {
    sql,
    params: formParameters(form.fields.get("params"), limits),
    namespace: namespaceOf(form.fields.get("namespace_id")),
    timeoutMs: timeoutOf(timeout, limits.max_timeout_ms),
    check: isCheck(form.fields.get("check")) ? true : undefined,
    files: form.files,
    idempotency: key === undefined ? undefined : { key, digest: formDigest(form) },
    format,
    server: sender,
    origin: sender,
  };
}

/** The query parameters of a COPY. */
const COPY_FIELDS: FieldNames = {
  sql: SQL_FIELDS["sql"] ?? [],
  namespace_id: SQL_FIELDS["namespace_id"] ?? [],
  timeout_ms: SQL_FIELDS["timeout_ms"] ?? [],
};

/**
 * Reads a COPY request, except for its body, from the query of its URL.
 *
 * @throws {DatabaseError} INVALID_INPUT, INVALID_SQL
 */
export function copyRequestFromQuery(
  { query }: { readonly query: string },
  { config: { limits }, sender }: SqlRequestOptions,
): SqlRequest {
  const fields = Object.fromEntries(new URLSearchParams(query));
  const unknown = unknownFieldOf(fields, COPY_FIELDS);
  if (unknown !== undefined) throw invalidInput(`Cannot read the query parameter ${unknown}`);
  const { namespace_id, sql, timeout_ms } = fields;
  requireSql(sql, limits.max_sql_bytes);
  if (timeout_ms !== undefined && !/^\d{1,12}$/.test(timeout_ms)) {
    throw wrongField("timeout_ms", "a whole number");
  }
  const timeout = timeout_ms === undefined ? undefined : Number(timeout_ms);
  return {
    sql,
    params: [],
    namespace: namespaceOf(namespace_id),
    timeoutMs: timeoutOf(timeout, limits.max_timeout_ms),
    reader: sender,
    server: sender,
    origin: sender,
  };
}

/**
 * Reads the form field "check" strictly. If a misspelt value were ignored, statements meant only
 * to be checked would run.
 */
function isCheck(text: string | undefined): boolean {
  if (text !== undefined && text !== "true" && text !== "false") {
    throw wrongField("check", "true or false");
  }
  return text === "true";
}

function formParameters(
  text: string | undefined,
  limits: RequestLimits["limits"],
): readonly SqlParameter[] {
  if (text === undefined || text === "") return [];
  const value = parseJson(text);
  if (value === undefined) throw invalidInput(`Cannot read part "params": ${jsonFault(text)}`);
  return parametersFromJson(value, text, { pathToParams: [], limits });
}

function requireSql(sql: unknown, bytesMax: number): asserts sql is string {
  if (typeof sql !== "string") throw wrongField("sql", `a string, but it is ${kindOf(sql)}`);
  // UTF-8 takes one to three bytes for each UTF-16 code unit.
  if (sql.length * 3 > bytesMax && Buffer.byteLength(sql) > bytesMax) {
    throw new DatabaseError(
      "INVALID_SQL",
      `Cannot read the SQL: it is longer than ${bytesMax} bytes`,
    );
  }
  if (!sql.isWellFormed()) throw wrongField("sql", "a string without unpaired surrogates");
}

/**
 * Reads the optional namespace of a request.
 * @throws {DatabaseError} INVALID_INPUT
 */
export function namespaceOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string" || value === "" || !value.isWellFormed()) {
    throw wrongField("namespace_id", "the name of a namespace");
  }
  return value;
}

/**
 * Reads the optional time limit of a request.
 * @throws {DatabaseError} INVALID_INPUT
 */
export function timeoutOf(value: unknown, maximumMs: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  const isInRange =
    typeof value === "number" && Number.isSafeInteger(value) && value >= 1 && value <= maximumMs;
  if (!isInRange) throw wrongField("timeout_ms", `a whole number from 1 to ${maximumMs}`);
  return value;
}

/**
 * Reads the optional idempotency key of a request.
 * @throws {DatabaseError} INVALID_INPUT
 */
export function keyOf(key: unknown): string | undefined {
  if (key === undefined || key === null) return undefined;
  if (typeof key === "string" && /^[\x20-\x7e]{1,128}$/.test(key)) return key;
  throw wrongField("idempotency_key", "1 to 128 printable ASCII characters");
}

function digestOf(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

/**
 * Returns a digest of a form's contents. The body itself cannot be compared, because its boundary
 * is different each time.
 */
function formDigest({ fields, files }: MultipartForm): string {
  const hasher = new Bun.CryptoHasher("sha256");
  const parts = [...fields].toSorted(([left], [right]) => (left < right ? -1 : 1));
  hasher.update(JSON.stringify(parts));
  for (const [name, { bytes, mime, name: fileName }] of files) {
    hasher.update(JSON.stringify([name, fileName, mime, bytes.length]));
    hasher.update(bytes);
  }
  return hasher.digest("hex");
}

function unreadable(fault: string): DatabaseError {
  return invalidInput(`Cannot read the body: ${fault}; this endpoint accepts ${SQL_BODIES}`);
}

function wrongField(name: string, expected: string): DatabaseError {
  return invalidInput(`Cannot read "${name}": expected ${expected}`);
}
