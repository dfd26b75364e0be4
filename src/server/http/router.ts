/**
 * From a path to the route behind it: exact paths by one look-up, then the few prefixes.
 *
 *     HEAD is served by GET, without the body; OPTIONS answers 204
 *     another method: 405 with Allow; an unknown path: 404; both in shape A
 */

import type { Exchange } from "./exchange.ts";
import type { ErrorShape } from "./http_error.ts";
import { HttpError } from "./http_error.ts";
import type { Operation } from "./operation.ts";
import type { Method, Route, RouteFunction } from "./route.ts";

/** Of the wire contract, but of a later version. */
const PLANNED_PATHS: readonly string[] = ["/v1/api/topics/", "/v1/exports/", "/v1/api/auth/oidc/"];

/** A subtree; its function gets what follows the prefix. */
export interface PrefixRoute {
  readonly prefix: string;
  /** What may follow, with the names of its parameters: `{table}/{name}`. */
  readonly template: string;
  readonly method: Method;
  readonly shape: ErrorShape;
  readonly operation: Operation;
  readonly handle: (exchange: Exchange, rest: string) => Response | Promise<Response>;
}

/** Everything that is served. */
export interface Endpoints {
  readonly routes: readonly Route[];
  readonly prefixes: readonly PrefixRoute[];
}

/** What serves a path, whatever the method. */
export interface Found {
  readonly method: Method;
  readonly shape: ErrorShape;
  readonly handle: RouteFunction;
}

export class Router {
  readonly #byPath = new Map<string, Found>();
  readonly #prefixes: readonly PrefixRoute[];

  constructor({ prefixes, routes }: Endpoints) {
    for (const route of routes) this.#byPath.set(route.path, route);
    this.#prefixes = prefixes;
  }

  find(path: string): Found | undefined {
    return this.#byPath.get(path) ?? this.#findPrefix(path);
  }

  #findPrefix(path: string): Found | undefined {
    for (const { prefix, method, shape, handle } of this.#prefixes) {
      if (!path.startsWith(prefix)) continue;
      return { method, shape, handle: (exchange) => handle(exchange, path.slice(prefix.length)) };
    }
    return undefined;
  }
}

/** The value of `Allow` for a route. */
export function allowedMethods(method: Method): string {
  return method === "GET" ? "GET, HEAD, OPTIONS" : "POST, OPTIONS";
}

/** Whether a request method reaches a route. */
export function isAllowed(requestMethod: string, method: Method): boolean {
  return requestMethod === method || (requestMethod === "HEAD" && method === "GET");
}

export function notFound(path: string): HttpError {
  const isPlanned = PLANNED_PATHS.some((planned) => path.startsWith(planned));
  const message = isPlanned ? `${path} is not available yet` : `There is no ${path}`;
  return new HttpError(404, "not_found", message);
}

export function methodNotAllowed(requestMethod: string, method: Method): HttpError {
  return new HttpError(405, "method_not_allowed", `${requestMethod} is not allowed here`, {
    allow: allowedMethods(method),
  });
}
