/**
 * Verifies that the data of each released version stays readable, and that an older version
 * refuses a newer version's data and leaves it unchanged. A directory of each format is kept under
 * tests/fixtures with a description of its readable contents. This version opens a copy and must
 * read the same contents. It must also refuse copies in which a version number claims that a newer
 * version wrote them.
 */
import { Database as Sqlite } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32, placeSeed, xxHash3 } from "../../src/base/checksum.ts";
import { SEQ_EPOCH_MS } from "../../src/base/seq.ts";
import {
  contentsOf,
  filesIn,
  GOLDEN_PASSWORD,
  LOCAL_CALLER,
  openGolden,
  unpack,
} from "../support/golden_directory.ts";
import { maintain } from "../support/maintenance.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { principalFor } from "../support/principal_for.ts";
import { formatIn, WRITTEN_FORMATS } from "../support/segment_files.ts";
import { serverCommand } from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";

const ROOT = join(import.meta.dir, "../..");
const FIXTURES = join(ROOT, "tests/fixtures");
/** The formats, oldest first. */
const ALL_FORMATS = readdirSync(FIXTURES)
  .filter((name) => name.startsWith("format-"))
  .toSorted((left, right) => numberOf(left) - numberOf(right));

/**
 * The formats that this run opens: all of them in a thorough run, otherwise a selection that
 * includes the newest.
 */
const FORMATS = shareOf(ALL_FORMATS.toReversed(), { oneOf: 7 });

function numberOf(format: string): number {
  return Number(format.replace("format-", ""));
}

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function copyOf(format: string): string {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-golden-"));
  folders.push(folder);
  const directory = join(folder, "data");
  mkdirSync(directory);
  unpack(readFileSync(join(FIXTURES, format, "directory.json.gz")), directory);
  return directory;
}

function laterClock(): ManualClock {
  return new ManualClock(SEQ_EPOCH_MS + 86_400_000);
}

/** The first format whose directory has indexes, a sequence and foreign keys. */
const FIRST_WITH_REFERENCES = 8;

test.each(FORMATS.filter((format) => numberOf(format) >= FIRST_WITH_REFERENCES))(
  "the indexes, the sequence and the foreign keys of %s work",
  async (format) => {
    const database = await openGolden(copyOf(format), laterClock());
    const principal = principalFor(database, "root");
    const run = async (sql: string): Promise<unknown> => {
      const { error, results } = await database.sql.execute(principal, { sql, params: [] });
      return error?.code ?? results.map(({ rows }) => rows);
    };
    expect(await run("SELECT id FROM app.teams WHERE code = 'moved'")).toEqual([[[2]]]);
    expect(await run("SELECT count(*) FROM app.members WHERE code = 'moved'")).toEqual([[[10]]]);
    expect(await run("INSERT INTO app.teams (id, code) VALUES (99, 'late')")).toBe("DUPLICATE_KEY");
    const orphan = "INSERT INTO app.members VALUES (99, 1, 'team 2')";
    expect(await run(orphan)).toBe("FOREIGN_KEY_VIOLATION");
    expect(await run("INSERT INTO app.teams (code) VALUES ('new') RETURNING id > 10")).toEqual([
      [[true]],
    ]);
    expect(
      await run("DELETE FROM app.teams WHERE id = 2; SELECT count(*) FROM app.members"),
    ).toEqual([undefined, [[80]]]);
    await database.close();
  },
);

/** The first format whose directory has an enum type, NaN and infinity. */
const FIRST_WITH_ENUMS = 9;

test.each(FORMATS.filter((format) => numberOf(format) >= FIRST_WITH_ENUMS))(
  "the enum type, NaN and infinity of %s keep their meaning",
  async (format) => {
    const database = await openGolden(copyOf(format), laterClock());
    const principal = principalFor(database, "root");
    const rowsFrom = async (sql: string): Promise<unknown> => {
      const { error, results } = await database.sql.execute(principal, { sql, params: [] });
      return error?.code ?? results[0]?.rows;
    };
    expect(await rowsFrom("SELECT id, felt, others FROM app.diary ORDER BY felt")).toEqual([
      [2, "sad", null],
      [3, "so so", []],
      [4, "fine", ["fine", "so so"]],
      [1, "happy", ["sad", null]],
    ]);
    expect(await rowsFrom("SELECT id FROM app.diary WHERE d = 'NaN' ORDER BY id")).toEqual([
      [1],
      [4],
    ]);
    expect(await rowsFrom("SELECT d, r FROM app.diary WHERE felt < 'so so'")).toEqual([
      ["Infinity", "NaN"],
    ]);
    expect(await rowsFrom("INSERT INTO app.diary VALUES (5, 'ok')")).toBe("INVALID_VALUE");
    await database.close();
  },
);

