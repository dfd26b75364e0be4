/**
 * Goal: no key of the configuration is there in name only: the server reads it, or says that it
 * cannot have another value than the default yet.
 * Method: the text of every file outside `src/config`, and what the one function that hands keys on
 * reads of its section.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { KEYS, type Key } from "../../src/config/keys.ts";
import { authSettingsFrom, ConfigError, parseConfig, settingsOf } from "../../src/config/mod.ts";

const SRC: string = join(import.meta.dir, "../../src");
const COMMENTS = /\/\*[\s\S]*?\*\/|\/\/.*/g;
const ENVIRONMENT = { TIDEMARK_JWT_SECRET: "k7Qm2vX9pL4sW8zR1tY6uB3nC5dF0gHj" };

const keys: readonly Key[] = [...KEYS.values()];

/** A value that the key takes once its feature is there, as TOML. */
function otherValue({ rule }: Key): string {
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

/** Names that {@linkcode authSettingsFrom} asks its sections for, as "section.name". */
function handedOn(): Set<string> {
  const { config } = parseConfig("", "config.toml", ENVIRONMENT);
  const asked = new Set<string>();
  const watched = (name: "auth" | "limits"): object =>
    new Proxy(config[name], {
      get(section: object, key: string): unknown {
        asked.add(`${name}.${key}`);
        return Reflect.get(section, key);
      },
    });
  const watching = { ...config, auth: watched("auth"), limits: watched("limits") };
  authSettingsFrom(watching as typeof config, new Uint8Array(32));
  return asked;
}

test("the file that ships lists the short name of every key that is available", () => {
  const text = readFileSync(join(SRC, "../config.toml"), "utf8");
  const listed = [...text.matchAll(/^# {3}(TIDEMARK_\w+) +(\S+)$/gm)].map(([, ...words]) => words);
  const named = keys.flatMap(({ path, rule: { environment, isUnavailable } }) =>
    environment === undefined || isUnavailable === true ? [] : [[environment, path]],
  );
  expect(listed).toEqual(named);
});

test("every key is read, or not available yet", async () => {
  const texts: string[] = [];
  for await (const path of new Glob("**/*.ts").scan(SRC)) {
    if (path.startsWith("config/")) continue;
    texts.push((await Bun.file(join(SRC, path)).text()).replaceAll(COMMENTS, ""));
  }
  const asked = handedOn();
  const isRead = ({ name, path, section }: Key): boolean => {
    // As `limits.max_sql_bytes`, or taken out of what is called by the name of its section.
    const access = new RegExp(`\\.${name}\\b|[{,]\\s*${name}\\b(?=\\s*[,}:])`);
    const last = section.split(".").at(-1) ?? "";
    const isNamed = texts.some((text) => access.test(text) && text.includes(last));
    return isNamed || asked.has(path);
  };
  const unread = keys.filter((key) => key.rule.isUnavailable !== true && !isRead(key));
  expect(unread.map(({ path }) => path)).toEqual([]);
});

test("every key that is not available yet says so", () => {
  for (const key of keys.filter(({ rule }) => rule.isUnavailable === true)) {
    // The only word that the key takes is its default.
    if (key.rule.words?.length === 1) continue;
    const parse = (): unknown =>
      parseConfig(`${key.path} = ${otherValue(key)}`, "config.toml", ENVIRONMENT);
    expect(parse, key.path).toThrow(ConfigError);
    expect(parse, key.path).toThrow(`${key.path} is not available yet, and should be left out`);
  }
});

test("settingsOf says of a key that it is not available yet, and of no other", () => {
  const { config } = parseConfig("", "config.toml", ENVIRONMENT);
  const later = settingsOf(config).filter(({ description }) =>
    description.endsWith("; not available yet"),
  );
  const expected = keys.filter(({ rule }) => rule.isUnavailable === true);
  expect(expected.length).toBeGreaterThan(0);
  expect(later.map(({ name }) => name)).toEqual(expected.map(({ path }) => path));
});
