/**
 * Defines faults that the campaign must find. As long as it finds them, the campaign can be
 * trusted when it reports no fault. Each fault replaces a line or two of the server's source code.
 * The server's own code does not refer to this file.
 *
 * If a line is missing or occurs twice, no server is bundled: the code has changed, and the entry
 * must be updated.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bundleChangedServer, SOURCES } from "../../support/changed_server.ts";

interface Replacement {
  /** The path of the file below `src/`. */
  readonly file: string;
  /** The line of source code, without leading and trailing whitespace. */
  readonly line: string;
  readonly instead: string;
  /** Another replacement in the same file, which makes the fault occur more often. */
  readonly also?: Pick<Replacement, "instead" | "line">;
}

const REPLACEMENTS = {
  // The server omits a row of a result.
  lost: {
    file: "live/results/result_state.ts",
    line: "if (!isKept && before !== undefined) changes.push(shape.changeTo(row, old, seq));",
    instead:
      "if (!isKept && before !== undefined && index !== 1) changes.push(shape.changeTo(row, old, seq));",
  },
  // The server keeps deleted rows in a result.
  undead: {
    file: "live/results/result_state.ts",
    line: "if (!kept.has(row.key)) changes.push(shape.deletion(row, seq));",
    instead:
      "if (!kept.has(row.key) && changes.length > 0) changes.push(shape.deletion(row, seq));",
  },
  // Each message of a commit claims to be the last message.
  early: {
    file: "live/results/result_messages.ts",
    line: "const isCommitEnd = this.#start === this.changeCount;",
    instead: "const isCommitEnd = true;",
  },
  // The evaluation after a commit misses the commit's last row.
  half: {
    file: "sql/request/followed_rows.ts",
    line: "seq = at === undefined ? store.visibleSeq : earlierSeq(store, tables, at);",
    instead:
      "seq = at === undefined ? store.visibleSeq : earlierSeq(store, tables, at); if (at === undefined) return (seq - 1) as Seq;",
  },
  // Users share the result of a query that depends on its caller. Rows of USER tables stay
  // separate, because a shared group also requires the same owner for its subscribers' tables.
  rights: {
    file: "sql/prepare/followed_query.ts",
    line: "const hasOwnRows = isOfCaller || tables.some(({ owner }) => owner !== SHARED_OWNER);",
    instead: "const hasOwnRows = false;",
  },
  // A client that resumes keeps rows that no longer exist.
  resume: {
    file: "live/results/resume_reader.ts",
    line: 'const deletes = changes.filter(({ type }) => type === "delete");',
    instead: "const deletes: LiveChange[] = [];",
  },
  // A row removed from a join counts as added.
  weights: {
    file: "sql/maintain/join_changes.ts",
    line: "[change.removed, -1],",
    instead: "[change.removed, 1],",
  },
  // When a row of an outer join gets its first match, the row without a match is not removed.
  outer_counts: {
    file: "sql/maintain/join_changes.ts",
    line: "add(this.#completed(before, { from: index, ...reading(after) }), -1);",
    instead: "add(this.#completed(before, { from: index, ...reading(upTo) }), -1);",
  },
  // The rows kept for an ORDER BY … LIMIT are not refilled when the margin beyond the limit is
  // used up.
  topk_refill: {
    file: "sql/maintain/row_window.ts",
    line: "return !this.#isWhole && this.#rows.length < this.#end;",
    instead: "return false;",
    // The margin is smaller than usual, because the campaign's tables have few rows.
    also: { line: "return offset + limit + margin;", instead: "return offset + limit + 1;" },
  },
  // An in-memory index lacks rows whose value was set after the index was built.
  kept_index: {
    file: "sql/maintain/kept_index.ts",
    line: "if (now !== undefined) this.#add(now);",
    instead: "",
  },
  // A join without an equality misses the first row of the table that it reads.
  short_scan: {
    file: "sql/maintain/source_rows.ts",
    line: "const rows = this.#all(source, upTo);",
    instead: "const rows = this.#all(source, upTo).slice(1);",
  },
  // An in-memory index does not list the rows whose key is NULL.
  null_groups: {
    file: "sql/maintain/kept_index.ts",
    line: "if (!this.#place.hasNulls && value.includes(null)) return;",
    instead: "if (value.includes(null)) return;",
  },
  // A set operation keeps a group's old row in one of its blocks.
  kept_blocks: {
    file: "sql/maintain/block_groups.ts",
    line: "for (const row of removed) addTo(found, [...row, block], -1);",
    instead: "",
  },
  // The rows of a partition are computed only from the current state of its table.
  partition: {
    file: "sql/maintain/keyed_block.ts",
    line: "[after, -1],",
    instead: "[upTo, -1],",
  },
  // LATERAL and subqueries in expressions keep the rows from before a change.
  lateral: {
    file: "sql/maintain/join_changes.ts",
    line: "all = part.run(all, contexts.at(seqOf(part.source)));",
    instead: "all = part.run(all, contexts.at((seqOf(part.source) - 5000) as Seq));",
  },
  // A set operation forgets which block a row belonged to.
  set_sides: {
    file: "sql/maintain/set_rows.ts",
    line: "const block = Number(given.at(-1));",
    instead: "const block = 0;",
  },
  // A row that changes because a table row is removed has the seq of an older change.
  old_seqs: {
    file: "live/results/result_state.ts",
    line: "return newest > after ? newest : upTo;",
    instead: "return newest;",
  },
  // First rows have the seq of the last commit instead of that of their newest table row.
  first_seqs: {
    file: "live/results/result_state.ts",
    line: "return { cells, rowSeq: seqOfChange(Number(given.at(-1) ?? 0) as Seq, seqs) };",
    instead:
      "return { cells, rowSeq: seqs.after === SEQ_ZERO ? seqs.upTo : seqOfChange(Number(given.at(-1) ?? 0) as Seq, seqs) };",
  },
  // When several commits arrive together, a changed row has the seq of the last of them instead of
  // its own commit.
  late_seqs: {
    file: "live/results/result_feed.ts",
    line: "const stepsMax = hasChangeSeqs && !changeConditions ? 1 : STEPS_MAX;",
    instead: "const stepsMax = 1;",
  },
  // The minimum of a group stays the same after the row with this minimum is removed.
  min_after_delete: {
    file: "sql/maintain/tallies.ts",
    line: "else if (kept.value === null || !this.#isWorse(value, kept.value)) kept.isUnknown = true;",
    instead: "",
  },
} as const satisfies Readonly<Record<string, Replacement>>;

