/**
 * Tests sessions with a stored refresh token, and files that are sent with a statement, against a
 * scripted server. A session survives a reload, tabs share the session, and a logout ends it for
 * all tabs.
 */
import { expect, test } from "bun:test";
import { type Client, createClient, type PositionStorage } from "../../src/client/mod.ts";
import { expired, FakeServer, loggedIn, loginBody, ok } from "./scripted_server.ts";

class MapStorage implements PositionStorage {
  readonly map = new Map<string, string>();
  getItem(key: string): string | null {
    return this.map.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    this.map.set(key, value);
  }
  removeItem(key: string): void {
    this.map.delete(key);
  }
}

const KEY = "tidemark.refresh_token http://db.test";

function openTab(server: FakeServer, storage: PositionStorage): Client {
  return createClient({ url: "http://db.test", session: "storage", storage, environment: server });
}

function refreshesOf(server: FakeServer): unknown[] {
  return server.requests
    .filter(({ path }) => path.endsWith("/refresh"))
    .map(({ request }) => JSON.parse(request.body ?? "") as unknown);
}

test("a session in a storage continues after a reload, and ends with a logout", async () => {
  const server = new FakeServer();
  const storage = new MapStorage();
  await openTab(server, storage).session.login("ada", "x");
  expect([...storage.map]).toEqual([[KEY, "refresh t1"]]);
  server.answer = () => ok(loginBody("t2"));
  const reloaded = openTab(server, storage);
  expect((await reloaded.session.refresh()).user.id).toBe("ada");
  expect(refreshesOf(server)).toEqual([{ refresh_token: "refresh t1" }]);
  expect([...storage.map]).toEqual([[KEY, "refresh t2"]]);
  await reloaded.session.logout();
  expect(storage.map.size).toBe(0);
  const failure = await openTab(server, storage)
    .session.refresh()
    .catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "unauthorized", message: "No user is logged in" });
});

test("a tab renews the session with the token that another tab received last", async () => {
  const server = new FakeServer();
  const storage = new MapStorage();
  const first = openTab(server, storage);
  await first.session.login("ada", "x");
  server.answer = () => ok(loginBody("t2"));
  await openTab(server, storage).session.refresh();
  server.answer = () => ok(loginBody("t3"));
  await first.session.refresh();
  expect(refreshesOf(server)).toEqual([
    { refresh_token: "refresh t1" },
    { refresh_token: "refresh t2" },
  ]);
});

test("a refused token is removed from the storage, unless another tab has stored a newer one", async () => {
  const server = new FakeServer();
  const storage = new MapStorage();
  storage.setItem(KEY, "old");
  server.answer = (_path, { body }) => {
    if (body?.includes("newer") === true) return ok(loginBody("t9"));
    storage.setItem(KEY, "newer");
    return expired("unauthorized");
  };
  expect((await openTab(server, storage).session.refresh()).user.id).toBe("ada");
  expect(storage.getItem(KEY)).toBe("refresh t9");
  server.answer = () => expired("unauthorized");
  const refused = await openTab(server, storage)
    .session.refresh()
    .catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "unauthorized" });
  expect(storage.getItem(KEY)).toBeNull();
  expect(refreshesOf(server)).toHaveLength(3);
});

test("the option to store a session requires a storage", () => {
  expect(() => createClient({ url: "http://db.test", session: "storage" })).toThrow(
    'Cannot use session: "storage": it needs a storage, but localStorage is undefined; write createClient({ url, storage })',
  );
});

test("execute sends files and all other fields as a form", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const photo = new File(["bytes"], "a.png", { type: "image/png" });
  await client.execute("INSERT INTO a.t VALUES ($1, FILE('photo'))", {
    params: [1],
    files: { photo },
    idempotencyKey: "k",
  });
  const { request } = server.requests.at(-1) ?? {};
  const form = request?.data;
  expect(request?.headers["Content-Type"]).toBeUndefined();
  expect(form instanceof FormData ? [...form.keys()].toSorted() : form).toEqual([
    "file:photo",
    "idempotency_key",
    "params",
    "sql",
  ]);
  if (!(form instanceof FormData)) return;
  expect([form.get("params"), form.get("idempotency_key")]).toEqual(["[1]", "k"]);
  const sent = form.get("file:photo");
  expect(sent instanceof File ? [sent.name, sent.type, await sent.text()] : sent).toEqual([
    "a.png",
    "image/png",
    "bytes",
  ]);
});
