/**
 * Binds long VALUES lists of expressions in FROM, in steps, before the query that contains them.
 * The query itself is bound in one tick, so 20,000 rows of expressions would block the event loop
 * for too long.
 *
 * Only self-contained rows are bound beforehand. Rows that read columns of other items, contain a
 * query, or cannot be bound are left to the query, which also reports their errors.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { From, QueryStatement, ValuesStatement } from "../../parse/ast/ast.ts";
import type { StatementBinding } from "../binding.ts";
import { Scope } from "../scope.ts";
import { bindRows } from "./values_binder.ts";

/**
 * The minimum number of rows in a list that is bound separately. A shorter list is bound together
 * with its query.
 */
const ROWS_MIN = 64;

/** Binds long VALUES lists in steps, and stores the bound rows in the statement. */
export function* bindLongValues(
  node: QueryStatement,
  statement: StatementBinding,
): Generator<void, void> {
  for (const values of longValuesIn(node)) {
    try {
      const context = { statement, scope: new Scope([]), clause: "VALUES", sink: undefined };
      statement.longRows.set(values.values, yield* bindRows(values, context));
    } catch (error) {
      // Ignoring the error is safe: the rows are bound again as part of the query, which raises
      // the same error.
      if (!(error instanceof DatabaseError)) throw error;
    }
  }
}

/** Returns the VALUES lists that a query reads, except lists in queries inside expressions. */
function longValuesIn(node: QueryStatement): readonly ValuesStatement[] {
  const found: ValuesStatement[] = [];
  const rest: QueryStatement[] = [node];
  for (let query = rest.pop(); query !== undefined; query = rest.pop()) {
    if (query.type === "values" && query.literals === undefined) {
      if (query.values.length >= ROWS_MIN) found.push(query);
    } else {
      rest.push(...queriesIn(query));
    }
  }
  return found;
}

function queriesIn(query: QueryStatement): readonly QueryStatement[] {
  switch (query.type) {
    case "values":
      return [];
    case "select":
    case "update":
      return queriesOf(query.from ?? []);
    case "delete":
      return queriesOf(query.using ?? []);
    case "merge":
      return queriesOf(query.source);
    case "insert": {
      const { insert } = query;
      if (insert.type === "default values" || insert.type === "literal values") return [];
      if (insert.type === "copy source") return [];
      const isSorted = insert.type !== "values" || insert.orderBy !== undefined;
      // INSERT binds its own VALUES list in steps, with the types of its columns.
      return isSorted || insert.limit !== undefined ? [insert] : [];
    }
    case "with":
    case "with recursive":
      return [...query.bind.map(({ statement }) => statement), query.in];
    default:
      return [query.left, query.right];
  }
}

function queriesOf(items: readonly From[]): readonly QueryStatement[] {
  return items.flatMap((item): readonly QueryStatement[] => {
    if (item.type === "from group") return queriesOf(item.from);
    return item.type === "statement" ? [item.statement] : [];
  });
}
