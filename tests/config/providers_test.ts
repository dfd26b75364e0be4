/**
 * Verifies that the OpenID Connect providers in a configuration are read, and refused if invalid.
 */
import { expect, test } from "bun:test";
import { authSettingsFrom, changedKeys, parseConfig, settingsOf } from "../../src/config/mod.ts";
import { faultsOf, QUIET } from "./read_config.ts";

test("parseConfig reads the OpenID Connect providers, with a default for each key", () => {
  const toml = `
[oidc]
auto_provision = true
[oidc.providers.google]
issuer = "https://accounts.google.com"
client_id = "db"
[oidc.providers.my-idp]
issuer = "http://localhost:8080/realms/a"
audience = "api"
claims = ["groups"]
label = "Ours"`;
  const env = {
    ...QUIET,
    TIDEMARK_OIDC_PROVIDERS_GOOGLE_CLIENT_SECRET: "s3cret",
    TIDEMARK_OIDC_PROVIDERS_MY_IDP_SCOPES: "openid, profile",
    TIDEMARK_OIDC_PROVIDERS_THIRD_ISSUER_FILE: "/issuer",
  };
  const readFile = (): string => "https://third.example.com\n";
  const { config, warnings } = parseConfig(toml, "c.toml", { env, readFile });
  expect(config.oidc.providers).toEqual({
    google: {
      issuer: "https://accounts.google.com",
      client_id: "db",
      client_secret: "s3cret",
      audience: undefined,
      user_claim: "sub",
      label: undefined,
      scopes: ["openid", "email"],
      claims: [],
    },
    "my-idp": {
      issuer: "http://localhost:8080/realms/a",
      client_id: undefined,
      client_secret: undefined,
      audience: "api",
      user_claim: "sub",
      label: "Ours",
      scopes: ["openid", "profile"],
      claims: ["groups"],
    },
    third: expect.objectContaining({ issuer: "https://third.example.com" }),
  });
  expect(warnings).toEqual([expect.stringContaining("oidc.providers.third.audience is not set")]);
  const shown = settingsOf(config).filter(({ name }) => name.startsWith("oidc.providers.google."));
  expect(shown.find(({ name }) => name.endsWith("client_secret"))).toMatchObject({
    value: "***",
    source: "environment",
    category: "oidc.providers.google",
  });
  const { oidc } = authSettingsFrom(config, new Uint8Array(32));
  expect(oidc.providers[0]).toMatchObject({ audience: "db", label: "google" });
  const other = parseConfig(toml.replace("Ours", "Other"), "c.toml", { env, readFile }).config;
  expect(changedKeys(config, other)).toEqual(["oidc.providers.my-idp.label"]);
  const fewer = parseConfig("", "c.toml", { env: QUIET }).config;
  expect(changedKeys(config, fewer)).toContain("oidc.providers.google.issuer");
});

test.each([
  ["a = 1", "[oidc.providers.a] must be a section"],
  ["a.issuer = 5", "oidc.providers.a.issuer is a whole number, but must be the URL"],
  ["a.issuer = 'http://idp.example.com'", "oidc.providers.a.issuer is"],
  ["a.issuer = 'https://u:p@idp.example.com'", "oidc.providers.a.issuer is"],
  ["a.issuer = 'https://idp.example.com/?a=b'", "oidc.providers.a.issuer is"],
  ["a.issuer = 'idp.example.com'", "oidc.providers.a.issuer is"],
  ["a.client_id = 'x'", "oidc.providers.a.issuer is missing"],
  [
    "a = { issuer = 'https://a.b', client_secret = 'x', audience = 'x' }",
    "client_secret is set, but ",
  ],
  ["a = { issuer = 'https://a.b', client_id = 'x', scopes = ['email'] }", 'must contain "openid"'],
  [
    "a = { issuer = 'https://a.b', client_id = 'x', claims = ['role'] }",
    "other than iss, sub, role or email",
  ],
  [
    "a = { issuer = 'https://a.b', client_id = 'x', isuer = 'y' }",
    'unknown key "isuer" in [oidc.providers.a]; did you mean "issuer"?',
  ],
  ["A.issuer = 'https://a.b'", "it must have 1 to 32 characters"],
  [
    "a = { issuer = 'https://a.b', client_id = 'x' }\nb = { issuer = 'https://a.b', client_id = 'y' }",
    "is the same as the issuer of oidc.providers.a",
  ],
])("parseConfig refuses the provider %s", (toml, expected) => {
  const faults = faultsOf(`[oidc.providers]\n${toml}`);
  expect(faults).toEqual([expect.stringContaining(expected)]);
});

test("parseConfig refuses providers that are not sections, and trusted issuers without TLS", () => {
  expect(faultsOf("oidc.providers = 5")[0]).toContain("[oidc.providers] must be a section");
  const [fault] = faultsOf("auth.jwt_trusted_issuers = ['http://a.b']");
  expect(fault).toContain("auth.jwt_trusted_issuers is");
  expect(faultsOf("auth.jwt_trusted_issuers = ['https://a.b', 'http://127.0.0.1:9/x']")).toEqual(
    [],
  );
});
