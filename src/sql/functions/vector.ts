/**
 * Defines functions on embeddings. The second argument may also be an array, or a JSON array as a
 * string.
 */
import { type DataType, DOUBLE, INT, TEXT } from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { Overload, ScalarFunction } from "./base/function.ts";
import {
  cosineDistance,
  cosineSimilarity,
  innerProduct,
  isVectorLike,
  l1Distance,
  l2Distance,
  vectorNorm,
  vectorOf,
} from "./base/vector_math.ts";

type Distance = (left: Float32Array, right: Float32Array) => number;

function isEmbedding(type: DataType | undefined): boolean {
  return type?.kind === "embedding";
}

function ofTwo(distance: Distance): Overload {
  return {
    ...overload(["any", "any"], DOUBLE, () => null),
    specialise: (types) => {
      const [left = TEXT, right = TEXT] = types;
      if (!isVectorLike(left) || !isVectorLike(right)) return undefined;
      return {
        result: DOUBLE,
        evaluate: ([l = null, r = null]) => distance(vectorOf(l), vectorOf(r)),
      };
    },
  };
}

function ofOne(result: DataType, compute: (vector: Float32Array) => number): Overload {
  return {
    ...overload(["any"], result, () => null),
    specialise: (types) => {
      if (!isEmbedding(types[0])) return undefined;
      return { result, evaluate: ([value = null]) => compute(vectorOf(value)) };
    },
  };
}

export const VECTOR_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(["cosine_distance"], ofTwo(cosineDistance)),
  ...functionsNamed(["l2_distance"], ofTwo(l2Distance)),
  ...functionsNamed(["l1_distance"], ofTwo(l1Distance)),
  ...functionsNamed(["inner_product"], ofTwo(innerProduct)),
  ...functionsNamed(["cosine_similarity"], ofTwo(cosineSimilarity)),
  ...functionsNamed(
    ["vector_dims"],
    ofOne(INT, (vector) => vector.length),
  ),
  ...functionsNamed(["vector_norm"], ofOne(DOUBLE, vectorNorm)),
];
