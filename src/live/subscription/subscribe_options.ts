/**
 * Reads the options and parameters of `subscribe` as a client sent them.
 *
 * The message types describe what a correct client sends, but no value is trusted here. The
 * query's id and SQL are checked where the message is read.
 */
import { DatabaseError } from "../../base/errors.ts";
import { type Seq, seqFromNumber } from "../../base/seq.ts";
import type { EndCode, SubscriptionSpec } from "../../protocol/mod.ts";
import type { LiveRequest, SqlParameter } from "../../sql/mod.ts";
import { SubscriptionError } from "../contract/live.ts";
import { ending } from "../contract/live_errors.ts";

export type ReplayMode = "all" | "latest";

/** The position at which a subscription begins. */
export type Start =
  | { readonly kind: "live" }
  | { readonly kind: "snapshot"; readonly lastRows: number | undefined }
  | {
      readonly kind: "resume";
      readonly position: Seq;
      readonly mode: ReplayMode;
      /** The token claims under which the client received its rows, if the client sends them. */
      readonly claimsKey: string | undefined;
    };

export interface SubscriptionStart {
  readonly start: Start;
  readonly batchSize: number;
}

/**
 * Returns whether the client requested a maintained or an evaluated result; undefined if it did
 * not choose.
 *
 * @throws {SubscriptionError} INVALID_OPTIONS
 */
export function wayFromSpec({ id, options }: SubscriptionSpec): LiveRequest["way"] {
  const way: unknown = options?.way ?? undefined;
  if (way === undefined || way === "maintained" || way === "evaluated") return way;
  throw refused(id, "INVALID_OPTIONS", 'the option "way" must be "maintained" or "evaluated"');
}

/**
 * Reads the position at which a subscription starts, and its batch size.
 * @throws {SubscriptionError} INVALID_OPTIONS, INVALID_RESUME
 */
export function startFromSpec(
  spec: SubscriptionSpec,
  limits: { batchSizeDefault: number; batchSizeMax: number },
): SubscriptionStart {
  const { id, options } = spec;
  const batchSizeDefault = Math.min(limits.batchSizeDefault, limits.batchSizeMax);
  if (options === null) return { start: { kind: "live" }, batchSize: batchSizeDefault };
  if (options === undefined) return { start: fullSnapshot(), batchSize: batchSizeDefault };
  if (typeof options !== "object" || Array.isArray(options)) {
    throw refused(id, "INVALID_OPTIONS", "the options must be an object or null");
  }
  const batchSize = wholeOption(id, "batch_size", { value: options.batch_size, min: 1 });
  const lastRows = wholeOption(id, "last_rows", { value: options.last_rows, min: 0 });
  const replay: unknown = options.replay ?? "all";
  if (replay !== "all" && replay !== "latest") {
    throw refused(id, "INVALID_OPTIONS", 'the option "replay" must be "all" or "latest"');
  }
  const claims: unknown = options.claims ?? undefined;
  if (claims !== undefined && typeof claims !== "string") {
    throw refused(
      id,
      "INVALID_OPTIONS",
      'the option "claims" must be the string from a subscription_ack message',
    );
  }
  const given: unknown = options.from_seq_id ?? options.from ?? undefined;
  const start: Start =
    given === undefined
      ? { kind: "snapshot", lastRows }
      : { kind: "resume", position: positionFrom(id, given), mode: replay, claimsKey: claims };
  return { start, batchSize: Math.min(batchSize ?? batchSizeDefault, limits.batchSizeMax) };
}

/**
 * Reads the parameters of a subscription.
 * @throws {DatabaseError} INVALID_PARAMETER, which gives the 1-based position.
 */
export function parametersFromSpec(params: SubscriptionSpec["params"]): SqlParameter[] {
  const given: unknown = params ?? [];
  if (!Array.isArray(given)) {
    throw new DatabaseError(
      "INVALID_PARAMETER",
      "Cannot bind the parameters: params must be an array",
    );
  }
  return given.map((value: unknown, index) => {
    if (value === null || typeof value === "boolean" || typeof value === "string") return value;
    // The value is a number from a MessagePack message. JavaScript encoders write integers beyond
    // 32 bits as float64, so an integral value is a BIGINT whether it arrives as an integer or as
    // a float.
    if (typeof value === "number" || typeof value === "bigint") return { number: String(value) };
    if (isWritten(value, "number") || isWritten(value, "json")) return value;
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind parameter ${index + 1}: values of type ${typeof value} are not supported`,
    );
  });
}

/**
 * Returns whether a parameter has the given written form: a number with its original digits,
 * because `1.0` is DOUBLE and `1` is BIGINT, or the JSON text of a list or an object.
 */
function isWritten<Form extends "number" | "json">(
  value: unknown,
  form: Form,
): value is Readonly<Record<Form, string>> {
  return (
    typeof value === "object" &&
    value !== null &&
    form in value &&
    typeof (value as Readonly<Record<string, unknown>>)[form] === "string"
  );
}

/** Returns the error for a position higher than every seq issued so far. */
export function invalidResume(id: string): SubscriptionError {
  return refused(
    id,
    "INVALID_RESUME",
    "the position is above the newest _seq, or its commit was lost in a restore or a crash; " +
      "subscribe without a position",
  );
}

function fullSnapshot(): Start {
  return { kind: "snapshot", lastRows: undefined };
}

function wholeOption(
  id: string,
  name: string,
  { value, min }: { value: unknown; min: number },
): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && Number.isInteger(value) && value >= min) return value;
  // MessagePack may deliver an integer as a bigint.
  if (typeof value === "bigint" && value >= BigInt(min)) return Number(value);
  throw refused(
    id,
    "INVALID_OPTIONS",
    `the option "${name}" must be an integer of at least ${min}`,
  );
}

function positionFrom(id: string, given: unknown): Seq {
  const isText = typeof given === "string" && /^\d+$/.test(given);
  if (!isText && typeof given !== "number" && typeof given !== "bigint") {
    throw refused(id, "INVALID_OPTIONS", "the position must be an integer or a decimal string");
  }
  const number = Number(given);
  const position = seqFromNumber(number);
  if (position !== undefined) return position;
  // A string may contain more digits than a number can represent.
  if (number > 0 && (isText || Number.isInteger(number))) throw invalidResume(id);
  throw refused(id, "INVALID_OPTIONS", "the position must be an integer of at least 0");
}

function refused(id: string, code: EndCode, what: string): SubscriptionError {
  return new SubscriptionError(ending(id, code, `Cannot subscribe "${id}": ${what}`));
}
