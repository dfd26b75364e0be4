/**
 * Creates a database with a backup and an archived log, together with a ledger of every commit, so
 * that its state at any seq is known.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import type { Database } from "../../src/database.ts";
import { SeededRandom } from "../support/seeded_random.ts";
import { archived, ask, backUp, freshPlace, open, type Place, rows } from "./places.ts";

export const SEED = 20261;

/** The effect of a commit on a table: its rows by id, where `undefined` marks a removed row. */
interface Done {
  readonly seq: number;
  readonly table: string;
  readonly rows: readonly (readonly [id: number, value: string | undefined])[];
}

/** A change to a definition that took effect between the seqs `before` and `seq`. */
interface Defined {
  readonly before: number;
  readonly seq: number;
  readonly what: string;
}

function contentAt(ledger: readonly Done[], table: string, seq: number): [number, string][] {
  const content = new Map<number, string>();
  const upTo = ledger.filter((done) => done.table === table && done.seq <= seq);
  for (const done of upTo.toSorted((left, right) => left.seq - right.seq)) {
    for (const [id, value] of done.rows) {
      if (value === undefined) content.delete(id);
      else content.set(id, value);
    }
  }
  return [...content].toSorted(([left], [right]) => left - right);
}

/** Makes every kind of change to a table as the user `as`. Returns the effects of the changes. */
export async function write(
  database: Database,
  {
    as,
    count,
    firstId = 0,
    random,
    table,
  }: { as: string; count: number; firstId?: number; random: SeededRandom; table: string },
): Promise<Done[]> {
  const done: Done[] = [];
  const live: number[] = [];
  let nextId = firstId;
  for (let turn = 0; turn < count; turn += 1) {
    const changed: [number, string | undefined][] = [];
    const kind = Math.floor(random.unit() * 4);
    let sql: string;
    if (kind < 2 || live.length < 3) {
      const added = Array.from({ length: 1 + Math.floor(random.unit() * 5) }, () => {
        nextId += 1;
        live.push(nextId);
        return [nextId, `${table} ${nextId} `.padEnd(400 + (nextId % 1500), "x")] as const;
      });
      for (const [id, value] of added) changed.push([id, value]);
      sql = `INSERT INTO ${table} (id, v) VALUES ${added.map(([id, v]) => `(${id}, '${v}')`).join()}`;
    } else if (kind === 2) {
      const [id = 0] = live.splice(Math.floor(random.unit() * live.length), 1);
      changed.push([id, undefined]);
      sql = `DELETE FROM ${table} WHERE id = ${id}`;
    } else {
      const ids = live.slice(0, 2);
      const value = `changed in turn ${turn}`;
      for (const id of ids) changed.push([id, value]);
      const updates = ids.map((id) => `UPDATE ${table} SET v = '${value}' WHERE id = ${id}`);
      sql = `BEGIN; ${updates.join("; ")}; COMMIT`;
    }
    const { error, results } = await ask(database, sql, as);
    if (error !== undefined) throw error;
    const seq = Math.max(...results.map(({ lastSeq }) => lastSeq ?? 0));
    done.push({ seq, table: `${as} ${table}`, rows: changed });
  }
  return done;
}

export interface World {
  readonly place: Place;
  readonly ledger: readonly Done[];
  readonly definitions: readonly Defined[];
  /** The name of the database's directory in the archive. */
  readonly incarnation: string;
  readonly backup: string;
  readonly backupSeq: number;
  readonly endSeq: number;
}

const TABLES: readonly (readonly [as: string, table: string])[] = [
  ["root", "shared"],
  ["root", "mine"],
  ["late", "mine"],
  ["root", "added"],
];

