/**
 * Ends a stream of server-sent events, and refuses one.
 *
 * A browser's EventSource never reconnects after a response with a status other than 200, even if
 * the server takes only a second to restart. A refusal is therefore the only event of a stream with
 * status 200. An EventSource reconnects after each end, so the stream sets the delay: short if the
 * cause is temporary, long if a person has to fix something first. An EventSource also sends its
 * position; if the position is the cause, an empty id makes the EventSource forget it.
 */
import type { ErrorBody } from "../../protocol/mod.ts";
import type { Exchange } from "./exchange.ts";
import { acceptsType, eventHeaders, openResponse } from "./responses.ts";

/** The `subscription_id` of the one subscription of a stream. */
export const STREAM_WORD = "sse";

/** The time that a client should wait before it reconnects. */
const RETRY_MS = 2000;

/** The time that a client should wait if the cause is not temporary. */
const MENDED_RETRY_MS = 30_000;

/** Codes that recur as long as the client sends the same position. */
const LOST_POSITION: ReadonlySet<string> = new Set([
  "RESUME_EXPIRED",
  "INVALID_RESUME",
  "SCHEMA_CHANGED",
]);

/**
 * Returns the first line of a stream. It is sent immediately, so that proxies forward the headers.
 */
export function retryLine(retryMs: number = RETRY_MS): string {
  return `retry: ${retryMs}\n\n`;
}

/** Returns the last event of a stream. */
export function lastEvent(code: string, data: string): string {
  const idLine = LOST_POSITION.has(code) ? "id:\n" : "";
  return `event: subscription_error\n${idLine}data: ${data}\n\n`;
}

/** Whether the client is probably an EventSource. */
export function wantsEvents({ request }: Exchange): boolean {
  return request.method === "GET" && acceptsType(request, "text/event-stream");
}

/** Returns a refusal as a stream of one event with the status that other clients would get. */
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
