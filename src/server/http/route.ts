/**
 * What a route is: a function, made once at start, the shape of its errors, and its description.
 */

import type { Exchange } from "./exchange.ts";
import type { ErrorShape } from "./http_error.ts";
import type { Operation } from "./operation.ts";

/**
 * Takes the answer of a request: one call of one of them. Most of the time of a short request lies
 * around its route, and what a promise for each step takes of it is a twentieth.
 */
export interface Reply {
  readonly send: (response: Response) => void;
  readonly fail: (error: unknown) => void;
}

/** Answers by what some work returns or throws; where it returns nothing, it answers by itself. */
export function answerWith(
  { fail, send }: Reply,
  work: () => Response | Promise<Response> | undefined,
): void {
  let answer: Response | Promise<Response> | undefined;
  try {
    answer = work();
  } catch (error) {
    fail(error);
    return;
  }
  if (answer instanceof Promise) answer.then(send, fail);
  else if (answer !== undefined) send(answer);
}

/** Returns nothing where it answers by `reply`. @throws What the request is refused with. */
export type RouteFunction = (
  exchange: Exchange,
  reply: Reply,
) => Response | Promise<Response> | undefined;

export type Method = "GET" | "POST";

export interface Route {
  readonly path: string;
  readonly method: Method;
  readonly shape: ErrorShape;
  readonly operation: Operation;
  readonly handle: RouteFunction;
}
