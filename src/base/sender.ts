/**
 * Defines the unit by which limits and lock-outs count callers: an IPv4 address, or an IPv6 /64
 * network. A caller with one address in such a network usually controls all 2^64 of them.
 */

/**
 * Returns the sender to which an address belongs, for limits per client.
 * @param address Dotted IPv4, or eight IPv6 groups without "::". Any other string is treated as a
 *   separate sender.
 */
export function senderOf(address: string): string {
  if (!address.includes(":")) return address;
  const groups = address.split(":");
  return groups.length === 8 ? `${groups.slice(0, 4).join(":")}::/64` : address;
}