/** The first format whose directory has policies. */
const FIRST_WITH_POLICIES = 12;

test.each(FORMATS.filter((format) => numberOf(format) >= FIRST_WITH_POLICIES))(
  "the policies of %s permit the same rows",
  async (format) => {
    const database = await openGolden(copyOf(format), laterClock());
    const answer = async (userId: string, sql: string): Promise<unknown> => {
      const principal = principalFor(database, userId);
      const { error, results } = await database.sql.execute(principal, { sql, params: [] });
      return error?.code ?? results[0]?.rows ?? results[0]?.rowCount;
    };
    expect(await answer("bob", "SELECT name FROM app.rooms")).toEqual([["hall"]]);
    expect(await answer("eve", "SELECT name FROM app.rooms")).toEqual([["attic"]]);
    expect(await answer("bob", "UPDATE app.rooms SET name = 'mine'")).toBe(0);
    expect(await answer("eve", "UPDATE app.rooms SET name = 'mine'")).toBe(1);
    expect(await answer("bob", "INSERT INTO app.rooms VALUES (3, 'x', 'eve')")).toBe(
      "PERMISSION_DENIED",
    );
    await database.close();
  },
  30_000,
);

/** The first format whose directory has a range type, an aggregate and a trigger. */
const FIRST_WITH_RANGES = 15;

test.each(FORMATS.filter((format) => numberOf(format) >= FIRST_WITH_RANGES))(
  "the range type, the aggregate and the trigger of %s keep their meaning",
  async (format) => {
    const database = await openGolden(copyOf(format), laterClock());
    const principal = principalFor(database, "root");
    const rowsFrom = async (sql: string): Promise<unknown> => {
      const { error, results } = await database.sql.execute(principal, { sql, params: [] });
      return error?.message ?? results.at(-1)?.rows;
    };
    expect(await rowsFrom("SELECT id, at, others, nights FROM app.stays ORDER BY id")).toEqual([
      [1, "[3,7]", "{[1,2),[5,9)}", 4],
      [2, "(1,4)", "{}", 3],
      [3, null, null, null],
      [4, "[10,11)", null, 1],
    ]);
    expect(await rowsFrom("SELECT id FROM app.stays WHERE at = app.span(1, 4, '()')")).toEqual([
      [2],
    ]);
    expect(await rowsFrom("SELECT app.longest(at) FROM app.stays")).toEqual([[4]]);
    const inserted = "INSERT INTO app.stays (id, at) VALUES (9, '[1,9]') RETURNING nights";
    expect(await rowsFrom(inserted)).toEqual([[8]]);
    await database.close();
  },
);

/** The first format whose directory has inverted indexes. */
const FIRST_WITH_SEARCHES = 13;

test.each(FORMATS.filter((format) => numberOf(format) >= FIRST_WITH_SEARCHES))(
  "the inverted indexes of %s find the same rows, and none is written again",
  async (format) => {
    const directory = copyOf(format);
    const files = invertedIn(directory);
    expect(files).toHaveLength(4);
    const database = await openGolden(directory, laterClock());
    const principal = principalFor(database, "root");
    const found = async (condition: string): Promise<unknown> => {
      const sql = `SELECT id FROM app.letters WHERE ${condition} ORDER BY id`;
      const { error, results } = await database.sql.execute(principal, { sql, params: [] });
      return error?.message ?? results[0]?.rows;
    };
    expect(await found("to_tsvector('english', body) @@ to_tsquery('english', 'turn')")).toEqual([
      [1],
      [4],
    ]);
    expect(await found("body LIKE '%ship%'")).toEqual([[2], [4]]);
    expect(await found(`doc @> '{"to": "ada"}'`)).toEqual([[1], [4]]);
    expect(await found("tags @> '{ship}'")).toEqual([[4]]);
    await database.close();
    expect(invertedIn(directory)).toEqual(files);
    const { text } = maintain("verify", [directory]);
    expect(text).not.toContain(".idx");
  },
);

