/**
 * Creates functions in PL/pgSQL, aggregates that call them, triggers and partitions, and generates
 * queries that call them. Both sides run the same definitions.
 *
 * The triggers of a table count its changes in the table `log`, which is compared like the tables
 * of a round. The counts do not depend on the order in which rows change.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { columnsOf, type StoredTable } from "./changes.ts";
import { conditionOf, expressionOf, type Scope } from "./expressions.ts";
import type { Partitions, Preparer } from "./tables.ts";
import { list, type Node, node, optional } from "./tree.ts";

/** The table in which triggers count changes. */
export const LOG: StoredTable = {
  name: "log",
  columns: [
    { name: "n", sort: "int", type: "INT" },
    { name: "l", sort: "int", type: "BIGINT" },
  ],
};

const DEFINITIONS: readonly string[] = [
  "CREATE TABLE log (id INT PRIMARY KEY, n INT, l BIGINT)",
  `CREATE FUNCTION fz_step(a BIGINT, b BIGINT) RETURNS BIGINT LANGUAGE plpgsql IMMUTABLE AS $$
   BEGIN
     IF b IS NULL THEN RETURN a; ELSIF a IS NULL THEN RETURN b % 1009; END IF;
     RETURN (a * 31 + b % 1009) % 100003;
   END $$`,
  `CREATE FUNCTION fz_grade(a BIGINT) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE AS $$
   DECLARE rest BIGINT := abs(a % 1000); digits TEXT := '';
   BEGIN
     WHILE rest > 0 LOOP
       IF rest % 10 = 5 THEN rest := rest / 10; CONTINUE; END IF;
       digits := digits || CASE WHEN rest % 2 = 0 THEN 'e' ELSE 'o' END;
       rest := rest / 10;
       EXIT WHEN length(digits) > 1;
     END LOOP;
     RETURN coalesce(digits, 'none');
   END $$`,
  `CREATE FUNCTION fz_safe(a BIGINT, b BIGINT) RETURNS BIGINT LANGUAGE plpgsql IMMUTABLE AS $$
   BEGIN
     RETURN a / b;
   EXCEPTION WHEN division_by_zero THEN RETURN -1; WHEN numeric_value_out_of_range THEN RETURN -2;
   END $$`,
  `CREATE FUNCTION fz_list(a INT) RETURNS SETOF INT LANGUAGE plpgsql IMMUTABLE AS $$
   BEGIN
     FOR at IN REVERSE a..1 BY 2 LOOP RETURN NEXT at; END LOOP;
     RETURN QUERY SELECT g * 10 FROM generate_series(1, a) AS g WHERE g <> 2;
   END $$`,
  `CREATE FUNCTION fz_back(a TEXT) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE STRICT AS $$
   DECLARE made TEXT := '';
   BEGIN
     FOR at IN 1..length(a) LOOP made := substr(a, at, 1) || made; END LOOP;
     RETURN made;
   END $$`,
  `CREATE FUNCTION fz_cat(a TEXT, b TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE RETURN left(a || ',' || b, 60)`,
  "CREATE AGGREGATE fz_hash(BIGINT) (SFUNC = fz_step, STYPE = BIGINT, INITCOND = '7')",
  "CREATE AGGREGATE fz_last(BIGINT) (SFUNC = fz_step, STYPE = BIGINT, FINALFUNC = fz_grade)",
  "CREATE AGGREGATE fz_least(BIGINT) (SFUNC = int8smaller, STYPE = BIGINT)",
  "CREATE AGGREGATE fz_join(TEXT) (SFUNC = fz_cat, STYPE = TEXT, INITCOND = '')",
  `CREATE AGGREGATE fz_sum(BIGINT) (SFUNC = fz_step, STYPE = BIGINT, INITCOND = '0',
     MSFUNC = int8pl, MINVFUNC = int8mi, MSTYPE = BIGINT, MINITCOND = '0')`,
  `CREATE FUNCTION fz_count(at INT, amount BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
   BEGIN
     INSERT INTO log VALUES (at, 1, amount)
       ON CONFLICT (id) DO UPDATE SET n = log.n + 1, l = log.l + excluded.l;
   END $$`,
  `CREATE FUNCTION fz_before() RETURNS TRIGGER LANGUAGE plpgsql AS $$
   BEGIN
     IF TG_OP = 'DELETE' THEN
       IF OLD.id % 11 = 7 THEN RETURN NULL; END IF;
       RETURN OLD;
     END IF;
     IF NEW.id % 13 = 5 THEN RETURN NULL; END IF;
     RETURN NEW;
   END $$`,
  `CREATE FUNCTION fz_after() RETURNS TRIGGER LANGUAGE plpgsql AS $$
   BEGIN
     CASE TG_OP
       WHEN 'INSERT' THEN PERFORM fz_count(1, NEW.id);
       WHEN 'UPDATE' THEN PERFORM fz_count(2, NEW.id * 3 - OLD.id);
       ELSE PERFORM fz_count(3, OLD.id);
     END CASE;
     RETURN NULL;
   END $$`,
  `CREATE FUNCTION fz_statement() RETURNS TRIGGER LANGUAGE plpgsql AS $$
   BEGIN
     PERFORM fz_count(10 + length(TG_OP) + length(TG_WHEN), 1);
     RETURN NULL;
   END $$`,
  `CREATE FUNCTION fz_gone() RETURNS TRIGGER LANGUAGE plpgsql AS $$
   -- A call that changes rows must not be in a query that reads a table.
   DECLARE total BIGINT := (SELECT coalesce(sum(id), 0) + count(*) FROM gone);
   BEGIN
     PERFORM fz_count(30, total);
     RETURN NULL;
   END $$`,
];

