/**
 * Defines the format of the catalog database, version by version.
 *
 * Every table has only a key and a sealed body (see `records.ts`), because the checksum would not
 * cover any other column. Indexes on values in the bodies serve only to find rows. If damage to
 * such an index hides an unused file, the next sweep removes the file all the same, because the
 * sweep does not use the index. A released migration must never change; a change to the format
 * adds a migration.
 *
 * Migrations run in rollback-journal mode, so that the version in the first page of the file is
 * always up to date. An older server can therefore read the version without opening SQLite's log,
 * and refuse the file.
 */

/**
 * The application id "TDMK", stored in the header of the file, so that SQLite files from other
 * programs are not mistaken for a catalog.
 */
export const APPLICATION_ID = 0x54444d4b;

/** The migrations. The one at index `n` converts a catalog from version `n` to version `n + 1`. */
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
  // The computed columns tolerate a damaged body, because it must not prevent startup. The damage
  // is reported when the body is read.
  `
  ALTER TABLE files ADD COLUMN table_id ANY
    AS (CASE WHEN json_valid(body) THEN body ->> '$.tableId' END) VIRTUAL;
  ALTER TABLE files ADD COLUMN owner ANY
    AS (CASE WHEN json_valid(body) THEN body ->> '$.owner' END) VIRTUAL;
  CREATE INDEX files_of_tables ON files (table_id);
  CREATE INDEX files_of_owners ON files (owner);
  `,
  // The version is raised to keep out older servers, which would look in their data directory for
  // segments in other storages.
  `
  CREATE TABLE storages (storage_id TEXT PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE topics (topic_id INTEGER PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT;
  `,
  `
  CREATE TABLE sequences (sequence_id INTEGER PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT;
  -- How far the numbers of each sequence are used; absent for a new one.
  CREATE TABLE sequence_marks (sequence_id INTEGER PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT;
  `,
  // The version is raised to keep out older servers, which would not update secondary indexes.
  `
  SELECT 1;
  `,
  `
  CREATE TABLE types (type_id INTEGER PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT;
  `,
  `
  CREATE TABLE service_tokens (name TEXT PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
  CREATE TABLE invitations (name TEXT PRIMARY KEY, body TEXT NOT NULL, checksum INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
  `,
  // The version is raised to keep out older servers, which would read inverted indexes as sorted
  // ones.
  `
  SELECT 1;
  `,
  // The version is raised to keep out older servers, which would not check the conditions of
  // domains.
  `
  SELECT 1;
  `,
  // The version is raised to keep out older servers, which would not apply policies.
  `
  SELECT 1;
  `,
  // The version is raised to keep out older servers, which cannot read NUMERIC columns without a
  // declared precision.
  `
  SELECT 1;
  `,
  // The version is raised to keep out older servers, which would read functions as views.
  `
  SELECT 1;
  `,
  // The version is raised to keep out older servers, which would not fire triggers.
  `
  SELECT 1;
  `,
  // The version is raised to keep out older servers, which would misread range types and
  // aggregates.
  `
  SELECT 1;
  `,
];

/** The version of the catalog format that this server writes. */
export const FORMAT_VERSION: number = MIGRATIONS.length;
