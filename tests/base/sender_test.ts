/** Verifies that an IPv4 address counts as one sender, and so does an IPv6 /64 network. */
import { expect, test } from "bun:test";
import { ipFromText } from "../../src/base/ip_address.ts";
import { senderOf } from "../../src/base/sender.ts";

/** Returns the sender that an address in text form belongs to. */
function senderBehind(text: string): string {
  const ip = ipFromText(text);
  return ip === undefined ? "none" : senderOf(ip);
}

test("senderOf counts an IPv6 /64 network as one sender, and each IPv4 address separately", () => {
  expect(senderBehind("2001:db8:1:2::1")).toBe("2001:db8:1:2::/64");
  expect(senderBehind("2001:db8:1:2:ffff:ffff:ffff:ffff")).toBe("2001:db8:1:2::/64");
  expect(senderBehind("2001:db8:1:3::1")).toBe("2001:db8:1:3::/64");
  expect(senderBehind("::1")).toBe("0:0:0:0::/64");
  expect(senderBehind("::ffff:10.0.0.1")).toBe("10.0.0.1");
  expect(senderBehind("10.0.0.2")).toBe("10.0.0.2");
  expect(senderOf("unknown")).toBe("unknown");
});
