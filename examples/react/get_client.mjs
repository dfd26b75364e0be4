/**
 * Saves the server's client and its types next to the sources, where the bundler and the editor
 * find them.
 */
import { writeFile } from "node:fs/promises";

const url = process.env.TIDEMARK_URL ?? "http://127.0.0.1:2900";

for (const name of ["client.js", "client.d.ts"]) {
  const answer = await fetch(`${url}/v1/${name}`);
  if (!answer.ok) throw new Error(`Cannot get ${name}: ${url} answered ${answer.status}`);
  await writeFile(new URL(`src/${name}`, import.meta.url), await answer.text());
}
