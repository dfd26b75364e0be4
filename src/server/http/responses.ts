/**
 * Responses: the headers that every answer carries, and its compression.
 *
 * Headers common to a kind of answer are built once; a response copies them and adds its own.
 */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Clock } from "../../base/clock.ts";
import type { Exchange } from "./exchange.ts";
import { gzipStream } from "./gzip_stream.ts";

/** Shorter bodies are sent as they are. */
const COMPRESS_BYTES_MIN = 1024;

/** Up to here compressing in place costs less than handing over to another thread. */
const COMPRESS_IN_PLACE_BYTES_MAX = 65536;

const COMPRESSION_LEVEL = 1;

const gzipOffLoop = promisify(gzip);

const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

const JSON_HEADERS: Headers = apiHeaders("application/json; charset=utf-8");

const encoder = new TextEncoder();

/** Headers of an API answer with this content type. */
export function apiHeaders(contentType: string): Headers {
  return new Headers({
    "Content-Type": contentType,
    "Cache-Control": "no-store",
    ...SECURITY_HEADERS,
  });
}

/**
 * Headers of an event stream, which must not be buffered on the way: proxies hold an answer back
 * until a buffer is full, and nginx does so unless the first of these headers forbids it.
 */
export function eventHeaders(): Headers {
  const headers = apiHeaders("text/event-stream");
  headers.set("X-Accel-Buffering", "no");
  headers.set("Cache-Control", "no-cache, no-transform");
  return headers;
}

/** Headers of an answer that may be cached; its Cache-Control is the caller's to add. */
export function plainHeaders(contentType: string): Headers {
  return new Headers({ "Content-Type": contentType, ...SECURITY_HEADERS });
}

/**
 * Makes a response. The id goes into the common headers before the response copies them: setting it
 * on the response would make an object of the copy first, a tenth of the time of a short request.
 */
function respond(
  { requestId }: Exchange,
  body: ConstructorParameters<typeof Response>[0],
  options: { status: number; headers: Headers },
): Response {
  options.headers.set("X-Request-ID", requestId);
  return new Response(body, options);
}

export function json(exchange: Exchange, status: number, body: object): Response {
  return jsonText(exchange, status, JSON.stringify(body));
}

/** Creates a response from JSON text. */
export function jsonText(exchange: Exchange, status: number, text: string): Response {
  return respond(exchange, text, { status, headers: JSON_HEADERS });
}

/** An answer without body. */
export function empty(
  exchange: Exchange,
  status: number,
  headers: Readonly<Record<string, string>>,
): Response {
  const own = new Headers({ ...SECURITY_HEADERS, ...headers });
  return respond(exchange, null, { status, headers: own });
}

/** Whether `Accept-Encoding` admits gzip. */
export function acceptsGzip(request: Request): boolean {
  const header = request.headers.get("accept-encoding");
  if (header === null) return false;
  let anyAccepted = false;
  for (const part of header.split(",")) {
    const [coding = "", ...parameters] = part.split(";");
    const name = coding.trim().toLowerCase();
    const isRefused = parameters.some((parameter) => /^\s*q\s*=\s*0(?:\.0*)?\s*$/i.test(parameter));
    if (name === "gzip" || name === "x-gzip") return !isRefused;
    if (name === "*") anyAccepted = !isRefused;
  }
  return anyAccepted;
}

/** Whether `Accept` names this media type, not only a wildcard. */
export function acceptsType(request: Request, type: string): boolean {
  const accepted = request.headers.get("accept")?.split(",") ?? [];
  return accepted.some((part) => (part.split(";")[0] ?? "").trim().toLowerCase() === type);
}

export interface TextOptions {
  readonly status: number;
  readonly headers: Headers;
  readonly mayCompress: boolean;
}

/** Text as the body of a response with `headers`, compressed when that is wanted and worth it. */
export function textResponse(
  exchange: Exchange,
  body: string,
  options: TextOptions,
): Response | Promise<Response> {
  // Every character is at least one byte and at most three.
  if (options.mayCompress && body.length * 3 >= COMPRESS_BYTES_MIN) {
    return compressed(exchange, body, options);
  }
  return respond(exchange, body, options);
}

