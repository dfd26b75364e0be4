/**
 * Gives advice on the syntax of other systems and on frequent mistakes. All patterns are in a
 * single table, which is searched only when an error is explained.
 *
 * A pattern is matched against the tokens near the invalid token: up to {@linkcode BEFORE_MAX}
 * before it and {@linkcode BEHIND_MAX} after it. The tokens are in lower case and separated by
 * single spaces; `▸` precedes the invalid token, and `'…'` represents every string. The match
 * begins at the token to blame. A lookbehind for the text before that token follows a `(?=▸)`;
 * without it, the lookbehind would run at every position of the text.
 */

import { PARAMETER_ADVICE } from "./text/characters.ts";
import { type LexedTokens, Token } from "./text/lexer.ts";

/** Advice on a syntax error: the token to blame, and a hint that shows the correct form. */
export interface Advice {
  readonly token: number;
  readonly hint: string;
}

const BEFORE_MAX = 40;
const BEHIND_MAX = 6;
const SHOWN_CHARACTERS_MAX = 24;

const LIMIT = "write LIMIT n at the end of the query";
const ON_CONFLICT = "write INSERT INTO t (…) VALUES (…) ON CONFLICT (key) DO";
const COMMENTS = "write comments as -- … or /* … */";
const INDEX_OF_OTHERS =
  "write UNIQUE (email), or a separate statement: CREATE INDEX ON users (email)";
const GENERATED = "write id BIGINT PRIMARY KEY AUTO_INCREMENT, or DEFAULT SNOWFLAKE_ID()";
const NO_CLAUSE = "omit it";
const ORDER =
  "write the clauses in this order: FROM, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET";

