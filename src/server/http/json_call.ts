/**
 * Reads a short JSON body from an authenticated caller. It refuses unknown members that resemble a
 * known one, and members passed in the URL.
 *
 * The body is read only after the caller is authenticated. The caller is then checked again:
 * otherwise, a client could hold back its body and act in a session that has ended in the
 * meantime.
 */
import type { Auth, Principal } from "../../auth/mod.ts";
import type { ServerConfig } from "../contract/options.ts";
import type { BodyLedger } from "./body_ledger.ts";
import type { Exchange } from "./exchange.ts";
import { type FieldNames, kindOf, misplacedInQuery, refuseNearMisses } from "./field_names.ts";
import { jsonFault } from "./json_fault.ts";
import {
  declaredBytes,
  invalidInput,
  objectOf,
  parseJson,
  readBody,
  refuseLarger,
  refusePacked,
  requireJsonType,
  textFromUtf8,
} from "./request_body.ts";

export interface JsonCallParts {
  readonly auth: Auth;
  readonly bodies: BodyLedger;
  readonly config: ServerConfig;
}

export interface JsonCallRules {
  /** The members of the body, each with the names that other servers use for it. */
  readonly names: FieldNames;
  /** Throws if the caller may not make the call. Called before the body is read. */
  readonly authorize?: (principal: Principal) => void;
  /** Whether an empty body counts as an object without members. */
  readonly mayBeEmpty?: boolean;
}

export interface JsonCall {
  readonly body: Readonly<Record<string, unknown>>;
  readonly principal: Principal;
}

/**
 * Authenticates a request and reads its JSON body.
 * @throws The refusal of the request.
 */
export async function readJsonCall(
  exchange: Exchange,
  { auth, bodies, config }: JsonCallParts,
  { authorize, mayBeEmpty = false, names }: JsonCallRules,
): Promise<JsonCall> {
  const { request } = exchange;
  const principal = auth.authenticateHeader(request.headers.get("authorization"), exchange);
  authorize?.(principal);
  requireJsonType(request.headers.get("content-type"));
  const { max_body_bytes: bytesMax } = config.limits;
  const sizeBytes = declaredBytes(request);
  refuseLarger(sizeBytes, bytesMax);
  const sender = { userId: principal.actorId, address: () => exchange.address };
  const entry = bodies.enter(sender, sizeBytes);
  const stopWatching = exchange.onLeave(() => entry.leave());
  try {
    const bytes = await readBody(request, bytesMax, { entry });
    auth.requireStanding(principal, exchange);
    const misplaced = misplacedInQuery(exchange.query, names);
    if (misplaced !== undefined) throw invalidInput(`Cannot read ${misplaced}`);
    const isEmpty = mayBeEmpty && bytes.length === 0;
    return { body: isEmpty ? {} : fieldsOf(bytes, request.headers, names), principal };
  } finally {
    entry.leave();
    // The callback is unregistered here, because a request may wait for minutes, during which the
    // callback would stay in memory.
    stopWatching();
  }
}

function fieldsOf(
  bytes: Uint8Array,
  headers: Headers,
  names: FieldNames,
): Readonly<Record<string, unknown>> {
  const text = textFromUtf8(bytes);
  const value = text === undefined ? undefined : parseJson(text);
  if (value === undefined) refusePacked(headers);
  if (text === undefined) throw invalidInput("Cannot read the body: it is not valid UTF-8");
  if (value === undefined) throw invalidInput(`Cannot read the body: ${jsonFault(text)}`);
  const fields = objectOf(value);
  if (fields === undefined) {
    throw invalidInput(`Cannot read the body: it is ${kindOf(value)}, but must be a JSON object`);
  }
  refuseNearMisses(fields, names);
  return fields;
}
