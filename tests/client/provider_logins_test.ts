/**
 * Tests the `db.account` functions for logins through providers against a scripted server: the
 * data that a page sends and stores, and the mistakes that are reported to it.
 */
import { expect, test } from "bun:test";
import { type Client, createClient } from "../../src/client/mod.ts";
import { FakeServer } from "./scripted_server.ts";

const PAGE = "https://app.test/in";

function started(): { server: FakeServer; db: Client } {
  const server = new FakeServer();
  return { server, db: createClient({ url: "http://db.test", environment: server }) };
}

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

test("a login through a provider begins with the hash of a secret and ends with the secret", async () => {
  const { db, server } = started();
  const { url, verifier } = await db.account.beginProviderLogin("idp", { returnTo: PAGE });
  const { origin, pathname, searchParams } = new URL(url);
  expect(origin + pathname).toBe("http://db.test/v1/api/auth/oidc/idp/login");
  expect(searchParams.get("return_to")).toBe(PAGE);
  const hash = new Bun.CryptoHasher("sha256").update(verifier).digest("base64url");
  expect(searchParams.get("challenge")).toBe(hash);
  expect(url).not.toContain(verifier);
  expect(server.requests).toEqual([]);
  const other = await db.account.beginProviderLogin("idp", { returnTo: PAGE });
  expect(other.verifier).not.toBe(verifier);
  const ended = await db.account.finishProviderLogin(`${PAGE}#tidemark_code=c0de`, { verifier });
  expect(ended?.user.id).toBeString();
  const [{ path, request } = { path: "", request: { body: "" } }] = server.requests;
  expect([path, JSON.parse(request.body ?? "")]).toEqual([
    "/v1/api/auth/oidc/token",
    { code: "c0de", verifier },
  ]);
});

test("a page that began no login accepts no code and sends nothing", async () => {
  const { db, server } = started();
  const sent = `${PAGE}#tidemark_code=c0de`;
  for (const ending of [db.account.finishProviderLogin(sent), db.account.linkProviderLogin(sent)]) {
    expect(await failureOf(ending)).toMatchObject({ code: "invalid_code" });
  }
  expect(server.requests).toEqual([]);
});

test("an address without a login returns none, and a failed login throws an error with its code", async () => {
  const { db, server } = started();
  for (const address of [PAGE, `${PAGE}#`, `${PAGE}?tidemark_code=x`, `${PAGE}#other=x`]) {
    expect(await db.account.finishProviderLogin(address), address).toBeUndefined();
    expect(await db.account.linkProviderLogin(address), address).toBeFalse();
  }
  for (const code of ["denied", "unknown_user", "something_new"]) {
    const failed = db.account.finishProviderLogin(`${PAGE}#tidemark_error=${code}`);
    expect(await failureOf(failed)).toMatchObject({ code, status: 401 });
  }
  expect(server.requests).toEqual([]);
});

test.each<[string, (db: Client) => Promise<unknown>, string]>([
  ["a provider", (db) => db.account.beginProviderLogin("../x"), "the name of a provider"],
  ["an address", (db) => db.account.finishProviderLogin(5 as never), "a string"],
  [
    "an option",
    (db) => db.account.beginProviderLogin("idp", { return_to: PAGE } as never),
    "did you mean returnTo?",
  ],
  ["no page", (db) => db.account.beginProviderLogin("idp"), "this runtime has no page"],
  ["no page at the end", (db) => db.account.finishProviderLogin(), "this runtime has no page"],
])("a wrong call is refused with what is right: %s", async (_what, call, expected) => {
  const failure = await failureOf(call(started().db));
  expect(failure).toBeInstanceOf(TypeError);
  expect(String(failure)).toContain(expected);
});
