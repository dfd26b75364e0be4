/**
 * Implements SHOW EXPORT, which lists the caller's exports with the URLs of their archives.
 */
import { exportAccessName, type Principal, signedAccess } from "../../auth/mod.ts";
import { DATETIME, type Row, TEXT } from "../../types/mod.ts";
import type { ServerAddress } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { PlainColumn } from "../result/result.ts";

export const SHOW_EXPORT_COLUMNS: readonly PlainColumn[] = [
  { name: "job_id", type: TEXT },
  { name: "status", type: TEXT },
  { name: "created_at", type: DATETIME },
  { name: "message", type: TEXT },
  { name: "download_url", type: TEXT },
];

/** The time for which a URL gives access without a token, in seconds. */
const SECONDS = 3600;

export function exportRows(
  { clock, exports }: Pick<SqlEnvironment, "clock" | "exports">,
  { principal, server }: { principal: Principal; server: ServerAddress | undefined },
): Row[] {
  const { fileUrlKey, userId } = principal;
  const urlOf = (jobId: string): string => {
    const url = `${server?.publicUrl ?? ""}/v1/exports/${encodeURIComponent(userId)}/${jobId}`;
    if (fileUrlKey === undefined) return url;
    const seconds = Math.min(SECONDS, fileUrlKey.secondsMax);
    const until = Math.ceil(clock.nowMs() / 1000) + seconds;
    return `${url}?access=${signedAccess(fileUrlKey, { fileId: exportAccessName(jobId), until })}`;
  };
  return exports
    .list(principal)
    .map(({ createdAtMs, hasArchive, jobId, message, status }) => [
      jobId,
      status,
      createdAtMs * 1000,
      message ?? null,
      hasArchive ? urlOf(jobId) : null,
    ]);
}
