/**
 * Warns of a proxy that the configuration does not name: all its clients share one address, so that
 * failed logins of one client lock a name for all of them.
 */
import type { Log } from "../../base/log.ts";

/** The number of addresses to warn of; it is bounded because anybody may send such a header. */
const ADDRESSES_MAX = 10;

/** Creates a function that warns once per address, for a limited number of addresses. */
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