/** Returns the contents of the inverted index files, which begin with a magic number. */
function invertedIn(directory: string): readonly (readonly [string, string])[] {
  return Object.entries(filesIn(directory)).filter(
    ([name, content]) =>
      name.endsWith(".idx") &&
      Buffer.from(content, "base64").subarray(0, 8).toString("latin1") === "TIDETRM1",
  );
}

describe.each(FORMATS)("a data directory of %s can still be opened", (format) => {
  test("the golden directory has the rows, history, definitions and users that were written", async () => {
    const directory = copyOf(format);
    const expected: unknown = await Bun.file(join(FIXTURES, format, "contents.json")).json();
    const database = await openGolden(directory, laterClock());
    expect(await contentsOf(database)).toEqual(expected);
    const body = { user: "eve", password: GOLDEN_PASSWORD };
    const { user } = await database.auth.login(body, LOCAL_CALLER);
    expect(user.id).toBe("eve");
    await database.close();
  });

  test("the golden directory can still be written, and reads the same before and after a flush and a restart", async () => {
    const directory = copyOf(format);
    const database = await openGolden(directory, laterClock());
    const principal = principalFor(database, "ada");
    const sql = `
      INSERT INTO app.types (id, words) VALUES (1000, 'new') RETURNING id > 1000000;
      INSERT INTO app.types (words) VALUES ('new');
      UPDATE app.types SET small = 7 WHERE words = 'updated' OR id = 1;
      DELETE FROM app.types WHERE id = 2;
      UPDATE app.notes SET stars = 5`;
    const { error } = await database.sql.execute(principal, { sql, params: [] });
    expect(error).toBeUndefined();
    const before = rowsIn(await contentsOf(database));
    for (const { tableId } of database.catalog.tables()) await database.store.flush(tableId);
    expect(rowsIn(await contentsOf(database))).toEqual(before);
    await database.close();
    const again = await openGolden(directory, laterClock());
    expect(rowsIn(await contentsOf(again))).toEqual(before);
    await again.close();
  });
});

/** Returns only the rows and their versions from the contents of a directory. */
function rowsIn(contents: unknown): unknown {
  const { tables } = contents as { tables: readonly { owners: unknown }[] };
  return tables.map(({ owners }) => owners);
}

test("the golden directory of the newest format has all kinds of segments that are still written", () => {
  const directory = copyOf(ALL_FORMATS.at(-1) ?? "");
  const formats = Object.entries(filesIn(directory))
    .filter(([name]) => name.endsWith(".seg"))
    .map(([, content]) => formatIn(Uint8Array.fromBase64(content)));
  expect(new Set(formats)).toEqual(new Set(WRITTEN_FORMATS));
});

const HASH_BYTES = 8;

/**
 * Changes that a newer server version might make to a directory, each with the name that the error
 * message must contain.
 */
const NEWER: readonly {
  readonly what: string;
  readonly file: RegExp;
  readonly message: RegExp;
  change(path: string): void;
}[] = [
  {
    what: "directory",
    file: /^format\.json$/,
    message: /data: it has format 2, but this version reads only 1/,
    change: (path) => writeFileSync(path, '{"format":2}\n'),
  },
  {
    what: "catalog",
    file: /^catalog\.sqlite$/,
    message:
      /catalog\.sqlite: its format is version 99, but this server reads only versions up to \d/,
    change: (path) => {
      const catalog = new Sqlite(path);
      catalog.run("PRAGMA journal_mode = DELETE");
      catalog.run("PRAGMA user_version = 99");
      catalog.close();
    },
  },
  {
    what: "log",
    file: /\.wal$/,
    message: /0000000001\.wal: it has format 2, but this version reads only 1/,
    change: (path) =>
      edit(path, (view) => {
        view.setUint16(4, view.getUint16(4, true) + 1, true);
        view.setUint32(60, crc32(bytesOf(view).subarray(0, 60)), true);
      }),
  },
  {
    what: "segment",
    file: /^segments.*\.seg$/,
    message: /\.seg: it has format 9, but this version reads only 6/,
    change: (path) =>
      edit(path, (view) => {
        view.setUint8(7, "9".charCodeAt(0));
        seal(view, { end: 56, seed: placeSeed(view.getUint32(8, true), -100, 0) });
      }),
  },
  {
    what: "deletion vector",
    file: /\.dv$/,
    message: /\.dv: it has format 2, but this version reads only 1/,
    change: (path) =>
      edit(path, (view) => {
        view.setUint8(7, view.getUint8(7) + 1);
        const end = view.byteLength - HASH_BYTES;
        seal(view, { end, seed: placeSeed(view.getUint32(8, true), 0, 0) });
      }),
  },
];

