/** Parses statements that begin or end a transaction or a savepoint. */
import type {
  BeginStatement,
  SavepointStatement,
  SetTransactionStatement,
  Statement,
} from "./ast/ast.ts";
import type { Cursor, Mutable } from "./cursor.ts";

/** Parses `BEGIN …`, `START TRANSACTION …`, `COMMIT`, `ROLLBACK`, `END` and `ABORT`. */
export function parseTransaction(cursor: Cursor, start: number): Statement {
  const word = cursor.expectOneOf("begin", "start", "commit", "end", "rollback", "abort");
  if (word === "begin" || word === "start") return parseBegin(cursor, start, word);
  cursor.acceptOneOf("work", "transaction");
  if ((word === "rollback" || word === "abort") && cursor.accept("to")) {
    cursor.accept("savepoint");
    return savepoint(cursor, start, "rollback to");
  }
  if (cursor.is("and")) cursor.refuse("AND CHAIN", "begin the next transaction with BEGIN");
  const type = word === "commit" || word === "end" ? "commit" : "rollback";
  return { type, _location: cursor.since(start) };
}

/** Parses `SAVEPOINT n` and `RELEASE [SAVEPOINT] n`. */
export function parseSavepoint(cursor: Cursor, start: number): SavepointStatement {
  if (cursor.expectOneOf("savepoint", "release") === "savepoint") {
    return savepoint(cursor, start, "savepoint");
  }
  cursor.accept("savepoint");
  return savepoint(cursor, start, "release savepoint");
}

function savepoint(
  cursor: Cursor,
  start: number,
  type: SavepointStatement["type"],
): SavepointStatement {
  const name = cursor.name("a savepoint");
  return { type, name, _location: cursor.since(start) };
}

function parseBegin(cursor: Cursor, start: number, word: "begin" | "start"): BeginStatement {
  if (word === "start") cursor.expect("transaction");
  else cursor.acceptOneOf("work", "transaction");
  const modes = parseModes(cursor);
  const type = word === "begin" ? "begin" : "start transaction";
  return { type, ...modes, _location: cursor.since(start) };
}

/**
 * Parses `TRANSACTION mode, …` after SET, and `CHARACTERISTICS AS TRANSACTION mode, …` after SET
 * SESSION. All accepted isolation levels behave the same, so the level is not stored.
 */
export function parseSetTransaction(
  cursor: Cursor,
  start: number,
  { isOfSession }: { isOfSession: boolean },
): SetTransactionStatement {
  if (isOfSession) cursor.expectAll("characteristics", "as");
  cursor.expect("transaction");
  const at = cursor.start;
  const { isolationLevel, writeable } = parseModes(cursor);
  if (isolationLevel === undefined && writeable === undefined) {
    cursor.couldBe("isolation", "read");
    cursor.unexpected("a transaction mode");
  }
  if (writeable === "read only")
    cursor.refuse("SET TRANSACTION READ ONLY", "write BEGIN READ ONLY", at);
  const _location = cursor.since(start);
  return { type: "set transaction", isOfSession, isolationLevel, writeable, _location };
}

type Modes = Pick<BeginStatement, "isolationLevel" | "writeable">;

function parseModes(cursor: Cursor): Modes {
  const made: Mutable<Modes> = { isolationLevel: undefined, writeable: undefined };
  let hasComma = false;
  for (;;) {
    const at = cursor.start;
    if (cursor.acceptAll("isolation", "level")) {
      if (made.isolationLevel !== undefined)
        cursor.fail("found a second isolation level, but only one is allowed", at);
      made.isolationLevel = parseIsolation(cursor);
    } else if (cursor.accept("read")) {
      if (made.writeable !== undefined)
        cursor.fail("found a second READ mode, but only one is allowed", at);
      made.writeable = cursor.expectOneOf("only", "write") === "only" ? "read only" : "read write";
    } else if (!acceptDeferrable(cursor)) {
      break;
    }
    hasComma = cursor.accept(",");
  }
  if (hasComma) {
    cursor.couldBe("isolation", "read");
    cursor.unexpected("a transaction mode");
  }
  return made;
}

/**
 * Reads `[NOT] DEFERRABLE`, which has no effect: no transaction waits for its snapshot, and no
 * READ ONLY transaction fails because of other writers.
 */
function acceptDeferrable(cursor: Cursor): boolean {
  return cursor.accept("deferrable") || cursor.acceptAll("not", "deferrable");
}

function parseIsolation(cursor: Cursor): NonNullable<BeginStatement["isolationLevel"]> {
  if (cursor.is("serializable")) {
    cursor.refuse("ISOLATION LEVEL SERIALIZABLE", "transactions always have snapshot isolation");
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
