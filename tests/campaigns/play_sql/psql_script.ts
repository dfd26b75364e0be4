/**
 * Splits a psql script into its statements and the psql commands that a comparison needs.
 *
 * Variables (`\set`, `\getenv`, `:name`, `:'name'`) are replaced as psql replaces them. Other
 * backslash commands are dropped. The data after `COPY … FROM stdin` belongs to the statement.
 */

export interface ScriptStatement {
  /** The statement without its semicolon and without the comments before it. */
  readonly sql: string;
  /** The number of the line on which the statement begins, counted from 1. */
  readonly line: number;
  /** The lines after `COPY … FROM stdin`, without the closing `\.`. */
  readonly data?: string;
}

const ATOMIC = /^\s*create\b[\s\S]*\b(?:function|procedure)\b[\s\S]*\bbegin\s+atomic\b/i;
const COPY_FROM_STDIN = /^\s*copy\b(?!\s*\()[^;]*\bfrom\s+(?:stdin|pstdin)\b/i;

const FURTHER_COPY = /^copy\b[^;]*\bfrom\s+stdin\b/im;

/**
 * Returns the statements of a script.
 *
 * @param environment The values for `\getenv`.
 */
export function statementsOf(
  script: string,
  environment: Readonly<Record<string, string>> = {},
): ScriptStatement[] {
  return new Splitter(script, environment).statements();
}

class Splitter {
  readonly #script: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #variables = new Map<string, string>();
  readonly #statements: ScriptStatement[] = [];
  #at = 0;
  #text = "";
  #line = 1;

  constructor(script: string, environment: Readonly<Record<string, string>>) {
    this.#script = script;
    this.#environment = environment;
  }

  statements(): ScriptStatement[] {
    let depth = 0;
    while (this.#at < this.#script.length) {
      const rest = this.#script.slice(this.#at, this.#at + 2);
      const sign = rest.charAt(0);
      if (rest === "--") this.#skipTo(lineEnd(this.#script, this.#at));
      else if (rest === "/*") this.#skipTo(commentEnd(this.#script, this.#at));
      else if (sign === "'") this.#take(stringEnd(this.#script, this.#at, this.#isEscaped()));
      else if (sign === '"') this.#take(quoteEnd(this.#script, this.#at + 1, '"'));
      else if (sign === "$") this.#take(dollarEnd(this.#script, this.#at));
      else if (sign === "\\") this.#command();
      else if (sign === ":" && this.#replacesVariable()) continue;
      else if (sign === ";" && depth === 0) this.#end();
      else {
        if (sign === "(") depth += 1;
        if (sign === ")") depth = Math.max(0, depth - 1);
        this.#take(this.#at + (rest === "::" ? 2 : 1));
      }
    }
    this.#end();
    return this.#statements;
  }

  /** Returns whether the string that begins at the current position is preceded by E. */
  #isEscaped(): boolean {
    return /(?:^|[^\w"])e$/i.test(this.#text.slice(-2));
  }

  #take(end: number): void {
    if (this.#text === "") {
      this.#line = this.#script.slice(0, this.#at).split("\n").length;
    }
    const piece = this.#script.slice(this.#at, end);
    this.#text = this.#text === "" ? piece.trimStart() : this.#text + piece;
    this.#at = end;
  }

  #skipTo(end: number): void {
    this.#at = end;
    if (this.#text !== "") this.#text += " ";
  }

  #replacesVariable(): boolean {
    const found = /^:(?:'(\w+)'|"(\w+)"|(\w+))/.exec(this.#script.slice(this.#at, this.#at + 80));
    const name = found?.[1] ?? found?.[2] ?? found?.[3];
    const value = name === undefined ? undefined : this.#variables.get(name);
    if (found === null || value === undefined) return false;
    this.#at += found[0].length;
    if (found[1] !== undefined) this.#text += `'${value.replaceAll("'", "''")}'`;
    else this.#text += found[2] === undefined ? value : `"${value}"`;
    return true;
  }

  /** Executes `\set` and `\getenv`. `\;` and `\g…` end a statement. */
  #command(): void {
    const end = lineEnd(this.#script, this.#at);
    const line = this.#script.slice(this.#at + 1, end);
    this.#at = end;
    const words = line.match(/'(?:[^']|'')*'|:'\w+'|\S+/g) ?? [];
    const [command = "", name = "", ...parts] = words;
    if (command === "getenv") this.#variables.set(name, this.#environment[parts[0] ?? ""] ?? "");
    else if (command === "set" && name !== "") {
      this.#variables.set(name, parts.map((part) => this.#valueOf(part)).join(""));
    } else if (/^g(?:set|exec|desc|x)?$/.test(command)) {
      this.#text = "";
    } else if (/^(?:;|crosstabview)/.test(command)) this.#end();
  }

  #valueOf(part: string): string {
    if (part.startsWith("'")) return part.slice(1, -1).replaceAll("''", "'");
    if (!part.startsWith(":")) return part;
    return this.#variables.get(part.slice(1).replaceAll("'", "")) ?? part;
  }

  #end(): void {
    this.#at += 1;
    // The statements in the body of a standard SQL function belong to the function's definition.
    if (ATOMIC.test(this.#text) && !/\bend\s*$/i.test(this.#text)) {
      this.#text += ";";
      return;
    }
    const sql = this.#text.trim();
    this.#text = "";
    if (sql === "") return;
    if (!COPY_FROM_STDIN.test(sql)) {
      this.#statements.push({ sql, line: this.#line });
      return;
    }
    const from = lineEnd(this.#script, this.#at) + 1;
    const close = /^\\\.$/m.exec(this.#script.slice(from));
    const length = close?.index ?? this.#script.length - from;
    const data = this.#script.slice(from, from + length);
    // A COPY that PostgreSQL refuses has no data, so the data that follows belongs to a later
    // COPY.
    if (FURTHER_COPY.test(data)) {
      this.#statements.push({ sql, line: this.#line });
      return;
    }
    this.#statements.push({ sql, line: this.#line, data });
    this.#at = from + length + 2;
  }
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end;
}

/** Returns the end of a comment. Comments may nest, as in PostgreSQL. */
function commentEnd(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const pair = text.slice(at, at + 2);
    if (pair === "/*") depth += 1;
    if (pair === "*/") depth -= 1;
    if (pair === "/*" || pair === "*/") at += 1;
    if (depth === 0) return at + 1;
  }
  return text.length;
}

function stringEnd(text: string, from: number, isEscaped: boolean): number {
  for (let at = from + 1; at < text.length; at += 1) {
    if (isEscaped && text[at] === "\\") at += 1;
    else if (text[at] === "'") return at + 1;
  }
  return text.length;
}

function quoteEnd(text: string, from: number, quote: string): number {
  const end = text.indexOf(quote, from);
  return end < 0 ? text.length : end + 1;
}

function dollarEnd(text: string, from: number): number {
  const tag = /^\$(?:[A-Za-z_]\w*)?\$/.exec(text.slice(from, from + 70))?.[0];
  if (tag === undefined) return from + 1;
  const end = text.indexOf(tag, from + tag.length);
  return end < 0 ? text.length : end + tag.length;
}
