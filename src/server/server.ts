/**
 * Runs the server: a single `Bun.serve` for HTTP and WebSocket.
 *
 *     request → Host → stopping? → connections → rate of the address → route → headers
 *                └───────── refused: shape A, or B on paths of shape B ─────┘
 *
 * A route refuses a request by throwing an error or rejecting its promise, and this file turns
 * both into responses. An unexpected error is a bug: the caller gets status 500, and `onBug` is
 * called.
 */
import { containingClock } from "../base/bugs.ts";
import { type CancelTimer, keepAlive } from "../base/clock.ts";
import { DiskError, hasNoDescriptor } from "../base/errors.ts";
import { rangesFrom } from "../base/ip_address.ts";
import { SeldomLog } from "../base/seldom_log.ts";
import { senderOf } from "../base/sender.ts";
import type { ConnectionAccess, MetricSample } from "../sql/mod.ts";
import { strangersWarning } from "./admission/origin.ts";
import { RateLimiter } from "./admission/rate_limit.ts";
import { AcceptWatch } from "./connections/accept_watch.ts";
import { Connections } from "./connections/connections.ts";
import { type SocketState, Sockets } from "./connections/sockets.ts";
import type { ServerConfig, ServerMemoryUse, ServerOptions } from "./contract/options.ts";
import { endpointsOf, SOCKET_PATH } from "./endpoints.ts";
import { hasShortBody } from "./http/body_ledger.ts";
import { Cors } from "./http/cors.ts";
import { Exchange, type ExchangeOptions, RequestIds } from "./http/exchange.ts";
import {
  bugError,
  HttpError,
  isWorthLogging,
  RETRY_SECONDS,
  responseFromError,
  tooManyConnections,
} from "./http/http_error.ts";
import { RequestBatches } from "./http/request_batches.ts";
import { empty, json } from "./http/responses.ts";
import { allowedMethods, type Found, isAllowed, methodNotAllowed, Router } from "./http/router.ts";
import { ClientMemory } from "./measures/client_memory.ts";
import { type DescriptorGauge, type Gauges, Metrics } from "./measures/metrics.ts";

export interface RunningServer {
  /** Scheme, host and port, e.g. "http://127.0.0.1:2900". */
  readonly url: string;
  readonly port: number;
  /** Access to the connections that `system.connections` lists and KILL CONNECTION ends. */
  readonly connections: ConnectionAccess;
  /** The metrics for `system.stats`, which are the same as those of `/metrics`. */
  metrics(): readonly MetricSample[];
  /** The memory that the server uses for its connections. */
  memory(): ServerMemoryUse;
  /**
   * Starts listening with a different certificate. Open connections keep the old certificate. If
   * the server cannot listen with the new certificate, it continues with the old certificate and
   * returns the reason.
   *
   * @throws {Error} If the server can listen with neither certificate.
   */
  replaceTls(tls: TlsTexts): string | undefined;
  /**
   * Shuts down: refuses new work, gives running requests up to `server.shutdown_timeout_secs` to
   * finish, answers all others with SHUTTING_DOWN, flushes the connections' queues, and closes.
   * Resolves once the port is free.
   */
  stop(): Promise<void>;
}

/** A certificate and its key in PEM form. */
export interface TlsTexts {
  readonly cert: string;
  readonly key: string;
}

/** The certificate and its key, either as text or as files to read. */
type Tls = TlsTexts | Readonly<Record<keyof TlsTexts, Bun.BunFile>>;

/**
 * The interval, in milliseconds, at which a server that is shutting down checks whether its
 * requests have ended.
 */
const STOP_POLL_MS = 10;

/**
 * How long the server waits, in milliseconds, until the responses to statements ended by the
 * shutdown have been sent.
 */
const ANSWER_MS_MAX = 2000;

/** The paths to which a server that is shutting down still responds. */
const PROBES: ReadonlySet<string> = new Set(["/health/live", "/health/ready"]);

