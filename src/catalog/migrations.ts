/**
 * The catalog database's format, version by version.
 *
 * Every table is a key and a sealed body (see `records.ts`), and nothing else: what SQLite knows
 * about a row beside that would be under no checksum. An index over what bodies say only leads to
 * them; should it be damaged, a file that it hides goes with the next sweep, which does not ask it.
 * A released step never changes again; a change of format is a further step.
 *
 * Steps run in rollback-journal mode, so that the version in the first page of the file itself is
 * always the true one: an older server can read it without opening the log, and refuse.
 */

/** In the file header, so that a foreign SQLite file is told apart: "TDMK". */
export const APPLICATION_ID = 0x54444d4b;

/** Step `n` takes a catalog from version `n` to `n + 1`. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE counters (name TEXT PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
  CREATE TABLE settings (name TEXT PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
  CREATE TABLE namespaces (name TEXT PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
  -- One row for each definition that a table ever had.
  CREATE TABLE table_definitions (definition_id INTEGER PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT;
  CREATE TABLE accounts (account_id INTEGER PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT;
  CREATE TABLE owners (owner INTEGER PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT;
  CREATE TABLE revocations (id TEXT PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
  CREATE TABLE files (file_id TEXT PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
  CREATE TABLE segments (segment_id INTEGER PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT;
  CREATE TABLE table_states (table_id INTEGER PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT;
  `,
  `
  CREATE TABLE views (view_id INTEGER PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT;
  `,
  `
  CREATE TABLE journal (id INTEGER PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT;
  `,
  // A damaged body is no reason not to start: who reads it is told.
  `
  ALTER TABLE files ADD COLUMN table_id ANY
    AS (CASE WHEN json_valid(body) THEN body ->> '$.tableId' END) VIRTUAL;
  ALTER TABLE files ADD COLUMN owner ANY
    AS (CASE WHEN json_valid(body) THEN body ->> '$.owner' END) VIRTUAL;
  CREATE INDEX files_of_tables ON files (table_id);
  CREATE INDEX files_of_owners ON files (owner);
  `,
  // An older server would look for the segments of such tables in its data directory.
  `
  CREATE TABLE storages (storage_id TEXT PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
  `,
];

/** The version that this server writes. */
export const FORMAT_VERSION: number = MIGRATIONS.length;
