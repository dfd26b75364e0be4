/**
 * Long VALUES of expressions in FROM, bound before the query that they stand in: a query is bound
 * in one go, and 20,000 rows of expressions take a tenth of a second.
 *
 * Their rows must stand for themselves. What reads something around them, holds a query or does not
 * bind is left to the query, which also knows what to say of it.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { From, QueryStatement, ValuesStatement } from "../../parse/ast/ast.ts";
import type { StatementBinding } from "../binding.ts";
import { Scope } from "../scope.ts";
import { bindRows } from "./values_binder.ts";

/** Fewer rows are bound where they stand. */
const ROWS_MIN = 64;

/** Binds them in steps, and leaves them with the statement. */
export function* bindLongValues(
  node: QueryStatement,
  statement: StatementBinding,
): Generator<void, void> {
  for (const values of longValuesIn(node)) {
    try {
      const place = { statement, scope: new Scope([]), clause: "VALUES", sink: undefined };
      statement.longRows.set(values.values, yield* bindRows(values, place));
    } catch (error) {
      // Safe: the rows are bound once more at their place, and what is wrong is found again.
      if (!(error instanceof DatabaseError)) throw error;
    }
  }
}

/** Those that a query reads, but for queries inside of expressions. */
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
    case "insert": {
      const { insert } = query;
      const isOfLiterals = insert.type === "default values" || insert.type === "literal values";
      if (isOfLiterals) return [];
      const isSorted = insert.type !== "values" || insert.orderBy !== undefined;
      // INSERT binds the rows of its own VALUES in steps, as its columns take them.
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
