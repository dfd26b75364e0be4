/**
 * Binds a statement that reads or writes rows.
 *
 * A leading WITH may contain changes. Each change in WITH is a part of the statement, and the
 * query or change after WITH is the last part. The parts run one after another on the same
 * snapshot, and a later part can read the rows that an earlier part returns.
 */
import { runToCompletion } from "../../../base/steps.ts";
import type { QueryStatement, WithBinding } from "../../parse/ast/ast.ts";
import { isChangeNode } from "../../parse/ast/query_nodes.ts";
import type { BoundRecursion, BoundSelect } from "../bound.ts";
import { bindInSteps } from "../query/select_binder.ts";
import type { CteEntry } from "../query/select_deps.ts";
import { type BindChangingEntry, depsWith, namesOf } from "../query/with_binder.ts";
import type { DmlDeps } from "./dml_target.ts";
import { type BoundInsert, bindInsert } from "./insert_binder.ts";
import { type BoundMerge, bindMerge } from "./merge_binder.ts";
import { type BoundDelete, type BoundUpdate, bindDelete, bindUpdate } from "./update_binder.ts";

export type BoundChange = BoundInsert | BoundUpdate | BoundDelete | BoundMerge;

/** A data-modifying statement in WITH. */
export interface BoundPart {
  /**
   * Identifies the rows that the change returns, so that later parts of the statement can read
   * them.
   */
  readonly recursion: BoundRecursion;
  readonly change: BoundChange;
}

export type BoundWhole = BoundChange | { readonly kind: "query"; readonly select: BoundSelect };

export type BoundStatement =
  | BoundWhole
  | {
      readonly kind: "parts";
      /** The changes in WITH, in the order in which they run. */
      readonly parts: readonly BoundPart[];
      readonly main: BoundWhole;
    };

/**
 * Binds a statement, yielding between small steps.
 * @throws {DatabaseError}
 */
export function* bindStatement(
  node: QueryStatement,
  deps: DmlDeps,
): Generator<void, BoundStatement> {
  if (!("bind" in node)) return yield* bindWhole(node, deps);
  const parts: BoundPart[] = [];
  const withParts: BindChangingEntry = (binding, around) =>
    bindPart(binding, { ...deps, ...around }, parts);
  const inner = { ...deps, ...depsWith(node, deps, withParts) };
  const main = yield* bindWhole(node.in, inner);
  return parts.length === 0 ? main : { kind: "parts", parts, main };
}

function* bindWhole(node: QueryStatement, deps: DmlDeps): Generator<void, BoundWhole> {
  if (isChangeNode(node)) return yield* bindChange(node, deps);
  return { kind: "query", select: yield* bindInSteps(node, deps) };
}

/** Binds a change whose WITH contains only queries. */
function* bindChange(node: QueryStatement, deps: DmlDeps): Generator<void, BoundChange> {
  switch (node.type) {
    case "insert":
      return yield* bindInsert(node, deps);
    case "update":
      return bindUpdate(node, deps);
    case "delete":
      return bindDelete(node, deps);
    case "merge":
      return bindMerge(node, deps);
    case "with":
    case "with recursive":
      return yield* bindChange(node.in, { ...deps, ...depsWith(node, deps) });
    default:
      throw new TypeError(`change binder: ${node.type} does not change rows`);
  }
}

function bindPart(binding: WithBinding, deps: DmlDeps, parts: BoundPart[]): CteEntry {
  const { alias, statement } = binding;
  const { name } = alias;
  const change = runToCompletion(
    bindChange(statement, { ...deps, isOutermost: false, keepsUntyped: false }),
  );
  const recursion = { name };
  parts.push({ recursion, change });
  return { kind: "changed", name, columns: columnsOf(binding, change), recursion };
}

/**
 * Returns the columns that later parts of the statement can read; undefined if the change returns
 * no rows.
 */
function columnsOf(
  binding: WithBinding,
  { returning }: BoundChange,
): Extract<CteEntry, { kind: "changed" }>["columns"] {
  if (returning === undefined) return undefined;
  const names = namesOf(binding, returning);
  return returning.outputs.map(({ expression }, i) => ({
    name: names[i] ?? "",
    type: expression.type,
  }));
}
