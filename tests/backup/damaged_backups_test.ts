/**
 * Tests damage to backups and to the data being backed up: verify finds the damage, restore
 * refuses the backup, and a backup of damaged data names the damage.
 */
import { afterAll, expect, test } from "bun:test";
import {
  appendFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import {
  copyOf,
  diskThatFails,
  flip,
  freshDirectory,
  maintain,
  removeDirectories,
  treeOf,
} from "../support/maintenance.ts";
import { shareOf } from "../support/thoroughness.ts";
import { ask, backupCopy, databaseOn, filesOf, keptLog, restore } from "./backups.ts";

afterAll(removeDirectories);

test("verify finds damage to any file of a backup, and restore refuses it", async () => {
  const whole = await backupCopy();
  const names = filesOf(whole);
  const kinds = new Set(names.map((name) => name.replaceAll(/.*(?=\.)|.*\//g, "")));
  expect([...kinds].toSorted()).toEqual([
    ".dv",
    ".json",
    ".seg",
    ".sqlite",
    ".txt",
    ".wal",
    "HWM",
    "IDS",
  ]);
  const target = join(freshDirectory(), "data");
  expect(await restore(whole, target)).toMatchObject({ code: 0 });
  const before = treeOf(target, ["LOCK"]);
  for (const name of names) {
    const damages: [string, (path: string) => void][] = [
      ["removed", (path) => rmSync(path)],
      ["longer", (path) => appendFileSync(path, "x")],
      ["shorter", (path) => truncateSync(path, readFileSync(path).length - 1)],
      [
        "flipped",
        (path) => {
          const bytes = readFileSync(path);
          const at = bytes.length >> 1;
          bytes[at] = (bytes[at] ?? 0) ^ 4;
          writeFileSync(path, bytes);
        },
      ],
    ];
    for (const [kind, damage] of shareOf(damages, { oneOf: 2 })) {
      const copy = copyOf(whole);
      damage(join(copy, name));
      const isUnlisted = name === "backup.json" && kind === "removed";
      const { code, said } = await restore(copy, target);
      expect(code, `restore with ${name} ${kind}`).not.toBe(0);
      expect(said, `${name} ${kind}`).toContain(copy);
      expect(maintain("verify", [copy]).code, `verify with ${name} ${kind}`).toBe(
        isUnlisted ? 0 : 1,
      );
      expect(treeOf(target, ["LOCK"]), `${name} ${kind}`).toEqual(before);
      rmSync(copy, { recursive: true });
    }
  }
});

test("a prepared restore that is damaged before the restart is refused, and can be cancelled", async () => {
  const root = freshDirectory();
  const dataPath = join(freshDirectory(), "data");
  const database = await databaseOn(dataPath, [root], bunDisk);
  await ask(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY)");
  await ask(database, "INSERT INTO t VALUES (1); STORAGE FLUSH TABLE t; INSERT INTO t VALUES (2)");
  expect((await ask(database, `BACKUP DATABASE TO '${root}/b'`)).error).toBeUndefined();
  await ask(database, "INSERT INTO t VALUES (3)");
  expect((await ask(database, `RESTORE DATABASE FROM '${root}/b'`)).error).toBeUndefined();
  await database.close();
  const staged = join(dataPath, "restore");
  const files = Object.keys(treeOf(staged)).filter((name) => statSync(join(staged, name)).isFile());
  expect(files.length).toBeGreaterThan(6);
  // The file ORDER only names the user who requested the restore, so damage to it is ignored.
  for (const file of files.filter((name) => name !== "ORDER")) {
    const path = copyOf(dataPath);
    const damaged = join(path, "restore", file);
    const bytes = readFileSync(damaged);
    const middle = bytes.length >> 1;
    bytes[middle] = (bytes[middle] ?? 0) ^ 1;
    writeFileSync(damaged, bytes);
    const refused = await databaseOn(path, [root], bunDisk).catch((error: unknown) => error);
    expect(String(refused), file).toContain(damaged);
    rmSync(join(path, "restore"), { recursive: true });
    const again = await databaseOn(path, [root], bunDisk);
    const { results } = await ask(again, "SELECT id FROM t ORDER BY id");
    expect(results[0]?.rows).toEqual([[1], [2], [3]]);
    await again.close();
  }
  const restored = await databaseOn(dataPath, [root], bunDisk);
  const { results } = await ask(restored, "SELECT id FROM t ORDER BY id");
  expect(results[0]?.rows).toEqual([[1], [2]]);
  await restored.close();
});

/**
 * Returns the path of a closed database whose tables `t` and `other` have one segment each; the
 * segment of `t` has a deletion vector.
 */
async function flushedDirectory(root: string): Promise<string> {
  const dataPath = join(freshDirectory(), "data");
  const database = await databaseOn(dataPath, [root], bunDisk);
  for (const table of ["t", "other"]) {
    await ask(database, `CREATE SHARED TABLE ${table} (id INT PRIMARY KEY, v TEXT)`);
    const rows = "SELECT g, 'value ' || g FROM generate_series(1, 500) g";
    await ask(database, `INSERT INTO ${table} ${rows}; STORAGE FLUSH TABLE ${table}`);
  }
  await ask(database, "DELETE FROM t WHERE id = 7; STORAGE FLUSH TABLE t");
  await database.close();
  return dataPath;
}

function pathIn(directory: string, end: string): string {
  return join(directory, readdirSync(directory).find((name) => name.endsWith(end)) ?? "none");
}

test.each([
  ["a damaged segment", ".seg", flip],
  ["a damaged deletion vector", ".dv", flip],
  ["a missing segment", ".seg", (path: string): void => rmSync(path)],
])(
  "no backup is made of %s, which is quarantined, until a repair gives it up",
  async (...given) => {
    const [, end, spoil] = given;
    const root = freshDirectory();
    const dataPath = await flushedDirectory(root);
    const file = pathIn(join(dataPath, "segments", "1"), end);
    spoil(file);
    const target = join(root, "b");
    const { lines, log } = keptLog();
    let database = await databaseOn(dataPath, [root], bunDisk, log);
    // On the second attempt, the segment's path is already quarantined.
    for (const text of [file, join(dataPath, "segments", "1")]) {
      const { error } = await ask(database, `BACKUP DATABASE TO '${target}'`);
      expect(error).toMatchObject({ code: "DATA_DAMAGED" });
      expect(error?.message).toContain("of default.t");
      expect(error?.message).toContain(text);
      expect(error?.hint).toContain("drop the table");
      expect(readdirSync(root)).toEqual([]);
    }
    const met = /^error a segment (?:is damaged, and has been|cannot be read, and is) quarantined/;
    expect(lines.filter((line) => met.test(line))).toHaveLength(1);
    await database.close();

    expect(maintain("repair", [dataPath])).toMatchObject({ code: 0 });
    database = await databaseOn(dataPath, [root], bunDisk, log);
    const { error, results } = await ask(database, `BACKUP DATABASE TO '${target}'`);
    expect(error).toBeUndefined();
    expect(String(results[0]?.rows?.[0]?.[5])).toContain(
      "without the rows of default.t that an earlier repair has reported as lost",
    );
    expect(lines.join("\n")).toContain(
      "warn a backup lacks rows that an earlier repair has reported as lost",
    );
    await database.close();
    const verified = maintain("verify", [target]);
    expect(verified).toMatchObject({ code: 0 });
    expect(verified.text).toContain("are lost (table default.t)");
    const restored = join(freshDirectory(), "data");
    expect(await restore(target, restored)).toMatchObject({ code: 0 });
    expect(maintain("verify", [restored])).toMatchObject({ code: 0 });
    database = await databaseOn(restored, [root], bunDisk);
    const read = await ask(database, "SELECT count(*) FROM t");
    expect(read.error?.code).toBe("DATA_DAMAGED");
    expect((await ask(database, "SELECT count(*) FROM other")).results[0]?.rows).toEqual([[500]]);
    await database.close();
  },
);

test("backups are possible again once the table of a damaged segment is dropped", async () => {
  const root = freshDirectory();
  const dataPath = await flushedDirectory(root);
  flip(pathIn(join(dataPath, "segments", "1"), ".seg"));
  const database = await databaseOn(dataPath, [root], bunDisk);
  const statement = `BACKUP DATABASE TO '${join(root, "b")}'`;
  expect((await ask(database, statement)).error?.code).toBe("DATA_DAMAGED");
  expect((await ask(database, "DROP TABLE t")).error).toBeUndefined();
  expect((await ask(database, statement)).error).toBeUndefined();
  await database.close();
});

test("a quarantined segment counts as damage until a repair moves its file", async () => {
  const root = freshDirectory();
  const dataPath = await flushedDirectory(root);
  rmSync(pathIn(join(dataPath, "segments", "2"), ".seg"));
  const database = await databaseOn(dataPath, [root], bunDisk);
  const { error } = await ask(database, "SELECT * FROM other");
  expect(error?.code).toBe("DATA_DAMAGED");
  await database.close();
  expect(maintain("verify", [dataPath])).toMatchObject({ code: 1 });
  const { code, text } = maintain("repair", [dataPath]);
  expect([code, text]).toEqual([
    0,
    expect.stringContaining("lost    table default.other: segment"),
  ]);
  expect(maintain("verify", [dataPath])).toMatchObject({ code: 0 });
});

test("verify of a damaged backup does not recommend a repair", async () => {
  const backup = await backupCopy();
  flip(join(backup, "catalog.sqlite"));
  const { code, text } = maintain("verify", [backup]);
  expect(code).toBe(1);
  expect(text).not.toContain("tidemark repair");
  expect(text).toContain("a backup cannot be repaired; use a different backup");
});

test("verify reports a prepared restore and whether its copy is intact, and repair only reports it", async () => {
  const backup = await backupCopy();
  const target = join(freshDirectory(), "data");
  await restore(backup, target);
  const waiting = join(target, "restore");
  cpSync(backup, waiting, { recursive: true });
  const note = `note    ${waiting}: a restore is prepared, so the next startup will replace the contents`;
  const verified = maintain("verify", [target]);
  expect([verified.code, verified.text]).toEqual([0, expect.stringContaining(note)]);
  expect(verified.text).toContain(`to cancel the restore, remove ${waiting}`);
  expect(maintain("repair", [target])).toMatchObject({
    code: 0,
    text: expect.stringContaining(note),
  });
  const segment = filesOf(waiting).find((name) => name.endsWith(".seg")) ?? "";
  truncateSync(join(waiting, segment), 100);
  const { code, text } = maintain("verify", [target]);
  expect([code, text]).toEqual([1, expect.stringContaining(`damage  ${waiting}/${segment}`)]);
  expect(text).toContain(
    `the interrupted restore cannot be continued; remove ${waiting}, and restore again`,
  );
  // Once the file CHECKED exists, startup may change the copy, so its files are not verified.
  writeFileSync(join(waiting, "CHECKED"), "");
  expect(maintain("verify", [target]).code).toBe(0);
});

test("verify and repair leave an interrupted restore to the next start", async () => {
  const backup = await backupCopy();
  const old = join(freshDirectory(), "data");
  await restore(backup, old);
  let refusedCount = 0;
  for (let changes = 0; ; changes += 1) {
    const target = copyOf(old);
    const { code } = await restore(backup, target, diskThatFails(target, changes));
    if (code === 0) break;
    if (!existsSync(join(target, "restore/MOVING"))) continue;
    refusedCount += 1;
    const before = filesOf(target);
    for (const args of [
      ["verify", target],
      ["repair", target, "--accept-loss"],
    ] as const) {
      const [command, ...rest] = args;
      expect(maintain(command, rest)).toMatchObject({
        code: 2,
        told: `Cannot ${command} ${target}: a restore that replaces the directory is unfinished; start the server to finish the restore`,
      });
    }
    expect(filesOf(target)).toEqual(before);
  }
  expect(refusedCount).toBeGreaterThan(3);
});
