/** Creates file URLs for the elements of a page, which cannot send headers. */
import {
  type Call,
  type FieldRules,
  FLAG,
  requireOptions,
  requireRule,
  type ValueRule,
} from "./checks.ts";
import type { RowObject, Statements } from "./statements.ts";

export interface FileUrlOptions {
  /** How long the URL is valid, in seconds; defaults to 3600. The server's maximum is a week. */
  readonly seconds?: number;
  /** Whether a browser saves the file instead of displaying it; defaults to false. */
  readonly download?: boolean;
}

export interface Files {
  /**
   * Returns a URL with which a page can display a file that the user may read. The URL becomes
   * invalid when the user's session ends or the user loses access to the row.
   *
   *     image.src = await db.files.url(row.picture);
   *
   * @param file The content of a FILE cell.
   * @throws {ServerError}
   */
  url(file: object | string, options?: FileUrlOptions): Promise<string>;
}

const URL_OF: Call = {
  doing: "create the URL of a file",
  example: "db.files.url(row.picture, { seconds: 600 })",
};

const FILE: ValueRule = {
  should: "the content of a FILE cell",
  holds: (value) => typeof value === "string" || (typeof value === "object" && value !== null),
};

const RULES: FieldRules = {
  seconds: { should: "a number of seconds", holds: (value) => typeof value === "number" },
  download: FLAG,
};

/**
 * Creates the file methods of a client.
 * @param url The address of the server, without a trailing slash.
 */
export function filesBy(url: string, { query }: Pick<Statements, "query">): Files {
  return {
    async url(file, given = {}) {
      requireRule("the file", file, FILE);
      requireOptions(URL_OF, given, RULES);
      const text = typeof file === "string" ? file : JSON.stringify(file);
      const sql = "SELECT FILE_URL($1::TEXT, $2::DOUBLE) AS url";
      const [row] = await query<RowObject & { url: string }>(sql, [text, given.seconds ?? 3600]);
      // The base path is removed from the path, because the server's address already ends with it.
      const path = row?.url.slice(row.url.lastIndexOf("/v1/files/")) ?? "";
      return `${url}${path}${given.download === true ? "&download=1" : ""}`;
    },
  };
}
