/**
 * Adapts the tables of the corpus to a server in which every table has a PRIMARY KEY. CREATE TABLE
 * gets a key column that fills itself, INSERT without a column list gets such a list, and `*`
 * becomes the columns declared by the case.
 */

/** The name of the added key column. No case in the corpus uses it. */
const HIDDEN_KEY = "hidden_key";

/** The result columns that no case in the corpus uses. */
export const HIDDEN_COLUMNS: ReadonlySet<string> = new Set([HIDDEN_KEY, "_seq", "_deleted"]);

/** Returns a function that translates each statement of a file, in order. */
export function tableTranslator(): (sql: string) => string {
  const columnsByTable = new Map<string, readonly string[]>();
  return (sql) => {
    const [, created, body] = /^\s*CREATE\s+TABLE\s+(\w+)\s*\((.*)\)\s*$/is.exec(sql) ?? [];
    if (created !== undefined && body !== undefined) {
      const elements = splitAtCommas(body);
      columnsByTable.set(created.toLowerCase(), elements.map(firstWord).filter(isColumn));
      if (/\bPRIMARY\s+KEY\b/i.test(body)) return sql;
      const key = `${HIDDEN_KEY} BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID()`;
      return `CREATE TABLE ${created} (${body}, ${key})`;
    }
    const [, table, values] = /^\s*INSERT\s+INTO\s+(\w+)\s+(VALUES\b.*)$/is.exec(sql) ?? [];
    const columns = columnsByTable.get(table?.toLowerCase() ?? "");
    if (values !== undefined && columns !== undefined) {
      return `INSERT INTO ${table} (${columns.join(", ")}) ${values}`;
    }
    return expandStar(sql, columnsByTable);
  };
}

/** Replaces the `*` in a select list with columns if every item in FROM is a known table. */
function expandStar(sql: string, columnsByTable: ReadonlyMap<string, readonly string[]>): string {
  const form =
    /^(\s*SELECT\s+(?:ALL\s+|DISTINCT\s+)?)\*(\s+FROM\s+)(.*?)(\s+(?:WHERE|GROUP|HAVING|ORDER|LIMIT)\b.*)?$/is;
  const [, select, from, tables, rest = ""] = form.exec(sql) ?? [];
  if (select === undefined || tables === undefined) return sql;
  const list: string[] = [];
  for (const item of tables.split(/,|\bCROSS\s+JOIN\b/i)) {
    const [table = "", ...alias] = item.replace(/[()]/g, " ").trim().split(/\s+/);
    const columns = columnsByTable.get(table.toLowerCase());
    if (columns === undefined) return sql;
    const name = alias.at(-1) ?? table;
    list.push(...columns.map((column) => `${name}.${column}`));
  }
  return `${select}${list.join(", ")}${from}${tables}${rest}`;
}

function splitAtCommas(text: string): string[] {
  // A comma inside parentheses is part of a type such as DECIMAL(10,2).
  return text.split(/,(?![^(]*\))/).map((part) => part.trim());
}

/** Whether an element of CREATE TABLE begins with a column name. */
function isColumn(word: string): boolean {
  return !/^(?:PRIMARY|UNIQUE|CHECK|FOREIGN|CONSTRAINT)$/i.test(word);
}

function firstWord(text: string): string {
  return /^\w+/.exec(text)?.[0] ?? "";
}
