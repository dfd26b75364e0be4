/**
 * Reads what a client asked for: the options and parameters of `subscribe`, as they came.
 *
 * The types of the message say what a good client sends; here every value is distrusted. The id and
 * the text of the query were checked where the message was read.
 */
import { DatabaseError } from "../base/errors.ts";
import { type Seq, seqFromNumber } from "../base/seq.ts";
import type { EndCode, SubscriptionSpec } from "../protocol/mod.ts";
import type { Parameter } from "../sql/mod.ts";
import { SubscriptionError } from "./live.ts";
import { ending } from "./live_errors.ts";

export type ReplayMode = "all" | "latest";

/** How a subscription begins. */
export type Start =
  | { readonly kind: "live" }
  | { readonly kind: "snapshot"; readonly lastRows: number | undefined }
  | { readonly kind: "resume"; readonly position: Seq; readonly mode: ReplayMode };

export interface Wanted {
  readonly start: Start;
  readonly batchSize: number;
}

/** @throws {SubscriptionError} INVALID_OPTIONS, INVALID_RESUME */
export function wantedFromSpec(
  spec: SubscriptionSpec,
  limits: { batchSizeDefault: number; batchSizeMax: number },
): Wanted {
  const { id, options } = spec;
  const batchSizeDefault = Math.min(limits.batchSizeDefault, limits.batchSizeMax);
  if (options === null) return { start: { kind: "live" }, batchSize: batchSizeDefault };
  if (options === undefined) return { start: fullSnapshot(), batchSize: batchSizeDefault };
  if (typeof options !== "object" || Array.isArray(options)) {
    throw refused(id, "INVALID_OPTIONS", "options must be an object or null");
  }
  const batchSize = wholeOption(id, "batch_size", { value: options.batch_size, min: 1 });
  const lastRows = wholeOption(id, "last_rows", { value: options.last_rows, min: 0 });
  const replay: unknown = options.replay ?? "all";
  if (replay !== "all" && replay !== "latest") {
    throw refused(id, "INVALID_OPTIONS", 'replay must be "all" or "latest"');
  }
  const given: unknown = options.from_seq_id ?? options.from ?? undefined;
  const start: Start =
    given === undefined
      ? { kind: "snapshot", lastRows }
      : { kind: "resume", position: positionFrom(id, given), mode: replay };
  return { start, batchSize: Math.min(batchSize ?? batchSizeDefault, limits.batchSizeMax) };
}

/** @throws {DatabaseError} INVALID_PARAMETER, naming the 1-based position. */
export function parametersFromSpec(params: SubscriptionSpec["params"]): Parameter[] {
  const given: unknown = params ?? [];
  if (!Array.isArray(given)) {
    throw new DatabaseError("INVALID_PARAMETER", "Cannot bind parameters: params must be an array");
  }
  return given.map((value: unknown, index) => {
    if (value === null || typeof value === "boolean" || typeof value === "string") return value;
    // Of MessagePack. Encoders in JavaScript write whole numbers beyond 32 bits as float64, so one
    // that is whole is BIGINT whichever form it came in.
    if (typeof value === "number" || typeof value === "bigint") return { number: String(value) };
    if (isWrittenNumber(value)) return value;
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind parameter ${index + 1}: arrays and objects are not values`,
      { hint: `send an array as text, "{1,2}", as in a = ANY($1), and JSON as text, too` },
    );
  });
}

/** A number that still has its digits: `1.0` is DOUBLE, `1` is BIGINT. */
function isWrittenNumber(value: unknown): value is { number: string } {
  return (
    typeof value === "object" &&
    value !== null &&
    "number" in value &&
    typeof value.number === "string"
  );
}

/** A position that lies above every id issued. */
export function invalidResume(id: string): SubscriptionError {
  return refused(
    id,
    "INVALID_RESUME",
    "the position is above the newest id issued, or its commit was lost in a restore or a crash; subscribe without a position",
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
  // A MessagePack integer may come as a bigint.
  if (typeof value === "bigint" && value >= BigInt(min)) return Number(value);
  throw refused(id, "INVALID_OPTIONS", `${name} must be an integer of ${min} or more`);
}

function positionFrom(id: string, given: unknown): Seq {
  const isText = typeof given === "string" && /^\d+$/.test(given);
  if (!isText && typeof given !== "number" && typeof given !== "bigint") {
    throw refused(id, "INVALID_OPTIONS", "a position must be an integer or a decimal string");
  }
  const number = Number(given);
  const position = seqFromNumber(number);
  if (position !== undefined) return position;
  // Digits may say more than a number holds.
  if (number > 0 && (isText || Number.isInteger(number))) throw invalidResume(id);
  throw refused(id, "INVALID_OPTIONS", "a position must be 0 or a positive integer");
}

function refused(id: string, code: EndCode, what: string): SubscriptionError {
  return new SubscriptionError(ending(id, code, `Cannot subscribe "${id}": ${what}`));
}
