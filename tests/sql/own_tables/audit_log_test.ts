/**
 * Tests the audit log. It keeps all events in order, across a restart and DROP USER, within its
 * size limits. No event contains a literal of a user's statement.
 */
import { expect, test } from "bun:test";
import { bunDisk } from "../../../src/base/bun_disk.ts";
import { systemClock } from "../../../src/base/clock.ts";
import type { Disk } from "../../../src/base/disk.ts";
import { CorruptionError, DiskError } from "../../../src/base/errors.ts";
import { type Log, silentLog } from "../../../src/base/log.ts";
import { AuditLog } from "../../../src/sql/mod.ts";
import { AUDIT_RING_EVENTS } from "../../../src/sql/own_tables/audit_log.ts";
import { errorCodeOf } from "../../support/error_codes.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { TestEngine } from "../../support/sql_engine.ts";

const EVENTS =
  "SELECT actor_user_id, action, target, outcome, subject_user_id FROM system.audit_log " +
  "ORDER BY audit_id";

const ORIGIN = { address: "203.0.113.7", requestId: "r-1" };

const LOGIN = { action: "login", actor: "ann", target: "ann", outcome: "ok" } as const;

async function as<T>(engine: TestEngine, userId: string, work: () => Promise<T>): Promise<T> {
  engine.userId = userId;
  try {
    return await work();
  } finally {
    engine.userId = "root";
  }
}

test("statements that change rights are recorded, whether they succeed or not", async () => {
  await using engine = await TestEngine.open();
  await engine.run("CREATE NAMESPACE app; CREATE USER ann WITH PASSWORD 'Correct-horse-9'");
  await engine.run("CREATE TABLE t (id INT PRIMARY KEY)", { namespace: "app" });
  await engine.run("INSERT INTO app.t (id) VALUES (1); SELECT * FROM app.t; SHOW TABLES");
  await engine.failure("ALTER TABLE app.t DROP COLUMN none");
  await engine.failure("KILL QUERY 'none'");
  await as(engine, "ann", () => engine.failure("CREATE NAMESPACE mine"));
  await as(engine, "ann", () => engine.failure("EXECUTE AS USER 'root' (SELECT 1)"));
  await engine.run("EXECUTE AS USER 'ann' (SELECT 1)");
  await engine.run("ALTER USER ann SET ROLE service; DROP TABLE app.t; DROP USER ann");
  await engine.run("CREATE TABLE app.unmade (id INT PRIMARY KEY)", { check: true });
  const events = [
    ["root", "create namespace", "app", "ok", null],
    ["root", "create user", "ann", "ok", "ann"],
    ["root", "create table", "app.t", "ok", null],
    ["root", "alter table", "app.t", "failed", null],
    ["root", "kill", "query none", "failed", null],
    ["ann", "create namespace", "mine", "denied", null],
    ["ann", "execute as", "root", "denied", "root"],
    ["root", "execute as", "ann", "ok", "ann"],
    ["root", "alter user", "ann", "ok", "ann"],
    ["root", "drop table", "app.t", "ok", null],
    ["root", "drop user", "ann", "ok", "ann"],
  ];
  expect(await engine.rows(EVENTS)).toEqual(events);
  await engine.restart();
  expect(await engine.rows(EVENTS)).toEqual(events);
  await engine.run("DROP NAMESPACE app");
  expect(await engine.rows(EVENTS)).toEqual([
    ...events,
    ["root", "drop namespace", "app", "ok", null],
  ]);
});

test("an event records its origin, time and statement, without literals", async () => {
  await using engine = await TestEngine.open();
  const sql = "CREATE USER eve WITH PASSWORD 'Secret-horse-9' EMAIL 'eve@example.org'";
  await engine.run(sql, { origin: ORIGIN });
  const [row = []] = await engine.rows(
    "SELECT ip_address, timestamp, SEQ_TIME(audit_id) = date_trunc('milliseconds', timestamp), " +
      "details ->> 'request_id', details FROM system.audit_log",
  );
  const nowMicros = engine.database.catalog.accounts.users().find(({ userId }) => userId === "eve");
  expect(row.slice(0, 4)).toEqual([
    "203.0.113.7",
    (nowMicros?.createdAtMs ?? 0) * 1000,
    true,
    "r-1",
  ]);
  expect(String(row[4])).toContain("CREATE USER ?");
  expect(String(row[4])).not.toMatch(/Secret|example/);
});

test("an event records its origin even if the client disconnects before the end", async () => {
  await using engine = await TestEngine.open();
  let hasLeft = false;
  const origin = {
    get address() {
      return hasLeft ? "unknown" : ORIGIN.address;
    },
    requestId: "r-2",
  };
  const created = engine.run("CREATE USER eve WITH PASSWORD 'Secret-horse-9'", { origin });
  hasLeft = true;
  await created;
  expect(await engine.rows("SELECT ip_address FROM system.audit_log")).toEqual([[ORIGIN.address]]);
});

