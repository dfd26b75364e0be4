/**
 * Writes `docs/reference/statements.md`: every statement with its syntax, its meaning and the
 * lowest role that may run it. The syntax is in `statements.txt`. The parser checks sentences
 * generated from it, and every kind of statement that the parser accepts must be described.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { minimumRoleOf } from "../../src/auth/permissions.ts";
import { parseStatements } from "../../src/sql/parse/parser.ts";
import { REFUSED_OBJECTS, REFUSED_STATEMENTS } from "../../src/sql/parse/refused.ts";
import { wordsOfClass } from "../../src/sql/parse/text/keywords.ts";
import { STATEMENT_TYPES, statementRight } from "../../src/sql/rights/statement_kinds.ts";
import { code, GENERATED, markdownTable } from "./markdown.ts";
import { type Rules, Sentences } from "./syntax.ts";

/**
 * The number of sentences generated per statement, enough to take each branch of the syntax
 * several times.
 */
const SENTENCES = 400;

interface Section {
  readonly title: string;
  readonly types: readonly string[];
  readonly meaning: string;
  /** The syntax of the statement as it appears in `statements.txt`, including its rules. */
  readonly syntax: string;
  /** The alternative forms of the entire statement. */
  readonly forms: readonly string[];
}

interface Chapter {
  readonly title: string;
  readonly sections: readonly Section[];
}

export function statementsPage(): string {
  const text = readFileSync(join(import.meta.dir, "statements.txt"), "utf8");
  const rules = new Map<string, string>();
  const chapters = text
    .split(/^# /m)
    .slice(1)
    .map((chapter) => chapterFrom(chapter, rules));
  checkSyntax(
    chapters.flatMap(({ sections }) => sections),
    rules,
  );
  const body = chapters.map(
    ({ sections, title }) => `## ${title}\n\n${sections.map(sectionText).join("\n\n")}`,
  );
  return `${GENERATED}

# Statements

Words in capitals are written as they are, in either case. Words in small letters stand for names,
values or a rule that is given below them. \`[ ]\` is optional, \`{ | }\` is a choice, and \`[, …]\`
means that more of the same may follow after commas.

${body.join("\n\n")}

## Refused by name

The server recognises these statements of other systems and refuses them with \`UNSUPPORTED_FEATURE\`
and a hint.

${refusedTable()}

## Reserved words

These words are names only in double quotes: ${wordsOfClass("reserved").map(code).join(", ")}.

These may name functions and types, but tables and columns only in double quotes:
${wordsOfClass("functionOnly").map(code).join(", ")}.
`;
}

function chapterFrom(text: string, rules: Map<string, string>): Chapter {
  const [title = "", ...sections] = text.split(/^## /m);
  return { title: title.trim(), sections: sections.map((section) => sectionFrom(section, rules)) };
}

function sectionFrom(text: string, rules: Map<string, string>): Section {
  const [title = "", types = "", ...lines] = text.split("\n");
  const meaning = lines.filter((line) => !line.startsWith("    ")).join("\n");
  const syntax = lines
    .filter((line) => line.startsWith("    "))
    .map((line) => line.slice(4))
    .join("\n");
  const forms: string[] = [];
  for (const form of syntax.replaceAll(/\n +/g, " ").split("\n")) {
    const [, name, rule] = /^([a-z_]+) = (.*)$/.exec(form) ?? [];
    if (name !== undefined && rule !== undefined) rules.set(name, rule);
    else forms.push(form);
  }
  if (!types.startsWith("types: ")) throw new Error(`Cannot read "${title}": no types`);
  return {
    title,
    types: types.slice("types: ".length).split(", "),
    meaning: meaning.trim(),
    syntax,
    forms,
  };
}

/**
 * Checks that the parser accepts sentences generated for each described statement.
 * @throws {Error} If the parser refuses a sentence, or if a kind of statement has no description.
 */
function checkSyntax(sections: readonly Section[], rules: Rules): void {
  const described = new Set<string>();
  for (const { forms, title, types } of sections) {
    const sentences = new Sentences(rules, 1);
    const seen = new Set<string>();
    for (const form of forms) {
      for (let count = 0; count < SENTENCES; count += 1) {
        seen.add(typeOf(sentences.next(form)));
      }
    }
    if ([...seen].toSorted().join() !== types.toSorted().join()) {
      throw new Error(`Cannot describe ${title}: its sentences are ${[...seen].join(", ")}`);
    }
    for (const type of types) described.add(type);
  }
  const missing = STATEMENT_TYPES.filter((type) => !described.has(type));
  if (missing.length > 0) throw new Error(`Cannot describe ${missing.join(", ")}: no syntax`);
}

function typeOf(sentence: string): string {
  try {
    const [statement] = parseStatements(sentence);
    return statement?.type ?? "";
  } catch (error) {
    throw new Error(`Cannot parse ${sentence}`, { cause: error });
  }
}

function sectionText({ meaning, syntax, title, types }: Section): string {
  const [type = ""] = types;
  return `### ${title}

${meaning} ${rightText(type)}

\`\`\`text
${syntax.replaceAll(/^([a-z_]+) = /gm, "\n$1 =\n    ").replaceAll(/\n\n\n/g, "\n\n")}
\`\`\``;
}

function rightText(type: string): string {
  const right = statementRight(STATEMENT_TYPES.find((each) => each === type) ?? "select");
  if (right === "object") return "The right depends on the object; see [auth.md](../auth.md).";
  const role = minimumRoleOf(right);
  return role === "user"
    ? "Available to every role."
    : `Requires the role ${code(role)} or higher.`;
}

/**
 * Returns the verb that documents the unsupported statements on a kind of object: DROP if its
 * CREATE is listed as a separate statement, otherwise CREATE.
 */
function refusedVerb(object: string): "CREATE" | "DROP" {
  const create = `create ${object.toLowerCase()}`;
  return STATEMENT_TYPES.some((type) => type === create) ? "DROP" : "CREATE";
}

function refusedTable(): string {
  const statements = [...REFUSED_STATEMENTS.values()];
  const objects = [...REFUSED_OBJECTS.values()].map(
    ([object, hint]) => [`${refusedVerb(object)} ${object}`, hint] as const,
  );
  const rows = [...statements, ...objects].map(([construct, hint = ""]) => [construct, hint]);
  return markdownTable(["statement", "instead"], rows);
}
