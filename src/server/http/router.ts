/**
 * From a path to the route behind it: exact paths by one look-up, then the few prefixes.
 *
 *     HEAD is served by GET, without the body; OPTIONS answers 204
 *     another method: 405 with Allow; an unknown path: 404; both in shape A
 */

import type { Exchange } from "./exchange.ts";
import type { ErrorShape } from "./http_error.ts";
import { HttpError } from "./http_error.ts";
import { nearestEndpoint } from "./nearest_endpoint.ts";
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
  readonly operation: Operation;
}

export class Router {
  readonly #byPath = new Map<string, Found>();
  readonly #prefixes: readonly PrefixRoute[];
  readonly #endpoints: Endpoints;

  constructor(endpoints: Endpoints) {
    const { prefixes, routes } = endpoints;
    this.#endpoints = endpoints;
    for (const route of routes) this.#byPath.set(route.path, route);
    this.#prefixes = prefixes;
  }

  find(path: string): Found | undefined {
    return this.#byPath.get(path) ?? this.#findPrefix(path);
  }

  #findPrefix(path: string): Found | undefined {
    for (const { prefix, method, operation, shape, handle } of this.#prefixes) {
      if (!path.startsWith(prefix)) continue;
      const rest = path.slice(prefix.length);
      return { method, operation, shape, handle: (exchange) => handle(exchange, rest) };
    }
    return undefined;
  }

  /** The failure of a path that nothing serves; it names the nearest that is served. */
  notFound(path: string): HttpError {
    const isPlanned = PLANNED_PATHS.some((planned) => path.startsWith(planned));
    if (isPlanned) return new HttpError(404, "not_found", `${path} is not available yet`);
    const nearest = nearestEndpoint(path, this.#endpoints);
    const help =
      nearest === undefined
        ? "GET /v1/openapi.json lists the endpoints"
        : `did you mean ${nearest}?`;
    return new HttpError(404, "not_found", `There is no ${path}: ${help}`);
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

export function methodNotAllowed(
  { path, publicUrl, request }: Exchange,
  { method, operation }: Found,
): HttpError {
  const example = exampleCall(publicUrl + path, method, operation);
  const message = `${request.method} is not allowed here: ${path} takes ${method}, as ${example}`;
  return new HttpError(405, "method_not_allowed", message, { allow: allowedMethods(method) });
}

/** A call as it is typed into a shell. */
function exampleCall(url: string, method: Method, operation: Operation): string {
  const { access, answers, body, parameters = [] } = operation;
  // A quote in the path would end the argument.
  const quoted = url.replaceAll("'", "%27");
  if (answers[101] !== undefined) return `new WebSocket('${quoted.replace("http", "ws")}')`;
  const needsToken = access.startsWith("bearer") || access.startsWith("any token");
  const token = needsToken ? " -H 'Authorization: Bearer <token>'" : "";
  if (method === "POST") {
    const json = JSON.stringify(body?.example ?? {});
    return `curl${token} -H 'Content-Type: application/json' -d '${json}' '${quoted}'`;
  }
  const required = parameters.filter((each) => each.in === "query" && each.required === true);
  const query = required.map(({ name }, index) => `${index === 0 ? "?" : "&"}${name}=…`).join("");
  return `curl${token} '${quoted}${query}'`;
}
