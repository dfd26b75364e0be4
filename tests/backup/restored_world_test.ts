/**
 * Tests point-in-time restores: a backup and the log since then yield the state at any seq in
 * between, according to a ledger of every commit. A backup that does not cover the point changes
 * nothing.
 */
import { afterAll, expect } from "bun:test";
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  copyOf,
  flip,
  freshDirectory,
  maintain,
  removeDirectories,
  treeOf,
} from "../support/maintenance.ts";
import { testThoroughly } from "../support/requirements.ts";
import { SeededRandom } from "../support/seeded_random.ts";
import { busyWorld, differences, endOfArchive, SEED, type World, write } from "./busy_world.ts";
import { archived, freshPlace, open, restore, rows } from "./places.ts";

afterAll(removeDirectories);

let made: Promise<World> | undefined;

function theWorld(): Promise<World> {
  made ??= busyWorld();
  return made;
}

const RANDOM_POINTS = 14;

const DEFINITION_POINTS = 4;

testThoroughly(
  "a backup made under load is restored to many seqs from archive and log, always with the right rows",
  async () => {
    const world = await theWorld();
    const { archive, data } = world.place;
    const archiveEnd = await endOfArchive(world);
    expect(archiveEnd).toBeGreaterThan(world.backupSeq);
    const random = new SeededRandom(SEED + 1);
    const span = world.endSeq - world.backupSeq;
    const isBeside = (seq: number): boolean =>
      world.definitions.some((definition) => seq > definition.before && seq < definition.seq);
    const points: number[] = [];
    while (points.length < RANDOM_POINTS) {
      const seq = world.backupSeq + Math.floor(random.unit() * span);
      // While a definition is being changed, the object may or may not exist at a point in time.
      if (!isBeside(seq)) points.push(seq);
    }
    // The restored points are next to definitions and at both ends of the log.
    points.push(...world.definitions.map(({ before }) => before).slice(0, DEFINITION_POINTS));
    points.push(world.backupSeq, world.endSeq);
    expect(points).toHaveLength(RANDOM_POINTS + DEFINITION_POINTS + 2);
    let fromArchive = 0;
    for (const [index, seq] of points.entries()) {
      // Some restores use only the archive and a different directory; the others replace the
      // database itself.
      const isElsewhere = seq <= archiveEnd && index % 2 === 0;
      const target = isElsewhere ? join(freshDirectory(), "data") : copyOf(data);
      fromArchive += isElsewhere ? 1 : 0;
      const args = [world.backup, target, "--archive", archive, "--to-seq", String(seq)];
      const held = index % 3 === 0 ? { heldBytesMax: 1_500_000 } : {};
      const { code, said } = await restore(args, held);
      expect(code, said).toBe(0);
      expect(said).toContain(`the state at _seq ${seq}`);
      const database = await open(world.place, { data: target });
      expect({ seq, found: await differences(database, world, seq) }).toEqual({ seq, found: [] });
      await rows(database, "INSERT INTO shared VALUES (1000000, 'new')");
      const [[newSeq] = []] = (await rows(
        database,
        "SELECT _seq FROM shared WHERE id = 1000000",
      )) as unknown[][];
      expect(Number(newSeq)).toBeGreaterThan(isElsewhere ? seq : world.endSeq);
      await database.close();
      expect(maintain("verify", [target])).toMatchObject({ code: 0 });
      rmSync(target, { recursive: true });
    }
    expect(fromArchive).toBeGreaterThan(points.length / 6);
  },
  300_000,
);

