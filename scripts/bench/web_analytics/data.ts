/**
 * Generates page views from a seed, in chronological order. A few sites and visitors account for
 * most of the views, most views have no search phrase, and most flags are 0. No data comes from a
 * real log.
 */

import { type Chance, chanceFromSeed } from "../../support/chance.ts";
import type { MadeRow } from "../peers/engines.ts";
import { COLUMNS, VIEWS } from "./schema.ts";

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2024, 2, 1);
const DAYS = 31;

const COUNTRIES = ["DE", "FR", "PL", "IT", "ES", "US", "BR", "IN", "JP", "SE", "NL", "TR"];
const LANGUAGES = ["de", "fr", "pl", "it", "es", "en", "pt", "hi", "ja", "sv", "nl", "tr"];
const BROWSERS = ["Falcon", "Heron", "Osprey", "Kestrel", "Swift", "Wren"];
const SYSTEMS = ["Granite", "Basalt", "Marble", "Slate", "Pumice"];
const DEVICES = ["desktop", "phone", "tablet", "television"];
const MODELS = ["Lumen 4", "Lumen 5", "Arc One", "Arc Two", "Tide S", "Tide L", "Pebble"];
const WORDS = [
  "garden",
  "bicycle",
  "winter",
  "coffee",
  "kitchen",
  "piano",
  "river",
  "shoes",
  "camera",
  "tent",
  "lamp",
  "train",
  "recipe",
  "weather",
  "ticket",
  "paint",
  "chess",
  "honey",
  "island",
  "planet",
];
const SECTIONS = ["news", "shop", "blog", "help", "forum", "video", "search", "account"];
const HOSTS = ["alder", "birch", "cedar", "maple", "rowan", "willow"];
const WIDTHS = [360, 390, 412, 768, 1024, 1280, 1366, 1440, 1920, 2560];

/** Returns a random number below `bound`. Small numbers are far more frequent than large ones. */
function skewed(chance: Chance, bound: number): number {
  const share = chance.below(1_000_000) / 1_000_000;
  return Math.floor(share * share * share * bound);
}

function phraseOf(number: number): string {
  const words = [WORDS[number % 20], WORDS[Math.floor(number / 20) % 20], WORDS[(number * 7) % 20]];
  return words.slice(0, 1 + (number % 3)).join(" ");
}

function urlOf(site: number, page: number): string {
  const section = SECTIONS[page % SECTIONS.length] ?? "";
  return `https://${HOSTS[site % HOSTS.length]}${site}.example/${section}/${WORDS[page % 20]}-${page}`;
}

/** Returns an integer that stands in for the hash of a string. Equal inputs give equal results. */
function hashOf(number: number): number {
  return (Math.imul(number + 1, 0x9e3779b1) >>> 0) * 4096 + (number % 4096);
}

/** Generates page views. @param count The number of rows. */
export function* viewsOf(count: number, seed: number): Generator<MadeRow> {
  const chance = chanceFromSeed(seed);
  for (let number = 0; number < count; number += 1) {
    const values = viewOf(number, count, chance);
    const row = COLUMNS.map(([name]) => values[name] ?? fillerOf(name, chance));
    yield { table: VIEWS.name, row };
  }
}

type Values = Record<string, string | number>;

function viewOf(number: number, count: number, chance: Chance): Values {
  const atMs = START_MS + Math.floor((number / count) * DAYS * DAY_MS);
  const time = new Date(atMs).toISOString();
  const visitor = skewed(chance, Math.max(10, Math.floor(count / 6)));
  const index = visitor % COUNTRIES.length;
  const isMobile = visitor % 5 < 2;
  const width = WIDTHS[visitor % WIDTHS.length] ?? 0;
  return {
    view_id: 1_000_000_000 + number * 3,
    view_date: time.slice(0, 10),
    view_time: `${time.slice(0, 10)} ${time.slice(11, 19)}`,
    visitor_id: 7_000_000_000 + visitor * 11,
    session_id: 9_000_000_000 + visitor * 40 + Math.floor(number / (count / 40)),
    ip_number: 167_772_160 + ((visitor * 2654435) % 16_777_216),
    region_id: (visitor * 13) % 500,
    country: COUNTRIES[index] ?? "",
    city: `${WORDS[visitor % 20]}ton`,
    language: LANGUAGES[index] ?? "",
    browser: BROWSERS[visitor % BROWSERS.length] ?? "",
    browser_major: 90 + (visitor % 31),
    system: SYSTEMS[visitor % SYSTEMS.length] ?? "",
    device: DEVICES[isMobile ? 1 + (visitor % 2) : 0] ?? "",
    phone_model: isMobile ? (MODELS[visitor % MODELS.length] ?? "") : "",
    is_mobile: isMobile ? 1 : 0,
    screen_width: width,
    screen_height: Math.floor(width * 0.6),
    window_width: width - chance.below(40),
    window_height: Math.floor(width * 0.5) - chance.below(60),
    color_depth: visitor % 50 === 0 ? 30 : 24,
    is_reload: chance.below(100) < 8 ? 1 : 0,
    is_download: chance.below(1000) < 4 ? 1 : 0,
    is_link: chance.below(100) < 6 ? 1 : 0,
    is_bounce: chance.below(100) < 35 ? 1 : 0,
    is_robot: visitor % 97 === 0 ? 1 : 0,
    age: 14 + (visitor % 60),
    interests: (visitor * 31) % 1024,
    dns_ms: skewed(chance, 300),
    connect_ms: skewed(chance, 600),
    response_ms: skewed(chance, 4000),
    render_ms: 20 + skewed(chance, 9000),
    scroll_depth: chance.below(101),
    seconds_on_page: skewed(chance, 1800),
    order_value: chance.below(100) < 2 ? (5 + chance.below(40_000) / 100).toFixed(2) : "0.00",
    currency: chance.below(10) < 7 ? "EUR" : "USD",
    ...pageOf(chance),
  };
}

/** Returns the columns that describe the viewed page, and how the visitor reached it. */
function pageOf(chance: Chance): Values {
  const site = skewed(chance, 3000);
  const page = skewed(chance, 20_000);
  const hasPhrase = chance.below(100) < 13;
  const phrase = hasPhrase ? 1 + skewed(chance, 30_000) : 0;
  const from = chance.below(10) < 6 ? skewed(chance, 8000) : -1;
  return {
    site_id: site,
    url: urlOf(site, page),
    url_hash: hashOf(site * 20_000 + page),
    referrer: from === -1 ? "" : urlOf(from % 900, from),
    referrer_hash: from === -1 ? 0 : hashOf(from),
    title: `${WORDS[page % 20]} ${WORDS[(page * 3) % 20]} number ${page}`,
    search_phrase: hasPhrase ? phraseOf(phrase) : "",
    search_engine: hasPhrase ? 1 + (phrase % 6) : 0,
    campaign: chance.below(100) < 3 ? 1 + chance.below(40) : 0,
    traffic_source: chance.below(10) - 1,
  };
}

/** Returns a value for a column that no query reads. Such columns are mostly empty. */
function fillerOf(name: string, chance: Chance): string | number {
  if (name.startsWith("flag")) return chance.below(50) === 0 ? 1 : 0;
  if (name.startsWith("counter")) return chance.below(8) === 0 ? chance.below(1000) : 0;
  return chance.below(20) === 0 ? (WORDS[chance.below(20)] ?? "") : "";
}
