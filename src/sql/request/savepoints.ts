/**
 * Keeps the savepoints of an open transaction, each with the state that it restores: staged rows,
 * row locks, advisory locks, foreign key claims, SET CONSTRAINTS, uploads, acknowledgements,
 * settings, open cursors and definitions.
 *
 * - As in PostgreSQL, a later savepoint hides an earlier savepoint with the same name.
 * - RELEASE removes a savepoint and all later savepoints. ROLLBACK TO keeps the savepoint itself.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { AdvisoryLocks } from "../activity/advisory_locks.ts";
import type { RowLocks } from "../activity/row_locks.ts";
import type { Transaction, TransactionMark } from "../execute/context/transaction.ts";
import type { SavepointStatement } from "../parse/ast/ast.ts";
import type { Cursors, CursorsMark } from "./cursors.ts";
import type { RequestSettings, SettingsMark } from "./request_settings.ts";
import type { AcksMark, TransactionAcks } from "./transaction_acks.ts";
import type { DefinitionsMark, TransactionDefinitions } from "./transaction_definitions.ts";

/** The maximum number of savepoints in one transaction. */
const SAVEPOINTS_MAX = 1000;

interface Savepoint {
  readonly name: string;
  readonly rows: TransactionMark;
  readonly acks: AcksMark;
  readonly advisory: number;
  readonly settings: SettingsMark;
  readonly cursors: CursorsMark;
  /** The changed definitions at the savepoint; undefined if none had been changed before it. */
  readonly definitions: DefinitionsMark | undefined;
}

/** The parts of a transaction that ROLLBACK TO restores. */
export interface RestoredParts {
  readonly transaction: Transaction;
  readonly acks: TransactionAcks;
  readonly settings: RequestSettings;
  readonly locks: RowLocks;
  readonly advisory: AdvisoryLocks;
  readonly cursors: Cursors;
  readonly definitions: TransactionDefinitions | undefined;
}

export class Savepoints {
  #savepoints: Savepoint[] = [];

  get isEmpty(): boolean {
    return this.#savepoints.length === 0;
  }

  has(name: string): boolean {
    return this.#savepoints.some((each) => each.name === name);
  }

  /** Creates a savepoint. @throws {DatabaseError} TRANSACTION_LIMIT */
  add({ name: { name }, _location }: SavepointStatement, parts: RestoredParts): void {
    if (this.#savepoints.length >= SAVEPOINTS_MAX) {
      throw new DatabaseError(
        "TRANSACTION_LIMIT",
        `Cannot create savepoint "${name}": the transaction already has ${SAVEPOINTS_MAX} savepoints`,
        { position: _location.start, hint: "run RELEASE for savepoints that are no longer needed" },
      );
    }
    const { acks, advisory, cursors, definitions, settings, transaction } = parts;
    this.#savepoints.push({
      name,
      rows: transaction.mark(),
      acks: acks.mark(),
      advisory: advisory.markOf(transaction),
      settings: settings.mark(),
      cursors: cursors.mark(),
      definitions: definitions?.mark(),
    });
  }

  /**
   * Releases a savepoint and all later savepoints.
   * @throws {DatabaseError} OBJECT_NOT_FOUND
   */
  release(node: SavepointStatement, { transaction }: RestoredParts): void {
    this.#savepoints = this.#savepoints.slice(0, this.#indexOf(node));
    if (this.isEmpty) transaction.forgetMarks();
  }

  /**
   * Returns to a savepoint. The result contains the definitions that remain changed, if there are
   * any.
   * @throws {DatabaseError} OBJECT_NOT_FOUND
   */
  rollbackTo(node: SavepointStatement, parts: RestoredParts): TransactionDefinitions | undefined {
    const index = this.#indexOf(node);
    const savepoint = this.#savepoints[index];
    this.#savepoints = this.#savepoints.slice(0, index + 1);
    if (savepoint === undefined) return parts.definitions;
    const { definitions, locks, transaction } = parts;
    transaction.undoTo(savepoint.rows, ({ seq }, before) =>
      locks.restore(seq, before, transaction),
    );
    parts.advisory.returnTo(transaction, savepoint.advisory);
    parts.acks.returnTo(savepoint.acks);
    parts.settings.returnTo(savepoint.settings);
    parts.cursors.returnTo(savepoint.cursors);
    if (savepoint.definitions === undefined) return undefined;
    definitions?.returnTo(savepoint.definitions);
    return definitions;
  }

  clear(): void {
    this.#savepoints = [];
  }

  #indexOf({ name: { name }, _location }: SavepointStatement): number {
    const index = this.#savepoints.findLastIndex((each) => each.name === name);
    if (index !== -1) return index;
    throw new DatabaseError(
      "OBJECT_NOT_FOUND",
      `Cannot find savepoint "${name}": the transaction has no savepoint with this name`,
      { position: _location.start },
    );
  }
}
