/**
 * Verifies that information_schema.columns describes column types as PostgreSQL 15 does. Tools
 * that read a schema compare these names with PostgreSQL's.
 */
import { expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

/**
 * Types, each with the description that PostgreSQL shows: the name, the internal name, the length,
 * the precision with its base and scale, and the precision of seconds.
 */
const TYPES: readonly (readonly [type: string, shown: string])[] = [
  ["boolean", "boolean bool"],
  ["smallint", "smallint int2 precision=16/2 scale=0"],
  ["integer", "integer int4 precision=32/2 scale=0"],
  ["bigint", "bigint int8 precision=64/2 scale=0"],
  ["real", "real float4 precision=24/2"],
  ["double precision", "double precision float8 precision=53/2"],
  ["numeric", "numeric numeric precision=/10"],
  ["numeric(10, 2)", "numeric numeric precision=10/10 scale=2"],
  ["text", "text text"],
  ["varchar(20)", "character varying varchar length=20"],
  ["json", "json json"],
  ["jsonb", "jsonb jsonb"],
  ["date", "date date digits=0"],
  ["time(2)", "time without time zone time digits=2"],
  ["timetz", "time with time zone timetz digits=6"],
  ["timestamp(3)", "timestamp without time zone timestamp digits=3"],
  ["timestamptz", "timestamp with time zone timestamptz digits=6"],
  ["interval", "interval interval digits=6"],
  ["uuid", "uuid uuid"],
  ["money", "money money"],
  ["bit(4)", "bit bit length=4"],
  ["bit varying(4)", "bit varying varbit length=4"],
  ["inet", "inet inet"],
  ["bytea", "bytea bytea"],
  ["tsvector", "tsvector tsvector"],
  ["numrange", "numrange numrange"],
  ["tstzmultirange", "tstzmultirange tstzmultirange"],
  ["daterange[]", "ARRAY _daterange"],
  ["point", "point point"],
  ["polygon", "polygon polygon"],
  ["box[]", "ARRAY _box"],
  ["xml", "xml xml"],
  ["integer[]", "ARRAY _int4"],
  ["varchar(3)[]", "ARRAY _varchar"],
  ["timestamptz[]", "ARRAY _timestamptz"],
  ["mood", "USER-DEFINED mood"],
  ["mood[]", "ARRAY _mood"],
  ["positive", "integer int4 precision=32/2 scale=0 domain=app.positive"],
];

test("information_schema.columns names types as PostgreSQL does", async () => {
  await using engine = await TestEngine.open();
  await engine.run(
    `CREATE NAMESPACE app; USE app; CREATE TYPE mood AS ENUM ('good');
     CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
     CREATE TABLE app.t (${TYPES.map(([type], at) => `c${at} ${type}`).join(", ")})`,
  );
  const rows = await engine.rows(
    `SELECT concat(data_type, ' ', udt_name, ' length=' || character_maximum_length,
       ' precision=' || concat(numeric_precision, '/' || numeric_precision_radix),
       ' scale=' || numeric_scale, ' digits=' || datetime_precision,
       ' domain=' || domain_schema || '.' || domain_name)
     FROM information_schema.columns WHERE table_name = 't' AND column_name LIKE 'c%' ORDER BY ordinal_position`,
  );
  expect(rows.map(([shown]) => String(shown).replace(/ precision=(?= |$)/, ""))).toEqual(
    TYPES.map(([, shown]) => shown),
  );
});