/**
 * Starts listening, and serves requests.
 *
 * @throws {DatabaseError} INVALID_OPTION if an address list cannot be read.
 * @throws {Error} If the address cannot be bound. The error has the system's `code`, such as
 *   EADDRINUSE.
 */
export function startServer(options: ServerOptions): RunningServer {
  return new HttpServer(options);
}

class HttpServer implements RunningServer {
  readonly #options: ServerOptions;
  readonly #cors: Cors;
  readonly #exchanges: ExchangeOptions;
  readonly #seldomLog: SeldomLog;
  readonly #connections: Connections;
  readonly #clientMemory: ClientMemory;
  readonly #metrics: Metrics;
  readonly #addressRate: RateLimiter;
  readonly #router: Router;
  readonly #sockets: Sockets;
  readonly #batches: RequestBatches;
  #bun: Bun.Server<SocketState>;
  /**
   * Earlier `Bun.serve` instances. They accept no new connections, but still serve the open ones.
   */
  readonly #retired = new Set<Bun.Server<SocketState>>();
  #tls: Tls | undefined;
  /** The address on which the server listens. It stays the same while accepting is paused. */
  #address: { readonly port: number; readonly origin: string };
  readonly #acceptWatch: AcceptWatch | undefined;
  readonly #stopListening: () => void;
  #runningCount = 0;
  #connectionCount = 0;
  #isStopping = false;
  #stopped: Promise<void> | undefined;

