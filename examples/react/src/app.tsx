/**
 * A vote with a result that every window shows at once.
 */
import { useState } from "react";
import { createClient } from "./client.js";
import { useLive } from "./use_live.ts";

declare const __SERVER__: string;

interface Vote {
  readonly id: number;
  readonly choice: string;
}

const CHOICES = ["tea", "coffee", "water"];

const db = createClient({
  url: __SERVER__,
  auth: { user: "ada", password: "correct horse 9" },
});
await db.execute(
  "CREATE NAMESPACE IF NOT EXISTS bar; " +
    "CREATE TABLE IF NOT EXISTS bar.votes (id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(), choice TEXT NOT NULL)",
);

export function App() {
  const { error, rows } = useLive<Vote>(db, "SELECT id, choice FROM bar.votes");
  const [failure, setFailure] = useState<string>();
  const vote = (choice: string): void => {
    db.execute("INSERT INTO bar.votes (choice) VALUES ($1)", { params: [choice] }).catch((reason) =>
      setFailure(String(reason)),
    );
  };
  return (
    <>
      <h1>What will it be?</h1>
      <p role="status">{error?.message ?? failure ?? `${rows.length} votes`}</p>
      {CHOICES.map((choice) => (
        <button key={choice} onClick={() => vote(choice)}>
          {choice}: {rows.filter((row) => row.choice === choice).length}
        </button>
      ))}
    </>
  );
}