function edit(path: string, change: (view: DataView) => void): void {
  const bytes = readFileSync(path);
  change(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  writeFileSync(path, bytes);
}

function bytesOf(view: DataView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

/** Computes a hash of the bytes before offset `end`, and writes it at that offset. */
function seal(view: DataView, { end, seed }: { end: number; seed: number }): void {
  const { low, high } = xxHash3(bytesOf(view).subarray(0, end), seed);
  view.setUint32(end, low, true);
  view.setUint32(end + 4, high, true);
}

function changeOne(directory: string, newer: (typeof NEWER)[number]): void {
  const name = Object.keys(filesIn(directory)).find((each) => newer.file.test(each));
  if (name === undefined) throw new Error(`There is no ${newer.file.source}`);
  newer.change(join(directory, name));
}

async function start(directory: string): Promise<{ code: number; stderr: string }> {
  const configPath = join(directory, "../config.toml");
  const storage = `storage.data_path = ${JSON.stringify(directory)}`;
  const logs = `logging.logs_path = ${JSON.stringify(join(directory, "../logs"))}`;
  writeFileSync(configPath, `server.port = 0\n${storage}\n${logs}\n`);
  const child = Bun.spawn([...serverCommand(), configPath], {
    cwd: ROOT,
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    timeout: 10_000,
    killSignal: "SIGKILL",
  });
  const stderr = await new Response(child.stderr).text();
  return { code: await child.exited, stderr };
}

describe("a directory with a newer format is refused, and not a byte of it changes:", () => {
  const format = ALL_FORMATS.at(-1) ?? "";

  test.each(shareOf(NEWER, { oneOf: 4 }).map((each) => [each.what, each] as const))(
    "%s",
    async (_what, newer) => {
      const directory = copyOf(format);
      // An interrupted process leaves temporary files behind. An older version would have removed
      // them.
      mkdirSync(join(directory, "tmp"));
      writeFileSync(join(directory, "tmp/77.seg"), "half of it");
      changeOne(directory, newer);
      const before = filesIn(directory);
      const { code, stderr } = await start(directory);
      // The server's log also contains notes about the configuration. They come first, and the
      // test skips them.
      const said = stderr
        .trimEnd()
        .split("\n")
        .filter((line) => !/ (?:WARN|INFO) /.test(line));
      expect(said).toHaveLength(1);
      expect(said[0]).toMatch(newer.message);
      expect(said[0]).toStartWith("Cannot start Tidemark");
      expect(code).toBe(1);
      expect(filesIn(directory)).toEqual(before);
    },
  );

  test("a damaged format number is not mistaken for a newer format", async () => {
    const directory = copyOf(format);
    for (const name of Object.keys(filesIn(directory))) {
      if (!/\.(?:seg|dv)$/.test(name)) continue;
      edit(join(directory, name), (view) => view.setUint8(7, view.getUint8(7) + 1));
    }
    const database = await openGolden(directory, laterClock());
    const principal = principalFor(database, "ada");
    const answer = async (sql: string): Promise<string | undefined> => {
      const { error } = await database.sql.execute(principal, { sql, params: [] });
      return error?.code;
    };
    expect(await answer("SELECT * FROM app.notes")).toBe("DATA_DAMAGED");
    expect(await answer("SELECT * FROM app.docs")).toBeUndefined();
    await database.close();
  });
});
