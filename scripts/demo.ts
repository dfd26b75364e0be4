/**
 * Shows what Tidemark does, on a server that is running: loads public data, asks it questions, and
 * plays a chat of two, one of whom loses the connection and comes back.
 *
 *     bun run demo [--url http://127.0.0.1:2900] [--user ada --password <password>]
 *
 * On a server that nobody has set up yet it does that first. Everything it makes is in the
 * namespace `demo`, which it makes anew each time.
 */
import { connect } from "./demo/api.ts";
import { chat } from "./demo/chat.ts";
import { loadAndQuery } from "./demo/data.ts";
import { readOptions } from "./support/arguments.ts";

const options = readOptions(["url", "user", "password"], []);
const url = options.text("url") ?? "http://127.0.0.1:2900";
const user = options.text("user") ?? "ada";
const password = options.text("password") ?? "correct horse 9";

// Whoever reads may have seen enough, as a pager shows a page.
process.stdout.on("error", () => process.exit(0));

try {
  const api = await connect(url, { user, password });
  print(`Connected to ${url} as ${user}`);
  const movies = await loadAndQuery(api, print);
  print("\nA chat about movies, in a room and in two inboxes");
  const { missed, doubled } = await chat(api, movies, print);
  print(`missed ${missed}, doubled ${doubled}`);
  process.exit(missed + doubled === 0 ? 0 : 1);
} catch (error) {
  // Whoever runs a demo wants to read what is wrong, not where in the demo it was noticed.
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
