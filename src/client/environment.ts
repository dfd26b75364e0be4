/**
 * What the client needs of where it runs: requests, sockets, timers, chance. Browsers, Bun, Deno
 * and Node offer all of them as globals; a test gives its own.
 */

/** The part of a response that the client reads. */
export interface HttpResponse {
  readonly ok: boolean;
  readonly status: number;
  json(): Promise<unknown>;
}

export interface HttpRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  /** Given when the caller may lose interest. */
  readonly signal?: AbortSignal;
}

/** A WebSocket as the client uses it; frames are text. */
export interface Socket {
  send(text: string): void;
  close(): void;
}

export interface SocketHandlers {
  readonly onOpen: () => void;
  readonly onText: (text: string) => void;
  /** Also called when the connection was never made. */
  readonly onClose: (code: number) => void;
}

export interface ClientEnvironment {
  fetch(url: string, request: HttpRequest): Promise<HttpResponse>;
  connect(url: string, handlers: SocketHandlers): Socket;
  /** Runs `callback` once; the answer cancels it. */
  after(delayMs: number, callback: () => void): () => void;
  /**
   * Runs `callback` when a network is there again, if that is ever known; the answer cancels it. A
   * wait for the server is then over.
   */
  whenOnline?(callback: () => void): () => void;
  /** A number in [0, 1). */
  random(): number;
}

/** What pages can listen to, and other runtimes may lack. */
interface Listening {
  addEventListener?(type: string, listener: () => void): void;
  removeEventListener?(type: string, listener: () => void): void;
}

/** The globals of the runtime. */
export const globalEnvironment: ClientEnvironment = {
  fetch: (url, request) => fetch(url, request),
  connect(url, { onClose, onOpen, onText }) {
    const socket = new WebSocket(url);
    socket.addEventListener("open", onOpen);
    socket.addEventListener("message", ({ data }) => {
      if (typeof data === "string") onText(data);
    });
    socket.addEventListener("close", ({ code }) => onClose(code));
    return socket;
  },
  after(delayMs, callback) {
    const timer = globalThis.setTimeout(callback, delayMs);
    return () => globalThis.clearTimeout(timer);
  },
  whenOnline(callback) {
    const page: Listening = globalThis;
    page.addEventListener?.("online", callback);
    return () => page.removeEventListener?.("online", callback);
  },
  random() {
    const [word = 0] = crypto.getRandomValues(new Uint32Array(1));
    return word / 4294967296;
  },
};
