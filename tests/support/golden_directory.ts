/**
 * Golden data directories: the files of one version, kept permanently, with everything that later
 * versions must be able to read from them.
 *
 * `writeGolden` uses SQL to create a directory with an example of everything, using its own clock
 * and random numbers. `contentsOf` returns everything that can be read from it, as JSON. Each
 * format has a folder `tests/fixtures/format-<n>/` with the directory, and with its contents when
 * it was written.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { assert, defined } from "../../src/base/assert.ts";
import type { Seq } from "../../src/base/seq.ts";
import type { TableEntry } from "../../src/catalog/mod.ts";
import type { Database } from "../../src/database.ts";
import { DELETED_COLUMN_ID, type ListedSegment, SEQ_COLUMN_ID } from "../../src/storage/mod.ts";
import { valuesOf } from "../../src/types/mod.ts";
import { openAt } from "./database.ts";
import { ManualClock } from "./manual_clock.ts";
import { principalFor } from "./principal_for.ts";
import { SeededRandom } from "./seeded_random.ts";

/** The password of the accounts that can log in: root, ada and eve. */
export const GOLDEN_PASSWORD = "correct horse battery";

export const LOCAL_CALLER = { address: "127.0.0.1", isLocal: true };

/**
 * Log files have the smallest allowed size, because the zeros that fill them are kept permanently,
 * too.
 */
const CONFIG = `
storage.wal_segment_bytes = 1048576
limits.max_row_bytes = 65536
`;

/** Opens or creates a golden directory. */
export function openGolden(directory: string, clock: ManualClock): Promise<Database> {
  const roots = JSON.stringify([dirname(directory)]);
  const config = `${CONFIG}storage.allowed_roots = ${roots}`;
  return openAt(directory, { clock, config, random: new SeededRandom(1) });
}

const EVERY_TYPE = `
  id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(), yes BOOLEAN, small SMALLINT, whole INT, large BIGINT,
  single FLOAT, exact DOUBLE, money DECIMAL(12,2), wide DECIMAL(38,6), words TEXT, code VARCHAR(8),
  raw BYTES, doc JSON, tree JSONB, moment TIMESTAMP, instant DATETIME, day DATE, hour TIME,
  tag UUID, place EMBEDDING(3)`;

/** The values of each row after its key. Omitted values are NULL. */
const TYPE_ROWS: readonly string[] = [
  `true, 32767, 2147483647, 9223372036854775807, 0.1, 1e300, 9999999999.99,
   12345678901234567890123456789012.123456, 'ä€𝄞', 'ÄÖÜß', '\\x00ff10', '{"b": 1.50, "a": [null]}',
   '{"b": 1.50, "a": [null]}', '2024-02-29 23:59:59.999999', '2024-02-29T23:59:59.999999Z',
   '9999-12-31', '23:59:59.999999', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '[0.5, -1, 3e10]'`,
  `false, -32768, -2147483648, -9223372036854775808, -16777216, -5e-300, -9999999999.99,
   -0.000001, '', '', '\\x', '[]', '{}', '1900-01-01 00:00:00', '1969-12-31T23:59:59.999999Z',
   '0001-01-01', '00:00:00', '00000000-0000-0000-0000-000000000000', '[0, 0, 0]'`,
  Array.from({ length: 19 }, () => "NULL").join(", "),
];

/**
 * Writes an example of everything that the data format supports to a new directory. Returns the
 * contents of the directory.
 */
