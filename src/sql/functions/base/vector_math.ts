/**
 * Distances between embeddings, computed in doubles.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type DataType,
  embeddingFromText,
  isNumeric,
  TEXT,
  type Value,
} from "../../../types/mod.ts";

type Numbers = Float32Array;

/** Whether a value of the type can stand for an embedding beside one. */
export function isVectorLike(type: DataType): boolean {
  return (
    type.kind === "embedding" ||
    type.kind === "text" ||
    type.kind === "unknown" ||
    (type.kind === "array" && isNumeric(type.element))
  );
}

/** The type in which an operand reaches {@linkcode vectorOf}. */
export function vectorOperand(type: DataType): DataType {
  if (type.kind === "embedding") return type;
  return type.kind === "array" ? { kind: "array", element: { kind: "double" } } : TEXT;
}

/** An embedding from its own value, an array of doubles, or the text of one. */
export function vectorOf(value: Value): Numbers {
  if (value instanceof Float32Array) return value;
  if (typeof value === "string") return vectorFromText(value);
  return Float32Array.from(value as readonly Value[], (item) => {
    if (typeof item === "number") return item;
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot read the array as an embedding: it has a NULL",
    );
  });
}

function vectorFromText(text: string): Numbers {
  const commas = text.split(",").length;
  const isEmpty = /^\s*\[\s*\]\s*$/.test(text);
  return embeddingFromText(isEmpty ? 0 : commas, text);
}

function checkLengths(left: Numbers, right: Numbers): void {
  if (left.length === right.length) return;
  throw new DatabaseError(
    "DIMENSION_MISMATCH",
    `Cannot compare embeddings of ${left.length} and ${right.length} dimensions: expected the same number`,
  );
}

export function innerProduct(left: Numbers, right: Numbers): number {
  checkLengths(left, right);
  let sum = 0;
  for (let i = 0; i < left.length; i += 1) sum += (left[i] ?? 0) * (right[i] ?? 0);
  return sum;
}

export function vectorNorm(vector: Numbers): number {
  return Math.sqrt(innerProduct(vector, vector));
}

/** 0 where a norm is 0. */
export function cosineSimilarity(left: Numbers, right: Numbers): number {
  const product = innerProduct(left, right);
  const norms = Math.sqrt(innerProduct(left, left) * innerProduct(right, right));
  if (norms === 0) return 0;
  return Math.min(1, Math.max(-1, product / norms));
}

/** 1 where a norm is 0. */
export function cosineDistance(left: Numbers, right: Numbers): number {
  return 1 - cosineSimilarity(left, right);
}

export function l2Distance(left: Numbers, right: Numbers): number {
  checkLengths(left, right);
  let sum = 0;
  for (let i = 0; i < left.length; i += 1) sum += ((left[i] ?? 0) - (right[i] ?? 0)) ** 2;
  return Math.sqrt(sum);
}

export function l1Distance(left: Numbers, right: Numbers): number {
  checkLengths(left, right);
  let sum = 0;
  for (let i = 0; i < left.length; i += 1) sum += Math.abs((left[i] ?? 0) - (right[i] ?? 0));
  return sum;
}
