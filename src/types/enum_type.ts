/**
 * Defines enum types: lists of labels, in the order in which they are declared.
 *
 * Each label has a number, which never changes, and the numbers sort like the labels. A value is
 * the number of its label. A label added between two others gets a number between theirs, so
 * stored values keep their meaning.
 *
 * The catalog replaces the labels of a type in place. Plans, live queries and topics that refer to
 * the type therefore know new labels immediately. A number is never reused for another label.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";

export interface EnumLabel {
  readonly label: string;
  /** The number that represents the label. */
  readonly position: number;
}

export interface EnumType {
  readonly typeId: number;
  namespace: string;
  name: string;
  /** The labels of the type, in order. */
  labels: readonly EnumLabel[];
}

interface Lookup {
  readonly positions: ReadonlyMap<string, number>;
  readonly labels: ReadonlyMap<number, string>;
}

const lookups = new WeakMap<readonly EnumLabel[], Lookup>();

function lookupOf({ labels }: EnumType): Lookup {
  let lookup = lookups.get(labels);
  if (lookup === undefined) {
    lookup = {
      positions: new Map(labels.map(({ label, position }) => [label, position])),
      labels: new Map(labels.map(({ label, position }) => [position, label])),
    };
    lookups.set(labels, lookup);
  }
  return lookup;
}

/**
 * Returns an enum type's name for messages. The namespace is included unless it is the default
 * one.
 */
export function enumName(type: EnumType): string {
  return qualifiedTypeName(type);
}

/**
 * Returns the name of a user-defined type. The namespace is included unless it is the default one.
 */
export function qualifiedTypeName({
  name,
  namespace,
}: {
  readonly name: string;
  readonly namespace: string;
}): string {
  return namespace === "default" ? quoted(name) : `${quoted(namespace)}.${quoted(name)}`;
}

function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name}"`;
}

/** The maximum number of labels listed in an error message. */
const SHOWN_MAX = 10;

/** Returns the number of the label with this text. @throws {DatabaseError} INVALID_VALUE */
export function enumFromText(type: EnumType, text: string): number {
  const position = lookupOf(type).positions.get(text);
  if (position !== undefined) return position;
  const shown = type.labels.slice(0, SHOWN_MAX).map(({ label }) => excerpt(label));
  const more = type.labels.length > SHOWN_MAX ? ", …" : "";
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot read ${excerpt(text)} as ${enumName(type)}: ` +
      (shown.length === 0
        ? "the type has no values"
        : `the values of the type are ${shown.join(", ")}${more}`),
  );
}

/**
 * Returns the label of a value. If the type has been dropped, there are no labels, so the number
 * is returned.
 */
export function textFromEnum(type: EnumType, position: number): string {
  return lookupOf(type).labels.get(position) ?? String(position);
}
