/**
 * An HTTP connection that stays open and sends one request at a time. The runtime's own client
 * opens only a limited number of connections, which would throttle a flood.
 */
import type { Socket } from "bun";

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

export class HttpConnection {
  readonly #host: string;
  #socket: Socket | undefined;
  #received = "";
  #pending: PromiseWithResolvers<HttpAnswer> | undefined;
  #isClosed = false;

  private constructor(host: string) {
    this.#host = host;
  }

  static async open(url: string): Promise<HttpConnection> {
    const { host, hostname, port } = new URL(url);
    const connection = new HttpConnection(host);
    connection.#socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (_, bytes) => connection.#receive(bytes.toString("latin1")),
        close: () => connection.#fail(new Error("The server closed a connection")),
        error: (_, error) => connection.#fail(error),
      },
    });
    return connection;
  }

  /** True once the server has closed the connection, which it does after a long idle time. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Sends a request. Must be called only after the response to the previous request has arrived.
   */
  async post(path: string, body: object): Promise<HttpAnswer> {
    const text = JSON.stringify(body);
    const pending = Promise.withResolvers<HttpAnswer>();
    this.#pending = pending;
    this.#socket?.write(
      `POST ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${text.length}\r\n\r\n${text}`,
    );
    return await pending.promise;
  }

  close(): void {
    this.#pending = undefined;
    this.#socket?.terminate();
  }

  #receive(text: string): void {
    this.#received += text;
    const end = this.#received.indexOf("\r\n\r\n");
    if (end < 0) return;
    const head = this.#received.slice(0, end);
    const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    const body = this.#received.slice(end + 4);
    if (body.length < length) return;
    this.#received = "";
    this.#pending?.resolve({ status: Number(head.slice(9, 12)), text: body });
  }

  #fail(error: Error): void {
    this.#isClosed = true;
    this.#pending?.reject(error);
  }
}
