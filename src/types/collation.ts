/**
 * Defines collations, which determine the order and equality of text.
 *
 * A collation belongs to the type of text. Text without a collation is ordered by code point, and
 * so is text with a collation of kind "code points". The two differ only in how the collation of
 * an expression is derived from its parts. Collations of kind "icu" order text by the rules of a
 * language, as implemented by the runtime's ICU library.
 *
 * A deterministic collation considers only identical strings equal. It breaks ties by code point,
 * so it affects the order of text, but never its equality. A nondeterministic collation considers
 * all strings equal that its rules do not distinguish: `collation_keys.ts` defines their common
 * key.
 */
import { DatabaseError } from "../base/errors.ts";
import { compareCodePoints } from "./code_points.ts";
import { collationKeyOf } from "./collation_keys.ts";
import type { DataType } from "./data_type.ts";
import { withSortedMarks } from "./normalized_text.ts";

export type Collation = CodePointCollation | IcuCollation | MixedCollation;

interface NamedCollation {
  readonly name: string;
  /** The id of a collation defined by CREATE COLLATION; undefined for a built-in one. */
  readonly typeId?: number;
  /** The namespace of a collation defined by CREATE COLLATION. */
  readonly namespace?: string;
}

export interface CodePointCollation extends NamedCollation {
  readonly kind: "code points";
}

export interface IcuCollation extends NamedCollation, IcuRules {
  readonly kind: "icu";
}

/** The rules of a collation defined by CREATE COLLATION. */
export type CollationRules =
  | { readonly kind: "code points" }
  | ({ readonly kind: "icu" } & IcuRules);

/** The rules by which ICU compares text. */
export interface IcuRules {
  /** The BCP 47 tag of the language, with the keywords `co`, `kf` and `kn`. */
  readonly locale: string;
  /**
   * The differences that matter besides differences between letters: none ("base"), case, accents,
   * or both ("variant").
   */
  readonly sensitivity: "base" | "case" | "accent" | "variant";
  readonly ignoresPunctuation?: true;
  readonly isDeterministic: boolean;
}

/**
 * The collation of an expression whose parts have different collations. Only operations that need
 * no collation accept such text.
 */
export interface MixedCollation {
  readonly kind: "mixed";
  /** The names of two of the collations that conflict. */
  readonly names: readonly [string, string];
}

export type TextType = DataType & { readonly kind: "text" };

/** Returns the collation of a type of text, or of arrays of text; undefined for the default. */
export function collationOf(type: DataType): Collation | undefined {
  if (type.kind === "array") return collationOf(type.element);
  return type.kind === "text" ? type.collation : undefined;
}

/** Whether a type can have a collation: text, and arrays of text. */
export function isCollatable(type: DataType): boolean {
  return type.kind === "array" ? isCollatable(type.element) : type.kind === "text";
}

/** Whether a type is text that is not compared by code point. */
export function isCollated(type: DataType): boolean {
  if (type.kind !== "text" || type.collation === undefined) return false;
  return type.collation.kind !== "code points";
}

/**
 * Whether a type is or contains text in which different strings can be equal, as under a
 * case-insensitive collation.
 */
export function isLooselyEqual(type: DataType): boolean {
  if (type.kind === "row") return type.fields.some((field) => isLooselyEqual(field.type));
  const collation = collationOf(type);
  return collation?.kind === "icu" && !collation.isDeterministic;
}

/**
 * Returns a text type, or a type of text arrays, with the given collation. Any other type is
 * returned unchanged.
 */
export function withCollation(
  type: DataType,
  collation: Collation | undefined,
  isExplicit = false,
): DataType {
  if (type.kind === "array") {
    const element = withCollation(type.element, collation, isExplicit);
    return element === type.element ? type : { kind: "array", element };
  }
  if (type.kind !== "text") return type;
  if (type.collation === undefined && collation === undefined) return type;
  const { lengthMax } = type;
  const bare: TextType = lengthMax === undefined ? { kind: "text" } : { kind: "text", lengthMax };
  if (collation === undefined) return bare;
  return isExplicit ? { ...bare, collation, isExplicit } : { ...bare, collation };
}

/** Returns a type as it appears in a column, where the collation is implicit. */
export function columnTypeOf(type: DataType): DataType {
  if (type.kind === "array") {
    const element = columnTypeOf(type.element);
    return element === type.element ? type : { kind: "array", element };
  }
  if (type.kind !== "text" || type.collation === undefined) return type;
  if (type.isExplicit !== true && !isDefault(type.collation)) return type;
  return withCollation(type, isDefault(type.collation) ? undefined : type.collation);
}

function isDefault(collation: Collation): boolean {
  return collation.kind === "code points" && collation.name === "default";
}

/** Returns the name of a collation as SQL. */
export function collationName(collation: Collation): string {
  if (collation.kind === "mixed") return collation.names.join(" and ");
  const name = quoted(collation.name);
  const { namespace = "default" } = collation;
  return namespace === "default" ? name : `${quoted(namespace)}.${name}`;
}

/**
 * Returns the COLLATE clause of a type; an empty string for the default collation.
 *
 * @throws {DatabaseError} TYPE_MISMATCH if the type's collation is mixed.
 */
export function collateClause(type: DataType): string {
  const collation = collationOf(type);
  if (collation === undefined) return "";
  if (collation.kind === "mixed") throw mixedCollations(collation);
  const { name, namespace } = collation;
  const place = namespace === undefined ? "" : `${quoted(namespace)}.`;
  return ` COLLATE ${place}${quoted(name)}`;
}

function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) && name !== "default"
    ? name
    : `"${name.replaceAll('"', '""')}"`;
}

