/** Tests frames: every message survives a round trip, and every malformed frame is refused. */
import { expect, test } from "bun:test";
import { Packr, Unpackr } from "msgpackr";
import type { SharedMessage } from "../../../src/live/mod.ts";
import { SubscriptionError } from "../../../src/live/mod.ts";
import type { DataMessage } from "../../../src/protocol/mod.ts";
import { decodeFrame } from "../../../src/server/frames/decode.ts";
import { frameOf, jsonFromMessage } from "../../../src/server/frames/encode.ts";
import { gunzip, gzipOf } from "../../../src/server/frames/gzip.ts";
import { msgpackFromMessage, valueFromMsgpack } from "../../../src/server/frames/msgpack.ts";
import { boundNumbers } from "../../support/live_parts.ts";
import { SeededRandom, seedOf } from "../../support/seeded_random.ts";

const CHANGE: DataMessage = {
  type: "change",
  subscription_id: "m1",
  change_type: "update",
  rows: [
    {
      id: 8,
      text: "hé 🌊",
      gone: null,
      flag: true,
      ratio: 0.1,
      negative: -5,
      big: 9007199254740993n,
      vector: [0.5, 1, -2],
      _seq: 114809262571520,
    },
  ],
  old_values: [{ id: 8, _seq: 114809241600000 }],
  ts: 1795255205120,
  commit_seq: 114809262571520,
};

/**
 * Decodes a map with its keys exactly as written, because the server's decoder renames one of
 * them.
 */
function decodeMap(bytes: Uint8Array): Map<string, unknown> | undefined {
  return new Unpackr({ useRecords: false, mapsAsObjects: false }).unpack(bytes);
}

function shared(message: DataMessage): SharedMessage {
  return { message, encoded: [] };
}

test("jsonFromMessage writes a bigint as decimal text", () => {
  const [row] = (JSON.parse(jsonFromMessage(CHANGE)) as { rows: Record<string, unknown>[] }).rows;
  expect(row).toMatchObject({ big: "9007199254740993", _seq: 114809262571520, text: "hé 🌊" });
});

test("Every whole number is encoded as an integer: 0xcb occurs only for 0.1 and 0.5.", () => {
  const bytes = msgpackFromMessage(CHANGE);
  const decoded = valueFromMsgpack(bytes)?.value as typeof CHANGE;
  expect(decoded.rows[0]).toEqual(CHANGE.rows[0]);
  expect(decoded).toEqual(CHANGE);
  // Whole numbers are encoded as integers, so only 0.1 and 0.5 have the head 0xcb of a double.
  const doubles = [...bytes.keys()].filter((at) => bytes[at] === 0xcb);
  expect(doubles.length).toBe(2);
});

test("msgpackFromMessage writes -0 as the integer 0, also in an array, as JSON does", () => {
  const numbers = [-0, [-0]];
  const message = { ...CHANGE, rows: [{ numbers }], old_values: [] };
  const decoded = valueFromMsgpack(msgpackFromMessage(message))?.value as typeof CHANGE;
  const read = JSON.parse(jsonFromMessage(message)) as typeof CHANGE;
  for (const { rows } of [decoded, read]) {
    const cells = rows[0]?.["numbers"] as unknown[];
    expect(cells.flat().map((cell) => Object.is(cell, 0))).toEqual([true, true]);
  }
});

test("msgpackFromMessage writes a column with any name", () => {
  const row = JSON.parse('{"id":1,"__proto__":2}') as { id: number };
  const bytes = msgpackFromMessage({ ...CHANGE, rows: [row], old_values: [] });
  const [written] = (decodeMap(bytes)?.get("rows") as Map<string, unknown>[] | undefined) ?? [];
  expect([...(written ?? [])]).toEqual([
    ["id", 1],
    ["__proto__", 2],
  ]);
});

