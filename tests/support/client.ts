/** A WebSocket client that records the messages it receives, and can wait for them. */

import { gunzipSync, gzipSync } from "node:zlib";
import { Packr, Unpackr } from "msgpackr";
import { defined } from "../../src/base/assert.ts";
import type { ClientMessage, ServerMessage } from "../../src/protocol/mod.ts";

/** The maximum time that a test waits for a message. */
const WAIT_MS_MAX = 20_000;

/** A data frame, as received from the server. */
export interface Frame {
  readonly isText: boolean;
  readonly isGzip: boolean;
  readonly bytes: number;
  readonly message: ServerMessage;
}

export interface Closed {
  readonly code: number;
  readonly reason: string;
}

type Received = Extract<ServerMessage, { type: string }>;
type OfType<T extends Received["type"]> = Extract<Received, { type: T }>;

const unpackr = new Unpackr({
  useRecords: false,
  mapsAsObjects: true,
  int64AsType: "auto" as "bigint",
});

const packr = new Packr({ useRecords: false });

/**
 * The size in bytes from which a client compresses messages. The threshold is low enough that
 * tests compress some messages.
 */
const GZIP_BYTES_MIN = 100;

export class SocketClient {
  readonly frames: Frame[] = [];
  readonly #socket: WebSocket;
  readonly #packs: boolean;
  #readIndex = 0;
  #closed: Closed | undefined;
  #wake: (() => void) | undefined;

  private constructor(socket: WebSocket, packs: boolean) {
    this.#socket = socket;
    this.#packs = packs;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", ({ data }) => {
      this.frames.push(frameFrom(data as string | ArrayBuffer));
      this.#wake?.();
    });
    socket.addEventListener("close", ({ code, reason }) => {
      this.#closed = { code, reason };
      this.#wake?.();
    });
  }

  /** Connects to a server. Resolves when the socket is open. */
  static async connect(
    url: string,
    { query = "", token, headers = {}, packs = false }: ConnectOptions = {},
  ): Promise<SocketClient> {
    const address = `${url.replace(/^http/, "ws")}/v1/ws${query}`;
    const all = token === undefined ? headers : { ...headers, Authorization: `Bearer ${token}` };
    const socket = new WebSocket(address, { headers: all });
    const client = new SocketClient(socket, packs);
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener("open", () => resolve());
      socket.addEventListener("error", () => reject(new Error(`Cannot connect to ${address}`)));
    });
    return client;
  }

  send(message: ClientMessage | Record<string, unknown>): void {
    const isText = !this.#packs || message["type"] === "authenticate";
    this.#socket.send(isText ? JSON.stringify(message) : packedFrame(message));
  }

  sendRaw(frame: string | Uint8Array<ArrayBuffer>): void {
    this.#socket.send(frame);
  }

  /** Returns the next message, waiting for it if necessary. */
  async next(): Promise<ServerMessage> {
    await this.#until(() => this.frames.length > this.#readIndex || this.#closed !== undefined);
    const frame = this.frames[this.#readIndex];
    this.#readIndex += 1;
    return defined(frame, "a message must arrive before the socket closes").message;
  }

  /** Returns the next message, which must be of the given type. */
  async expect<T extends Received["type"]>(type: T): Promise<OfType<T>> {
    const message = await this.next();
    if (message.type !== type) {
      throw new Error(`Expected ${type}, got ${JSON.stringify(message)}`);
    }
    return message as OfType<T>;
  }

  /** Authenticates by sending a message. */
  async authenticate(token: string): Promise<OfType<"auth_success">> {
    this.send({ type: "authenticate", method: "jwt", token });
    return await this.expect("auth_success");
  }

  /** Waits until the server closes the socket. Returns the close code and the reason. */
  async closed(): Promise<Closed> {
    await this.#until(() => this.#closed !== undefined);
    return defined(this.#closed, "the socket must be closed");
  }

  close(): void {
    this.#socket.close();
  }

  async #until(isDone: () => boolean): Promise<void> {
    const timeout = setTimeout(() => this.#wake?.(), WAIT_MS_MAX);
    const deadlineMs = Date.now() + WAIT_MS_MAX;
    while (!isDone()) {
      if (Date.now() >= deadlineMs)
        throw new Error("Cannot continue the test: no message arrived in time");
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    clearTimeout(timeout);
  }
}

export interface ConnectOptions {
  /** The query string, including its question mark. */
  query?: string;
  /** The token, sent as a header of the upgrade request. */
  token?: string;
  headers?: Readonly<Record<string, string>>;
  /** Whether to send messages as MessagePack, which the query string must request. */
  packs?: boolean;
}

/** Encodes a message as MessagePack, and compresses it if it is long. */
export function packedFrame(message: Readonly<Record<string, unknown>>): Uint8Array<ArrayBuffer> {
  const packed = new Uint8Array(packr.pack(message));
  return packed.length < GZIP_BYTES_MIN ? packed : new Uint8Array(gzipSync(packed));
}

/** Decodes a frame of either format. */
export function frameFrom(data: string | ArrayBuffer): Frame {
  if (typeof data === "string") {
    const message = JSON.parse(data) as ServerMessage;
    return { isText: true, isGzip: false, bytes: data.length, message };
  }
  const bytes = new Uint8Array(data);
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const plain = isGzip ? gunzipSync(bytes) : Buffer.from(bytes);
  const isJson = plain[0] === 0x7b;
  const message = (isJson ? JSON.parse(plain.toString()) : unpackr.unpack(plain)) as ServerMessage;
  return { isText: false, isGzip, bytes: bytes.length, message };
}
