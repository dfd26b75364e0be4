/**
 * "Did you mean …" for paths: the endpoint nearest to a path that nothing serves.
 *
 * Paths are compared by the words that tell endpoints apart. The frame around them (`/v1`, `/api`,
 * slashes, case) is left out, as most mistaken paths differ in it alone.
 */
import { nearestName } from "../../base/nearest_name.ts";
import type { Method } from "./route.ts";

const FRAME = /^(?:|api|rest|v\d+)$/;

interface Served {
  readonly routes: readonly { readonly method: Method; readonly path: string }[];
  readonly prefixes: readonly {
    readonly method: Method;
    readonly prefix: string;
    readonly template: string;
  }[];
}

/** No endpoint has so long a name. */
const PATH_CHARS_MAX = 200;

/** Words of other servers, and the word of the endpoint here. */
const SAME: ReadonlyMap<string, string> = new Map([
  ["query", "sql"],
  ["queries", "sql"],
  ["execute", "sql"],
  ["exec", "sql"],
  ["statement", "sql"],
  ["statements", "sql"],
  ["websocket", "ws"],
  ["socket", "ws"],
  ["events", "live"],
  ["sse", "live"],
  ["stream", "live"],
  ["subscribe", "live"],
  ["signin", "login"],
  ["sign-in", "login"],
  ["session", "login"],
  ["sessions", "login"],
  ["token", "login"],
  ["whoami", "me"],
  ["signout", "logout"],
  ["file", "files"],
  ["docs", "openapi.json"],
  ["swagger", "openapi.json"],
  ["swagger.json", "openapi.json"],
  ["openapi", "openapi.json"],
  ["openapi.yaml", "openapi.json"],
  ["admin", "ui"],
  ["console", "ui"],
]);

/** The method and path of an endpoint, as `POST /v1/api/sql`; undefined when none is near. */
export function nearestEndpoint(path: string, { prefixes, routes }: Served): string | undefined {
  const words = wordsOf(path);
  if (words === "" || path.length > PATH_CHARS_MAX) return undefined;
  const shown = new Map<string, string>();
  for (const route of routes) {
    const key = wordsOf(route.path);
    if (key !== "" && !shown.has(key)) shown.set(key, `${route.method} ${route.path}`);
  }
  const ending = [...shown.keys()].find((key) => key.endsWith(`/${words}`));
  const same = shown.get(words) ?? shown.get(ending ?? "");
  if (same !== undefined) return same;
  for (const { method, prefix, template } of prefixes) {
    const key = wordsOf(prefix);
    if (words === key || words.startsWith(`${key}/`)) return `${method} ${prefix}${template}`;
  }
  return shown.get(nearestName(words, shown.keys()) ?? "");
}

function wordsOf(path: string): string {
  const words = path
    .toLowerCase()
    .split("/")
    .filter((word) => !FRAME.test(word));
  return words.map((word) => SAME.get(word) ?? word).join("/");
}
