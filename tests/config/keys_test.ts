/**
 * Verifies that every configuration key has an effect: the server either reads the key or reports
 * that it accepts only the default so far. The test searches the source of every file outside
 * `src/config`, and records which names the function that builds the account settings reads from
 * its sections.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { type ConfigKey, KEYS } from "../../src/config/keys.ts";
import { authSettingsFrom, ConfigError, parseConfig, settingsOf } from "../../src/config/mod.ts";

const SRC: string = join(import.meta.dir, "../../src");
const COMMENTS = /\/\*[\s\S]*?\*\/|\/\/.*/g;
const ENVIRONMENT = { TIDEMARK_JWT_SECRET: "k7Qm2vX9pL4sW8zR1tY6uB3nC5dF0gHj" };

const keys: readonly ConfigKey[] = [...KEYS.values()];

/**
 * Returns, as TOML, a value other than the default. The configuration key accepts the value only
 * once its feature exists.
 */
function otherValue({ rule }: ConfigKey): string {
  switch (rule.type) {
    case "text":
      return '"x"';
    case "whole":
    case "number":
      return String(Number(rule.initial) + 1);
    case "boolean":
      return String(rule.initial !== true);
    case "list":
      return '["x"]';
    case "levels":
      return '{ live = "debug" }';
  }
}

/**
 * Returns the names that {@linkcode authSettingsFrom} reads from its sections, as "section.name".
 */
function handedOn(): Set<string> {
  const { config } = parseConfig("", "config.toml", { env: ENVIRONMENT });
  const asked = new Set<string>();
  const watched = (name: "auth" | "limits" | "oidc"): object =>
    new Proxy(config[name], {
      get(section: object, key: string): unknown {
        asked.add(`${name}.${key}`);
        return Reflect.get(section, key);
      },
    });
  const watching = {
    ...config,
    auth: watched("auth"),
    limits: watched("limits"),
    oidc: watched("oidc"),
  };
  authSettingsFrom(watching as typeof config, new Uint8Array(32));
  return asked;
}

test("the shipped file lists the short name of every available key", () => {
  const text = readFileSync(join(SRC, "../config.toml"), "utf8");
  const listed = [...text.matchAll(/^# {3}(TIDEMARK_\w+) +(\S+)$/gm)].map(([, ...words]) => words);
  const named = keys.flatMap(({ path, rule: { environment, isUnavailable } }) =>
    environment === undefined || isUnavailable === true ? [] : [[environment, path]],
  );
  expect(listed).toEqual(named);
});

test("every key is either read or reported as not available yet", async () => {
  const texts: string[] = [];
  for await (const path of new Glob("**/*.ts").scan(SRC)) {
    if (path.startsWith("config/")) continue;
    texts.push((await Bun.file(join(SRC, path)).text()).replaceAll(COMMENTS, ""));
  }
  const asked = handedOn();
  const isRead = ({ name, path, section }: ConfigKey): boolean => {
    // A key is read as `limits.max_sql_bytes`, or destructured from a variable named after its
    // section.
    const access = new RegExp(`\\.${name}\\b|[{,]\\s*${name}\\b(?=\\s*[,}:])`);
    const last = section.split(".").at(-1) ?? "";
    const isNamed = texts.some((text) => access.test(text) && text.includes(last));
    return isNamed || asked.has(path);
  };
  const unread = keys.filter((key) => key.rule.isUnavailable !== true && !isRead(key));
  expect(unread.map(({ path }) => path)).toEqual([]);
});

test("every key that is not available yet reports this", () => {
  for (const key of keys.filter(({ rule }) => rule.isUnavailable === true)) {
    // This key accepts only its default.
    if (key.rule.words?.length === 1) continue;
    const parse = (): unknown =>
      parseConfig(`${key.path} = ${otherValue(key)}`, "config.toml", { env: ENVIRONMENT });
    expect(parse, key.path).toThrow(ConfigError);
    expect(parse, key.path).toThrow(`${key.path} is not available yet; remove it`);
  }
});

test("settingsOf marks exactly the keys that are not available yet", () => {
  const { config } = parseConfig("", "config.toml", { env: ENVIRONMENT });
  const later = settingsOf(config).filter(({ description }) =>
    description.endsWith("; not available yet"),
  );
  const expected = keys.filter(({ rule }) => rule.isUnavailable === true);
  expect(expected.length).toBeGreaterThan(0);
  expect(later.map(({ name }) => name)).toEqual(expected.map(({ path }) => path));
});
