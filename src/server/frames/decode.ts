/**
 * Decodes the frames that clients send, within the size limits.
 *
 *     text                   JSON, whatever the connection speaks
 *     binary, MessagePack    raw, or gzip when it begins 1f 8b; no `authenticate`
 *     binary, JSON           refused
 */

import { jsonFault } from "../http/json_fault.ts";
import { objectOf, parseJson } from "../http/request_body.ts";
import { type Decoded, PROTOCOL_WORD, refusal } from "./client_message.ts";
import type { Serialization } from "./encode.ts";
import { gunzip, isGzip } from "./gzip.ts";
import { valueFromMsgpack } from "./msgpack.ts";

/**
 * Decodes a frame from the client.
 * @throws {SubscriptionError} MESSAGE_TOO_LARGE, UNSUPPORTED_DATA, INVALID_MESSAGE
 */
export function decodeFrame(
  frame: string | Uint8Array,
  { serialization, bytesMax }: { serialization: Serialization; bytesMax: number },
): Decoded {
  if (typeof frame === "string") return decodeText(frame, bytesMax);
  if (frame.length > bytesMax) throw tooLarge(bytesMax);
  if (serialization === "json") {
    throw unsupported(
      "Cannot read a binary frame: this connection uses JSON, which must be sent in text frames",
    );
  }
  let bytes = frame;
  if (isGzip(frame)) {
    const unpacked = gunzip(frame, bytesMax);
    if (unpacked === "too large") throw tooLarge(bytesMax);
    if (unpacked === "malformed") throw unsupported("Cannot read the frame: it is not valid gzip");
    bytes = unpacked;
  }
  const decoded = valueFromMsgpack(bytes);
  if (decoded === undefined)
    throw unsupported(
      "Cannot read the frame: it must contain exactly one MessagePack value, of the supported " +
        "types",
    );
  if (objectOf(decoded.value)?.["type"] === "authenticate") {
    throw unsupported(
      "Cannot read the authenticate message: it must be sent as a text frame, not as a " +
        "binary frame",
    );
  }
  return { value: decoded.value, text: undefined };
}

function decodeText(text: string, bytesMax: number): Decoded {
  // UTF-8 takes one to three bytes for each UTF-16 code unit.
  const isTooLarge =
    text.length > bytesMax || (text.length * 3 > bytesMax && Buffer.byteLength(text) > bytesMax);
  if (isTooLarge) throw tooLarge(bytesMax);
  const value = parseJson(text);
  if (value === undefined) {
    throw refusal("INVALID_MESSAGE", PROTOCOL_WORD, `Cannot read the message: ${jsonFault(text)}`);
  }
  return { value, text };
}

function tooLarge(bytesMax: number): Error {
  const message = `Cannot read the message: it is longer than ${bytesMax} bytes`;
  return refusal("MESSAGE_TOO_LARGE", PROTOCOL_WORD, message);
}

function unsupported(message: string): Error {
  return refusal("UNSUPPORTED_DATA", PROTOCOL_WORD, message);
}
