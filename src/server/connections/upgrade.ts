/**
 * Validates an upgrade request on `GET /v1/ws` and reads its options.
 */

import type { ServerConfig } from "../contract/options.ts";
import { frameFormat } from "../frames/encode.ts";
import type { Cors } from "../http/cors.ts";
import type { Exchange } from "../http/exchange.ts";
import { HttpError, RETRY_SECONDS, tooManyConnections } from "../http/http_error.ts";
import type { ConnectionRequest } from "./connection_options.ts";
import type { Connections } from "./connections.ts";

export interface UpgradeRules {
  readonly config: ServerConfig;
  readonly cors: Cors;
  readonly connections: Connections;
}

/**
 * Reads an upgrade request. The caller has already checked that the server is not stopping.
 *
 * @throws {HttpError} TOO_MANY_CONNECTIONS, upgrade_required, origin_not_allowed, in this order.
 */
export function connectionRequestFrom(exchange: Exchange, rules: UpgradeRules): ConnectionRequest {
  refuseTooMany(exchange, rules);
  const { request } = exchange;
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
    throw upgradeRequired(request);
  }
  if (!rules.cors.mayUpgrade(request)) {
    throw new HttpError(
      403,
      "origin_not_allowed",
      "Pages from this origin are not allowed to connect",
    );
  }
  const query = new URLSearchParams(exchange.query);
  const isGzipForbidden = /^(?:false|0|no)$/i.test(query.get("compress") ?? "");
  const mayGzip = rules.config.websocket.compression && !isGzipForbidden;
  return {
    // The caller's address is determined now, because the request no longer exists after the
    // upgrade.
    caller: { address: rules.connections.shared(exchange.address), isLocal: exchange.isLocal },
    bearer: request.headers.get("authorization") ?? undefined,
    format: frameFormat(
      query.get("serialization") === "msgpack" ? "msgpack" : "json",
      mayGzip && query.get("compression") !== "none",
    ),
    isGzipForbidden,
    peer: exchange.peer,
  };
}

/**
 * Returns the error for a request that is not a WebSocket handshake, or whose handshake was broken
 * by a proxy.
 */
export function upgradeRequired({ headers }: Request): HttpError {
  // By default, a proxy forwards Sec-WebSocket-Key, but not the hop-by-hop headers Connection and
  // Upgrade.
  const isProxied = headers.has("sec-websocket-key");
  const what = isProxied
    ? "The WebSocket handshake lacks the headers Upgrade: websocket and Connection: Upgrade"
    : "This endpoint accepts only WebSocket connections: open it with the headers Upgrade: websocket and Connection: Upgrade";
  const proxy =
    "proxies between the client and the server must forward both headers over HTTP/1.1; in " +
    "nginx: proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header " +
    'Connection "upgrade";';
  return new HttpError(426, "upgrade_required", `${what}; ${proxy}`);
}

/**
 * Throws if too many connections are open.
 * @throws {HttpError} TOO_MANY_CONNECTIONS, for all connections or for this address.
 */
export function refuseTooMany(
  exchange: Exchange,
  { config, connections }: Omit<UpgradeRules, "cors">,
): void {
  const { max_connections: all } = config.performance;
  if (connections.count >= all) throw tooManyConnections(all);
  const { connections_per_ip: perAddress } = config.limits;
  if (perAddress === 0 || exchange.isLocal) return;
  if (connections.countOf(exchange.address) < perAddress) return;
  throw new HttpError(
    503,
    "TOO_MANY_CONNECTIONS",
    `Too many connections from this address: the server accepts at most ${perAddress} per address`,
    { retryAfterSeconds: RETRY_SECONDS },
  );
}