export async function writeGolden(directory: string): Promise<unknown> {
  const clock = new ManualClock();
  const database = await openGolden(directory, clock);
  const run = runner(database, clock);
  await database.auth.setup(
    { user: "ada", password: GOLDEN_PASSWORD, root_password: GOLDEN_PASSWORD },
    LOCAL_CALLER,
  );
  await run(
    `CREATE USER bob INTERNAL; CREATE USER eve WITH PASSWORD '${GOLDEN_PASSWORD}';
     CREATE USER carl INTERNAL ROLE service; CREATE USER dora INTERNAL; DROP USER dora`,
  );
  await run("CREATE NAMESPACE app; CREATE NAMESPACE bobs AUTHORIZATION bob");
  await run(`CREATE TABLE app.types (${EVERY_TYPE}) WITH (TYPE='SHARED', ACCESS_LEVEL='PUBLIC')`);
  await run(
    `CREATE USER TABLE app.notes (folder TEXT, no INT, body TEXT NOT NULL DEFAULT 'none',
       gone INT, rating INT CHECK (rating BETWEEN 1 AND 5), PRIMARY KEY (folder, no))
     WITH (FLUSH_POLICY='rows:100000', DELETED_RETENTION_HOURS=24)`,
  );
  await run(
    `CREATE USER TABLE app.docs (id INT PRIMARY KEY, scan FILE);
     CREATE TABLE app.dropped (id INT PRIMARY KEY) WITH (TYPE='SHARED'); INSERT INTO app.dropped VALUES (1)`,
  );
  // This storage gets no table, because its directory will not exist later.
  await run(`CREATE STORAGE elsewhere TYPE filesystem PATH '${directory}-elsewhere' NAME 'Gone'`);
  await fill(database, { clock, run });
  await fillPacked(database, run);
  await fillLists(database, run);
  await fillReferences(database, run);
  await fillEnums(database, run);
  await fillDomains(database, run);
  await fillPolicies(run);
  await fillNumbers(database, run);
  await fillSearches(database, run);
  await fillRanges(database, run);
  const contents = await contentsOf(database);
  await database.close();
  return contents;
}

type Run = (
  sql: string,
  options?: { as?: string; files?: ReadonlyMap<string, string> },
) => Promise<void>;

function runner(database: Database, clock: ManualClock): Run {
  return async (sql, { as = "root", files } = {}) => {
    clock.advance(1);
    const principal = principalFor(database, as);
    const uploads = [...(files ?? [])].map(
      ([name, text]) =>
        [
          name,
          { name: `${name}.txt`, mime: "text/plain", bytes: new TextEncoder().encode(text) },
        ] as const,
    );
    const { error } = await database.sql.execute(principal, {
      sql,
      params: [],
      ...(files === undefined ? {} : { files: new Map(uploads) }),
    });
    if (error !== undefined) throw new Error(`${sql}: ${error.message}`, { cause: error });
  };
}

/**
 * Creates merged segments and their history, younger segments with deletion vectors, and rows that
 * are only in the log.
 */
async function fill(
  database: Database,
  { clock, run }: { clock: ManualClock; run: Run },
): Promise<void> {
  const flush = async (name: string): Promise<void> => {
    await database.store.flush(tableIdOf(database, name));
    await settled();
  };
  for (let round = 0; round < 11; round += 1) {
    clock.advance(60_000);
    for (const as of ["ada", "bob"]) {
      await run(
        `INSERT INTO app.notes (folder, no, body) VALUES ('in', ${round}, '${as} ${round}'), ('über', ${round}, 'x')`,
        { as },
      );
      if (round > 1)
        await run(
          `UPDATE app.notes SET body = 'changed' WHERE folder = 'in' AND no = ${round - 2}`,
          { as },
        );
      if (round > 3)
        await run(`DELETE FROM app.notes WHERE folder = 'über' AND no = ${round - 4}`, { as });
    }
    if (round === 4) {
      await run("ALTER TABLE app.notes ADD COLUMN late TEXT DEFAULT 'as before'");
      await run("ALTER TABLE app.notes DROP COLUMN gone");
      await run("ALTER TABLE app.notes RENAME COLUMN rating TO stars");
    }
    const values = TYPE_ROWS[round % TYPE_ROWS.length];
    await run(`INSERT INTO app.types VALUES (SNOWFLAKE_ID(), ${values}), (${round}, ${values})`);
    if (round > 2)
      await run(`UPDATE app.types SET words = 'updated', raw = NULL WHERE id = ${round - 2}`);
    if (round === 10) break;
    await flush("notes");
    if (round % 4 === 1) await flush("types");
  }
  await run("INSERT INTO app.docs VALUES (1, FILE('f'))", {
    as: "ada",
    files: new Map([["f", "the bytes of a file"]]),
  });
  await run("DROP TABLE app.dropped");
  const segments = database.store.segments();
  assert(segments.length > 4, "there must be several segments");
  const kinds = new Set(segments.map(({ kind }) => kind));
  assert(kinds.size === 2, "there must be segments of current versions and of history");
}

