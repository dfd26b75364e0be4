/**
 * Builds responses: the headers that every response has, and compression.
 *
 * The headers common to one kind of response are built once. Each response copies them and adds
 * its own.
 */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Clock } from "../../base/clock.ts";
import type { Exchange } from "./exchange.ts";
import { gzipStream } from "./gzip_stream.ts";

/** Bodies shorter than this are sent uncompressed. */
const COMPRESS_BYTES_MIN = 1024;

/**
 * Up to this size, compressing in this thread costs less than handing the data to another thread.
 */
const COMPRESS_IN_PLACE_BYTES_MAX = 65536;

const COMPRESSION_LEVEL = 1;

const gzipOffLoop = promisify(gzip);

const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

const JSON_HEADERS: Headers = apiHeaders("application/json; charset=utf-8");

const encoder = new TextEncoder();

/** Returns the headers of an API response with this content type. */
export function apiHeaders(contentType: string): Headers {
  return new Headers({
    "Content-Type": contentType,
    "Cache-Control": "no-store",
    ...SECURITY_HEADERS,
  });
}

/**
 * Returns the headers of an event stream, including the header that stops nginx from buffering the
 * response.
 */
export function eventHeaders(): Headers {
  const headers = apiHeaders("text/event-stream");
  headers.set("X-Accel-Buffering", "no");
  headers.set("Cache-Control", "no-cache, no-transform");
  return headers;
}

/** Returns the headers of a response that may be cached. The caller adds Cache-Control. */
export function plainHeaders(contentType: string): Headers {
  return new Headers({ "Content-Type": contentType, ...SECURITY_HEADERS });
}

/**
 * Creates a response. The request id is set in the shared headers before the response copies them:
 * setting it on the response itself would take a tenth of the time spent on a short request.
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

/** Creates a response without a body. */
export function empty(
  exchange: Exchange,
  status: number,
  headers: Readonly<Record<string, string>>,
): Response {
  const own = new Headers({ ...SECURITY_HEADERS, ...headers });
  return respond(exchange, null, { status, headers: own });
}

/** Whether the request's `Accept-Encoding` header admits gzip. */
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

/** Returns whether `Accept` names this media type explicitly, not only through a wildcard. */
export function acceptsType(request: Request, type: string): boolean {
  const accepted = request.headers.get("accept")?.split(",") ?? [];
  return accepted.some((part) => (part.split(";")[0] ?? "").trim().toLowerCase() === type);
}

export interface TextResponseOptions {
  readonly status: number;
  readonly headers: Headers;
  readonly mayCompress: boolean;
}

/**
 * Creates a text response with the given headers. The body is compressed if the request accepts
 * gzip and the text is long enough.
 */
export function textResponse(
  exchange: Exchange,
  body: string,
  options: TextResponseOptions,
): Response | Promise<Response> {
  // In UTF-8, every UTF-16 code unit takes at least one byte and at most three.
  if (options.mayCompress && body.length * 3 >= COMPRESS_BYTES_MIN) {
    return compressed(exchange, body, options);
  }
  return respond(exchange, body, options);
}

/**
 * Creates a response from bytes. The body is compressed if the request accepts gzip and there are
 * enough bytes.
 */
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

/**
 * The pieces of a body, with callbacks for its end and for failures. The body takes ownership of
 * the pieces.
 */
export interface BodyPieces {
  readonly pieces: Iterator<string> | AsyncIterator<string | Uint8Array<ArrayBuffer>>;
  /**
   * Called once when the body has ended: completely written, abandoned by the client, or cut short
   * by a piece that failed.
   */
  readonly onEnd?: () => void;
  /** Called with the error if producing a piece fails. The body then ends early. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Creates a response with a body that is produced piece by piece as the client reads it, each
 * piece in a separate tick.
 */
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
          controller.enqueue(typeof value === "string" ? encoder.encode(value) : value);
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

/** Creates a response that must not be buffered. The body continues until its source ends. */
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
  // Accept-Encoding is tested first, because counting the bytes of a string is more expensive.
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

/** Caches must know that the response depends on Accept-Encoding, even if it was not compressed. */
function markCompression(headers: Headers, isCompressed: boolean): void {
  headers.append("Vary", "Accept-Encoding");
  if (isCompressed) headers.set("Content-Encoding", "gzip");
}
