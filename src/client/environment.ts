/**
 * Defines which facilities of the runtime the client uses: requests, sockets, timers and random
 * numbers. Browsers, Bun, Deno and Node provide all of them as globals; tests supply their own
 * versions.
 */

/** The body of a response. Its bytes are read on demand. */
export interface BodyStream {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
    cancel(): Promise<void>;
  };
}

/**
 * A body to be sent unchanged. A stream is sent while it is being produced, if the runtime
 * supports that.
 */
export type BodyData =
  | string
  | Uint8Array<ArrayBuffer>
  | Blob
  | ReadableStream<Uint8Array<ArrayBuffer>>;

/** The properties of a response that the client reads. */
export interface HttpResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly headers?: { get(name: string): string | null };
  /**
   * The body, in runtimes that support streams. If it is absent, the client can only read the
   * entire response at once.
   */
  readonly body?: BodyStream | null;
  /** Returns the parsed body. Rejects with a SyntaxError if the body is not JSON. */
  json(): Promise<unknown>;
}

export interface HttpRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  /** The data of a copy, or a form with files. If this is set, `body` is absent. */
  readonly data?: BodyData | FormData;
  /** The signal that aborts the request; absent if the caller cannot abort it. */
  readonly signal?: AbortSignal;
}

/** The part of a WebSocket that the client uses. It sends and receives text frames. */
export interface Socket {
  send(text: string): void;
  close(): void;
}

export interface SocketHandlers {
  readonly onOpen: () => void;
  readonly onText: (text: string) => void;
  /** Called when the connection has closed, or if it could not be opened. */
  readonly onClose: (code: number) => void;
}

export interface ClientEnvironment {
  fetch(url: string, request: HttpRequest): Promise<HttpResponse>;
  /**
   * Requires that the runtime has WebSockets.
   * @throws {Error} If it has none; the message says which versions do.
   */
  requireSockets?(): void;
  connect(url: string, handlers: SocketHandlers): Socket;
  /** Runs `callback` once, after a delay. Returns a function that cancels the timer. */
  after(delayMs: number, callback: () => void): () => void;
  /**
   * Runs `callback` when the runtime reports that the network is available again, so that the
   * client need not wait any longer. Returns a function that removes the callback.
   */
  whenOnline?(callback: () => void): () => void;
  /**
   * Runs `callback` whenever the network becomes available again or the page becomes visible
   * again, because the socket may have failed unnoticed in the meantime. Returns a function that
   * removes the callback.
   */
  whenBack?(callback: () => void): () => void;
  /** Returns a random number in [0, 1). */
  random(): number;
  /** The time in milliseconds since 1970; taken from the runtime's clock if omitted. */
  now?(): number;
}

/** A client environment that always has a clock. */
export interface WholeEnvironment extends ClientEnvironment {
  now(): number;
}

/** The global functions for subscribing to page events, which some runtimes lack. */
interface Listening {
  addEventListener?(type: string, listener: () => void): void;
  removeEventListener?(type: string, listener: () => void): void;
}

interface BrowserGlobals extends Listening {
  readonly document?: Listening & { readonly visibilityState?: string };
  readonly WebSocket?: unknown;
}

/**
 * The maximum delay of a timer. Runtimes store delays in 32 bits, so a timer with a longer delay
 * would fire immediately.
 */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** The option that fetch requires if the body is a stream. */
const HALF_DUPLEX = { duplex: "half" } as const;

/** The global objects of the JavaScript runtime. */
export const globalEnvironment: ClientEnvironment = {
  fetch: (url, { data, ...request }) =>
    fetch(url, data === undefined ? request : { ...request, body: data, ...HALF_DUPLEX }),
  requireSockets() {
    const { WebSocket: socket }: BrowserGlobals = globalThis;
    if (socket !== undefined) return;
    throw new Error(
      "Cannot follow the query: this runtime has no WebSocket; use Node 22 or later (Node 20 " +
        "and 21 need --experimental-websocket), Bun, Deno or a browser",
    );
  },
  connect: (url, handlers) => new LazySocket(url, handlers),
  after(delayMs, callback) {
    const timer = globalThis.setTimeout(callback, delayMs);
    return () => globalThis.clearTimeout(timer);
  },
  whenOnline: (callback) => listen(globalThis, "online", callback),
  whenBack(callback) {
    const page: BrowserGlobals = globalThis;
    const { document } = page;
    const cancels = [
      listen(page, "online", callback),
      listen(page, "pageshow", callback),
      listen(document ?? page, "visibilitychange", () => {
        if (document?.visibilityState !== "hidden") callback();
      }),
    ];
    return () => {
      for (const cancel of cancels) cancel();
    };
  },
  random() {
    const [word = 0] = crypto.getRandomValues(new Uint32Array(1));
    return word / 4294967296;
  },
};

function listen(target: Listening, type: string, callback: () => void): () => void {
  target.addEventListener?.(type, callback);
  return () => target.removeEventListener?.(type, callback);
}

/**
 * A WebSocket that starts opening at the end of the tick that requests it, and is closed only once
 * it is open. Browsers warn if a socket is closed before it is open, and a component that React
 * mounts, unmounts and mounts again should open only a single socket.
 */
class LazySocket implements Socket {
  readonly #handlers: SocketHandlers;
  #socket: WebSocket | undefined;
  #isClosed = false;

  constructor(url: string, handlers: SocketHandlers) {
    this.#handlers = handlers;
    queueMicrotask(() => {
      if (!this.#isClosed) this.#open(url);
    });
  }

  send(text: string): void {
    this.#socket?.send(text);
  }

  close(): void {
    this.#isClosed = true;
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.close();
  }

  #open(url: string): void {
    const { onClose, onOpen, onText } = this.#handlers;
    const socket = new WebSocket(url);
    this.#socket = socket;
    socket.addEventListener("open", () => (this.#isClosed ? socket.close() : onOpen()));
    socket.addEventListener("message", ({ data }) => {
      if (typeof data === "string") onText(data);
    });
    socket.addEventListener("close", ({ code }) => onClose(code));
  }
}

/** Wraps an environment so that its timers accept delays of any length. */
export function withLongTimers(given: ClientEnvironment): WholeEnvironment {
  return {
    fetch: (url, request) => given.fetch(url, request),
    requireSockets: () => given.requireSockets?.(),
    connect: (url, handlers) => given.connect(url, handlers),
    after: (delayMs, callback) => longTimer(given, delayMs, callback),
    whenOnline: (callback) => given.whenOnline?.(callback) ?? nothing,
    whenBack: (callback) => given.whenBack?.(callback) ?? nothing,
    random: () => given.random(),
    now: () => given.now?.() ?? new Date().getTime(),
  };
}

function longTimer(
  given: Pick<ClientEnvironment, "after">,
  delayMs: number,
  callback: () => void,
): () => void {
  if (delayMs <= TIMER_MS_MAX) return given.after(delayMs, callback);
  let cancel = given.after(TIMER_MS_MAX, () => {
    cancel = longTimer(given, delayMs - TIMER_MS_MAX, callback);
  });
  return () => cancel();
}

function nothing(): void {}