/**
 * Creates segments with arrays and intervals, their history, and rows that are only in the log.
 */
async function fillLists(database: Database, run: Run): Promise<void> {
  await run(
    `CREATE TABLE app.lists (id INT PRIMARY KEY, words TEXT[], grid BIGINT[], every INTERVAL)
     WITH (TYPE='SHARED')`,
  );
  const flush = async (): Promise<void> => {
    await database.store.flush(tableIdOf(database, "lists"));
    await settled();
  };
  for (let id = 1; id <= 4; id += 1) {
    await run(
      `INSERT INTO app.lists VALUES (${id}, '{a,"b c",NULL}', '{{1,9223372036854775807},{NULL,-1}}',
         '1 mon -2 days 03:04:05.000006'), (${id + 10}, '{}', NULL, NULL)`,
    );
    await run(
      `UPDATE app.lists SET words = array_append(words, 'd'), every = every * 2 WHERE id < ${id}`,
    );
    await flush();
  }
  await run("STORAGE COMPACT TABLE app.lists");
  await settled();
  await run("INSERT INTO app.lists VALUES (20, '{log}', '{7}', '30 days')");
}

/**
 * Creates index files, a sequence, and rows that reference other rows by their key and by a unique
 * index.
 */
async function fillReferences(database: Database, run: Run): Promise<void> {
  await run(
    `CREATE SHARED TABLE app.teams (id SERIAL PRIMARY KEY, code TEXT UNIQUE);
     CREATE SHARED TABLE app.members (id INT PRIMARY KEY, team INT REFERENCES app.teams ON DELETE CASCADE,
       code TEXT REFERENCES app.teams (code) ON UPDATE CASCADE);
     CREATE INDEX members_code ON app.members (code, id);
     INSERT INTO app.teams (code) SELECT 'team ' || g FROM generate_series(1, 9) x(g);
     INSERT INTO app.members SELECT g, 1 + g % 9, 'team ' || (1 + g % 9) FROM generate_series(1, 90) x(g)`,
  );
  for (const name of ["teams", "members"]) {
    await database.store.flush(tableIdOf(database, name));
    await settled();
  }
  await run(
    `UPDATE app.teams SET code = 'moved' WHERE code = 'team 2'; DELETE FROM app.members WHERE id = 5;
     INSERT INTO app.teams (code) VALUES ('late'); INSERT INTO app.members VALUES (91, 10, 'late')`,
  );
}

/**
 * Creates segments with NaN, infinity, and values of an enum type whose labels have changed since.
 */
async function fillEnums(database: Database, run: Run): Promise<void> {
  await run(
    `CREATE TYPE app.mood AS ENUM ('sad', 'ok', 'happy');
     CREATE SHARED TABLE app.diary (id INT PRIMARY KEY, felt app.mood, others app.mood[], d DOUBLE, r REAL);
     CREATE INDEX ON app.diary (felt); CREATE INDEX ON app.diary (d);
     INSERT INTO app.diary VALUES (1, 'happy', '{sad,NULL}', 'NaN', '-Infinity'), (2, 'sad', NULL, 'Infinity', 'NaN'),
       (3, 'ok', '{}', 1.5, 0.1)`,
  );
  await database.store.flush(tableIdOf(database, "diary"));
  await settled();
  await run(
    `ALTER TYPE app.mood ADD VALUE 'fine' BEFORE 'happy'; ALTER TYPE app.mood RENAME VALUE 'ok' TO 'so so';
     INSERT INTO app.diary VALUES (4, 'fine', '{fine,"so so"}', 'NaN', 7)`,
  );
}

/**
 * Creates columns of a domain, infinite timestamps, timestamps BC, and a view of a renamed domain.
 */
