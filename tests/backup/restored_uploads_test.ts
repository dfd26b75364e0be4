/**
 * Tests uploads in point-in-time restores: which uploads remain when their tables are dropped, and
 * which are reported as lost.
 */
import { Database as Sqlite } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { cpSync, mkdirSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { checksumOfFile } from "../../src/base/copy_file.ts";
import { CatalogDatabase } from "../../src/catalog/mod.ts";
import { backupListPath, readBackupList, writeBackupList } from "../../src/storage/files.ts";
import { freshDirectory, removeDirectories } from "../support/maintenance.ts";
import { fileMissing, testThoroughly, testUnless } from "../support/requirements.ts";
import { startReadyServer } from "../support/server_process.ts";
import { backUp, freshPlace, open, restore, rows } from "./places.ts";

afterAll(removeDirectories);

testThoroughly(
  "the statement and the command both report uploads that no archive contains",
  async () => {
    const place = freshPlace();
    const config = { storage: { allowed_roots: [place.root], archive_path: place.archive } };
    await using server = await startReadyServer({ config });
    await server.rows("CREATE SHARED TABLE t (id INT PRIMARY KEY, f FILE)");
    const base = join(place.root, "base");
    await server.rows(`BACKUP DATABASE TO '${base}'`);
    const seqs: number[] = [];
    for (const id of [1, 2]) {
      const form = new FormData();
      form.set("sql", `INSERT INTO t VALUES (${id}, FILE("doc"))`);
      form.set("file:doc", new File([`upload ${id}`], `${id}.txt`));
      const headers = { Authorization: `Bearer ${server.token}` };
      const answer = await fetch(`${server.url}/v1/api/sql`, {
        method: "POST",
        headers,
        body: form,
      });
      const { results } = (await answer.json()) as { results: { last_seq: number }[] };
      seqs.push(results[0]?.last_seq ?? 0);
    }
    const files = join(server.dataPath, "files");
    const [first = "", second = ""] = readdirSync(files, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".txt"))
      .toSorted((left, right) => Number(left.endsWith("2.txt")) - Number(right.endsWith("2.txt")));
    rmSync(join(files, first));
    const restoreTo = async (seq = 0): Promise<string> => {
      const [row = []] = await server.rows(`RESTORE DATABASE FROM '${base}' TO SEQ ${seq}`);
      rmSync(join(server.dataPath, "restore"), { recursive: true });
      return String(row[5]);
    };
    expect(await restoreTo(seqs[1])).toContain(
      `1 uploaded file is lost, for example files/${first}: the log archive contains no ` +
        "files uploaded after the backup",
    );
    rmSync(join(files, second));
    expect(await restoreTo(seqs[1])).toContain("2 uploaded files are lost");
    expect(await restoreTo(seqs[0])).toContain("1 uploaded file is lost");
    server.kill("SIGTERM");
    await server.exited();
    const { code, said } = await restore([base, server.dataPath, "--to-seq", String(seqs[1])]);
    expect(code, said).toBe(0);
    expect(said).toContain("2 uploaded files are lost");
  },
);

test("uploads of a table that is dropped before the point are removed, and others are kept", async () => {
  const place = freshPlace();
  const database = await open(place);
  const paths: string[] = [];
  for (const [index, table] of ["dropped", "kept"].entries()) {
    await rows(database, `CREATE SHARED TABLE ${table} (id INT PRIMARY KEY, f FILE)`);
    const tableId = database.catalog.table("default", table)?.tableId ?? 0;
    const path = `files/${tableId}/0/f0001/7${index}-a.txt`;
    paths.push(path);
    mkdirSync(dirname(join(place.data, path)), { recursive: true });
    writeFileSync(join(place.data, path), "hello");
    database.catalog.files.add([
      {
        fileId: `7${index}`,
        tableId,
        owner: 0,
        columnId: 2,
        keyJson: "[1]",
        sub: "f0001",
        storedName: `7${index}-a.txt`,
        name: "a.txt",
        mime: "text/plain",
        size: 5,
        sha256: new Bun.CryptoHasher("sha256").update("hello").digest("hex"),
        createdAtMs: 0,
      },
    ]);
  }
  const base = join(place.root, "base");
  await backUp(database, base);
  await rows(database, "DROP TABLE dropped");
  const seq = database.store.visibleSeq;
  await rows(database, "CREATE NAMESPACE later");
  await database.close();
  const target = join(freshDirectory(), "data");
  cpSync(place.data, target, { recursive: true });
  const { code, said } = await restore([base, target, "--to-seq", String(seq)]);
  expect(code, said).toBe(0);
  const found = readdirSync(join(target, "files"), { recursive: true, encoding: "utf8" });
  const kept = (paths[1] ?? "").split("/").slice(1);
  expect(found.toSorted()).toEqual(kept.map((_, index) => kept.slice(0, index + 1).join("/")));
});

