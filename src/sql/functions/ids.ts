/**
 * Defines functions that generate ids (SNOWFLAKE_ID, UUID versions 4 and 7, ULID), and a function
 * that returns the time of a seq.
 *
 *     UUID v7   48 bits ms │ 4 bits version 7 │ 12 bits random │ 2 bits variant │ 62 bits random
 *     ULID      48 bits ms │ 80 bits random, in 26 digits of base 32
 */
import { DatabaseError } from "../../base/errors.ts";
import { seqFromNumber } from "../../base/seq.ts";
import { BIGINT, DATETIME, TEXT, UUID, type Value, type Whole } from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { CallDeps, ScalarFunction } from "./base/function.ts";

/**
 * The name of the function that generates the server's own ids. The binder records each call,
 * because a single component issues these ids.
 */
export const SNOWFLAKE_ID = "snowflake_id";

const MICROS_PER_MS = 1000;
const ULID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

function uuidText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function withVersion(bytes: Uint8Array, version: number): string {
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | (version << 4);
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return uuidText(bytes);
}

function writeMs(bytes: Uint8Array, call: CallDeps): void {
  let ms = Math.floor(call.clockMicros() / MICROS_PER_MS);
  for (let at = 5; at >= 0; at -= 1) {
    bytes[at] = ms % 256;
    ms = Math.floor(ms / 256);
  }
}

function uuidV4(_: readonly Value[], call: CallDeps): string {
  return withVersion(Uint8Array.from(call.randomBytes(16)), 4);
}

function uuidV7(_: readonly Value[], call: CallDeps): string {
  const bytes = new Uint8Array(16);
  bytes.set(call.randomBytes(10), 6);
  writeMs(bytes, call);
  return withVersion(bytes, 7);
}

function ulid(_: readonly Value[], call: CallDeps): string {
  const bytes = new Uint8Array(16);
  bytes.set(call.randomBytes(10), 6);
  writeMs(bytes, call);
  let value = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  for (let digit = 0; digit < 26; digit += 1) {
    text = (ULID_DIGITS[Number(value & 31n)] ?? "0") + text;
    value >>= 5n;
  }
  return text;
}

function seqTime([value = null]: readonly Value[], call: CallDeps): Value {
  const seq = seqFromNumber(Number(value));
  if (seq === undefined) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot use ${(value as Whole).toString()} as a sequence id: it must be between 0 and 2^53-1`,
    );
  }
  return call.commitMs(seq) * MICROS_PER_MS;
}

function seqAt([value = null]: readonly Value[], call: CallDeps): Value {
  const seq = call.lastSeqUpTo(Math.floor(Number(value) / MICROS_PER_MS) - 1) + 1;
  if (seqFromNumber(seq) !== undefined) return seq;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot find a sequence id for this time: it is later than the last possible id",
  );
}

export const ID_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    [SNOWFLAKE_ID],
    overload([], BIGINT, (_, call) => call.snowflakeId(), { volatility: "volatile" }),
  ),
  ...functionsNamed(["uuid_v7", "uuidv7"], overload([], UUID, uuidV7, { volatility: "volatile" })),
  ...functionsNamed(
    ["gen_random_uuid", "uuid_generate_v4", "uuid_v4", "uuidv4"],
    overload([], UUID, uuidV4, { volatility: "volatile" }),
  ),
  ...functionsNamed(["ulid"], overload([], TEXT, ulid, { volatility: "volatile" })),
  ...functionsNamed(["seq_time"], overload([BIGINT], DATETIME, seqTime)),
  ...functionsNamed(["seq_at"], overload([DATETIME], BIGINT, seqAt)),
];
