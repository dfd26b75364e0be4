/**
 * Token and session ids that are no longer good.
 *
 * An entry is kept until nothing that it forbids could still be alive, and a day longer, since the
 * clock that decides may jump.
 */
import type { Clock } from "../base/clock.ts";
import type { SqliteFile } from "./sqlite_file.ts";

const PURGE_AFTER_MS = 24 * 3_600_000;

export class Revocations {
  readonly #file: SqliteFile;
  readonly #clock: Clock;
  readonly #revokedAtMs = new Map<string, number>();

  constructor(file: SqliteFile, clock: Clock) {
    this.#file = file;
    this.#clock = clock;
    const rows = file.rows<{ id: string; revoked_at_ms: number }>(
      "SELECT id, revoked_at_ms FROM revocations WHERE expires_at_ms >= ?1",
      clock.nowMs() - PURGE_AFTER_MS,
    );
    for (const { id, revoked_at_ms } of rows) this.#revokedAtMs.set(id, revoked_at_ms);
  }

  /** When an id was first revoked, or undefined when it was not. */
  revokedAtMs(id: string): number | undefined {
    return this.#revokedAtMs.get(id);
  }

  revoke(id: string, expiresAtMs: number): void {
    const nowMs = this.#clock.nowMs();
    const expired = this.#file.rows<{ id: string }>(
      "SELECT id FROM revocations WHERE expires_at_ms < ?1 LIMIT 100",
      nowMs - PURGE_AFTER_MS,
    );
    this.#file.transaction(() => {
      this.#file.run(
        `INSERT INTO revocations (id, revoked_at_ms, expires_at_ms) VALUES (?1, ?2, ?3)
         ON CONFLICT (id) DO UPDATE SET expires_at_ms = max(expires_at_ms, excluded.expires_at_ms)`,
        id,
        nowMs,
        expiresAtMs,
      );
      for (const entry of expired) {
        if (entry.id !== id) this.#file.run("DELETE FROM revocations WHERE id = ?1", entry.id);
      }
    });
    for (const entry of expired) {
      if (entry.id !== id) this.#revokedAtMs.delete(entry.id);
    }
    if (!this.#revokedAtMs.has(id)) this.#revokedAtMs.set(id, nowMs);
  }
}