/** Creates the functions and aggregates, once for all rounds. */
export async function makePrograms(sides: Preparer): Promise<void> {
  for (const sql of DEFINITIONS) await sides.both(sql);
}

/** Creates some triggers on a table. They end with the table. */
export async function makeTriggers(
  sides: Preparer,
  { name }: StoredTable,
  chance: Chance,
): Promise<void> {
  const events = chance.pick([
    "INSERT",
    "UPDATE",
    "DELETE",
    "INSERT OR UPDATE",
    "UPDATE OR DELETE",
  ]);
  const when = chance.pick(["", "", " WHEN (pg_trigger_depth() = 0)"]);
  const triggers = [
    `CREATE TRIGGER fz1 BEFORE ${events} ON ${name} FOR EACH ROW EXECUTE FUNCTION fz_before()`,
    `CREATE TRIGGER fz2 AFTER ${events} ON ${name} FOR EACH ROW${when} EXECUTE FUNCTION fz_after()`,
    `CREATE TRIGGER fz3 AFTER UPDATE ON ${name} FOR EACH ROW WHEN (OLD.id + NEW.id > 9) EXECUTE FUNCTION fz_after()`,
    `CREATE TRIGGER fz4 ${chance.pick(["BEFORE", "AFTER"])} ${events} ON ${name} FOR EACH STATEMENT EXECUTE FUNCTION fz_statement()`,
    `CREATE TRIGGER fz5 AFTER DELETE ON ${name} REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION fz_gone()`,
  ].filter(() => chance.below(2) === 0);
  for (const sql of triggers) await sides.both(sql);
}

/** Returns the clause that divides a table into partitions by its key, and their statements. */
export function partitionsOf(name: string, chance: Chance): Partitions {
  const part = (suffix: string, bound: string): string =>
    `CREATE TABLE ${name}_${suffix} PARTITION OF ${name} ${bound}`;
  switch (chance.below(3)) {
    case 0:
      return {
        clause: " PARTITION BY RANGE (id)",
        parts: [
          part("a", "FOR VALUES FROM (MINVALUE) TO (8)"),
          part("b", "FOR VALUES FROM (8) TO (20)"),
          part("c", "DEFAULT"),
        ],
      };
    case 1:
      return {
        clause: " PARTITION BY LIST (id)",
        parts: [
          part("a", "FOR VALUES IN (1, 2, 3, 5, 8, 13, 21)"),
          part("b", "FOR VALUES IN (0, 4, 6, 9)"),
          part("c", "DEFAULT"),
        ],
      };
    default:
      return {
        clause: " PARTITION BY HASH (id)",
        parts: [0, 1, 2].map((rest) =>
          part(`p${rest}`, `FOR VALUES WITH (MODULUS 3, REMAINDER ${rest})`),
        ),
      };
  }
}

