/**
 * Whom limits and lock-outs count together: an IPv4 address; of IPv6 the network of 64 bits, since
 * whoever has one address of it has 2^64 of them.
 */

/** @param address Dotted, or eight groups without "::". Any other text is a sender by itself. */
export function senderOf(address: string): string {
  if (!address.includes(":")) return address;
  const groups = address.split(":");
  return groups.length === 8 ? `${groups.slice(0, 4).join(":")}::/64` : address;
}
