/**
 * Ends or refuses a stream of server-sent events.
 *
 * If a response has a status other than 200, a browser's EventSource never reconnects, even if the
 * server takes only a second to restart. A refusal is therefore sent as the only event of a stream
 * with status 200. An EventSource reconnects whenever a stream ends, so the stream sets the delay:
 * short if the cause is temporary, long if somebody has to fix something first. When an
 * EventSource reconnects, it also sends its position. If the position was the reason for the
 * refusal, an empty id makes the EventSource discard it.
 */
import type { ErrorBody } from "../../protocol/mod.ts";
import type { Exchange } from "./exchange.ts";
import { acceptsType, eventHeaders, openResponse } from "./responses.ts";

/** The `subscription_id` in the messages of a subscription served as an event stream. */
export const STREAM_WORD = "sse";

/** How long a client should wait before it reconnects, in milliseconds. */
const RETRY_MS = 2000;

/** How long a client should wait if the cause is not temporary, in milliseconds. */
const MENDED_RETRY_MS = 30_000;

/** Error codes that the client would receive again whenever it sent the same position. */
const LOST_POSITION: ReadonlySet<string> = new Set([
  "RESUME_EXPIRED",
  "INVALID_RESUME",
  "SCHEMA_CHANGED",
]);

/**
 * Returns the first line of a stream. It is sent at once, because proxies forward the headers only
 * with the first bytes of the body.
 */
export function retryLine(retryMs: number = RETRY_MS): string {
  return `retry: ${retryMs}\n\n`;
}

/** Returns the event that ends a stream. */
export function lastEvent(code: string, data: string): string {
  const idLine = LOST_POSITION.has(code) ? "id:\n" : "";
  return `event: subscription_error\n${idLine}data: ${data}\n\n`;
}

/** Whether the client is probably an EventSource. */
export function wantsEvents({ request }: Exchange): boolean {
  return request.method === "GET" && acceptsType(request, "text/event-stream");
}

/**
 * Returns a refusal as a stream with a single event. The event contains the status that other
 * clients would get.
 */
export function endedStream(
  exchange: Exchange,
  { body, status }: { readonly body: ErrorBody; readonly status: number },
): Response {
  const { code, retry_after_seconds: seconds } = body;
  const passesMs = seconds === undefined ? MENDED_RETRY_MS : seconds * 1000;
  const retryMs = LOST_POSITION.has(code) ? RETRY_MS : passesMs;
  const message = {
    type: "error",
    subscription_id: STREAM_WORD,
    ...body,
    ended: true,
    status,
  };
  const text = retryLine(retryMs) + lastEvent(code, JSON.stringify(message));
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text));
      controller.close();
    },
  });
  return openResponse(exchange, stream, {
    headers: eventHeaders(),
    isCompressed: false,
  });
}
