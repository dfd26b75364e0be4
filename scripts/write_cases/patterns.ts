/** Cases of statements that are generated from patterns of every kind. */
import type { CaseFile } from "./answer.ts";
import { selects } from "./product.ts";

export const PATTERNS: CaseFile = {
  name: "patterns",
  about: "LIKE, SIMILAR TO and regular expressions",
  statements: [
    ...selects(
      ["# LIKE #", "# NOT LIKE #", "# ILIKE #"],
      ["'abc'", "'ABC'", "''", "'a%c'", "'a_c'", "NULL::text"],
      ["'abc'", "'a%'", "'%c'", "'_b_'", "'%'", "''", "'a\\%c'", "'a\\_c'", "NULL::text"],
    ),
    ...selects(
      ["'a!%c' LIKE # ESCAPE '!'", "'a%c' LIKE # ESCAPE '!'"],
      ["'a!%c'", "'a!!!%c'", "'%!!%'", "'a!'"],
    ),
    "SELECT 'a' LIKE 'a\\'",
    ...selects(
      ["# # ANY (ARRAY['a%', NULL, 'b'])", "# # ALL ('{A%,b}')", "# # SOME (SELECT 'a%')"],
      ["'abc'", "'xyz'", "NULL"],
      ["LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE", "~", "!~*"],
    ),
    "SELECT 'abc' LIKE ALL (VALUES ('a%'), ('%c')), 'abc' !~ ALL (SELECT 'z'), 'abc' LIKE ANY (ARRAY[]::text[])",
    "SELECT 1 = ANY('{1,2}'), 'b' = ANY('{a,b}'), 5 > ALL('{1,2}'), DATE '2024-01-01' = ANY('{2024-01-01}')",
    "SELECT 1 = ANY('{x}')",
    "SELECT 1 + ANY(ARRAY[1])",
    "SELECT 1 LIKE ANY(ARRAY[1])",
    "SELECT 'a\\' LIKE 'a\\' ESCAPE ''",
    "SELECT 'abc' LIKE 'a%' ESCAPE 'xx'",
    ...selects(
      ["# SIMILAR TO #"],
      ["'abc'", "'xbc'", "''", "NULL::text"],
      ["'a%'", "'(a|x)bc'", "'[a-c]+'", "'_{3}'", "'b'", "NULL::text"],
    ),
    ...selects(
      ["# SIMILAR TO #"],
      ["'A7'", "'a7'", "']x'", "'^-'"],
      ["'[[:upper:]][[:digit:]]'", "'[[:lower:]7]+'", "'[^[:alpha:]]x'", "'[\\]^]_'"],
    ),
    ...selects(
      ["# ~ #", "# ~* #", "# !~ #", "# !~* #"],
      ["'abc'", "'ABC123'", "''", "NULL::text"],
      ["'b'", "'^a'", "'c$'", "'[0-9]+'", "'^$'", "'\\d{2,}'", "'(?i)B'", "'[[:alpha:]]+'"],
    ),
    ...selects(
      [
        "regexp_like(#, 'b+')",
        "regexp_count(#, 'b')",
        "regexp_instr(#, 'b')",
        "regexp_substr(#, 'b+')",
        "regexp_match(#, '(a)(b)')",
        "regexp_replace(#, 'b', 'X')",
        "regexp_replace(#, 'b', 'X', 'g')",
        "regexp_replace(#, '(a)(b)', '\\2\\1')",
        "regexp_split_to_array(#, 'b')",
      ],
      ["'abcabbc'", "'xyz'", "''", "NULL::text"],
    ),
    ...selects(["regexp_replace('Abab', #, '<\\&>', 'gi')"], ["'a'", "'B$'", "'x'", "'a|b'"]),
    ...selects(["'x' ~ #"], ["'('", "'[a'", "'*'", "'a{2,1}'"]),
    "SELECT regexp_like('ABC', 'b', 'i')",
    "SELECT regexp_count('aXbxc', 'x', 1, 'i')",
    "SELECT regexp_instr('abcabc', 'c', 1, 2)",
    "SELECT regexp_substr('a1b22', '[0-9]+', 1, 2)",
    ...selects(
      ["regexp_replace('abc', 'x*', '-', #)", "regexp_count('abc', 'x*', #)"],
      ["1", "4", "5", "0"],
    ),
    ...selects(["regexp_replace('abab', 'b', 'X', 1, #)"], ["0", "1", "2", "-1"]),
    ...selects(
      ["regexp_match(#, #)"],
      ["'foobarbequebaz'", "'xyazbz'", "'aaabbb'", "'abcd'"],
      [
        "'foo|foobar'",
        "'x*y.*?z'",
        "'a.*?z'",
        "'(?:.*){1,1}?b'",
        "'(.*?)(b+)'",
        "'(b.*?)(e.*)'",
        "'a{2}'",
        "'(?:a+?)b*'",
        "'a+?b+'",
        "'(a|ab)(c|bcd)?'",
        "'.*?'",
        "'.+?$'",
      ],
    ),
    "SELECT regexp_replace('foobarbaz', 'b..?', 'X', 'g'), regexp_replace('abcabc', 'a|abc', 'X', 'g')",
    "SELECT * FROM regexp_matches('a1b2', '([a-z])([0-9])', 'g')",
    "SELECT * FROM regexp_split_to_table('a,b,,c', ',')",
  ],
};
