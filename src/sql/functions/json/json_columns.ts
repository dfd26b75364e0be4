/**
 * Containment over documents that are not decoded: whoever contains a document has certain bytes.
 *
 * Those are searched through all rows at once, so rows without them cost next to nothing; the
 * others are looked at one by one. JSONB writes each string in one way. JSON may escape any
 * character, so there a row with a backslash is always looked at.
 */
import {
  isJsonArray,
  isJsonObject,
  type JsonNode,
  type Utf8Vector,
  type Vector,
  withoutFractionZeros,
} from "../../../types/mod.ts";

/** What a document must have to contain another one. */
export interface SoughtBytes {
  /** Each of them; a row without one of them contains nothing of the kind. */
  readonly pieces: readonly Buffer[];
  /** Whether a row with a backslash may have them in another form. */
  readonly mayBeEscaped: boolean;
}

/** Pieces beyond so many leave out few more rows. */
const PIECES_MAX = 4;

/**
 * @param isCanonical Of the documents that are searched: whether they are JSONB.
 * @returns undefined if nothing is certain about their bytes.
 */
export function soughtBytes(inner: JsonNode, isCanonical: boolean): SoughtBytes | undefined {
  const found = new Set<string>();
  addPieces(inner, { before: "", isCanonical, into: found });
  // The longest are the rarest, as a rule.
  const pieces = [...found].toSorted((a, b) => b.length - a.length).slice(0, PIECES_MAX);
  if (pieces.length === 0) return undefined;
  return { pieces: pieces.map((piece) => Buffer.from(piece)), mayBeEscaped: !isCanonical };
}

interface Place {
  /** The key with its colon, where it is certain what stands between both and a value. */
  readonly before: string;
  readonly isCanonical: boolean;
  readonly into: Set<string>;
}

function addPieces(node: JsonNode, place: Place): void {
  const { before, into, isCanonical } = place;
  if (isJsonArray(node)) {
    into.add(`${before}[`);
    for (const element of node) addPieces(element, { ...place, before: "" });
  } else if (isJsonObject(node)) {
    into.add(`${before}{`);
    for (const [key, value] of node) {
      const name = JSON.stringify(key);
      if (!isCanonical) into.add(name);
      addPieces(value, { ...place, before: isCanonical ? `${name}: ` : "" });
    }
  } else if (node !== null && typeof node === "object") {
    // Equal numbers of JSONB begin alike: they differ in zeros behind the point. JSON has
    // exponents.
    if (isCanonical) into.add(before + withoutFractionZeros(node.number));
  } else {
    into.add(before + JSON.stringify(node));
  }
}

const BACKSLASH = 0x5c;

/** Tests the rows that have all bytes; the others do not contain what is sought. */
export function testRowsWith(
  vector: Utf8Vector,
  { mayBeEscaped, pieces }: SoughtBytes,
  test: (text: string) => boolean,
): Vector {
  const { length, nulls, offsets } = vector;
  const { buffer, byteLength, byteOffset } = vector.bytes;
  const all = Buffer.from(buffer, byteOffset, byteLength);
  const searches = pieces.map((piece) => new Search(all, piece));
  const escapes = mayBeEscaped ? new Search(all, BACKSLASH) : undefined;
  const values = new Uint8Array(length);
  for (let row = 0; row < length; row += 1) {
    if (nulls?.[row] === 1) continue;
    const start = offsets[row] ?? 0;
    const end = offsets[row + 1] ?? start;
    const isCandidate =
      searches.every((search) => search.isWithin(start, end)) ||
      escapes?.isWithin(start, end) === true;
    if (isCandidate && test(all.toString("utf8", start, end))) values[row] = 1;
  }
  return { kind: "bool", length, values, nulls };
}

/** A piece in rows that are asked for in their order: no byte is searched twice. */
class Search {
  readonly #all: Buffer;
  readonly #piece: Buffer | number;
  readonly #length: number;
  /** Where the piece lies next, at or behind the last row; beyond all bytes where it does not. */
  #next = -1;

  constructor(all: Buffer, piece: Buffer | number) {
    this.#all = all;
    this.#piece = piece;
    this.#length = typeof piece === "number" ? 1 : piece.length;
  }

  isWithin(start: number, end: number): boolean {
    if (this.#next < start) {
      const found = this.#all.indexOf(this.#piece, start);
      this.#next = found === -1 ? Number.MAX_SAFE_INTEGER : found;
    }
    return this.#next + this.#length <= end;
  }
}