  constructor(options: ServerOptions) {
    const { config, onBug } = options;
    const clock = containingClock(options.clock, onBug);
    this.#options = { ...options, clock };
    this.#seldomLog = new SeldomLog(options.log, clock);
    this.#cors = new Cors(config, this.#seldomLog);
    this.#exchanges = {
      network: {
        trustedProxies: rangesFrom("security.trusted_proxies", config.security.trusted_proxies),
        hasProxies: config.security.trusted_proxies.length > 0,
        allowedHosts: new Set(config.security.allowed_hosts.map((host) => host.toLowerCase())),
        onStranger: strangersWarning(options.log),
      },
      requestIds: new RequestIds(options),
      publicOrigin: config.server.public_origin,
      basePath: config.server.base_path ?? "",
      ownUrl: () => this.url,
      idleSeconds: config.performance.keepalive_timeout,
      peers: {
        requestIP: (request) => this.#bun.requestIP(request),
        timeout: (request, seconds) => this.#bun.timeout(request, seconds),
      },
    };
    this.#connections = new Connections(clock, onBug);
    this.#addressRate = new RateLimiter({
      clock,
      perSecond: config.limits.requests_per_sec_per_ip,
    });
    this.#clientMemory = new ClientMemory(options, this.#connections);
    const gauges = this.#gauges();
    this.#metrics = new Metrics({ clock, version: options.version, gauges });
    this.#router = new Router(
      endpointsOf(this.#options, {
        cors: this.#cors,
        connections: this.#connections,
        clientMemory: this.#clientMemory,
        metrics: this.#metrics,
        isStopping: () => this.#isStopping,
        beginStream: () => this.#beginStream(),
        nextNumber: () => this.#nextNumber(),
        url: () => this.url,
      }),
    );
    this.#sockets = new Sockets({
      ...this.#options,
      cors: this.#cors,
      connections: this.#connections,
      sendBudget: this.#clientMemory.sendBudget,
      nextNumber: () => this.#nextNumber(),
      isStopping: () => this.#isStopping,
      onOpened: () => this.#metrics.socketOpened(),
    });
    this.#batches = new RequestBatches(clock, (request, arrivedMs) =>
      this.#serve(this.#exchangeOf(request, arrivedMs)),
    );
    this.#stopListening = options.auth.onRevoked((it) => this.#connections.revoke(it));
    this.#tls = tlsOf(config.server);
    this.#bun = this.#listen(config.server.port, this.#tls);
    this.#address = addressOf(this.#bun, config.server.port);
    this.#acceptWatch = this.#watchDescriptors();
  }

  get port(): number {
    return this.#address.port;
  }

  get connections(): ConnectionAccess {
    return this.#connections;
  }

  metrics(): readonly MetricSample[] {
    return this.#metrics.samples();
  }

  memory(): ServerMemoryUse {
    return this.#clientMemory.use(this.#sockets.heldBytes);
  }

  get url(): string {
    return this.#address.origin;
  }

  /**
   * The runtime's own `reload` does not replace the certificate, so a new server is started. A
   * stopped server frees its port in the same tick, and the new server takes the port before any
   * other code runs.
   */
  replaceTls(tls: TlsTexts): string | undefined {
    if (this.#isStopping) return "the server is shutting down";
    const before = this.#tls;
    this.#tls = tls;
    // Accepting is paused. The server will listen with the new certificate once descriptors are
    // available again.
    if (this.#acceptWatch?.isPaused === true) return undefined;
    this.#retire();
    try {
      this.#listenAgain();
    } catch (error) {
      this.#tls = before;
      this.#listenAgain();
      return String(error);
    }
    return undefined;
  }

  #watchDescriptors(): AcceptWatch | undefined {
    const { clock, descriptors, log } = this.#options;
    if (descriptors === undefined) return undefined;
    let letEnd: CancelTimer | undefined;
    const pause = (): void => {
      letEnd = keepAlive();
      this.#retire();
    };
    const resume = (): void => {
      this.#listenAgain();
      letEnd?.();
    };
    return new AcceptWatch({ clock, log, descriptors, pause, resume });
  }

  /** Stops accepting connections. Running requests continue, and idle connections are closed. */
  #retire(): void {
    const retired = this.#bun;
    this.#retired.add(retired);
    void retired.stop(false).then(() => this.#retired.delete(retired));
  }

  #listenAgain(): void {
    this.#bun = this.#listen(this.port, this.#tls);
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const { config, live, log, sql, topics } = this.#options;
    this.#isStopping = true;
    this.#acceptWatch?.stop();
    live.shutdown();
    topics.shutDown();
    const socketsClosed = this.#connections.shutDown("websocket");
    const timeoutSeconds = config.server.shutdown_timeout_secs;
    if (!(await this.#requestsEnded(timeoutSeconds * 1000))) {
      const count = sql.shutDown();
      if (count > 0) {
        const what = "ended statements that were still running after server.shutdown_timeout_secs";
        log.warn(what, { count, seconds: timeoutSeconds });
      }
      if (!(await this.#requestsEnded(ANSWER_MS_MAX))) {
        log.warn("shut down without responding to some requests", { count: this.#runningCount });
      }
    }
    await socketsClosed;
    // Event streams end last: their clients reconnect immediately, and should then find the port
    // closed or served by a new server.
    await this.#connections.shutDown("sse");
    this.#stopListening();
    this.#sockets.stop();
    await Promise.all([this.#bun, ...this.#retired].map((bun) => bun.stop(true)));
  }

  /** Waits for running requests to end. Returns whether all of them ended in time. */
  async #requestsEnded(timeoutMs: number): Promise<boolean> {
    const { clock } = this.#options;
    const deadlineMs = clock.monotonicMs() + timeoutMs;
    const startedWith = this.#runningCount;
    while (this.#runningCount > 0) {
      if (clock.monotonicMs() >= deadlineMs) return false;
      await this.#pollEnd();
    }
    // The last counted response may still be on its way to the socket.
    if (startedWith > 0) await this.#pollEnd();
    return true;
  }

  #pollEnd(): Promise<void> {
    return new Promise((resolve) => void this.#options.clock.after(STOP_POLL_MS, resolve));
  }

  /**
   * Registers a response body that is still being written after the request handler has returned.
   * Returns a function to be called when the body ends.
   */
  #beginStream(): () => void {
    this.#runningCount += 1;
    return () => {
      this.#runningCount -= 1;
    };
  }

  #listen(port: number, tls: Tls | undefined): Bun.Server<SocketState> {
    const { config } = this.#options;
    return Bun.serve<SocketState>({
      hostname: config.server.host,
      port,
      idleTimeout: config.performance.keepalive_timeout,
      // The routes check sizes themselves, so that they can respond with their own messages.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      development: false,
      // Outside development mode, Bun would otherwise let any other process listen on the same
      // port.
      reusePort: false,
      ...(tls === undefined ? {} : { tls }),
      fetch: (request, server) => this.#fetch(request, server),
      error: (error) => {
        this.#options.onBug(error, "a request");
        return new Response(null, { status: 500 });
      },
      websocket: this.#sockets.handler,
    });
  }

  /**
   * Serves a request. Only POST requests with short bodies are batched. Upgrades are not batched,
   * because a socket can be upgraded only in the tick of its request. Long bodies are not batched,
   * because they may have to be refused before more bytes arrive. All other requests are too rare
   * to be worth batching.
   */
  #fetch(
    request: Request,
    server: Bun.Server<SocketState>,
  ): Response | undefined | Promise<Response> {
    if (request.method === "POST" && hasShortBody(request)) {
      this.#runningCount += 1;
      return this.#batches.serve(request);
    }
    const exchange = this.#exchangeOf(request, this.#options.clock.monotonicMs());
    if (exchange.path === SOCKET_PATH && request.method === "GET") {
      return this.#upgrade(exchange, server);
    }
    this.#runningCount += 1;
    return this.#serve(exchange);
  }

  #exchangeOf(request: Request, arrivedMs: number): Exchange {
    return new Exchange(request, arrivedMs, this.#exchanges);
  }

  /**
   * Serves a request. The promise never rejects, because refusals and bugs become responses, too.
   */
  async #serve(exchange: Exchange): Promise<Response> {
    let found: Found | undefined;
    let response: Response;
    try {
      found = this.#router.find(exchange.path);
      response = await this.#answer(exchange, found);
    } catch (error) {
      response = this.#failure(exchange, error, found);
    }
    this.#noteFinished(exchange, response);
    return response;
  }

  #noteFinished(exchange: Exchange, response: Response): void {
    this.#runningCount -= 1;
    try {
      if (this.#cors.isOn) this.#cors.decorate(exchange.request, response.headers);
      const tookMs = this.#options.clock.monotonicMs() - exchange.startedMs;
      this.#metrics.request(response.status, tookMs);
    } catch (error) {
      // The bug is only reported: the response is complete, and the caller is waiting for it.
      this.#options.onBug(error, "the end of a request", { request: exchange.requestId });
    }
  }

  /**
   * Runs the route of a request.
   * @throws The refusal of the request, exactly as the route throws it.
   */
  #answer(exchange: Exchange, found: Found | undefined): Response | Promise<Response> {
    const { method } = exchange.request;
    this.#protect(exchange);
    if (found === undefined) throw this.#router.notFound(exchange.path);
    if (isAllowed(method, found.method)) {
      const { auth } = this.#options;
      const checked = auth.trustsOthers
        ? auth.checkExternal(exchange.request.headers.get("authorization"))
        : undefined;
      if (checked === undefined) return found.handle(exchange);
      return checked.then(() => found.handle(exchange));
    }
    if (method === "OPTIONS") return this.#options204(exchange, found);
    throw methodNotAllowed(exchange, found);
  }

  /**
   * Refuses requests before they reach a route, if they are malformed, exceed a limit, or arrive
   * during a shutdown.
   */
  #protect(exchange: Exchange): void {
    if (!exchange.isHostWellFormed) {
      throw new HttpError(
        400,
        "invalid_request",
        "The Host header is malformed: it must be a host name or an IP address, with an " +
          "optional port",
      );
    }
    this.#requireRunning(exchange);
    const { config } = this.#options;
    if (this.#runningCount + this.#connections.count > config.performance.max_connections) {
      throw tooManyConnections(config.performance.max_connections);
    }
    const { requests_per_sec_per_ip: perSecond } = config.limits;
    if (perSecond === 0 || exchange.isLocal) return;
    const waitMs = this.#addressRate.take(senderOf(exchange.address));
    if (waitMs === 0) return;
    throw new HttpError(
      429,
      "RATE_LIMIT_EXCEEDED",
      `Too many requests from this address: it may send at most ${perSecond} per second`,
      { retryAfterSeconds: Math.ceil(waitMs / 1000) },
    );
  }

  #requireRunning({ path }: Exchange): void {
    if (!this.#isStopping || PROBES.has(path)) return;
    throw new HttpError(503, "SHUTTING_DOWN", "The server is shutting down", {
      retryAfterSeconds: RETRY_SECONDS,
    });
  }

  #options204(exchange: Exchange, { method }: Found): Response {
    const response = empty(exchange, 204, { Allow: allowedMethods(method) });
    this.#cors.allowPreflight(exchange.request, response.headers);
    return response;
  }

  #failure(exchange: Exchange, error: unknown, found: Found | undefined): Response {
    const isPathLevel = error instanceof HttpError && error.status === 405;
    const shape = isPathLevel ? "A" : (found?.shape ?? "A");
    const { clock, log } = this.#options;
    const expected = responseFromError(exchange, error, { shape, clock });
    if (expected !== undefined) {
      if (expected.status >= 500 && isWorthLogging(error)) {
        const fields = { request: exchange.requestId, error: String(error) };
        const isShort = error instanceof DiskError && hasNoDescriptor(error.code);
        if (isShort) this.#seldomLog.error("request failed", fields);
        else log.error("request failed", fields);
      }
      return expected;
    }
    const { path, requestId } = exchange;
    this.#options.onBug(error, "a request", { request: requestId, path });
    return (
      responseFromError(exchange, bugError(shape), { shape, clock }) ?? json(exchange, 500, {})
    );
  }

  #upgrade(exchange: Exchange, server: Bun.Server<SocketState>): Response | undefined {
    try {
      this.#requireRunning(exchange);
      this.#sockets.upgrade(exchange, server);
      return undefined;
    } catch (error) {
      const response = this.#failure(exchange, error, undefined);
      if (response.status === 426) response.headers.set("Upgrade", "websocket");
      return response;
    }
  }

  #gauges(): Gauges {
    const { archiveLag, live, memoryGivenBack, memoryParts, readerCounts, storageState, topics } =
      this.#options;
    return {
      sockets: () => this.#connections.countBy("websocket"),
      eventStreams: () => this.#connections.countBy("sse"),
      subscriptions: () => live.subscriptions().length,
      delivery: () => live.delivery(),
      topics: () => topics.figures(),
      webhooks: this.#options.webhookFigures,
      requestsRunning: () => this.#runningCount,
      bugs: this.#options.bugCount,
      archive: archiveLag,
      storage: storageState,
      memory: memoryParts,
      memoryGivenBack,
      readers: readerCounts,
      descriptors: () => this.#descriptorGauge(),
    };
  }

  #descriptorGauge(): DescriptorGauge | undefined {
    if (this.#acceptWatch === undefined) return undefined;
    const { descriptors, isPaused, pauseCount } = this.#acceptWatch;
    return { ...descriptors, isPaused, pauseCount };
  }

  #nextNumber(): number {
    this.#connectionCount += 1;
    return this.#connectionCount;
  }
}

function tlsOf({ tls_cert: cert, tls_key: key }: ServerConfig["server"]): Tls | undefined {
  if (cert === undefined || key === undefined) return undefined;
  return { cert: Bun.file(cert), key: Bun.file(key) };
}

function addressOf(
  { port, url }: Bun.Server<SocketState>,
  configuredPort: number,
): { port: number; origin: string } {
  return { port: port ?? configuredPort, origin: url.origin };
}
