/**
 * The back end of an agent that works for many users. It has a single account with the role
 * `service`, and writes the steps of its work for each user; users follow only their own steps.
 *
 *     node examples/agent/agent.mjs
 *
 * The steps are in a USER table, so the database isolates the users, and the agent's code need not
 * do so. Each step has an idempotency key: if a response is lost and the step is sent again, it is
 * written only once.
 */
import { createClient, url } from "../node/client.mjs";

const PASSWORD = "violet river 3";

/** Creates the table and the accounts, as an administrator would do once. */
async function setUp() {
  const admin = createClient({ url, auth: { user: "ada", password: "correct horse 9" } });
  await admin.execute(`CREATE NAMESPACE IF NOT EXISTS agent;
    CREATE USER TABLE IF NOT EXISTS agent.steps (
      id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(), question TEXT, step TEXT, is_last BOOLEAN);
    CREATE USER IF NOT EXISTS 'agent' WITH PASSWORD '${PASSWORD}' ROLE service;
    CREATE USER IF NOT EXISTS 'carol' WITH PASSWORD '${PASSWORD}' ROLE user;
    CREATE USER IF NOT EXISTS 'dave' WITH PASSWORD '${PASSWORD}' ROLE user`);
  admin.close();
}

/** Works on a user's question, step by step. */
async function answer(agent, user, question) {
  const steps = ["reads the question", "looks things up", "writes the answer"];
  for (const [index, step] of steps.entries()) {
    // EXECUTE AS does not accept a user id as a parameter, so the id is quoted.
    const target = user.replaceAll("'", "''");
    await agent.execute(
      `EXECUTE AS USER '${target}' (INSERT INTO agent.steps (question, step, is_last) VALUES ($1, $2, $3))`,
      {
        params: [question, step, index === steps.length - 1],
        idempotencyKey: `${user}/${question}/${index}/${process.pid}`,
      },
    );
  }
}

/**
 * Shows users their own steps as they arrive. `ready` and `last` settle as their names suggest.
 */
function follow(user) {
  const ready = Promise.withResolvers();
  const last = Promise.withResolvers();
  const db = createClient({ url, auth: { user, password: PASSWORD } });
  db.live("SELECT id, question, step, is_last FROM agent.steps", {
    lastRows: 0,
    onEvent: (event) => {
      if (event.type === "status" && event.error !== undefined) last.reject(event.error);
      if (event.type === "status" && event.status === "ready") ready.resolve();
      if (event.type !== "change") return;
      for (const row of event.change.rows) {
        console.log(`${user} sees: the agent ${row.step} (${row.question})`);
        if (row.is_last) last.resolve();
      }
    },
  });
  return { ready: ready.promise, last: last.promise.finally(() => db.close()) };
}

await setUp();
const agent = createClient({ url, auth: { user: "agent", password: PASSWORD } });
const carol = follow("carol");
const dave = follow("dave");
await Promise.all([carol.ready, dave.ready]);
await Promise.all([
  answer(agent, "carol", "why is the sky blue?"),
  answer(agent, "dave", "when is high tide?"),
]);
await Promise.all([carol.last, dave.last]);
agent.close();