test("only administrators can read the audit log, and no user can write to it", async () => {
  await using engine = await TestEngine.open();
  await engine.run("CREATE USER ann WITH PASSWORD 'Correct-horse-9' ROLE service");
  await as(engine, "ann", async () => {
    expect(await engine.failure(EVENTS)).toStartWith("PERMISSION_DENIED");
  });
  expect(await engine.failure("DELETE FROM system.audit_log")).toStartWith("READ_ONLY_OBJECT");
});

test("a full ring drops its oldest events, and logins do not displace changes", async () => {
  await using engine = await TestEngine.open();
  await engine.run("CREATE NAMESPACE app");
  const { audit, store } = auditOf(engine);
  const login = (actor: string): Promise<void> =>
    audit.note({ action: "login", actor, target: actor, outcome: "failed" });
  await Promise.all(Array.from({ length: AUDIT_RING_EVENTS + 3 }, (_, i) => login(`x${i}`)));
  const rows = audit.rows();
  expect(rows).toHaveLength(AUDIT_RING_EVENTS + 1);
  expect(rows[0]?.[3]).toBe("create namespace");
  expect(rows[1]?.[2]).toBe("x3");
  expect(rows.at(-1)?.[2]).toBe(`x${AUDIT_RING_EVENTS + 2}`);
  // After a restart, writing continues after the newest event.
  const { clock, log } = auditOf(engine);
  const next = new AuditLog({ store, clock, log });
  await next.note({ action: "login", actor: "new", target: "new", outcome: "ok" });
  expect(next.rows()).toHaveLength(AUDIT_RING_EVENTS + 1);
  expect(next.rows()[1]?.[2]).toBe("x4");
});

test("a statement of any length is recorded even if rows must be short", async () => {
  await using engine = await TestEngine.open({ config: "limits.max_row_bytes = 1024" });
  const columns = Array.from({ length: 100 }, (_, i) => `a_column_with_a_long_name_${i} TEXT`);
  const name = "t".repeat(63);
  await engine.run(
    `CREATE NAMESPACE app; CREATE TABLE app.${name} (id INT PRIMARY KEY, ${columns.join(", ")})`,
  );
  const wide = "漢".repeat(300);
  const login = { action: "login", actor: wide, target: wide, subject: wide } as const;
  await auditOf(engine).audit.note({ ...login, outcome: "failed", address: ORIGIN.address });
  const short = "漢".repeat(60);
  expect((await engine.rows(EVENTS)).slice(1)).toEqual([
    ["root", "create table", `app.${name}`.slice(0, 60), "ok", null],
    [short, "login", short, "failed", short],
  ]);
});

test("an event that damage keeps out of the table is written to the server log", async () => {
  const damage = new CorruptionError("/data/1.seg", 0, "its checksum does not match");
  for (const trouble of [damage, new DiskError("EIO", "/data/1.seg", "read")]) {
    await using engine = await TestEngine.open();
    const { clock, store } = auditOf(engine);
    store.scan = () => {
      throw trouble;
    };
    const told: string[] = [];
    const log: Log = { ...silentLog, error: (message) => told.push(message) };
    await new AuditLog({ store, clock, log }).note(LOGIN);
    expect(told).toEqual(["an event is missing from system.audit_log"]);
  }
});

test("a statement that is still allowed on a nearly full disk is recorded", async () => {
  let freeBytes = 1e12;
  const disk: Disk = { ...bunDisk, freeBytes: () => freeBytes };
  const clock = new ManualClock();
  await using engine = await TestEngine.open({ disk, clock });
  await engine.run("CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY)");
  freeBytes = 0;
  // Free disk space is checked every ten seconds.
  clock.advance(10_000);
  expect(errorCodeOf(() => auditOf(engine).store.requireFreeSpace())).toBe("DISK_FULL");
  await engine.run("DROP TABLE app.t; CREATE USER ann WITH PASSWORD 'Correct-horse-9'");
  expect((await engine.rows(EVENTS)).slice(-2)).toEqual([
    ["root", "drop table", "app.t", "ok", null],
    ["root", "create user", "ann", "ok", "ann"],
  ]);
});

testThoroughly("refused statements do not displace changes", async () => {
  await using engine = await TestEngine.open();
  await engine.run("CREATE NAMESPACE app");
  const { audit } = auditOf(engine);
  const refused = { action: "drop table", actor: "ann", target: "app.t" };
  const outcomes = ["denied", "failed"] as const;
  await Promise.all(
    Array.from({ length: AUDIT_RING_EVENTS + 1 }, (_, i) =>
      audit.note({ ...refused, outcome: outcomes[i % 2] ?? "denied" }),
    ),
  );
  expect(audit.rows()[0]?.[3]).toBe("create namespace");
});

function auditOf({ database }: TestEngine): ConstructorParameters<typeof AuditLog>[0] & {
  audit: AuditLog;
} {
  const parts = { store: database.store, clock: systemClock, log: silentLog };
  return { ...parts, audit: new AuditLog(parts) };
}
