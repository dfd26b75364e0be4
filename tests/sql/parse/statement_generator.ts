/**
 * Generates random statements as text, following the grammar in docs/reference/statements.md.
 *
 * There are three dialects, each a subset of the next: the statements that pgsql-ast-parser reads
 * correctly, the statements that PostgreSQL reads, and all statements of Tidemark.
 */
import type { SeededRandom } from "../../support/seeded_random.ts";

export type Dialect = "library" | "postgres" | "tidemark";

const COLUMNS = ["a", "b", "c", "id", "name", '"Mixed Case"', "created_at", "n1", "x_y"];
const TABLES = ["t", "u", "app.notes", "orders", '"Tab"', "public.items"];
const NAMES = ["k", "v", "alias1", "z"];
const TYPES = ["int", "bigint", "text", "varchar(3)", "numeric(10, 2)", "boolean", "date", "uuid"];
const FUNCTIONS = ["lower", "coalesce", "f", "greatest", "app.g", "nullif", "concat"];
const ARITHMETIC = ["+", "-", "*", "/", "%", "||"];
const COMPARISONS = ["=", "<", ">", "<=", ">=", "<>", "!="];
const POSTGRES_OPERATORS = ["->", "->>", "#>", "@>", "<@", "&&", "~", "~*", "!~", "&", "|", "<<"];
const MORE_OPERATORS = ["<->", "<=>", "<#>", "^@", "?", "?|", "#-", "^"];

export class StatementGenerator {
  readonly #random: SeededRandom;
  readonly #dialect: Dialect;
  #depth = 0;

  constructor(random: SeededRandom, dialect: Dialect) {
    this.#random = random;
    this.#dialect = dialect;
  }

