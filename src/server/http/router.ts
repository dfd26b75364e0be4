/**
 * Finds the route for a path: first an exact path with a single lookup, then the few prefixes.
 *
 *     HEAD is served by GET, without the body; OPTIONS answers 204
 *     another method: 405 with Allow; an unknown path: 404; both in shape A
 */

import { nearestName } from "../../base/nearest_name.ts";
import type { Exchange } from "./exchange.ts";
import { type ErrorShape, HttpError } from "./http_error.ts";
import type { Operation } from "./operation.ts";
import type { Method, Route, RouteFunction } from "./route.ts";

/**
 * The route for all paths that begin with a prefix. The route function receives the path after the
 * prefix, without the suffix.
 */
export interface PrefixRoute {
  readonly prefix: string;
  /** The suffix that all paths of the route share; absent if any suffix is possible. */
  readonly suffix?: string;
  /** The path after the prefix, with parameter names: `{table}/{name}`. */
  readonly template: string;
  readonly method: Method;
  readonly shape: ErrorShape;
  readonly operation: Operation;
  readonly handle: (exchange: Exchange, rest: string) => Response | Promise<Response>;
}

/** All routes of the server. */
export interface Endpoints {
  readonly routes: readonly Route[];
  readonly prefixes: readonly PrefixRoute[];
}

/** The route that serves a path, whichever method the request uses. */
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
    for (const { prefix, method, operation, shape, suffix = "", handle } of this.#prefixes) {
      if (!path.startsWith(prefix) || !path.endsWith(suffix)) continue;
      const rest = path.slice(prefix.length, path.length - suffix.length);
      return { method, operation, shape, handle: (exchange) => handle(exchange, rest) };
    }
    return undefined;
  }

  /** Returns the error for an unknown path, which names the nearest known path. */
  notFound(path: string): HttpError {
    const nearest = nearestEndpoint(path, this.#endpoints);
    const help =
      nearest === undefined
        ? "GET /v1/openapi.json lists the endpoints"
        : `did you mean ${nearest}?`;
    return new HttpError(404, "not_found", `There is no ${path}: ${help}`);
  }
}

/** Returns the value of the `Allow` header for a route. */
export function allowedMethods(method: Method): string {
  return method === "GET" ? "GET, HEAD, OPTIONS" : "POST, OPTIONS";
}

/** Returns whether a route with the given method serves a request method. */
export function isAllowed(requestMethod: string, method: Method): boolean {
  return requestMethod === method || (requestMethod === "HEAD" && method === "GET");
}

export function methodNotAllowed(
  { path, publicUrl, request }: Exchange,
  { method, operation }: Found,
): HttpError {
  const example = exampleCall(publicUrl + path, method, operation);
  const message = `${request.method} is not allowed here: ${path} accepts only ${method}, as in ${example}`;
  return new HttpError(405, "method_not_allowed", message, { allow: allowedMethods(method) });
}

/** Returns an example call as it would be typed into a shell. */
function exampleCall(url: string, method: Method, operation: Operation): string {
  const { access, answers, body, parameters = [] } = operation;
  // An unescaped quote in the path would end the shell argument.
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

const FRAME = /^(?:|api|rest|v\d+)$/;

interface ServedRoutes {
  readonly routes: readonly { readonly method: Method; readonly path: string }[];
  readonly prefixes: readonly {
    readonly method: Method;
    readonly prefix: string;
    readonly template: string;
  }[];
}

/**
 * The maximum length of a path that is compared with known paths. No endpoint's path is longer.
 */
const PATH_CHARS_MAX = 200;

/** Words in the paths of other servers, each with the word that this server uses instead. */
const SAME: ReadonlyMap<string, string> = new Map([
  ["query", "sql"],
  ["queries", "sql"],
  ["execute", "sql"],
  ["exec", "sql"],
  ["statement", "sql"],
  ["statements", "sql"],
  ["websocket", "ws"],
  ["socket", "ws"],
  ["events", "live"],
  ["sse", "live"],
  ["stream", "live"],
  ["subscribe", "live"],
  ["signin", "login"],
  ["sign-in", "login"],
  ["session", "login"],
  ["sessions", "login"],
  ["token", "login"],
  ["whoami", "me"],
  ["signout", "logout"],
  ["file", "files"],
  ["docs", "openapi.json"],
  ["swagger", "openapi.json"],
  ["swagger.json", "openapi.json"],
  ["openapi", "openapi.json"],
  ["openapi.yaml", "openapi.json"],
  ["admin", "ui"],
  ["console", "ui"],
]);

/**
 * Returns the method and path of the endpoint nearest to an unknown path, such as `POST
 * /v1/api/sql`, for "did you mean …"; undefined if none is near.
 *
 * Paths are compared by the words that distinguish endpoints. Prefixes such as `/v1` and `/api`,
 * slashes and case are ignored, because most mistaken paths differ only in these.
 */
function nearestEndpoint(path: string, { prefixes, routes }: ServedRoutes): string | undefined {
  const words = wordsOf(path);
  if (words === "" || path.length > PATH_CHARS_MAX) return undefined;
  const shown = new Map<string, string>();
  for (const route of routes) {
    const key = wordsOf(route.path);
    if (key !== "" && !shown.has(key)) shown.set(key, `${route.method} ${route.path}`);
  }
  const ending = [...shown.keys()].find((key) => key.endsWith(`/${words}`));
  const same = shown.get(words) ?? shown.get(ending ?? "");
  if (same !== undefined) return same;
  for (const { method, prefix, template } of prefixes) {
    const key = wordsOf(prefix);
    if (words === key || words.startsWith(`${key}/`)) return `${method} ${prefix}${template}`;
  }
  return shown.get(nearestName(words, shown.keys()) ?? "");
}

function wordsOf(path: string): string {
  const words = path
    .toLowerCase()
    .split("/")
    .filter((word) => !FRAME.test(word));
  return words.map((word) => SAME.get(word) ?? word).join("/");
}