async function fillDomains(database: Database, run: Run): Promise<void> {
  await run(
    `CREATE DOMAIN app.percent AS NUMERIC(5, 2) DEFAULT 50 NOT NULL CHECK (VALUE BETWEEN 0 AND 100);
     CREATE SHARED TABLE app.tasks (id INT PRIMARY KEY, done app.percent, since DATE, until TIMESTAMP, at TIMESTAMPTZ);
     CREATE INDEX ON app.tasks (until);
     CREATE VIEW app.open_tasks AS SELECT id, done FROM app.tasks WHERE done < 100;
     CREATE VIEW app.few_tasks AS SELECT id FROM app.open_tasks;
     INSERT INTO app.tasks VALUES (1, 12.5, '-infinity', 'infinity', '2026-01-01'), (2, 100, '0044-03-15 BC', '0044-03-15 12:00 BC', 'infinity')`,
  );
  await database.store.flush(tableIdOf(database, "tasks"));
  await settled();
  await run(
    `ALTER DOMAIN app.percent ADD CONSTRAINT not_one CHECK (VALUE <> 1);
     ALTER VIEW app.open_tasks RENAME TO unfinished; INSERT INTO app.tasks (id, until) VALUES (3, '294246-12-31')`,
  );
}

/** Creates columns of NUMERIC without a precision, one of which is a key. */
async function fillNumbers(database: Database, run: Run): Promise<void> {
  await run(
    `CREATE SHARED TABLE app.numbers (code NUMERIC PRIMARY KEY, v NUMERIC, w NUMERIC(60, 20), several NUMERIC[]);
     INSERT INTO app.numbers VALUES (1.50, 'NaN', 12345678901234567890123456789012345.5, '{1.10,NaN,NULL}'),
       (-1e40, '-Infinity', 0, '{}'), (2, 1.500, NULL, NULL)`,
  );
  await database.store.flush(tableIdOf(database, "numbers"));
  await settled();
  await run("INSERT INTO app.numbers VALUES (3.0, 1e-50, 1, '{0.00}')");
}

/** Creates policies that read another table. A column of that table is renamed later. */
async function fillPolicies(run: Run): Promise<void> {
  await run(
    `CREATE SHARED TABLE app.guests (room INT, guest TEXT, PRIMARY KEY (room, guest));
     INSERT INTO app.guests VALUES (1, 'bob'), (2, 'eve');
     CREATE SHARED TABLE app.rooms (room INT PRIMARY KEY, name TEXT, host TEXT) WITH (OWNER_COLUMN = 'host');
     ALTER POLICY everybody_reads ON app.rooms TO user
       USING (EXISTS (SELECT 1 FROM app.guests g WHERE g.room = room AND g.guest = CURRENT_USER()));
     INSERT INTO app.rooms VALUES (1, 'hall', 'eve'), (2, 'attic', 'eve');
     ALTER TABLE app.guests RENAME COLUMN guest TO person`,
  );
}

/** Creates inverted index files over words, trigrams, documents and arrays. */
async function fillSearches(database: Database, run: Run): Promise<void> {
  await run(
    `CREATE SHARED TABLE app.letters (id INT PRIMARY KEY, body TEXT, doc JSONB, tags TEXT[]);
     CREATE INDEX ON app.letters USING gin (to_tsvector('english', body));
     CREATE INDEX ON app.letters USING gin (body gin_trgm_ops);
     CREATE INDEX ON app.letters USING gin (doc); CREATE INDEX ON app.letters USING gin (tags);
     INSERT INTO app.letters VALUES
       (1, 'The tides were turning', '{"to": "ada", "pages": [1, 2]}', '{sea,old}'),
       (2, 'A letter about über-ships', '{"to": "bob"}', '{ship,NULL}'), (3, NULL, NULL, NULL)`,
  );
  await database.store.flush(tableIdOf(database, "letters"));
  await settled();
  await run(
    `INSERT INTO app.letters VALUES (4, 'Turn the ship', '{"to": "ada"}', '{ship}');
     UPDATE app.letters SET tags = '{new}' WHERE id = 2`,
  );
}

