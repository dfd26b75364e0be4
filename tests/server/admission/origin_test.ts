/**
 * Tests which callers count as local, and which address identifies the sender of a request, with a
 * table of peers and headers.
 */

import { expect, test } from "bun:test";
import { rangesFrom } from "../../../src/base/ip_address.ts";
import { silentLog } from "../../../src/base/log.ts";
import { RecentLog } from "../../../src/base/recent_log.ts";
import {
  isHostAllowed,
  isSecureRequest,
  originOf,
  strangersWarning,
} from "../../../src/server/admission/origin.ts";
import { ManualClock } from "../../support/manual_clock.ts";

const TRUSTED = rangesFrom("security.trusted_proxies", ["10.0.0.0/8", "fd00::/8", "127.0.0.9"]);

type Row = [peer: string, headers: Record<string, string>, address: string, isLocal: boolean];

test.each<Row>([
  // Requests without a proxy.
  ["127.0.0.1", {}, "127.0.0.1", true],
  ["127.5.6.7", {}, "127.5.6.7", true],
  ["::1", {}, "0:0:0:0:0:0:0:1", true],
  ["::ffff:127.0.0.1", {}, "127.0.0.1", true],
  ["::ffff:7f00:1", {}, "127.0.0.1", true],
  ["192.0.2.4", {}, "192.0.2.4", false],
  ["::ffff:192.0.2.4", {}, "192.0.2.4", false],
  ["0.0.0.0", {}, "0.0.0.0", false],
  ["::", {}, "0:0:0:0:0:0:0:0", false],
  ["unknown", {}, "unknown", false],
  // A header from an untrusted peer is ignored, but its presence means that the caller does not
  // count as local.
  ["127.0.0.1", { "x-forwarded-for": "127.0.0.1" }, "127.0.0.1", false],
  ["127.0.0.1", { forwarded: "for=127.0.0.1" }, "127.0.0.1", false],
  ["127.0.0.1", { "x-real-ip": "127.0.0.1" }, "127.0.0.1", false],
  ["192.0.2.4", { "x-forwarded-for": "127.0.0.1" }, "192.0.2.4", false],
  ["127.0.0.1", { via: "1.1 proxy" }, "127.0.0.1", false],
  ["127.0.0.1", { "cf-connecting-ip": "192.0.2.4" }, "127.0.0.1", false],
  ["127.0.0.1", { "fly-client-ip": "192.0.2.4" }, "127.0.0.1", false],
  ["127.0.0.1", { "fastly-client-ip": "192.0.2.4" }, "127.0.0.1", false],
  ["127.0.0.1", { "x-cluster-client-ip": "192.0.2.4" }, "127.0.0.1", false],
  ["127.0.0.1", { "x-envoy-external-address": "192.0.2.4" }, "127.0.0.1", false],
  ["127.0.0.1", { "x-original-forwarded-for": "192.0.2.4" }, "127.0.0.1", false],
  ["127.0.0.1", { "cdn-loop": "edge.example" }, "127.0.0.1", false],
  ["127.0.0.1", { "x-forwarded-proto": "https" }, "127.0.0.1", false],
  ["127.0.0.1", { "x-forwarded-host": "localhost" }, "127.0.0.1", false],
  ["10.1.2.3", { via: "1.1 proxy" }, "10.1.2.3", false],
  // The server believes the headers of a trusted proxy.
  ["10.1.2.3", {}, "10.1.2.3", false],
  ["127.0.0.9", {}, "127.0.0.9", true],
  ["10.1.2.3", { "x-forwarded-for": "192.0.2.4" }, "192.0.2.4", false],
  ["10.1.2.3", { "x-forwarded-for": "127.0.0.1" }, "127.0.0.1", true],
  ["10.1.2.3", { "x-forwarded-for": "127.0.0.1, 192.0.2.4" }, "192.0.2.4", false],
  ["10.1.2.3", { "x-forwarded-for": "192.0.2.4, 10.9.9.9" }, "192.0.2.4", false],
  ["10.1.2.3", { "x-forwarded-for": "10.7.7.7, 10.9.9.9" }, "10.7.7.7", false],
  ["10.1.2.3", { "x-forwarded-for": "192.0.2.4:5555" }, "192.0.2.4", false],
  ["10.1.2.3", { "x-forwarded-for": "2001:db8::7" }, "2001:db8:0:0:0:0:0:7", false],
  ["10.1.2.3", { "x-forwarded-for": "[2001:db8::7]:443" }, "2001:db8:0:0:0:0:0:7", false],
  ["10.1.2.3", { "x-real-ip": "192.0.2.9" }, "192.0.2.9", false],
  ["fd00::1", { forwarded: 'for=192.0.2.4;proto=https, for="[fd00::2]:80"' }, "192.0.2.4", false],
  ["10.1.2.3", { forwarded: "for=192.0.2.4", "x-forwarded-for": "192.0.2.5" }, "192.0.2.4", false],
  ["10.1.2.3", { forwarded: 'proto=http; FOR = "192.0.2.4:80" ;by=x' }, "192.0.2.4", false],
  // The client may have written one of the headers itself, so the caller counts as local only if
  // all headers name a local address.
  ["10.1.2.3", { forwarded: "for=127.0.0.1", "x-forwarded-for": "::1" }, "127.0.0.1", true],
  ["10.1.2.3", { forwarded: "for=127.0.0.1", "x-forwarded-for": "192.0.2.5" }, "127.0.0.1", false],
  ["10.1.2.3", { "x-forwarded-for": "127.0.0.1", "x-real-ip": "192.0.2.5" }, "127.0.0.1", false],
  ["10.1.2.3", { "x-forwarded-for": "127.0.0.1", "x-real-ip": "unknown" }, "127.0.0.1", false],
  // A request with an unparsable header is attributed to its peer, and is not local.
  ["10.1.2.3", { "x-forwarded-for": "192.0.2.4, unknown" }, "10.1.2.3", false],
  ["10.1.2.3", { forwarded: "for=_hidden" }, "10.1.2.3", false],
  ["10.1.2.3", { forwarded: "proto=https" }, "10.1.2.3", false],
  ["10.1.2.3", { forwarded: 'for="192.0.2.4' }, "10.1.2.3", false],
  ["127.0.0.9", { "x-forwarded-for": "" }, "127.0.0.9", false],
])("originOf %s with %p is %s, local %p", (peer, headers, address, isLocal) => {
  const origin = originOf(peer, new Headers(headers), TRUSTED);
  expect(origin).toMatchObject({ address, isLocal });
});