test("frameOf creates each form once, and gzips only frames that become smaller", () => {
  const long = { ...CHANGE, rows: Array.from({ length: 50 }, () => ({ text: "x".repeat(40) })) };
  for (const serialization of ["json", "msgpack"] as const) {
    const message = shared(long);
    const plain = frameOf(message, { serialization, isGzipOn: false });
    const packed = frameOf(message, { serialization, isGzipOn: true });
    expect(typeof plain).toBe(serialization === "json" ? "string" : "object");
    expect(packed[0] as unknown).toBe(0x1f);
    expect(packed.length).toBeLessThan(plain.length);
    expect(frameOf(message, { serialization, isGzipOn: true })).toBe(packed);
    const small = shared(CHANGE);
    expect(frameOf(small, { serialization, isGzipOn: true })).toBe(
      frameOf(small, { serialization, isGzipOn: false }),
    );
  }
});

test("frameOf counts bytes rather than characters before it gzips", () => {
  const gzip = { serialization: "json", isGzipOn: true } as const;
  const sized = (text: string): SharedMessage => shared({ ...CHANGE, rows: [{ text }] });
  const around = Buffer.byteLength(frameOf(sized(""), gzip));
  const room = 512 - around;
  expect(frameOf(sized("x".repeat(room - 1)), gzip)).toBeString();
  expect(frameOf(sized("x".repeat(room)), gzip)).toBeInstanceOf(Uint8Array);
  // Each of these characters takes two bytes, so the text has fewer characters than bytes.
  const text = "x".repeat(room % 2) + "é".repeat((room - (room % 2)) / 2);
  expect(frameOf(sized(text), gzip)).toBeInstanceOf(Uint8Array);
});

test("gzipOf leaves 511 bytes uncompressed, compresses 512, and gives up on noise", () => {
  expect(gzipOf(new Uint8Array(511))).toBeUndefined();
  expect(gzipOf(new Uint8Array(512))).toBeDefined();
  expect(gzipOf(new Uint8Array(new SeededRandom(1).bytes(2000)))).toBeUndefined();
});

test("gunzip stops at its limit and refuses damaged input", () => {
  const packed = Bun.gzipSync(new Uint8Array(100_000));
  expect(gunzip(packed, 100_000)).toHaveLength(100_000);
  expect(gunzip(packed, 99_999)).toBe("too large");
  expect(gunzip(packed.subarray(0, 30), 100_000)).toBe("malformed");
  expect(gunzip(Uint8Array.of(0x1f, 0x8b, 9, 9), 100)).toBe("malformed");
});

const packr = new Packr({ useRecords: false, variableMapSize: true });

test("valueFromMsgpack reads everything in the subset", () => {
  const value = {
    type: "subscribe",
    n: [0, -1, 127, 128, -33, 65536, 2 ** 40, 1.5, null, true, false],
    deep: { er: { still: "x".repeat(300) } },
    many: Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`k${index}`, index])),
  };
  expect(valueFromMsgpack(packr.pack(value))).toEqual({ value });
  expect(valueFromMsgpack(Uint8Array.of(0xcf, 0, 0x20, 0, 0, 0, 0, 0, 1))).toEqual({
    value: 9007199254740993n,
  });
});

test("parameters: a whole number in MessagePack is BIGINT in either form, and any other number is DOUBLE", () => {
  const packed = [2, 2.5, 2 ** 40, 2n ** 60n, 1e300];
  const decoded = valueFromMsgpack(new Packr({ useRecords: false }).pack(packed));
  const params = decoded?.value as unknown[];
  expect(boundNumbers(params)).toEqual([
    "2",
    "2.5",
    "1099511627776",
    "1152921504606846976",
    "1e+300",
  ]);
});

