/**
 * Reads request bodies within their size limit, decodes them strictly, and parses them without
 * losing digits.
 *
 * A body that is too large is refused as early as possible: before any of it is read if its size
 * is declared; otherwise, as soon as it exceeds the limit.
 */
import { DatabaseError } from "../../base/errors.ts";
import { JSON_COMMAS_MAX, JSON_PARTS_MAX, NESTING_MAX } from "../../base/limits.ts";
import { jsonStringEnd } from "../../types/mod.ts";
import type { BodyEntry } from "./body_ledger.ts";
import { HttpError } from "./http_error.ts";
import { type BodyAdmission, LARGE_BODY_BYTES } from "./large_bodies.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

const QUOTE = 0x22;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Matches the JSON media types: `application/json`, `text/json` and all types ending in `+json`.
 */
const JSON_TYPE = /^(?:application\/json|text\/json|[\w.+-]+\/[\w.+-]+\+json)$/;

/**
 * Requires a JSON content type.
 * @param accepted The content types of the endpoint, for the message.
 * @throws {HttpError} 415 unless the type is missing, empty or a JSON media type.
 */
export function requireJsonType(header: string | null, accepted = "application/json"): void {
  if (header === null || header === "application/json" || header.trim() === "") return;
  if (JSON_TYPE.test(mediaType(header))) return;
  throw new HttpError(
    415,
    "unsupported_media_type",
    `Cannot read a body of type "${mediaType(header)}": this endpoint accepts ${accepted}; ` +
      "for JSON, send the header Content-Type: application/json",
  );
}

/**
 * Refuses a compressed body, because no endpoint decompresses bodies. The header is checked only
 * after reading a body has failed, because a header lookup in every request would be slow.
 *
 * @throws {HttpError} 415
 */
export function refusePacked(headers: Headers): void {
  const coding = headers.get("content-encoding") ?? "identity";
  if (coding === "identity") return;
  throw new HttpError(
    415,
    "unsupported_media_type",
    `Cannot read a body compressed with "${coding}": send it uncompressed`,
  );
}

/** Returns a content type without parameters, in lower case. */
export function mediaType(header: string): string {
  const semicolon = header.indexOf(";");
  return (semicolon < 0 ? header : header.slice(0, semicolon)).trim().toLowerCase();
}

/** Returns the declared size of a body; undefined if none is declared. */
export function declaredBytes({ headers }: Request): number | undefined {
  const declared = headers.get("content-length");
  return declared === null ? undefined : Number(declared);
}

/** Refuses a body that is too large. @throws {HttpError} 413 BODY_TOO_LARGE */
export function refuseLarger(sizeBytes: number | undefined, maxBytes: number): void {
  if (sizeBytes !== undefined && sizeBytes > maxBytes) throw tooLarge(maxBytes, sizeBytes);
}

/** The objects that count a body towards the limits and, if the body is large, admit it. */
export interface BodyPlace {
  readonly entry: BodyEntry;
  /** Admits large bodies; absent if no body of this endpoint may be large. */
  readonly admission?: BodyAdmission;
}

/**
 * Reads a body of at most `maxBytes`. The part beyond `LARGE_BODY_BYTES` is read only once the
 * limits allow.
 *
 * @param place The caller must call `leave` on both of its members.
 * @throws {HttpError} 413 BODY_TOO_LARGE; 400 if the client disconnects before the end.
 */
export async function readBody(
  request: Request,
  maxBytes: number,
  place: BodyPlace,
): Promise<Uint8Array> {
  const sizeBytes = declaredBytes(request);
  refuseLarger(sizeBytes, maxBytes);
  try {
    if (sizeBytes === undefined) return await bytesOf(request, maxBytes, place);
    const { admission } = place;
    if (admission !== undefined && sizeBytes > LARGE_BODY_BYTES)
      await admitted(sizeBytes, admission);
    return await request.bytes();
  } catch (error) {
    throw endedEarly(error);
  }
}

function admitted(bytes: number, admission: BodyAdmission): Promise<void> {
  return new Promise((resolve) => admission.take(bytes, resolve));
}

/**
 * Returns the error for a body that could not be read completely. Either the body is too large, or
 * the connection was lost. In the latter case, there is no client left to read the response.
 */
export function endedEarly(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  return new HttpError(400, "invalid_request", "Cannot read the body: it ended prematurely");
}

async function bytesOf({ body }: Request, maxBytes: number, place: BodyPlace): Promise<Uint8Array> {
  return body === null ? new Uint8Array(0) : await readCounted(body, maxBytes, place);
}