/** Creates columns of a range type, an aggregate over its multiranges, and a trigger. */
async function fillRanges(database: Database, run: Run): Promise<void> {
  await run("CREATE TYPE app.span AS RANGE (SUBTYPE = INT, MULTIRANGE_TYPE_NAME = app.spans)");
  await run(
    `CREATE FUNCTION app.longer(state INT, value app.span) RETURNS INT LANGUAGE sql
       RETURN greatest(state, upper(value) - lower(value));
     CREATE SHARED TABLE app.stays (id INT PRIMARY KEY, at app.span, others app.spans, nights INT);
     CREATE INDEX ON app.stays (at)`,
  );
  await run(
    `CREATE AGGREGATE app.longest(app.span) (SFUNC = app.longer, STYPE = INT, INITCOND = '0');
     CREATE FUNCTION app.count_nights() RETURNS TRIGGER LANGUAGE plpgsql AS
       $$ BEGIN NEW.nights := upper(NEW.at) - lower(NEW.at); RETURN NEW; END $$`,
  );
  await run(
    `CREATE TRIGGER nights BEFORE INSERT OR UPDATE ON app.stays FOR EACH ROW EXECUTE FUNCTION app.count_nights();
     INSERT INTO app.stays VALUES (1, '[3,7]', '{[1,2),[5,9)}'), (2, '(1,4)', '{}'), (3, NULL, NULL)`,
  );
  await database.store.flush(tableIdOf(database, "stays"));
  await settled();
  await run("INSERT INTO app.stays VALUES (4, '[10,11)', NULL)");
}

/**
 * Creates segments with packed chunks in most encodings. One of the segments has a deletion
 * vector.
 */
async function fillPacked(database: Database, run: Run): Promise<void> {
  await run(
    `CREATE USER TABLE app.packed (id INT PRIMARY KEY, large BIGINT, exact DOUBLE, yes BOOLEAN,
       kind TEXT, body TEXT, raw BYTES, doc JSON) WITH (COMPRESSION='zstd')`,
  );
  const values = `n, CASE WHEN n % 9 = 8 THEN 9223372036854775807 - n ELSE n * 1000003::bigint END,
    n / 7.0::double precision, n % 3 = 1, 'kind ' || n % 4,
    CASE WHEN n % 5 = 4 THEN NULL ELSE repeat('the tide turns at ' || n || ' ', 4) END,
    decode(repeat(lpad(to_hex(n % 250), 2, '0'), 30), 'hex'), ('{"n": ' || n || '.50}')::json`;
  for (const [as, from, to] of [
    ["ada", 1, 90],
    ["bob", 50, 80],
    ["ada", 91, 130],
  ] as const) {
    await run(
      `INSERT INTO app.packed SELECT ${values} FROM generate_series(${from}, ${to}) AS s(n)`,
      { as },
    );
    await database.store.flush(tableIdOf(database, "packed"));
    await settled();
  }
  await run("UPDATE app.packed SET body = 'replaced' WHERE id % 25 = 3", { as: "ada" });
  await run("DELETE FROM app.packed WHERE id = 60", { as: "bob" });
  await database.store.flush(tableIdOf(database, "packed"));
  await settled();
  const segments = database.store.segments();
  const packedCount = segments.filter(({ compression }) => compression === "zstd").length;
  assert(packedCount >= 3, "there must be packed segments");
}

function tableIdOf({ catalog }: Database, name: string): number {
  return defined(catalog.table("app", name), "the table must exist").tableId;
}

