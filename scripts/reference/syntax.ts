/**
 * Defines the syntax notation in `statements.txt`, and generates sentences from it.
 *
 *     WORD      itself             word      a rule of that name, or a sample of the kind
 *     [ a | b ] nothing, a or b    { a | b } a or b
 *     [, …]     the element before may be repeated after commas
 *     …         the element before may be repeated
 *
 * The parser must accept every generated sentence, so the documented syntax promises nothing that
 * the grammar refuses.
 */

type Node =
  | { readonly kind: "word"; readonly text: string }
  | { readonly kind: "choice"; readonly isOptional: boolean; readonly options: readonly Node[][] }
  | { readonly kind: "repeat"; readonly of: Node; readonly separator: string };

/** The samples for lower-case words that are not names of rules, such as `name`. */
const SAMPLES: Readonly<Record<string, string>> = {
  alias: "x",
  boolean: "true",
  column: "a",
  condition: "a > 0",
  count: "3",
  cursor: "c",
  default_text: "'initial'",
  delete: "DELETE FROM app.t",
  delimiter: "'|'",
  domain: "app.percent",
  do_block:
    "'BEGIN CREATE TYPE app.mood AS ENUM (''ok''); EXCEPTION WHEN duplicate_object THEN null; END'",
  program: "'BEGIN NULL; END'",
  encoding: "'UTF8'",
  enum_type: "app.mood",
  new_collation: "app.nocase",
  collation: '"de-x-icu"',
  expression: "b",
  filesystem: "filesystem",
  from_seq_id: "from_seq_id",
  function_name: "app.f (INT)",
  function_body: "'SELECT 1'",
  batch_size: "batch_size",
  last_rows: "last_rows",
  operator_class: "gin_trgm_ops",
  replay: "replay",
  icu: "icu",
  index: "i",
  savepoint: "s",
  search_path: "search_path",
  function: "unnest",
  copy: "COPY app.t TO STDOUT",
  insert: "INSERT INTO app.t VALUES (1)",
  invitation: "spring",
  merge: "MERGE INTO app.t USING app.s ON TRUE WHEN MATCHED THEN DELETE",
  name: "n",
  namespace: "app",
  number: "7",
  policy: "p",
  trigger: "g",
  policy_role: "user",
  quote: "'\"'",
  query: "SELECT a FROM app.t",
  role: "service",
  sequence: "app.s",
  sql_function: "app.f",
  setting: "statement_timeout",
  storage: "fast",
  string: "'text'",
  table: "app.t",
  table_column: "app.t.a",
  "table.*": "t.*",
  token: "mailer_key",
  topic: "app.jobs",
  type: "BIGINT",
  update: "UPDATE app.t SET a = 1",
  user: "'ada'",
  view: "app.v",
  webhook: "mailer",
  word: "PUBLIC",
};

const DEPTH_MAX = 20;

/**
 * The syntax rules by name. Each value is the right-hand side of the rule, in the notation of
 * `statements.txt`.
 */
export type Rules = ReadonlyMap<string, string>;

/** Generates sentences from a syntax. The same seed produces the same sentences. */
export class Sentences {
  readonly #rules: ReadonlyMap<string, readonly Node[]>;
  #state: number;

  constructor(rules: Rules, seed: number) {
    this.#rules = new Map([...rules].map(([name, text]) => [name, parsed(text)]));
    this.#state = seed;
  }

  /**
   * Generates a sentence that follows the given syntax. Its optional and alternative parts are
   * chosen at random.
   */
  next(syntax: string): string {
    return this.#write(parsed(syntax), 0).join(" ");
  }

  #write(nodes: readonly Node[], depth: number): string[] {
    if (depth > DEPTH_MAX) throw new Error("Cannot write a sentence: a rule contains itself");
    return nodes.flatMap((node) => this.#writeNode(node, depth));
  }

  #writeNode(node: Node, depth: number): string[] {
    if (node.kind === "word") return this.#writeWord(node.text, depth);
    if (node.kind === "repeat") {
      const once = this.#writeNode(node.of, depth);
      if (this.#chance(2) === 0) return once;
      const separator = node.separator === "" ? [] : [node.separator];
      return [...once, ...separator, ...this.#writeNode(node.of, depth)];
    }
    if (node.isOptional && this.#chance(2) === 0) return [];
    return this.#write(node.options[this.#chance(node.options.length)] ?? [], depth + 1);
  }

  #writeWord(text: string, depth: number): string[] {
    const rule = this.#rules.get(text);
    if (rule !== undefined) return this.#write(rule, depth + 1);
    if (!/^[a-z]/.test(text)) return [text];
    const sample = SAMPLES[text];
    if (sample === undefined)
      throw new Error(`Cannot write "${text}": it has neither a rule nor a sample`);
    return [sample];
  }

  /**
   * Returns a random integer from 0 (inclusive) to `count` (exclusive), using a generator from the
   * book Numerical Recipes.
   */
  #chance(count: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * count);
  }
}

function parsed(text: string): readonly Node[] {
  const tokens = text
    .replaceAll("[, …]", " ,… ")
    .split(/\s+/)
    .filter((token) => token !== "");
  const { nodes, end } = sequence(tokens, 0);
  if (end !== tokens.length) throw new Error(`Cannot read syntax: surplus "${tokens[end]}"`);
  return nodes;
}

function sequence(tokens: readonly string[], start: number): { nodes: Node[]; end: number } {
  const nodes: Node[] = [];
  let at = start;
  for (; at < tokens.length; at += 1) {
    const token = tokens[at] ?? "";
    if (token === "]" || token === "}" || token === "|") break;
    if (token === "[" || token === "{") {
      const choice = options(tokens, at);
      nodes.push(choice.node);
      at = choice.end;
    } else if (token === ",…" || token === "…") {
      const of = nodes.pop();
      if (of === undefined) throw new Error("Cannot read syntax: nothing to repeat");
      nodes.push({ kind: "repeat", of, separator: token === ",…" ? "," : "" });
    } else {
      // A token may end with a comma, which is separated from the word here.
      const [, word = "", comma = ""] = /^(.+?)(,?)$/.exec(token) ?? [];
      nodes.push({ kind: "word", text: word });
      if (comma !== "") nodes.push({ kind: "word", text: comma });
    }
  }
  return { nodes, end: at };
}

/**
 * Parses `[ … | … ]` or `{ … | … }`, starting at the opening bracket. The `end` of the result is
 * the position of the closing bracket.
 */
function options(tokens: readonly string[], start: number): { node: Node; end: number } {
  const isOptional = tokens[start] === "[";
  const found: Node[][] = [];
  let at = start;
  do {
    const { nodes, end } = sequence(tokens, at + 1);
    found.push(nodes);
    at = end;
  } while (tokens[at] === "|");
  const closing = isOptional ? "]" : "}";
  if (tokens[at] !== closing) throw new Error(`Cannot read syntax: no "${closing}"`);
  return { node: { kind: "choice", isOptional, options: found }, end: at };
}
