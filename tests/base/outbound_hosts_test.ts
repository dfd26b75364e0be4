/** Verifies that only listed hosts and addresses are permitted, however they are written. */
import { expect, test } from "bun:test";
import { hostOf, isOutboundHost, OutboundHosts } from "../../src/base/outbound_hosts.ts";

test.each<[string, boolean]>([
  ["hooks.example.com", true],
  ["*.example.com", true],
  ["localhost", true],
  ["10.0.0.5", true],
  ["10.0.0.0/8", true],
  ["fd00::/8", true],
  ["*", false],
  ["*.*.com", false],
  ["https://example.com", false],
  ["example.com:8080", false],
  ["10.0.0.999", false],
  ["0x7f.1", false],
  ["", false],
])("isOutboundHost says of %p: %p", (text, expected) => {
  expect(isOutboundHost(text)).toBe(expected);
});

test("OutboundHosts.permits accepts listed names, name suffixes and addresses, and no other host", () => {
  const hosts = new OutboundHosts(["Hooks.example.com", "*.example.org", "10.1.0.0/16"]);
  const permitted = (url: string): boolean => hosts.permits(hostOf(new URL(url)));
  expect(permitted("https://hooks.example.com/x")).toBe(true);
  expect(permitted("https://HOOKS.example.com.:444/x")).toBe(true);
  expect(permitted("https://a.b.example.org/")).toBe(true);
  expect(permitted("http://10.1.2.3/")).toBe(true);
  expect(permitted("https://example.com/")).toBe(false);
  expect(permitted("https://more.hooks.example.com/")).toBe(false);
  expect(permitted("https://example.org/")).toBe(false);
  expect(permitted("https://badexample.org/")).toBe(false);
  expect(permitted("http://10.2.0.1/")).toBe(false);
  expect(permitted("http://8.8.8.8/")).toBe(false);
});

test.each([
  "127.0.0.1",
  "127.9.9.9",
  "0.0.0.0",
  "10.0.0.1",
  "100.64.0.1",
  "168.63.129.16",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "224.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::ffff:10.0.0.1",
  "64:ff9b::a00:1",
  "fe80::1",
  "fc00::1",
  "fd12:3456::1",
  "ff02::1",
  "2002:a00:1::1",
  "2001:db8::1",
  "not an address",
])("OutboundHosts.permitsAddress refuses %s for a host that is listed by name", (address) => {
  const hosts = new OutboundHosts(["hooks.example.com", "*.example.org"]);
  expect(hosts.permitsAddress(address, "hooks.example.com")).toBe(false);
  expect(hosts.permitsAddress(address, "a.example.org")).toBe(false);
});

test.each(["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::1"])(
  "OutboundHosts.permitsAddress accepts the public address %s",
  (address) => {
    expect(new OutboundHosts(["h.example.com"]).permitsAddress(address, "h.example.com")).toBe(
      true,
    );
  },
);

test("OutboundHosts.permitsAddress accepts a listed private address, and loopback for localhost", () => {
  const hosts = new OutboundHosts(["hooks.internal", "10.1.0.0/16", "localhost"]);
  expect(hosts.permitsAddress("10.1.2.3", "hooks.internal")).toBe(true);
  expect(hosts.permitsAddress("10.2.2.3", "hooks.internal")).toBe(false);
  expect(hosts.permitsAddress("127.0.0.1", "localhost")).toBe(true);
  expect(hosts.permitsAddress("::1", "localhost")).toBe(true);
  expect(hosts.permitsAddress("127.0.0.1", "hooks.internal")).toBe(false);
  expect(hosts.permitsAddress("10.2.2.3", "localhost")).toBe(false);
});
