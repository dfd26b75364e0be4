/**
 * Reads the messages that clients send on `/v1/ws`: turns a decoded value into typed fields, or
 * into the error that the client receives.
 *
 * A message is checked in this order: first its type, then whether the connection may send it,
 * then its fields. Each type therefore has a separate reader function.
 */
import { DatabaseError } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import { SubscriptionError } from "../../live/mod.ts";
import {
  type ClientMessage,
  type ErrorMessage,
  endsSubscription,
  type SubscriptionCode,
  type SubscriptionSpec,
} from "../../protocol/mod.ts";
import { type FieldNames, kindOf, nearMissOf } from "../http/field_names.ts";
import { checkedValues, type ParameterLimits, parametersFromJson } from "../http/parameters.ts";
import { objectOf } from "../http/request_body.ts";
import type { Serialization } from "./encode.ts";

/** The `subscription_id` of errors that do not concern a subscription. */
export const PROTOCOL_WORD = "protocol";

const ID_CHARS_MAX = 128;
const PING_ID_CHARS_MAX = 64;
const SUBSCRIPTION_SQL_BYTES_MAX = 65536;

/** A decoded frame. It includes the JSON text, because parsed numbers may have lost digits. */
export interface Decoded {
  readonly value: unknown;
  /** The JSON text; undefined for MessagePack, whose numbers are exact. */
  readonly text: string | undefined;
}

export type MessageType = ClientMessage["type"];

const MESSAGE_TYPES: ReadonlySet<string> = new Set<MessageType>([
  "authenticate",
  "subscribe",
  "next_batch",
  "unsubscribe",
  "ping",
  "consume",
  "credit",
  "topic_ack",
  "nack",
  "stop",
]);

/** The names that other protocols use for the field `type`. */
const TYPE_FIELD: FieldNames = {
  type: ["action", "op", "operation", "event", "kind", "method", "cmd", "command"],
};

/** Message types of other protocols, each with its equivalent here. */
const OTHER_TYPES: ReadonlyMap<string, MessageType> = new Map<string, MessageType>([
  ["auth", "authenticate"],
  ["login", "authenticate"],
  ["connection_init", "authenticate"],
  ["hello", "authenticate"],
  ["sub", "subscribe"],
  ["listen", "subscribe"],
  ["live", "subscribe"],
  ["start", "subscribe"],
  ["watch", "subscribe"],
  ["unsub", "unsubscribe"],
  ["cancel", "unsubscribe"],
  ["complete", "unsubscribe"],
  ["unlisten", "unsubscribe"],
  ["next", "next_batch"],
  ["batch", "next_batch"],
  ["more", "next_batch"],
  ["ack", "topic_ack"],
  ["heartbeat", "ping"],
  ["keepalive", "ping"],
]);

/** Types that other protocols use to run a statement. This protocol has no such message. */
const STATEMENT_TYPES: ReadonlySet<string> = new Set([
  "sql",
  "query",
  "execute",
  "exec",
  "insert",
  "select",
  "statement",
]);

const SHOWN_CHARS_MAX = 40;

const SUBSCRIPTION_FIELDS: FieldNames = {
  id: ["subscription_id", "name", "key"],
  sql: ["query", "q", "statement", "text", "command"],
  params: ["parameters", "args", "arguments", "values", "bindings"],
  namespace_id: ["namespace", "ns", "schema", "database", "db"],
  options: ["option", "opts", "settings"],
};

export interface AuthenticateFields {
  readonly method: string;
  readonly token: string;
  readonly serialization: Serialization | undefined;
  readonly compression: "gzip" | "none" | undefined;
}

/** Builds an error message. Its code determines the value of `ended`. */
export function errorMessage(
  code: SubscriptionCode,
  subscriptionId: string,
  message: string,
): ErrorMessage {
  const ended = endsSubscription(code);
  return { type: "error", subscription_id: subscriptionId, code, message, ended };
}

/**
 * Builds the error that reader functions throw to refuse a message. Each frame gets exactly one
 * response.
 */
export function refusal(
  code: SubscriptionCode,
  subscriptionId: string,
  message: string,
): SubscriptionError {
  return new SubscriptionError(errorMessage(code, subscriptionId, message));
}

