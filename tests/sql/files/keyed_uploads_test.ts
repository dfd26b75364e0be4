/**
 * Tests uploads in requests with an idempotency key: the commit of the request lists them, and
 * they are removed completely if the request does not commit.
 */
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { bunDisk } from "../../../src/base/bun_disk.ts";
import type { DiskFile, OpenOptions } from "../../../src/base/disk.ts";
import { DatabaseError } from "../../../src/base/errors.ts";
import { BATCH_ROWS_MAX } from "../../../src/base/limits.ts";
import type { SqlResponse } from "../../../src/sql/mod.ts";
import { ForwardingDisk, ForwardingFile } from "../../support/forwarding_disk.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

/** A disk that delays the syncs of uploads until a test releases them. */
class GatedDisk extends ForwardingDisk {
  readonly reached = Promise.withResolvers<void>();
  readonly gate = Promise.withResolvers<void>();

  override open(path: string, options: OpenOptions): DiskFile {
    const file = this.disk.open(path, options);
    if (!path.endsWith(".blob")) return file;
    return new GatedFile(file, () => {
      this.reached.resolve();
      return this.gate.promise;
    });
  }
}

class GatedFile extends ForwardingFile {
  readonly #beforeSync: () => Promise<void>;

  constructor(file: DiskFile, beforeSync: () => Promise<void>) {
    super(file);
    this.#beforeSync = beforeSync;
  }

  override async sync(): Promise<void> {
    await this.#beforeSync();
    await super.sync();
  }
}

const UPDATE = "UPDATE doc SET f = FILE('f') WHERE id = 1";

let clock: ManualClock;
let disk: GatedDisk;
let engine: TestEngine;

beforeEach(async () => {
  clock = new ManualClock();
  disk = new GatedDisk(bunDisk);
  const config = "limits.transaction_timeout_secs = 5";
  engine = await TestEngine.open({ clock, config, disk });
  await engine.run(
    "CREATE TABLE doc (id INT PRIMARY KEY, n INT, f FILE); INSERT INTO doc VALUES (1, 1, NULL)",
  );
});
afterEach(() => engine[Symbol.asyncDispose]());

/** Sends a request with an idempotency key and a file. */
function ask(sql: string): Promise<SqlResponse> {
  const bytes = new TextEncoder().encode("bytes");
  return engine.ask(sql, {
    files: new Map([["f", { name: "note.txt", mime: "text/plain", bytes }]]),
    idempotency: { key: "k", digest: sql },
  });
}

const listed = (): string[] =>
  engine.database.catalog.files.all().map(({ storedName }) => storedName);
const stored = (): (string | undefined)[] =>
  engine.storedFiles().map((path) => path.split("/").at(-1));

test("the commit of the request lists a file, and a repeated request adds none", async () => {
  disk.gate.resolve();
  expect((await ask(UPDATE)).error).toBeUndefined();
  expect(listed()).toHaveLength(1);
  expect(stored()).toEqual(listed());
  expect((await ask(UPDATE)).isReplayed).toBe(true);
  expect(listed()).toHaveLength(1);
  expect(stored()).toEqual(listed());
  const [row] = await engine.rows("SELECT f ->> 'name' FROM doc");
  expect(row).toEqual(["note.txt"]);
});

test("a long commit also lists its file", async () => {
  disk.gate.resolve();
  const rows = Array.from({ length: BATCH_ROWS_MAX + 1 }, (_, id) => `(${id + 2}, 1, NULL)`);
  const { error } = await ask(`INSERT INTO doc VALUES (0, 1, FILE('f')), ${rows.join()}`);
  expect(error).toBeUndefined();
  expect(listed()).toHaveLength(1);
  expect(stored()).toEqual(listed());
});

test("an update that matches no row keeps no file", async () => {
  disk.gate.resolve();
  expect((await ask("UPDATE doc SET f = FILE('f') WHERE id = 7")).error).toBeUndefined();
  expect([listed(), stored()]).toEqual([[], []]);
});

test("a request that loses a conflict at its commit leaves no file", async () => {
  const asked = ask(UPDATE);
  await disk.reached.promise;
  await engine.run("UPDATE doc SET n = 2 WHERE id = 1");
  disk.gate.resolve();
  expect((await asked).error?.code).toBe("SERIALIZATION_FAILURE");
  expect([listed(), stored()]).toEqual([[], []]);
});

test("a request that exceeds its time limit at its commit leaves no file", async () => {
  const asked = ask(UPDATE);
  await disk.reached.promise;
  clock.advance(6000);
  disk.gate.resolve();
  expect((await asked).error?.code).toBe("TRANSACTION_LIMIT");
  expect([listed(), stored()]).toEqual([[], []]);
});

test("a statement that fails leaves no file", async () => {
  disk.gate.resolve();
  const { error } = await ask(`${UPDATE} RETURNING 1 / (id - 1)`);
  expect(error?.code).toBe("DIVISION_BY_ZERO");
  expect([listed(), stored()]).toEqual([[], []]);
});

test("a file is kept while it is unknown whether its row is written", async () => {
  disk.gate.resolve();
  const durable = spyOn(engine.database.store, "durable").mockImplementation(() =>
    Promise.reject(new DatabaseError("COMMIT_UNKNOWN", "the log failed")),
  );
  expect((await ask(UPDATE)).error?.code).toBe("COMMIT_UNKNOWN");
  durable.mockRestore();
  expect(listed()).toHaveLength(1);
  expect(stored()).toEqual(listed());
});