/** Waits until a background merge has ended. */
async function settled(): Promise<void> {
  for (let round = 0; round < 20; round += 1) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/**
 * Returns the contents of a database as plain JSON, without the parts that a later version may
 * change.
 */
export async function contentsOf(database: Database): Promise<unknown> {
  const { catalog, store, blobs } = database;
  const owners: string[] = [];
  for (;;) {
    const name = catalog.accounts.ownerName(owners.length + 1);
    if (name === undefined) break;
    owners.push(name);
  }
  const contents = {
    visibleSeq: store.visibleSeq,
    namespaces: catalog.namespaces(),
    users: catalog.accounts.users(),
    // Directories in older formats have no sequences.
    ...(catalog.sequences().length === 0 ? {} : { sequences: catalog.sequences() }),
    owners,
    files: await Promise.all(
      catalog.files.all().map(async (file) => {
        const bytes = await blobs.read(file)?.bytes();
        return [file, bytes === undefined ? undefined : Buffer.from(bytes).toString("latin1")];
      }),
    ),
    tables: catalog.tables().map((table) => ({
      definitions: catalog.tableVersions(table.tableId),
      segments: store
        .segments()
        .filter(({ tableId }) => tableId === table.tableId)
        .map(asWritten),
      unflushed: store.stats(table.tableId).unflushedVersions,
      owners: [0, ...owners.keys().map((index) => index + 1)].map((owner) =>
        rowsOf(database, table, owner),
      ),
    })),
  };
  return JSON.parse(JSON.stringify(contents, plain));
}

/**
 * Returns a segment entry in the form that older fixtures contain, in which the kind of current
 * segments is not stated.
 */
function asWritten({ kind, ...segment }: ListedSegment): object {
  return kind === "current" ? segment : { ...segment, kind };
}

/** Returns an owner's rows, including tombstones, and every version that was ever written. */
function rowsOf({ store }: Database, { tableId, columns }: TableEntry, owner: number): unknown {
  const columnIds = columns.map(({ columnId }) => columnId);
  const bounds = { owner, after: 0 as Seq, upTo: store.visibleSeq };
  const rows: unknown[] = [];
  const ids = [SEQ_COLUMN_ID, DELETED_COLUMN_ID, ...columnIds];
  const scan = store.scan(tableId, { ...bounds, columnIds: ids, withTombstones: true });
  for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
    const cells = batch.columns.map((column) => valuesOf(column));
    for (let row = 0; row < batch.rowCount; row += 1) rows.push(cells.map((cell) => cell[row]));
  }
  scan.close();
  const changes: unknown[] = [];
  const history = store.changes(tableId, { ...bounds, columnIds, batchRows: 100 });
  for (let batch = history.next(); batch !== undefined; batch = history.next()) {
    const { seqs, commitSeqs, prevs, deleted, hasOld } = batch;
    const now = batch.columns.map((column) => valuesOf(column));
    const old = batch.oldColumns.map((column) => valuesOf(column));
    for (let row = 0; row < batch.rowCount; row += 1) {
      const before = hasOld[row] === 1 ? old.map((cells) => cells[row]) : null;
      const head = [seqs[row], commitSeqs[row], prevs[row], deleted[row]];
      changes.push([...head, now.map((cells) => cells[row]), before]);
    }
  }
  history.close();
  return { owner, rows, changes };
}

/** Converts values that JSON cannot represent, for use by JSON.stringify. */
function plain(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return { bigint: String(value) };
  if (typeof value === "number" && !Number.isFinite(value)) return { number: String(value) };
  if (value instanceof Uint8Array) return { bytes: value.toHex() };
  if (value instanceof Float32Array) return { floats: [...value] };
  return value;
}

/** Returns every file below a directory as base64, by relative path. */
export function filesIn(directory: string): Record<string, string> {
  const files: Record<string, string> = {};
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) files[path.slice(directory.length + 1)] = readFileSync(path).toBase64();
  }
  return files;
}

/** Packs the files of a directory, without the lock file, into a fixture. */
export function packed(directory: string): Uint8Array<ArrayBuffer> {
  const { LOCK: _, ...files } = filesIn(directory);
  return Bun.gzipSync(new TextEncoder().encode(JSON.stringify(files)), { level: 9 });
}

/** Writes the files in a fixture to a directory. */
export function unpack(fixture: Uint8Array<ArrayBuffer>, directory: string): void {
  const text = new TextDecoder().decode(Bun.gunzipSync(fixture));
  const files = JSON.parse(text) as Record<string, string>;
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), Uint8Array.fromBase64(content));
  }
}