test.each<[string, number[]]>([
  ["nothing", []],
  ["the unused byte", [0xc1]],
  ["bin", [0xc4, 1, 0]],
  ["ext", [0xc7, 1, 5, 0]],
  ["fixext", [0xd4, 1, 0]],
  ["the timestamp type", [0xd6, 0xff, 0, 0, 0, 0]],
  ["a map with an integer key", [0x81, 0x01, 0x02]],
  ["a map without its value", [0x81, 0xa1, 0x61]],
  ["a string that ends early", [0xa5, 0x61]],
  ["a string that is not UTF-8", [0xa1, 0xff]],
  ["an array that promises more elements than it has", [0xdd, 0xff, 0xff, 0xff, 0xff]],
  ["a map that promises more entries than it has", [0xdf, 0x7f, 0xff, 0xff, 0xff]],
  ["two values", [0x01, 0x02]],
  ["a cut double", [0xcb, 0, 0, 0]],
  ["too deep nesting", [...Array.from({ length: 70 }, () => 0x91), 0x01]],
])("valueFromMsgpack refuses %s", (_what, bytes) => {
  expect(valueFromMsgpack(Uint8Array.from(bytes))).toBeUndefined();
});

test("valueFromMsgpack reads at most 10,000 parts that are not values", () => {
  const members = (count: number): Record<string, unknown> =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]));
  for (const value of [members(9999), Array.from({ length: 32_767 }, () => "x")]) {
    expect(valueFromMsgpack(packr.pack(value))).toEqual({ value });
  }
  for (const value of [members(10_000), Array.from({ length: 10_000 }, () => [1])]) {
    expect(valueFromMsgpack(packr.pack(value))).toBeUndefined();
  }
});

test("valueFromMsgpack refuses or reads any bytes, and never throws", () => {
  const random = new SeededRandom(seedOf(7));
  const sample = packr.pack({ type: "ping", id: "p1", list: [1, 2.5, "x", null] });
  for (let round = 0; round < 20_000; round += 1) {
    const bytes = random.chance(0.5) ? random.bytes(random.below(20)) : sample.slice();
    if (bytes.length > 0) bytes[random.below(bytes.length)] = random.below(256);
    valueFromMsgpack(bytes);
  }
  for (let cut = 0; cut < sample.length; cut += 1) {
    expect(valueFromMsgpack(sample.subarray(0, cut))).toBeUndefined();
  }
});

function codeOf(frame: string | Uint8Array, serialization: "json" | "msgpack", bytesMax = 1000) {
  try {
    decodeFrame(frame, { serialization, bytesMax });
    return "read";
  } catch (error) {
    if (error instanceof SubscriptionError) return error.response.code;
    throw error;
  }
}

const PING = packr.pack({ type: "ping" });

test.each<[string, string | Uint8Array, "json" | "msgpack", string]>([
  ["JSON text under JSON", '{"type":"ping"}', "json", "read"],
  ["JSON text under MessagePack", '{"type":"ping"}', "msgpack", "read"],
  ["text that is not JSON", "{", "json", "INVALID_MESSAGE"],
  ["JSON nested too deep", "[".repeat(200) + "]".repeat(200), "json", "INVALID_MESSAGE"],
  ["binary under JSON", PING, "json", "UNSUPPORTED_DATA"],
  ["MessagePack", PING, "msgpack", "read"],
  ["gzip of MessagePack", Bun.gzipSync(new Uint8Array(PING)), "msgpack", "read"],
  ["bad MessagePack", Uint8Array.of(0xc1), "msgpack", "UNSUPPORTED_DATA"],
  ["bad gzip", Uint8Array.of(0x1f, 0x8b, 0), "msgpack", "UNSUPPORTED_DATA"],
  ["binary authenticate", packr.pack({ type: "authenticate" }), "msgpack", "UNSUPPORTED_DATA"],
  ["text at the limit", `"${"x".repeat(998)}"`, "json", "read"],
  ["text above the limit", `"${"x".repeat(999)}"`, "json", "MESSAGE_TOO_LARGE"],
  ["text above the limit in UTF-8", `"${"é".repeat(500)}"`, "json", "MESSAGE_TOO_LARGE"],
  ["binary above the limit", new Uint8Array(1001), "msgpack", "MESSAGE_TOO_LARGE"],
  ["a gzip bomb", Bun.gzipSync(new Uint8Array(1001)), "msgpack", "MESSAGE_TOO_LARGE"],
])("decodeFrame of %s", (_what, frame, serialization, code) => {
  expect(codeOf(frame, serialization)).toBe(code);
});
