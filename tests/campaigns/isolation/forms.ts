/**
 * Lists statements that random queries do not include: oracles based on errors and keys, plans,
 * catalogs, names of other users, and definitions that take effect later. `{t}` represents a
 * table, `{o}` another user, and `{m}` that user's canary.
 */
import type { Chance } from "../../../scripts/support/chance.ts";

const SYSTEM: readonly string[] = [
  "users",
  "namespaces",
  "tables",
  "columns",
  "schemas",
  "storages",
  "jobs",
  "live",
  "connections",
  "queries",
  "segments",
  "manifest",
  "stats",
  "settings",
  "logs",
  "query_stats",
  "files",
  "audit_log",
  "my_account",
  "my_live",
  "my_connections",
  "my_files",
  "my_jobs",
];

const INFORMATION: readonly string[] = [
  "schemata",
  "tables",
  "columns",
  "views",
  "table_constraints",
  "key_column_usage",
  "check_constraints",
];

const FORMS: readonly string[] = [
  // These statements fail only if another owner's row is visible.
  "SELECT CASE WHEN EXISTS (SELECT 1 FROM {t} WHERE mark = '{m}') THEN 1 / 0 END",
  "SELECT CAST(mark AS INT) FROM {t} WHERE mark = '{m}'",
  "SELECT mark::int FROM {t} WHERE mark <> md5('{s}' || CURRENT_USER)",
  "SELECT (SELECT mark FROM {t} WHERE mark <> md5('{s}' || CURRENT_USER))",
  "SELECT 1 / (count(*) - count(*) FILTER (WHERE mark = '{m}')) FROM {t}",
  "SELECT mark::uuid, mark::date FROM {t} WHERE mark LIKE '{p}%'",
  // Each owner has separate keys, so these inserts conflict only with the owner's own rows.
  "INSERT INTO {t} (id) VALUES (1) ON CONFLICT (id) DO NOTHING RETURNING id, mark",
  "INSERT INTO {t} (id) SELECT id FROM generate_series(0, 40) g(id) ON CONFLICT DO NOTHING RETURNING mark",
  "INSERT INTO {t} (id, mark) VALUES (2, 'x') ON CONFLICT (id) DO UPDATE SET mark = {t}.mark RETURNING mark",
  "INSERT INTO {t} (id) VALUES (3)",
  "UPDATE {t} SET mark = mark WHERE mark = '{m}' RETURNING *",
  "UPDATE {t} AS a SET mark = b.mark FROM {t} b WHERE a.id = b.id AND b.mark <> a.mark RETURNING a.mark, b.mark",
  "DELETE FROM {t} WHERE mark = '{m}' RETURNING *",
  "DELETE FROM {t} USING {t} b WHERE b.mark = '{m}' RETURNING b.mark",
  // These statements read system columns and deleted rows.
  "SELECT *, _seq, _deleted FROM {t} WHERE _deleted = true",
  "SELECT * FROM {t} WHERE _deleted IS NOT NULL AND _seq > 0",
  "SELECT mark FROM {t} WHERE _seq BETWEEN 0 AND 9007199254740991 ORDER BY _seq DESC LIMIT 1000",
  "SELECT max(_seq), min(mark), string_agg(mark, ',') FROM {t}",
  // These statements write names in unusual ways.
  'SELECT mark FROM "default"."{t}"',
  "SELECT mark FROM DEFAULT.{t} AS {o}",
  "SELECT {o}.mark FROM {t} {o}",
  "SELECT mark FROM {o}.{t}",
  "SELECT * FROM {t}.{o}",
  "SELECT mark /* {o} */ FROM {t} -- as {o}",
  "SET search_path TO {o}; SELECT mark FROM {t}",
  "USE {o}; SELECT mark FROM {t}",
  "WITH {o} AS (SELECT * FROM {t}) SELECT mark FROM {o}",
  "TABLE {t}",
  "SELECT row_to_json(x) FROM {t} x",
  "SELECT jsonb_agg(mark) FROM {t}",
  // These statements use EXECUTE AS.
  "EXECUTE AS USER '{o}' (SELECT mark FROM {t})",
  "EXECUTE AS '{o}' (SELECT count(*), min(mark) FROM {t})",
  "EXECUTE AS USER '{o}' (EXECUTE AS USER '{o}' (SELECT mark FROM {t}))",
  "EXECUTE AS USER '{o}' (INSERT INTO {t} (id) VALUES (77) ON CONFLICT DO NOTHING RETURNING mark)",
  "BEGIN; EXECUTE AS USER '{o}' (SELECT mark FROM {t}); SELECT 1 / 0; COMMIT",
  "BEGIN; SELECT mark FROM {t}; EXECUTE AS USER 'root' (SELECT mark FROM {t}); ROLLBACK",
  "EXECUTE AS USER 'nobody' (SELECT mark FROM {t})",
  "EXECUTE AS USER '' (SELECT mark FROM {t})",
  "EXECUTE AS USER '{o}' (SELECT mark FROM {t}); SELECT mark FROM {t}",
  // These statements use EXPLAIN.
  "EXPLAIN SELECT * FROM {t} WHERE mark = 'x'",
  "EXPLAIN (ANALYZE, FORMAT JSON) SELECT mark FROM {t}",
  "EXPLAIN ANALYZE DELETE FROM {t} WHERE id = 5 RETURNING mark",
  // These statements use definitions that take effect later, or for other users.
  "SELECT * FROM peek",
  "SELECT n, m FROM counts",
  "SELECT * FROM peek p JOIN {t} x ON x.mark = p.mark",
  "CREATE VIEW spy AS SELECT mark FROM {t}",
  "CREATE VIEW spy AS SELECT mark, '{o}' AS who FROM {t}; SELECT * FROM spy; DROP VIEW spy",
  "ALTER TABLE {t} ADD COLUMN spy TEXT DEFAULT (SELECT max(mark) FROM {t})",
  "ALTER TABLE {t} ADD CONSTRAINT spy CHECK (mark <> '{m}')",
  "CREATE TABLE spy AS SELECT * FROM {t}",
  "DROP TABLE spy",
  // These statements use SHOW and DESCRIBE.
  "SHOW TABLES",
  "SHOW NAMESPACES",
  "SHOW STORAGES",
  "SHOW MANIFEST",
  "SHOW STATS FOR TABLE {t}",
  "SHOW ALL",
  "DESCRIBE {t}",
  "DESCRIBE {t} HISTORY",
  "SHOW COLUMNS FROM {t}",
  "SHOW STATS FOR TABLE vault",
  "STORAGE FLUSH TABLE {t}",
  "STORAGE COMPACT TABLE {t}",
  "SELECT * FROM vault",
  "SELECT count(*) FROM board b JOIN vault v ON TRUE",
  "SELECT EXISTS (SELECT 1 FROM vault)",
  "INSERT INTO board SELECT id + 100, mark FROM {t}",
  "UPDATE vault SET mark = 'x'",
  "SELECT b.mark FROM board b WHERE b.mark IN (SELECT mark FROM {t})",
  "SELECT * FROM feed",
  "SELECT mark, count(*) FROM feed GROUP BY mark",
  "INSERT INTO feed (k) VALUES ('x') RETURNING mark",
  "SELECT f.mark, x.mark FROM feed f FULL JOIN {t} x ON x.id = 1",
  "DELETE FROM feed WHERE mark = '{m}' RETURNING mark",
  "SUBSCRIBE TO {t} WHERE mark = '{m}'",
  "KILL QUERY '1'",
  "KILL LIVE QUERY '1'",
  "KILL JOB '1'",
  "SELECT * FROM changes('default.{t}', 0)",
  "SELECT * FROM {t} FOR SYSTEM_TIME AS OF 1",
  "SELECT * FROM {t} FOR SYSTEM_TIME AS OF NOW()",
  "SELECT f.mark, x.mark FROM feed f FULL JOIN {t} FOR SYSTEM_TIME AS OF NOW() x ON x.id = 1",
  "DROP USER {o}",
  "ALTER USER {o} SET ROLE dba",
  "ALTER USER {o} SET PASSWORD 'Correct-horse-1'",
  'ALTER NAMESPACE "default" OWNER TO CURRENT_USER',
  ...SYSTEM.map((name) => `SELECT * FROM system.${name}`),
  ...INFORMATION.map((name) => `SELECT * FROM information_schema.${name}`),
  "SELECT u.user_id, t.mark FROM system.users u LEFT JOIN {t} t ON TRUE",
  "SELECT sql FROM system.queries WHERE user_id <> CURRENT_USER",
  "SELECT * FROM system.query_stats WHERE sql LIKE '%{p}%'",
];

/**
 * Matches statements of a service or a dba that would permanently make the two databases differ.
 */
const LASTING = /^(?:DROP|ALTER) USER|ADD CONSTRAINT|^ALTER NAMESPACE/;

export interface FormParts {
  readonly table: string;
  readonly other: string;
  readonly canary: string;
  readonly salt: string;
  /** Whether the caller has only an ordinary user's rights. */
  readonly isUser: boolean;
}

const HARMLESS = FORMS.filter((form) => !LASTING.test(form));

/** Returns a random form with its placeholders filled in. */
export function formOf(chance: Chance, { canary, isUser, other, salt, table }: FormParts): string {
  return chance
    .pick(isUser ? FORMS : HARMLESS)
    .replaceAll("{t}", table)
    .replaceAll("{o}", other)
    .replaceAll("{m}", canary)
    .replaceAll("{p}", canary.slice(0, 6))
    .replaceAll("{s}", salt);
}