export type PlantedFault = keyof typeof REPLACEMENTS;

export const PLANTED_FAULTS = Object.keys(REPLACEMENTS) as PlantedFault[];

/**
 * Bundles a server that contains a fault.
 *
 * @param folder The absolute path of the folder for the bundle.
 * @returns The command that starts the server.
 * @throws If a line of the fault is missing or occurs twice.
 */
export function bundleWithFault(folder: string, fault: PlantedFault): Promise<readonly string[]> {
  const replacement: Replacement = REPLACEMENTS[fault];
  const changed = join(SOURCES, replacement.file);
  return bundleChangedServer(folder, {
    sourceOf: (path) => (path === changed ? replaced(replacement) : readFileSync(path, "utf8")),
  });
}

/** Returns a description of each fault whose source line no longer occurs exactly once. */
export function stalePlantedFaults(): readonly string[] {
  return Object.values(REPLACEMENTS).flatMap((replacement) => {
    try {
      replaced(replacement);
      return [];
    } catch (error) {
      // The caller reports the error.
      return [String(error)];
    }
  });
}

/**
 * Returns the source code of a file after the fault has replaced its lines.
 * @throws {Error} If the line is missing or occurs twice.
 */
function replaced({ also, file, ...first }: Replacement): string {
  let lines = readFileSync(join(SOURCES, file), "utf8").split("\n");
  for (const { instead, line } of also === undefined ? [first] : [first, also]) {
    const at = lines.findIndex((each) => each.trim() === line);
    if (at < 0 || at !== lines.findLastIndex((each) => each.trim() === line)) {
      throw new Error(`Cannot inject a fault into ${file}: "${line}" must occur exactly once`);
    }
    lines = lines.with(at, instead);
  }
  return lines.join("\n");
}