export function sameCollation(left: Collation | undefined, right: Collation | undefined): boolean {
  if (left === right) return true;
  if (left === undefined || right === undefined) return false;
  if (left.kind === "mixed" || right.kind === "mixed") return left.kind === right.kind;
  return left.typeId === right.typeId && left.name === right.name;
}

/** The collation that an expression inherits from its parts. */
export interface DerivedCollation {
  readonly collation: Collation | undefined;
  readonly isExplicit: boolean;
}

const NO_COLLATION: DerivedCollation = { collation: undefined, isExplicit: false };

/**
 * Derives the collation of an expression from the types of its parts, as PostgreSQL does: COLLATE
 * overrides columns' collations, and a column's collation overrides the default.
 *
 * @throws {DatabaseError} TYPE_MISMATCH if COLLATE clauses contradict each other.
 */
export function derivedCollation(types: readonly DataType[]): DerivedCollation {
  let derived = NO_COLLATION;
  for (const type of types) {
    const text = textIn(type);
    if (text?.collation === undefined) continue;
    derived = joined(derived, {
      collation: text.collation,
      isExplicit: text.isExplicit === true,
    });
  }
  return derived;
}

function textIn(type: DataType): TextType | undefined {
  if (type.kind === "array") return textIn(type.element);
  return type.kind === "text" ? type : undefined;
}

function joined(one: DerivedCollation, other: DerivedCollation): DerivedCollation {
  if (one.collation === undefined) return other;
  if (other.collation === undefined) return one;
  const isSame = sameCollation(one.collation, other.collation);
  if (one.isExplicit && other.isExplicit && !isSame) {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot combine COLLATE ${collationName(one.collation)} with COLLATE ` +
        `${collationName(other.collation)}: an expression can have only one collation`,
      { hint: "use the same COLLATE for all operands, or COLLATE for only one of them" },
    );
  }
  if (isSame) return one.isExplicit ? one : other;
  if (one.isExplicit) return one;
  if (other.isExplicit) return other;
  if (one.collation.kind === "mixed") return one;
  if (other.collation.kind === "mixed") return other;
  const names = [collationName(one.collation), collationName(other.collation)] as const;
  return { collation: { kind: "mixed", names }, isExplicit: false };
}

/** Returns a type with the collation that it inherits from the types of its parts. */
export function withDerivedCollation(type: DataType, parts: readonly DataType[]): DataType {
  if (!isCollatable(type) || !parts.some((part) => collationOf(part) !== undefined)) return type;
  const { collation, isExplicit } = derivedCollation(parts);
  return withCollation(type, collation, isExplicit);
}

/**
 * Returns the type under which text, or arrays of text, is compared. The collation matters only
 * for ordering, and for equality if it is nondeterministic.
 *
 * @throws {DatabaseError} TYPE_MISMATCH if the collation matters but is mixed.
 */
export function comparedTextType(type: DataType, { isOrder }: { isOrder: boolean }): DataType {
  const collation = collationOf(type);
  if (collation === undefined) return type;
  if (collation.kind === "mixed") throw mixedCollations(collation);
  const isKept = collation.kind === "icu" && (isOrder || !collation.isDeterministic);
  return withCollation(type, isKept ? collation : undefined);
}

/**
 * Returns the error for an operation that needs a collation but operates on text with conflicting
 * collations.
 */
export function mixedCollations({ names: [one, other] }: MixedCollation): DatabaseError {
  return new DatabaseError(
    "TYPE_MISMATCH",
    `Cannot determine the collation: the operands have the different collations ${one} and ` +
      other,
    { hint: `add COLLATE to one of the operands, as in x COLLATE ${one}` },
  );
}

const comparators = new Map<string, Intl.Collator>();

/** Returns the collator with which ICU compares text by the given rules. */
function collatorFor({ ignoresPunctuation, locale, sensitivity }: IcuRules): Intl.Collator {
  const key = `${locale} ${sensitivity} ${ignoresPunctuation === true}`;
  let collator = comparators.get(key);
  if (collator === undefined) {
    collator = new Intl.Collator(locale, {
      usage: "sort",
      sensitivity,
      ignorePunctuation: ignoresPunctuation === true,
    });
    comparators.set(key, collator);
  }
  return collator;
}

/**
 * Returns a collation's comparison function. @throws {DatabaseError} TYPE_MISMATCH if the
 * collation is mixed
 */
export function textComparatorFor(collation: Collation): (left: string, right: string) => number {
  if (collation.kind === "mixed") throw mixedCollations(collation);
  if (collation.kind === "code points") return compareCodePoints;
  const { compare: compareByIcu } = collatorFor(collation);
  const compare = (left: string, right: string): number =>
    compareByIcu(withSortedMarks(left), withSortedMarks(right));
  if (!collation.isDeterministic)
    return (left, right) => (left === right ? 0 : compare(left, right));
  return (left, right) =>
    left === right ? 0 : compare(left, right) || compareCodePoints(left, right);
}

/**
 * Returns a string that is the same for exactly those strings that a collation considers equal.
 *
 * @throws {DatabaseError} TYPE_MISMATCH if the collation is mixed
 */
export function textKeyOf(collation: Collation, text: string): string {
  if (collation.kind === "mixed") throw mixedCollations(collation);
  if (collation.kind === "code points" || collation.isDeterministic) return text;
  return collationKeyOf(collation, collatorFor(collation), text);
}

/**
 * Returns the BCP 47 tag of the language that determines how letters change case; undefined if the
 * text has no ICU collation.
 */
export function caseLocaleOf(type: DataType): string | undefined {
  const collation = collationOf(type);
  return collation?.kind === "icu" ? collation.locale : undefined;
}
