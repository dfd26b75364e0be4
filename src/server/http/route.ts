/**
 * Defines a route: a function created once at startup, the shape of its errors, and its
 * description.
 */

import type { Exchange } from "./exchange.ts";
import type { ErrorShape } from "./http_error.ts";
import type { Operation } from "./operation.ts";

/**
 * Serves the requests to one endpoint.
 * @throws The refusal of the request. The promise may also reject with the refusal.
 */
export type RouteFunction = (exchange: Exchange) => Response | Promise<Response>;

export type Method = "GET" | "POST";

export interface Route {
  readonly path: string;
  readonly method: Method;
  readonly shape: ErrorShape;
  readonly operation: Operation;
  readonly handle: RouteFunction;
}
