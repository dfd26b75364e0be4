/**
 * Executes CREATE COLLATION. `type_definitions.ts` executes ALTER COLLATION and DROP COLLATION,
 * because collations and types share one set of names.
 *
 * The locale of a collation is written as in PostgreSQL: as a BCP 47 tag with keywords, such as
 * "de-u-co-phonebk-ks-level2", or in ICU's older form, such as "de@colStrength=secondary". Only
 * keywords that the runtime honours are accepted.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { TypeEntry } from "../../catalog/mod.ts";
import { type CollationRules, type IcuRules, reasonAgainstKeys } from "../../types/mod.ts";
import { builtInCollation, noCollation, ROOT_LOCALE } from "../bind/expression/collation_names.ts";
import type { CreateCollationStatement, OptionEntry, QName } from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { defineType } from "./type_definitions.ts";

type CollationDeps = Pick<SqlEnvironment, "catalog" | "clock" | "store">;

/**
 * Binds CREATE COLLATION against the current catalog.
 *
 * @throws {DatabaseError} ALREADY_EXISTS, INVALID_DEFINITION, UNSUPPORTED_FEATURE, OBJECT_NOT_FOUND
 */
export function createCollation(
  node: CreateCollationStatement,
  caller: { readonly principal: Principal; readonly namespace: string },
  deps: CollationDeps,
): BoundDefinition {
  const { name, schema = caller.namespace } = node.name;
  if (node.ifNotExists === true && deps.catalog.type(schema, name)?.collation !== undefined) {
    return () => `Collation ${schema}.${name} already exists`;
  }
  const { source } = node;
  const valuesOf = (): Pick<TypeEntry, "collation" | "labels"> => ({
    labels: [],
    collation:
      "name" in source
        ? copiedRules(source, caller.namespace, deps)
        : rulesFrom(source, node._location.start),
  });
  return defineType(node.name, { ...caller, valuesOf }, deps);
}

/**
 * Returns the rules of an existing collation.
 * @throws {DatabaseError}
 */
function copiedRules(
  node: QName,
  namespace: string,
  { catalog }: Pick<CollationDeps, "catalog">,
): CollationRules {
  const { _location, name, schema = namespace } = node;
  const position = _location.start;
  const known = catalog.type(schema, name)?.collation;
  if (known !== undefined) return known;
  const found = builtInCollation(node);
  if (found === undefined || found.kind === "mixed") {
    throw noCollation(node);
  }
  if (found.name === "default") {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      'Cannot create a collation FROM "default": the default collation cannot be copied',
      {
        position,
        hint: 'use FROM "C", which sorts text in the same way',
      },
    );
  }
  if (found.kind === "code points") return { kind: "code points" };
  const { isDeterministic, locale, sensitivity } = found;
  return { kind: "icu", locale, sensitivity, isDeterministic };
}

const SETTINGS: ReadonlySet<string> = new Set([
  "deterministic",
  "lc_collate",
  "lc_ctype",
  "locale",
  "provider",
  "version",
]);

function rulesFrom(options: readonly OptionEntry[], position: number): CollationRules {
  const values = settingsOf(options);
  const provider = values.get("provider") ?? "libc";
  const locale = values.get("locale");
  const [collate, ctype] = [values.get("lc_collate"), values.get("lc_ctype")];
  const fail = (why: string, hint?: string): DatabaseError =>
    new DatabaseError("INVALID_DEFINITION", `Cannot create the collation: ${why}`, {
      position,
      hint,
    });
  if (locale !== undefined && (collate !== undefined || ctype !== undefined)) {
    throw fail("LOCALE excludes LC_COLLATE and LC_CTYPE", "set only LOCALE");
  }
  const isDeterministic = booleanOf(values.get("deterministic") ?? "true");
  if (isDeterministic === undefined)
    throw fail("DETERMINISTIC must be true or false", "write DETERMINISTIC = false");
  switch (provider) {
    case "icu": {
      if (locale === undefined)
        throw fail("LOCALE is missing, but the provider icu requires it", "write LOCALE = 'de'");
      return { kind: "icu", ...icuRules(locale, { isDeterministic, position }) };
    }
    case "libc": {
      const named = locale ?? collate;
      if (named === undefined)
        throw fail("LOCALE is missing", "write PROVIDER = icu, LOCALE = 'de'");
      if (locale === undefined && ctype === undefined) {
        throw fail(
          "LC_COLLATE is set, but LC_CTYPE is not",
          "set LOCALE instead of LC_COLLATE and LC_CTYPE",
        );
      }
      if (!isDeterministic)
        throw fail(
          "only collations of the provider icu can be nondeterministic",
          "write PROVIDER = icu, LOCALE = 'und'",
        );
      if (/^(?:c|posix)(?:\.utf-?8)?$/i.test(named)) return { kind: "code points" };
      throw new DatabaseError(
        "UNSUPPORTED_FEATURE",
        `Cannot create a collation for the operating system's locale "${named}": only C and ` +
          "POSIX are available",
        { position, hint: "write PROVIDER = icu, LOCALE = 'de'" },
      );
    }
    default:
      throw fail(`the provider "${provider}" does not exist`, "write PROVIDER = icu");
  }
}

