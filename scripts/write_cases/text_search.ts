/** Test cases for text search: documents, queries, stems, ranks, and trigram similarity. */
import type { CaseFile } from "./answer.ts";
import { selects } from "./product.ts";

const VECTORS = [
  "a:1 b:2A ''c d'':3B,4,1 a:5C",
  "b a a",
  "A a:20000 z:1,1,2A,2",
  "it''''s \\x x\\:y",
  "",
  "a:",
  "a:0",
  "''a",
] as const;

const QUERIES = [
  "a & b | !c <-> d <2> (e | f:*AB)",
  "!(a & b)",
  "(a | b) & c",
  "a <-> (b <-> c)",
  "a <-> b <-> c",
  "!a <-> b",
  "!!a",
  "a:A & b:*",
  "''a b'' & c",
  "a <0> b",
  "a|(b|c)&d",
  "a b",
  "a &",
  "(a",
  "a:z",
  "a <20000> b",
] as const;

const TALE =
  "The quick brown fox, a well-known <b>animal</b>, jumps over the lazy dog. It was 12.5 years old, " +
  "and lived at http://example.com/fox/den &amp; elsewhere. Nobody knew another fox that jumps as high.";

/** Words that together contain every suffix that the stemmer handles. */
const WORDS =
  "caresses ponies ties cats gas kiwis agreed feed plastered bled motoring sing conflated troubled " +
  "sized hopping falling filing happy sky cry by say relational conditional rational valency " +
  "digitizer conformably radically differently vilely analogously vietnamization predication " +
  "operator feudalism decisiveness hopefulness callousness formality sensitivity sensibility " +
  "triplicate formative formalize electricity electrical hopeful goodness revival allowance " +
  "inference airliner gyroscopic adjustable defensible irritant replacement adjustment dependent " +
  "adoption communism activate angularity homologous effective bowdlerize probate rate cease " +
  "controlling roll skis dying lying tying idly gently ugly early only singly news howe atlas " +
  "cosmos bias inning outing canning herring earring proceed exceeding succeeded generate " +
  "generically communication arsenal youth boyish yes";

const TEXTS = [
  "The quick brown foxes jumped over the lazy dogs, didn''t they?",
  "well-known state-of-the-art a1-b2 foo-12 user_name 3rd 0x1F",
  "Mail ada@example.com or see https://example.com/a/b?c=d#e and www.example.org, not e.g. U.S.A.",
  "/usr/local/lib.so and/or foo/bar.c 1.2.3 -12 +12.5 1e5 -1.5e-3 192.168.0.1 2020-01-02",
  '<b>bold</b> <a href="x y">link</a> a < b > c &amp; AT&T <!-- hidden -->',
  "of the and",
] as const;

const WEB = [
  '"sad cat" or -fat rat',
  'signal -"segmentation fault" OR',
  'a "b c-d" or or x - y "unclosed z',
  "or a or",
  "--x y",
  "the",
  "",
] as const;

const CONDITIONS = [
  "fat & cat",
  "fat <-> cat",
  "cat <-> fat",
  "fat <3> sat",
  "!dog & (cat | rat)",
  "fa:*",
  "fat:A",
  "mat <-> !sat",
  "!fat <-> cat",
  "(fat | sat) <-> (cat | on)",
  "fat & !(fat <-> cat)",
  "(fat & sat) <-> on",
] as const;

const DOCUMENT = "to_tsvector('simple', 'a fat cat sat on a fat mat and ate the fat rat')";

const JSON_FILTERS = [
  '"all"',
  '"key"',
  '"string"',
  '"numeric"',
  '"boolean"',
  '["numeric", "string"]',
  '["key", "all", "key"]',
  "[]",
  "{}",
  "null",
  '""',
  '"keys"',
  '["all", null]',
] as const;

const JSON_DOCUMENT =
  '{"cats": ["the dogs", 5, 1.50, [true]], "d": {"e": "a house", "the": false}, "f": null}';

const SIMILAR = [
  "Hello World",
  "hello",
  "the cat sat",
  "cats",
  "ana",
  "banana ananas",
  "",
] as const;

