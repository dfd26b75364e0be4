/**
 * Texts that are made when they are first looked at: a filter may leave out all rows before that,
 * or all but a few.
 */
import { assert } from "../base/assert.ts";
import { type Selection, take, type Utf8Vector, type Vector } from "./vector.ts";

/** How texts are made, while their vector is valid. */
interface TextMaker {
  /** All of them; called once at most. */
  make(): Utf8Vector;
  /** Chosen ones; undefined where it is less work to make all. */
  choose(selection: Selection): Utf8Vector | undefined;
}

export function deferredTexts(length: number, maker: TextMaker): Utf8Vector {
  return new DeferredTexts(length, maker);
}

/** As `take`; of deferred texts, once they are looked at, and as long as those are valid. */
export function takeLater(vector: Vector, selection: Selection): Vector {
  if (!(vector instanceof DeferredTexts)) return take(vector, selection);
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
  assert(taken.kind === "utf8", "texts are taken as texts");
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
