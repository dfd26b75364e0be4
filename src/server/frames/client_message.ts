/**
 * Client messages on `/v1/ws`: from a decoded value to typed fields, or to the error that the
 * client gets.
 *
 * A message is looked at in the order of the contract: its type, then whether the connection may
 * send it, then its fields. So fields are read by one function per type.
 */
import { DatabaseError } from "../../base/errors.ts";
import { SubscriptionError } from "../../live/mod.ts";
import {
  type ErrorMessage,
  endsSubscription,
  type SubscriptionCode,
  type SubscriptionSpec,
} from "../../protocol/mod.ts";
import { checkedValues, type ParameterLimits, parametersFromJson } from "../http/parameters.ts";
import { objectOf } from "../http/request_body.ts";
import type { Serialization } from "./encode.ts";

/** `subscription_id` of errors that concern no subscription. */
export const PROTOCOL_WORD = "protocol";

const ID_CHARS_MAX = 128;
const PING_ID_CHARS_MAX = 64;
const SUBSCRIPTION_SQL_BYTES_MAX = 65536;

/** A decoded frame: a JSON text keeps the digits that its value may have lost. */
export interface Decoded {
  readonly value: unknown;
  /** Undefined for MessagePack, whose numbers are exact. */
  readonly text: string | undefined;
}

export type MessageType = "authenticate" | "subscribe" | "next_batch" | "unsubscribe" | "ping";

const MESSAGE_TYPES: ReadonlySet<string> = new Set<MessageType>([
  "authenticate",
  "subscribe",
  "next_batch",
  "unsubscribe",
  "ping",
]);

export interface AuthenticateFields {
  readonly method: string;
  readonly token: string;
  readonly serialization: Serialization | undefined;
  readonly compression: "gzip" | "none" | undefined;
}

/** An error message, `ended` as its code says. */
export function errorMessage(
  code: SubscriptionCode,
  subscriptionId: string,
  message: string,
): ErrorMessage {
  const ended = endsSubscription(code);
  return { type: "error", subscription_id: subscriptionId, code, message, ended };
}

/** What refuses a message; thrown by the readers below, answered once per frame. */
export function refusal(
  code: SubscriptionCode,
  subscriptionId: string,
  message: string,
): SubscriptionError {
  return new SubscriptionError(errorMessage(code, subscriptionId, message));
}

/** @throws {SubscriptionError} INVALID_MESSAGE */
export function messageTypeOf({ value }: Decoded): MessageType {
  const type = objectOf(value)?.["type"];
  if (typeof type === "string" && MESSAGE_TYPES.has(type)) return type as MessageType;
  throw invalidMessage("Cannot read the message: it needs a known type");
}

/** @throws {SubscriptionError} INVALID_MESSAGE */
export function readAuthenticate({ value }: Decoded): AuthenticateFields {
  const fields = objectOf(value) ?? {};
  const token = fields["token"];
  if (typeof token !== "string") throw missing("authenticate", "token");
  const method = fields["method"] ?? "jwt";
  if (typeof method !== "string") throw missing("authenticate", "method");
  const protocol = fields["protocol"] ?? {};
  const { serialization, compression } = objectOf(protocol) ?? {};
  const isKnown =
    objectOf(protocol) !== undefined &&
    (serialization === undefined || serialization === "json" || serialization === "msgpack") &&
    (compression === undefined || compression === "gzip" || compression === "none");
  if (!isKnown) {
    throw invalidMessage(
      "Cannot read authenticate: protocol holds serialization json or msgpack, and compression gzip or none",
    );
  }
  return { method, token, serialization, compression };
}

/**
 * The id of a subscribe message.
 *
 * @throws {SubscriptionError} INVALID_MESSAGE, INVALID_SUBSCRIPTION_ID
 */
export function readSubscriptionId({ value }: Decoded): string {
  const id = objectOf(objectOf(value)?.["subscription"])?.["id"];
  if (typeof id !== "string") throw missing("subscribe", "subscription.id");
  if (id.trim() === "" || !hasAtMost(id, ID_CHARS_MAX) || !id.isWellFormed()) {
    throw refusal(
      "INVALID_SUBSCRIPTION_ID",
      "invalid_subscription",
      `Cannot subscribe: the id must have 1 to ${ID_CHARS_MAX} characters and not be blank`,
    );
  }
  return id;
}

/**
 * The rest of a subscribe message, once its id is known.
 *
 * Numbers of `params` keep their digits.
 *
 * @throws {SubscriptionError} INVALID_MESSAGE, INVALID_OPTIONS, INVALID_SQL, INVALID_PARAMETER
 */
export function readSpec(decoded: Decoded, id: string, limits: ParameterLimits): SubscriptionSpec {
  const fields = objectOf(objectOf(decoded.value)?.["subscription"]) ?? {};
  const { sql, namespace_id: namespace } = fields;
  if (typeof sql !== "string") throw missing("subscribe", "subscription.sql");
  if (
    sql.length > SUBSCRIPTION_SQL_BYTES_MAX ||
    Buffer.byteLength(sql) > SUBSCRIPTION_SQL_BYTES_MAX
  ) {
    const message = `Cannot subscribe: sql may have at most ${SUBSCRIPTION_SQL_BYTES_MAX} bytes`;
    throw refusal("INVALID_SQL", id, message);
  }
  if (!sql.isWellFormed()) {
    throw refusal("INVALID_SQL", id, "Cannot subscribe: sql has half a surrogate pair");
  }
  const isAbsent = namespace === undefined || namespace === null;
  if (!isAbsent && (typeof namespace !== "string" || namespace === "")) {
    const message = "Cannot subscribe: namespace_id must be the name of a namespace";
    throw refusal("INVALID_OPTIONS", id, message);
  }
  // Options are read by the live engine, which knows what each means.
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

/** @throws {SubscriptionError} INVALID_MESSAGE */
export function readNextBatch({ value }: Decoded): string | undefined {
  const fields = objectOf(value) ?? {};
  const id = fields["subscription_id"] ?? undefined;
  if (id !== undefined && typeof id !== "string") throw missing("next_batch", "subscription_id");
  return id;
}

/** @throws {SubscriptionError} INVALID_MESSAGE */
export function readUnsubscribe({ value }: Decoded): string {
  const id = objectOf(value)?.["subscription_id"];
  if (typeof id !== "string") throw missing("unsubscribe", "subscription_id");
  return id;
}

/** @throws {SubscriptionError} INVALID_MESSAGE */
export function readPing({ value }: Decoded): string | undefined {
  const id = objectOf(value)?.["id"] ?? undefined;
  if (id === undefined) return undefined;
  if (typeof id === "string" && hasAtMost(id, PING_ID_CHARS_MAX)) return id;
  throw invalidMessage(`Cannot read ping: id is text of at most ${PING_ID_CHARS_MAX} characters`);
}

/** Counts characters: one of those beyond 16 bits is two of what a string's length counts. */
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
    throw refusal("INVALID_PARAMETER", id, "Cannot subscribe: params must be an array");
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

function missing(type: string, field: string): SubscriptionError {
  return invalidMessage(`Cannot read ${type}: "${field}" must be text`);
}

function invalidMessage(message: string): SubscriptionError {
  return refusal("INVALID_MESSAGE", PROTOCOL_WORD, message);
}
