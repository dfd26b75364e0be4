/**
 * Parses the blocks of a PL/pgSQL body, with their declarations and handlers. Keeps track of the
 * variables and the visible names.
 */
import type { QName } from "../parse/ast/ast.ts";
import { BodyTokens, cursorPiece, typeIn } from "./body_tokens.ts";
import { findName } from "./names.ts";
import type {
  BlockNode,
  ConditionNode,
  CursorDeclaration,
  DeclarationNode,
  DeclaredType,
  HandlerNode,
  ProcedureBody,
  StatementNode,
  ValuePiece,
  VariableNode,
  VisibleName,
} from "./tree.ts";

/** The name of a variable that exists before the body begins to run, such as a parameter. */
export interface GivenName {
  /** The name; undefined for a parameter to which only `$n` can refer. */
  readonly name: string | undefined;
}

export interface BodyContext {
  /** The name of the function, which can qualify its parameters. */
  readonly label: string | undefined;
  /** The variables that the caller provides. They occupy the first slots. */
  readonly given: readonly GivenName[];
  /** The number of caller-provided variables to which `$n` can refer. */
  readonly positionalCount: number;
  readonly returns: ReturnForm;
}

/** The form of RETURN that a body may use. */
export interface ReturnForm {
  readonly kind: "nothing" | "outputs" | "value";
  readonly isSet: boolean;
}

/** A loop or block that encloses the statement being parsed. */
interface AroundStatement {
  readonly label: string | undefined;
  readonly isLoop: boolean;
}

/** The state of parsing a body: its variables, and the names visible at the current position. */
export class BodyParser {
  readonly tokens: BodyTokens;
  readonly returns: ReturnForm;
  names: VisibleName | undefined;
  readonly #variables: VariableNode[] = [];
  readonly #found: number;
  readonly #around: AroundStatement[] = [];

  readonly #parseStatement: (parser: BodyParser) => StatementNode;

  /**
   * Prepares to parse a body.
   *
   * @param parseStatement Parses the next statement of the body.
   */
  constructor(
    text: string,
    { given, label, positionalCount, returns }: BodyContext,
    parseStatement: (parser: BodyParser) => StatementNode,
  ) {
    this.#parseStatement = parseStatement;
    this.tokens = new BodyTokens(text);
    this.returns = returns;
    this.#found = this.#newVariable("found", { kind: "type", dataType: typeIn("boolean") }, label);
    for (const [i, { name }] of given.entries()) {
      const slot = this.#newVariable(name ?? `$${i + 1}`, { kind: "given" }, label);
      if (i < positionalCount && name !== undefined) this.#see(`$${i + 1}`, slot, label);
    }
  }