/** Returns the catalogs of pending restores that this process has open, including removed ones. */
function openPending(): string[] {
  const names = readdirSync("/proc/self/fd").flatMap((name) => {
    try {
      return [readlinkSync(`/proc/self/fd/${name}`)];
    } catch {
      // Listing the directory opened this descriptor, which has been closed since.
      return [];
    }
  });
  return names.filter((name) => name.includes("/restore.new/catalog.sqlite"));
}

testUnless(fileMissing("/proc/self/fd"))(
  "a restore to a point that meets damage in the list of files leaves no catalog open",
  async () => {
    const place = freshPlace();
    const database = await open(place);
    await rows(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY)");
    const base = join(place.root, "base");
    await backUp(database, base);
    await rows(database, "INSERT INTO t VALUES (1)");
    const [[seq] = []] = (await rows(database, "SELECT _seq FROM t")) as number[][];
    await database.close();
    const path = join(base, "catalog.sqlite");
    const catalog = new Sqlite(path);
    catalog.run("INSERT INTO files VALUES ('damaged', '{}', 0)");
    catalog.close();
    const list = readBackupList(bunDisk, base);
    const files = list.files.map((file) =>
      file.path === "catalog.sqlite" ? { ...file, ...checksumOfFile(bunDisk, path) } : file,
    );
    rmSync(backupListPath(base));
    writeBackupList(bunDisk, base, { ...list, files });

    const { code, said } = await restore([base, place.data, "--to-seq", String(seq)]);

    expect(code, said).toBe(1);
    expect(said).toContain("catalog.sqlite");
    expect(openPending()).toEqual([]);
  },
);

testThoroughly(
  "uploads of a table that is dropped at the point are not reported as lost",
  async () => {
    const place = freshPlace();
    const database = await open(place);
    const { catalog } = database;
    if (!(catalog instanceof CatalogDatabase))
      throw new Error("a database has its catalog in a file");
    await rows(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY, f FILE)");
    const { tableId = 0 } = catalog.table("default", "t") ?? {};
    const base = join(place.root, "base");
    await backUp(database, base);
    catalog.files.add(
      Array.from({ length: 200 }, (_, index) => ({
        fileId: `f${1000 + index}`,
        storedName: `${index}.txt`,
        tableId,
        owner: 0,
        columnId: 2,
        keyJson: "[1]",
        sub: "f0001",
        name: "note.txt",
        mime: "text/plain",
        size: 1,
        sha256: "00",
        createdAtMs: 0,
      })),
    );
    const listedAt = catalog.journal.end;
    await rows(database, "CREATE SHARED TABLE other (id INT PRIMARY KEY); DROP TABLE t");
    await rows(database, "INSERT INTO other VALUES (1)");
    const entries = catalog.journal.after(listedAt);
    const removals = entries.filter(({ changes }) => changes.some(([name]) => name === "files"));
    expect(removals.length).toBeGreaterThan(1);
    const restoreTo = async (seq = 0): Promise<string> => {
      const [row = []] = (await rows(
        database,
        `RESTORE DATABASE FROM '${base}' TO SEQ ${seq}`,
      )) as unknown[][];
      rmSync(join(place.data, "restore"), { recursive: true });
      return String(row[5]);
    };
    const [drop] = removals;
    expect(await restoreTo((drop?.stamp ?? 0) - 1)).toContain("200 uploaded files are lost");
    expect(await restoreTo(drop?.stamp)).not.toContain("uploaded file");
    await database.close();
  },
);
