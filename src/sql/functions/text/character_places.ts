/**
 * Finds where characters first stand in a text: functions ask this for every character of another
 * text. A Map of a million entries takes a fifth of a second to fill; a table of all code points is
 * filled in milliseconds, but is too large for a few characters.
 */

/** The number of UTF-16 units up to which a Map is smaller and faster. */
const MAPPED_MAX = 256;

const CODE_POINTS = 0x110000;

export class CharacterPlaces {
  /** The place of each code point, counted from 1; 0 if the text does not have it. */
  readonly #table: Int32Array | undefined;
  readonly #map: Map<number, number> | undefined;

  constructor(characters: string) {
    if (characters.length > MAPPED_MAX) this.#table = new Int32Array(CODE_POINTS);
    else this.#map = new Map();
    let place = 0;
    for (let at = 0; at < characters.length; at += 1) {
      const code = characters.codePointAt(at) ?? 0;
      if (code > 0xffff) at += 1;
      place += 1;
      this.#add(code, place);
    }
  }

  /** The place of a code point, counted from 0; -1 if the text does not have it. */
  of(code: number): number {
    return (this.#table?.[code] ?? this.#map?.get(code) ?? 0) - 1;
  }

  #add(code: number, place: number): void {
    if (this.of(code) !== -1) return;
    if (this.#table !== undefined) this.#table[code] = place;
    else this.#map?.set(code, place);
  }
}

/** The code points of a text. */
export function codePointsOf(text: string): Uint32Array {
  const codes = new Uint32Array(text.length);
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.codePointAt(at) ?? 0;
    if (code > 0xffff) at += 1;
    codes[count] = code;
    count += 1;
  }
  return codes.subarray(0, count);
}

/** Joins code points to a text without an object for each. */
export class CharacterWriter {
  readonly #units: Uint16Array;
  #length = 0;

  /** @param charactersMax The number of code points that will be added at most. */
  constructor(charactersMax: number) {
    this.#units = new Uint16Array(2 * charactersMax);
  }

  add(code: number): void {
    if (code <= 0xffff) {
      this.#units[this.#length] = code;
      this.#length += 1;
      return;
    }
    this.#units[this.#length] = 0xd800 + ((code - 0x10000) >> 10);
    this.#units[this.#length + 1] = 0xdc00 + ((code - 0x10000) & 0x3ff);
    this.#length += 2;
  }

  toString(): string {
    return Buffer.from(this.#units.buffer, 0, 2 * this.#length).toString("utf16le");
  }
}
