/**
 * Shows Tidemark's features on a running server: it loads public data, runs queries, and plays a
 * chat between two people, one of whom loses the connection and reconnects.
 *
 * If the server has not been set up yet, the demo does that first. Everything it creates is in the
 * namespace `demo`, which it recreates each time.
 */
import { connect } from "./demo/api.ts";
import { chat } from "./demo/chat.ts";
import { loadAndQuery } from "./demo/data.ts";
import { readOptions, textOption } from "./support/arguments.ts";

const { url, user, password } = readOptions({
  url: textOption("<url>", "the URL of the running server", "http://127.0.0.1:2900"),
  user: textOption("<name>", "the login name of an administrator", "ada"),
  password: textOption("<password>", "the administrator's password", "correct horse 9"),
});

// The output may be piped into a pager that the reader closes before the demo ends.
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
  // A person who runs the demo needs only the error message, not the stack trace.
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
