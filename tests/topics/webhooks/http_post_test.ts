/**
 * Verifies that a request goes only to a checked address, whatever DNS responses arrive and
 * whenever they arrive. The test controls the resolver, and a receiver on this machine counts the
 * requests it gets.
 */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { OutboundHosts } from "../../../src/base/outbound_hosts.ts";
import { posting } from "../../../src/topics/mod.ts";

let hosts: (string | null)[] = [];
const receiver = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: (request) => {
    hosts.push(request.headers.get("host"));
    return new Response("x".repeat(100_000));
  },
});
afterAll(() => receiver.stop(true));
beforeEach(() => {
  hosts = [];
});

const url = new URL(`http://hooks.example.com:${receiver.port}/in?a=1`);

function post(
  listed: readonly string[],
  answers: readonly (readonly string[])[],
  { to = url, signal = new AbortController().signal, timeoutMs = 5000 } = {},
) {
  let asked = 0;
  const send = posting({
    clock: systemClock,
    hosts: new OutboundHosts(listed),
    resolve: async () => {
      const answer = answers[Math.min(asked, answers.length - 1)] ?? [];
      asked += 1;
      return answer.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    },
  });
  return send({ url: to, body: "{}", headers: {}, timeoutMs, signal });
}

test("posting connects to the resolved address with the name of the host", async () => {
  const answer = await post(["hooks.example.com", "127.0.0.1"], [["127.0.0.1"]]);
  expect(answer).toEqual({ isDelivered: true });
  expect(hosts).toEqual([`hooks.example.com:${receiver.port}`]);
});

test.each([
  [["127.0.0.1"]],
  [["8.8.8.8", "127.0.0.1"]],
  [["::ffff:127.0.0.1"]],
  [["169.254.169.254"]],
])("posting refuses a listed name with the addresses %p", async (addresses) => {
  const answer = await post(["hooks.example.com"], [addresses]);
  expect(answer).toMatchObject({
    isDelivered: false,
    reason: expect.stringContaining("security.webhook_hosts"),
  });
  expect(hosts).toEqual([]);
});

test("posting resolves the name once for each request, so a second response changes nothing", async () => {
  const listed = ["hooks.example.com", "127.0.0.1"];
  const answer = await post(listed, [["127.0.0.1"], ["10.0.0.1"]]);
  expect(answer).toEqual({ isDelivered: true });
});

test("posting ignores a proxy in the environment", async () => {
  let proxied = 0;
  using proxy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => {
      proxied += 1;
      return new Response();
    },
  });
  const names = ["HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"];
  const before = names.map((name) => process.env[name]);
  for (const name of names) delete process.env[name];
  process.env["HTTP_PROXY"] = proxy.url.origin;
  try {
    await fetch(url.href.replace("hooks.example.com", "127.0.0.1"), { method: "POST" });
    expect(proxied, "a plain request goes to the proxy").toBe(1);
    const answer = await post(["hooks.example.com", "127.0.0.1"], [["127.0.0.1"]]);
    expect(answer).toEqual({ isDelivered: true });
    expect(proxied).toBe(1);
  } finally {
    for (const [index, name] of names.entries()) {
      const value = before[index];
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
});

test("posting tries the next address if nothing listens at the first one", async () => {
  const listed = ["hooks.example.com", "127.0.0.0/8", "::1"];
  const answer = await post(listed, [["::1", "127.0.0.1"]]);
  expect(answer).toEqual({ isDelivered: true });
});

test.each([
  ["a name without addresses", [], "the receiver cannot be reached"],
  ["a port where nothing listens", ["127.0.0.1"], "ECONNREFUSED"],
])("posting reports the error for %s", async (_, addresses, expected) => {
  const to = new URL("http://hooks.example.com:1/");
  const answer = await post(["127.0.0.1"], [addresses], { to });
  expect(answer).toMatchObject({ isDelivered: false, reason: expect.stringContaining(expected) });
});

test("posting ends at its time limit, and with its signal", async () => {
  const never = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Promise(() => {}) });
  const to = new URL(`http://hooks.example.com:${never.port}/`);
  try {
    expect(await post(["127.0.0.1"], [["127.0.0.1"]], { to, timeoutMs: 50 })).toMatchObject({
      reason: "the receiver did not respond within 0.05 s",
    });
    const controller = new AbortController();
    const answer = post(["127.0.0.1"], [["127.0.0.1"]], { to, signal: controller.signal });
    controller.abort();
    expect(await answer).toMatchObject({ reason: "the server is shutting down" });
  } finally {
    await never.stop(true);
  }
});
