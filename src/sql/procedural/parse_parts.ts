/**
 * Parses parts of PL/pgSQL that several statements share: assignment targets, row sources and
 * arguments.
 */
import type { BodyParser } from "./body_parser.ts";
import { statementPiece } from "./body_tokens.ts";
import { findName } from "./names.ts";
import type {
  CursorArgument,
  IntoNode,
  RowsNode,
  TargetNode,
  TargetStep,
  ValuePiece,
} from "./tree.ts";

/** Reads an assignment target: a variable, or a part of a variable. */
export function parseTarget(parser: BodyParser, mayBeElement: boolean): TargetNode {
  const { tokens } = parser;
  const { line } = tokens;
  const name = tokens.writtenName();
  const parts = name?.parts ?? [];
  const found = findName(parts, parser.names);
  if (found === undefined) {
    if (name === undefined) throw tokens.unexpected("a variable");
    throw tokens.wrong(`the variable "${parts.join(".")}" does not exist`);
  }
  tokens.token += parts.length * 2 - 1;
  const steps: TargetStep[] = found.fields.map((each) => ({ kind: "field", name: each }));
  if (mayBeElement) steps.push(...parseSteps(parser));
  const { isConstant, name: shown } = parser.variable(found.slot);
  if (isConstant) throw tokens.wrong(`the variable "${shown}" is CONSTANT`, line);
  return { slot: found.slot, steps };
}

function parseSteps(parser: BodyParser): TargetStep[] {
  const { tokens } = parser;
  const steps: TargetStep[] = [];
  while (tokens.isAny("[", ".")) {
    if (tokens.accept(".")) steps.push({ kind: "field", name: tokens.name("a field") });
    else steps.push(parseSubscript(parser));
  }
  return steps;
}

function parseSubscript(parser: BodyParser): TargetStep {
  const { tokens } = parser;
  tokens.expect("[");
  const from = tokens.is(":") ? undefined : parser.value(":", "]");
  if (!tokens.accept(":")) {
    tokens.expect("]");
    if (from === undefined) throw tokens.unexpected("a position");
    return { kind: "element", at: from };
  }
  const to = tokens.is("]") ? undefined : parser.value("]");
  tokens.expect("]");
  return { kind: "slice", from, to };
}

/** Reads the targets `[STRICT] a, b` after INTO. */
export function parseInto(parser: BodyParser): IntoNode {
  const isStrict = parser.tokens.accept("strict");
  const targets = [parseTarget(parser, false)];
  while (parser.tokens.accept(",")) targets.push(parseTarget(parser, false));
  return { targets, isStrict };
}

/**
 * Reads a source of rows, a query or `EXECUTE text USING …`, which ends before one of the given
 * words.
 */
export function parseSource(parser: BodyParser, ends: readonly string[]): RowsNode {
  const { tokens } = parser;
  const { line } = tokens;
  if (tokens.accept("execute")) {
    const text = parser.value("using", ...ends);
    return { kind: "execute", text, using: parseUsing(parser, ends) };
  }
  const text = tokens.textUntil(ends, "a query");
  const statement = tokens.within(line, () => statementPiece(text, parser.names));
  return { kind: "statement", statement };
}

export function parseUsing(parser: BodyParser, ends: readonly string[]): ValuePiece[] {
  if (!parser.tokens.accept("using")) return [];
  const using = [parser.value(",", ...ends)];
  while (parser.tokens.accept(",")) using.push(parser.value(",", ...ends));
  return using;
}

/** Reads the name of a cursor variable. Returns the slot of the variable. */
export function cursorVariable(parser: BodyParser): number {
  const { line } = parser.tokens;
  const { slot, steps } = parseTarget(parser, false);
  if (steps.length === 0) return slot;
  throw parser.tokens.wrong("a cursor must be a variable", line);
}

/** Reads the arguments `(a, name := b)` of a bound cursor. */
export function parseCursorArguments(parser: BodyParser): CursorArgument[] {
  const { tokens } = parser;
  const args: CursorArgument[] = [];
  if (!tokens.accept("(")) return args;
  if (tokens.accept(")")) return args;
  do {
    const isNamed = tokens.isName() && (tokens.word(1) === ":=" || tokens.word(1) === "=>");
    const name = isNamed ? tokens.name("a parameter") : undefined;
    if (isNamed) tokens.token += 1;
    args.push({ name, value: parser.value(",", ")") });
  } while (tokens.accept(","));
  tokens.expect(")");
  return args;
}
