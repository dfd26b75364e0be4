/**
 * Data messages in the format of a connection, each form made once for all sockets that share the
 * message.
 *
 *     json          text frame
 *     json+gzip     binary frame of gzip bytes, when that is smaller; else the text
 *     msgpack       binary frame
 *     msgpack+gzip  binary frame of gzip bytes, when that is smaller; else the plain one
 */
import { assert } from "../../base/assert.ts";
import type { SharedMessage } from "../../live/mod.ts";
import { GZIP_BYTES_MIN, gzipOf } from "./gzip.ts";
import { jsonFromMessage } from "./json.ts";
import { jsonFromPage } from "./json_page.ts";
import { msgpackFromMessage } from "./msgpack.ts";

export type Serialization = "json" | "msgpack";

export interface FrameFormat {
  readonly serialization: Serialization;
  readonly isGzipOn: boolean;
}

const encoder = new TextEncoder();

const FORMATS: readonly FrameFormat[] = [
  { serialization: "json", isGzipOn: false },
  { serialization: "json", isGzipOn: true },
  { serialization: "msgpack", isGzipOn: false },
  { serialization: "msgpack", isGzipOn: true },
];

/** One of the four formats; the same object for the same format. */
export function frameFormat(serialization: Serialization, isGzipOn: boolean): FrameFormat {
  const found = FORMATS.find(
    (format) => format.serialization === serialization && format.isGzipOn === isGzipOn,
  );
  assert(found !== undefined, "every format is listed");
  return found;
}

/** The frame of a message: a string is sent as text, bytes as binary. */
export function frameOf(shared: SharedMessage, format: FrameFormat): string | Uint8Array {
  const { serialization, isGzipOn } = format;
  const index = (serialization === "json" ? 0 : 2) + (isGzipOn ? 1 : 0);
  const known = shared.encoded[index];
  if (known !== undefined) return known;
  const frame = isGzipOn ? gzipFrame(shared, serialization) : plainFrame(shared, serialization);
  shared.encoded[index] = frame;
  return frame;
}

function plainFrame(shared: SharedMessage, serialization: Serialization): string | Uint8Array {
  if (serialization === "msgpack") return msgpackFromMessage(shared.message);
  const { paged } = shared;
  return paged === undefined ? jsonFromMessage(shared.message) : jsonFromPage(paged);
}

function gzipFrame(shared: SharedMessage, serialization: Serialization): string | Uint8Array {
  const plain = frameOf(shared, { serialization, isGzipOn: false });
  // Most changes are small, and need not become bytes of their own to be known as such.
  if (plain.length < GZIP_BYTES_MIN && Buffer.byteLength(plain) < GZIP_BYTES_MIN) return plain;
  const bytes = typeof plain === "string" ? encoder.encode(plain) : new Uint8Array(plain);
  return gzipOf(bytes) ?? plain;
}
