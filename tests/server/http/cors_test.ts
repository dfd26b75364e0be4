/**
 * Verifies that, when the server refuses requests of a web page, the log shows the configuration
 * line that would admit the page.
 */
import { expect, test } from "bun:test";
import type { LogFields } from "../../../src/base/log.ts";
import { parseConfig } from "../../../src/config/mod.ts";
import { Cors } from "../../../src/server/http/cors.ts";

const PAGE = "http://localhost:5173";

function refusing(toml = ""): { cors: Cors; lines: string[]; fields: LogFields[] } {
  const { config } = parseConfig(toml, "config.toml", {});
  const lines: string[] = [];
  const fields: LogFields[] = [];
  const warn = (message: string, more: LogFields = {}): void => {
    lines.push(message);
    fields.push(more);
  };
  return { cors: new Cors(config, { warn }), lines, fields };
}

function from(origin: string | undefined, more: Record<string, string> = {}): Request {
  const page = origin === undefined ? {} : { Origin: origin };
  const headers = { Host: "127.0.0.1:2900", ...page, ...more };
  return new Request("http://127.0.0.1:2900/v1/ws", { headers });
}

test.each<[string, (cors: Cors) => unknown]>([
  ["a preflight", (cors) => cors.allowPreflight(from(PAGE), new Headers())],
  ["a WebSocket", (cors) => cors.mayUpgrade(from(PAGE))],
  ["cookies", (cors) => cors.mayUseCookies(from(PAGE))],
  ["a setup", (cors) => cors.mayAct(from(PAGE))],
])("Cors logs the line that would have allowed %s", (_what, ask) => {
  const { cors, fields, lines } = refusing();
  ask(cors);
  expect(lines).toEqual([
    "rejected a request from a page of another origin; if the page is yours, add this line " +
      "to the section [security.cors] of config.toml, and restart the server",
  ]);
  expect(fields).toEqual([{ line: `allowed_origins = ['${PAGE}']`, origin: PAGE }]);
  const { cors: allowing, lines: none } = refusing(
    `[security.cors]\n${String(fields[0]?.["line"])}\nallow_credentials = true`,
  );
  ask(allowing);
  expect(none).toEqual([]);
});

test("Cors names the origins that are already allowed, and any other setting that is missing", () => {
  const { cors, fields } = refusing("[security.cors]\nallowed_origins = ['https://a.example']");
  cors.mayUpgrade(from(PAGE));
  expect(fields[0]?.["line"]).toBe(`allowed_origins = ['https://a.example', '${PAGE}']`);
  cors.mayUseCookies(from("https://a.example", { Cookie: "tidemark_auth=token" }));
  expect(fields[1]?.["line"]).toBe("allow_credentials = true");
});

test("Cors logs nothing for a listed page that logs in without cookies", () => {
  const { cors, lines } = refusing(`[security.cors]\nallowed_origins = ['${PAGE}']`);
  expect(cors.mayUseCookies(from(PAGE))).toBe(false);
  expect(lines).toEqual([]);
});

test("Cors logs nothing for its own pages and for clients that are not web pages", () => {
  const { cors, lines } = refusing();
  for (const origin of [undefined, "http://127.0.0.1:2900"]) {
    cors.allowPreflight(from(origin), new Headers());
    expect(cors.mayUpgrade(from(origin))).toBe(true);
    expect(cors.mayUseCookies(from(origin))).toBe(true);
  }
  expect(lines).toEqual([]);
});

test.each(["null", "file://", `http://${"a".repeat(300)}`, "http://a'b"])(
  "Cors suggests no line for the origin %s",
  (origin) => {
    const { cors, fields, lines } = refusing();
    expect(cors.mayUpgrade(from(origin))).toBe(false);
    expect(lines).toEqual(["rejected a request from a page whose origin cannot be allowed"]);
    expect(JSON.stringify(fields)).not.toContain(origin);
  },
);

test.each([
  ["http://localhost:*", ["http://localhost", "http://localhost:5173", "http://LOCALHOST:1"]],
  ["https://*.example.com", ["https://a.example.com", "https://a.b.example.com"]],
  ["https://*.example.com:8443", ["https://a.example.com:8443"]],
  ["https://app.example.com:443", ["https://app.example.com"]],
  ["capacitor://localhost", ["capacitor://localhost"]],
  ["tauri://localhost", ["tauri://localhost"]],
  ["chrome-extension://abcdefghijklmnop", ["chrome-extension://abcdefghijklmnop"]],
  ["*", ["https://any.test", "null"]],
])("the listed origin %s admits only its own pages", (listed, admitted) => {
  const { cors } = refusing(`[security.cors]\nallowed_origins = ['${listed}']`);
  const refused = [
    "https://example.com",
    "https://a.example.com.evil.test",
    "https://evilexample.com",
    "http://a.example.com",
    "https://a.example.com:9",
    "http://localhost.evil.test",
    "https://localhost:5173",
    "http://localhost:5173@evil.test",
    "capacitor://other",
    "null",
    "",
  ];
  for (const origin of admitted) expect(cors.mayUpgrade(from(origin)), origin).toBe(true);
  if (listed === "*") return;
  for (const origin of refused) expect(cors.mayUpgrade(from(origin)), origin).toBe(false);
});

test("a page from a listed origin may send the headers that it asks for, if their names are valid", () => {
  const { cors } = refusing("[security.cors]\nallowed_origins = ['http://localhost:*']");
  const request = from(PAGE);
  request.headers.set(
    "Access-Control-Request-Headers",
    "traceparent, authorization,sentry-trace,a b",
  );
  const headers = new Headers();
  cors.allowPreflight(request, headers);
  const allowed = headers.get("access-control-allow-headers") ?? "";
  expect(allowed).toStartWith("Authorization, Content-Type");
  expect(allowed).toEndWith("Tidemark-Transaction, traceparent, sentry-trace");
});
