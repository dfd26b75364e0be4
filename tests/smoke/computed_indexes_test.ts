/**
 * Tests indexes on expressions in a real server process, whose threads write and read the index
 * files.
 */
import { expect } from "bun:test";
import { testThoroughly } from "../support/requirements.ts";
import { startReadyServer } from "../support/server_process.ts";

testThoroughly(
  "threads compute the keys of an index when they flush, build and merge",
  async () => {
    const server = await startReadyServer();
    try {
      const insert = (from: number, to: number): Promise<unknown> =>
        server.rows(
          `INSERT INTO app.t SELECT i, 'E' || i, i % 9 FROM generate_series(${from}, ${to}) i; STORAGE FLUSH TABLE app.t`,
        );
      await server.rows(
        "CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY, v TEXT, n INT)",
      );
      await insert(1, 3000);
      await server.rows("CREATE UNIQUE INDEX t_low ON app.t (lower(v)) WHERE n < 8");
      await insert(3001, 6000);
      await server.rows("UPDATE app.t SET n = 3 WHERE id = 17; STORAGE FLUSH TABLE app.t");
      await server.rows("STORAGE COMPACT TABLE app.t");
      const find = "SELECT id FROM app.t WHERE lower(v) = $1 AND n < 8";
      for (const id of [17, 2900, 4000]) {
        expect(await server.rows(find, { params: [`e${id}`] })).toEqual([[id]]);
      }
      const { body } = await server.sql("INSERT INTO app.t VALUES (9000, 'e17', 0)");
      expect(body.error?.message).toContain('unique index "t_low"');
    } finally {
      await server.stop();
    }
  },
);
