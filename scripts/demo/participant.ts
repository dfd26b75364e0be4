/**
 * A chat participant: a socket that follows the shared room and the participant's own inbox. A
 * participant keeps the rows received so far, and counts how many times each sequence id has
 * arrived.
 */
import type { Api } from "./api.ts";

/** The queries that a participant follows, keyed by subscription id. */
const QUERIES = {
  room: "SELECT id, sender, text, _seq FROM demo.room",
  inbox: "SELECT id, sender, text, is_read, _seq FROM demo.inbox",
} as const;

export type Place = keyof typeof QUERIES;

export const PLACES: readonly Place[] = ["room", "inbox"];

interface Row {
  readonly id: number;
  readonly _seq: number;
}

interface Message {
  readonly type: string;
  readonly subscription_id?: string;
  readonly rows?: readonly Row[];
  readonly old_values?: readonly Row[];
  readonly change_type?: "insert" | "update" | "delete";
  readonly batch_control?: { readonly status: string; readonly has_more: boolean };
  readonly message?: string;
}

const READY_MS_MAX = 10_000;

export class Participant {
  readonly name: string;
  readonly api: Api;
  /** The rows that this participant has received, by subscription and primary key. */
  readonly rows: Readonly<Record<Place, Map<number, Row>>> = { room: new Map(), inbox: new Map() };
  /**
   * The arrival time of each change and the number of times it has arrived, keyed by sequence id.
   */
  readonly arrivals: Map<number, { atMs: number; count: number }> = new Map();
  readonly #lastSeq: Partial<Record<Place, number>> = {};
  #socket: WebSocket | undefined;

  constructor(name: string, api: Api) {
    this.name = name;
    this.api = api;
  }

  /**
   * Connects and follows both queries. After a lost connection, it resumes from the last position
   * received. Resolves once both queries are live.
   */
  async follow(): Promise<void> {
    const url = `${this.api.url.replace(/^http/, "ws")}/v1/ws`;
    const socket = new WebSocket(url, { headers: { Authorization: `Bearer ${this.api.token}` } });
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    const ready = Promise.withResolvers<void>();
    const waitingFor = new Set<string>(PLACES);
    socket.addEventListener("message", ({ data }: MessageEvent<string | ArrayBuffer>) => {
      const message = messageFrom(data);
      if (message.type === "auth_success") this.#subscribe(socket);
      else if (message.type === "error" || message.type === "auth_error") {
        ready.reject(new Error(`Cannot follow: ${message.message}`));
      } else this.#take(message, socket);
      if (message.batch_control?.status === "ready")
        waitingFor.delete(message.subscription_id ?? "");
      if (waitingFor.size === 0) ready.resolve();
    });
    socket.addEventListener("close", () =>
      ready.reject(new Error("Cannot follow the chat: the server closed the connection")),
    );
    const timer = setTimeout(() => {
      ready.reject(new Error(`Cannot follow: ${[...waitingFor].join()} did not become live`));
    }, READY_MS_MAX);
    await ready.promise.finally(() => clearTimeout(timer));
  }

  /** Drops the connection without a close message, like a phone in a tunnel. */
  cut(): void {
    this.#socket?.terminate();
    this.#socket = undefined;
  }

  #subscribe(socket: WebSocket): void {
    for (const place of PLACES) {
      const from = this.#lastSeq[place];
      const options = from === undefined ? {} : { from_seq_id: from };
      const subscription = { id: place, sql: QUERIES[place], options };
      socket.send(JSON.stringify({ type: "subscribe", subscription }));
    }
  }

  #take(message: Message, socket: WebSocket): void {
    const place = PLACES.find((name) => name === message.subscription_id);
    if (place === undefined) return;
    for (const row of message.rows ?? []) {
      this.rows[place].set(row.id, row);
      this.#arrived(place, row);
    }
    if (message.change_type === "delete") {
      for (const row of message.old_values ?? []) {
        this.rows[place].delete(row.id);
        this.#arrived(place, row);
      }
    }
    if (message.type === "initial_data_batch" && message.batch_control?.has_more === true) {
      socket.send(JSON.stringify({ type: "next_batch", subscription_id: place }));
    }
  }

  #arrived(place: Place, { _seq: seq }: Row): void {
    const before = this.arrivals.get(seq);
    this.arrivals.set(seq, {
      atMs: before?.atMs ?? performance.now(),
      count: (before?.count ?? 0) + 1,
    });
    this.#lastSeq[place] = Math.max(this.#lastSeq[place] ?? 0, seq);
  }
}

/** Parses a message from the server. Larger messages arrive compressed, as bytes. */
function messageFrom(data: string | ArrayBuffer): Message {
  const text = typeof data === "string" ? data : Buffer.from(Bun.gunzipSync(data)).toString();
  return JSON.parse(text) as Message;
}
