/**
 * Defines the state that the actions of an ALTER TABLE share: the caller, and the other changes in
 * the same catalog transaction.
 */
import type { Principal } from "../../auth/mod.ts";
import type { SequenceEntry, SequenceMark, TableEntry } from "../../catalog/mod.ts";
import type { IncomingReference } from "../execute/context/execution_context.ts";
import type { BindingDeps } from "../prepare/binding_deps.ts";
import type { ExecutionDeps } from "../prepare/statement_context.ts";
import { type Numbering, type SequenceMaker, withSequences } from "./numbered_columns.ts";
import type { RowDemand } from "./row_inspection.ts";
import type { ColumnRewrite } from "./row_rewrite.ts";

export type AltererDeps = ExecutionDeps & Pick<BindingDeps, "systemViews">;

/** The user who runs the ALTER TABLE, and the namespace in which defaults are evaluated. */
export interface Alterer {
  readonly deps: AltererDeps;
  readonly principal: Principal;
  /** The namespace in which ALTER TABLE looks up unqualified names. */
  readonly namespace: string;
}

/** Sequences that an ALTER TABLE adds, changes or removes together with the table. */
export interface ChangedSequences {
  readonly sequences: readonly SequenceEntry[];
  readonly droppedSequences: readonly SequenceEntry[];
  /** The numbers that the sequences will have reached once the ALTER TABLE is in force. */
  readonly marks: readonly SequenceMark[];
}

/** A column that gets a new type and therefore a new id. */
export interface RetypedColumn {
  /** The id of the column before the ALTER TABLE. */
  readonly columnId: number;
  readonly name: string;
  readonly position: number;
}

export class Altering implements Alterer, ChangedSequences {
  readonly deps: AltererDeps;
  readonly principal: Principal;
  readonly namespace: string;
  /** Conditions that existing rows must meet. If any row violates them, the ALTER TABLE fails. */
  readonly demands: RowDemand[] = [];
  /** The columns for which the ALTER TABLE rewrites existing rows. */
  readonly rewrites: ColumnRewrite[] = [];
  /** The columns that get a new type and therefore a new id. */
  readonly retyped: RetypedColumn[] = [];
  /** The definition of the table before the ALTER TABLE. */
  readonly before: TableEntry;
  readonly sequences: SequenceEntry[] = [];
  readonly droppedSequences: SequenceEntry[] = [];
  readonly marks: SequenceMark[] = [];
  /** The names of the foreign keys against which existing rows have not been checked yet. */
  readonly validations: string[] = [];
  /** Foreign keys of other tables that the ALTER TABLE also drops. */
  readonly referring: IncomingReference[] = [];

  constructor(before: TableEntry, { deps, namespace, principal }: Alterer) {
    this.before = before;
    this.deps = deps;
    this.namespace = namespace;
    this.principal = principal;
  }

  get changesSequences(): boolean {
    return this.sequences.length + this.droppedSequences.length + this.marks.length > 0;
  }

  /**
   * Creates the sequences of numbered columns, and returns the table with DEFAULTs that use them.
   *
   * @throws {DatabaseError}
   */
  numbered(table: TableEntry, numberings: readonly Numbering[]): TableEntry {
    const { catalog, clock } = this.deps;
    const maker: SequenceMaker = { catalog, clock, principal: this.principal };
    const made = withSequences(table, numberings, { ...maker, before: this.sequences });
    this.sequences.push(...made.sequences);
    return made.table;
  }

  /** Returns a column's sequence, with the changes made by earlier actions of the statement. */
  sequenceOf({ tableId }: TableEntry, columnId: number): SequenceEntry | undefined {
    const isOwn = ({ ownedBy }: SequenceEntry): boolean =>
      ownedBy?.tableId === tableId && ownedBy.columnId === columnId;
    const sequence = this.sequences.findLast(isOwn) ?? this.deps.catalog.sequences().find(isOwn);
    return sequence !== undefined && this.droppedSequences.includes(sequence)
      ? undefined
      : sequence;
  }

  changeSequence(sequence: SequenceEntry): void {
    const at = this.sequences.findIndex(({ sequenceId }) => sequenceId === sequence.sequenceId);
    if (at === -1) this.sequences.push(sequence);
    else this.sequences[at] = sequence;
  }

  dropSequence(sequence: SequenceEntry): void {
    const at = this.sequences.findIndex(({ sequenceId }) => sequenceId === sequence.sequenceId);
    if (at !== -1) this.sequences.splice(at, 1);
    const { name, namespace } = sequence;
    const stored = this.deps.catalog.sequence(namespace, name);
    if (stored !== undefined) this.droppedSequences.push(stored);
  }
}
