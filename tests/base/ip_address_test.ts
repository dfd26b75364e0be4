/**
 * Verifies that each address has a single text form, and that a range contains only addresses of
 * its own family.
 */
import { expect, test } from "bun:test";
import { defined } from "../../src/base/assert.ts";
import {
  ipFromText,
  isLoopbackHost,
  rangeFromText,
  rangesFrom,
} from "../../src/base/ip_address.ts";

test.each([
  "",
  "1.2.3",
  "1.2.3.4.5",
  "256.1.1.1",
  "01.2.3.4",
  "1.2.3.4 ",
  ":",
  ":::",
  "1::2::3",
  "12345::",
  "::1%eth0",
  "1:2:3:4:5:6:7",
  "::1.2.3.4.5",
  "g::",
])("ipFromText refuses %p", (text) => {
  expect(ipFromText(text)).toBeUndefined();
});

test.each([
  "10.0.0.0/33",
  "10.0.0.0/",
  "10.0.0.0/-1",
  "10.0.0/8",
  "::/129",
  "::ffff:10.0.0.0/95",
  "host/8",
])("rangeFromText refuses %p", (text) => {
  expect(rangeFromText(text)).toBeUndefined();
});

test.each([
  ["1.2.3.4", "1.2.3.4"],
  ["0.0.0.0", "0.0.0.0"],
  ["255.255.255.255", "255.255.255.255"],
  ["::", "0:0:0:0:0:0:0:0"],
  ["::1", "0:0:0:0:0:0:0:1"],
  ["1::", "1:0:0:0:0:0:0:0"],
  ["2001:DB8::1", "2001:db8:0:0:0:0:0:1"],
  ["2001:0db8:0:0:1:0:0:01", "2001:db8:0:0:1:0:0:1"],
  ["1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"],
  ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
  ["::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"],
  ["64:ff9b::1.2.3.4", "64:ff9b:0:0:0:0:102:304"],
  ["::1.2.3.4", "0:0:0:0:0:0:102:304"],
  ["::ffff:1.2.3.4", "1.2.3.4"],
  ["::FFFF:7f00:1", "127.0.0.1"],
  ["0:0:0:0:0:ffff:0:0", "0.0.0.0"],
  ["::fffe:1.2.3.4", "0:0:0:0:0:fffe:102:304"],
])("ipFromText writes %s as %s", (text, canonical) => {
  expect(ipFromText(text)).toBe(canonical);
  expect(ipFromText(canonical)).toBe(canonical);
});

test("IpRanges.has compares whole and partial bytes, and never compares across families", () => {
  const has = (range: string, address: string): boolean =>
    rangesFrom("key", [range]).has(defined(ipFromText(address), "the address must be readable"));
  expect(has("10.16.0.0/12", "10.31.255.255")).toBe(true);
  expect(has("10.16.0.0/12", "10.32.0.0")).toBe(false);
  expect(has("10.16.9.9/12", "10.17.0.0")).toBe(true);
  expect(has("0.0.0.0/0", "1.2.3.4")).toBe(true);
  expect(has("0.0.0.0/0", "::1")).toBe(false);
  expect(has("::/0", "1.2.3.4")).toBe(false);
  expect(has("::/0", "::ffff:1.2.3.4")).toBe(false);
  expect(has("::/0", "2001:db8::1")).toBe(true);
  expect(has("fd00::/8", "fdff::1")).toBe(true);
  expect(has("fd00::/8", "fe00::1")).toBe(false);
  expect(has("2001:db8::1", "2001:DB8:0::1")).toBe(true);
  expect(has("2001:db8::1", "2001:db8::2")).toBe(false);
  expect(has("10.0.0.0/8", "::ffff:10.1.1.1")).toBe(true);
  expect(has("::ffff:10.0.0.0/104", "10.1.1.1")).toBe(true);
  expect(has("::ffff:10.0.0.0/104", "11.1.1.1")).toBe(false);
  expect(rangesFrom("key", []).has("1.2.3.4")).toBe(false);
});

test("rangesFrom names the configuration key if a text is not a range", () => {
  expect(() => rangesFrom("security.metrics_allow", ["10.0.0.1", "host"])).toThrow(
    'Cannot read security.metrics_allow: "host" must be an IP address or a range such as ' +
      "10.0.0.0/8",
  );
});

test("isLoopbackHost recognises only this machine, in every spelling", () => {
  for (const host of [
    "127.0.0.1",
    "127.8.9.10",
    "::1",
    "[::1]",
    "localhost",
    "LocalHost",
    "::ffff:127.0.0.1",
  ]) {
    expect(isLoopbackHost(host), host).toBeTrue();
  }
  for (const host of [
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "128.0.0.1",
    "127.0.0.1.example.com",
    "localhost.example.com",
    "",
  ]) {
    expect(isLoopbackHost(host), host).toBeFalse();
  }
});
