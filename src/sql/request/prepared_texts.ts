/**
 * Expands PREPARE, EXECUTE and DEALLOCATE within the SQL of a request. Before any statement is
 * bound, each EXECUTE is replaced by the prepared statement, with the given values as constants.
 * Statements run in the order in which they are written, so no other code needs to handle prepared
 * statements. In a transaction that spans requests, EXECUTE can also run statements that earlier
 * requests prepared.
 */
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import type {
  DeallocateStatement,
  ExecutePreparedStatement,
  Expr,
  Name,
  PrepareStatement,
  QueryStatement,
  Statement,
} from "../parse/ast/ast.ts";
import { changesRows, isSelectNode } from "../parse/ast/query_nodes.ts";
import { partsOf, relocated } from "../parse/ast/tree_parts.ts";

/**
 * Replaces each EXECUTE by the prepared statement that it names.
 * @param earlier The statements prepared by earlier requests of the transaction.
 * @param lengthMax The maximum length of the expanded SQL. Without this limit, short SQL could
 *   expand to any number of syntax trees.
 * @throws {DatabaseError} OBJECT_NOT_FOUND, ALREADY_EXISTS, INVALID_PARAMETER, INVALID_SQL
 */
export function withPrepared(
  statements: readonly Statement[],
  {
    earlier,
    lengthMax,
  }: { readonly earlier: ReadonlyMap<string, PrepareStatement>; readonly lengthMax: number },
): readonly Statement[] {
  const prepared = new Map(earlier);
  let length = 0;
  return statements.map((node, statementIndex) => {
    switch (node.type) {
      case "prepare":
        if (prepared.has(node.name.name)) throw preparedTwice(node.name, statementIndex);
        prepared.set(node.name.name, node);
        return node;
      case "deallocate":
        deallocate(prepared, node, statementIndex);
        return node;
      case "execute prepared": {
        const { name } = node;
        const found = prepared.get(name.name);
        if (found === undefined) throw notPrepared(name, statementIndex);
        length += found._location.end - found._location.start;
        if (length > lengthMax) throw tooLong(name, { lengthMax, statementIndex });
        return filling(node, executed(found, node, statementIndex), statementIndex);
      }
      default:
        return node;
    }
  });
}

function deallocate(
  prepared: Map<string, PrepareStatement>,
  { name }: DeallocateStatement,
  statementIndex: number,
): void {
  if (name === undefined) prepared.clear();
  else if (!prepared.delete(name.name)) throw notPrepared(name, statementIndex);
}

function tooLong(
  { _location, name }: Name,
  { lengthMax, statementIndex }: { readonly lengthMax: number; readonly statementIndex: number },
): DatabaseError {
  return new DatabaseError(
    "INVALID_SQL",
    `Cannot execute "${name}": the prepared statements that this request executes have more ` +
      `than ${lengthMax} characters in total`,
    { position: _location.start, statementIndex, hint: "split the request into several" },
  );
}

function notPrepared({ _location, name }: Name, statementIndex: number): DatabaseError {
  return new DatabaseError("OBJECT_NOT_FOUND", `Cannot find prepared statement "${name}"`, {
    position: _location.start,
    statementIndex,
    hint:
      "send PREPARE in the same request or transaction, or send the statement itself with " +
      "parameters ($1, $2, …): its plan is cached anyway",
  });
}

function preparedTwice({ _location, name }: Name, statementIndex: number): DatabaseError {
  return new DatabaseError(
    "ALREADY_EXISTS",
    `Cannot prepare statement "${name}": a prepared statement already has this name`,
    { position: _location.start, statementIndex, hint: `to free the name, run DEALLOCATE ${name}` },
  );
}

/** Returns the prepared statement with its values filled in, at the position of the EXECUTE. */
function executed(
  { parameterCount, statement, types }: PrepareStatement,
  { _location, args, name }: ExecutePreparedStatement,
  statementIndex: number,
): QueryStatement {
  if (args.length !== parameterCount) {
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot execute "${name.name}": it takes ${counted(parameterCount, "value")}, but ` +
        `${args.length} were given`,
      { position: _location.start, statementIndex },
    );
  }
  const values = args.map((operand, index): Expr => {
    const to = types[index];
    return to === undefined ? operand : { type: "cast", to, operand, _location };
  });
  const copy = relocated(statement, _location);
  for (const part of partsOf(copy)) putValues(part, values);
  return copy;
}

/**
 * Returns the prepared statement or, if the EXECUTE fills a table, a CREATE TABLE … AS that
 * contains it.
 * @throws {DatabaseError} INVALID_OPERATION
 */
function filling(
  { _location, name, table }: ExecutePreparedStatement,
  statement: QueryStatement,
  statementIndex: number,
): Statement {
  if (table === undefined) return statement;
  if (isSelectNode(statement) && !changesRows(statement)) {
    return { type: "create table as", ...table, query: statement, _location };
  }
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot fill a table with the rows of "${name.name}": it is not a query`,
    { position: name._location.start, statementIndex },
  );
}

/**
 * Replaces the parameters that are direct children of a node of a copied syntax tree by their
 * values.
 */
function putValues(part: object, values: readonly Expr[]): void {
  for (const [key, { value }] of Object.entries(Object.getOwnPropertyDescriptors(part))) {
    const child: Partial<Expr> = typeof value === "object" && value !== null ? value : {};
    if (child.type !== "parameter" || child.index === undefined) continue;
    Object.assign(part, { [key]: values[child.index - 1] });
  }
}
