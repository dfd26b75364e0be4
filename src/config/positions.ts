/**
 * Finds the position of each key in a TOML file, because the parser does not report positions.
 *
 * The scanner understands only as much TOML as finding keys requires. It need not detect errors,
 * because the file has already been parsed.
 */

/** A position in a file: line and column, both counted from 1. */
export interface KeyPosition {
  readonly line: number;
  readonly column: number;
}

/**
 * Returns the positions of all sections and keys, by dotted path. For a repeated key, returns the
 * first position.
 */
export function keyPositions(toml: string): ReadonlyMap<string, KeyPosition> {
  const scanner = new KeyScanner(toml);
  scanner.readDocument();
  return scanner.positions;
}

/** Joins names into a dotted path. If a name itself contains a dot, the path is ambiguous. */
export function pathOf(names: readonly string[]): string {
  return names.join(".");
}

class KeyScanner {
  readonly positions = new Map<string, KeyPosition>();
  readonly #text: string;
  #offset = 0;

  constructor(text: string) {
    this.#text = text;
  }

  readDocument(): void {
    let section: readonly string[] = [];
    for (;;) {
      this.#skip(BETWEEN_LINES);
      if (this.#offset >= this.#text.length) return;
      if (this.#peek() === "[") {
        this.#skip(/\[+[ \t]*/y);
        section = this.#readKey([]);
        this.#skip(/[ \t]*\]+/y);
      } else {
        this.#readPair(section);
      }
    }
  }

  #readPair(prefix: readonly string[]): void {
    const path = this.#readKey(prefix);
    this.#skip(/[ \t]*=[ \t]*/y);
    this.#readValue(path);
  }

  /** Reads a dotted key and records where each of its names begins. */
  #readKey(prefix: readonly string[]): readonly string[] {
    const path = [...prefix];
    do {
      this.#skip(/[ \t.]*/y);
      const start = this.#offset;
      const name = this.#take(/"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+/y);
      path.push(nameFrom(name));
      const key = pathOf(path);
      if (!this.positions.has(key)) this.positions.set(key, this.#positionOf(start));
      // At invalid TOML, the scan ends, because it would otherwise loop forever.
      if (name === "") this.#offset = this.#text.length;
    } while (/^[ \t]*\./.test(this.#text.slice(this.#offset, this.#offset + 64)));
    return path;
  }

  #readValue(path: readonly string[]): void {
    switch (this.#peek()) {
      case "[":
        this.#readItems("]", () => this.#readValue(path));
        return;
      case "{":
        this.#readItems("}", () => this.#readPair(path));
        return;
      default:
        if (this.#take(STRING) === "") this.#take(/[^,\]}\r\n#]*/y);
    }
  }

  #readItems(close: string, readItem: () => void): void {
    this.#offset += 1;
    for (;;) {
      this.#skip(BETWEEN_ITEMS);
      if (this.#offset >= this.#text.length) return;
      if (this.#peek() === close) {
        this.#offset += 1;
        return;
      }
      readItem();
    }
  }

  #peek(): string | undefined {
    return this.#text[this.#offset];
  }

  #skip(pattern: RegExp): void {
    this.#take(pattern);
  }

  /**
   * Consumes and returns the text that a sticky pattern matches at the current offset; returns an
   * empty string if nothing matches.
   */
  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#offset;
    const [match = ""] = pattern.exec(this.#text) ?? [];
    this.#offset += match.length;
    return match;
  }

  #positionOf(offset: number): KeyPosition {
    const before = this.#text.slice(0, offset).split("\n");
    return { line: before.length, column: (before.at(-1) ?? "").length + 1 };
  }
}

const BETWEEN_LINES = /(?:[ \t\r\n\uFEFF]|#[^\n]*)*/y;
const BETWEEN_ITEMS = /(?:[ \t\r\n,]|#[^\n]*)*/y;
const STRING = /"""(?:[^\\]|\\[^])*?"""+|'''[^]*?'''+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/y;

function nameFrom(written: string): string {
  if (written.startsWith('"')) {
    try {
      return String(JSON.parse(written));
    } catch {
      // The name contains an escape sequence that TOML has but JSON does not. No known key has
      // such a name.
      return written;
    }
  }
  return written.startsWith("'") ? written.slice(1, -1) : written;
}
