/**
 * Implements nextval, currval, lastval and setval for statements on the event loop.
 *
 * currval and lastval return numbers that the same request or its transaction has taken earlier.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Catalog, SequenceEntry, SequenceMark } from "../../catalog/mod.ts";
import type { Whole } from "../../types/mod.ts";
import type { TakenNumbers } from "../execute/context/taken_numbers.ts";
import type { NextNumberRight, SequenceCalls } from "../functions/base/function.ts";
import {
  requireSequenceUse,
  type SequenceUse,
  sequenceNotFound,
  sequencesOf,
  sequenceText,
} from "../names/sequences.ts";
import { visibleTable } from "../names/table_names.ts";
import { nameInText } from "../parse/name_in_text.ts";
import type { AttemptNumbers } from "./attempt_numbers.ts";

/** The operations of the catalog that manage the numbers of sequences. */
export type SequenceCatalog = Pick<
  Catalog,
  | "namespace"
  | "nextNumber"
  | "sequence"
  | "sequenceMark"
  | "sequences"
  | "setNumber"
  | "table"
  | "tableById"
  | "takeBackNumbers"
  | "version"
>;

export interface SequenceCallsOptions {
  readonly catalog: SequenceCatalog;
  readonly principal: Principal;
  /** The namespace in which sequence functions look up unqualified names. */
  readonly namespace: string;
  /**
   * The numbers that the request has taken from sequences, followed by the numbers that its
   * transaction has taken.
   */
  readonly taken: readonly TakenNumbers[];
  readonly isReadOnly: boolean;
  /**
   * Records the numbers that the current attempt to run the statement takes; absent if the
   * statement cannot be restarted.
   */
  readonly attempt: AttemptNumbers | undefined;
}

export class OwnSequenceCalls implements SequenceCalls {
  readonly #options: SequenceCallsOptions;
  /** The sequences found by name. They remain valid as long as the catalog is unchanged. */
  readonly #found = new Map<string, SequenceEntry>();
  #foundVersion: number;

  constructor(options: SequenceCallsOptions) {
    this.#options = options;
    this.#foundVersion = options.catalog.version;
  }

  next(text: string, right: NextNumberRight): Whole {
    const { attempt, catalog, taken: takers } = this.#options;
    const sequence = right === "definer" ? this.#named(text) : this.#usable(text, "take");
    if (right === "caller") this.#requireWritable("nextval");
    attempt?.touch(sequence, { catalog, taken: takers });
    const value = catalog.nextNumber(sequence);
    attempt?.note(sequence, value, true);
    for (const taken of takers) taken.note(sequence.sequenceId, value);
    return value;
  }

  giveBack(text: string, { last, used }: { used: Whole; last: Whole }): void {
    const { attempt, catalog } = this.#options;
    const sequence = this.#named(text);
    const { sequenceId } = sequence;
    const markOf = (value: Whole): SequenceMark => {
      return { sequenceId, value: String(value), isCalled: true };
    };
    catalog.takeBackNumbers(sequence, markOf(last), markOf(used));
    attempt?.note(sequence, used, true);
    for (const taken of this.#options.taken) taken.note(sequenceId, used);
  }

  current(text: string): Whole {
    const { namespace, name, sequenceId } = this.#usable(text, "take");
    for (const taken of this.#options.taken) {
      const value = taken.of(sequenceId);
      if (value !== undefined) return value;
    }
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot return the current value of sequence ${namespace}.${name}: this request has not called nextval for it`,
      {
        hint:
          "call nextval in the same request or transaction first, or read the number with " +
          "RETURNING",
      },
    );
  }

  last(): Whole {
    for (const taken of this.#options.taken) {
      if (taken.last !== undefined) return taken.last;
    }
    throw new DatabaseError(
      "INVALID_OPERATION",
      "Cannot return the last value of a sequence: this request has not called nextval",
      {
        hint:
          "call nextval in the same request or transaction first, or read the number with " +
          "RETURNING",
      },
    );
  }

  set(text: string, value: Whole, isCalled: boolean): Whole {
    const sequence = this.#usable(text, "set");
    this.#requireWritable("setval");
    const { attempt, catalog, taken: takers } = this.#options;
    attempt?.touch(sequence, { catalog, taken: takers });
    catalog.setNumber(sequence, value, isCalled);
    attempt?.note(sequence, value, isCalled);
    if (isCalled) {
      for (const taken of takers) taken.correct(sequence.sequenceId, value);
    }
    return value;
  }

  ownedBy(tableText: string, columnName: string): string | null {
    const { catalog, namespace: current, principal } = this.#options;
    const { name, namespace = current } = nameInText(tableText);
    const table = visibleTable(catalog, { namespace, name }, principal);
    if (table === undefined) {
      throw new DatabaseError("TABLE_NOT_FOUND", `Cannot find table ${namespace}.${name}`);
    }
    const column = table.columns.find((each) => each.name === columnName);
    if (column === undefined) {
      throw new DatabaseError(
        "COLUMN_NOT_FOUND",
        `Cannot find column "${columnName}" in ${namespace}.${name}`,
      );
    }
    const owned = sequencesOf(catalog, table.tableId).find(
      ({ ownedBy }) => ownedBy?.columnId === column.columnId,
    );
    return owned === undefined ? null : sequenceText(owned);
  }

  #named(text: string): SequenceEntry {
    const { catalog, namespace: current } = this.#options;
    if (this.#foundVersion !== catalog.version) {
      this.#found.clear();
      this.#foundVersion = catalog.version;
    }
    const known = this.#found.get(text);
    if (known !== undefined) return known;
    const { name, namespace = current } = nameInText(text);
    const sequence = catalog.sequence(namespace, name);
    if (sequence === undefined) throw sequenceNotFound(catalog, { namespace, name });
    this.#found.set(text, sequence);
    return sequence;
  }

  #usable(text: string, use: SequenceUse): SequenceEntry {
    const { catalog, principal } = this.#options;
    const sequence = this.#named(text);
    requireSequenceUse(principal, sequence, { catalog, use });
    return sequence;
  }

  #requireWritable(name: string): void {
    if (!this.#options.isReadOnly) return;
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot call ${name}: the transaction is READ ONLY`,
    );
  }
}