/** Returns a database with a backup made under load, followed by definitions of every kind. */
export async function busyWorld(): Promise<World> {
  const place = freshPlace();
  const database = await open(place);
  const random = new SeededRandom(SEED);
  const definitions: Defined[] = [];
  const define = async (sql: string): Promise<void> => {
    const before = database.store.issueSeq();
    await rows(database, sql);
    definitions.push({ before, seq: database.store.issueSeq(), what: sql });
  };
  await rows(
    database,
    "CREATE SHARED TABLE shared (id INT PRIMARY KEY, v TEXT); CREATE USER TABLE mine (id INT PRIMARY KEY, v TEXT); CREATE SHARED TABLE doomed (id INT PRIMARY KEY); INSERT INTO doomed VALUES (1)",
  );
  const backup = join(place.root, "base");
  const first = [
    write(database, { as: "root", count: 800, random, table: "shared" }),
    write(database, { as: "root", count: 800, random, table: "mine" }),
  ];
  while (
    Number(((await rows(database, "SELECT count(*) FROM shared")) as number[][])[0]?.[0]) < 300
  ) {
    await systemClock.yield();
  }
  const backupSeq = await backUp(database, backup);
  const second = (async (): Promise<Done[]> => {
    const done: Done[] = [];
    await define("CREATE USER late WITH PASSWORD 'correct horse 9' ROLE dba");
    done.push(...(await write(database, { as: "late", count: 300, random, table: "mine" })));
    await define("CREATE SHARED TABLE added (id INT PRIMARY KEY, v TEXT)");
    done.push(...(await write(database, { as: "root", count: 300, random, table: "added" })));
    await define("ALTER TABLE added ADD COLUMN extra INT DEFAULT 7");
    const more = { as: "root", count: 100, firstId: 10_000, random, table: "added" };
    done.push(...(await write(database, more)));
    await define("DROP TABLE doomed");
    const last = { as: "late", count: 300, firstId: 10_000, random, table: "mine" };
    done.push(...(await write(database, last)));
    await define("CREATE NAMESPACE aside");
    await define("CREATE VIEW aside.few AS SELECT id FROM shared WHERE id < 10");
    return done;
  })();
  const ledger = (await Promise.all([...first, second])).flat();
  await archived(database);
  const endSeq = Math.max(...ledger.map(({ seq }) => seq));
  await database.close();
  const [incarnation = ""] = readdirSync(place.archive);
  return { place, ledger, definitions, incarnation, backup, backupSeq, endSeq };
}

/** Returns the differences between a restored database and the expected state at a seq. */
export async function differences(
  database: Database,
  world: World,
  seq: number,
): Promise<string[]> {
  const found: string[] = [];
  const compare = (what: string, is: unknown, should: unknown): void => {
    if (!Bun.deepEquals(is, should)) found.push(what);
  };
  const isThere = (what: string): boolean =>
    world.definitions.some(
      (definition) => definition.what.startsWith(what) && definition.seq <= seq,
    );
  const tables = (await rows(
    database,
    "SELECT table_name FROM system.tables WHERE namespace_id = 'default' ORDER BY 1",
  )) as string[][];
  const expected = ["mine", "shared"];
  if (isThere("CREATE SHARED TABLE added")) expected.unshift("added");
  if (!isThere("DROP TABLE doomed")) expected.push("doomed");
  compare(`tables ${tables.flat().join()}`, tables.flat(), expected.toSorted());
  const users = (await rows(database, "SELECT user_id FROM system.users WHERE user_id = 'late'"))
    .length;
  compare(`users ${users}`, users, isThere("CREATE USER") ? 1 : 0);
  const spaces = (await rows(database, "SHOW NAMESPACES")) as unknown[][];
  compare("namespaces", spaces.flat().includes("aside"), isThere("CREATE NAMESPACE"));
  const { error: noView } = await ask(database, "SELECT * FROM aside.few");
  compare("the view", noView === undefined, isThere("CREATE VIEW"));
  for (const [as, table] of TABLES) {
    if (table === "added" && !isThere("CREATE SHARED TABLE added")) continue;
    if (as === "late" && !isThere("CREATE USER")) continue;
    const content = await rows(database, `SELECT id, v FROM ${table} ORDER BY id`, as);
    compare(`${as} ${table}`, content, contentAt(world.ledger, `${as} ${table}`, seq));
  }
  if (isThere("CREATE SHARED TABLE added")) {
    const { error } = await ask(database, "SELECT extra FROM added LIMIT 1");
    compare("added.extra", error === undefined, isThere("ALTER TABLE"));
  }
  return found;
}

export async function endOfArchive(world: World): Promise<number> {
  const root = join(world.place.archive, world.incarnation);
  const last = readdirSync(root)
    .filter((file) => file.endsWith(".json"))
    .toSorted()
    .at(-1);
  const [body = ""] = readFileSync(join(root, last ?? ""), "utf8").split("\n");
  return (JSON.parse(body) as { lastSeq: number }).lastSeq;
}
