/**
 * Records the changes that writers made, according to their acknowledgements, and the messages
 * that each topic should contain for them. It shares no code with `src/topics`.
 */

export type Operation = "Insert" | "Update" | "Delete";
export type TableName = "items" | "board" | "notes";

/** A committed change to a single row. */
export interface Change {
  readonly table: TableName;
  /** The owner of the row; undefined unless its table is a USER table. */
  readonly user: string | undefined;
  readonly key: number;
  readonly operation: Operation;
  /**
   * The number that the change wrote or, for a delete, the row's last number. All changes write
   * different numbers.
   */
  readonly n: number;
  readonly room: string;
  /** The number that the change replaced; undefined if the row had no number before. */
  readonly old: number | undefined;
}

export interface Topic {
  readonly name: string;
  readonly partitions: number;
  readonly statements: readonly string[];
  /**
   * Returns the form of the payload that a topic publishes for a change; undefined if the topic
   * does not publish the change.
   */
  readonly payloadOf: (change: Change) => "key" | "full" | "diff" | undefined;
}

/**
 * The topics. Together, they cover filters, all operations, a USER table, several sources and all
 * three payloads.
 */
export const TOPICS: readonly Topic[] = [
  {
    name: "app.all_items",
    partitions: 4,
    statements: ["INSERT", "UPDATE", "DELETE"].map(
      (operation) => `ALTER TOPIC app.all_items ADD SOURCE app.items ON ${operation}`,
    ),
    payloadOf: ({ table }) => (table === "items" ? "full" : undefined),
  },
  {
    name: "app.mixed",
    partitions: 2,
    statements: [
      "ALTER TOPIC app.mixed ADD SOURCE app.items ON INSERT WHERE n % 3 = 0 WITH (payload = 'key')",
      "ALTER TOPIC app.mixed ADD SOURCE app.board ON UPDATE WITH (payload = 'diff')",
    ],
    payloadOf: ({ n, operation, table }) => {
      if (table === "items" && operation === "Insert" && n % 3 === 0) return "key";
      return table === "board" && operation === "Update" ? "diff" : undefined;
    },
  },
  {
    name: "app.of_users",
    partitions: 1,
    statements: ["INSERT", "UPDATE", "DELETE"].map(
      (operation) => `ALTER TOPIC app.of_users ADD SOURCE app.notes ON ${operation}`,
    ),
    payloadOf: ({ table }) => (table === "notes" ? "full" : undefined),
  },
  {
    name: "app.rooms",
    partitions: 3,
    statements: [
      "ALTER TOPIC app.rooms ADD SOURCE app.board ON DELETE WHERE room = 'hall'",
      "ALTER TOPIC app.rooms ADD SOURCE app.items ON UPDATE WHERE room = 'attic' WITH (payload = 'diff')",
    ],
    payloadOf: ({ operation, room, table }) => {
      if (table === "board" && operation === "Delete" && room === "hall") return "full";
      return table === "items" && operation === "Update" && room === "attic" ? "diff" : undefined;
    },
  },
];

/** Returns the name by which the judge identifies a row. */
export function rowName({
  key,
  table,
  user,
}: {
  readonly key: number | string;
  readonly table: string;
  readonly user: string | undefined;
}): string {
  return `${table}/${user ?? ""}/${key}`;
}

/** Returns the content of the message for a change, without its offset. */
function contentOf(change: Change, payload: "key" | "full" | "diff"): string {
  const { n, old, operation } = change;
  if (payload === "key") return operation;
  return payload === "full" ? `${operation} ${n}` : `${operation} ${old ?? "-"} to ${n}`;
}

export class Ledger {
  changeCount = 0;
  /** The expected messages of each row in order, keyed by topic and row. */
  readonly #expected = new Map<string, Map<string, string[]>>(
    TOPICS.map(({ name }) => [name, new Map()]),
  );
  readonly #counts = new Map<string, number>();

  /**
   * Enters the changes of a commit into the ledger. Commits that change the same row must be
   * entered in order.
   */
  enter(changes: readonly Change[]): void {
    for (const change of changes) {
      this.changeCount += 1;
      for (const topic of TOPICS) {
        const payload = topic.payloadOf(change);
        if (payload === undefined) continue;
        const rows = this.expected(topic.name);
        const row = rowName(change);
        const list = rows.get(row) ?? [];
        list.push(contentOf(change, payload));
        rows.set(row, list);
        this.#counts.set(topic.name, this.count(topic.name) + 1);
      }
    }
  }

  /** Returns a topic's expected messages, keyed by row. */
  expected(topic: string): Map<string, string[]> {
    const rows = this.#expected.get(topic);
    if (rows === undefined) throw new Error(`There is no topic ${topic}`);
    return rows;
  }

  /** Returns how many messages a topic should have. */
  count(topic: string): number {
    return this.#counts.get(topic) ?? 0;
  }
}
