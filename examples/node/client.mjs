/**
 * Loads the client module from the server itself, for scripts in Node and Bun: there is no package
 * to install, and the client always matches the server.
 */
export const url = process.env.TIDEMARK_URL ?? "http://127.0.0.1:2900";

const answer = await fetch(`${url}/v1/client.js`);
if (!answer.ok) throw new Error(`Cannot get the client: ${url} answered ${answer.status}`);
const source = await answer.text();

export const { createClient } = await import(
  `data:text/javascript;base64,${Buffer.from(source).toString("base64")}`
);
