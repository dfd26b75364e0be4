/**
 * What the log says of a proxy that the configuration does not name: all its clients share one
 * address, so that the bad logins of one lock a name for all of them.
 */
import type { Log } from "../../base/log.ts";

/** Addresses of which the log is told: anybody may send such a header. */
const ADDRESSES_MAX = 10;

/** Warns once of each address, and of no more than a few. */
export function strangersWarning(log: Log): (address: string, header: string) => void {
  const told = new Set<string>();
  return (address, header) => {
    if (told.size >= ADDRESSES_MAX || told.has(address)) return;
    told.add(address);
    log.warn(
      "requests come by a proxy that security.trusted_proxies does not name: its clients count as one address, and none of them as local",
      { address, header, set: `security.trusted_proxies = ["${address}"]` },
    );
  };
}