  body(): Pick<ProcedureBody, "block" | "found" | "variables"> {
    const { tokens } = this;
    const label = this.label();
    if (!tokens.isAny("begin", "declare")) throw tokens.unexpected("DECLARE or BEGIN");
    const block = this.block(label);
    tokens.accept(";");
    if (!tokens.isAtEnd) throw tokens.unexpected("the end of the body");
    return { block, found: this.#found, variables: this.#variables };
  }

  /** Reads a label, `<<label>>`, if one comes next. */
  label(): string | undefined {
    const { tokens } = this;
    if (!tokens.accept("<<")) return undefined;
    const label = tokens.name("a label");
    tokens.expect(">>");
    return label;
  }

  /** Reads the optional label after END. */
  endLabel(label: string | undefined): void {
    const { tokens } = this;
    if (!tokens.isName()) return;
    const { line } = tokens;
    const found = tokens.name("a label");
    if (found === label) return;
    const expected = label === undefined ? "no label" : `the label "${label}"`;
    throw tokens.wrong(`found the label "${found}" after END where ${expected} was expected`, line);
  }

  block(label: string | undefined): BlockNode {
    const { tokens } = this;
    const { line } = tokens;
    const around = this.names;
    this.enter({ label, isLoop: false });
    const declarations = tokens.accept("declare") ? this.#declarations(label) : [];
    tokens.expect("begin");
    const statements = this.statements("end", "exception");
    const { caught, handlers } = this.#handlers();
    tokens.expect("end");
    this.endLabel(label);
    this.leave();
    this.names = around;
    return { kind: "block", line, label, declarations, statements, handlers, caught };
  }

  /** Reads statements up to one of the words `ends`, and stops before that word. */
  statements(...ends: readonly string[]): StatementNode[] {
    const statements: StatementNode[] = [];
    while (!this.tokens.isAny(...ends)) {
      if (this.tokens.isAtEnd) throw this.tokens.unexpected("END");
      statements.push(this.#parseStatement(this));
    }
    return statements;
  }

  enter(around: AroundStatement): void {
    this.#around.push(around);
    if (this.#around.length > DEPTH_MAX) {
      throw this.tokens.wrong(`blocks and loops are nested more than ${DEPTH_MAX} levels deep`);
    }
  }

  leave(): void {
    this.#around.pop();
  }

  /**
   * Whether EXIT or CONTINUE has a target: the labelled loop or block or, without a label, an
   * enclosing loop.
   */
  hasTarget(label: string | undefined, isContinue: boolean): boolean {
    return this.#around.some(
      (each) =>
        (label === undefined ? each.isLoop : each.label === label) && (each.isLoop || !isContinue),
    );
  }

  /** Declares a variable that is visible from this point on. Returns its slot. */
  declare(
    name: string,
    declared: DeclaredType,
    label?: string,
    limits: Pick<VariableNode, "isConstant" | "isNotNull"> = FREE,
  ): number {
    return this.#newVariable(name, declared, label, limits);
  }

  /** Creates a variable without a name, which takes values of any type. Returns its slot. */
  hidden(): number {
    const slot = this.#variables.length;
    this.#variables.push({ name: "", slot, declared: { kind: "record" }, ...FREE });
    return slot;
  }

  variable(slot: number): VariableNode {
    const found = this.#variables[slot];
    if (found === undefined) throw this.tokens.wrong("a variable is missing");
    return found;
  }

  #newVariable(
    name: string,
    declared: DeclaredType,
    label: string | undefined,
    limits: Pick<VariableNode, "isConstant" | "isNotNull"> = FREE,
  ): number {
    const slot = this.#variables.length;
    this.#variables.push({ name, slot, declared, ...limits });
    this.#see(name, slot, label);
    return slot;
  }