/** Returns the type of a message. @throws {SubscriptionError} INVALID_MESSAGE */
export function messageTypeOf({ value }: Decoded): MessageType {
  const fields = objectOf(value);
  if (fields === undefined) {
    const example = '{"type": "ping", "id": "1"}';
    throw invalidMessage(
      `Cannot read the message: it is ${kindOf(value)}, but must be an object such as ${example}`,
    );
  }
  const { type } = fields;
  if (typeof type === "string" && MESSAGE_TYPES.has(type)) return type as MessageType;
  throw invalidMessage(`Cannot read the message: ${typeFault(fields)}`);
}

/** Explains a type that is missing, not a string, or unknown. */
function typeFault(fields: Readonly<Record<string, unknown>>): string {
  const { type } = fields;
  const known = `the types are ${[...MESSAGE_TYPES].join(", ")}`;
  if (type === undefined) {
    const miss = nearMissOf(fields, TYPE_FIELD);
    return `it has no "type": ${known}${miss === undefined ? "" : `; ${miss}`}`;
  }
  if (typeof type !== "string") return `"type" is ${kindOf(type)}, but must be a string; ${known}`;
  const word = type.toLowerCase();
  const shown = JSON.stringify(shortened(type));
  if (STATEMENT_TYPES.has(word)) {
    return `there is no message type ${shown}; ${known}; to run statements, use POST /v1/api/sql`;
  }
  const nearest = OTHER_TYPES.get(word) ?? nearestName(type, MESSAGE_TYPES);
  const question = nearest === undefined ? "" : `; did you mean ${nearest}?`;
  return `there is no message type ${shown}; ${known}${question}`;
}

function shortened(text: string): string {
  return text.length <= SHOWN_CHARS_MAX ? text : `${text.slice(0, SHOWN_CHARS_MAX)}…`;
}

/** Reads an `authenticate` message. @throws {SubscriptionError} INVALID_MESSAGE */
export function readAuthenticate({ value }: Decoded): AuthenticateFields {
  const fields = objectOf(value) ?? {};
  const token = fields["token"];
  if (typeof token !== "string") throw missing("authenticate", "token", token);
  const method = fields["method"] ?? "jwt";
  if (typeof method !== "string") throw missing("authenticate", "method", method);
  const protocol = fields["protocol"] ?? {};
  const { serialization, compression } = objectOf(protocol) ?? {};
  const isKnown =
    objectOf(protocol) !== undefined &&
    (serialization === undefined || serialization === "json" || serialization === "msgpack") &&
    (compression === undefined || compression === "gzip" || compression === "none");
  if (!isKnown) {
    throw invalidMessage(
      'Cannot read the authenticate message: in "protocol", serialization must be json or ' +
        "msgpack, and compression must be gzip or none",
    );
  }
  return { method, token, serialization, compression };
}

/**
 * Reads the id of a subscribe message.
 *
 * @throws {SubscriptionError} INVALID_MESSAGE, INVALID_SUBSCRIPTION_ID
 */
export function readSubscriptionId({ value }: Decoded): string {
  const subscription = objectOf(value)?.["subscription"];
  const fields = objectOf(subscription);
  if (fields === undefined) {
    throw invalidMessage(
      `Cannot read the subscribe message: "subscription" is ${kindOf(subscription)}, but ` +
        'must be an object such as {"id": "a", "sql": "SELECT …"}',
    );
  }
  const miss = nearMissOf(fields, SUBSCRIPTION_FIELDS);
  if (miss !== undefined) throw invalidMessage(`Cannot read subscribe: ${miss}`);
  const { id } = fields;
  if (typeof id !== "string") throw missing("subscribe", "subscription.id", id);
  if (id.trim() === "" || !hasAtMost(id, ID_CHARS_MAX) || !id.isWellFormed()) {
    throw refusal(
      "INVALID_SUBSCRIPTION_ID",
      "invalid_subscription",
      `Cannot subscribe: the id must have 1 to ${ID_CHARS_MAX} characters, and must not be blank`,
    );
  }
  return id;
}

/**
 * Reads the remaining fields of a subscribe message, once its id is known. Numbers in `params`
 * keep all of their digits.
 *
 * @throws {SubscriptionError} INVALID_MESSAGE, INVALID_OPTIONS, INVALID_SQL, INVALID_PARAMETER
 */
