/**
 * A reader of server-sent events. It stores each event as it arrived and, like a browser's
 * EventSource, remembers the last event id.
 */
import { defined } from "../../src/base/assert.ts";
import type { ServerMessage } from "../../src/protocol/mod.ts";

/** The maximum time that a test waits for an event. */
const WAIT_MS_MAX = 20_000;

export interface StreamEvent {
  readonly event: string;
  /**
   * The id of the event; undefined if the event has none, in which case the last id remains valid.
   */
  readonly id: string | undefined;
  readonly message: ServerMessage;
}

export class EventClient {
  readonly response: Response;
  /** The value that a browser would send as `Last-Event-ID`. */
  lastId = "";
  /** Lines that do not belong to events: comments, and the delay before a reconnect. */
  readonly others: string[] = [];
  #chunks: AsyncIterator<Uint8Array> | undefined;
  readonly #decoder = new TextDecoder();
  readonly #abort: AbortController;
  #text = "";

  private constructor(response: Response, abort: AbortController) {
    this.response = response;
    this.#abort = abort;
  }

  /**
   * Opens an event stream. A refusal is returned as a normal response, so callers must check its
   * status.
   */
  static async open(
    url: string,
    query: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>>,
  ): Promise<EventClient> {
    const abort = new AbortController();
    const address = `${url}/v1/api/live?${new URLSearchParams(query).toString()}`;
    const response = await fetch(address, { headers, signal: abort.signal });
    return new EventClient(response, abort);
  }

  /** Returns the next event; undefined if the stream has ended. */
  async next(): Promise<StreamEvent | undefined> {
    for (;;) {
      const lines = await this.#nextLines();
      if (lines === undefined) return undefined;
      const fields = new Map(lines.map((line) => splitLine(line)));
      const event = fields.get("event");
      if (event === undefined) {
        this.others.push(...lines);
        continue;
      }
      const id = fields.get("id");
      if (id !== undefined) this.lastId = id;
      return { event, id, message: JSON.parse(fields.get("data") ?? "") as ServerMessage };
    }
  }

  /** Returns the message of the next event, which must have the given name. */
  async expect(name: string): Promise<ServerMessage> {
    const next = await this.next();
    if (next?.event === name) return next.message;
    throw new Error(`Expected ${name}, got ${JSON.stringify(next)}`);
  }

  /** Waits for a comment line, which must come next. */
  async expectComment(): Promise<void> {
    const lines = await this.#nextLines();
    if (lines?.length === 1 && lines[0]?.startsWith(":") === true) return;
    throw new Error(`Expected a comment, got ${JSON.stringify(lines)}`);
  }

  /** Closes the stream, even if the server has more events to send. */
  close(): void {
    this.#abort.abort();
  }

  /** Returns the lines up to the next empty line; undefined if the stream has ended. */
  async #nextLines(): Promise<readonly string[] | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const lines = this.#text.slice(0, end).split("\n");
        this.#text = this.#text.slice(end + 2);
        return lines;
      }
      if (!(await this.#read())) return undefined;
    }
  }

  async #read(): Promise<boolean> {
    const timeout = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => timeout.reject(new Error("Cannot continue the test: no message arrived in time")),
      WAIT_MS_MAX,
    );
    try {
      this.#chunks ??= chunksOf(this.response);
      const next = await Promise.race([this.#chunks.next(), timeout.promise]);
      if (next.done === true) return false;
      this.#text += this.#decoder.decode(next.value, { stream: true });
      return true;
    } finally {
      clearTimeout(timer);
    }
  }
}

function chunksOf({ body }: Response): AsyncIterator<Uint8Array> {
  const stream: AsyncIterable<Uint8Array> = defined(body ?? undefined, "a stream must have a body");
  return stream[Symbol.asyncIterator]();
}

function splitLine(line: string): [string, string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon), line.slice(colon + 1).trimStart()];
}