test("originOf rejects a header of only blanks and quotes quickly", () => {
  const blanks = " ".repeat(1_000_000);
  for (const forwarded of [`for=a${blanks}"x`, `for="${blanks}"${blanks}x`, `${blanks}for`]) {
    // An algorithm that backtracks at each space would take hours, so this test would time out.
    expect(
      originOf("10.1.2.3", { get: () => forwarded, keys: () => ["forwarded"] }, TRUSTED).address,
    ).toBe("10.1.2.3");
  }
});

test("originOf names the forwarding header of an untrusted proxy", () => {
  const headerOf = (peer: string, headers: Record<string, string>): string | undefined =>
    originOf(peer, new Headers(headers), TRUSTED).strangersHeader;
  expect(headerOf("192.0.2.4", { "X-Forwarded-For": "192.0.2.9" })).toBe("x-forwarded-for");
  expect(headerOf("192.0.2.4", { Accept: "x", Via: "1.1 x" })).toBe("via");
  expect(headerOf("10.1.2.3", { "X-Forwarded-For": "192.0.2.9" })).toBeUndefined();
  expect(headerOf("192.0.2.4", { Accept: "x" })).toBeUndefined();
});

test("strangersWarning names the key to set once for each address, for a few addresses", () => {
  const log = new RecentLog(silentLog, new ManualClock());
  const warn = strangersWarning(log);
  for (let index = 0; index < 3; index += 1) warn("192.0.2.4", "via");
  for (let index = 0; index < 20; index += 1) warn(`192.0.3.${index}`, "via");
  expect(log.lines).toHaveLength(10);
  expect(log.lines[0]?.fields["set"]).toBe('security.trusted_proxies = ["192.0.2.4"]');
});

test("originOf ignores address lists in forwarding headers from untrusted peers", () => {
  const headers = new Headers({ "x-forwarded-for": "192.0.2.4" });
  expect(originOf("192.0.2.4", headers, TRUSTED).isForwardingDoubtful).toBe(true);
  expect(originOf("10.1.2.3", headers, TRUSTED).isForwardingDoubtful).toBe(false);
  expect(originOf("192.0.2.4", new Headers(), TRUSTED).isForwardingDoubtful).toBe(false);
});

test.each<[string | null, boolean]>([
  ["127.0.0.1", true],
  ["127.0.0.1:2900", true],
  ["192.0.2.4:2900", true],
  ["[::1]", true],
  ["[::1]:2900", true],
  ["localhost", true],
  ["LOCALHOST:2900", true],
  ["db.internal:2900", true],
  [null, false],
  ["", false],
  ["evil.example", false],
  ["localhost.evil.example", false],
  ["127.0.0.1.evil.example", false],
  ["[::1]evil.example", false],
  ["localhost:2900:1", false],
  ["127.1", false],
  ["0177.0.0.1", false],
])("isHostAllowed %p is %p", (host, isAllowed) => {
  expect(isHostAllowed(host, new Set(["db.internal"]))).toBe(isAllowed);
});

test("isSecureRequest accepts a protocol header only from a trusted proxy", () => {
  const https = new Headers({ "x-forwarded-proto": "https" });
  expect(isSecureRequest("https://a/", "192.0.2.4", new Headers(), TRUSTED)).toBe(true);
  expect(isSecureRequest("http://a/", "192.0.2.4", https, TRUSTED)).toBe(false);
  expect(isSecureRequest("http://a/", "10.0.0.1", https, TRUSTED)).toBe(true);
  const forwarded = new Headers({ forwarded: "for=192.0.2.4;proto=https" });
  expect(isSecureRequest("http://a/", "10.0.0.1", forwarded, TRUSTED)).toBe(true);
  expect(isSecureRequest("http://a/", "10.0.0.1", new Headers(), TRUSTED)).toBe(false);
});
