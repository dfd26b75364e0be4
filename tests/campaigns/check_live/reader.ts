/**
 * A subscriber on a raw WebSocket that disconnects at random and resumes. It passes on the events
 * without judging them.
 */
import { gunzipSync } from "node:zlib";
import { Unpackr } from "msgpackr";
import type { SeededRandom } from "../../support/seeded_random.ts";
import type { Tamperer, WireMessage } from "./injected_faults.ts";
import type { Mode, ReaderEvent, WireChange } from "./judge.ts";
import type { Cells, Followed } from "./queries.ts";
import type { World } from "./world.ts";

/** The number of messages between two pings. */
const PING_EVERY = 200;

export interface ReaderOptions {
  readonly world: World;
  readonly token: string;
  readonly followed: Followed;
  readonly random: SeededRandom;
  readonly onEvent: (event: ReaderEvent) => void;
  readonly tamperer?: Tamperer;
  /** Returns the highest sequence id acknowledged so far. */
  readonly newestSeq: () => number;
}

const unpackr = new Unpackr({ useRecords: false, int64AsType: "number" });

export class Reader {
  readonly #options: ReaderOptions;
  #socket: WebSocket | undefined;
  #position: number | undefined;
  #mode: Mode = "live";
  #isReady = false;
  #messagesLeft = 0;
  #messageCount = 0;
  #reconnects = 0;
  #outages = 0;
  #isStopped = false;
  #mayBreak = true;
  #error: Error | undefined;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  get reconnects(): number {
    return this.#reconnects;
  }

  /** How many times the server ended during the subscription. */
  get outages(): number {
    return this.#outages;
  }

  /** The error with which the server or the connection ended the reader. */
  get error(): Error | undefined {
    return this.#error;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  get position(): number {
    return this.#position ?? 0;
  }

  /** Connects, retrying while the server is restarting. */
  start(): void {
    void this.#connectWhenUp();
  }

  /** Stops interrupting the connection. */
  settleDown(): void {
    this.#mayBreak = false;
  }

  /** Asks the server for its position. */
  ping(): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    this.#socket.send(JSON.stringify({ type: "ping", id: "p" }));
  }

  stop(): void {
    this.#isStopped = true;
    this.#socket?.close();
  }

  #connect(): void {
    const { token, random, world } = this.#options;
    const { life } = world;
    const format = `serialization=${random.pick(["json", "msgpack"])}`;
    const compress = random.chance(0.5) ? "" : "&compress=false";
    const headers = { Authorization: `Bearer ${token}` };
    const socket = new WebSocket(`${world.server.webSocketUrl}?${format}${compress}`, { headers });
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    this.#messagesLeft = random.chance(0.2) ? random.between(1, 20) : random.between(50, 600);
    socket.addEventListener("open", () => this.#subscribe(socket));
    socket.addEventListener("message", ({ data }) => {
      if (this.#socket === socket) this.#receive(socket, data as string | ArrayBuffer);
    });
    socket.addEventListener("close", ({ code, reason }) => {
      if (this.#isStopped || this.#socket !== socket) return;
      if (life === undefined || world.life !== life) {
        void this.#comeBack();
        return;
      }
      this.#error ??= new Error(`the server closed with ${code} ${reason}`);
    });
  }

  /** Reconnects once the server is running. */
  async #comeBack(): Promise<void> {
    this.#outages += 1;
    this.#socket = undefined;
    this.#isReady = false;
    await this.#connectWhenUp();
  }

  async #connectWhenUp(): Promise<void> {
    await this.#options.world.whenUp();
    if (!this.#isStopped) this.#connect();
  }

  #subscribe(socket: WebSocket): void {
    const { followed, random, onEvent } = this.#options;
    const { query, begins } = followed;
    const position = this.#position ?? 0;
    const isResume = position > 0;
    const { newestSeq, tamperer } = this.#options;
    const from = tamperer?.resumeFrom(position, newestSeq()) ?? position;
    this.#mode = isResume ? random.pick(["all", "all", "latest"]) : begins;
    this.#isReady = false;
    const batch_size = random.pick([7, 50, 1000]);
    const last_rows = random.between(1, 150);
    const from_seq_id = random.chance(0.5) ? from : String(from);
    const options: Record<Mode, object | null> = {
      snapshot: { batch_size },
      last_rows: { batch_size, last_rows },
      live: null,
      all: { batch_size, from_seq_id },
      latest: { batch_size, from_seq_id, replay: "latest" },
    };
    onEvent({ kind: "begin", mode: this.#mode, position, lastRows: last_rows });
    const subscription = {
      id: "s",
      sql: query.sql,
      options: options[this.#mode],
      ...(query.params === undefined ? {} : { params: query.params }),
    };
    socket.send(JSON.stringify({ type: "subscribe", subscription }));
  }

  #receive(socket: WebSocket, data: string | ArrayBuffer): void {
    const message = messageFrom(data);
    for (const arrived of this.#options.tamperer?.pass(message) ?? [message]) this.#take(arrived);
    this.#messageCount += 1;
    if (this.#messageCount % PING_EVERY === 0) this.ping();
    this.#messagesLeft -= 1;
    if (this.#messagesLeft > 0 || !this.#mayBreak) return;
    this.#reconnects += 1;
    this.#socket = undefined;
    this.#isReady = false;
    // Terminating the connection loses the messages still in flight.
    socket.terminate();
    setTimeout(() => void this.#connectWhenUp(), this.#options.random.below(60));
  }

  #take(message: WireMessage): void {
    switch (message.type) {
      case "subscription_ack":
        this.#takeAck(message);
        break;
      case "initial_data_batch":
        this.#takeBatch(message);
        break;
      case "change":
        this.#takeChange(message as unknown as WireChange);
        break;
      case "pong":
        this.#takePong(message);
        break;
      case "error":
        // The server will close the socket next.
        if (message["code"] === "SHUTTING_DOWN") break;
        this.#error = new Error(JSON.stringify(message));
        break;
      case "auth_error":
        this.#error = new Error(JSON.stringify(message));
        break;
    }
  }

  #takeAck(message: WireMessage): void {
    const fields = (message["schema"] as { name: string }[]).map(({ name }) => name);
    const control = message["batch_control"] as { last_seq_id: number | null; has_more: boolean };
    if (!control.has_more) {
      this.#isReady = true;
      this.#position = control.last_seq_id ?? undefined;
    }
    this.#options.onEvent({ kind: "ack", fields, boundary: control.last_seq_id });
  }

  #takeBatch(message: WireMessage): void {
    const rows = message["rows"] as readonly Cells[];
    const control = message["batch_control"] as { has_more: boolean; last_seq_id: number };
    const isLast = !control.has_more;
    this.#options.onEvent({ kind: "batch", rows, lastSeq: control.last_seq_id, isLast });
    this.#position = control.last_seq_id;
    if (isLast) this.#isReady = true;
    else this.#askForMore();
  }

  /** Requests the next batch of rows immediately, twice, or after a while. */
  #askForMore(): void {
    const socket = this.#socket;
    const ask = (): void => {
      if (socket?.readyState !== WebSocket.OPEN || this.#socket !== socket) return;
      socket.send(JSON.stringify({ type: "next_batch", subscription_id: "s" }));
    };
    const chosen = this.#options.random.below(10);
    if (chosen === 0) setTimeout(ask, this.#options.random.below(30));
    else ask();
    if (chosen === 1) ask();
  }

  #takeChange(change: WireChange): void {
    this.#options.onEvent({ kind: "change", change });
    // A client that receives net effects has no position until it has received all of them.
    if (this.#mode === "latest" && !this.#isReady) return;
    const last = change.rows.at(-1) ?? change.old_values?.at(-1);
    this.#position = Math.max(this.#position ?? 0, Number(last?.["_seq"]));
  }

  #takePong(message: WireMessage): void {
    const seq = (message["positions"] as Record<string, number>)["s"];
    if (seq === undefined || !this.#isReady) return;
    this.#options.onEvent({ kind: "position", seq });
    this.#position = Math.max(this.#position ?? 0, seq);
  }
}

/**
 * Parses a message from the server. Text is JSON. Bytes are MessagePack, or either form compressed
 * with gzip.
 */
function messageFrom(data: string | ArrayBuffer): WireMessage {
  if (typeof data === "string") return JSON.parse(data) as WireMessage;
  const bytes = new Uint8Array(data);
  const plain = bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : Buffer.from(bytes);
  const isJson = plain[0] === 0x7b;
  return (isJson ? JSON.parse(plain.toString()) : unpackr.unpack(plain)) as WireMessage;
}
