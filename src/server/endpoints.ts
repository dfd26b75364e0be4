/**
 * Every endpoint: its path, and what its route is made of.
 */

import { rangesFrom } from "./common/ip_address.ts";
import type { Metrics } from "./common/metrics.ts";
import type { ServerOptions } from "./common/options.ts";
import type { Connections } from "./connections/connections.ts";
import { upgradeRequired } from "./connections/upgrade.ts";
import { BodyLedger } from "./http/body_ledger.ts";
import type { Cors } from "./http/cors.ts";
import type { Exchange } from "./http/exchange.ts";
import { empty } from "./http/responses.ts";
import type { Route } from "./http/route.ts";
import type { Endpoints, PrefixRoute } from "./http/router.ts";
import { fileOperation, SOCKET_OPERATION, UI_OPERATIONS } from "./openapi/operations.ts";
import { authRoutes } from "./routes/auth.ts";
import { clientRoutes } from "./routes/client.ts";
import { fileResponse } from "./routes/files.ts";
import { healthRoutes } from "./routes/health.ts";
import { liveRoute } from "./routes/live.ts";
import { openApiRoute } from "./routes/openapi.ts";
import { sqlRoute } from "./routes/sql.ts";
import { handleUi, type UiRouteOptions } from "./routes/ui.ts";

/** What routes ask of the server that is running. */
export interface ServerParts {
  readonly cors: Cors;
  readonly connections: Connections;
  readonly metrics: Metrics;
  /** Whether it takes no more requests but probes. */
  readonly isStopping: () => boolean;
  /** A body is still being written when its request has been answered. Returns what ends it. */
  readonly beginStream: () => () => void;
  /** The number of the next connection. */
  readonly nextNumber: () => number;
  /** Scheme, host and port; known once it listens. */
  readonly url: () => string;
}

/** Where a request becomes a connection. */
export const SOCKET_PATH = "/v1/ws";

/** Leads who names no path to the admin page. */
const ROOT: Route = {
  path: "/",
  method: "GET",
  shape: "A",
  operation: UI_OPERATIONS.root,
  handle: (exchange) => empty(exchange, 302, { Location: "/ui" }),
};

/** @throws {DatabaseError} INVALID_OPTION if an address list cannot be read. */
export function endpointsOf(options: ServerOptions, parts: ServerParts): Endpoints {
  const endpoints: Endpoints = {
    routes: [
      ...routesOf(options, parts),
      openApiRoute({
        endpoints: () => endpoints,
        version: options.version,
        mayCompress: options.config.performance.http_compression,
      }),
    ],
    prefixes: prefixesOf(options),
  };
  return endpoints;
}

function routesOf(options: ServerOptions, parts: ServerParts): readonly Route[] {
  const { config, auth, live, sql, clock, version, buildDate, onBug } = options;
  const { beginStream, connections, cors, isStopping, metrics, nextNumber, url } = parts;
  const bodies = new BodyLedger();
  const mayUseCookies = (request: Request): boolean => cors.mayUseCookies(request);
  return [
    sqlRoute({ auth, sql, config, clock, bodies, onBug, beginStream }),
    liveRoute({ auth, live, config, clock, onBug, connections, mayUseCookies, nextNumber }),
    ...authRoutes({
      auth,
      bodies,
      bodyBytesMax: config.limits.max_body_bytes,
      areCookiesSecure: config.auth.cookie_secure,
      mayUseCookies,
      mayAct: (request) => cors.mayAct(request),
    }),
    ...healthRoutes({
      auth,
      metrics,
      metricsAllow: rangesFrom("security.metrics_allow", config.security.metrics_allow),
      mayCompress: config.performance.http_compression,
      version,
      buildDate,
      isStopping,
      nodeId: config.cluster.node_id,
      isReadOnly: options.isReadOnly,
      apiAddress: url,
      uptimeSeconds: () => metrics.uptimeSeconds,
    }),
    ...clientRoutes({
      assets: options.clientAssets,
      mayCompress: config.performance.http_compression,
    }),
    {
      path: SOCKET_PATH,
      method: "GET",
      shape: "A",
      operation: SOCKET_OPERATION,
      handle: refusePlain,
    },
    ...(config.server.ui_enabled ? [ROOT, uiPage(options)] : []),
  ];
}

/** Subtrees: files, and the admin page where it is wanted. */
function prefixesOf(options: ServerOptions): readonly PrefixRoute[] {
  const files: Omit<PrefixRoute, "operation" | "prefix"> = {
    template: "{namespace}/{table}/{sub}/{stored_name}",
    method: "GET",
    shape: "B",
    handle: (exchange, rest) => fileResponse(options, exchange, rest),
  };
  return [
    { ...files, prefix: "/v1/files/", operation: fileOperation("file") },
    { ...files, prefix: "/api/v1/files/", operation: fileOperation("fileByAlias") },
    ...(options.config.server.ui_enabled ? [uiAssets(options)] : []),
  ];
}

function uiPage(options: ServerOptions): Route {
  return {
    path: "/ui",
    method: "GET",
    shape: "A",
    operation: UI_OPERATIONS.page,
    handle: (exchange) => handleUi(exchange, "", uiOptions(options)),
  };
}

function uiAssets(options: ServerOptions): PrefixRoute {
  return {
    prefix: "/ui/",
    template: "{path}",
    method: "GET",
    shape: "A",
    operation: UI_OPERATIONS.asset,
    handle: (exchange, rest) => handleUi(exchange, rest, uiOptions(options)),
  };
}

function uiOptions({ config, random, uiAssets: assets }: ServerOptions): UiRouteOptions {
  return { assets, random, mayCompress: config.performance.http_compression };
}

/** What is no upgrade: HEAD, for one. */
function refusePlain({ request }: Exchange): Response {
  throw upgradeRequired(request);
}