/** Returns a query that calls the functions and aggregates. */
export function programQuery(table: StoredTable, chance: Chance): Node {
  const columns = columnsOf(table).map(({ name, sort }) => ({ name: `w.${name}`, sort }));
  const scope: Scope = { chance, columns };
  const whole = (): Node => node("whole", "(", expressionOf("int", 1, scope), ")::bigint");
  const text = (): Node => node("words", "(", expressionOf("text", 1, scope), ")::text");
  const where = chance.below(2) === 0 ? "" : optional(" WHERE ", conditionOf(2, scope));
  const from = ` FROM ${table.name} AS w`;
  const aggregate = (): Node =>
    chance.pick([
      () => node("call", "fz_hash(", whole(), " ORDER BY w.id)"),
      () => node("call", "fz_last(", whole(), " ORDER BY w.id DESC)"),
      () => node("call", "fz_least(", whole(), ")"),
      () => node("call", "fz_join(", text(), " ORDER BY w.id)"),
      () => node("call", "fz_hash(DISTINCT w.id::bigint % 7)"),
      () => node("call", "fz_least(w.id::bigint) FILTER (WHERE ", conditionOf(1, scope), ")"),
    ])();
  const value = (): Node =>
    chance.pick([
      () => node("call", "fz_grade(", whole(), ")"),
      () => node("call", "fz_safe(", whole(), ", ", whole(), ")"),
      () => node("call", "fz_back(", text(), ")"),
      () => node("call", "fz_step(", whole(), ", w.id)"),
    ])();
  const window = (): Node =>
    chance.pick([
      () => node("call", "fz_hash(", whole(), ") OVER (ORDER BY w.id)"),
      () => node("call", "fz_least(", whole(), ") OVER (PARTITION BY w.id % 3 ORDER BY w.id)"),
      () =>
        node(
          "call",
          "fz_sum(",
          whole(),
          ") OVER (ORDER BY w.id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        ),
      () => node("call", "fz_last(w.id) OVER (ORDER BY w.id ROWS 1 PRECEDING)"),
    ])();
  const several = (make: () => Node): Node[] =>
    Array.from({ length: 1 + chance.below(2) }, () => make());
  switch (chance.below(6)) {
    case 0:
      return node("program", "SELECT ", list("outputs", several(aggregate)), from, where);
    case 1: {
      const key = chance.pick(columns).name;
      const outputs = list("outputs", ["w.id % 4", ...several(aggregate)], 1);
      const having = chance.below(3) === 0 ? ` HAVING fz_least(w.id) > ${chance.below(6)}` : "";
      if (chance.below(3) > 0) {
        return node("program", "SELECT ", outputs, from, where, ` GROUP BY w.id % 4${having}`);
      }
      return node(
        "program",
        "SELECT ",
        list("outputs", several(aggregate)),
        from,
        where,
        ` GROUP BY ${key}`,
      );
    }
    case 2:
      return node("program", "SELECT ", list("outputs", ["w.id", ...several(window)]), from, where);
    case 3: {
      const rows = ` CROSS JOIN LATERAL fz_list(w.id % ${1 + chance.below(5)}) AS l(x)`;
      return node("program", "SELECT ", list("outputs", ["w.id", "l.x"]), from, rows, where);
    }
    case 4: {
      const condition = node(
        "where",
        " WHERE fz_safe(",
        whole(),
        `, w.id % 3) > `,
        String(chance.below(4)),
      );
      return node(
        "program",
        "SELECT ",
        list("outputs", ["w.id", ...several(value)]),
        from,
        condition,
      );
    }
    default:
      return node("program", "SELECT ", list("outputs", ["w.id", ...several(value)]), from, where);
  }
}
