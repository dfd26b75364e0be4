/** Computes distances between embeddings, in doubles. */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type DataType,
  embeddingFromText,
  isNumeric,
  TEXT,
  type Value,
} from "../../../types/mod.ts";

type Embedding = Float32Array;

/** Whether a value of this type can be used as an embedding if the other operand is one. */
export function isVectorLike(type: DataType): boolean {
  return (
    type.kind === "embedding" ||
    type.kind === "text" ||
    type.kind === "unknown" ||
    (type.kind === "array" && isNumeric(type.element))
  );
}

/** Returns the type to which an operand is cast before it is passed to {@linkcode vectorOf}. */
export function vectorOperand(type: DataType): DataType {
  if (type.kind === "embedding") return type;
  return type.kind === "array" ? { kind: "array", element: { kind: "double" } } : TEXT;
}

/** Returns an embedding from a value that is an embedding, an array of doubles or a string. */
export function vectorOf(value: Value): Embedding {
  if (value instanceof Float32Array) return value;
  if (typeof value === "string") return vectorFromText(value);
  return Float32Array.from(value as readonly Value[], (item) => {
    if (typeof item === "number") return item;
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot read the array as an embedding: it contains NULL, or has more than one dimension",
    );
  });
}

function vectorFromText(text: string): Embedding {
  const commas = text.split(",").length;
  const isEmpty = /^\s*\[\s*\]\s*$/.test(text);
  return embeddingFromText(isEmpty ? 0 : commas, text);
}

function checkLengths(left: Embedding, right: Embedding): void {
  if (left.length === right.length) return;
  throw new DatabaseError(
    "DIMENSION_MISMATCH",
    `Cannot compare embeddings with ${left.length} and ${right.length} dimensions: both must ` +
      "have the same number of dimensions",
  );
}

export function innerProduct(left: Embedding, right: Embedding): number {
  checkLengths(left, right);
  let sum = 0;
  for (let i = 0; i < left.length; i += 1) sum += (left[i] ?? 0) * (right[i] ?? 0);
  return sum;
}

export function vectorNorm(vector: Embedding): number {
  return Math.sqrt(innerProduct(vector, vector));
}

/** Returns the cosine similarity, which is 0 if a norm is 0. */
export function cosineSimilarity(left: Embedding, right: Embedding): number {
  const product = innerProduct(left, right);
  const norms = Math.sqrt(innerProduct(left, left) * innerProduct(right, right));
  if (norms === 0) return 0;
  return Math.min(1, Math.max(-1, product / norms));
}

/** Returns the cosine distance, which is 1 if a norm is 0. */
export function cosineDistance(left: Embedding, right: Embedding): number {
  return 1 - cosineSimilarity(left, right);
}

export function l2Distance(left: Embedding, right: Embedding): number {
  checkLengths(left, right);
  let sum = 0;
  for (let i = 0; i < left.length; i += 1) sum += ((left[i] ?? 0) - (right[i] ?? 0)) ** 2;
  return Math.sqrt(sum);
}

export function l1Distance(left: Embedding, right: Embedding): number {
  checkLengths(left, right);
  let sum = 0;
  for (let i = 0; i < left.length; i += 1) sum += Math.abs((left[i] ?? 0) - (right[i] ?? 0));
  return sum;
}