async function readCounted(
  body: ReadableStream<Uint8Array>,
  maxBytes: number,
  { entry, admission }: BodyPlace,
): Promise<Uint8Array> {
  const pieces = new BodyBlocks();
  let pendingAdmission = admission;
  for await (const piece of body) {
    pieces.add(piece);
    if (pieces.sizeBytes > maxBytes) throw tooLarge(maxBytes, undefined);
    if (pendingAdmission !== undefined && pieces.sizeBytes > LARGE_BODY_BYTES) {
      // The body is admitted at the maximum size, because the request does not declare how many
      // bytes are still to come.
      await admitted(maxBytes, pendingAdmission);
      pendingAdmission = undefined;
    }
  }
  entry.isRead(pieces.sizeBytes);
  return pieces.joined();
}

const BLOCK_BYTES = 16 * 1024;

/**
 * Joins small pieces into blocks, because a list of a million one-byte pieces would take 100 MB.
 */
class BodyBlocks {
  sizeBytes = 0;
  readonly #whole: Uint8Array[] = [];
  #block = new Uint8Array(0);
  #usedBytes = 0;

  add(piece: Uint8Array): void {
    this.sizeBytes += piece.length;
    if (piece.length > this.#block.length - this.#usedBytes) {
      this.#endBlock();
      if (piece.length >= BLOCK_BYTES) {
        this.#whole.push(piece);
        return;
      }
      this.#block = new Uint8Array(BLOCK_BYTES);
    }
    this.#block.set(piece, this.#usedBytes);
    this.#usedBytes += piece.length;
  }

  joined(): Uint8Array {
    this.#endBlock();
    return Buffer.concat(this.#whole, this.sizeBytes);
  }

  #endBlock(): void {
    if (this.#usedBytes > 0) this.#whole.push(this.#block.subarray(0, this.#usedBytes));
    this.#block = new Uint8Array(0);
    this.#usedBytes = 0;
  }
}

/** Decodes UTF-8 strictly. Returns undefined if the bytes are not valid UTF-8. */
export function textFromUtf8(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    // The decoder throws only for malformed input, and callers have their own message for that.
    return undefined;
  }
}

/**
 * Parses JSON of at most `NESTING_MAX` levels, `JSON_PARTS_MAX` parts and `JSON_COMMAS_MAX` commas.
 * Returns undefined if the text is malformed or exceeds these limits.
 */
export function parseJson(text: string): unknown {
  // Text of at most twice `NESTING_MAX` characters need not be scanned, because each level of
  // nesting takes at least two characters.
  if (text.length > 2 * NESTING_MAX && isTooIntricate(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // The parser's error is dropped, because it contains nothing useful to the caller.
    return undefined;
  }
}

/**
 * Returns whether arrays and objects are nested more deeply than `NESTING_MAX`, or have too many
 * members. Scanning the text is a hundred times faster than traversing the parsed value. For
 * malformed text, the result is arbitrary.
 */
export function isTooIntricate(text: string): boolean {
  let depth = 0;
  let partCount = 0;
  let commaCount = 0;
  for (let offset = 0; offset < text.length; offset += 1) {
    switch (text.charCodeAt(offset)) {
      case QUOTE:
        offset = jsonStringEnd(text, offset) - 1;
        break;
      case OPEN_BRACKET:
      case OPEN_BRACE:
        depth += 1;
        partCount += 1;
        if (depth > NESTING_MAX || partCount > JSON_PARTS_MAX) return true;
        break;
      case CLOSE_BRACKET:
      case CLOSE_BRACE:
        depth -= 1;
        break;
      case COLON:
        partCount += 1;
        if (partCount > JSON_PARTS_MAX) return true;
        break;
      case COMMA:
        commaCount += 1;
        if (commaCount > JSON_COMMAS_MAX) return true;
        break;
      default:
        break;
    }
  }
  return false;
}

/** Returns the members of a JSON object, or undefined if the value is not an object. */
export function objectOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return value as Record<string, unknown>;
}

/** Returns the error for a body that its endpoint cannot read. */
export function invalidInput(message: string): DatabaseError {
  return new DatabaseError("INVALID_INPUT", message);
}

function tooLarge(maxBytes: number, sizeBytes: number | undefined): HttpError {
  return new HttpError(
    413,
    "BODY_TOO_LARGE",
    `Cannot read the body: it is longer than ${maxBytes} bytes`,
    { maxBytes, ...(sizeBytes === undefined ? {} : { sizeBytes }) },
  );
}
