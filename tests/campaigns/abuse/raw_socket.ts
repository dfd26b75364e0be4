/**
 * A hand-built WebSocket on TCP: it can stop reading, and it can send frames that no client library
 * would send.
 */
import type { Socket } from "bun";

const OPEN_MS_MAX = 30_000;

/**
 * The maximum number of sockets opened at the same time. More sockets would only fill the kernel's
 * queue.
 */
const OPENING_MAX = 50;

export const OPCODE = {
  continuation: 0,
  text: 1,
  binary: 2,
  close: 8,
  ping: 9,
} as const;

/** A mask of four zeros is valid and changes no byte. */
const MASK_BYTES = 4;

export class RawSocket {
  readonly #socket: Socket;
  #unsent: Uint8Array[] = [];
  #isClosed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Connects to the server and upgrades the connection to a WebSocket.
   * @param token The bearer token. Without a token, the socket is not logged in.
   */
  static async open(url: string, token?: string): Promise<RawSocket> {
    const { hostname, port, host } = new URL(url);
    const upgraded = Promise.withResolvers<void>();
    const timer = setTimeout(
      () =>
        upgraded.reject(
          new Error("Cannot open a socket: the server did not respond to the upgrade"),
        ),
      OPEN_MS_MAX,
    );
    let raw: RawSocket | undefined;
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: () => upgraded.resolve(),
        drain: () => {
          if (raw !== undefined) raw.#flush();
        },
        close: () => {
          if (raw !== undefined) raw.#isClosed = true;
          upgraded.reject(new Error("Cannot open a socket: the server closed it"));
        },
        error: (_, error) => upgraded.reject(error),
      },
    });
    raw = new RawSocket(socket);
    const authorization = token === undefined ? "" : `Authorization: Bearer ${token}\r\n`;
    socket.write(
      `GET /v1/ws HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGlkZW1hcmsgYWJ1c2UhIQ==\r\n${authorization}\r\n`,
    );
    try {
      await upgraded.promise;
    } finally {
      clearTimeout(timer);
    }
    return raw;
  }

  /**
   * Stops reading permanently. The bytes sent by the server then fill up the kernel's buffers, and
   * then the server's own buffers.
   */
  stopReading(): void {
    this.#socket.pause();
  }

  sendText(text: string): void {
    this.sendFrame(OPCODE.text, Buffer.from(text));
  }

  /**
   * Sends a frame.
   * @param head The first byte: an opcode, with the final bit set unless more fragments follow.
   */
  sendFrame(
    opcode: number,
    payload: Uint8Array,
    { isFinal = true }: { isFinal?: boolean } = {},
  ): void {
    this.sendBytes(RawSocket.frame(opcode, payload, { isFinal }));
  }

  /** Returns the bytes of a frame. */
  static frame(
    opcode: number,
    payload: Uint8Array,
    { isFinal = true }: { isFinal?: boolean } = {},
  ): Uint8Array {
    const { length } = payload;
    const isLong = length > 125;
    const frame = new Uint8Array((isLong ? 10 : 2) + MASK_BYTES + length);
    frame[0] = (isFinal ? 0x80 : 0) | opcode;
    frame[1] = 0x80 | (isLong ? 127 : length);
    if (isLong) new DataView(frame.buffer).setUint32(6, length);
    frame.set(payload, frame.length - length);
    return frame;
  }

  /** Sends bytes unchanged, even if they are not a valid frame. */
  sendBytes(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    this.#unsent.push(bytes);
    if (this.#unsent.length === 1) this.#flush();
  }

  /** Resolves once the kernel has accepted everything that was sent, or the socket is closed. */
  async drained(): Promise<void> {
    while (this.#unsent.length > 0 && !this.#isClosed) await Bun.sleep(1);
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.terminate();
  }

  #flush(): void {
    for (let bytes = this.#unsent[0]; bytes !== undefined; bytes = this.#unsent[0]) {
      const sent = Math.max(0, this.#socket.write(bytes));
      if (sent < bytes.length) {
        this.#unsent[0] = bytes.subarray(sent);
        return;
      }
      this.#unsent.shift();
    }
  }
}

/**
 * Opens many sockets, a few at a time.
 *
 * @param tokenOf Returns the token of the n-th socket.
 */
export async function openRawSockets(
  url: string,
  count: number,
  tokenOf: (index: number) => string | undefined,
): Promise<RawSocket[]> {
  const sockets: RawSocket[] = [];
  while (sockets.length < count) {
    const first = sockets.length;
    const some = Array.from({ length: Math.min(OPENING_MAX, count - first) }, (_, place) =>
      RawSocket.open(url, tokenOf(first + place)),
    );
    sockets.push(...(await Promise.all(some)));
  }
  return sockets;
}
