/**
 * Defines the parts of a JSON path. The parts of a chain such as `$.a[0].size()` are linked by
 * `next`. Each part is applied to the items that the part before it yields.
 */

/** The fields common to all parts of a JSON path. */
interface LinkedPart {
  readonly next?: PathPart;
}

export type PathComparison = "==" | "!=" | "<" | "<=" | ">" | ">=";
export type PathArithmetic = "+" | "-" | "*" | "/" | "%";
export type PathMethod =
  | "type"
  | "size"
  | "double"
  | "ceiling"
  | "floor"
  | "abs"
  | "keyvalue"
  | "datetime";

/** A part of a path that yields true, false or unknown. */
export type PathPredicate = LinkedPart &
  (
    | { readonly kind: "and" | "or"; readonly left: PathPredicate; readonly right: PathPredicate }
    | { readonly kind: "not" | "isUnknown"; readonly operand: PathPredicate }
    | {
        readonly kind: "comparison";
        readonly op: PathComparison;
        readonly left: PathPart;
        readonly right: PathPart;
      }
    | { readonly kind: "startsWith"; readonly left: PathPart; readonly right: PathPart }
    | {
        readonly kind: "likeRegex";
        readonly operand: PathPart;
        readonly pattern: string;
        /** The distinct flags of like_regex, in the order i, s, m, x, q. */
        readonly flags: string;
      }
    | { readonly kind: "exists"; readonly operand: PathPart }
  );

/** An array subscript: either a single index or a range of indexes. */
export interface PathSubscript {
  readonly from: PathPart;
  readonly to?: PathPart;
}

export type PathPart =
  | PathPredicate
  | (LinkedPart &
      (
        | { readonly kind: "null" }
        | { readonly kind: "root" }
        | { readonly kind: "current" }
        | { readonly kind: "last" }
        | { readonly kind: "boolean"; readonly value: boolean }
        /** A number, as text in the canonical form of JSONB. */
        | { readonly kind: "number"; readonly text: string }
        | { readonly kind: "string"; readonly text: string }
        | { readonly kind: "variable"; readonly text: string }
        | { readonly kind: "key"; readonly text: string }
        | { readonly kind: "everyMember" }
        | { readonly kind: "everyElement" }
        | { readonly kind: "subscripts"; readonly subscripts: readonly PathSubscript[] }
        /** A range of nesting levels. Infinity represents `last`. */
        | { readonly kind: "levels"; readonly first: number; readonly last: number }
        | {
            readonly kind: "arithmetic";
            readonly op: PathArithmetic;
            readonly left: PathPart;
            readonly right: PathPart;
          }
        | { readonly kind: "sign"; readonly op: "+" | "-"; readonly operand: PathPart }
        | { readonly kind: "filter"; readonly condition: PathPredicate }
        | { readonly kind: "method"; readonly name: PathMethod; readonly template?: string }
      ));

export interface JsonPath {
  /**
   * Whether the path is strict, so that a missing member or a value of the wrong kind is an error.
   */
  readonly isStrict: boolean;
  readonly root: PathPart;
}

const PREDICATES: ReadonlySet<string> = new Set([
  "and",
  "or",
  "not",
  "isUnknown",
  "comparison",
  "startsWith",
  "likeRegex",
  "exists",
]);

/** Whether a part of a path is a condition. */
export function isCondition<Part extends PathPart>(part: Part): part is Part & PathPredicate {
  return PREDICATES.has(part.kind);
}

/** Whether a part of a path is a condition that ends its chain. */
export function isPredicate(part: PathPart): part is PathPredicate {
  return part.next === undefined && isCondition(part);
}