  #see(name: string, slot: number, label: string | undefined): void {
    this.names = { name, slot, label, outer: this.names };
  }

  #declarations(label: string | undefined): DeclarationNode[] {
    const { tokens } = this;
    const declarations: DeclarationNode[] = [];
    const seen = new Set<string>();
    while (!tokens.is("begin")) {
      // PL/pgSQL allows DECLARE to be repeated.
      if (tokens.accept("declare")) continue;
      const { line } = tokens;
      if (tokens.is("<<")) throw tokens.unexpected("BEGIN; a label must come before DECLARE");
      const name = tokens.name("a variable or BEGIN");
      if (seen.has(name)) throw tokens.wrong(`the variable "${name}" is declared twice`, line);
      seen.add(name);
      const declaration = this.#declaration(name, label, line);
      if (declaration !== undefined) declarations.push(declaration);
    }
    return declarations;
  }

  #declaration(name: string, label: string | undefined, line: number): DeclarationNode | undefined {
    const { tokens } = this;
    if (tokens.accept("alias")) {
      tokens.expect("for");
      this.#alias(name, label);
      return undefined;
    }
    const isScroll = tokens.accept("no", "scroll") ? false : tokens.accept("scroll") || undefined;
    if (tokens.accept("cursor")) {
      const cursor = this.#cursor(isScroll);
      const slot = this.#newVariable(name, { kind: "cursor", cursor }, label);
      return { line, slot, initial: undefined };
    }
    const isConstant = tokens.accept("constant");
    const declared = this.#type();
    if (tokens.accept("collate")) tokens.name("a collation");
    const isNotNull = tokens.accept("not", "null");
    const hasInitial = tokens.accept(":=") || tokens.accept("=") || tokens.accept("default");
    const initial = hasInitial ? tokens.value([";"], this.names) : undefined;
    tokens.expect(";");
    if (isNotNull && initial === undefined) {
      throw tokens.wrong(`the variable "${name}" is NOT NULL, so it must have a default`, line);
    }
    const slot = this.#newVariable(name, declared, label, { isConstant, isNotNull });
    return { line, slot, initial };
  }

  #alias(name: string, label: string | undefined): void {
    const { tokens } = this;
    const text = tokens.textUntil([";"], "a variable").toLowerCase().replaceAll('"', "");
    const found = findName(text.split("."), this.names);
    if (found === undefined || found.fields.length > 0) {
      throw tokens.wrong(`the variable "${text}" does not exist`);
    }
    tokens.expect(";");
    this.#see(name, found.slot, label);
  }

  /** Reads the type in a variable declaration. */
  #type(): DeclaredType {
    const { tokens } = this;
    const distance = tokens.distanceTo([":=", "=", "default", "not", "collate", ";"]);
    if (distance === undefined || distance === 0) throw tokens.unexpected("a type");
    const isLike = tokens.word(distance - 2) === "%";
    const kind = tokens.word(distance - 1);
    if (isLike && (kind === "type" || kind === "rowtype")) return this.#likeType(distance, kind);
    if (distance === 1 && tokens.is("record")) {
      tokens.token += 1;
      return { kind: "record" };
    }
    const { line } = tokens;
    const text = tokens.take(distance);
    const dataType = tokens.within(line, () => typeIn(text));
    const isCursor = dataType.kind !== "array" && dataType.name === "refcursor";
    return isCursor ? { kind: "cursor", cursor: undefined } : { kind: "type", dataType };
  }

  /** Reads a type reference: `name%TYPE` or `name%ROWTYPE`. */
  #likeType(distance: number, kind: string): DeclaredType {
    const { tokens } = this;
    const parts = tokens.writtenName()?.parts ?? [];
    const { line } = tokens;
    tokens.token += distance;
    const [first = "", second, third] = parts;
    if (kind === "rowtype") {
      return { kind: "row", table: qname(second === undefined ? [first] : [first, second]) };
    }
    const found = findName(parts, this.names);
    if (found !== undefined) {
      return { kind: "variable", slot: found.slot, field: found.fields[0] };
    }
    if (second === undefined) throw tokens.wrong(`the variable "${first}" does not exist`, line);
    if (third === undefined) return { kind: "column", table: qname([first]), column: second };
    return { kind: "column", table: qname([first, second]), column: third };
  }

  #cursor(isScroll: boolean | undefined): CursorDeclaration {
    const { tokens } = this;
    const around = this.names;
    const parameters: { name: string; slot: number }[] = [];
    if (tokens.accept("(")) {
      do {
        const name = tokens.name("a parameter of the cursor");
        const distance = tokens.distanceTo([",", ")"]);
        if (distance === undefined || distance === 0) throw tokens.unexpected("a type");
        const { line } = tokens;
        const text = tokens.take(distance);
        const dataType = tokens.within(line, () => typeIn(text));
        parameters.push({ name, slot: this.declare(name, { kind: "type", dataType }) });
      } while (tokens.accept(","));
      tokens.expect(")");
    }
    if (!tokens.accept("for")) tokens.expect("is");
    const { line } = tokens;
    const text = tokens.textUntil([";"], "the query of a cursor");
    tokens.expect(";");
    const query = tokens.within(line, () => cursorPiece(text, this.names));
    this.names = around;
    return { query, parameters, isScroll };
  }

  #handlers(): Pick<BlockNode, "caught" | "handlers"> {
    const { tokens } = this;
    if (!tokens.accept("exception")) return { caught: undefined, handlers: undefined };
    const text = { kind: "type", dataType: typeIn("text") } as const;
    const around = this.names;
    const caught = {
      state: this.declare("sqlstate", text),
      message: this.declare("sqlerrm", text),
    };
    const handlers: HandlerNode[] = [];
    while (tokens.is("when")) {
      const { line } = tokens;
      tokens.expect("when");
      const conditions = [this.condition()];
      while (tokens.accept("or")) conditions.push(this.condition());
      tokens.expect("then");
      handlers.push({ line, conditions, statements: this.statements("when", "end") });
    }
    this.names = around;
    if (handlers.length === 0) throw tokens.unexpected("WHEN");
    return { caught, handlers };
  }

  /** Reads the name of an error condition, or `SQLSTATE 'xxxxx'`. */
  condition(): ConditionNode {
    const { tokens } = this;
    if (!tokens.accept("sqlstate")) return { kind: "name", name: tokens.name("a condition") };
    const { line } = tokens;
    const state = tokens.string("an SQLSTATE");
    if (/^[0-9A-Z]{5}$/.test(state)) return { kind: "state", state };
    throw tokens.wrong("an SQLSTATE must have five digits or capital letters", line);
  }

  value(...words: readonly string[]): ValuePiece {
    return this.tokens.value(words, this.names);
  }
}

/** The maximum nesting depth of blocks and loops. */
const DEPTH_MAX = 100;

const FREE = { isConstant: false, isNotNull: false } as const;

function qname([first = "", second]: readonly string[]): QName {
  const _location = { start: 0, end: 0 };
  return second === undefined
    ? { name: first, _location }
    : { schema: first, name: second, _location };
}
