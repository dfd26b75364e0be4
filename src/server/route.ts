/**
 * What a route is: a function, made once at start, and the shape of its errors.
 */
import type { Exchange } from "./exchange.ts";
import type { ErrorShape } from "./http_error.ts";

export type RouteFunction = (exchange: Exchange) => Response | Promise<Response>;

export type Method = "GET" | "POST";

export interface Route {
  readonly path: string;
  readonly method: Method;
  readonly shape: ErrorShape;
  readonly handle: RouteFunction;
}
