/**
 * What a route is: a function, made once at start, the shape of its errors, and its description.
 */

import type { Exchange } from "./exchange.ts";
import type { ErrorShape } from "./http_error.ts";
import type { Operation } from "./operation.ts";

/** @throws What the request is refused with; it may also reject with it. */
export type RouteFunction = (exchange: Exchange) => Response | Promise<Response>;

export type Method = "GET" | "POST";

export interface Route {
  readonly path: string;
  readonly method: Method;
  readonly shape: ErrorShape;
  readonly operation: Operation;
  readonly handle: RouteFunction;
}
