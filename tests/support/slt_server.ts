/**
 * Runs sqllogictest files against a real server process, each file in a namespace of its own.
 */
import type { ServerProcess } from "./server_process.ts";
import { runSlt, type SltAnswer, type SltReport } from "./slt.ts";
import { HIDDEN_COLUMNS } from "./slt_tables.ts";

/**
 * Runs one file's text.
 *
 * @param name A namespace that does not exist yet.
 */
export async function runSltOn(
  server: ServerProcess,
  name: string,
  text: string,
  { queryOneOf = 1 }: { queryOneOf?: number } = {},
): Promise<SltReport> {
  await server.rows(`CREATE NAMESPACE ${name}`);
  return runSlt(text, { execute: (sql) => execute(server, name, sql), queryOneOf });
}

async function execute(server: ServerProcess, namespace: string, sql: string): Promise<SltAnswer> {
  const { body } = await server.sql(sql, { namespace });
  const [entry] = body.results;
  if (body.status === "success" && entry !== undefined) {
    const names = (entry.schema ?? []).map((field) => field.name);
    const shown = names.flatMap((column, index) => (HIDDEN_COLUMNS.has(column) ? [] : [index]));
    const rows = (entry.rows ?? []).map((row) => shown.map((index) => row[index]));
    return { ok: true, names, rows };
  }
  const { code = "", reason = "", message = "no result entry" } = body.error ?? {};
  return { ok: false, isUnsupported: reason === "not_implemented", message: `${code}: ${message}` };
}
