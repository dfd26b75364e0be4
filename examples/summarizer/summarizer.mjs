/**
 * An agent that summarises the articles of many users. It works through a topic, asks a model, and
 * writes the summary as the owner of the article.
 *
 *     node examples/summarizer/summarizer.mjs
 *
 * The summary and the acknowledgement of its message are a single commit. The agent may therefore
 * be killed at any moment and started again, and each article still gets exactly one summary.
 */
import { createClient, url } from "../node/client.mjs";

const PASSWORD = "violet river 3";
const USERS = ["erin", "frank"];
const ARTICLES_PER_USER = 5;
const GROUP = "summarizer";

const clientOf = (user) => createClient({ url, auth: { user, password: PASSWORD } });

/** Creates tables, accounts, the topic and the articles. Running it again does no harm. */
async function setUp() {
  const admin = createClient({ url, auth: { user: "ada", password: "correct horse 9" } });
  await admin.execute(`CREATE NAMESPACE IF NOT EXISTS press;
    CREATE USER TABLE IF NOT EXISTS press.articles (id INT PRIMARY KEY, text TEXT);
    CREATE USER TABLE IF NOT EXISTS press.summaries (
      id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(), article_id INT, text TEXT);
    CREATE USER IF NOT EXISTS 'summarizer' WITH PASSWORD '${PASSWORD}' ROLE service;
    ${USERS.map((user) => `CREATE USER IF NOT EXISTS '${user}' WITH PASSWORD '${PASSWORD}' ROLE user;`).join("\n")}
    CREATE TOPIC IF NOT EXISTS press.written`);
  try {
    await admin.execute("ALTER TOPIC press.written ADD SOURCE press.articles ON INSERT");
  } catch (error) {
    if (error.reason !== "already_exists") throw error;
  }
  admin.close();
  for (const user of USERS) {
    const db = clientOf(user);
    for (let id = 1; id <= ARTICLES_PER_USER; id += 1) {
      const text = `Article ${id} of ${user} is long. It goes on and on.`;
      const insert = "INSERT INTO press.articles VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
      await db.execute(insert, { params: [id, text] });
    }
    db.close();
  }
}

/** Simulates a model, which is slow and does not remember earlier requests. */
async function model(text) {
  await new Promise((resolve) => setTimeout(resolve, 20));
  return `${text.split(". ")[0]}.`;
}

/** Writes a summary and acknowledges its message, in a single commit. */
async function summarize(agent, { payload, partition, offset, user }) {
  const summary = await model(payload.text);
  // EXECUTE AS does not accept a user id as a parameter, so the id is quoted.
  const owner = user.replaceAll("'", "''");
  try {
    await agent.execute(
      `BEGIN;
       EXECUTE AS USER '${owner}' (INSERT INTO press.summaries (article_id, text) VALUES ($1, $2));
       ACK press.written GROUP '${GROUP}' PARTITION ${partition} OFFSETS (${offset});
       COMMIT`,
      { params: [payload.id, summary] },
    );
    console.log(`summarized article ${payload.id} of ${user}`);
  } catch (error) {
    // An earlier attempt was committed, but its response was lost.
    if (error.reason !== "already_acknowledged") throw error;
  }
}

/** Returns whether each user has as many summaries as articles. */
async function isDone() {
  for (const user of USERS) {
    const db = clientOf(user);
    const [{ missing }] = await db.query(
      "SELECT (SELECT count(*) FROM press.articles) - (SELECT count(*) FROM press.summaries) AS missing",
    );
    db.close();
    if (missing > 0) return false;
  }
  return true;
}

await setUp();
const agent = clientOf("summarizer");
const stop = new AbortController();
if (await isDone()) stop.abort();
await agent
  .topic("press.written")
  .consume(
    { group: GROUP, concurrency: 2, from: "earliest", signal: stop.signal },
    async (message) => {
      await summarize(agent, message);
      if (await isDone()) stop.abort();
    },
  );
console.log("every article has a summary");
agent.close();
