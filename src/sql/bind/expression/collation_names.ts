/** Resolves collation names. */
import { DatabaseError } from "../../../base/errors.ts";
import {
  bareTypeName,
  type Collation,
  collationName,
  type DataType,
  type IcuRules,
  isCollatable,
  withCollation,
} from "../../../types/mod.ts";
import type { CollationNode } from "../../parse/ast/ast.ts";

/** The built-in collations that order text by code point. */
const CODE_POINTS: ReadonlyMap<string, string> = new Map([
  ["c", "C"],
  ["posix", "POSIX"],
  ["ucs_basic", "ucs_basic"],
  ["default", "default"],
  ["c.utf8", "C.utf8"],
  ["c.utf-8", "C.utf8"],
]);

/** Matches the names of ICU's built-in collations, such as "de-AT-x-icu". */
const ICU_NAME = /^(und|[a-z]{2,3}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|\d{3}))?)-x-icu$/;

/**
 * English represents ICU's root collation, because it adds no rules of its own. The runtime would
 * take `und`, the name of the root collation, to mean the computer's own language.
 */
export const ROOT_LOCALE = "en";

/**
 * Returns the collation to which a name refers.
 * @throws {DatabaseError} OBJECT_NOT_FOUND
 */
function resolveCollation(node: CollationNode): Collation {
  const found = node.definedCollation ?? builtInCollation(node);
  if (found !== undefined) return found;
  throw noCollation(node);
}

/** Returns the error for a collation name that does not exist. */
export function noCollation({ _location, name, schema }: CollationNode): DatabaseError {
  const shown = schema === undefined ? name : `${schema}.${name}`;
  return new DatabaseError("OBJECT_NOT_FOUND", `Cannot find collation "${shown}"`, {
    position: _location.start,
    hint:
      'use a collation such as "de-x-icu" for German, "und-x-icu" for all languages, or "C" to ' +
      "compare code points",
  });
}

/** Returns the built-in collation with the given name; undefined if there is none. */
export function builtInCollation({
  name,
  schema,
}: Pick<CollationNode, "name" | "schema">): Collation | undefined {
  if (schema !== undefined && schema !== "pg_catalog") return undefined;
  const own = CODE_POINTS.get(name.toLowerCase());
  if (own !== undefined) return { kind: "code points", name: own };
  const [, language] = ICU_NAME.exec(name) ?? [];
  if (language === undefined) return undefined;
  const isKnown = language === "und" || Intl.Collator.supportedLocalesOf(language).length > 0;
  if (!isKnown) return undefined;
  const locale = language === "und" ? ROOT_LOCALE : language;
  const rules: IcuRules = { locale, sensitivity: "variant", isDeterministic: true };
  return { kind: "icu", name, ...rules };
}

/**
 * Returns the type with the collation of a COLLATE clause.
 * @throws {DatabaseError}
 */
export function typeWithCollation(
  type: DataType,
  node: CollationNode,
  isExplicit = false,
): DataType {
  const collation = resolveCollation(node);
  if (isCollatable(type)) return withCollation(type, collation, isExplicit);
  throw new DatabaseError(
    "TYPE_MISMATCH",
    `Cannot use COLLATE ${collationName(collation)} with a value of type ` +
      `${bareTypeName(type)}: only text has a collation`,
    { position: node._location.start, hint: "remove COLLATE, or cast the value to TEXT" },
  );
}