  statement(): string {
    const kinds = [
      () => this.query(),
      () => this.query(),
      () => this.insert(),
      () => this.update(),
      () => this.delete(),
      () => this.merge(),
      () => this.createTable(),
      () => this.alterTable(),
      () => this.small(),
    ];
    if (this.#dialect === "tidemark") kinds.push(() => this.own());
    return this.#random.pick(kinds)();
  }

  expression(): string {
    return this.#nested(() => this.#expression());
  }

  /**
   * Returns an expression without parentheses, so that operator precedence determines the tree.
   */
  flatExpression(): string {
    const { pick, chance } = this.#tools();
    const operand = (): string =>
      (chance(0.15) ? "-" : "") + pick([...COLUMNS, "1", "2.5", "'s'", "f(a)", "b::int"]);
    const joint = (): string =>
      pick([
        ...ARITHMETIC,
        ...POSTGRES_OPERATORS,
        "^",
        "AND",
        "OR",
        "AND NOT",
        "OR NOT",
        "IS NOT NULL AND",
        "IS DISTINCT FROM",
        "LIKE",
        "AT TIME ZONE",
        "=",
        "<",
        "!=",
        "BETWEEN 1 AND",
        "NOT BETWEEN a AND",
        "IN (1, 2) OR",
        'COLLATE "C" ||',
      ]);
    let text = chance(0.2) ? `NOT ${operand()}` : operand();
    for (let count = this.#random.between(1, 5); count > 0; count--) {
      text += ` ${joint()} ${operand()}`;
    }
    return text;
  }

  query(): string {
    return this.#nested(() => {
      const { chance, maybe } = this.#tools();
      const recursive = this.#dialect === "library" ? 0 : 0.3;
      const hasWith = chance(0.1);
      const binding = this.#dialect === "library" || chance(0.5) ? "w" : "w (c1, c2)";
      const hint = this.#dialect === "library" || chance(0.6) ? "" : "NOT MATERIALIZED ";
      const prefix = hasWith
        ? `WITH ${maybe(recursive, "RECURSIVE ")}${binding} AS ${hint}(${this.#block()})${this.#walk()} `
        : "";
      return `${prefix}${this.#body()}`;
    });
  }

  #walk(): string {
    const { chance, pick } = this.#tools();
    if (this.#dialect === "library" || chance(0.8)) return "";
    return pick([
      " SEARCH DEPTH FIRST BY a, b SET o",
      " SEARCH BREADTH FIRST BY a SET o CYCLE a, b SET c USING p",
      " CYCLE a SET c TO 'x' DEFAULT 'y' USING p",
    ]);
  }

  insert(): string {
    const { pick, maybe } = this.#tools();
    const source = pick([
      () => `VALUES ${this.#rows()}`,
      () => `VALUES ${this.#rows()}`,
      () => this.query(),
      () => (this.#dialect === "library" ? "VALUES (1)" : "DEFAULT VALUES"),
    ])();
    const isQuery = source.startsWith("SELECT") || source.startsWith("WITH");
    const conflict = pick([
      "",
      "",
      " ON CONFLICT DO NOTHING",
      " ON CONFLICT (a) DO NOTHING",
      ` ON CONFLICT (a) DO UPDATE SET ${this.#sets()}`,
      ` ON CONFLICT (a, b) DO UPDATE SET b = excluded.b WHERE ${this.expression()}`,
      " ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING",
    ]);
    // PostgreSQL does not accept a column list before DEFAULT VALUES.
    const filled = this.#dialect === "library" ? "a, b" : pick(["a, b", `a[1], ${this.#part()}`]);
    const columns = source === "DEFAULT VALUES" ? "" : maybe(0.6, ` (${filled})`);
    const target = `${pick(TABLES)}${maybe(0.3, " AS k")}${columns}`;
    const tail = `${isQuery ? "" : conflict}${this.#returning()}`;
    return `INSERT INTO ${target} ${source}${tail}`;
  }

  update(): string {
    const { pick, chance, maybe } = this.#tools();
    const from = chance(0.2) ? ` FROM ${this.#source()}` : "";
    const where = chance(0.7) ? ` WHERE ${this.expression()}` : "";
    const target = `${pick(TABLES)}${maybe(0.3, " AS k")}`;
    return `UPDATE ${target} SET ${this.#sets()}${from}${where}${this.#returning()}`;
  }

  delete(): string {
    const { pick, chance, maybe } = this.#tools();
    const using = this.#dialect !== "library" && chance(0.2) ? ` USING ${this.#source()}` : "";
    const where = chance(0.7) ? ` WHERE ${this.expression()}` : "";
    const target = `${pick(TABLES)}${maybe(0.3, " AS k")}`;
    return `DELETE FROM ${target}${using}${where}${this.#returning()}`;
  }

  merge(): string {
    if (this.#dialect === "library") return this.delete();
    const { pick, maybe } = this.#tools();
    const insert = pick([
      "INSERT DEFAULT VALUES",
      "INSERT (a) VALUES (1)",
      `INSERT (${this.#part()}) VALUES (1)`,
      `INSERT (a, b) VALUES (DEFAULT, ${this.expression()})`,
    ]);
    const clauses = [
      `WHEN MATCHED AND ${this.expression()} THEN UPDATE SET ${this.#sets()}`,
      `WHEN MATCHED THEN ${pick(["DELETE", "DO NOTHING"])}`,
      `WHEN NOT MATCHED${maybe(0.5, ` AND ${this.expression()}`)} THEN ${insert}`,
    ];
    const returning = this.#dialect === "postgres" ? "" : this.#returning();
    const target = `${pick(TABLES)}${maybe(0.3, " AS k")}`;
    const head = `MERGE INTO ${target} USING ${this.#source()} ON ${this.expression()}`;
    return `${head} ${clauses.join(" ")}${returning}`;
  }

  createTable(): string {
    const { pick, chance, maybe } = this.#tools();
    const columns = Array.from({ length: this.#random.between(1, 4) }, (_, index) => {
      const constraints = Array.from({ length: this.#random.below(3) }, () =>
        pick([
          " NOT NULL",
          " NULL",
          " PRIMARY KEY",
          ` DEFAULT ${pick(["1", "now()", "'x'", "(a + 1)"])}`,
          ` CHECK (${this.expression()})`,
          " CONSTRAINT k NOT NULL",
        ]),
      );
      return `c${index} ${pick(TYPES)}${constraints.join("")}`;
    });
    if (chance(0.3)) columns.push("PRIMARY KEY (c0, c1)");
    if (this.#dialect !== "library" && chance(0.3)) {
      columns.push(`UNIQUE ${pick(["", "NULLS DISTINCT ", "NULLS NOT DISTINCT "])}(c0)`);
    }
    if (chance(0.3)) columns.push(`CONSTRAINT k CHECK (${this.expression()})`);
    const isOwn = this.#dialect === "tidemark";
    const kind = isOwn ? pick(["", "USER ", "SHARED ", "STREAM "]) : "";
    const options = isOwn && chance(0.5) ? " WITH (TYPE = 'USER', TTL_SECONDS = 5, x = word)" : "";
    const head = `CREATE ${kind}TABLE ${maybe(0.3, "IF NOT EXISTS ")}${pick(TABLES)}`;
    return `${head} (${columns.join(", ")})${options}`;
  }

  alterTable(): string {
    const { pick } = this.#tools();
    const actions = [
      `ADD COLUMN x ${pick(TYPES)} NOT NULL DEFAULT 1`,
      `ADD COLUMN IF NOT EXISTS y ${pick(TYPES)}`,
      "DROP COLUMN x",
      "DROP COLUMN IF EXISTS x CASCADE",
      "ALTER COLUMN a SET NOT NULL",
      "ALTER a DROP NOT NULL",
      "ALTER COLUMN a SET DEFAULT 1",
      "ALTER COLUMN a DROP DEFAULT",
      `ALTER COLUMN a TYPE ${pick(TYPES)}`,
      `ALTER COLUMN a SET DATA TYPE ${pick(TYPES)}`,
      `ADD CONSTRAINT k CHECK (${this.expression()})`,
      "DROP CONSTRAINT IF EXISTS k",
    ];
    if (this.#dialect !== "library") {
      actions.push(
        `ADD CONSTRAINT k EXCLUDE USING gist (a WITH =, (${this.expression()}) WITH &&) WHERE (${this.expression()})`,
        "ADD EXCLUDE USING gist (int4range(a, b) WITH &&) NOT DEFERRABLE",
      );
    }
    if (this.#dialect === "tidemark") {
      actions.push("MODIFY a BIGINT NOT NULL", "SET (flush_policy = 'rows:1')", "RESET (a, b)");
      actions.push("SET ACCESS LEVEL public", "SET TBLPROPERTIES (x = 1)", "RENAME a TO b");
    }
    const list = Array.from({ length: this.#random.between(1, 3) }, () => pick(actions));
    return `ALTER TABLE ${pick(TABLES)} ${list.join(", ")}`;
  }

  /** Returns short statements. */
  small(): string {
    const { pick } = this.#tools();
    const table = pick(TABLES);
    return pick([
      `DROP TABLE ${table}`,
      `DROP TABLE IF EXISTS ${table}, u CASCADE`,
      `CREATE VIEW ${table} AS ${this.query()}`,
      `CREATE OR REPLACE VIEW ${table} (a) WITH (security_barrier = TRUE) AS ${this.query()}`,
      `CREATE OR REPLACE VIEW ${table} (a, b) AS ${this.query()}`,
      "BEGIN",
      "COMMIT",
      "ROLLBACK",
      "BEGIN ISOLATION LEVEL REPEATABLE READ",
      "SHOW x",
      "SET x = 1",
      "SET x TO 'y'",
      "SET x = DEFAULT",
      "SET LOCAL x = y",
      `ALTER TABLE ${table} RENAME COLUMN a TO b`,
      ...(this.#dialect === "library" ? [] : this.#partitions(table)),
      "CREATE SCHEMA IF NOT EXISTS n",
    ]);
  }

  /** Returns random definitions of partitions. */
  #partitions(table: string): string[] {
    return [
      `CREATE TABLE ${table} (a INT, b TEXT) PARTITION BY RANGE (a, (lower(b)) COLLATE n.c, b COLLATE d)`,
      `CREATE TABLE ${table} PARTITION OF u DEFAULT PARTITION BY LIST (a) WITH (x = 1)`,
      `CREATE TABLE ${table} PARTITION OF u FOR VALUES IN (1, NULL, 'x')`,
      `ALTER TABLE ${table} ATTACH PARTITION u FOR VALUES FROM (1, MINVALUE) TO (2, MAXVALUE)`,
      `ALTER TABLE IF EXISTS ${table} DETACH PARTITION n.u`,
      `CREATE TABLE ${table} PARTITION OF u FOR VALUES WITH (MODULUS 4, REMAINDER 3)`,
    ];
  }

  /** Returns a statement that PostgreSQL does not support. */
  own(): string {
    const { pick } = this.#tools();
    const table = pick(TABLES);
    return pick([
      "CREATE NAMESPACE IF NOT EXISTS n AUTHORIZATION 'alice'",
      "ALTER NAMESPACE n SET OPTIONS (a = 1, b = 'x', c = TRUE)",
      "ALTER NAMESPACE n OWNER TO bob",
      `COMMENT ON TABLE ${table} IS 'it''s'`,
      "COMMENT ON COLUMN n.t.c IS NULL",
      "COMMENT ON CONSTRAINT \"K\" ON n.t IS ''",
      "COMMENT ON SCHEMA default IS 'x'",
      "COMMENT ON INDEX n.i IS 'x'",
      `ALTER TABLE ${table} RENAME TO "T 2", RENAME CONSTRAINT a TO b`,
      'ALTER INDEX IF EXISTS n.i RENAME TO "J"',
      "ALTER INDEX n.i ATTACH PARTITION m.j",
      "CREATE INDEX i ON ONLY n.t (a)",
      "CREATE TABLE p PARTITION OF n.t (a DEFAULT 1 NOT NULL, UNIQUE (a), CHECK (a > 0)) DEFAULT",
      "ALTER TABLE ONLY n.t ADD CONSTRAINT k UNIQUE (a)",
      `CREATE TABLE n.t (LIKE ${table} INCLUDING ALL, a INT, LIKE u EXCLUDING IDENTITY, CHECK (a > 0))`,
      `ALTER TABLE ${table} OWNER TO "B"`,
      "ALTER VIEW IF EXISTS n.v OWNER TO CURRENT_USER",
      "ALTER VIEW IF EXISTS n.v RENAME TO w",
      "ALTER VIEW n.v SET (security_invoker = FALSE, access_level = 'PUBLIC')",
      "ALTER VIEW n.v RESET (security_invoker, access_level)",
      "CREATE DOMAIN n.d AS NUMERIC(5, 2) DEFAULT 1 NOT NULL CONSTRAINT k CHECK (VALUE > 0) CHECK (VALUE < 9)",
      'CREATE DOMAIN n.d AS TEXT COLLATE "sv-x-icu" NOT NULL',
      'CREATE COLLATION IF NOT EXISTS n.c FROM "C"',
      "CREATE COLLATION c (provider = icu, locale = 'de-u-co-phonebk', deterministic = FALSE)",
      "ALTER COLLATION n.c RENAME TO d",
      "ALTER COLLATION n.c REFRESH VERSION",
      "DROP COLLATION IF EXISTS n.c, d CASCADE",
      "ALTER DOMAIN d SET DEFAULT 2",
      "ALTER DOMAIN d DROP NOT NULL",
      "ALTER DOMAIN n.d ADD CONSTRAINT k CHECK (VALUE > 0)",
      "ALTER DOMAIN d DROP CONSTRAINT IF EXISTS k",
      "ALTER DOMAIN d RENAME CONSTRAINT k TO l",
      "ALTER DOMAIN d RENAME TO e",
      "DROP DOMAIN IF EXISTS d, n.e CASCADE",
      "DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT 1",
      "DECLARE c NO SCROLL CURSOR FOR VALUES (1), (2)",
      "DECLARE c CURSOR FOR SELECT a FROM t FOR UPDATE OF t NOWAIT",
      "FETCH BACKWARD ALL FROM c",
      "FETCH ABSOLUTE -2 FROM c",
      "MOVE RELATIVE 3 FROM c",
      "CLOSE ALL",
      "ALTER SEQUENCE n.s OWNER TO bob",
      'CREATE EXTENSION IF NOT EXISTS "uuid-ossp" WITH SCHEMA public',
      "DROP NAMESPACE IF EXISTS n CASCADE",
      "USE NAMESPACE app",
      "CREATE USER u WITH PASSWORD 'p''q' ROLE dba EMAIL 'e@x'",
      "ALTER USER CURRENT_USER SET PASSWORD 'p'",
      "DROP USER IF EXISTS u PURGE",
      `EXECUTE AS USER 'u' (${this.query()})`,
      `EXECUTE AS 'u' (${this.delete()})`,
      `EXPLAIN ANALYZE VERBOSE ${this.query()}`,
      `EXPLAIN (FORMAT JSON, ANALYZE) ${this.query()}`,
      `EXPLAIN EXECUTE AS USER 'u' (${this.query()})`,
      "SHOW TABLES IN app",
      `SHOW COLUMNS FROM ${table}`,
      `SHOW STATS FOR TABLE ${table}`,
      "SHOW ALL",
      "SHOW limits.max_sql_bytes",
      "PREPARE p (int, text) AS SELECT $1, $2",
      "EXECUTE p (-1, 'a'::text, NULL)",
      "EXECUTE p",
      "CREATE TABLE t AS EXECUTE p",
      "CREATE TEMPORARY TABLE t (a, b) AS EXECUTE p (1) WITH NO DATA",
      "DEALLOCATE PREPARE p",
      "DEALLOCATE ALL",
      `DESCRIBE ${table} HISTORY`,
      "SET TIME ZONE 'UTC'",
      "BEGIN ISOLATION LEVEL SNAPSHOT, READ ONLY",
      "START TRANSACTION READ WRITE",
      "SAVEPOINT a",
      "RELEASE SAVEPOINT a",
      "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE",
      "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
      `TRUNCATE ${table}`,
      `TRUNCATE TABLE ${table}, u RESTART IDENTITY CASCADE`,
      `SELECT a FROM ${table} ORDER BY a LIMIT 1 FOR UPDATE SKIP LOCKED`,
      `SELECT a FROM ${table} AS x, u FOR NO KEY UPDATE OF x, u NOWAIT`,
      `SELECT * FROM ${table} FOR KEY SHARE`,
      "ROLLBACK WORK TO SAVEPOINT a",
      "CREATE STORAGE s TYPE filesystem NAME 'n' PATH '/p'",
      "ALTER STORAGE s SET NAME 'x' SET DESCRIPTION 'y'",
      "DROP STORAGE IF EXISTS s",
      "CREATE TOPIC IF NOT EXISTS app.q PARTITIONS 4 WITH (RETENTION_HOURS = 2, DEAD_LETTER = 'app.d')",
      `ALTER TOPIC q ADD SOURCE ${table} ON UPDATE WHERE ${this.expression()} WITH (payload = 'diff')`,
      `ALTER TOPIC q ADD SOURCE ${table} ON INSERT`,
      `ALTER TOPIC q DROP SOURCE ${table} ON DELETE`,
      "ALTER TOPIC app.q SET (MAX_DELIVERIES = 3)",
      "CLEAR TOPIC app.q",
      "DROP TOPIC IF EXISTS app.q",
      "CONSUME FROM app.q PARTITION 1 GROUP 'g' FROM EARLIEST LIMIT 10 NO ACK",
      "CONSUME FROM q FROM 7",
      "ACK app.q GROUP 'g' PARTITION 2 UPTO OFFSET 41",
      "ACK q GROUP 'it''s' OFFSETS (3, 7)",
      "SHOW TOPICS IN app",
      "DESCRIBE TOPIC app.q",
      "KILL CONSUMER 'c'",
      "STORAGE CHECK s EXTENDED",
      `STORAGE FLUSH TABLE ${table}`,
      "STORAGE COMPACT ALL IN app",
      "KILL LIVE QUERY 'q'",
      `SUBSCRIBE TO ${table} WHERE ${this.expression()} OPTIONS (last_rows = 5)`,
      `SUBSCRIBE TO SELECT a FROM ${table} OPTIONS (from_seq_id = 7)`,
      "BACKUP DATABASE TO 'd'",
      "EXPORT USER DATA",
      "SHOW EXPORT",
      "RESTORE DATABASE FROM 'd' TO SEQ 123456789012345678",
      `DROP VIEW IF EXISTS ${table} RESTRICT`,
    ]);
  }

  #tools(): {
    readonly pick: <T>(items: readonly T[]) => T;
    readonly chance: (probability: number) => boolean;
    readonly maybe: (probability: number, text: string) => string;
  } {
    return {
      pick: (items) => this.#random.pick(items),
      chance: (probability) => this.#random.chance(probability),
      maybe: (probability, text) => (this.#random.chance(probability) ? text : ""),
    };
  }

  #nested(make: () => string): string {
    this.#depth += 1;
    const text = make();
    this.#depth -= 1;
    return text;
  }

  get #isDeep(): boolean {
    return this.#depth > 4;
  }

  #literal(): string {
    const common = ["1", "42", "0", "3.5", ".5", "'text'", "'it''s'", "TRUE", "FALSE", "NULL"];
    const postgres = ["1e3", "$1", "E'a\\nb'", "$$dollar$$", "DATE '2025-01-01'", "1_000", "0xff"];
    const own = ["INTERVAL '1' DAY", "TIMESTAMP(3) '2025-01-01'", "9223372036854775807"];
    switch (this.#dialect) {
      case "library":
        return this.#random.pick([...common, "$1", "DATE '2025-01-01'"]);
      case "postgres":
        return this.#random.pick([...common, ...postgres]);
      default:
        return this.#random.pick([...common, ...postgres, ...own, "X'0aff'"]);
    }
  }

  #leaf(): string {
    const { pick } = this.#tools();
    return pick([
      () => this.#literal(),
      () => this.#literal(),
      () => pick(COLUMNS),
      () => `${pick(["t", "u"])}.${pick(COLUMNS)}`,
      () => pick(["CURRENT_USER", "CURRENT_DATE", "now()", "count(*)"]),
    ])();
  }

  #expression(): string {
    if (this.#isDeep) return this.#leaf();
    const { pick } = this.#tools();
    const common = [
      () => this.#leaf(),
      () => this.#leaf(),
      () => `(${this.expression()} ${pick(ARITHMETIC)} ${this.expression()})`,
      () => `(${this.expression()} ${pick(COMPARISONS)} ${this.expression()})`,
      () => `(${this.expression()} AND ${this.expression()} AND ${this.expression()})`,
      () => `(${this.expression()} OR ${this.expression()})`,
      () => `(NOT (${this.expression()}))`,
      () => `(${this.#leaf()} IS NULL)`,
      () => `(${this.#leaf()} IS NOT TRUE)`,
      () => `(${this.#leaf()} BETWEEN ${this.#leaf()} AND ${this.#leaf()})`,
      () => `(${this.#leaf()} NOT IN (${this.expression()}, ${this.expression()}))`,
      () => `(${this.#leaf()} IN (${this.query()}))`,
      () => `(${this.#leaf()} LIKE ${this.#leaf()})`,
      () => `${pick(FUNCTIONS)}(${this.expression()}, ${this.expression()})`,
      () => `CAST(${this.expression()} AS ${pick(TYPES)})`,
      () => `(${this.expression()})::${pick(TYPES)}`,
      () => `CASE WHEN ${this.expression()} THEN ${this.expression()} ELSE 1 END`,
      () => `CASE ${this.#leaf()} WHEN 1 THEN ${this.expression()} END`,
      () => `EXISTS (${this.query()})`,
      () => `(${this.query()})`,
      () => `(${this.#leaf()} = ANY (ARRAY[${this.expression()}, 2]))`,
      () => `sum(DISTINCT ${this.expression()}) FILTER (WHERE ${this.expression()})`,
      () => `rank() OVER (PARTITION BY ${this.#leaf()} ORDER BY ${this.#leaf()} DESC)`,
      () => `EXTRACT(year FROM ${this.expression()})`,
      () => `substring(${this.#leaf()} FROM 1 FOR 2)`,
    ];
    if (this.#dialect === "library") return pick(common)();
    return pick([...common, ...this.#postgresForms(), ...this.#ownForms()])();
  }

  #postgresForms(): (() => string)[] {
    const { pick } = this.#tools();
    return [
      () => `(f(${this.expression()}))${pick([".c", '."C"', "[1].c", ".c[1]"])}`,
      () => `(${this.expression()} ${pick(POSTGRES_OPERATORS)} ${this.expression()})`,
      () => `(${this.#leaf()} ${pick(MORE_OPERATORS)} ${this.#leaf()})`,
      () => `(${this.#leaf()} IS DISTINCT FROM ${this.expression()})`,
      () => `(${this.#leaf()} SIMILAR TO 'x' ESCAPE '!')`,
      () => `(${this.#leaf()} ILIKE ${this.#leaf()} ESCAPE '!')`,
      () => `(${this.#leaf()} BETWEEN SYMMETRIC 1 AND ${this.expression()})`,
      () => `(${this.#leaf()} AT TIME ZONE 'UTC')`,
      () => `((a, b) IN ((1, 2), (${this.expression()}, 4)))`,
      () => `(ROW(1, ${this.expression()}) < (2, 3))`,
      () => `(${this.#leaf()} >= ALL (${this.query()}))`,
      () => `(ARRAY[1, 2])[${this.#leaf()}]`,
      () => "b[1:2]",
      () => `ARRAY(${this.query()})`,
      () => `trim(BOTH 'x' FROM ${this.#leaf()})`,
      () => `overlay(${this.#leaf()} PLACING 'x' FROM 1 FOR 2)`,
      () => `position('x' IN ${this.#leaf()})`,
      () => "sum(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES)",
      () => "sum(a) OVER w",
      () => "string_agg(DISTINCT a, ',' ORDER BY a DESC NULLS LAST)",
      () => "percentile_cont(0.5) WITHIN GROUP (ORDER BY a)",
      () => `f(a => ${this.expression()})`,
      () => `concat(1, VARIADIC ${this.#leaf()})`,
      () => "(- a)",
      () => `(@ ${this.#leaf()})`,
      () => `(${this.#leaf()} COLLATE "C")`,
      () => "((a, b) OVERLAPS (c, d))",
      () => `(${this.#leaf()} ISNULL)`,
    ];
  }

  #ownForms(): (() => string)[] {
    if (this.#dialect !== "tidemark") return [];
    return [
      () => "FILE('part')",
      () => "CURRENT_USER()",
      () => "normalize(a, NFC)",
      () => `XMLELEMENT(NAME a, XMLATTRIBUTES(b, ${this.#leaf()} AS c), ${this.expression()})`,
      () => `XMLFOREST(${this.expression()} AS a, b)`,
      () => `XMLEXISTS(${this.#leaf()} PASSING ${this.#leaf()})`,
      () => `XMLROOT(XMLPARSE(CONTENT ${this.#leaf()}), VERSION NO VALUE, STANDALONE YES)`,
      () => `XMLSERIALIZE(DOCUMENT ${this.#leaf()} AS TEXT)`,
      () => `(${this.#leaf()} IS NOT DOCUMENT)`,
      () => "CURRENT_TIMESTAMP(3)",
    ];
  }

  #items(): string {
    const { pick, chance } = this.#tools();
    return Array.from({ length: this.#random.between(1, 3) }, () => {
      if (chance(0.1)) return "*";
      if (chance(0.1)) return "t.*";
      return `${this.expression()}${pick(["", "", " AS k", " alias1"])}`;
    }).join(", ");
  }

  #source(): string {
    const { pick } = this.#tools();
    const alias = pick(NAMES);
    const common = [
      () => pick(TABLES),
      () => `${pick(TABLES)} ${alias}`,
      () => `${pick(TABLES)} AS ${alias}`,
      () => `(${this.query()}) AS ${alias}`,
      () => `LATERAL (${this.query()}) ${alias}`,
      () => `generate_series(1, 3) AS ${alias}(x)`,
    ];
    if (this.#dialect === "library") return pick(common)();
    const postgres = [
      () => `(${this.query()}) AS ${alias} (x, y)`,
      () => `unnest(a) WITH ORDINALITY AS ${alias} (x, n)`,
      () => `jsonb_to_recordset(a) AS ${alias} (x int, y text)`,
      () => `(${pick(TABLES)} k1 JOIN ${pick(TABLES)} k2 ON TRUE)`,
    ];
    if (this.#dialect === "tidemark") {
      postgres.push(
        () => "t FOR SYSTEM_TIME AS OF 5 AS k",
        () => "t AS k TABLESAMPLE BERNOULLI (a + 1) REPEATABLE (2)",
        () => "t TABLESAMPLE SYSTEM (10)",
      );
    }
    return pick([...common, ...postgres])();
  }

  #from(): string {
    const { pick, chance } = this.#tools();
    let text = this.#source();
    while (chance(0.35)) {
      const joins = [
        () => `, ${this.#source()}`,
        () => ` JOIN ${this.#source()} ON ${this.expression()}`,
        () => ` LEFT JOIN ${this.#source()} USING (a, b)`,
        () => ` FULL OUTER JOIN ${this.#source()} ON ${this.expression()}`,
        () => ` CROSS JOIN ${pick(TABLES)}`,
      ];
      if (this.#dialect !== "library") {
        joins.push(() => ` NATURAL RIGHT JOIN ${pick(TABLES)}`);
        joins.push(() => " JOIN t k3 JOIN u k4 ON a = b ON c = d");
      }
      text += pick(joins)();
    }
    return text;
  }

  #block(): string {
    const { chance, pick } = this.#tools();
    const isPlain = this.#isDeep || chance(0.3);
    const distinct = pick(["", "", "", "DISTINCT ", "ALL ", "DISTINCT ON (a) "]);
    let text = `SELECT ${isPlain ? "" : distinct}${this.#items()}`;
    if (isPlain && chance(0.5)) return text;
    text += ` FROM ${this.#isDeep ? "t" : this.#from()}`;
    if (chance(0.5)) text += ` WHERE ${this.expression()}`;
    if (isPlain) return text;
    if (chance(0.2)) text += ` GROUP BY ${this.#groups()}`;
    if (chance(0.1)) text += ` HAVING ${this.expression()}`;
    if (this.#dialect !== "library" && chance(0.1)) {
      text += " WINDOW w AS (PARTITION BY a ORDER BY b), w2 AS (w ORDER BY c)";
    }
    return text;
  }

  #groups(): string {
    const { pick } = this.#tools();
    const common = [() => this.expression(), () => "1"];
    if (this.#dialect === "library") return pick(common)();
    return pick([
      ...common,
      () => "ROLLUP (a, b)",
      () => "CUBE (a, (b, c))",
      () => "GROUPING SETS ((a), (b, c), ())",
      () => "a, ROLLUP (b), ()",
    ])();
  }

  #body(): string {
    const { pick, chance } = this.#tools();
    if (chance(0.12) && !this.#isDeep) {
      const operators = ["UNION", "UNION ALL"];
      if (this.#dialect !== "library") operators.push("INTERSECT", "EXCEPT ALL");
      const left = `${this.#block()} ${pick(operators)} ${this.#block()}`;
      if (this.#dialect === "library") return left;
      const right = chance(0.4) ? ` ${pick(operators)} (${this.query()})` : "";
      return `${left}${right}${this.#tail()}`;
    }
    if (chance(0.05)) return `VALUES ${this.#rows()}`;
    return `${this.#block()}${this.#tail()}`;
  }

  #tail(): string {
    const { pick, chance } = this.#tools();
    let text = "";
    if (chance(0.2)) {
      text += ` ORDER BY ${this.expression()}${pick(["", " ASC", " DESC", " DESC NULLS LAST"])}`;
    }
    if (chance(0.1)) text += pick([" LIMIT 5", " LIMIT 5 OFFSET 2", " OFFSET 3", " LIMIT $1"]);
    else if (this.#dialect !== "library" && chance(0.05)) {
      text += " ORDER BY 1 OFFSET 1 ROW FETCH FIRST 2 ROWS WITH TIES".slice(text === "" ? 0 : 11);
    }
    return text;
  }

  #rows(): string {
    const width = this.#random.between(1, 3);
    return Array.from({ length: this.#random.between(1, 3) }, () => {
      const cells = Array.from({ length: width }, () => this.#literal());
      return `(${cells.join(", ")})`;
    }).join(", ");
  }

  #sets(): string {
    const { pick } = this.#tools();
    const common = [
      () => `a = ${this.expression()}`,
      () => `a = ${this.expression()}, b = DEFAULT`,
      () => `(a, b) = (${this.expression()}, 2)`,
    ];
    if (this.#dialect === "library") return pick(common)();
    return pick([
      ...common,
      () => `(a, b) = (${this.query()})`,
      () => `${this.#part()} = ${this.expression()}`,
      () => `(${this.#part()}, b) = (${this.query()})`,
    ])();
  }

  /** Returns the name of a part of a column, such as an array element or a field. */
  #part(): string {
    const { pick } = this.#tools();
    return pick(["a[2]", "b.x", "a[1:2]", 'b."Mixed Case"[2]', `a[${this.expression()}].x.y`]);
  }

  #returning(): string {
    const { pick } = this.#tools();
    return pick(["", "", " RETURNING *", ` RETURNING ${this.expression()} AS k, a`]);
  }
}
