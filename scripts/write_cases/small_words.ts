/**
 * Words of PostgreSQL that say little here: VARIADIC, ONLY, COLLATE, storage parameters and
 * operator classes.
 */
import type { CaseFile } from "./answer.ts";

const STATEMENTS: readonly string[] = [
  "SELECT concat(VARIADIC ARRAY[1,2,3]), concat('a', VARIADIC '{b,NULL,c}'::text[]), concat(VARIADIC ARRAY[]::text[])",
  "SELECT concat_ws(',', VARIADIC ARRAY[1,2,3]), concat_ws(',', VARIADIC NULL::int[]) IS NULL, concat_ws(NULL, VARIADIC ARRAY['x'])",
  "SELECT format('%s and %s', VARIADIC ARRAY['a', 'b']), format('%2$s', VARIADIC ARRAY[1, 2])",
  "SELECT format('%s', VARIADIC ARRAY[]::text[])",
  "SELECT jsonb_extract_path('{\"a\": {\"b\": [7, 8]}}', VARIADIC ARRAY['a', 'b', '1']), json_extract_path_text('{\"a\": 1}', VARIADIC ARRAY['a'])",
  "SELECT jsonb_build_array(VARIADIC ARRAY[1, NULL, 3]), json_build_object(VARIADIC ARRAY['a', 'b', 'c', 'd'])",
  "SELECT concat_ws('-', VARIADIC a) FROM (VALUES (ARRAY['x', 'y']), (ARRAY['z']), (NULL)) AS v(a) ORDER BY 1",
  "SELECT num_nulls(VARIADIC ARRAY[1, NULL, NULL]), num_nonnulls(VARIADIC '{1,2,NULL}'::int[])",
  "SELECT concat(VARIADIC ARRAY[1], 2)",
  "SELECT upper(VARIADIC ARRAY['x'])",
  "SELECT x FROM (VALUES ('b'), ('a'), ('B')) v(x) ORDER BY x COLLATE \"C\"",
  "SELECT max(x COLLATE \"C\") FROM (VALUES ('b'), ('a'), ('B')) v(x)",
  'CREATE TABLE words (id INT PRIMARY KEY, t TEXT COLLATE "C" NOT NULL, u VARCHAR(9) COLLATE "POSIX") WITH (fillfactor = 70, autovacuum_enabled = off, toast.autovacuum_enabled = false)',
  'CREATE TABLE broken (t TEXT COLLATE "nowhere")',
  "ALTER TABLE words SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1)",
  "ALTER TABLE words RESET (fillfactor)",
  'CREATE INDEX ON words USING btree (t COLLATE "C" text_ops DESC, u varchar_ops) WITH (fillfactor = 90)',
  "INSERT INTO words VALUES (1, 'a', 'x'), (2, 'b', NULL), (3, 'c', 'y')",
  "SELECT id FROM ONLY words ORDER BY id",
  "SELECT id FROM ONLY (words) AS w WHERE w.t > 'a' ORDER BY id",
  "SELECT id FROM words* ORDER BY id",
  "SELECT a.id FROM words * AS a JOIN ONLY words b ON a.id = b.id ORDER BY a.id",
  "UPDATE ONLY words SET u = 'z' WHERE id = 2 RETURNING u",
  "UPDATE words * SET u = 'w' WHERE id = 2 RETURNING u",
  "DELETE FROM ONLY words WHERE id = 1 RETURNING id",
  "DELETE FROM ONLY (words) WHERE id = 2 RETURNING id",
  "SELECT * FROM words ORDER BY id",
  "SELECT interval '12:34.5678', interval '1 2:03.4567' day to second(2), interval '4 millenniums 5 centuries'",
  "SELECT ('2000-03-15 08:14:01 GMT+8'::timestamptz)::text, ('Wed Jul 11 10:51:14 America/New_York 2001'::timestamptz)::text, ('Wed Jul 11 10:51:14 PST-03:00 2001'::timestamptz)::text",
  "SELECT ('J2452271-08'::timestamptz)::text, '040506.789+08'::time::text, 'T040506.789-08'::time::text",
];

export const SMALL_WORDS: CaseFile = {
  name: "small_words",
  about: "words that say little: VARIADIC, ONLY, COLLATE, storage parameters, operator classes",
  statements: STATEMENTS,
};
