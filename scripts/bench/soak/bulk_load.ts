/**
 * Generates the load of an initial import: millions of rows, in statements of the maximum length.
 */
import { RefusedStatement, type SoakTarget } from "./target.ts";

export interface BulkReport {
  readonly rowCount: number;
  readonly statementCount: number;
  readonly failures: readonly string[];
}

const TABLE = "loaded";

/** The number of rows per statement. They amount to about 900 KiB of SQL. */
const ROWS_PER_STATEMENT = 9000;

/** The number of statements in progress at the same time. */
const SENDERS = 4;

/** Loads rows of 60 bytes, with several statements in progress at the same time. */
export async function loadInBulk(target: SoakTarget, rowCount: number): Promise<BulkReport> {
  await target.makeTable(TABLE);
  const failures: string[] = [];
  let next = 0;
  let statementCount = 0;
  const send = async (): Promise<void> => {
    while (next < rowCount) {
      const sql = insertOf(
        target.nameOf(TABLE),
        next,
        Math.min(ROWS_PER_STATEMENT, rowCount - next),
      );
      next += ROWS_PER_STATEMENT;
      statementCount += 1;
      try {
        await target.change(TABLE, sql);
      } catch (error) {
        failures.push(error instanceof RefusedStatement ? error.message : String(error));
        // A server that has ended refuses connections immediately. The pause keeps the next
        // attempt from following at once.
        await Bun.sleep(100);
      }
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, send));
  return { rowCount, statementCount, failures };
}

function insertOf(table: string, first: number, count: number): string {
  const rows = Array.from({ length: count }, (_, index) => {
    const id = first + index;
    return `(${id}, ${id % 200}, 'author ${id % 1000}', 'text ${id} ${"abcdefghij".repeat(3)}')`;
  });
  return `INSERT INTO ${table} (id, room, author, body) VALUES ${rows.join(", ")}`;
}
