/**
 * Creates token buckets, for a test server that refuses requests as the real one does.
 */
import { TokenBucket } from "../../src/server/admission/rate_limit.ts";

/** Returns a bucket that is full at time 0. */
export function tokenBucket(perSecond: number): TokenBucket {
  return new TokenBucket({ perSecond, nowMs: 0 });
}
