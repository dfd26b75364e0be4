/** The server's token buckets, for a test server that refuses as the real one does. */
import { TokenBucket } from "../../src/server/admission/rate_limit.ts";

/** Returns a full bucket at time 0. */
export function tokenBucket(perSecond: number): TokenBucket {
  return new TokenBucket({ perSecond, nowMs: 0 });
}
