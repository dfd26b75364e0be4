/**
 * How a stream of server-sent events ends, and how one is refused.
 *
 * A browser's EventSource never connects again once an answer has a status other than 200, be it
 * that of a restart which is over in a second. So it is told of a refusal by the only event of a
 * stream that begins and ends with 200. It connects again by itself after each end, so the stream
 * says when: soon where the cause passes, seldom where somebody has to mend something first. It
 * also sends the position that it holds; where that position is the cause, an empty id makes it
 * forget it.
 */
import type { ErrorBody } from "../../protocol/mod.ts";
import type { Exchange } from "./exchange.ts";
import { acceptsType, eventHeaders, openResponse } from "./responses.ts";

/** The `subscription_id` of the one subscription of a stream. */
export const STREAM_WORD = "sse";

/** How long a client should wait before it connects again. */
const RETRY_MS = 2000;

/** The same where nothing changes by itself. */
const MENDED_RETRY_MS = 30_000;

/** Codes that a client gets again for as long as it sends the same position. */
const LOST_POSITION: ReadonlySet<string> = new Set([
  "RESUME_EXPIRED",
  "INVALID_RESUME",
  "SCHEMA_CHANGED",
]);

/** The first line of a stream; sent at once, it makes proxies pass the headers on. */
export function retryLine(retryMs: number = RETRY_MS): string {
  return `retry: ${retryMs}\n\n`;
}

/** The event that ends a stream. */
export function lastEvent(code: string, data: string): string {
  const idLine = LOST_POSITION.has(code) ? "id:\n" : "";
  return `event: subscription_error\n${idLine}data: ${data}\n\n`;
}

/** Whether the client is an EventSource, as far as a request shows it. */
export function wantsEvents({ request }: Exchange): boolean {
  return request.method === "GET" && acceptsType(request, "text/event-stream");
}

/** A stream that says why there is none. The status is the one that others are answered with. */
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