testThoroughly("a backup that cannot reach the point is refused, and nothing changes", async () => {
  const world = await theWorld();
  const target = copyOf(world.place.data);
  const before = treeOf(target, ["LOCK", "tmp"]);
  const archiveEnd = await endOfArchive(world);
  const { incarnation } = world;
  const damaged = (damage: (root: string, files: string[]) => void): string => {
    const archive = join(copyOf(world.place.archive));
    const root = join(archive, incarnation);
    damage(root, readdirSync(root).toSorted());
    return archive;
  };
  const logs = (files: string[]): string[] => files.filter((file) => file.endsWith(".wal"));
  const lists = (files: string[]): string[] => files.filter((file) => file.endsWith(".json"));
  // The archive contains the log files after the file in which the backup ends.
  const cases: [why: string, archive: string, seq: number, code: number, text: string][] = [
    [
      "beyond all",
      world.place.archive,
      world.endSeq + 5_000_000_000,
      2,
      "nothing was committed after this point",
    ],
    ["before the backup", world.place.archive, world.backupSeq - 1, 2, "which is later"],
    [
      "a gap",
      damaged((root, files) => rmSync(join(root, lists(files).at(-2) ?? ""))),
      archiveEnd,
      2,
      "is missing from the archive, although later ones exist",
    ],
    [
      "a flipped bit in a log file",
      damaged((root, files) => flip(join(root, logs(files).at(-1) ?? ""))),
      archiveEnd,
      1,
      "does not match its checksum in the archive",
    ],
    [
      "a flipped bit in a list",
      damaged((root, files) => flip(join(root, lists(files).at(-1) ?? ""))),
      archiveEnd,
      1,
      "does not match its checksum",
    ],
    [
      "a log file that is missing",
      damaged((root, files) => rmSync(join(root, logs(files).at(-1) ?? ""))),
      archiveEnd,
      1,
      "the file is missing",
    ],
    [
      "a list under another number",
      damaged((root, files) => {
        const [left = "", right = ""] = lists(files).slice(-2);
        copyFileSync(join(root, left), join(root, right));
      }),
      archiveEnd,
      1,
      "the archived file belongs to file",
    ],
    [
      "an archive of another database",
      damaged((root) => renameSync(root, `${root.slice(0, -4)}0000`)),
      archiveEnd,
      2,
      "is missing from the archive",
    ],
    [
      "an archive that is not there",
      join(freshDirectory(), "none"),
      archiveEnd,
      2,
      "there is no archive",
    ],
  ];
  for (const [why, archive, seq, code, text] of cases) {
    // Once the log files have been removed, a restore can use only the archive.
    const copy = join(freshDirectory(), "data");
    const isOwn = why === "beyond all" || why === "before the backup";
    const args = ["--archive", archive, "--to-seq", String(seq)];
    const result = await restore([world.backup, isOwn ? target : copy, ...args]);
    expect({ why, code: result.code }, result.said).toEqual({ why, code });
    expect(result.said, why).toContain(text);
    expect(existsSync(join(copy, "catalog.sqlite")), why).toBe(false);
    expect(existsSync(join(copy, "restore")), why).toBe(false);
  }
  expect(treeOf(target, ["LOCK", "tmp"])).toEqual(before);
});

testThoroughly(
  "a log that does not begin where the log of the backup begins is refused",
  async () => {
    const world = await theWorld();
    const other = await theOtherLog(world);
    const target = join(freshDirectory(), "data");
    const seq = String(await endOfArchive(world));
    const { code, said } = await restore([
      world.backup,
      target,
      "--archive",
      other,
      "--to-seq",
      seq,
    ]);
    expect(code, said).toBe(1);
    expect(said).toContain("it is damaged or belongs to a different database");
  },
);

/** Returns an archive with intact files from a different database of the same name. */
async function theOtherLog(world: World): Promise<string> {
  const place = freshPlace();
  const database = await open(place);
  await rows(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY, v TEXT)");
  await write(database, { as: "root", count: 3000, random: new SeededRandom(3), table: "t" });
  await archived(database);
  await database.close();
  const mine = world.incarnation;
  const [theirs = ""] = readdirSync(place.archive);
  const root = join(place.archive, mine);
  renameSync(join(place.archive, theirs), root);
  const { crc32 } = await import("../../src/base/checksum.ts");
  for (const file of readdirSync(root).filter((name) => name.endsWith(".json"))) {
    const [body = ""] = readFileSync(join(root, file), "utf8").split("\n");
    const renamed = body
      .replace(theirs, mine)
      .replace(/"lastSeq":\d+/, `"lastSeq":${world.endSeq + 1}`);
    const sum = crc32(Buffer.from(renamed)).toString(16).padStart(8, "0");
    writeFileSync(join(root, file), `${renamed}\n${sum}\n`);
  }
  return place.archive;
}
