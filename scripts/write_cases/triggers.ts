/** Test cases for triggers: every timing, event and level, each with every outcome. */
import type { CaseFile } from "./answer.ts";

const READ = [
  "SELECT id, a, b, d FROM t ORDER BY id",
  "SELECT n, said FROM log ORDER BY n",
  "DELETE FROM log",
];

/**
 * Follows each of the statements with queries that read the rows, and the messages that triggers
 * have recorded.
 */
function fired(...statements: readonly string[]): string[] {
  return statements.flatMap((sql) => [sql].concat(READ));
}

function body(name: string, ...lines: readonly string[]): string {
  return `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${lines.join(" ")} END $$`;
}

const TIMINGS = ["BEFORE", "AFTER"] as const;
const EVENTS = ["INSERT", "UPDATE", "DELETE", "TRUNCATE"] as const;
const LEVELS = ["ROW", "STATEMENT"] as const;
const OUTCOMES = ["pass", "change", "skip", "fail"] as const;

const CHANGING: Readonly<Record<(typeof EVENTS)[number], string>> = {
  INSERT: "INSERT INTO t (id, a) VALUES (10, 100), (11, 110), (12, 120)",
  UPDATE: "UPDATE t SET a = a + 1 WHERE id < 4",
  DELETE: "DELETE FROM t WHERE id < 4",
  TRUNCATE: "TRUNCATE t",
};

/**
 * Returns statements for every combination of timing, event, level and outcome. Only one trigger
 * exists at a time.
 */
function combinations(): string[] {
  const statements: string[] = [];
  for (const timing of TIMINGS) {
    for (const event of EVENTS) {
      for (const level of LEVELS) {
        for (const outcome of OUTCOMES) {
          const called = event === "DELETE" && outcome === "pass" ? "pass_old" : outcome;
          statements.push(
            "DELETE FROM t",
            "INSERT INTO t (id, a) VALUES (1, 10), (2, 20), (3, 30), (4, 40)",
            `CREATE TRIGGER x ${timing} ${event} ON t FOR EACH ${level} EXECUTE FUNCTION ${called}('${outcome}')`,
            ...fired(CHANGING[event]),
            "DROP TRIGGER IF EXISTS x ON t",
          );
        }
      }
    }
  }
  return statements;
}

