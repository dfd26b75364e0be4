/** An SQL request that sends nearly all of its body and withholds the end. */
import type { Socket } from "bun";

/** A body size just below the size from which the server treats a body as large. */
const BODY_BYTES = 1_048_000;

const KEPT_BACK_BYTES = 10;

export interface UnfinishedRequest {
  /** The part of the response received so far. */
  readonly answer: string;
  readonly isClosed: boolean;
  close(): void;
}

export interface UnfinishedOptions {
  readonly token: string;
  /** True to send the body in chunks, so that no header declares its size. */
  readonly isChunked: boolean;
}

export async function openUnfinished(
  url: string,
  { isChunked, token }: UnfinishedOptions,
): Promise<UnfinishedRequest> {
  const { host, hostname, port } = new URL(url);
  const size = isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${BODY_BYTES}`;
  const head =
    `POST /v1/api/sql HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n` +
    `Content-Type: application/json\r\n${size}\r\n\r\n` +
    (isChunked ? `${BODY_BYTES.toString(16)}\r\n` : "");
  let unsent = Buffer.concat([Buffer.from(head), BODY]);
  let answer = "";
  let isClosed = false;
  const send = (socket: Socket): void => {
    while (unsent.length > 0) {
      const sent = socket.write(unsent);
      if (sent <= 0) return;
      unsent = unsent.subarray(sent);
    }
  };
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      open: send,
      drain: send,
      data: (_, bytes) => {
        answer += bytes.toString("latin1");
      },
      close: () => {
        isClosed = true;
      },
      error: () => {
        isClosed = true;
      },
    },
  });
  return {
    get answer() {
      return answer;
    },
    get isClosed() {
      return isClosed;
    },
    close: () => socket.terminate(),
  };
}

const BODY = Buffer.alloc(BODY_BYTES - KEPT_BACK_BYTES, " ");
