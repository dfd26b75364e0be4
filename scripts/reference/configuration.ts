/**
 * Writes `docs/reference/configuration.md`: every configuration key with its default, its range
 * and its environment variables, derived from the rules by which the server checks it.
 */

import type { KeyRule } from "../../src/config/key_rule.ts";
import { KEYS, providerKeys, SECTIONS } from "../../src/config/keys.ts";
import { shareText } from "../../src/config/memory.ts";
import { REREAD } from "../../src/reread_settings.ts";
import { code, GENERATED, markdownTable } from "./markdown.ts";

const MIB: number = 1024 * 1024;

const UNITS: readonly (readonly [size: number, name: string])[] = [
  [1024 * MIB, "GiB"],
  [MIB, "MiB"],
  [1024, "KiB"],
];

/** The configuration section of an OpenID Connect provider. */
const PROVIDERS = "oidc.providers.<name>";

export function configurationPage(): string {
  const all = [...KEYS.values(), ...providerKeys("<name>")];
  const sections = SECTIONS.flatMap((name) => (name === "oidc" ? [name, PROVIDERS] : [name]));
  const parts = sections.map((section) => {
    const keys = all.filter((key) => key.section === section);
    const rows = keys.map(({ name, path, rule }) => [
      code(name),
      initialText(rule),
      rangeText(name, rule),
      `${rule.description}${shareText(rule)}.${notes(path, rule)}`,
    ]);
    return `## [${section}]\n\n${markdownTable(["key", "default", "values", "meaning"], rows)}`;
  });
  return `${GENERATED}

# Configuration

The server reads one TOML file. A key that is absent has its default; an unknown key, a wrong type and a
value out of range stop the start with a message that names the line. \`npm start -- --check config.toml\`
checks a file without starting.

The environment overrides the file. The key \`port\` of the section \`[server]\` is \`TIDEMARK_SERVER_PORT\`.
With \`_FILE\` at the end, as in \`TIDEMARK_SERVER_PORT_FILE\`, the variable names a file that contains the
value. Some keys have a short variable too, which wins over the long one.

A key takes effect at the next start, unless it says that SIGHUP reloads it. \`system.settings\` shows
the values of a running server and where each comes from.

${parts.join("\n\n")}
`;
}

function initialText({ initial, isSecret, type }: KeyRule): string {
  if (isSecret === true || initial === undefined) return "";
  if (type === "levels") return "`{}`";
  const bytes = typeof initial === "number" ? sizeText(initial) : "";
  return `${code(JSON.stringify(initial))}${bytes}`;
}

/**
 * Returns a suffix such as " (64 MiB)" for a large number of bytes, or an empty string for a small
 * one.
 */
function sizeText(bytes: number): string {
  const size = unitText(bytes);
  return bytes >= MIB && size !== undefined ? ` (${size})` : "";
}

/**
 * Returns text such as "64 MiB" for a number of bytes that is a whole number of units; undefined
 * for any other number.
 */
function unitText(bytes: number): string | undefined {
  const [unit, name] = UNITS.find(([size]) => bytes >= size && bytes % size === 0) ?? [];
  return unit === undefined ? undefined : `${bytes / unit} ${name}`;
}

/**
 * Returns the lower or upper bound of a configuration key as text, with a unit if the key counts
 * bytes.
 */
function boundText(bound: number | undefined, name: string): string {
  if (bound === undefined) return "";
  return (/bytes|_size/.test(name) ? unitText(bound) : undefined) ?? String(bound);
}

function rangeText(name: string, { form, max, min, type, words }: KeyRule): string {
  if (words !== undefined) return words.map((word) => code(JSON.stringify(word))).join(", ");
  switch (type) {
    case "boolean":
      return "`true`, `false`";
    case "whole":
    case "number": {
      const kind = type === "whole" ? "whole number" : "number";
      if (max === undefined || max === Number.MAX_SAFE_INTEGER)
        return `${kind}, ${boundText(min, name)} or more`;
      return `${kind}, ${boundText(min, name)} to ${boundText(max, name)}`;
    }
    case "list":
      return `list; each item is ${form?.expected ?? "a string"}`;
    case "levels":
      return "table of levels";
    case "text":
      return form?.expected ?? "text";
  }
}

function notes(path: string, { environment, isUnavailable }: KeyRule): string {
  const found: string[] = [];
  if (environment !== undefined) found.push(`Also ${code(environment)}.`);
  if (REREAD.has(path)) found.push("SIGHUP reloads it.");
  if (isUnavailable === true) found.push("Not available yet: only the default is accepted.");
  return found.length === 0 ? "" : ` ${found.join(" ")}`;
}
