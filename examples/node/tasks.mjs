/**
 * Writes, reads and follows a list of tasks: the script watches the list while changing it.
 *
 *     node examples/node/tasks.mjs
 */
import { createClient, url } from "./client.mjs";

const db = createClient({ url, auth: { user: "ada", password: "correct horse 9" } });

await db.execute("CREATE NAMESPACE IF NOT EXISTS work");
await db.execute(`CREATE TABLE IF NOT EXISTS work.tasks (
  id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(),
  title TEXT NOT NULL,
  is_done BOOLEAN NOT NULL DEFAULT false,
  added TIMESTAMP DEFAULT now())`);
await db.execute("DELETE FROM work.tasks WHERE true");

const { promise: allDone, resolve } = Promise.withResolvers();
db.live("SELECT id, title, is_done FROM work.tasks", {
  onRows: (rows) => {
    console.log(rows.map(({ is_done, title }) => `${is_done ? "✓" : "·"} ${title}`).join("  "));
    if (rows.length === 3 && rows.every((row) => row.is_done)) resolve();
  },
});

for (const title of ["read the tutorial", "write an app", "run it"]) {
  await db.execute("INSERT INTO work.tasks (title) VALUES ($1)", { params: [title] });
}
for (const { id } of await db.query("SELECT id FROM work.tasks ORDER BY id")) {
  await db.execute("UPDATE work.tasks SET is_done = true WHERE id = $1", { params: [id] });
}

await allDone;
const [{ count }] = await db.query("SELECT count(*) AS count FROM work.tasks WHERE is_done");
console.log(`${count} tasks are done`);
db.close();