function settingsOf(options: readonly OptionEntry[]): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const { _location, name, value } of options) {
    const position = _location.start;
    if (!SETTINGS.has(name)) {
      throw new DatabaseError(
        "INVALID_DEFINITION",
        `Cannot set option "${name}" for a collation: there is no such option`,
        {
          position,
          hint: "the options are PROVIDER, LOCALE and DETERMINISTIC",
        },
      );
    }
    if (values.has(name)) {
      throw new DatabaseError(
        "INVALID_DEFINITION",
        `Cannot set option "${name}" for a collation twice`,
        {
          position,
          hint: "remove one of the two occurrences",
        },
      );
    }
    values.set(name, textOf(value));
  }
  return values;
}

function textOf(value: OptionEntry["value"]): string {
  switch (value.type) {
    case "identifier":
      return value.name;
    case "string":
    case "boolean":
      return String(value.value);
    case "integer":
    case "numeric":
      return value.text;
    default:
      return "";
  }
}

function booleanOf(text: string): boolean | undefined {
  const word = text.toLowerCase();
  if (["true", "on", "1", "yes", ""].includes(word)) return true;
  return ["false", "off", "0", "no"].includes(word) ? false : undefined;
}

/** The keywords of ICU's older locale form, with their BCP 47 equivalents. */
const KEYWORDS: ReadonlyMap<string, string> = new Map([
  ["colalternate", "ka"],
  ["colbackwards", "kb"],
  ["colcasefirst", "kf"],
  ["colcaselevel", "kc"],
  ["collation", "co"],
  ["colnormalization", "kk"],
  ["colnumeric", "kn"],
  ["colstrength", "ks"],
]);

/** The keyword values of ICU's older locale form, with their BCP 47 equivalents. */
const VALUES: ReadonlyMap<string, string> = new Map([
  ["dictionary", "dict"],
  ["identical", "identic"],
  ["no", "false"],
  ["non-ignorable", "noignore"],
  ["phonebook", "phonebk"],
  ["primary", "level1"],
  ["quaternary", "level4"],
  ["secondary", "level2"],
  ["tertiary", "level3"],
  ["traditional", "trad"],
  ["yes", "true"],
]);

interface RulesPlace {
  readonly isDeterministic: boolean;
  readonly position: number;
}

/**
 * Returns the comparison rules that a locale denotes.
 * @throws {DatabaseError}
 */