export const TRIGGERS: CaseFile = {
  name: "triggers",
  about: "triggers",
  statements: [
    "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL CHECK (a > 0), b TEXT DEFAULT 'none', d INT GENERATED ALWAYS AS (a * 2) STORED)",
    "CREATE TABLE log (n SERIAL PRIMARY KEY, said TEXT)",
    body(
      "pass",
      "INSERT INTO log (said) VALUES (concat_ws(' ', TG_NAME, TG_WHEN, TG_LEVEL, TG_OP, TG_TABLE_NAME, TG_NARGS, TG_ARGV[0], OLD.a, NEW.a, NEW.d));",
      "RETURN NEW;",
    ),
    body(
      "pass_old",
      "INSERT INTO log (said) VALUES (concat_ws(' ', TG_OP, OLD.a));",
      "RETURN OLD;",
    ),
    body(
      "change",
      "IF TG_LEVEL = 'ROW' AND TG_OP <> 'DELETE' THEN NEW.a := NEW.a * 3; NEW.b := TG_OP; RETURN NEW; END IF;",
      "RETURN OLD;",
    ),
    body(
      "skip",
      "IF TG_LEVEL = 'STATEMENT' OR (CASE WHEN TG_OP = 'DELETE' THEN OLD.id ELSE NEW.id END) % 2 = 1 THEN RETURN NULL; END IF;",
      "IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW;",
    ),
    body("fail", "RAISE EXCEPTION 'no';"),
    ...combinations(),
    "DELETE FROM t",
    "DELETE FROM log",
    // The following cases cover the order of triggers by name, WHEN, and UPDATE OF.
    body(
      "say",
      "INSERT INTO log (said) VALUES (TG_NAME || ' ' || TG_OP || coalesce(' ' || OLD.a, '') || coalesce(' ' || NEW.a, ''));",
      "RETURN coalesce(NEW, OLD);",
    ),
    "CREATE TRIGGER c BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION say()",
    "CREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION change()",
    "CREATE TRIGGER b BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.a > 10) EXECUTE FUNCTION say()",
    "CREATE TRIGGER u1 AFTER UPDATE OF a ON t FOR EACH ROW EXECUTE FUNCTION say()",
    "CREATE TRIGGER u2 AFTER UPDATE ON t FOR EACH ROW WHEN (OLD.a IS DISTINCT FROM NEW.a) EXECUTE FUNCTION say()",
    "CREATE TRIGGER u3 AFTER UPDATE ON t FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION say()",
    "CREATE TRIGGER s1 AFTER UPDATE OF b ON t EXECUTE FUNCTION say()",
    ...fired(
      "INSERT INTO t (id, a) VALUES (1, 1), (2, 5)",
      "UPDATE t SET b = 'x' WHERE id = 1",
      "UPDATE t SET b = 'x' WHERE id = 1",
      "UPDATE t SET a = a WHERE id = 1",
      "UPDATE t SET a = a + 1 WHERE id > 5",
      "UPDATE t SET a = a + 1, b = 'y'",
      "INSERT INTO t (id, a) VALUES (2, 1), (3, 4) ON CONFLICT (id) DO UPDATE SET a = excluded.a + 1",
      "INSERT INTO t (id, a) VALUES (2, 1), (4, 4) ON CONFLICT DO NOTHING",
      "MERGE INTO t USING (VALUES (1, 7), (5, 8), (2, 0)) s (id, a) ON t.id = s.id WHEN MATCHED AND s.a = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, s.a)",
      "WITH i AS (INSERT INTO t (id, a) VALUES (20, 1) RETURNING id, a) UPDATE t SET b = 'w' FROM i WHERE t.id = 1",
      "INSERT INTO t (id, a) VALUES (30, -1)",
      "INSERT INTO t (id, a) SELECT id + 40, a FROM t WHERE id < 3",
    ),
    "ALTER TABLE t DISABLE TRIGGER a",
    ...fired("INSERT INTO t (id, a) VALUES (60, 1)"),
    "ALTER TABLE t DISABLE TRIGGER ALL",
    ...fired("INSERT INTO t (id, a) VALUES (61, 1)"),
    "ALTER TABLE t ENABLE TRIGGER ALL",
    "ALTER TRIGGER c ON t RENAME TO a0",
    ...fired("INSERT INTO t (id, a) VALUES (62, 1)"),
    "ALTER TABLE t RENAME COLUMN a TO a2",
    "ALTER TABLE t RENAME COLUMN a2 TO a",
    ...fired("UPDATE t SET a = a + 1 WHERE id = 62"),
    "ALTER TABLE t DROP COLUMN b",
    "DROP FUNCTION say()",
    "SELECT trigger_name, event_manipulation, action_order, action_orientation, action_timing FROM information_schema.triggers ORDER BY 1, 2",
    "DROP TABLE t",
    "SELECT count(*) FROM information_schema.triggers",
    // Transition tables.
    "CREATE TABLE r (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE totals (what TEXT, rows INT, total INT)",
    body(
      "tell_new",
      "INSERT INTO totals SELECT TG_OP, count(*), sum(v) FROM newest;",
      "RETURN NULL;",
    ),
    body(
      "tell_old",
      "INSERT INTO totals SELECT TG_OP, count(*), sum(v) FROM former;",
      "RETURN NULL;",
    ),
    body(
      "tell_both",
      "INSERT INTO totals SELECT TG_OP, count(*), sum(n.v - o.v) FROM newest n JOIN former o USING (id);",
      "RETURN NULL;",
    ),
    "CREATE TRIGGER ri AFTER INSERT ON r REFERENCING NEW TABLE AS newest FOR EACH STATEMENT EXECUTE FUNCTION tell_new()",
    "CREATE TRIGGER rd AFTER DELETE ON r REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION tell_old()",
    "CREATE TRIGGER ru AFTER UPDATE ON r REFERENCING OLD TABLE AS former NEW TABLE AS newest FOR EACH STATEMENT EXECUTE FUNCTION tell_both()",
    "INSERT INTO r VALUES (1, 1), (2, 2), (3, 3)",
    "UPDATE r SET v = v * 10 WHERE id > 1",
    "DELETE FROM r WHERE id = 3",
    "INSERT INTO r SELECT 9, 9 WHERE false",
    "SELECT what, rows, total FROM totals",
    // The following cases cover foreign keys, recursion, and triggers that change their own table.
    "CREATE TABLE parent (id INT PRIMARY KEY, children INT DEFAULT 0)",
    "CREATE TABLE child (id INT PRIMARY KEY, p INT REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE)",
    body(
      "count_children",
      "IF TG_OP IN ('DELETE', 'UPDATE') THEN UPDATE parent SET children = children - 1 WHERE id = OLD.p; END IF;",
      "IF TG_OP IN ('INSERT', 'UPDATE') THEN UPDATE parent SET children = children + 1 WHERE id = NEW.p; END IF;",
      "RETURN NULL;",
    ),
    "CREATE TRIGGER counted AFTER INSERT OR UPDATE OR DELETE ON child FOR EACH ROW EXECUTE FUNCTION count_children()",
    body(
      "log_child",
      "INSERT INTO log (said) VALUES (concat_ws(' ', TG_OP, TG_WHEN, OLD.p, NEW.p));",
      "RETURN coalesce(NEW, OLD);",
    ),
    "CREATE TRIGGER logged BEFORE INSERT OR UPDATE OR DELETE ON child FOR EACH ROW EXECUTE FUNCTION log_child()",
    "INSERT INTO parent (id) VALUES (1), (2), (3)",
    "INSERT INTO child VALUES (1, 1), (2, 1), (3, 2), (4, 3)",
    "SELECT id, children FROM parent ORDER BY id",
    "UPDATE child SET p = 2 WHERE id = 1",
    "DELETE FROM child WHERE id = 3",
    "SELECT id, children FROM parent ORDER BY id",
    "DELETE FROM parent WHERE id = 3",
    "UPDATE parent SET id = 5 WHERE id = 2",
    "SELECT id, p FROM child ORDER BY id",
    "SELECT n, said FROM log ORDER BY n",
    "INSERT INTO child VALUES (9, 99)",
    "SELECT count(*) FROM child",
    "CREATE TABLE deep (n INT PRIMARY KEY)",
    body(
      "deeper",
      "IF NEW.n < 5 THEN INSERT INTO deep VALUES (NEW.n + 1); END IF;",
      "INSERT INTO log (said) VALUES (pg_trigger_depth()::text);",
      "RETURN NEW;",
    ),
    "DELETE FROM log",
    "CREATE TRIGGER d AFTER INSERT ON deep FOR EACH ROW EXECUTE FUNCTION deeper()",
    "INSERT INTO deep VALUES (1)",
    "SELECT n FROM deep ORDER BY n",
    "SELECT said FROM log ORDER BY said",
    "SELECT pg_trigger_depth()",
    // In the following cases, a row trigger sees the rows that its statement has changed so far.
    "CREATE TABLE few (id INT PRIMARY KEY)",
    body(
      "at_most_three",
      "IF (SELECT count(*) FROM few) >= 3 THEN RETURN NULL; END IF;",
      "RETURN NEW;",
    ),
    "CREATE TRIGGER most BEFORE INSERT ON few FOR EACH ROW EXECUTE FUNCTION at_most_three()",
    "INSERT INTO few SELECT n FROM generate_series(1, 10) AS s (n)",
    "SELECT id FROM few ORDER BY id",
    // In the following cases, a trigger changes the same row as its statement.
    "CREATE TABLE self (id INT PRIMARY KEY, v INT)",
    body(
      "touch_self",
      "UPDATE self SET v = v + 100 WHERE id = OLD.id;",
      "RETURN coalesce(NEW, OLD);",
    ),
    "INSERT INTO self VALUES (1, 1), (2, 2)",
    "CREATE TRIGGER touch BEFORE DELETE ON self FOR EACH ROW EXECUTE FUNCTION touch_self()",
    "DELETE FROM self WHERE id = 1",
    "SELECT id, v FROM self ORDER BY id",
    // Constraint triggers.
    "CREATE TABLE late (id INT PRIMARY KEY, ok BOOLEAN)",
    body(
      "must_be_ok",
      "IF NOT (SELECT ok FROM late WHERE id = NEW.id) THEN RAISE EXCEPTION 'not ok'; END IF;",
      "RETURN NULL;",
    ),
    "CREATE CONSTRAINT TRIGGER checked AFTER INSERT OR UPDATE ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION must_be_ok()",
    "INSERT INTO late VALUES (1, true)",
    "INSERT INTO late VALUES (2, false)",
    "SELECT id, ok FROM late ORDER BY id",
    // Refused definitions.
    "CREATE TRIGGER x AFTER INSERT ON late FOR EACH ROW EXECUTE FUNCTION nowhere()",
    "CREATE TRIGGER x INSTEAD OF INSERT ON late FOR EACH ROW EXECUTE FUNCTION must_be_ok()",
    "CREATE TRIGGER x BEFORE TRUNCATE ON late FOR EACH ROW EXECUTE FUNCTION must_be_ok()",
    "CREATE TRIGGER x AFTER INSERT ON late FOR EACH ROW WHEN (OLD.ok) EXECUTE FUNCTION must_be_ok()",
    "CREATE TRIGGER x AFTER DELETE ON late FOR EACH ROW WHEN (NEW.ok) EXECUTE FUNCTION must_be_ok()",
    "CREATE TRIGGER x AFTER UPDATE OF nothing ON late FOR EACH ROW EXECUTE FUNCTION must_be_ok()",
    "CREATE TRIGGER checked AFTER DELETE ON late FOR EACH ROW EXECUTE FUNCTION must_be_ok()",
    "CREATE TRIGGER x AFTER INSERT OR UPDATE ON late REFERENCING NEW TABLE AS n EXECUTE FUNCTION must_be_ok()",
    "CREATE TRIGGER x BEFORE INSERT ON late REFERENCING NEW TABLE AS n EXECUTE FUNCTION must_be_ok()",
    "DROP TRIGGER nothing ON late",
    "DROP TRIGGER IF EXISTS nothing ON late",
    "ALTER TABLE late DISABLE TRIGGER nothing",
  ],
};
