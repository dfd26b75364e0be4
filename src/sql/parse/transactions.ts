/**
 * Where a transaction begins and ends.
 */
import type { BeginStatement, Statement } from "./ast/ast.ts";
import type { Cursor, Mutable } from "./cursor.ts";

/** `BEGIN …`, `START TRANSACTION …`, `COMMIT`, `ROLLBACK`, `END`, `ABORT`. */
export function parseTransaction(cursor: Cursor, start: number): Statement {
  const word = cursor.expectOneOf("begin", "start", "commit", "end", "rollback", "abort");
  if (word === "begin" || word === "start") return parseBegin(cursor, start, word);
  cursor.acceptOneOf("work", "transaction");
  if (cursor.is("to"))
    cursor.refuse("ROLLBACK TO SAVEPOINT", "ROLLBACK ends the whole transaction");
  if (cursor.is("and")) cursor.refuse("AND CHAIN", "begin the next transaction with BEGIN");
  const type = word === "commit" || word === "end" ? "commit" : "rollback";
  return { type, _location: cursor.since(start) };
}

function parseBegin(cursor: Cursor, start: number, word: "begin" | "start"): BeginStatement {
  if (word === "start") cursor.expect("transaction");
  else cursor.acceptOneOf("work", "transaction");
  const made: Mutable<BeginStatement> = {
    type: word === "begin" ? "begin" : "start transaction",
    isolationLevel: undefined,
    writeable: undefined,
    _location: { start: 0, end: 0 },
  };
  let hasComma = false;
  for (;;) {
    const at = cursor.start;
    if (cursor.acceptAll("isolation", "level")) {
      if (made.isolationLevel !== undefined) cursor.fail("found a second isolation level", at);
      made.isolationLevel = parseIsolation(cursor);
    } else if (cursor.accept("read")) {
      if (made.writeable !== undefined) cursor.fail("found a second READ mode", at);
      made.writeable = cursor.expectOneOf("only", "write") === "only" ? "read only" : "read write";
    } else {
      break;
    }
    hasComma = cursor.accept(",");
  }
  if (hasComma) {
    cursor.couldBe("isolation", "read");
    cursor.unexpected("a mode of the transaction");
  }
  made._location = cursor.since(start);
  return made;
}

function parseIsolation(cursor: Cursor): NonNullable<BeginStatement["isolationLevel"]> {
  if (cursor.is("serializable")) {
    cursor.refuse("ISOLATION LEVEL SERIALIZABLE", "transactions have snapshot isolation");
  }
  const word = cursor.expectOneOf("snapshot", "read", "repeatable");
  if (word === "snapshot") return "snapshot";
  if (word === "repeatable") {
    cursor.expect("read");
    return "repeatable read";
  }
  cursor.expect("committed");
  return "read committed";
}
