/**
 * Decodes the writes in the body of a log frame row by row, either into lists, for tools that show
 * a log, or directly into the rows' destination. See `format.ts` for the format.
 */
import { ByteReader } from "../../base/byte_reader.ts";
import { readValue, skipValue, type Value } from "../../types/mod.ts";
import {
  FRAME_HEADER_BYTES,
  type Frame,
  OPERATION_CODES,
  ROW_HAS_PREV,
  ROW_HAS_SEQ,
} from "./format.ts";

/** The columns for which a write's rows have values, in order. */
export interface LoggedColumns {
  readonly columnIds: readonly number[];
  /** How each logged column is stored, as returned by `formOf`. */
  readonly forms: readonly number[];
}

export interface LoggedHead {
  readonly tableId: number;
  readonly owner: number;
  readonly operation: keyof typeof OPERATION_CODES;
  /**
   * The columns of the rows. The object is the same as for the previous write if the columns are
   * the same.
   */
  readonly columns: LoggedColumns;
  readonly rowCount: number;
}

export interface LoggedWrite extends LoggedColumns {
  readonly tableId: number;
  readonly owner: number;
  readonly operation: LoggedHead["operation"];
  readonly seqs: readonly number[];
  readonly prevs: readonly number[];
  readonly rows: readonly (readonly Value[])[];
}

/** Receives the rows of one write. */
export interface RowTaker {
  /** The seq up to which rows are skipped. Skipping a row costs much less than decoding it. */
  readonly skipsUpTo: number;
  /** Reads one value per column of a row, starting at the current position of `from`. */
  takeRow(from: ByteReader, seq: number, prev: number): void;
}

/** Reads the writes in consecutive frames. */
export class WriteReader {
  #columns: LoggedColumns = { columnIds: [], forms: [] };

  /**
   * Reads all writes of a frame.
   *
   * @param takerOf Returns the receiver of a write's rows; undefined if all of them are to be
   *   skipped.
   * @throws {CorruptionError}
   */
  read(frame: Frame, takerOf: (head: LoggedHead) => RowTaker | undefined): void {
    const { body, firstSeq, offset, path } = frame;
    const from = new ByteReader(body, { path, fileOffset: offset + FRAME_HEADER_BYTES });
    let lastSeq = firstSeq - 1;
    while (from.remaining > 0) {
      const head = this.#head(from);
      lastSeq = readRows(from, { head, taker: takerOf(head), lastSeq });
    }
  }

  #head(from: ByteReader): LoggedHead {
    const tableId = from.u32();
    const owner = from.u53();
    const operation =
      operationFromCode(from.u8()) ?? from.fail("the log contains an unknown operation");
    this.#readColumns(from);
    return { tableId, owner, operation, columns: this.#columns, rowCount: from.u32() };
  }

  #readColumns(from: ByteReader): void {
    const { columnIds, forms } = this.#columns;
    const count = from.u16();
    const start = from.position;
    let isSame = count === columnIds.length;
    for (let index = 0; isSame && index < count; index += 1) {
      isSame = from.u16() === columnIds[index] && from.u8() === forms[index];
    }
    if (isSame) return;
    from.position = start;
    const others: { columnIds: number[]; forms: number[] } = { columnIds: [], forms: [] };
    for (let index = 0; index < count; index += 1) {
      others.columnIds.push(from.u16());
      others.forms.push(from.u8());
    }
    this.#columns = others;
  }
}

/** Reads the rows of a write. Returns the seq of the last row. */
function readRows(
  from: ByteReader,
  {
    head: { columns, rowCount },
    lastSeq,
    taker,
  }: { head: LoggedHead; taker: RowTaker | undefined; lastSeq: number },
): number {
  const columnCount = columns.columnIds.length;
  const skipsUpTo = taker?.skipsUpTo ?? Infinity;
  let seq = lastSeq;
  for (let index = 0; index < rowCount; index += 1) {
    const flags = from.u8();
    seq = (flags & ROW_HAS_SEQ) === 0 ? seq + 1 : from.u53();
    const prev = (flags & ROW_HAS_PREV) === 0 ? 0 : from.u53();
    if (taker !== undefined && seq > skipsUpTo) {
      taker.takeRow(from, seq, prev);
      continue;
    }
    for (let column = 0; column < columnCount; column += 1) skipValue(from);
  }
  return seq;
}

/**
 * Reads the writes in the body of a complete commit, or of a part of a commit.
 *
 * @throws {CorruptionError}
 */
export function decodeWrites(frame: Frame): LoggedWrite[] {
  const writes: LoggedWrite[] = [];
  new WriteReader().read(frame, ({ columns, operation, owner, tableId }) => {
    const { columnIds, forms } = columns;
    const seqs: number[] = [];
    const prevs: number[] = [];
    const rows: Value[][] = [];
    writes.push({ tableId, owner, operation, columnIds, forms, seqs, prevs, rows });
    return {
      skipsUpTo: 0,
      takeRow(from, seq, prev) {
        seqs.push(seq);
        prevs.push(prev);
        rows.push(columnIds.map(() => readValue(from)));
      },
    };
  });
  return writes;
}

function operationFromCode(code: number): LoggedHead["operation"] | undefined {
  switch (code) {
    case OPERATION_CODES.insert:
      return "insert";
    case OPERATION_CODES.update:
      return "update";
    case OPERATION_CODES.delete:
      return "delete";
    default:
      return undefined;
  }
}
