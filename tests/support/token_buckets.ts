/**
 * The token buckets of the server, for a test server that refuses requests as the real one does.
 */
import { TokenBucket } from "../../src/server/admission/rate_limit.ts";

/** Returns a full bucket at time 0. */
export function tokenBucket(perSecond: number): TokenBucket {
  return new TokenBucket({ perSecond, nowMs: 0 });
}
