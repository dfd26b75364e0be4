/**
 * Tests the client's `transaction` against a scripted server: the requests that it sends, the
 * cases in which it repeats its work, and its handling of failures and lost responses.
 */
import { expect, test } from "bun:test";
import type { Client, TransactionClient } from "../../src/client/mod.ts";
import { type Answer, FakeServer, loggedIn, ok } from "./scripted_server.ts";

const CONFLICT: Answer = {
  status: 400,
  body: { error: { code: "SQL_EXECUTION_ERROR", reason: "conflict", message: "lost" } },
};
const GONE: Answer = {
  status: 404,
  body: { error: { code: "TRANSACTION_NOT_FOUND", message: "gone" } },
};

/**
 * Creates a server that responds to requests as the real server would. Requests for the paths in
 * `failing` get the listed responses in order.
 */
async function scripted(
  failing: Readonly<Record<string, readonly (Answer | Error)[]>> = {},
): Promise<{ server: FakeServer; client: Client; sent: () => string[] }> {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const first = server.requests.length;
  const left = new Map(Object.entries(failing).map(([path, list]) => [path, [...list]]));
  let opened = 0;
  server.answer = (path) => {
    const end = path.split("/").at(-1) ?? "";
    const next = left.get(end)?.shift();
    if (next instanceof Error) throw next;
    if (next !== undefined) return next;
    if (end === "sql") {
      return ok({
        results: [{ rows: [[opened]], schema: [{ name: "n" }] }],
        status: "success",
        took: 1,
      });
    }
    if (end === "transactions") {
      opened += 1;
      return ok({ transaction_id: `tx_${opened}`, state: "open" });
    }
    return ok({ transaction_id: "tx", state: end });
  };
  const sent = (): string[] =>
    server.requests.slice(first).map(({ path, request }) => {
      const header = request.headers["Tidemark-Transaction"];
      return `${path.replace("/v1/api/", "")}${header === undefined ? "" : ` in ${header}`}`;
    });
  return { server, client, sent };
}

/** Fires the timers of a client until its work is done. */
async function settled<T>(server: FakeServer, work: Promise<T>): Promise<T> {
  const progress = { isDone: false };
  const finish = (): void => {
    progress.isDone = true;
  };
  work.then(finish, finish);
  while (!progress.isDone) {
    server.fire();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return await work;
}

test("transaction opens, runs its calls, commits and returns the result", async () => {
  const { client, sent, server } = await scripted();
  const result = await client.transaction(
    async (tx) => {
      await tx.execute("DELETE FROM a.t");
      const [row] = await tx.query<{ n: number }>("SELECT 1 AS n");
      return [tx.id, row?.n];
    },
    { namespace: "a", readOnly: false, timeout: "5s" },
  );
  expect(result).toEqual(["tx_1", 1]);
  expect(sent()).toEqual([
    "transactions",
    "sql in tx_1",
    "sql in tx_1",
    "transactions/tx_1/commit",
  ]);
  const opening = server.requests.find(({ path }) => path.endsWith("/transactions"));
  expect(JSON.parse(opening?.request.body ?? "")).toEqual({
    namespace_id: "a",
    read_only: false,
    timeout_ms: 5000,
  });
});

test("transaction rolls back if its work throws, rethrows the error, and does not repeat the work", async () => {
  const { client, sent } = await scripted({ rollback: [GONE] });
  const failure = new Error("mine");
  expect(client.transaction(() => Promise.reject(failure))).rejects.toBe(failure);
  expect(sent()).toEqual(["transactions", "transactions/tx_1/rollback"]);
});

test.each(["commit", "sql"])(
  "transaction repeats its work after a conflict in %s",
  async (where) => {
    const { client, sent, server } = await scripted({ [where]: [CONFLICT, CONFLICT] });
    const work = client.transaction(async (tx) => (await tx.query("UPDATE a.t SET v = 1"))[0]);
    expect(await settled(server, work)).toEqual({ n: 3 });
    expect(sent().filter((path) => path === "transactions")).toHaveLength(3);
    expect(sent().at(-1)).toBe("transactions/tx_3/commit");
  },
);

test("transaction gives up after maxRetries conflicts, with growing pauses", async () => {
  const { client, sent, server } = await scripted({
    commit: Array.from({ length: 9 }, () => CONFLICT),
  });
  const work = client.transaction(async () => 1, { maxRetries: 2 });
  expect(settled(server, work)).rejects.toMatchObject({ reason: "conflict" });
  expect(sent().filter((path) => path === "transactions")).toHaveLength(3);
});

test("transaction asks again for the outcome of a commit whose response was lost", async () => {
  const { client, sent, server } = await scripted({ commit: [new Error("reset")] });
  expect(
    await settled(
      server,
      client.transaction(async () => 7, { idempotencyKey: "k" }),
    ),
  ).toBe(7);
  expect(sent().slice(-2)).toEqual(["transactions/tx_1/commit", "transactions/tx_1/commit"]);
  expect(server.requests.at(-1)?.request.body).toBe('{"idempotency_key":"k"}');
});

test("transaction throws COMMIT_UNKNOWN if the outcome of a lost commit is unknown", async () => {
  const lost = await scripted({ commit: [new Error("reset"), GONE] });
  expect(
    settled(
      lost.server,
      lost.client.transaction(async () => 7),
    ),
  ).rejects.toMatchObject({
    code: "COMMIT_UNKNOWN",
  });
  const ended = await scripted({ commit: [GONE] });
  expect(ended.client.transaction(async () => 7)).rejects.toMatchObject({
    code: "TRANSACTION_NOT_FOUND",
  });
});

test("a transaction that has ended refuses further calls", async () => {
  const { client, sent } = await scripted();
  let kept: TransactionClient | undefined;
  await client.transaction(async (tx) => {
    kept = tx;
  });
  expect(kept?.execute("SELECT 1") ?? Promise.resolve()).rejects.toThrow(
    "Cannot use the transaction: it has already ended; await each of its calls",
  );
  expect(sent()).toHaveLength(2);
});

test("transaction names a wrong argument", async () => {
  const { client } = await scripted();
  const loose = client as unknown as {
    transaction(work: unknown, options?: object): Promise<unknown>;
  };
  expect(loose.transaction("SELECT 1")).rejects.toThrow(
    "Cannot use the work of the transaction: it is a string, but must be a function",
  );
  expect(loose.transaction(async () => 1, { readonly: true })).rejects.toThrow(
    "did you mean readOnly?",
  );
});
