/**
 * Encodes and decodes messages as MessagePack, in the subset that clients may use: nil, bool, int,
 * float64, str, array, and map with str keys. The types bin, ext and timestamp are not allowed.
 *
 * A client's frame is scanned before it is decoded. The scan checks that types, lengths, keys,
 * nesting and the number of values are within their limits, so that decoding can neither allocate
 * more memory than the frame justifies nor take too long.
 */
import { isUtf8 } from "node:buffer";
import { Packr, Unpackr } from "msgpackr";
import { JSON_PARTS_MAX } from "../../base/limits.ts";
import { setCell } from "../../live/mod.ts";
import type { ServerMessage } from "../../protocol/mod.ts";

/** The maximum nesting depth of a client message. No valid message has more than four levels. */
const DEPTH_MAX = 64;

const packr = new Packr({ useRecords: false, variableMapSize: true, encodeUndefinedAsNil: true });

/**
 * With this option, the decoder returns a 64-bit integer as a number if that is exact, and
 * otherwise as a bigint. The package supports the option, but its type declarations do not.
 */
const INT64_FORM = "auto" as "bigint";

const unpackr = new Unpackr({
  useRecords: false,
  mapsAsObjects: true,
  int64AsType: INT64_FORM,
});

/** Encodes a message. The bytes are copied, because the encoder reuses its buffer. */
export function msgpackFromMessage(message: ServerMessage): Uint8Array<ArrayBuffer> {
  return new Uint8Array(packr.pack(withWholeNumbers(message)));
}

/** Decodes a message. Returns undefined unless the bytes are exactly one value in the subset. */
export function valueFromMsgpack(bytes: Uint8Array): { value: unknown } | undefined {
  if (!isWellFormed(bytes)) return undefined;
  const value: unknown = unpackr.unpack(bytes);
  return { value };
}

/**
 * Converts integers to bigints. The encoder would write numbers that exceed 32 bits as float64,
 * but `_seq` and all other integers must be integers on the wire.
 */
function withWholeNumbers(value: unknown): unknown {
  if (typeof value === "number") {
    const isShort = value >= -0x80000000 && value <= 0xffffffff;
    return isShort || !Number.isSafeInteger(value) ? value : BigInt(value);
  }
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withWholeNumbers);
  const copy: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) setCell(copy, key, withWholeNumbers(member));
  return copy;
}

/**
 * An array or map that has not been read completely, with the number of elements, or of keys and
 * values, that remain.
 */
interface OpenCollection {
  remaining: number;
  isMap: boolean;
}

function isWellFormed(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const open: OpenCollection[] = [{ remaining: 1, isMap: false }];
  let offset = 0;
  let partCount = 0;
  for (;;) {
    let top = open.at(-1);
    while (top !== undefined && top.remaining === 0) {
      open.pop();
      top = open.at(-1);
    }
    if (top === undefined) return offset === bytes.length;
    // In a map, an odd number of remaining items means that the next item is a value.
    const isKey = top.isMap && top.remaining % 2 === 0;
    top.remaining -= 1;
    const item = itemAt(view, offset);
    if (item === undefined || (isKey && !item.isText)) return false;
    const end = offset + item.bytes;
    if (end > bytes.length) return false;
    // The text is checked here because the decoder would silently replace malformed bytes.
    if (item.isText && !isUtf8(bytes.subarray(offset + item.headBytes, end))) return false;
    offset = end;
    if (item.itemCount > bytes.length - offset) return false;
    partCount += item.partCount;
    if (partCount > JSON_PARTS_MAX) return false;
    if (item.itemCount > 0) {
      if (open.length > DEPTH_MAX) return false;
      open.push({ remaining: item.itemCount, isMap: item.isMap });
    }
  }
}

interface MsgpackItem {
  /** The size of the head in bytes, plus the size of the content for scalars. */
  readonly bytes: number;
  readonly headBytes: number;
  readonly isText: boolean;
  readonly isMap: boolean;
  /** The number of values inside an array or map: its elements, or its keys and values. */
  readonly itemCount: number;
  /** 1 for an array; 1 plus the number of members for a map. */
  readonly partCount: number;
}

/**
 * For scalars of fixed length, the number of content bytes after the one-byte head, keyed by the
 * head.
 */
const FIXED_LENGTHS: Readonly<Record<number, number>> = {
  0xc0: 0,
  0xc2: 0,
  0xc3: 0,
  0xca: 4,
  0xcb: 8,
  0xcc: 1,
  0xcd: 2,
  0xce: 4,
  0xcf: 8,
  0xd0: 1,
  0xd1: 2,
  0xd2: 4,
  0xd3: 8,
};

function itemAt(view: DataView, offset: number): MsgpackItem | undefined {
  const bytesLeft = view.byteLength - offset;
  if (bytesLeft < 1) return undefined;
  const head = view.getUint8(offset);
  if (head <= 0x7f || head >= 0xe0) return scalar(1);
  if (head <= 0x8f) return container(1, (head & 0x0f) * 2, true);
  if (head <= 0x9f) return container(1, head & 0x0f, false);
  if (head <= 0xbf) return text(1, head & 0x1f);
  const fixed = FIXED_LENGTHS[head];
  if (fixed !== undefined) return scalar(1 + fixed);
  const lengthBytes = lengthBytesOf(head);
  if (lengthBytes === undefined || bytesLeft < 1 + lengthBytes) return undefined;
  const length = uintAt(view, offset + 1, lengthBytes);
  if (head <= 0xdb) return text(1 + lengthBytes, length);
  if (head <= 0xdd) return container(1 + lengthBytes, length, false);
  return container(1 + lengthBytes, length * 2, true);
}

/**
 * Returns the size of the length field that follows the head of a long str, array or map;
 * undefined for bin, ext and the unused byte.
 */
function lengthBytesOf(head: number): 1 | 2 | 4 | undefined {
  switch (head) {
    case 0xd9:
      return 1;
    case 0xda:
    case 0xdc:
    case 0xde:
      return 2;
    case 0xdb:
    case 0xdd:
    case 0xdf:
      return 4;
    default:
      return undefined;
  }
}

function uintAt(view: DataView, offset: number, length: 1 | 2 | 4): number {
  if (length === 1) return view.getUint8(offset);
  return length === 2 ? view.getUint16(offset) : view.getUint32(offset);
}

function scalar(bytes: number): MsgpackItem {
  return { bytes, headBytes: 1, isText: false, isMap: false, itemCount: 0, partCount: 0 };
}

function text(headBytes: number, length: number): MsgpackItem {
  return {
    bytes: headBytes + length,
    headBytes,
    isText: true,
    isMap: false,
    itemCount: 0,
    partCount: 0,
  };
}

function container(bytes: number, itemCount: number, isMap: boolean): MsgpackItem {
  const partCount = isMap ? 1 + itemCount / 2 : 1;
  return { bytes, headBytes: bytes, isText: false, isMap, itemCount, partCount };
}