/** Bytes as the body of a response, compressed when that is wanted and worth it. */
export function bytesResponse(
  exchange: Exchange,
  bytes: Uint8Array,
  options: { status: number; headers: Headers; mayCompress: boolean },
): Response | Promise<Response> {
  if (options.mayCompress && bytes.length >= COMPRESS_BYTES_MIN) {
    return compressedBytes(exchange, bytes, options);
  }
  return respond(exchange, bytes.slice(), options);
}

/** What makes a body, and what ends. */
export interface BodyPieces {
  readonly pieces: Iterator<string> | AsyncIterator<string | Uint8Array>;
  /** The body is over: it was written, the client left, or a piece failed. Called once. */
  readonly onEnd?: () => void;
  /** Called with the error of a failed piece; the body breaks off there. */
  readonly onFailure: (error: unknown) => void;
}

/** A body that is made piece by piece as the client takes it, each in a turn of its own. */
export function streamResponse(
  exchange: Exchange,
  { onEnd, onFailure, pieces }: BodyPieces,
  options: { clock: Clock; status: number; headers: Headers; mayCompress: boolean },
): Response {
  const { clock } = options;
  let isOver = false;
  const end = (): void => {
    if (!isOver) onEnd?.();
    isOver = true;
  };
  const plain = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        const piece = await pieces.next();
        if (isOver) return;
        if (piece.done !== true) {
          const { value } = piece;
          controller.enqueue(typeof value === "string" ? encoder.encode(value) : value.slice());
          await clock.yield();
          return;
        }
        end();
        controller.close();
      } catch (error) {
        end();
        controller.error(error);
        onFailure(error);
      }
    },
    cancel: end,
  });
  const isCompressed = options.mayCompress && acceptsGzip(exchange.request);
  const body = isCompressed ? plain.pipeThrough(new CompressionStream("gzip")) : plain;
  const response = respond(exchange, body, options);
  if (options.mayCompress) markCompression(response.headers, isCompressed);
  return response;
}

/** A body that goes on until it ends by itself, and must not be held back. */
export function openResponse(
  exchange: Exchange,
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  { headers, isCompressed }: { headers: Headers; isCompressed: boolean },
): Response {
  const sent = isCompressed ? gzipStream(body) : body;
  const response = respond(exchange, sent, { status: 200, headers });
  markCompression(response.headers, isCompressed);
  return response;
}

function compressed(
  exchange: Exchange,
  body: string,
  options: { status: number; headers: Headers },
): Response | Promise<Response> {
  // Asked first: to count the bytes of a text costs more, and what is that short is never cached.
  if (!acceptsGzip(exchange.request)) {
    const response = respond(exchange, body, options);
    if (body.length >= COMPRESS_BYTES_MIN) markCompression(response.headers, false);
    return response;
  }
  const bytes = encoder.encode(body);
  if (bytes.length < COMPRESS_BYTES_MIN) return respond(exchange, body, options);
  return compressedBytes(exchange, bytes, options);
}

function compressedBytes(
  exchange: Exchange,
  bytes: Uint8Array,
  options: { status: number; headers: Headers },
): Response | Promise<Response> {
  if (!acceptsGzip(exchange.request)) {
    const response = respond(exchange, bytes.slice(), options);
    markCompression(response.headers, false);
    return response;
  }
  if (bytes.length > COMPRESS_IN_PLACE_BYTES_MAX) {
    const work = gzipOffLoop(bytes, { level: COMPRESSION_LEVEL });
    return work.then((packed) => gzipped(exchange, packed.slice(), options));
  }
  const packed = Bun.gzipSync(bytes.slice(), { level: COMPRESSION_LEVEL });
  return gzipped(exchange, packed, options);
}

function gzipped(
  exchange: Exchange,
  packed: Uint8Array<ArrayBuffer>,
  options: { status: number; headers: Headers },
): Response {
  const response = respond(exchange, packed, options);
  markCompression(response.headers, true);
  return response;
}

/** Caches must know that the answer depends on Accept-Encoding, also when it was not compressed. */
function markCompression(headers: Headers, isCompressed: boolean): void {
  headers.append("Vary", "Accept-Encoding");
  if (isCompressed) headers.set("Content-Encoding", "gzip");
}
