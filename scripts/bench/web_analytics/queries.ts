/**
 * Defines 43 questions that operators of web sites ask about their page views: counts, sums over
 * many rows, groupings into few and into many groups, text searches, and narrow queries about a
 * single site.
 */
import type { ContestQuery } from "../peers/contest.ts";

/** The SQL expression for the minute of the day. SQLite needs a different wording. */
const MINUTE = "extract(hour FROM view_time) * 60 + extract(minute FROM view_time)";
const SQLITE_MINUTE =
  "CAST(strftime('%H', view_time) AS INT) * 60 + CAST(strftime('%M', view_time) AS INT)";

const WEEK = "view_date >= '2024-03-04' AND view_date <= '2024-03-10'";

const TEXTS: readonly string[] = [
  // The following queries read entire columns.
  "SELECT count(*) FROM page_views",
  "SELECT count(*) FROM page_views WHERE campaign <> 0",
  "SELECT sum(campaign), count(*), avg(screen_width) FROM page_views",
  "SELECT avg(visitor_id) FROM page_views",
  "SELECT count(DISTINCT visitor_id) FROM page_views",
  "SELECT count(DISTINCT search_phrase) FROM page_views",
  "SELECT count(*), sum(order_value), max(order_value) FROM page_views WHERE order_value > 0",
  `SELECT ${Array.from({ length: 20 }, (_, i) => `sum(counter_${i + 1})`).join(", ")} FROM page_views`,
  `SELECT ${Array.from({ length: 30 }, (_, i) => `sum(screen_width + ${i})`).join(", ")}
   FROM page_views`,
  // The following queries have few groups.
  `SELECT campaign, count(*) FROM page_views WHERE campaign <> 0 GROUP BY campaign
   ORDER BY count(*) DESC, campaign`,
  "SELECT country, count(*), avg(response_ms) FROM page_views GROUP BY country ORDER BY country",
  `SELECT region_id, count(DISTINCT visitor_id) AS visitors FROM page_views GROUP BY region_id
   ORDER BY visitors DESC, region_id LIMIT 10`,
  `SELECT region_id, sum(campaign), count(*) AS views, avg(screen_width),
     count(DISTINCT visitor_id)
   FROM page_views GROUP BY region_id ORDER BY views DESC, region_id LIMIT 10`,
  `SELECT phone_model, count(DISTINCT visitor_id) AS visitors FROM page_views
   WHERE phone_model <> '' GROUP BY phone_model ORDER BY visitors DESC, phone_model LIMIT 10`,
  `SELECT device, phone_model, count(DISTINCT visitor_id) AS visitors FROM page_views
   WHERE phone_model <> '' GROUP BY device, phone_model
   ORDER BY visitors DESC, device, phone_model LIMIT 10`,
  `SELECT browser, system, count(*), sum(is_bounce) FROM page_views GROUP BY browser, system
   ORDER BY browser, system`,
  `SELECT view_date, count(*), sum(order_value) FROM page_views GROUP BY view_date
   ORDER BY view_date`,
  `SELECT CASE WHEN age < 18 THEN 'minor' WHEN age < 40 THEN 'young' ELSE 'older' END AS years,
     count(*), avg(seconds_on_page) FROM page_views
   GROUP BY CASE WHEN age < 18 THEN 'minor' WHEN age < 40 THEN 'young' ELSE 'older' END
   ORDER BY years`,
  // The following queries concern search phrases.
  `SELECT search_phrase, count(*) AS views FROM page_views WHERE search_phrase <> ''
   GROUP BY search_phrase ORDER BY views DESC, search_phrase LIMIT 10`,
  `SELECT search_phrase, count(DISTINCT visitor_id) AS visitors FROM page_views
   WHERE search_phrase <> '' GROUP BY search_phrase
   ORDER BY visitors DESC, search_phrase LIMIT 10`,
  `SELECT search_engine, search_phrase, count(*) AS views FROM page_views
   WHERE search_phrase <> '' GROUP BY search_engine, search_phrase
   ORDER BY views DESC, search_engine, search_phrase LIMIT 10`,
  `SELECT search_phrase FROM page_views WHERE search_phrase <> ''
   ORDER BY view_time, view_id LIMIT 10`,
  `SELECT search_phrase FROM page_views WHERE search_phrase <> ''
   ORDER BY search_phrase LIMIT 10`,
  `SELECT search_phrase, view_id FROM page_views WHERE search_phrase <> ''
   ORDER BY search_phrase DESC, view_id LIMIT 10`,
  // The following queries have many groups.
  `SELECT visitor_id, count(*) AS views FROM page_views GROUP BY visitor_id
   ORDER BY views DESC, visitor_id LIMIT 10`,
  `SELECT visitor_id, search_phrase, count(*) AS views FROM page_views
   GROUP BY visitor_id, search_phrase ORDER BY views DESC, visitor_id, search_phrase LIMIT 10`,
  `SELECT visitor_id, ${MINUTE} AS minutes, search_phrase, count(*) AS views FROM page_views
   GROUP BY visitor_id, ${MINUTE}, search_phrase
   ORDER BY views DESC, visitor_id, minutes, search_phrase LIMIT 10`,
  "SELECT view_id, url FROM page_views WHERE visitor_id = 7000000110 ORDER BY view_id LIMIT 20",
  `SELECT ip_number, count(*) AS views, sum(is_reload), avg(screen_width) FROM page_views
   GROUP BY ip_number ORDER BY views DESC, ip_number LIMIT 10`,
  `SELECT session_id, min(view_id) AS first_view, sum(seconds_on_page) AS seconds
   FROM page_views WHERE is_robot = 0 GROUP BY session_id
   ORDER BY seconds DESC, session_id LIMIT 10`,
  // The following queries search for text within strings.
  "SELECT count(*) FROM page_views WHERE url LIKE '%coffee%'",
  `SELECT search_phrase, min(url), count(*) AS views FROM page_views
   WHERE url LIKE '%garden%' AND search_phrase <> '' GROUP BY search_phrase
   ORDER BY views DESC, search_phrase LIMIT 10`,
  `SELECT search_phrase, min(title), count(DISTINCT visitor_id) AS visitors, count(*) AS views
   FROM page_views WHERE title LIKE '%piano%' AND url NOT LIKE '%/shop/%' AND search_phrase <> ''
   GROUP BY search_phrase ORDER BY views DESC, search_phrase LIMIT 10`,
  `SELECT view_id, url, title FROM page_views WHERE url LIKE '%/forum/%'
   ORDER BY view_time, view_id LIMIT 10`,
  `SELECT site_id, avg(length(url)) AS long, count(*) AS views FROM page_views
   WHERE url <> '' GROUP BY site_id HAVING count(*) > 1000 ORDER BY long DESC, site_id LIMIT 25`,
  `SELECT upper(substr(title, 1, 4)) AS start, count(*) FROM page_views
   GROUP BY upper(substr(title, 1, 4)) ORDER BY start`,
  "SELECT url, count(*) AS views FROM page_views GROUP BY url ORDER BY views DESC, url LIMIT 10",
  // The following queries concern a single site and a single week.
  `SELECT url, count(*) AS views FROM page_views WHERE site_id = 12 AND ${WEEK}
     AND is_reload = 0 AND url <> '' GROUP BY url ORDER BY views DESC, url LIMIT 10`,
  `SELECT title, count(*) AS views FROM page_views WHERE site_id = 12 AND ${WEEK}
     AND is_reload = 0 AND title <> '' GROUP BY title ORDER BY views DESC, title LIMIT 10`,
  `SELECT url, count(*) AS views FROM page_views WHERE site_id = 12 AND ${WEEK} AND is_link = 1
     AND is_download = 0 GROUP BY url ORDER BY views DESC, url LIMIT 10 OFFSET 20`,
  `SELECT traffic_source, search_engine, campaign,
     CASE WHEN search_engine = 0 AND campaign = 0 THEN referrer ELSE '' END AS source, url,
     count(*) AS views
   FROM page_views WHERE site_id = 12 AND ${WEEK} AND is_reload = 0
   GROUP BY traffic_source, search_engine, campaign,
     CASE WHEN search_engine = 0 AND campaign = 0 THEN referrer ELSE '' END, url
   ORDER BY views DESC, traffic_source, search_engine, campaign, source, url LIMIT 10`,
  `SELECT window_width, window_height, count(*) AS views FROM page_views
   WHERE site_id = 12 AND ${WEEK} AND is_reload = 0 AND url_hash > 1000000
   GROUP BY window_width, window_height
   ORDER BY views DESC, window_width, window_height LIMIT 10 OFFSET 10`,
  `SELECT ${MINUTE} AS minutes, count(*) AS views FROM page_views
   WHERE site_id = 12 AND view_date >= '2024-03-14' AND view_date <= '2024-03-15'
     AND is_reload = 0
   GROUP BY ${MINUTE} ORDER BY minutes LIMIT 10`,
];

export const QUERIES: readonly ContestQuery[] = TEXTS.map((sql, index) => {
  const label = String(index + 1);
  if (!sql.includes(MINUTE)) return { label, sql };
  return { label, sql, wordings: { SQLite: sql.replaceAll(MINUTE, SQLITE_MINUTE) } };
});
