/**
 * Lists statements of other databases that are refused because Tidemark lacks the feature. Each
 * has the text at which its error must point, and the hint.
 */
import type { Mistake } from "./mistakes.ts";

/** Features of other databases that the server refuses by name. */
export const REFUSED: readonly Mistake[] = [
  [
    "COPY demo.kv FROM '/tmp/x.csv'",
    "'/tmp/x.csv'",
    "use POST /v1/api/copy, which transfers the rows in the request or response body",
  ],
  [
    "ALTER TABLE demo.kv ENABLE ROW LEVEL SECURITY",
    "ENABLE ROW LEV",
    "set ACCESS_LEVEL = 'RESTRICTED' on a SHARED table, and allow access to rows with CREATE " +
      "POLICY",
  ],
  [
    "ALTER TABLE demo.kv ADD COLUMN w TEXT, OWNER TO alice",
    "OWNER TO alice",
    "write OWNER TO in a separate ALTER TABLE",
  ],
  [
    "ALTER TABLE demo.kv ADD INDEX (v)",
    "ADD INDEX (v)",
    "write CREATE INDEX name ON table_name (column_name)",
  ],
  [
    "ALTER TABLE demo.kv CHANGE v w TEXT",
    "CHANGE v w TEX",
    "first use RENAME COLUMN a TO b, then ALTER COLUMN b TYPE new_type",
  ],
  [
    "CREATE INDEX ON demo.kv USING hnsw (v vector_cosine_ops)",
    "hnsw (v vector",
    "omit the index: ORDER BY v <-> $1 LIMIT 10 reads all embeddings",
  ],
  ["VACUUM FULL demo.kv", "VACUUM FULL de", "to merge segments, use STORAGE COMPACT TABLE"],
  [
    "PRAGMA table_info(kv)",
    "PRAGMA table_i",
    "to see the columns of a table, use DESCRIBE t; to see the settings, use SHOW ALL",
  ],
  [
    "SHOW CREATE TABLE demo.kv",
    "CREATE TABLE d",
    "to see the columns of a table, use DESCRIBE t; to see its options, use SHOW TABLES",
  ],
  ["SHOW DATABASES", "DATABASES", "to list the namespaces, use SHOW NAMESPACES"],
  [
    "SHOW INDEX FROM demo.kv",
    "INDEX FROM dem",
    "to list the indexes, run SELECT * FROM system.indexes",
  ],
];
