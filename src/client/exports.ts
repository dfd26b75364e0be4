/**
 * Exports the user's own data: starts the export, waits for its archive, and returns the archive's
 * URL.
 */
import type { WholeEnvironment } from "./environment.ts";
import { ServerError } from "./errors.ts";
import { pause } from "./repeats.ts";
import type { RowObject, Statements } from "./statements.ts";

/** How often the client checks whether an export has finished, in milliseconds. */
const LOOK_MS = 1000;

/** The states of an export that is still in progress. */
const OPEN: ReadonlySet<string> = new Set(["queued", "running"]);

interface ExportRow extends RowObject {
  readonly job_id: string;
  readonly status: string;
  readonly message: string | null;
  readonly download_url: string | null;
}

/**
 * Exports the user's data, and returns the URL of the archive.
 * @param url The address of the server, without a trailing slash.
 */
export async function exportData(
  url: string,
  { query }: Pick<Statements, "query">,
  environment: WholeEnvironment,
): Promise<string> {
  // If an export is already in progress, the statement returns the id of that export.
  const [begun] = await query<ExportRow>("EXPORT USER DATA");
  for (;;) {
    const rows = await query<ExportRow>("SHOW EXPORT");
    const row = rows.find((each) => each.job_id === begun?.job_id);
    const path = row?.download_url?.slice(row.download_url.lastIndexOf("/v1/exports/"));
    if (path !== undefined) return url + path;
    if (row === undefined || !OPEN.has(row.status)) {
      const why =
        row === undefined ? "a newer export has replaced it" : (row.message ?? row.status);
      throw new ServerError("CANCELLED", `The export ended without an archive: ${why}`);
    }
    await pause(LOOK_MS, { environment, signal: undefined, maxRetries: 0 });
  }
}
