/**
 * Every endpoint but that of the WebSocket: its path, and what its route is made of.
 */
import type { Connections } from "./connections.ts";
import { rangesFrom } from "./ip_address.ts";
import type { Metrics } from "./metrics.ts";
import type { Readiness, ServerOptions } from "./options.ts";
import { empty } from "./responses.ts";
import type { Route } from "./route.ts";
import { notFound, type PrefixRoute } from "./router.ts";
import { authRoutes } from "./routes/auth.ts";
import { fileResponse } from "./routes/files.ts";
import { healthRoutes } from "./routes/health.ts";
import { liveRoute } from "./routes/live.ts";
import { sqlRoute } from "./routes/sql.ts";
import { handleUi } from "./routes/ui.ts";

/** What routes ask of the server that is running. */
export interface ServerParts {
  readonly connections: Connections;
  readonly metrics: Metrics;
  readonly readiness: () => Readiness;
  /** A body is still being written when its request has been answered. Returns what ends it. */
  readonly beginStream: () => () => void;
  /** The number of the next connection. */
  readonly nextNumber: () => number;
  /** Scheme, host and port; known once it listens. */
  readonly url: () => string;
}

/** @throws {DatabaseError} INVALID_OPTION if an address list cannot be read. */
export function routesOf(options: ServerOptions, parts: ServerParts): readonly Route[] {
  const { config, auth, live, sql, clock, version, buildDate, onBug } = options;
  const { beginStream, connections, metrics, nextNumber, readiness, url } = parts;
  return [
    sqlRoute({ auth, sql, config, clock, onBug, beginStream }),
    liveRoute({ auth, live, config, clock, connections, nextNumber }),
    ...authRoutes({
      auth,
      bodyBytesMax: config.limits.max_body_bytes,
      areCookiesSecure: config.auth.cookie_secure,
    }),
    ...healthRoutes({
      auth,
      metrics,
      metricsAllow: rangesFrom("security.metrics_allow", config.security.metrics_allow),
      version,
      buildDate,
      readiness,
      isReadOnly: () => options.isReadOnly?.() ?? false,
      apiAddress: url,
      uptimeSeconds: () => metrics.uptimeSeconds,
    }),
    { path: "/", method: "GET", shape: "A", handle: (it) => empty(it, 302, { Location: "/ui" }) },
  ];
}

/** Subtrees: files, and the admin page where it is wanted. */
export function prefixesOf(options: ServerOptions): readonly PrefixRoute[] {
  const { config, uiAssets: assets, random } = options;
  const handleFile: PrefixRoute["handle"] = (exchange, rest) =>
    fileResponse(options, exchange, rest);
  const prefixes: PrefixRoute[] = [
    { prefix: "/v1/files/", method: "GET", shape: "B", handle: handleFile },
    { prefix: "/api/v1/files/", method: "GET", shape: "B", handle: handleFile },
  ];
  if (config.server.ui_enabled) {
    const mayCompress = config.performance.http_compression;
    prefixes.push({
      prefix: "/ui",
      method: "GET",
      shape: "A",
      handle(exchange, rest) {
        if (rest !== "" && !rest.startsWith("/")) throw notFound(exchange.path);
        return handleUi(exchange, rest, { assets, random, mayCompress });
      },
    });
  }
  return prefixes;
}
