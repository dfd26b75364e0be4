/**
 * Prepares the club, and serves its static pages.
 *
 *     node examples/club/start.mjs
 *
 * This is not a back end: the pages talk directly to Tidemark, with the tokens of their visitors,
 * and any file server can take the place of this one. It only creates the tables and policies in
 * schema.sql, once, as an administrator.
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { createClient, url } from "../node/client.mjs";

const PORT = Number(process.env.PORT ?? 8000);

const PAGES = ["chat.html", "board.html", "files.html"];
const TYPES = { html: "text/html; charset=utf-8", css: "text/css", js: "text/javascript" };
const PARTS = [
  "app.js",
  "elements.js",
  "members.js",
  "profile.js",
  "spaces.js",
  "chat.js",
  "board.js",
  "files.js",
  "style.css",
];

/** The server address contained in the pages in the repository. */
const WRITTEN = "127.0.0.1:2900";

async function prepare() {
  const admin = createClient({ url, auth: { user: "ada", password: "correct horse 9" } });
  const [there] = await admin.query("SELECT 1 FROM system.namespaces WHERE name = 'club'");
  if (there === undefined) await admin.execute(read("schema.sql").toString());
  admin.close();
}

function read(name) {
  return readFileSync(fileURLToPath(new URL(name, import.meta.url)));
}

/** Returns a page with that address replaced by the running server's. */
function pageOf(name) {
  const page = read(name).toString();
  const socket = url.replace(/^http/, "ws");
  return page.replaceAll(`http://${WRITTEN}`, url).replaceAll(`ws://${WRITTEN}`, socket);
}

await prepare();
createServer((request, response) => {
  const name = new URL(request.url, "http://localhost").pathname.slice(1);
  if (name === "") {
    response.writeHead(302, { Location: "chat.html" }).end();
  } else if (PAGES.includes(name) || PARTS.includes(name)) {
    response.setHeader("Content-Type", TYPES[name.split(".").at(-1)]);
    response.end(PAGES.includes(name) ? pageOf(name) : read(name));
  } else {
    response.writeHead(404).end();
  }
}).listen(PORT, "localhost", function () {
  console.log(`The club is open: http://localhost:${this.address().port}`);
});