export function readSpec(decoded: Decoded, id: string, limits: ParameterLimits): SubscriptionSpec {
  const fields = objectOf(objectOf(decoded.value)?.["subscription"]) ?? {};
  const { sql, namespace_id: namespace } = fields;
  if (typeof sql !== "string") throw missing("subscribe", "subscription.sql", sql);
  if (
    sql.length > SUBSCRIPTION_SQL_BYTES_MAX ||
    Buffer.byteLength(sql) > SUBSCRIPTION_SQL_BYTES_MAX
  ) {
    const message = `Cannot subscribe: "sql" must have at most ${SUBSCRIPTION_SQL_BYTES_MAX} bytes`;
    throw refusal("INVALID_SQL", id, message);
  }
  if (!sql.isWellFormed()) {
    throw refusal("INVALID_SQL", id, 'Cannot subscribe: "sql" contains an unpaired surrogate');
  }
  const isAbsent = namespace === undefined || namespace === null;
  if (!isAbsent && (typeof namespace !== "string" || namespace === "")) {
    const message = 'Cannot subscribe: "namespace_id" must be the name of a namespace';
    throw refusal("INVALID_OPTIONS", id, message);
  }
  // The live engine validates the options, because it knows their meaning.
  const options = fields["options"] as SubscriptionSpec["options"];
  const params = readParams(decoded, fields["params"], { id, limits });
  return {
    id,
    sql,
    ...(options === undefined ? {} : { options }),
    ...(params.length === 0 ? {} : { params }),
    ...(typeof namespace === "string" ? { namespace_id: namespace } : {}),
  };
}

/**
 * Reads a `next_batch` message. Returns the id of its subscription.
 * @throws {SubscriptionError} INVALID_MESSAGE
 */
export function readNextBatch({ value }: Decoded): string | undefined {
  const fields = objectOf(value) ?? {};
  const id = fields["subscription_id"] ?? undefined;
  if (id !== undefined && typeof id !== "string") {
    throw missing("next_batch", "subscription_id", id);
  }
  return id;
}

/**
 * Reads an `unsubscribe` message. Returns the id of its subscription.
 * @throws {SubscriptionError} INVALID_MESSAGE
 */
export function readUnsubscribe({ value }: Decoded): string {
  const id = objectOf(value)?.["subscription_id"];
  if (typeof id !== "string") throw missing("unsubscribe", "subscription_id", id);
  return id;
}

/**
 * Reads the id of a topic consumer.
 *
 * @throws {SubscriptionError} INVALID_MESSAGE
 */
export function readConsumerId({ value }: Decoded, type: MessageType): string {
  const id = objectOf(value)?.["id"];
  if (typeof id !== "string") throw missing(type, "id", id);
  if (id.trim() !== "" && hasAtMost(id, ID_CHARS_MAX) && id.isWellFormed()) return id;
  throw invalidMessage(
    `Cannot read the ${type} message: the id must have 1 to ${ID_CHARS_MAX} characters, and ` +
      "must not be blank",
  );
}

/** Reads a `ping` message. @throws {SubscriptionError} INVALID_MESSAGE */
export function readPing({ value }: Decoded): string | undefined {
  const id = objectOf(value)?.["id"] ?? undefined;
  if (id === undefined) return undefined;
  if (typeof id === "string" && hasAtMost(id, PING_ID_CHARS_MAX)) return id;
  throw invalidMessage(
    `Cannot read the ping message: the id must be a string of at most ${PING_ID_CHARS_MAX} ` +
      "characters",
  );
}

/**
 * Returns whether a string has at most `charsMax` characters. `length` would count characters
 * outside the basic multilingual plane twice.
 */
function hasAtMost(text: string, charsMax: number): boolean {
  if (text.length <= charsMax) return true;
  return text.length <= 2 * charsMax && Array.from(text).length <= charsMax;
}

function readParams(
  decoded: Decoded,
  params: unknown,
  { id, limits }: { id: string; limits: ParameterLimits },
): readonly unknown[] {
  if (params === undefined || params === null) return [];
  if (!Array.isArray(params)) {
    throw refusal("INVALID_PARAMETER", id, 'Cannot subscribe: "params" must be an array');
  }
  try {
    if (decoded.text === undefined) return checkedValues(params, limits);
    const pathToParams = ["subscription", "params"];
    return parametersFromJson(params, decoded.text, { pathToParams, limits });
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    throw refusal("INVALID_PARAMETER", id, error.message);
  }
}

function missing(type: string, field: string, value: unknown): SubscriptionError {
  return invalidMessage(
    `Cannot read the ${type} message: "${field}" is ${kindOf(value)}, but must be a string`,
  );
}

function invalidMessage(message: string): SubscriptionError {
  return refusal("INVALID_MESSAGE", PROTOCOL_WORD, message);
}
