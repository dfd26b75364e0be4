/**
 * Encodes data messages in a connection's format. Each form is produced once for all sockets that
 * share the message.
 *
 *     json          text frame
 *     json+gzip     binary frame of gzip bytes, when that is smaller; else the text
 *     msgpack       binary frame
 *     msgpack+gzip  binary frame of gzip bytes, when that is smaller; else the plain one
 */
import { assert } from "../../base/assert.ts";
import type { SharedMessage } from "../../live/mod.ts";
import type { ServerMessage, TopicDelivery } from "../../protocol/mod.ts";
import { GZIP_BYTES_MIN, gzipOf } from "./gzip.ts";
import { jsonFromPage } from "./json_page.ts";
import { msgpackFromMessage } from "./msgpack.ts";

export type Serialization = "json" | "msgpack";

export interface FrameFormat {
  readonly serialization: Serialization;
  readonly isGzipOn: boolean;
}

/** A message that is encoded only once per format, even if it is sent on several connections. */
export interface EncodableMessage extends Omit<SharedMessage, "message"> {
  readonly message: SharedMessage["message"] | TopicDelivery;
}

const encoder = new TextEncoder();

const FORMATS: readonly FrameFormat[] = [
  { serialization: "json", isGzipOn: false },
  { serialization: "json", isGzipOn: true },
  { serialization: "msgpack", isGzipOn: false },
  { serialization: "msgpack", isGzipOn: true },
];

/** Returns one of the four formats. Each format is always represented by the same object. */
export function frameFormat(serialization: Serialization, isGzipOn: boolean): FrameFormat {
  const found = FORMATS.find(
    (format) => format.serialization === serialization && format.isGzipOn === isGzipOn,
  );
  assert(found !== undefined, "frame encoder: unlisted frame format");
  return found;
}

/**
 * Returns the frame for a message: a string to send as a text frame, or bytes to send as a binary
 * frame.
 */
export function frameOf(shared: EncodableMessage, format: FrameFormat): string | Uint8Array {
  const { serialization, isGzipOn } = format;
  const index = (serialization === "json" ? 0 : 2) + (isGzipOn ? 1 : 0);
  const known = shared.encoded[index];
  if (known !== undefined) return known;
  const frame = isGzipOn ? gzipFrame(shared, serialization) : plainFrame(shared, serialization);
  shared.encoded[index] = frame;
  return frame;
}

function plainFrame(shared: EncodableMessage, serialization: Serialization): string | Uint8Array {
  if (serialization === "msgpack") return msgpackFromMessage(shared.message);
  const { paged } = shared;
  return paged === undefined ? jsonFromMessage(shared.message) : jsonFromPage(paged);
}

function gzipFrame(shared: EncodableMessage, serialization: Serialization): string | Uint8Array {
  const plain = frameOf(shared, { serialization, isGzipOn: false });
  // If a string is short enough, its length alone shows that it need not be compressed, so its
  // bytes are not counted.
  if (plain.length < GZIP_BYTES_MIN && Buffer.byteLength(plain) < GZIP_BYTES_MIN) return plain;
  const bytes = typeof plain === "string" ? encoder.encode(plain) : new Uint8Array(plain);
  return gzipOf(bytes) ?? plain;
}

/**
 * Encodes messages as JSON text.
 *
 * An integer beyond 2^53 − 1 is a decimal string in JSON, but a 64-bit integer in MessagePack.
 * Messages contain such integers as bigints, so that each encoder can write its own form.
 */
export function jsonFromMessage(message: ServerMessage): string {
  try {
    return JSON.stringify(message);
  } catch (error) {
    // JSON.stringify refuses bigints. Messages that contain one are rare, and using a replacer for
    // every message would make encoding five times as expensive.
    if (!(error instanceof TypeError)) throw error;
    return JSON.stringify(message, (_key, value: unknown) =>
      typeof value === "bigint" ? value.toString() : value,
    );
  }
}
