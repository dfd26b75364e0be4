/** Parses RAISE. */
import type { BodyParser } from "./body_parser.ts";
import type { ConditionNode, RaiseLevel, RaiseNode, RaiseOption, ValuePiece } from "./tree.ts";

const LEVELS: ReadonlySet<string> = new Set<RaiseLevel>([
  "debug",
  "exception",
  "info",
  "log",
  "notice",
  "warning",
]);

const OPTIONS: ReadonlySet<string> = new Set<RaiseOption>([
  "column",
  "constraint",
  "datatype",
  "detail",
  "errcode",
  "hint",
  "message",
  "schema",
  "table",
]);

export function parseRaise(parser: BodyParser, line: number): RaiseNode {
  const { tokens } = parser;
  tokens.expect("raise");
  if (tokens.accept(";")) {
    return { ...base(line), level: "exception", isAgain: true };
  }
  const level = LEVELS.has(tokens.word()) ? (tokens.name("a level") as RaiseLevel) : "exception";
  let condition: ConditionNode | undefined;
  let format: string | undefined;
  const args: ValuePiece[] = [];
  if (tokens.isString()) {
    format = tokens.string("a format");
    while (tokens.accept(",")) args.push(parser.value(",", "using", ";"));
    requirePlaceholders(parser, { format, args, line });
  } else if (tokens.isName() && !tokens.is("using")) condition = parser.condition();
  const options = tokens.accept("using") ? parseOptions(parser) : [];
  tokens.expect(";");
  return { ...base(line), level, condition, format, args, options };
}

function base(line: number): Omit<RaiseNode, "level"> {
  return {
    kind: "raise",
    line,
    condition: undefined,
    format: undefined,
    args: [],
    options: [],
    isAgain: false,
  };
}

function parseOptions(parser: BodyParser): RaiseNode["options"] {
  const { tokens } = parser;
  const options: RaiseNode["options"][number][] = [];
  do {
    const { line } = tokens;
    const name = tokens.name("an option");
    if (!OPTIONS.has(name)) throw tokens.wrong(`RAISE has no option ${name}`, line);
    if (!tokens.accept("=")) tokens.expect(":=");
    options.push({ name: name as RaiseOption, value: parser.value(",", ";") });
  } while (tokens.accept(","));
  return options;
}

function requirePlaceholders(
  { tokens }: BodyParser,
  { args, format, line }: { format: string; args: readonly ValuePiece[]; line: number },
): void {
  const count = format.replaceAll("%%", "").split("%").length - 1;
  if (count === args.length) return;
  const amount = count > args.length ? "few" : "many";
  throw tokens.wrong(`RAISE has too ${amount} arguments for its format string`, line);
}