export const TEXT_SEARCH: CaseFile = {
  name: "text_search",
  about: "text search and trigrams",
  extension: "pg_trgm",
  statements: [
    ...selects(["'#'::tsvector::text"], VECTORS),
    ...selects(["'#'::tsquery::text"], QUERIES),
    ...selects(["to_tsvector('english', '#')::text"], WORDS.split(" ")),
    ...selects(
      [
        "to_tsvector('simple', '#')::text",
        "to_tsvector('english', '#')::text, to_tsvector('#')::text",
      ],
      TEXTS,
    ),
    ...selects(
      [
        "plainto_tsquery('english', '#')::text, phraseto_tsquery('english', '#')::text",
        "plainto_tsquery('simple', '#')::text, phraseto_tsquery('simple', '#')::text",
      ],
      TEXTS,
    ),
    ...selects(
      ["websearch_to_tsquery('english', '#')::text, websearch_to_tsquery('simple', '#')::text"],
      WEB,
    ),
    ...selects(
      ["to_tsquery('english', '#')::text"],
      [
        "fat <-> the <-> cats",
        "the",
        "the & cat | !a",
        "foo-bar & x",
        "''two words'' & x:*A",
        "a <-> the <-> cat <-> of <2> house",
        "cat <-> (the <-> of <-> dog)",
        "foo bar",
      ],
    ),
    "SELECT to_tsvector('klingon', 'x')",
    'SELECT to_tsvector(\'english\', \'{"a": "cats run", "b": ["dogs", 5, "a rat"]}\'::jsonb)::text',
    ...selects([`jsonb_to_tsvector('english', '${JSON_DOCUMENT}', '#')::text`], JSON_FILTERS),
    ...selects(["jsonb_to_tsvector('#', '\"all\"')"], ['"x"', "7", "true", "{}", "[]", "null"]),
    "SELECT json_to_tsvector('simple', '{\"the\": \"cats\"}'::json, '\"all\"')::text, json_to_tsvector('english', NULL::json, '\"all\"'), jsonb_to_tsvector('{}', NULL)",
    "SELECT to_tsvector(NULL, 'x'), to_tsvector('english', NULL), NULL::tsvector @@ 'a'",
    ...selects([`${DOCUMENT} @@ '#', '#' @@ ${DOCUMENT}`], CONDITIONS),
    ...selects(
      [
        `ts_rank(${DOCUMENT}, '#'), ts_rank_cd(${DOCUMENT}, '#')`,
        `ts_rank(setweight(${DOCUMENT}, 'B'), '#', 1 | 32), ts_rank_cd('{0.1, 0.2, 0.3, 0.4}', ${DOCUMENT}, '#', 2 | 4 | 8 | 16)`,
      ],
      CONDITIONS,
    ),
    ...selects(
      [
        `ts_headline('english', '${TALE}', to_tsquery('english', '#'))`,
        `ts_headline('${TALE}', to_tsquery('english', '#'), 'MaxWords=8, MinWords=3, StartSel=[, StopSel="]"')`,
        `ts_headline('simple', '${TALE}', '#', 'MaxFragments=2, MaxWords=6, MinWords=2, FragmentDelimiter=" / "')`,
      ],
      ["fox", "dog & fox", "dog | jump", "fox <-> jumps", "quick & slow", "known:*", "!fox", "old"],
    ),
    `SELECT ts_headline('english', '${TALE}', to_tsquery('english', 'fox'), 'HighlightAll=on')`,
    `SELECT ts_headline('{"a": "a fox", "b": [1, null, "x"]}'::json, 'fox'), ts_headline('simple', '{"a": "a fox", "b": [1, null, "x"]}'::jsonb, 'fox', 'StartSel=<')`,
    "SELECT ts_headline('english', 'foo bar', to_tsquery('foo'), 'Nope=1')",
    "SELECT ts_headline('english', 'foo bar', to_tsquery('foo'), 'MaxWords=1')",
    "SELECT ts_headline('english', '', to_tsquery('foo')), ts_headline('foo bar', ''::tsquery)",
    "SELECT ts_lexize('english_stem', 'skies'), ts_lexize('simple', 'Skies'), ts_lexize('english_stem', 'the')",
    "SELECT ts_lexize('nope', 'skies')",
    ...selects(["websearch_to_tsquery('simple', '#')"], ["abc:def", "a:B!c|d", "foo-bar x:y or z"]),
    "SELECT ts_rank('{0.1, 0.2}', 'a:1'::tsvector, 'a')",
    "SELECT ts_rank('{0.1, 0.2, 0.3, 2}', 'a:1'::tsvector, 'a')",
    "SELECT to_tsvector('simple', 'x@b.cc y@b.c1 z@b.c u@c v@b.c.dd w@b.dd.e')",
    "SELECT 'fat cats ate rats' @@ 'cat', 'fat cats' @@ to_tsquery('cat & fat'), to_tsquery('fat') @@ to_tsvector('fat cats')",
    "SELECT 'a:1'::tsvector @@ ''::tsquery, strip('a:1A'::tsvector) @@ 'a:B', strip('a:1 b:2'::tsvector) @@ 'a <-> b'",
    "SELECT setweight('cat:1 dog:2B'::tsvector, 'a')::text, setweight('cat:1 dog:2B'::tsvector, 'C', '{dog}')::text",
    "SELECT ('a:1 b:2'::tsvector || 'c:1 a:2A'::tsvector)::text, strip('a:1 b'::tsvector)::text, length('a:1 b'::tsvector)",
    "SELECT ('a'::tsquery && 'b | c')::text, ('a'::tsquery || 'b & c')::text, ('a'::tsquery <-> 'b <-> c')::text, (!! 'a & b'::tsquery)::text",
    "SELECT tsquery_phrase('a', 'b', 10)::text, numnode('a & !b'::tsquery), numnode(''::tsquery)",
    "SELECT ts_delete('a:1 b:2'::tsvector, 'a')::text, ts_delete('a:1 b:2 c'::tsvector, '{a,c}'::text[])::text, ts_filter('a:1A b:2,3B c'::tsvector, '{a,b}')::text",
    "SELECT tsvector_to_array('b a:1'::tsvector), array_to_tsvector('{b,a,b}')::text",
    "SELECT array_to_tsvector('{a,NULL}')",
    "SELECT 'a:1'::tsvector = 'a:1', 'a'::tsvector = 'b', pg_typeof('a'::tsquery), pg_typeof(to_tsvector('a'))",
    "CREATE TABLE articles (id INT PRIMARY KEY, title TEXT, body TEXT, document TSVECTOR GENERATED ALWAYS AS (setweight(to_tsvector('english', coalesce(title, '')), 'A') || to_tsvector('english', coalesce(body, ''))) STORED, wanted TSQUERY)",
    "INSERT INTO articles (id, title, body, wanted) VALUES (1, 'Cats', 'Cats sleep, and dogs bark.', 'cat'), (2, 'Dogs', 'A dog chased two cats', 'dog <-> chase'), (3, NULL, NULL, NULL)",
    "SELECT id, document::text, wanted::text FROM articles ORDER BY id",
    "SELECT id, ts_rank(document, q) FROM articles, to_tsquery('english', 'cats') AS q WHERE document @@ q ORDER BY 2 DESC, id",
    "SELECT id FROM articles WHERE document @@ wanted ORDER BY id",
    "UPDATE articles SET body = 'Birds sing' WHERE id = 1",
    "SELECT id FROM articles WHERE document @@ websearch_to_tsquery('english', 'bird -dog')",
    "INSERT INTO articles (id, wanted) VALUES (4, 'a &')",
    "SELECT count(*), count(DISTINCT document) FROM articles",
    ...selects(["show_trgm('#')"], SIMILAR),
    ...selects(
      ["similarity('#', '#'), word_similarity('#', '#'), strict_word_similarity('#', '#')"],
      SIMILAR,
      SIMILAR,
    ),
    ...selects(
      ["'#'::text % '#', '#'::text <% '#', '#'::text %> '#', '#'::text <<% '#', '#'::text %>> '#'"],
      SIMILAR,
      SIMILAR,
    ),
    ...selects(["'#'::text <-> '#', '#'::text <<-> '#', '#'::text <->> '#'"], SIMILAR, SIMILAR),
  ],
};
