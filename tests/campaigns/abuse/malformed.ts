/**
 * Malformed messages: a valid message in which a field is missing, has a different type, is too
 * long or is out of range; and bytes that are not a frame at all.
 */
import type { Chance } from "../../../scripts/support/chance.ts";

const RIGHT: readonly Readonly<Record<string, unknown>>[] = [
  { type: "ping", id: "p" },
  { type: "next_batch", subscription_id: "a", last_seq_id: 7 },
  { type: "unsubscribe", subscription_id: "a" },
  {
    type: "authenticate",
    method: "jwt",
    token: "a.b.c",
    protocol: { serialization: "json" },
  },
  {
    type: "subscribe",
    subscription: {
      id: "a",
      sql: "SELECT * FROM app.wall WHERE id = $1",
      params: [1],
      namespace_id: "app",
      options: {
        batch_size: 10,
        last_rows: 5,
        from_seq_id: 0,
        replay: "all",
        snapshot: true,
      },
    },
  },
];

const WRONG: readonly unknown[] = [
  null,
  true,
  -1,
  1.5,
  2 ** 53,
  1e308,
  "",
  "\u0000",
  "\ud800",
  "x".repeat(100_000),
  [],
  {},
  [[[[[[[[]]]]]]]],
  { __proto__: null, constructor: 1 },
  "SELECT",
  "SELECT * FROM app.wall; DROP TABLE app.wall",
  "(".repeat(5000),
];

/** Returns the payload of a text frame: JSON, or nearly JSON. */
export function malformedMessage(chance: Chance): string {
  const message = structuredClone(chance.pick(RIGHT)) as Record<string, unknown>;
  damage(message, chance);
  const text = JSON.stringify(message);
  switch (chance.below(6)) {
    case 0:
      return text.slice(0, chance.below(text.length));
    case 1:
      return "[".repeat(chance.below(100_000)) + text;
    default:
      return text;
  }
}

/**
 * Returns bytes that are not a valid frame, because they are unmasked, of a reserved kind, of an
 * absurd length, or random.
 */
export function malformedBytes(chance: Chance): Uint8Array {
  switch (chance.below(5)) {
    case 0:
      return Uint8Array.of(0x81, 0x02, 0x7b, 0x7d);
    case 1:
      return Uint8Array.of(0x80 | (3 + chance.below(5)), 0x80, 0, 0, 0, 0);
    case 2:
      return Uint8Array.of(0x81, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0);
    case 3:
      return Uint8Array.of(0x81, 0x82, 0, 0, 0, 0, 0xc3, 0x28);
    default:
      return Uint8Array.from({ length: 1 + chance.below(200) }, () => chance.below(256));
  }
}

/** Changes a single field, at any depth. */
function damage(value: Record<string, unknown>, chance: Chance): void {
  const key = chance.pick(Object.keys(value));
  const inner = value[key];
  if (typeof inner === "object" && inner !== null && !Array.isArray(inner) && chance.below(4) > 0) {
    damage(inner as Record<string, unknown>, chance);
    return;
  }
  if (chance.below(5) === 0) delete value[key];
  else value[key] = chance.pick(WRONG);
}
