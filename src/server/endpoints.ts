/**
 * The table of all endpoints: each path with its route.
 */

import { rangesFrom } from "../base/ip_address.ts";
import type { Connections } from "./connections/connections.ts";
import { upgradeRequired } from "./connections/upgrade.ts";
import type { ServerOptions } from "./contract/options.ts";
import type { Cors } from "./http/cors.ts";
import type { Exchange } from "./http/exchange.ts";
import { empty } from "./http/responses.ts";
import type { Route } from "./http/route.ts";
import type { Endpoints, PrefixRoute } from "./http/router.ts";
import { UserRate } from "./http/user_rate.ts";
import type { ClientMemory } from "./measures/client_memory.ts";
import type { Metrics } from "./measures/metrics.ts";
import { UI_OPERATIONS } from "./openapi/asset_operations.ts";
import { fileOperation, SOCKET_OPERATION } from "./openapi/operations.ts";
import { accountRoutes } from "./routes/accounts.ts";
import { authRoutes } from "./routes/auth.ts";
import { clientRoutes } from "./routes/client.ts";
import { copyRoute } from "./routes/copy.ts";
import { exportPaths } from "./routes/exports.ts";
import { type FileRouteOptions, fileResponse } from "./routes/files.ts";
import { healthRoutes } from "./routes/health.ts";
import { liveRoute } from "./routes/live.ts";
import { openApiRoute } from "./routes/openapi.ts";
import {
  type ProviderRouteOptions,
  providerPaths,
  providerRoutes,
} from "./routes/provider_logins.ts";
import { sqlRoute } from "./routes/sql.ts";
import { topicRoutes } from "./routes/topics.ts";
import { transactionPaths, transactionRoute } from "./routes/transactions.ts";
import { handleUi, type UiRouteOptions } from "./routes/ui.ts";

/** The parts of the server that HTTP routes use. */
export interface ServerParts {
  readonly cors: Cors;
  readonly connections: Connections;
  readonly clientMemory: ClientMemory;
  readonly metrics: Metrics;
  /** Returns whether the server is stopping. If it is, only probes are accepted. */
  readonly isStopping: () => boolean;
  /**
   * Registers a response body that is still being written after its request handler has returned.
   * Returns a function to call when the body ends.
   */
  readonly beginStream: () => () => void;
  /** Returns a new connection number. */
  readonly nextNumber: () => number;
  /** Returns the scheme, host and port. They are known once the server is listening. */
  readonly url: () => string;
}

/** The path of WebSocket connections. */
export const SOCKET_PATH = "/v1/ws";

/** The route that redirects requests without a path to the admin page. */
const ROOT: Route = {
  path: "/",
  method: "GET",
  shape: "A",
  operation: UI_OPERATIONS.root,
  handle: (exchange) => empty(exchange, 302, { Location: `${exchange.basePath}/ui` }),
};

/**
 * Creates the routes of the server.
 * @throws {DatabaseError} INVALID_OPTION if an address list cannot be read.
 */
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
    prefixes: prefixesOf(options, parts),
  };
  return endpoints;
}

function routesOf(options: ServerOptions, parts: ServerParts): readonly Route[] {
  const { config, auth, live, sql, clock, version, buildDate, onBug } = options;
  const { beginStream, clientMemory, connections, cors, isStopping, metrics } = parts;
  const { nextNumber, url } = parts;
  const { bodies, largeBodies, sendBudget } = clientMemory;
  const mayUseCookies = (request: Request): boolean => cors.mayUseCookies(request);
  const forAuth = authOptionsOf(options, parts);
  const userRate = new UserRate(clock, config.limits.queries_per_sec_per_user);
  return [
    sqlRoute({ auth, sql, config, clock, bodies, largeBodies, userRate, onBug, beginStream }),
    copyRoute({ auth, sql, config, clock, bodies, userRate, onBug, beginStream }),
    liveRoute({
      auth,
      live,
      config,
      clock,
      onBug,
      connections,
      sendBudget,
      mayUseCookies,
      nextNumber,
    }),
    transactionRoute({ auth, bodies, config, sql }),
    ...topicRoutes({ auth, bodies, config, topics: options.topics }),
    ...authRoutes(forAuth),
    ...accountRoutes(forAuth),
    ...providerRoutes(forAuth),
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

/**
 * Returns the routes for entire subtrees: files, exports and, if it is enabled, the admin page.
 */
function prefixesOf(options: ServerOptions, parts: ServerParts): readonly PrefixRoute[] {
  const { clientMemory, cors } = parts;
  const { bodies } = clientMemory;
  const { auth, config, exports, files: access, sql } = options;
  const mayUseCookies = (request: Request): boolean => cors.mayUseCookies(request);
  const forFiles: FileRouteOptions = { auth, files: access, mayUseCookies };
  const files: Omit<PrefixRoute, "operation" | "prefix"> = {
    template: "{namespace}/{table}/{sub}/{stored_name}",
    method: "GET",
    shape: "B",
    handle: (exchange, rest) => fileResponse(forFiles, exchange, rest),
  };
  return [
    exportPaths({ auth, exports, mayUseCookies }),
    { ...files, prefix: "/v1/files/", operation: fileOperation("file") },
    { ...files, prefix: "/api/v1/files/", operation: fileOperation("fileByAlias") },
    ...providerPaths(authOptionsOf(options, parts)),
    ...transactionPaths({ auth, bodies, config, sql }),
    ...(config.server.ui_enabled ? [uiAssets(options)] : []),
  ];
}

function authOptionsOf(
  { auth, config }: ServerOptions,
  { clientMemory: { bodies }, cors }: ServerParts,
): ProviderRouteOptions {
  return {
    auth,
    bodies,
    bodyBytesMax: config.limits.max_body_bytes,
    areCookiesSecure: config.auth.cookie_secure,
    mayUseCookies: (request) => cors.mayUseCookies(request),
    mayAct: (request) => cors.mayAct(request),
    mayReceiveLogin: (origin, request) => cors.mayReceiveLogin(origin, request),
  };
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

/** Refuses requests for the socket path that are not WebSocket upgrades, such as HEAD. */
function refusePlain({ request }: Exchange): Response {
  throw upgradeRequired(request);
}
