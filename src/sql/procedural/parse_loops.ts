/** Parses loops: LOOP, WHILE, FOR over integers, rows and cursors, and FOREACH. */
import type { DataTypeDef } from "../parse/ast/ast.ts";
import type { BodyParser } from "./body_parser.ts";
import { findName } from "./names.ts";
import { parseCursorArguments, parseSource, parseTarget } from "./parse_parts.ts";
import type { ForeachNode, RowsNode, StatementNode, TargetNode, ValuePiece } from "./tree.ts";

export function parseLoop(parser: BodyParser, label: string | undefined): StatementNode {
  const { line } = parser.tokens;
  const statements = parseInner(parser, label);
  return { kind: "loop", line, label, condition: undefined, statements };
}

export function parseWhile(parser: BodyParser, label: string | undefined): StatementNode {
  const { tokens } = parser;
  const { line } = tokens;
  tokens.expect("while");
  const condition = parser.value("loop");
  return { kind: "loop", line, label, condition, statements: parseInner(parser, label) };
}

/** Reads the body of a loop, `LOOP … END LOOP [label];`. */
function parseInner(parser: BodyParser, label: string | undefined): StatementNode[] {
  const { tokens } = parser;
  tokens.expect("loop");
  parser.enter({ label, isLoop: true });
  const statements = parser.statements("end");
  parser.leave();
  tokens.expect("end", "loop");
  parser.endLabel(label);
  tokens.expect(";");
  return statements;
}

export function parseFor(parser: BodyParser, label: string | undefined): StatementNode {
  const { tokens } = parser;
  const { line } = tokens;
  tokens.expect("for");
  const start = tokens.token;
  // The loop variable does not show which kind of loop this is, so the text after IN is read
  // first.
  const toIn = tokens.distanceTo(["in"]);
  if (toIn === undefined || toIn === 0) throw tokens.unexpected("a variable and IN");
  tokens.token += toIn + 1;
  const around = parser.names;
  const cursor = acceptCursor(parser);
  const isInteger = cursor === undefined && isIntegerLoop(parser);
  const bodyStart = tokens.token;
  const node =
    cursor !== undefined
      ? parseCursorLoop(parser, { cursor, label, line, start })
      : isInteger
        ? parseIntegerLoop(parser, { bodyStart, label, line, start })
        : parseRowLoop(parser, { bodyStart, label, line, start });
  parser.names = around;
  return node;
}

interface LoopPlace {
  readonly label: string | undefined;
  readonly line: number;
  /** The index of the token with the loop variable. */
  readonly start: number;
}

interface PlaceOfRows extends LoopPlace {
  /** The index of the token after IN. */
  readonly bodyStart: number;
}

function isIntegerLoop({ tokens }: BodyParser): boolean {
  const toLoop = tokens.distanceTo(["loop"]);
  const toDots = tokens.distanceTo([".."]);
  return toDots !== undefined && (toLoop === undefined || toDots < toLoop);
}

function parseIntegerLoop(
  parser: BodyParser,
  { bodyStart, label, line, start }: PlaceOfRows,
): StatementNode {
  const { tokens } = parser;
  tokens.token = start;
  const name = tokens.name("a variable");
  tokens.expect("in");
  tokens.token = bodyStart;
  const isReverse = tokens.accept("reverse");
  const from = parser.value("..");
  tokens.expect("..");
  const to = parser.value("by", "loop");
  const by = tokens.accept("by") ? parser.value("loop") : undefined;
  const slot = parser.declare(name, { kind: "type", dataType: INTEGER }, label);
  const statements = parseInner(parser, label);
  return { kind: "integer loop", line, label, slot, from, to, by, isReverse, statements };
}

/** The type of the variable of a loop over integers. */
const INTEGER: DataTypeDef = { name: "integer", _location: { start: 0, end: 0 } };

function parseRowLoop(
  parser: BodyParser,
  { bodyStart, label, line, start }: PlaceOfRows,
): StatementNode {
  const { tokens } = parser;
  tokens.token = start;
  const targets = parseTargets(parser);
  tokens.expect("in");
  tokens.token = bodyStart;
  const source = parseSource(parser, ["loop"]);
  return rowLoop(parser, { source, targets, label, line });
}

function parseTargets(parser: BodyParser): TargetNode[] {
  const targets = [parseTarget(parser, false)];
  while (parser.tokens.accept(",")) targets.push(parseTarget(parser, false));
  return targets;
}

function rowLoop(
  parser: BodyParser,
  {
    label,
    line,
    source,
    targets,
  }: {
    readonly source: RowsNode;
    readonly targets: readonly TargetNode[];
    readonly label: string | undefined;
    readonly line: number;
  },
): StatementNode {
  const statements = parseInner(parser, label);
  return { kind: "row loop", line, label, targets, source, statements };
}

/**
 * Reads a bound cursor, if the loop runs over a cursor. Returns the slot of the cursor variable.
 */
function acceptCursor(parser: BodyParser): number | undefined {
  const { tokens } = parser;
  const found = findName([tokens.nameAt(0) ?? ""], parser.names);
  if (found === undefined || !["loop", "("].includes(tokens.word(1))) return undefined;
  const { declared, name } = parser.variable(found.slot);
  if (declared.kind !== "cursor") return undefined;
  if (declared.cursor === undefined) {
    throw tokens.wrong(`the cursor "${name}" used by the loop must be declared with a query`);
  }
  tokens.token += 1;
  return found.slot;
}

function parseCursorLoop(
  parser: BodyParser,
  { cursor, label, line, start }: LoopPlace & { readonly cursor: number },
): StatementNode {
  const { tokens } = parser;
  const args = parseCursorArguments(parser);
  const end = tokens.token;
  tokens.token = start;
  const slot = parser.declare(tokens.name("a variable"), { kind: "record" }, label);
  tokens.token = end;
  const source = { kind: "cursor", slot: cursor, args } as const;
  return rowLoop(parser, { source, targets: [{ slot, steps: [] }], label, line });
}

export function parseForeach(parser: BodyParser, label: string | undefined): ForeachNode {
  const { tokens } = parser;
  const { line } = tokens;
  tokens.expect("foreach");
  const targets = parseTargets(parser);
  const slice = tokens.accept("slice") ? tokens.integer("the number of dimensions") : 0;
  tokens.expect("in", "array");
  const array: ValuePiece = parser.value("loop");
  const statements = parseInner(parser, label);
  return { kind: "foreach", line, label, targets, slice, array, statements };
}
