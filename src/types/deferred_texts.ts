/**
 * Implements vectors whose strings are created only when first accessed, because a filter may
 * discard all or most rows first.
 */
import { assert } from "../base/assert.ts";
import { type Selection, take, type Utf8Vector, type Vector } from "./vector.ts";

/**
 * Creates the strings of a vector on demand. The source of the strings must remain valid until
 * then.
 */
interface TextMaker {
  /** Creates all strings. Called at most once. */
  make(): Utf8Vector;
  /** Creates the strings of the chosen rows; undefined if creating all strings costs less. */
  choose(selection: Selection): Utf8Vector | undefined;
}

export function deferredTexts(length: number, maker: TextMaker): Utf8Vector {
  return new DeferredTexts(length, maker);
}

/**
 * Selects rows as `take` does, but reads the strings only when first accessed. The source of the
 * strings must remain valid until then.
 */
export function takeLater(vector: Vector, selection: Selection): Vector {
  if (vector.kind !== "utf8") return take(vector, selection);
  return deferredTexts(selection.count, {
    make: () => textsTaken(vector, selection),
    choose: ({ count, rows }) => {
      const chosen = new Uint32Array(count);
      for (let i = 0; i < count; i += 1) chosen[i] = selection.rows[rows[i] ?? 0] ?? 0;
      return textsTaken(vector, { rows: chosen, count });
    },
  });
}

function textsTaken(vector: Utf8Vector, selection: Selection): Utf8Vector {
  const taken = take(vector, selection);
  assert(taken.kind === "utf8", "deferred text: taken vector is not UTF-8 text");
  return taken;
}

class DeferredTexts implements Utf8Vector {
  readonly kind = "utf8";
  readonly length: number;
  readonly #maker: TextMaker;
  #made: Utf8Vector | undefined;

  constructor(length: number, maker: TextMaker) {
    this.length = length;
    this.#maker = maker;
  }

  get bytes(): Uint8Array {
    return this.#texts().bytes;
  }

  get offsets(): Uint32Array {
    return this.#texts().offsets;
  }

  get nulls(): Uint8Array | undefined {
    return this.#texts().nulls;
  }

  choose(selection: Selection): Utf8Vector | undefined {
    return this.#made === undefined ? this.#maker.choose(selection) : undefined;
  }

  #texts(): Utf8Vector {
    this.#made ??= this.#maker.make();
    return this.#made;
  }
}