const FORMS: readonly (readonly [form: RegExp, hint: string])[] = [
  [
    /(?=▸)(?<=user \S+ )▸ @/,
    "users have no host; a user id with special characters must be in quotes: 'bob@host'",
  ],
  [
    /(?=▸)(?<=^set )▸ @/,
    "SQL variables are not supported: write the value, or pass it as a parameter, $1",
  ],
  [/(?=▸)(?<=^create .*)▸ :/, "write the name without a colon"],
  [
    /(?=▸)(?<=table )▸ #/,
    "write CREATE TEMPORARY TABLE in a transaction; the table is dropped when the transaction ends",
  ],
  // Parameters.
  [
    /(?=▸)(?<!\b(limit|offset|and|or|where|between|like|in|not|values|on|when|then|else|set|by) )(?<=\w )▸ : \w/,
    "to read a JSON field, write doc ->> 'city'; to cast a value, write value::type",
  ],
  [/▸ (\?|: \w|@ \w|@@|# \w+ #|% s\b|% \()/, PARAMETER_ADVICE],
  [/@ \w+ ▸ :=/, "SQL variables are not supported: write the value, or pass it as a parameter, $1"],
  [/interval ▸ \$/, "write $1::interval"],
  [
    /(?=▸)(?<=(from|join|into|update|table) )▸ \$/,
    "a parameter is a value; write the name of the table in the SQL",
  ],
  // Advice on quoting names and strings.
  [/▸ \[ \w+ \]/, 'put names that need quotes in double quotes: "name"'],
  [
    /(?=▸)(?<=(from|join|into|update|table) \S+ \. \S+ )▸ \. /,
    "a table name has at most two parts: namespace.table",
  ],
  [
    /(?=▸)(?<=\w )▸ - \w/,
    'put a name that contains characters other than letters, digits and "_" in double quotes: ' +
      '"a-b"',
  ],
  [/if (?=▸ (not )?exist )/, "write IF EXISTS, or IF NOT EXISTS"],
  [
    /(?=▸)(?<=(from|join|into|update|table) )▸ '…'/,
    "write names without quotes, or in double quotes: namespace.table",
  ],
  [/(?=if ▸)(?<=^create view )if ▸/, "write CREATE OR REPLACE VIEW"],
  // Advice on operators.
  [/(?=▸)(?<== )▸ =/, "to compare values, write a single =, as in price = 10"],
  [/= ▸ </, "write price <= 10"],
  [/= ▸ >/, "write price >= 10"],
  [/▸ => /, "write price >= 10"],
  [/&& .*▸ (=|!=|<|>)/, "&& tests whether arrays overlap; to combine conditions, use AND"],
  [/\|\| .*▸ (=|!=|<|>)/, "|| concatenates strings; to combine conditions, use OR"],
  [/(?=▸)(?<=\* )▸ \*/, "write power(width, 2), or width ^ 2"],
  [/▸ (regexp|rlike|match)\b/, "write name ~ 'pattern', or to ignore case, name ~* 'pattern'"],
  [/match (?=\( .*▸ against)/, "write body LIKE '%word%', or body ~* 'word'"],
  [/\b(regexp|rlike) ▸ '…'/, "write name ~ 'pattern', or to ignore case, name ~* 'pattern'"],
  [
    /\bglob ▸ '…'/,
    "write name LIKE 'pattern%', where % matches any string and _ matches any character",
  ],
  [/▸ xor\b|\bxor ▸ /, "write != between conditions, or # between integers for a bitwise XOR"],
  [
    /▸ glob\b/,
    "write name LIKE 'pattern%', where % matches any string and _ matches any character",
  ],
  [/▸ contains\b/, "write name LIKE '%text%', or position('text' IN name) > 0"],
  [/▸ starts with/, "write name LIKE 'text%', or starts_with(name, 'text')"],
  [
    /interval ▸ \S+ (microsecond|second|minute|hour|day|week|month|quarter|year)/,
    "write the amount and its unit in quotes: INTERVAL '1 day'",
  ],
  [/(?=▸)(?<=(current_date|current_user|localtime) )▸ \(/, "remove the parentheses"],
  [/▸ not null/, "write name IS NOT NULL"],
  [
    /(?=▸)(?<=\bis (not )?)▸ /,
    "IS tests only for NULL, TRUE, FALSE or UNKNOWN; to compare values, use = or !=",
  ],
  [/\b(mod|div) ▸ \d/, "for the remainder, write %; for the quotient of integers, write /"],
  [/(?=▸)(?<=like )▸ %/, "write a pattern in single quotes: LIKE '%text%'"],
  [/(?=▸)(?<=\bin )▸ /, "write a list in parentheses: id IN (1, 2)"],
  [/(?=▸)(?<=between \S+ )▸ ,/, "write price BETWEEN low AND high"],
  [/(try_cast|safe_cast) (?=\( .*▸ as)/, "write CAST(code AS INT)"],
  [/(?=▸)(?<=\/ )▸ \//, "write a single /: dividing integers returns an integer"],
  [/▸ separator\b/, "write string_agg(name, ', ' ORDER BY name)"],
  [/(?=▸)(?<=exists )▸ (select|with|values)/, "write a query in parentheses"],
  [/(?=▸)(?<=cast \( \S+ )▸ /, "write CAST(code AS INT)"],
  [/(?=▸)(?<=extract \( \w+ )▸ ,/, "write EXTRACT(YEAR FROM sent_at)"],
  [/(?=▸)(?<=using )▸ \w/, "write USING (room_id, user_id)"],
  // Advice on SELECT.
  [/top ▸ \d/, LIMIT],
  [/top (?=\( \d+ \) \*? ?▸)/, LIMIT],
  [/(first|skip) ▸ \d/, LIMIT],
  [/(?=▸)(?<=limit \S+ )▸ , /, "write LIMIT count OFFSET start instead of LIMIT start, count"],
  [/(?=▸)(?<=limit \d+ )▸ \d/, "write LIMIT count OFFSET start"],
  [/(?=▸)(?<=select (distinct )?)▸ unique/, "write SELECT DISTINCT"],
  [/▸ distinct/, "write DISTINCT once, after SELECT: it applies to whole rows"],
  [
    /lock ▸ in share mode/,
    "remove it: if two transactions conflict, the second one to commit fails",
  ],
  [
    /▸ for system_time/,
    "write it directly after the name of the table: FROM app.articles FOR SYSTEM_TIME AS OF now()",
  ],
  [
    /▸ with \( (nolock|readpast|updlock|rowlock|holdlock|tablock)/,
    "remove it: reads never wait for writers",
  ],
  [/▸ (minus) select/, "write EXCEPT"],
  [/minus ▸ select/, "write EXCEPT"],
  [/▸ connect by|(start|connect) ▸ (with|by)/, "write WITH RECURSIVE"],
  [/outer ▸ join/, "write LEFT JOIN, RIGHT JOIN or FULL JOIN"],
  [/(cross|outer) ▸ apply/, "write CROSS JOIN LATERAL, or LEFT JOIN LATERAL … ON TRUE"],
  [/straight_join ▸/, "write JOIN"],
  [/(?=▸)(?<=(left|right|full) )▸ (?!j\w+ |outer)/, "write LEFT JOIN, RIGHT JOIN or FULL JOIN"],
  [
    /(?=▸)(?<=join .*)▸ ($|;|where|group|order|limit)/,
    "every join except CROSS JOIN needs a condition: ON orders.user_id = users.id, or USING " +
      "(user_id)",
  ],
  [/(use|force|ignore) ▸ index/, "remove it: the server chooses the index"],
  [/\( (?=\+ ▸ \))/, "write LEFT JOIN … ON instead of (+)"],
  [/pivot ▸ \(/, "write an aggregate for each column: sum(price) FILTER (WHERE kind = 'book')"],
  [/(?=\w+ ▸)(?<=^select (?!.*\bfrom\b).*)\w+ ▸ \. \w/, "there is no FROM before the table"],
  [/(?=▸)(?<=^select \* )▸ \w/, "there is no FROM before the table"],
  [/(?=▸)(?<=\b(order by|limit|offset|group by|having)\b.*)▸ (where|from)\b/, ORDER],
  [/(?=▸)(?<=\b(order by|limit|offset|having)\b.*)▸ group by/, ORDER],
  [/(?=▸)(?<=\b(limit|offset)\b.*)▸ (order by|having|group by)/, ORDER],
  [/(?=▸)(?<=\b(order by|limit|offset)\b.*)▸ having/, ORDER],
  [/sort ▸ by/, "write ORDER BY"],
  [/(?=▸)(?<=order )▸ /, "write ORDER BY"],
  [/(?=▸)(?<!^create .*)▸ group (?!by)/, "write GROUP BY"],
  [/(?=▸)(?<=case \S.*)▸ then/, "write CASE WHEN condition THEN value END"],
  [/(?=▸)(?<=case when .* then .*)▸ (from|,|\)|;|$)/, "CASE must end with END"],
  // Advice on INSERT, UPDATE and DELETE.
  [/▸ (ignore|or ignore)\b/, `${ON_CONFLICT} NOTHING`],
  [/▸ or (replace|rollback|abort|fail)\b/, `${ON_CONFLICT} UPDATE SET name = EXCLUDED.name`],
  [/(?=▸)(?<=on )▸ duplicate key/, "write ON CONFLICT (key) DO UPDATE SET name = EXCLUDED.name"],
  [/(?=▸)(?<=^insert into .*)▸ set\b/, "write INSERT INTO t (id, name) VALUES (1, 'Ada')"],
  [/(?=▸)(?<=^insert )▸ (?!int)/, "write INSERT INTO"],
  [/(?=▸)(?<=^insert .* )▸ value\b/, "write VALUES"],
  [/(?=▸)(?<=^insert .*\) )▸ \(/, "write VALUES before the first row: VALUES (1, 'Ada')"],
  [/▸ values (?!\()/, "write each row in parentheses: VALUES (1, 'Ada')"],
  [/▸ output\b/, "write RETURNING at the end of the statement"],
  [/(?=▸)(?<=returning .*)▸ into\b/, "remove INTO: RETURNING puts the rows into the response"],
  [
    /(?=▸)(?<=^(update|delete) .*)▸ (limit|order)\b/,
    "select the rows by key: WHERE id IN (SELECT id FROM t … LIMIT n)",
  ],
  [
    /(?=▸)(?<=^update .*)▸ (inner |left )?join/,
    "write UPDATE t SET … FROM other WHERE t.id = other.id",
  ],
  [
    /(?=▸)(?<=^delete from .*)▸ (inner |left )?join/,
    "write DELETE FROM t USING other WHERE t.id = other.id",
  ],
  [/(?=\w+ ▸)(?<=^update \S+( \. \S+)? )\w+ ▸ =/, "write SET before the first column"],
  [/(?=▸)(?<=^delete )▸ (?!f\w{2,4} )/, "write DELETE FROM t WHERE …"],
  [/(?=▸)(?<=^(insert into|delete from) )▸ table\b/, "omit TABLE"],
  [/(?=▸)(?<=^update )▸ from\b/, "write UPDATE t SET price = 1"],
  // Advice on definitions.
  [
    /▸ (unsigned|signed|zerofill)\b/,
    "remove it: all integers are signed; use BIGINT for values that need an unsigned INT",
  ],
  [/▸ (autoincrement|identity)\b/, GENERATED],
  [/(enum|set) \( ▸ '…'/, "write TEXT CHECK (state IN ('open', 'closed'))"],
  [/(?=▸)(?<=\( )▸ max \)/, "write TEXT, which has no length limit"],
  [/(?=▸)(?<=(text|char|varchar|\)) )▸ (character set|charset)/, "remove it: text is always UTF-8"],
  [/▸ comment '…'/, "after CREATE TABLE, run COMMENT ON COLUMN table.column IS '…'"],
  [/▸ on (update|delete)/, "set the column in the UPDATE itself: SET changed = now()"],
  [
    /▸ (after|first)\b/,
    "remove it: new columns are always added at the end, and SELECT can return columns in any " +
      "order",
  ],
  [
    /(?=▸)(?<=create .*\) )▸ (engine|default|charset|auto_increment|collate|row_format|comment|strict|without)\b/,
    NO_CLAUSE,
  ],
  [/(index|key|fulltext|spatial) (\w+ )?(?=\( (\w+ )?▸|▸ \()/, INDEX_OF_OTHERS],
  [
    /▸ (virtual|persisted)\b|(?<=create .*)▸ as \(/,
    "write total INT GENERATED ALWAYS AS (price * amount) STORED",
  ],
  [
    /(?=\w+ ▸)(?<=^create .*[(,] )\w+ ▸ (primary|,|\)|not|default|unique)/,
    "write a type after the column name: id BIGINT",
  ],
  [/(?=▸)(?<=^create .*primary )▸ (?!key)/, "write PRIMARY KEY"],
  [/(?=▸)(?<=^create .* )▸ key\b/, "write PRIMARY KEY"],
  [/▸ nullable\b/, "remove it: columns allow NULL unless they are NOT NULL"],
  [/▸ required\b/, "write NOT NULL"],
  [/(?=▸)(?<=^create .*)▸ (clustered|nonclustered)/, NO_CLAUSE],
  [
    /(?=▸)(?<=^create table .*[(,] \w+ \w+ (primary key )?)▸ \w+ (int|integer|bigint|text|varchar|boolean|timestamp|date|decimal|double|json|uuid)\b/,
    "a comma is missing here",
  ],
  [
    /(?=▸)(?<=[(,] primary key )▸ \w/,
    "write the columns of a key in parentheses: PRIMARY KEY (room_id, id)",
  ],
  [
    /(?=▸)(?<=^(create|alter) table .*)▸ (array\b|< \w+)/,
    "write INT[] for an array of integers, or JSONB for a document",
  ],
  [/(?=▸)(?<=^create )▸ or alter/, "write CREATE OR REPLACE VIEW"],
  [/(?=▸)(?<=^create or replace )▸ table/, "write DROP TABLE IF EXISTS t, then CREATE TABLE t"],
  [/(?=▸)(?<=^alter table .* alter (column )?\w+ )▸ \w/, "write ALTER COLUMN price TYPE new_type"],
  [
    /(?=▸)(?<=^alter table .* add )▸ \(/,
    "write ADD COLUMN for each column: ADD COLUMN width INT, ADD COLUMN height INT",
  ],
  [/(?=▸)(?<=create .*[(,] )▸ '…'/, 'write names in double quotes, or without quotes: "name"'],
  [/(?=▸)(?<=^alter table .* modify .*)▸ default/, "write ALTER COLUMN price SET DEFAULT 1"],
  [
    /(?=▸)(?<=^alter table .* rename (column )?\w+ )▸ \w/,
    "write RENAME COLUMN old_name TO new_name",
  ],
  // Advice on users.
  [/▸ identified\b/, "write PASSWORD '…'"],
  [
    /(?=▸)(?<=^create user .*)▸ (superuser|nosuperuser|login|nologin|createdb|admin)/,
    "write ROLE followed by user, service, dba or system",
  ],
  [/(?=▸)(?<=^create user \S+ )▸ $/, "write CREATE USER name WITH PASSWORD '…'"],
  [/(?=▸)(?<=^alter user \S+ )▸ (with )?password/, "write ALTER USER name SET PASSWORD '…'"],
  [
    /(?=▸)(?<=^alter user \S+ )▸ rename/,
    "a user id cannot be changed; create a user with the new id",
  ],
  [/(?=▸)(?<=(password|email) )▸ =/, "remove the ="],
  // Advice on SHOW, SET, USE and shell commands.
  [
    /(?=▸)(?<=^show tables (.* )?)▸ like/,
    "SELECT table_name FROM information_schema.tables WHERE table_name LIKE '…'",
  ],
  [/(?=▸)(?<=^show columns .*)▸ (in|like)\b/, "write SHOW COLUMNS FROM namespace.table"],
  [/(?=database ▸)(?<=^use )database ▸ \w/, "write USE name"],
  [
    /(?=▸)(?<=^set (search_path|schema) .*)▸ ,/,
    "there can be only one current namespace; for tables in other namespaces, write " +
      "namespace.table",
  ],
  [/(?=▸)(?<=^set names )▸ /, "remove it: text is always UTF-8"],
  [
    /(?=▸)(?<=^set )▸ @/,
    "SQL variables are not supported: write the value, or pass it as a parameter, $1",
  ],
  [
    /(?=▸)(?<=^explain )▸ (plan for|query plan|format|extended)/,
    "write EXPLAIN SELECT …, or EXPLAIN (FORMAT JSON) SELECT …",
  ],
  [
    /(?=▸)(?<=^explain \(.*)▸ (buffers|costs|timing|settings|wal|summary)/,
    "remove it: EXPLAIN ANALYZE already shows times and rows",
  ],
  [
    /(?=▸)(?<=^desc(ribe)? )▸ (select|with|insert|update|delete)/,
    "to see how a statement runs, use EXPLAIN",
  ],
  [
    /(?=▸)(?<=^)▸ \. \w/,
    "this is a shell command; to list tables, run SHOW TABLES; to see the columns of a table, " +
      "run DESCRIBE t",
  ],
  [/(?=▸)(?<=^begin )▸ tran\b/, "write BEGIN"],
  [/(?=▸)(?<=^set \w+ )▸ (\d|'…')/, "write SET name = value"],
  [/(?=▸)(?<=^explain )▸ \w+ (\. \w|$)/, "to see the columns of a table, run DESCRIBE t"],
  // Advice on symbols and lists.
  [/▸ (#|\/ \/)/, COMMENTS],
  [/▸ \/\//, COMMENTS],
  [
    /(?=▸)(?<=, )▸ (from|where|group by|order by|having|limit|values|returning|\)|;|$)/,
    "remove the comma before this token",
  ],
  [
    /(?=▸)(?<=\b(and|or|not|where|on|having) )▸ (and|or|where|group|order|limit|\)|;|$)/,
    "a condition is missing here",
  ],
];

/** Returns the advice for an invalid token, or undefined if no pattern matches. */
export function adviceAt(tokens: LexedTokens, token: number): Advice | undefined {
  let first = token;
  while (first > 0 && tokens.words[first - 1] !== ";") first -= 1;
  const from = Math.max(first, token - BEFORE_MAX);
  // The offset at which each token begins in the text that the patterns search.
  const starts: number[] = [];
  let text = from === first ? "" : "… ";
  for (let at = from; at <= token + BEHIND_MAX; at += 1) {
    if (at === token) text += "▸ ";
    starts.push(text.length);
    if ((tokens.kinds[at] ?? Token.end) === Token.end) break;
    if (at > token && tokens.words[at] === ";") break;
    text += `${shownForm(tokens, at)} `;
  }
  for (const [form, hint] of FORMS) {
    const index = form.exec(text)?.index;
    if (index === undefined) continue;
    const found = starts.findLastIndex((start) => start <= index + (text[index] === "▸" ? 2 : 0));
    return { token: from + Math.max(found, 0), hint };
  }
  return undefined;
}

// Returns a token in the form in which patterns expect it. The contents of strings are left out,
// because no pattern may match them.
function shownForm(tokens: LexedTokens, token: number): string {
  const kind = tokens.kinds[token];
  if (kind === Token.string || kind === Token.encodedString) return "'…'";
  const start = tokens.starts[token] ?? 0;
  // The words in patterns are short, and searching a long token would be slow, so a token is cut
  // off.
  const end = Math.min(tokens.ends[token] ?? start, start + SHOWN_CHARACTERS_MAX);
  return tokens.text.slice(start, end).toLowerCase();
}
