/**
 * Implements an HTTP/1.1 connection with one request at a time, for a load generator that must
 * take less processor time than the server. It understands both ways of delimiting bodies: by
 * length and by chunks.
 */
import type { Socket } from "bun";

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

export class HttpConnection {
  readonly #host: string;
  #socket: Socket | undefined;
  #received: Buffer = Buffer.alloc(0);
  #isOpen = true;
  #waiting: { resolve: (answer: HttpAnswer) => void; reject: (error: Error) => void } | undefined;

  private constructor(host: string) {
    this.#host = host;
  }

  /**
   * Opens a connection to a server.
   * @param url The base address, of which only the host and port are used.
   */
  static async open(url: string): Promise<HttpConnection> {
    const { hostname, port, host } = new URL(url);
    const connection = new HttpConnection(host);
    connection.#socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (_, chunk) => connection.#take(chunk),
        close: () => connection.#fail(new Error("the server closed the connection")),
        error: (_, error) => connection.#fail(error),
      },
    });
    connection.#socket.setNoDelay(true);
    return connection;
  }

  /** Whether the connection is still open. A server may close an idle connection. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  post(path: string, token: string, body: string): Promise<HttpAnswer> {
    if (this.#waiting !== undefined)
      throw new Error("Cannot send the request: another one is in progress");
    if (!this.#isOpen) throw new Error("Cannot send the request: the connection is closed");
    const head =
      `POST ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nAuthorization: Bearer ${token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
    const answer = new Promise<HttpAnswer>((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
    this.#write(Buffer.from(head + body));
    return answer;
  }

  close(): void {
    this.#isOpen = false;
    this.#waiting = undefined;
    this.#socket?.end();
  }

  #write(bytes: Buffer): void {
    if (!this.#isOpen) return;
    const sent = this.#socket?.write(bytes) ?? 0;
    // The kernel accepts the remaining bytes once the socket's buffer has drained. Only large
    // bodies need this.
    if (sent < bytes.length) setImmediate(() => this.#write(bytes.subarray(Math.max(0, sent))));
  }

  #take(chunk: Buffer): void {
    this.#received =
      this.#received.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#received, chunk]);
    const answer = answerFrom(this.#received);
    if (answer === undefined) return;
    this.#received = Buffer.alloc(0);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(answer);
  }

  #fail(error: Error): void {
    this.#isOpen = false;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(error);
  }
}

/** Parses a complete response. Returns undefined while part of the response is missing. */
export function answerFrom(bytes: Buffer): HttpAnswer | undefined {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd === -1) return undefined;
  const head = bytes.toString("latin1", 0, headEnd).toLowerCase();
  const status = Number(head.slice(9, 12));
  const start = headEnd + 4;
  const [, length] = /\r\ncontent-length: *(\d+)/.exec(head) ?? [];
  if (length !== undefined) {
    const end = start + Number(length);
    return bytes.length < end ? undefined : { status, body: bytes.toString("utf8", start, end) };
  }
  if (!/\r\ntransfer-encoding: *chunked/.test(head)) return { status, body: "" };
  return answerFromChunks(bytes, start, status);
}

function answerFromChunks(bytes: Buffer, start: number, status: number): HttpAnswer | undefined {
  const parts: Buffer[] = [];
  let offset = start;
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", offset);
    if (lineEnd === -1) return undefined;
    const size = Number.parseInt(bytes.toString("latin1", offset, lineEnd), 16);
    const next = lineEnd + 2 + size + 2;
    if (bytes.length < next) return undefined;
    if (size === 0) return { status, body: Buffer.concat(parts).toString() };
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    offset = next;
  }
}