function icuRules(text: string, { isDeterministic, position }: RulesPlace): IcuRules {
  const { keywords, language } = partsOf(text);
  const refuse = (key: string, why: string): DatabaseError =>
    new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot create a collation for locale "${text}": the keyword ${key} ${why}`,
      { position, hint: "remove the keyword from the locale" },
    );
  const take = (key: string, allowed: readonly string[]): string | undefined => {
    const value = keywords.get(key);
    if (value === undefined || allowed.includes(value)) return value;
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot create a collation for locale "${text}": the keyword ${key} does not accept the ` +
        `value "${value}"`,
      { position, hint: `use one of ${allowed.join(", ")}` },
    );
  };
  for (const key of keywords.keys()) {
    if (!KNOWN.has(key)) throw refuse(key, "is not supported");
  }
  const strength = take("ks", ["level1", "level2", "level3", "level4", "identic"]) ?? "level3";
  if (strength === "identic") throw refuse("ks", "does not accept the value identic");
  const hasCaseLevel = take("kc", BOOLEANS) === "true";
  if (hasCaseLevel && strength !== "level1") throw refuse("kc", "is supported only at strength 1");
  if (take("kb", BOOLEANS) === "true") throw refuse("kb", 'is supported only in "fr-CA"');
  take("kk", BOOLEANS);
  const isShifted = take("ka", ["noignore", "shifted"]) === "shifted";
  if (isShifted && strength === "level4") throw refuse("ka", "is not supported at strength 4");
  const locale = localeOf(language, {
    co: keywords.get("co"),
    kf: take("kf", ["upper", "lower", "false"]),
    kn: take("kn", BOOLEANS),
  });
  const rules: IcuRules = {
    locale,
    sensitivity: sensitivityOf(strength, hasCaseLevel),
    ...(isShifted ? { ignoresPunctuation: true } : {}),
    isDeterministic,
  };
  const reason = isDeterministic ? undefined : reasonAgainstKeys(rules);
  if (reason === undefined) return rules;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot create a nondeterministic collation for locale "${text}": ${reason}`,
    { position, hint: "use a deterministic collation, or locale 'und' with a strength" },
  );
}

const BOOLEANS = ["true", "false"];

const KNOWN: ReadonlySet<string> = new Set(["co", "ka", "kb", "kc", "kf", "kk", "kn", "ks"]);

function sensitivityOf(strength: string, hasCaseLevel: boolean): IcuRules["sensitivity"] {
  if (strength === "level1") return hasCaseLevel ? "case" : "base";
  return strength === "level2" ? "accent" : "variant";
}

interface LocaleParts {
  readonly language: string;
  readonly keywords: ReadonlyMap<string, string>;
}

/** Parses a locale in BCP 47 form or in ICU's older form. */
function partsOf(text: string): LocaleParts {
  const keywords = new Map<string, string>();
  const [named = "", settings] = text.split("@");
  for (const setting of settings?.split(";") ?? []) {
    const [key = "", value = ""] = setting.split("=").map((part) => part.trim().toLowerCase());
    if (key !== "") keywords.set(KEYWORDS.get(key) ?? key, VALUES.get(value) ?? value);
  }
  const [language = "", extension = ""] = named.split(/-u-/i);
  let last: string | undefined;
  for (const word of extension.toLowerCase().split("-")) {
    if (word.length === 2) {
      keywords.set(word, "true");
      last = word;
    } else if (word !== "" && last !== undefined) {
      keywords.set(last, VALUES.get(word) ?? word);
    }
  }
  return { language: language.replace(/\..*$/, "").replaceAll("_", "-"), keywords };
}

/**
 * Returns the BCP 47 tag for a language and keywords. An unknown language gets the root collation.
 */
function localeOf(
  language: string,
  { co, kf, kn }: { co: string | undefined; kf: string | undefined; kn: string | undefined },
): string {
  const base = knownLanguage(language);
  const withOrder = co === undefined ? base : `${base}-u-co-${co}`;
  const hasOrder = co !== undefined && isTag(withOrder) && orderOf(withOrder) === co;
  const keywords = [
    ...(hasOrder ? ["co", co] : []),
    ...(kf === undefined ? [] : ["kf", kf]),
    ...(kn === undefined ? [] : kn === "true" ? ["kn"] : ["kn", "false"]),
  ];
  return keywords.length === 0 ? base : `${base}-u-${keywords.join("-")}`;
}

function orderOf(tag: string): string {
  return new Intl.Collator(tag).resolvedOptions().collation;
}

function knownLanguage(language: string): string {
  if (!isTag(language)) return ROOT_LOCALE;
  const [known = ROOT_LOCALE] = Intl.Collator.supportedLocalesOf(language);
  return known;
}

function isTag(text: string): boolean {
  try {
    return Intl.getCanonicalLocales(text).length === 1;
  } catch {
    // Ignoring the error is safe: like PostgreSQL, ICU falls back to the root collation for a
    // locale that it cannot read.
    return false;
  }
}
